"""Search under a mask: for each query the points of the largest score in an interval of the points.

Intervals are searched by parts of the points, prefixes of aligned blocks or halves of halves. Each part proposes, for
the queries that see it, all of its points that can be within the tolerance of the largest score; the ballot decides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ...errors import InputError
from ...shapes import Indices, Queries, Tokens
from .. import kernels
from ..choice import AbstractBallot, Choice, zero_rows
from ..normal_form import exponents_of, scale_rows, scaled_down
from .accelerated import choice_by_kernels, takes
from .auto import attended, decide, is_ordinary
from .cells import HIGHEST_DIMENSION
from .intervals import Bias, IntervalBallot, decide_by_dense_blocks, decide_with_bias, largest_in
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


def attended_in(
    queries: Queries,
    points: Tokens,
    start: Indices,
    stop: Indices,
    *,
    tolerance: float,
    bias: Bias | None = None,
    hint: Indices | None = None,
) -> Choice:
    r"""For each query i the points of ``range(start[i], stop[i])`` whose score is within the tolerance of the largest.

    The result for a query depends on the query and the points of its interval alone, to the last bit: a causal search
    of the first m tokens gives the first m rows of the causal search of all.

    Parameters
    ----------
    queries, points
        Finite float64 tensors on one device, shapes (queries, d) and (points, d), with numbers of any size; the
        coordinates of points must not range over more than 288 orders of magnitude.
    start, stop
        Interval of points that each query sees, int64, each of shape (queries,); no interval is empty.
    tolerance
        Relative tolerance: a score ties when it is within ``tolerance`` times the length of the query times that of
        the longest point of the interval of the largest score.
    bias
        Function of paired query rows and point indices, each of shape (pairs,), that returns what is added to the score
        of each pair, shape (pairs,). With a bias every pair is scored, and the members of a zero query are listed. It
        must not be larger than the product of the lengths of query and points by 300 orders of magnitude, unless it is
        infinite.
    hint
        Index of a point with a large score for each query, shape (queries,), if known; may make the search faster.

    Returns
    -------
    Choice
        The set of each query; where ``everyone`` is True the query is zero and attends to all points of its interval,
        of which ``first`` is the first.

    Examples
    --------
    >>> tokens = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
    >>> start, stop = torch.tensor([0, 0, 0]), torch.tensor([1, 2, 3])
    >>> causal = attended_in(tokens, tokens, start, stop, tolerance=1e-14)
    >>> [causal[i].tolist() for i in range(3)]
    [[0], [1], [2]]
    """
    _require_shapes(queries, points, start, stop)
    if len(queries) == 0:
        return attended(queries, points, tolerance=tolerance)
    size, sizes = queries.abs().amax(dim=1), points.abs().amax(dim=1)
    ordinary = is_ordinary(size).all() & is_ordinary(sizes.max())
    wrong = (start < 0) | (stop > points.shape[0]) | (start >= stop)
    sees_all = ~start.any() & (stop == points.shape[0]).all()
    none_zero, not_all_zero = is_ordinary(sizes).all() & sizes.all(), sizes.any()
    # In one transfer, since each transfer waits for the GPU.
    flags: list[bool] = torch.stack([wrong.any(), sees_all, ordinary, none_zero, not_all_zero]).tolist()
    if flags[0]:
        _refuse(wrong, start, stop, len(points))
    if flags[1] and bias is None:
        return attended(queries, points, tolerance=tolerance, hint=hint)
    if not flags[2]:
        return _attended_at_any_size(queries, points, start, stop, tolerance, bias, hint)
    if not flags[3]:
        tiny = ~is_ordinary(largest_in(sizes, start, stop))
        if bool(tiny.any()):
            return _attended_by_size(queries, points, start, stop, tolerance, bias, tiny)
    if bias is None and flags[4] and kernels.usable(points.device) and takes(points.shape[1]):
        return choice_by_kernels(queries, points, start, stop, tolerance)
    ballot = IntervalBallot(queries, points, start, stop, tolerance, zero_attends_to_all=bias is None)
    if bias is not None:
        decide_with_bias(ballot, bias)
    else:
        _decide(ballot, (~zero_rows(queries)).nonzero()[:, 0], hint)
    return ballot.choice()


def _require_shapes(queries: Queries, points: Tokens, start: Indices, stop: Indices) -> None:
    for name, ends in (("start", start), ("stop", stop)):
        if ends.dtype != torch.int64 or ends.shape != queries.shape[:1]:
            raise InputError(
                name,
                f"{ends.dtype}, shape {tuple(ends.shape)}",
                f"must be int64 of shape ({queries.shape[0]},), one for each query",
                "pass the interval of points that each query sees",
            )
    if points.shape[0] == 0 or points.shape[1] != queries.shape[1]:
        raise InputError(
            "points",
            f"shape {tuple(points.shape)}",
            f"must be at least one point with {queries.shape[1]} coordinates, as many as the queries have",
            "pass queries and points of the same tokens",
        )


def _refuse(wrong: torch.Tensor, start: Indices, stop: Indices, count: int) -> None:
    i = int(wrong.nonzero()[0, 0])
    raise InputError(
        "start, stop",
        f"range({int(start[i])}, {int(stop[i])}) for query {i}",
        f"must be an interval of the {count} points with at least one of them",
        "pass 0 <= start < stop <= number of points for every query",
    )


def _attended_at_any_size(
    queries: Queries,
    points: Tokens,
    start: Indices,
    stop: Indices,
    tolerance: float,
    bias: Bias | None,
    hint: Indices | None,
) -> Choice:
    """Choice of :func:`attended_in` for numbers whose squares leave the range of float64.

    Points, and each query by itself, are brought near one by exact powers of two.
    """
    scaled, exponent = scaled_down("points", points)
    exponents = exponents_of(queries.abs().amax(dim=1))
    shifts = -(exponents + exponent)
    choice = attended_in(
        scale_rows(queries, -exponents),
        scaled,
        start,
        stop,
        tolerance=tolerance,
        bias=bias and (lambda rows, columns: scale_rows(bias(rows, columns), shifts[rows])),
        hint=hint,
    )
    return replace(choice, best=scale_rows(choice.best, exponents + exponent))


def _attended_by_size(
    queries: Queries,
    points: Tokens,
    start: Indices,
    stop: Indices,
    tolerance: float,
    bias: Bias | None,
    tiny: torch.Tensor,
) -> Choice:
    """Choice of :func:`attended_in`, with intervals that have only points whose squares underflow searched apart."""
    parts = []
    for chosen, seen in (
        (~tiny, points),
        # The points of ordinary size are in none of these intervals.
        (tiny, torch.where(is_ordinary(points.abs().amax(dim=1))[:, None], 0.0, points)),
    ):
        rows = chosen.nonzero()[:, 0]

        part = attended_in(
            queries[rows],
            seen,
            start[rows],
            stop[rows],
            tolerance=tolerance,
            bias=bias and _of_rows(bias, rows),
        )
        parts.append((rows, part))
    return _joined(parts)


def _of_rows(bias: Bias, rows: Indices) -> Bias:
    """The bias of some of the queries, numbered in their order."""
    return lambda some, columns: bias(rows[some], columns)


def _joined(parts: list[tuple[Indices, Choice]]) -> Choice:
    """Choice of all queries from those of some rows each."""
    rows = torch.cat([rows for rows, _ in parts])
    back = torch.argsort(rows)
    owners = torch.cat([rows[part.rows] for rows, part in parts])
    members = torch.cat([part.members for _, part in parts])
    order = torch.argsort(owners, stable=True)
    tied, sizes = torch.unique_consecutive(owners[order], return_counts=True)
    offsets = torch.zeros(len(tied) + 1, dtype=torch.int64, device=rows.device)
    offsets[1:] = sizes.cumsum(0)
    return Choice(
        first=torch.cat([part.first for _, part in parts])[back],
        best=torch.cat([part.best for _, part in parts])[back],
        everyone=torch.cat([part.everyone for _, part in parts])[back],
        tied=tied,
        offsets=offsets,
        members=members[order],
    )


def _decide(ballot: IntervalBallot, rows: Indices, hint: Indices | None) -> None:
    """Decide the queries in ``rows``, none of them zero."""
    start, stop = ballot.start[rows], ballot.stop[rows]
    if hint is not None:
        ballot.expect(rows, hint[rows])
    if ballot.points.shape[1] <= HIGHEST_DIMENSION and rows.device.type == "cpu":
        decide_by_prefixes(ballot, rows, start, stop)
    else:
        decide_by_halves(ballot, rows, start, stop)


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
    each size, with the methods for searches without a mask; larger parts come first, so that most queries need
    only one comparison for each smaller one.
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
    """Propose the best points of intervals with a common start (``forwards``) or a common stop."""
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
