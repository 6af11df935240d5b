"""Points of the largest score among those of an interval: the ballot that decides, and dense blocks of scores.

Query i sees the points of ``range(start[i], stop[i])``. A score ties when it is within the tolerance, relative to the
length of the query and that of the longest point *of the interval*, of the largest score there: points outside the
interval have no influence, not even on rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

from ...shapes import Indices, PerQuery, PerToken, Queries, Tokens, Values
from ...threads import in_order
from ..choice import Choice, length, listed_choice, require_fewer_ties, score_of_pairs, zero_rows
from .margins import UNIT32, UNIT64, product_error, tie_margin

Bias: TypeAlias = Callable[[Indices, Indices], torch.Tensor]
"""Function of paired query rows and point indices that returns what is added to the score of each pair."""

# Rows and points per product: a block of scores (4 MB in float64) should stay in the cache of a processor.
_ROWS, _COLUMNS = 512, 1024
# On a GPU blocks are limited by memory alone.
_LARGER_ON_DEVICE = 8
# On one thread, for products of few coordinates; used only to decide when threads pay.
_SECONDS_A_PAIR = 4e-9
# Pairs stored before those that later candidates have beaten are dropped, as a multiple of the number of queries.
_PAIRS_PER_QUERY = 4


def largest_in(values: PerToken, start: Indices, stop: Indices) -> PerQuery:
    """Largest of ``values[start[i]:stop[i]]`` for each i, shape (queries,); no interval is empty."""
    if len(start) == 0:
        return values[:0]
    if not bool(start.any()):
        return _running_max(values)[stop - 1]
    if int(stop.min()) == len(values):
        return _running_max(values.flip(0)).flip(0)[start]
    found = values[start]
    level, doubled = torch.frexp((stop - start).double()).exponent - 1, values
    # After step k, doubled[j] is the largest of 2**k values from j on; two such runs cover an interval.
    for k in range(int(level.max()) + 1):
        rows = (level == k).nonzero()[:, 0]
        found[rows] = torch.maximum(doubled[start[rows]], doubled[stop[rows] - 2**k])
        doubled = torch.maximum(doubled[: -(2**k)], doubled[2**k :])
    return found


def _running_max(values: PerToken) -> PerToken:
    """Largest value up to each place, shape (tokens,)."""
    n = len(values)
    if values.device.type == "cpu" or n < 2:
        return values.cummax(0).values
    # One block of a GPU works on one line: as many lines as each is long, and then the largest of the lines before.
    width = math.isqrt(n - 1) + 1
    lines = torch.nn.functional.pad(values, (0, width * width - n)).view(width, width).cummax(1).values
    lines[1:] = torch.maximum(lines[1:], lines[:-1, -1].cummax(0).values[:, None])
    return lines.view(-1)[:n]


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
        self.reach = tie_margin(tolerance, points.shape[1]) * self.size * self.longest * (1 + UNIT32)
        """Distance of the true score of a member below the true largest score, at most; shape (queries,)."""
        self.best = torch.full_like(self.slack, -torch.inf)
        """Largest score of each query among the candidates so far."""
        self._pairs: list[tuple[Indices, Indices, Values]] = []
        self._count, self._most = 0, _PAIRS_PER_QUERY * len(queries)

    def expect(self, rows: Indices, columns: Indices) -> None:
        """Take the scores of these points as known from the start where they are in the interval of their query."""
        seen = (columns >= self.start[rows]) & (columns < self.stop[rows])
        rows, columns = rows[seen], columns[seen]
        self.best[rows] = score_of_pairs(self.queries, self.points, rows, columns)

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
        return listed_choice(first, best, everyone, rows[listed], members[listed], self.points.shape[0])


def decide_with_bias(ballot: IntervalBallot, bias: Bias) -> None:
    """Decide all queries by the sum of score and bias of every pair, the score in the canonical order of operations."""
    every = torch.arange(len(ballot.queries), device=ballot.queries.device)
    for block in _blocks(every, ballot.start, ballot.stop):
        queries, points = ballot.queries[block.rows], ballot.points[block.begin : block.end]
        scores = queries[:, :1] * points[:, 0]
        for k in range(1, points.shape[1]):
            scores += queries[:, k : k + 1] * points[:, k]
        row, column = block.visible.nonzero(as_tuple=True)
        values = scores[row, column]
        row, column = block.rows[row], column + block.begin
        ballot.record(row, column, values + bias(row, column))


def decide_by_dense_blocks(ballot: IntervalBallot, rows: Indices, start: Indices, stop: Indices) -> None:
    """Propose for the queries in ``rows``, none of them zero, the best of ``range(start[k], stop[k])`` each."""
    d = ballot.points.shape[1]
    reach = ballot.reach + 2 * (product_error(d, UNIT64) + (d + 8) * UNIT64) * ballot.size * ballot.longest

    def candidates(block: _Block) -> tuple[Indices, Indices]:
        scores = ballot.queries[block.rows] @ ballot.points[block.begin : block.end].T
        if not bool((block.start <= block.begin).all() & (block.stop >= block.end).all()):
            scores.masked_fill_(~block.visible, -torch.inf)
        known = torch.maximum(scores.amax(dim=1), ballot.best[block.rows])
        # A row that sees none of these points, nor any before, has no candidate here.
        least = (known - reach[block.rows]).masked_fill_(known == -torch.inf, torch.inf)
        row, column = (scores >= least[:, None]).nonzero(as_tuple=True)
        return block.rows[row], column + block.begin

    blocks = _blocks(rows, start, stop)
    pairs = sum(len(block.rows) * (block.end - block.begin) for block in blocks)
    seconds = _SECONDS_A_PAIR * pairs if rows.device.type == "cpu" else 0.0
    for some, columns in in_order(candidates, blocks, seconds=seconds):
        ballot.propose(some, columns)


@dataclass(frozen=True)
class _Block:
    """Some rows with their intervals, and the points from ``begin`` to ``end``, not all of which all rows see."""

    rows: Indices
    start: Indices
    stop: Indices
    begin: int
    end: int

    @property
    def visible(self) -> torch.Tensor:
        """True where a point is in the interval of a row, shape (rows, points)."""
        places = torch.arange(self.begin, self.end, device=self.rows.device)
        return (places >= self.start[:, None]) & (places < self.stop[:, None])


def _blocks(rows: Indices, start: Indices, stop: Indices) -> list[_Block]:
    """Blocks that together hold every row with every point of its interval."""
    larger = 1 if rows.device.type == "cpu" else _LARGER_ON_DEVICE
    middle = start + stop
    if bool((middle[1:] < middle[:-1]).any()):
        order = torch.argsort(middle, stable=True)
        rows, start, stop = rows[order], start[order], stop[order]
    blocks, pending = [], [slice(k, k + larger * _ROWS) for k in range(0, len(rows), larger * _ROWS)]
    while pending:
        part = pending.pop()
        some, low, high = rows[part], start[part], stop[part]
        first, last = int(low.min()), int(high.max())
        # Rows whose intervals are far apart are not taken together.
        if len(some) > 1 and last - first > larger * _COLUMNS + 2 * int((high - low).max()):
            middle_row = part.start + len(some) // 2
            pending += [slice(part.start, middle_row), slice(middle_row, part.start + len(some))]
            continue
        for begin in range(first, last, larger * _COLUMNS):
            blocks.append(_Block(some, low, high, begin, min(begin + larger * _COLUMNS, last)))
    return blocks
