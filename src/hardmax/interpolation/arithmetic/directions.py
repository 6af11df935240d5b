r"""Tokens over one common denominator, and integer directions that separate them.

On the line :math:`t=\langle u, x\rangle` every sequence must keep at least :math:`m^j` distinct values, and the
sequences must stay pairwise different: as sets of values for constructions with leaders, as measures (values with their
frequencies) for constructions with means. All directions off finitely many hyperplanes are admissible; the search takes
small integers and prefers the largest ratio of the smallest useful gap to the range, which determines float64 accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from flint import fmpq

from ...errors import HardmaxError
from ..data import DataSet
from .numbers import Vector, dot

# Sums of products below this cannot overflow int64.
_SAFE = 2**62


class Lattice:
    """All tokens as integers over ``denominator``; int64 where products stay small, Python integers otherwise."""

    def __init__(self, data: DataSet) -> None:
        self.data = data
        self.denominator = math.lcm(*{int(c.q) for x in data.inputs for token in x for c in token})
        whole = [[int(c.p) * (self.denominator // int(c.q)) for c in token] for x in data.inputs for token in x]
        self.sizes = np.array([len(x) for x in data.inputs])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self.owner = np.repeat(np.arange(len(data)), self.sizes)
        self.largest = max(max(abs(c) for c in token) for token in whole)
        small = self.largest < 2**31
        self.points = np.array(whole, dtype=np.int64 if small else object)

    @cached_property
    def floats(self) -> np.ndarray:
        """Tokens in float64, scaled to about one, for ranking candidates only."""
        scale = max(self.largest, 1)
        if self.points.dtype == np.int64:
            return np.asarray(self.points / scale, dtype=np.float64)
        return np.array([[c / scale for c in row] for row in self.points.tolist()], dtype=np.float64)

    def project(self, direction: Sequence[int]) -> np.ndarray:
        """The integers ``<direction, point>``, exactly."""
        reach = self.largest * sum(abs(u) for u in direction)
        if reach < _SAFE and self.points.dtype == np.int64:
            return np.asarray(self.points @ np.array(direction, dtype=np.int64))
        return np.asarray(self.points.astype(object) @ np.array(direction, dtype=object))

    def levels(self, direction: Vector) -> list[list[fmpq]]:
        """``<direction, x>`` for every token, per sequence."""
        return [[dot(direction, token) for token in x] for x in self.data.inputs]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of a value per token over each sequence (rows of tokens, any columns)."""
        if values.dtype == np.int64 and len(values) and int(np.abs(values).max()) * int(self.sizes.max()) >= _SAFE:
            values = values.astype(object)
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=0))


# Largest entries of directions, ascending: small ones give short numbers, large ones always separate.
_BOXES = (
    1,
    2,
    3,
    4,
    6,
    8,
    12,
    16,
    24,
    32,
    48,
    64,
    96,
    128,
    256,
    512,
    1024,
    4096,
    2**14,
    2**18,
    2**22,
    2**30,
    2**40,
    2**60,
)
# Directions drawn per box.
_TRIES = 40
_EXTRA_BOXES = 2  # boxes still searched after the first success


class NoDirectionError(HardmaxError):
    """Error: no direction was found, although almost all directions are admissible."""


def choose_direction(lattice: Lattice, *, measures: bool, generator: np.random.Generator) -> tuple[int, ...]:
    """Best direction found; with ``measures`` sequences must differ as measures instead of as sets."""
    needed = np.array([len(y) for y in lattice.data.outputs])
    best: tuple[float, tuple[int, ...]] | None = None
    successes = 0
    for box in _BOXES:
        ranked = sorted(
            ((_separation(lattice, u, needed), u) for u in _candidates(lattice, box, generator)), reverse=True
        )
        for score, u in ranked:
            if best is not None and score <= best[0]:
                break
            if admissible(lattice, u, needed, measures=measures):
                best = (score, u)
                break
        if best is not None:
            successes += 1
            if successes >= _EXTRA_BOXES:
                break
    if best is None:
        raise NoDirectionError("no integer direction separates the sequences")
    divisor = math.gcd(*best[1])
    return tuple(c // divisor for c in best[1])


def _candidates(lattice: Lattice, box: int, generator: np.random.Generator) -> Iterator[tuple[int, ...]]:
    seen = set()
    drawn = generator.integers(-box, box, size=(_TRIES, lattice.data.dimension), endpoint=True)
    for row in drawn.tolist():
        u = tuple(row)
        if any(u) and u not in seen:
            seen.add(u)
            yield u


def admissible(lattice: Lattice, u: tuple[int, ...], needed: np.ndarray, *, measures: bool) -> bool:
    """Whether the two conditions on a direction hold, exactly."""
    t = lattice.project(u)
    seen: set[object] = set()
    for j, m in enumerate(needed.tolist()):
        own = t[lattice.starts[j] : lattice.starts[j + 1]].tolist()
        values = sorted(set(own))
        if len(values) < m:
            return False
        key: object = tuple(values)
        if measures and len(values) < len(own):
            counts = [own.count(v) for v in values]
            divisor = math.gcd(*counts)
            key = (key, tuple(c // divisor for c in counts))
        elif measures:
            key = (key, (1,) * len(values))
        if key in seen:
            return False
        seen.add(key)
    return True


def _separation(lattice: Lattice, u: tuple[int, ...], needed: np.ndarray) -> float:
    """The smallest gap between items of one sequence, over the range of all tokens; in float64, for ranking."""
    t = lattice.floats @ np.array(u, dtype=np.float64)
    extent = float(t.max() - t.min())
    if extent == 0.0:
        return 0.0
    order = np.lexsort((t, lattice.owner))
    gaps = np.diff(t[order])
    count, longest = len(needed), int(lattice.sizes.max())
    # Row j of the table holds the gaps of sequence j, in order; equal values leave a gap of zero behind.
    table = np.full((count, longest + 1), np.inf)
    inside = lattice.owner[1:] == lattice.owner[:-1]
    column = np.arange(1, len(t)) - lattice.starts[lattice.owner[1:]]
    table[lattice.owner[1:][inside], column[inside]] = gaps[inside]
    # The gaps before position g, and those from position g on: what is left of a window is one of each.
    before = np.minimum.accumulate(table, axis=1)
    after = np.minimum.accumulate(table[:, ::-1], axis=1)[:, ::-1]
    best = np.zeros(count)
    for g in range(int(needed.max())):
        usable = g < needed
        end = np.minimum(g + lattice.sizes - needed + 1, longest)
        rest = np.minimum(before[:, g], after[np.arange(count), end])
        best = np.where(usable, np.maximum(best, rest), best)
    smallest = float(best.min())
    return 1.0 if math.isinf(smallest) else smallest / extent
