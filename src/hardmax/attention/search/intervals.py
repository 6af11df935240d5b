"""Points of the largest score among those of an interval: the ballot that decides, and dense blocks of scores.

Query i sees the points of ``range(start[i], stop[i])``. A score ties when it is within the tolerance, relative to the
length of the query and that of the longest point *of the interval*, of the largest score there: points outside the
interval have no influence, not even on rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from ...shapes import Indices, PerQuery, PerToken, Queries, Tokens, Values
from ..choice import Choice, length, require_fewer_ties, score_of_pairs, zero_rows
from .margins import UNIT32, UNIT64, product_error, tie_margin

Bias: TypeAlias = Callable[[Indices, Indices], torch.Tensor]
"""Function of paired query rows and point indices that returns what is added to the score of each pair."""

# Rows and points per product: a block of scores (4 MB in float64) should stay in the cache of a processor.
_ROWS, _COLUMNS = 512, 1024
# On a GPU blocks are limited by memory alone.
_LARGER_ON_DEVICE = 8
# Pairs stored before those that later candidates have beaten are dropped, as a multiple of the number of queries.
_PAIRS_PER_QUERY = 4


def largest_in(values: PerToken, start: Indices, stop: Indices) -> PerQuery:
    """Largest of ``values[start[i]:stop[i]]`` for each i, shape (queries,); no interval is empty."""
    if len(start) == 0:
        return values[:0]
    if not bool(start.any()):
        return values.cummax(0).values[stop - 1]
    if int(stop.min()) == len(values):
        return values.flip(0).cummax(0).values.flip(0)[start]
    found = values[start]
    level, doubled = torch.frexp((stop - start).double()).exponent - 1, values
    # After step k, doubled[j] is the largest of 2**k values from j on; two such runs cover an interval.
    for k in range(int(level.max()) + 1):
        rows = (level == k).nonzero()[:, 0]
        found[rows] = torch.maximum(doubled[start[rows]], doubled[stop[rows] - 2**k])
        doubled = torch.maximum(doubled[: -(2**k)], doubled[2**k :])
    return found


class IntervalBallot:
    """Selection of the largest scores in an interval for each query, from candidates that are proposed in parts.

    The result does not depend on the candidates or their order, as long as all points whose score is within the slack
    of the largest of a non-zero query are among them, each once; further candidates are discarded. Candidates are of
    the interval of their query.
    """

    def __init__(
        self,
        queries: Queries,
        points: Tokens,
        start: Indices,
        stop: Indices,
        tolerance: float,
        *,
        zero_attends_to_all: bool,
    ) -> None:
        self.queries, self.points, self.start, self.stop = queries, points, start, stop
        self.tolerance, self._zero_attends_to_all = tolerance, zero_attends_to_all
        self.lengths = length(points)
        self.longest = largest_in(self.lengths, start, stop)
        """Length of the longest point of each interval, shape (queries,)."""
        self.size = length(queries)
        self.slack = tolerance * self.size * self.longest
        self.best = torch.full_like(self.slack, -torch.inf)
        """Largest score of each query among the candidates so far."""
        self._pairs: list[tuple[Indices, Indices, Values]] = []
        self._count, self._most = 0, _PAIRS_PER_QUERY * len(queries)

    @property
    def reach(self) -> PerQuery:
        """Distance of the true score of a member below the true largest score, at most; shape (queries,)."""
        return tie_margin(self.tolerance, self.points.shape[1]) * self.size * self.longest * (1 + UNIT32)

    def propose(self, rows: Indices, columns: Indices) -> None:
        """Add the candidates ``(rows[p], columns[p])``."""
        if len(rows) == 0:
            return
        self.record(rows, columns, score_of_pairs(self.queries, self.points, rows, columns))

    def record(self, rows: Indices, columns: Indices, values: Values) -> None:
        """Add candidates whose scores were computed elsewhere, in the same order of operations."""
        self.best.scatter_reduce_(0, rows, values, reduce="amax")
        stays = values >= (self.best - self.slack)[rows]
        self._pairs.append((rows[stays], columns[stays], values[stays]))
        self._count += len(self._pairs[-1][0])
        if self._count > self._most:
            self._drop_beaten()
            require_fewer_ties(self._count)
            self._most = max(self._most, 2 * self._count)

    def _drop_beaten(self) -> None:
        rows, columns, values = (torch.cat(part) for part in zip(*self._pairs, strict=True))
        stays = values >= (self.best - self.slack)[rows]
        self._pairs = [(rows[stays], columns[stays], values[stays])]
        self._count = len(self._pairs[0][0])

    def choice(self) -> Choice:
        """Sets of all queries."""
        everyone = zero_rows(self.queries) & self._zero_attends_to_all
        rows = members = self.start[:0]
        if self._pairs:
            self._drop_beaten()
            rows, members = self._pairs[0][:2]
        if bool(everyone.any()):
            listed = ~everyone[rows]
            rows, members = rows[listed], members[listed]
        first = torch.where(everyone, self.start, -1)
        best = torch.where(everyone, torch.zeros_like(self.best), self.best)
        several = torch.bincount(rows, minlength=len(first)) > 1
        first[rows] = members
        listed = several[rows]
        rows, members = rows[listed], members[listed]
        order = torch.argsort(rows * self.points.shape[0] + members)
        rows, members = rows[order], members[order]
        tied, sizes = torch.unique_consecutive(rows, return_counts=True)
        offsets = torch.zeros(len(tied) + 1, dtype=torch.int64, device=rows.device)
        offsets[1:] = sizes.cumsum(0)
        first[tied] = members[offsets[:-1]]
        return Choice(first, best, everyone, tied, offsets, members)


def decide_with_bias(ballot: IntervalBallot, bias: Bias) -> None:
    """Decide all queries by the sum of score and bias of every pair, the score in the canonical order of operations."""
    for rows, begin, end in _blocks(ballot, torch.arange(len(ballot.queries), device=ballot.queries.device)):
        queries, points = ballot.queries[rows], ballot.points[begin:end]
        scores = queries[:, :1] * points[:, 0]
        for k in range(1, points.shape[1]):
            scores += queries[:, k : k + 1] * points[:, k]
        row, column = _visible(ballot, rows, begin, end).nonzero(as_tuple=True)
        values = scores[row, column]
        row, column = rows[row], column + begin
        ballot.record(row, column, values + bias(row, column))


def decide_by_dense_blocks(ballot: IntervalBallot, rows: Indices) -> None:
    """Decide the queries in ``rows``, none of them zero, by products of all points of their intervals."""
    d = ballot.points.shape[1]
    reach = ballot.reach + 2 * (product_error(d, UNIT64) + (d + 8) * UNIT64) * ballot.size * ballot.longest
    for some, begin, end in _blocks(ballot, rows):
        scores = ballot.queries[some] @ ballot.points[begin:end].T
        if not bool((ballot.start[some] <= begin).all() & (ballot.stop[some] >= end).all()):
            scores.masked_fill_(~_visible(ballot, some, begin, end), -torch.inf)
        known = torch.maximum(scores.amax(dim=1), ballot.best[some])
        row, column = (scores >= (known - reach[some])[:, None]).nonzero(as_tuple=True)
        ballot.propose(some[row], column + begin)


def _visible(ballot: IntervalBallot, rows: Indices, begin: int, end: int) -> torch.Tensor:
    """True where the point ``begin + k`` is in the interval of the query ``rows[i]``, shape (rows, points)."""
    places = torch.arange(begin, end, device=rows.device)
    return (places >= ballot.start[rows][:, None]) & (places < ballot.stop[rows][:, None])


def _blocks(ballot: IntervalBallot, rows: Indices) -> list[tuple[Indices, int, int]]:
    """Blocks of rows, each with some of the points that they see: ``(rows, begin, end)``."""
    if len(rows) == 0:
        return []
    larger = 1 if rows.device.type == "cpu" else _LARGER_ON_DEVICE
    middle = ballot.start[rows] + ballot.stop[rows]
    if bool((middle[1:] < middle[:-1]).any()):
        rows = rows[torch.argsort(middle, stable=True)]
    blocks = []
    for some in torch.split(rows, larger * _ROWS):
        first, last = int(ballot.start[some].min()), int(ballot.stop[some].max())
        blocks += [
            (some, begin, min(begin + larger * _COLUMNS, last)) for begin in range(first, last, larger * _COLUMNS)
        ]
    return blocks
