"""Search in intervals by parts of the points: prefixes of aligned blocks, or halves of halves.

Each part proposes, for the queries that see it, all of its points that can be within the tolerance of the largest
score; :class:`hardmax.attention.search.intervals.IntervalBallot` decides once, among the candidates of all parts.
"""

from __future__ import annotations

import numpy as np
import torch

from ...shapes import Indices
from ..choice import AbstractBallot
from .auto import decide
from .intervals import IntervalBallot, decide_by_dense_blocks
from .margins import UNIT32
from .prefixes import decide_prefixes

# Intervals up to this long, and parts with fewer pairs, are searched by products of all pairs.
_SHORT, _FEW_PAIRS = 2048, 1 << 21
# Points of a part that is not halved any more: about where preparing a search takes as long as all products.
_LEAF = 1024
# Where the longest point of an interval is longer than that of a part by this factor, the part is searched by products
# of all pairs: the methods measure the tolerance by the longest point of the part, and nearly everything would tie.
_LONGER = 2.0**20
# Lengths of the longest points of intervals that are searched together differ by no more than this factor, as a power
# of two.
_BAND = 20
_MOST_BANDS = 4


class _Part(AbstractBallot):
    """Candidates of some queries from some of the points, passed on to the ballot of the intervals."""

    def __init__(self, ballot: IntervalBallot, rows: Indices, begin: int, longest: float) -> None:
        self.longest = longest
        self._ballot, self._rows, self._begin = ballot, rows, begin
        self._settled: Indices | None = None
        self._open: torch.Tensor | None = None

    def settle(self, only: Indices) -> None:
        self._settled, self._open = only, torch.ones_like(only, dtype=torch.bool)

    def decide(self, rows: Indices, columns: Indices) -> None:
        if self._open is not None:
            self._open[rows] = False
        self._ballot.propose(self._rows[rows], columns + self._begin)

    def finish(self) -> None:
        """Pass on the candidates of the queries that have one each."""
        if self._settled is not None and self._open is not None:
            alone = self._open.nonzero()[:, 0]
            self._ballot.propose(self._rows[alone], self._settled[alone] + self._begin)


def decide_by_halves(ballot: IntervalBallot, rows: Indices, start: Indices, stop: Indices) -> None:
    """Propose for the queries in ``rows``, none of them zero, the best of ``range(start[k], stop[k])`` each.

    Points are halved again and again. A query searches the largest parts that its interval covers, at most two of
    each size, with the methods that serve without a mask; larger parts come first, so that most queries need
    only a glance at the smaller ones.
    """
    pending = [(rows, start, stop, 0, len(ballot.points))]
    while pending:
        rows, start, stop, begin, end = pending.pop(0)
        covered = (start == begin) & (stop == end)
        _decide_part(ballot, rows[covered], begin, end)
        rows, start, stop = rows[~covered], start[~covered], stop[~covered]
        if len(rows) == 0:
            continue
        if end - begin <= _LEAF or len(rows) * (end - begin) <= _FEW_PAIRS // 4:
            decide_by_dense_blocks(ballot, rows, start, stop)
            continue
        middle = (begin + end) // 2
        left, right = start < middle, stop > middle
        if bool(left.any()):
            pending.append((rows[left], start[left], stop[left].clamp_max(middle), begin, middle))
        if bool(right.any()):
            pending.append((rows[right], start[right].clamp_min(middle), stop[right], middle, end))


def _decide_part(ballot: IntervalBallot, rows: Indices, begin: int, end: int) -> None:
    """Propose for the queries in ``rows`` the best of the points from ``begin`` to ``end``."""
    longest = float(ballot.lengths[begin:end].max())
    # By Cauchy-Schwarz a query with a larger score already has no candidate here.
    rows = rows[ballot.size[rows] * longest * (1 + UNIT32) >= ballot.best[rows] - 2 * ballot.reach[rows]]
    if len(rows) * (end - begin) > _FEW_PAIRS and longest > 0:
        similar = ballot.longest[rows] <= _LONGER * longest
        some, rows = rows[similar], rows[~similar]
        if len(some):
            ratio = max(1.0, float(ballot.longest[some].max()) / longest) * (1 + UNIT32)
            part = _Part(ballot, some, begin, longest)
            queries, points = ballot.queries[some], ballot.points[begin:end]
            decide(part, queries, points, ballot.tolerance * ratio, "auto", known=ballot.best[some])
            part.finish()
    if len(rows):
        decide_by_dense_blocks(ballot, rows, torch.full_like(rows, begin), torch.full_like(rows, end))


def decide_by_prefixes(ballot: IntervalBallot, rows: Indices, start: Indices, stop: Indices) -> None:
    """Propose for the queries in ``rows``, none of them zero, the best of ``range(start[k], stop[k])`` each.

    For points on a CPU with few coordinates. An interval is cut where it crosses the border of an aligned block of the
    power of two at most its length; each piece is a prefix of the points of a block, forwards or backwards.
    """
    short = stop - start <= _SHORT
    if bool(short.any()):
        decide_by_dense_blocks(ballot, rows[short], start[short], stop[short])
        rows, start, stop = rows[~short], start[~short], stop[~short]
    if len(rows) == 0:
        return
    if bool((start == start[0]).all()):
        _decide_group(ballot, rows, start, stop, forwards=True)
        return
    if bool((stop == stop[0]).all()):
        _decide_group(ballot, rows, start, stop, forwards=False)
        return
    level = torch.frexp((stop - start).double()).exponent.long() - 1
    first, last = start >> level, (stop - 1) >> level
    for forwards, block, chosen in (
        (True, last, first <= last),  # the piece in the last block
        (False, first, first < last),  # the piece in the first block
        (True, first + 1, first + 1 < last),  # a whole block between them
    ):
        some, blocks, levels = rows[chosen], block[chosen], level[chosen]
        begin = torch.maximum(start[chosen], blocks << levels)
        end = torch.minimum(stop[chosen], (blocks + 1) << levels)
        key = levels * (len(ballot.points) + 1) + blocks
        order = torch.argsort(key, stable=True)
        sizes = torch.unique_consecutive(key[order], return_counts=True)[1]
        for part in torch.split(order, sizes.tolist()):
            _decide_group(ballot, some[part], begin[part], end[part], forwards=forwards)


def _decide_group(ballot: IntervalBallot, rows: Indices, start: Indices, stop: Indices, *, forwards: bool) -> None:
    """The same for intervals with a common start (``forwards``) or a common stop."""
    if int((stop - start).sum()) <= _FEW_PAIRS:
        decide_by_dense_blocks(ballot, rows, start, stop)
        return
    band = torch.frexp(ballot.longest[rows]).exponent // _BAND
    bands = torch.unique(band)
    for some in bands.tolist() if len(bands) <= _MOST_BANDS else []:
        chosen = band == some
        if not _decide_band(ballot, rows[chosen], start[chosen], stop[chosen], forwards=forwards):
            decide_by_halves(ballot, rows[chosen], start[chosen], stop[chosen])
    if len(bands) > _MOST_BANDS:
        decide_by_halves(ballot, rows, start, stop)


def _decide_band(ballot: IntervalBallot, rows: Indices, start: Indices, stop: Indices, *, forwards: bool) -> bool:
    begin, end = int(start.min()), int(stop.max())
    names = np.arange(begin, end) if forwards else np.arange(end - 1, begin - 1, -1)
    points = ballot.points[begin:end].numpy()
    return decide_prefixes(
        ballot,
        rows.numpy(),
        ballot.queries[rows].numpy(),
        (stop - start).numpy(),
        points if forwards else np.ascontiguousarray(points[::-1]),
        names,
    )
