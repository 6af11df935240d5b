"""Parts of results in files: outcomes, assumptions, weights, leaders, limits and phases."""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch

from ..dynamics.assumptions import Assumptions
from ..dynamics.leadership import Leadership, Ties
from ..meanfield.limit import LowTemperatureLimit, Orbit
from ..meanfield.measures import Occupancy
from ..meanfield.phases import Fit, Phases, Terminal
from ..meanfield.rates import Rates, terminal_of
from ..meanfield.spectrum import Leading
from ..outcomes import Ending, Outcome
from ..shapes import Array
from .array_files import Contents, Reader


def put_outcome(contents: Contents, outcome: Outcome) -> None:
    """Add how a run ended."""
    words = {"ending": outcome.ending.value, "sentence": outcome.sentence, "remedy": outcome.remedy}
    contents.put_words("outcome", words)


def get_outcome(reader: Reader) -> Outcome:
    """Outcome in a file."""
    words = reader.words("outcome")

    def make() -> Outcome:
        return Outcome(Ending(words["ending"]), str(words["sentence"]), str(words["remedy"]))

    return reader.made("outcome", make)


def put_assumptions(contents: Contents, assumptions: Assumptions | None) -> None:
    """Add which assumptions of the theorem hold, where that is known."""
    if assumptions is not None:
        contents.put_words("assumptions", asdict(assumptions))


def get_assumptions(reader: Reader) -> Assumptions:
    """Assumptions of the theorem in a file, each true or false."""
    words = reader.words("assumptions")
    wanted = {field.name for field in fields(Assumptions)}
    if set(words) | {"basic"} != wanted or not all(isinstance(value, bool) for value in words.values()):
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
    """Add leaders and followers."""
    contents.put("leader", ("leader",), leadership.leaders)
    contents.put("emerged_at", ("leader",), leadership.emerged_at)
    contents.put("follows", ("token",), leadership.follows)
    contents.put("decided_at", ("token",), leadership.decided_at)
    if len(leadership.ties):
        contents.put("tied_tokens", ("tie",), leadership.ties.tokens)
        contents.put("tie_offsets", ("tie_offset",), leadership.ties.offsets)
        contents.put("tie_members", ("tie_member",), leadership.ties.members)


def get_leadership(reader: Reader, count: int) -> Leadership:
    """Leaders and followers among ``count`` tokens."""
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


_SQUARE = ("coordinate", "coordinate_too")


def limit_contents(limit: LowTemperatureLimit) -> Contents:
    """A low-temperature limit."""
    contents = Contents.of("low-temperature limit", limit.positions)
    _put_limit(contents, limit)
    return contents


def read_limit(reader: Reader) -> LowTemperatureLimit:
    """The low-temperature limit in a file."""
    return _get_limit(reader)


def phases_contents(found: Phases) -> Contents:
    """The phases of a run, with the limit that they were measured against."""
    contents = Contents.of("phases", found.limit.positions)
    _put_limit(contents, found.limit)
    for name in ("times", "distances", "trimmed"):
        contents.put(name, ("time",), getattr(found, name))
    contents.put("terminal_direction", ("coordinate",), found.terminal.direction)
    if found.terminal.expected is not None:
        contents.put("terminal_expected", ("coordinate",), found.terminal.expected)
    contents.put("theory_pointwise", ("token",), found.theory.pointwise)
    contents.put_words(
        "phases",
        _spelled(
            {
                "method": found.method,
                "beta": found.beta,
                "approach_time": found.approach_time,
                "approach_distance": found.approach_distance,
                "window": list(found.window),
                "escape_time": found.escape_time,
                "concentration": None if found.concentration is None else asdict(found.concentration),
                "escape": None if found.escape is None else asdict(found.escape),
                "terminal_spread": found.terminal.spread,
                "terminal_distance": found.terminal.distance,
                "occupancy": asdict(found.occupancy),
                "theory_slowest": found.theory.slowest,
                "theory_wasserstein": found.theory.wasserstein,
                "theory_escape": found.theory.escape,
                "theory_depletion": found.theory.depletion,
                "metric": found.metric,
                "isolated": found.isolated,
                "isolated_distance": found.isolated_distance,
            }
        ),
    )
    return contents


def read_phases(reader: Reader) -> Phases:
    """The phases in a file."""
    limit = _get_limit(reader)
    count, d = limit.positions.shape
    times = reader.plain("times", (None,))
    expected = reader.plain("terminal_expected", (d,)) if reader.has("terminal_expected") else None
    words = reader.words("phases")

    def make() -> Phases:
        occupied = words["occupancy"]
        return Phases(
            times=times,
            distances=reader.plain("distances", times.shape),
            trimmed=reader.plain("trimmed", times.shape),
            method=str(words["method"]),
            approach_time=float(words["approach_time"]),
            approach_distance=float(words["approach_distance"]),
            window=_pair(words["window"]),
            escape_time=_maybe(words["escape_time"]),
            concentration=_fit(words["concentration"]),
            escape=_fit(words["escape"]),
            terminal=Terminal(
                direction=reader.plain("terminal_direction", (d,)),
                spread=float(words["terminal_spread"]),
                expected=expected,
                distance=_maybe(words["terminal_distance"]),
            ),
            occupancy=Occupancy(
                tokens=int(occupied["tokens"]),
                dimension=int(occupied["dimension"]),
                beta=float(occupied["beta"]),
                smallest=float(occupied["smallest"]),
                median=float(occupied["median"]),
            ),
            limit=limit,
            theory=Rates(
                pointwise=reader.plain("theory_pointwise", (count,)),
                slowest=float(words["theory_slowest"]),
                wasserstein=float(words["theory_wasserstein"]),
                terminal=terminal_of(limit),
                depletion=float(words.get("theory_depletion", math.inf)),
            ),
            beta=float(words["beta"]),
            # Older files lack these words: their distances are chordal, and isolated tokens were not counted.
            metric="geodesic" if words.get("metric") == "geodesic" else "chordal",
            isolated=float(words.get("isolated", 0.0)),
            isolated_distance=float(words.get("isolated_distance", 0.0)),
        )

    return reader.made("phases", make)


def _put_limit(contents: Contents, limit: LowTemperatureLimit) -> None:
    contents.put("positions", ("token", "coordinate"), limit.positions)
    if limit.weights is not None:
        contents.put("weights", ("token",), limit.weights)
    contents.put("B", _SQUARE, limit.B)
    contents.put("V", _SQUARE, limit.V)
    contents.put("projector", _SQUARE, limit.projector)
    contents.put("leading_basis", ("coordinate", "leading"), limit.leading.basis)
    contents.put("second_basis", ("coordinate", "second"), limit.leading.second_basis)
    leading = limit.leading
    words = {"eigenvalue": leading.eigenvalue, "second": leading.second, "turning": leading.turning}
    contents.put_words("leading", {**words, "steady": leading.steady})
    if leading.nilpotent is not None:
        contents.put("nilpotent", _SQUARE, leading.nilpotent)
    if limit.algebraic is not None:
        contents.put("algebraic", ("token",), limit.algebraic)
    if limit.orbit is not None:
        contents.put("orbit_planes", ("token", "coordinate", "plane"), limit.orbit.planes)
        contents.put("orbit_periods", ("token",), limit.orbit.periods)


def _get_limit(reader: Reader) -> LowTemperatureLimit:
    positions = reader.numbers("positions", (None, None))
    count, d = positions.shape
    projector = reader.plain("projector", (d, d))
    words = reader.words("leading")

    def make() -> Leading:
        return Leading(
            eigenvalue=float(words["eigenvalue"]),
            second=_maybe(words["second"]),
            basis=reader.plain("leading_basis", (d, None)),
            second_basis=reader.plain("second_basis", (d, None)),
            projector=projector,
            turning=float(words.get("turning", 0.0)),
            steady=bool(words.get("steady", True)),
            nilpotent=reader.plain("nilpotent", (d, d)) if reader.has("nilpotent") else None,
        )

    leading = reader.made("leading", make)
    orbit = None
    if reader.has("orbit_planes"):
        planes, periods = reader.plain("orbit_planes", (count, d, 2)), reader.plain("orbit_periods", (count,))
        orbit = Orbit(planes, periods, leading.turning)
    return LowTemperatureLimit(
        positions=positions,
        projector=torch.from_numpy(projector.copy()) if isinstance(positions, torch.Tensor) else projector,
        weights=reader.numbers("weights", (count,)) if reader.has("weights") else None,
        leading=leading,
        B=reader.plain("B", (d, d)),
        V=reader.plain("V", (d, d)),
        orbit=orbit,
        algebraic=reader.plain("algebraic", (count,)) if reader.has("algebraic") else None,
    )


def _spelled(value: Any) -> Any:
    """The value with infinities and NaN as strings, which JSON lacks."""
    if isinstance(value, dict):
        return {name: _spelled(inside) for name, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(inside) for inside in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)


def _pair(value: Any) -> tuple[float, float]:
    first, second = value
    return float(first), float(second)


def _fit(words: Any) -> Fit | None:
    if words is None:
        return None
    return Fit(
        rate=float(words["rate"]),
        error=float(words["error"]),
        r_squared=float(words["r_squared"]),
        interval=_pair(words["interval"]),
    )
