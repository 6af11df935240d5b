"""Reasons why the limit of a token is not known, as codes that fit in an array and as sentences."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np


class Undecided(IntEnum):
    """Reason why a token has no known limit; in arrays of reasons 0 stands for a decided token.

    The code of ``OUTSIDE_CONE`` is that of head 0; code ``OUTSIDE_CONE + h`` stands for head h.

    Examples
    --------
    >>> sentence_of(Undecided.TIED), sentence_of(Undecided.OUTSIDE_CONE + 2)
    ('tied with tokens at several positions', 'target outside the cone of head 2')
    """

    MOVING = 1
    """The token listens to a token that still moves."""
    TIED = 2
    """The token listens to several positions in one head, and the tie is not known to last."""
    NOT_LEADING_IN_SIGHT = 3
    """The token listens to a token at rest, for whose query another token in sight has a larger score."""
    OUTSIDE_CONE = 4
    """At its target the token would listen to other tokens in this head: it may switch for ever."""


_SENTENCES = {
    Undecided.MOVING: "listening to a token that still moves",
    Undecided.TIED: "tied with tokens at several positions",
    Undecided.NOT_LEADING_IN_SIGHT: "following a token that does not lead in its sight",
}


def sentence_of(code: int) -> str:
    """Sentence for the code of a reason."""
    if code >= Undecided.OUTSIDE_CONE:
        return f"target outside the cone of head {code - Undecided.OUTSIDE_CONE}"
    return _SENTENCES[Undecided(code)]


def counted_reasons(codes: Iterable[int]) -> dict[str, int]:
    """Number of tokens per reason, by sentence, in the order of the codes; decided tokens are left out.

    >>> counted_reasons([0, 2, 0, 2, 1])
    {'listening to a token that still moves': 1, 'tied with tokens at several positions': 2}
    """
    found, counts = np.unique(np.asarray(list(codes), dtype=np.int64), return_counts=True)
    return {sentence_of(int(code)): int(count) for code, count in zip(found, counts, strict=True) if code > 0}
