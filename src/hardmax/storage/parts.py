"""The parts that runs and limits share in a file: outcome, assumptions, weights, and who follows whom."""

from __future__ import annotations

from dataclasses import asdict, fields

import numpy as np

from ..dynamics.assumptions import Assumptions
from ..dynamics.leadership import Leadership, Ties
from ..outcomes import Ending, Outcome
from ..shapes import Array
from .contents import Contents, Reader


def put_outcome(contents: Contents, outcome: Outcome) -> None:
    """Add how a run ended."""
    words = {"ending": outcome.ending.value, "sentence": outcome.sentence, "remedy": outcome.remedy}
    contents.put_words("outcome", words)


def get_outcome(reader: Reader) -> Outcome:
    """How a run ended."""
    words = reader.words("outcome")

    def make() -> Outcome:
        return Outcome(Ending(words["ending"]), str(words["sentence"]), str(words["remedy"]))

    return reader.made("outcome", make)


def put_assumptions(contents: Contents, assumptions: Assumptions | None) -> None:
    """Add which assumptions of the theorem hold, where that is known."""
    if assumptions is not None:
        contents.put_words("assumptions", asdict(assumptions))


def get_assumptions(reader: Reader) -> Assumptions:
    """Which assumptions of the theorem hold."""
    words = reader.words("assumptions")
    wanted = {field.name for field in fields(Assumptions)}
    if set(words) != wanted or not all(isinstance(value, bool) for value in words.values()):
        raise reader.bad("assumptions", f"is {words}, not true or false for each of {sorted(wanted)}")
    return Assumptions(**words)


def put_weights(contents: Contents, weights: Array | None) -> None:
    """Add the weights, where there are any."""
    if weights is not None:
        contents.put("weights", ("token",), weights)


def get_weights(reader: Reader, count: int) -> Array | None:
    """The weights of ``count`` tokens, or None where none were saved."""
    return reader.numbers("weights", (count,)) if reader.has("weights") else None


def put_leadership(contents: Contents, leadership: Leadership) -> None:
    """Add who leads and who follows."""
    contents.put("leader", ("leader",), leadership.leaders)
    contents.put("emerged_at", ("leader",), leadership.emerged_at)
    contents.put("follows", ("token",), leadership.follows)
    contents.put("decided_at", ("token",), leadership.decided_at)
    if len(leadership.ties):
        contents.put("tied_tokens", ("tie",), leadership.ties.tokens)
        contents.put("tie_offsets", ("tie_offset",), leadership.ties.offsets)
        contents.put("tie_members", ("tie_member",), leadership.ties.members)


def get_leadership(reader: Reader, count: int) -> Leadership:
    """Who leads and who follows among ``count`` tokens."""
    leaders = _indices(reader, "leader", None, count)
    return Leadership(
        leaders=leaders,
        emerged_at=reader.numbers("emerged_at", (len(leaders),), "i"),
        follows=_indices(reader, "follows", count, count, least=-1),
        ties=_get_ties(reader, count),
        decided_at=reader.numbers("decided_at", (count,), "i"),
    )


def _get_ties(reader: Reader, count: int) -> Ties:
    if not reader.has("tied_tokens"):
        nothing = np.zeros(0, dtype=np.int64)
        return Ties(nothing, np.zeros(1, dtype=np.int64), nothing)
    tokens = reader.plain("tied_tokens", (None,), "i")
    offsets = reader.plain("tie_offsets", (len(tokens) + 1,), "i")
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise reader.bad("tie_offsets", "does not increase from 0")
    members = reader.plain("tie_members", (int(offsets[-1]),), "i")
    for name, values in (("tied_tokens", tokens), ("tie_members", members)):
        _require_range(reader, name, values, 0, count)
    return Ties(tokens, offsets, members)


def _indices(reader: Reader, name: str, size: int | None, count: int, least: int = 0) -> Array:
    _require_range(reader, name, reader.plain(name, (size,), "i"), least, count)
    return reader.numbers(name, (size,), "i")


def _require_range(reader: Reader, name: str, values: np.ndarray, least: int, count: int) -> None:
    if values.size and (values.min() < least or values.max() >= count):
        raise reader.bad(name, f"names tokens {values.min()} to {values.max()} where there are {count}")
