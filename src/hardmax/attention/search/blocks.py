r"""Search in any number of coordinates: matrix products in the cache, with one number stored per block.

Of each row and each block of 128 points only the largest score of a coarse screen is stored. Blocks that come within
the proven error of the row's best are scored again, and the few pairs left are decided in float64. Where lengths
differ, points are visited by decreasing length and rows stop as soon as

.. math:: |q|\,|z_j| \;<\; \text{best so far} - \text{margin}

(Cauchy–Schwarz), after a linear change of variables that makes the cloud round and centred, which prunes best.
"""

from __future__ import annotations

import torch

from ...shapes import Indices, PerQuery, Queries, Tokens, Values
from ...threads import in_order
from ..choice import AbstractBallot, length
from .frames import Frame, plain_frame, round_frame
from .margins import UNIT64
from .screens import BLOCK, TILE, AbstractScreen, IntegerScreen, ProductScreen, integers_are_fast, rows_at_once

# Pairs of a row and a block scored again at a time: at most 2**17 * 128 scores are held.
_REVISITS_AT_ONCE = 1 << 17
_ROWS_PER_REVISIT = 1 << 13
# With fewer coordinates the product takes little of the time; with fewer pairs, rounding to integers most of it.
_INTEGERS_PAY_FROM = 12
_PAIRS_FOR_INTEGERS = 1 << 26
# Of two coordinates, on one thread, measured with (10,000, 64): used only to decide when threads pay.
_SECONDS_A_PRODUCT = 3e-11


def decide_by_blocks(
    ballot: AbstractBallot, queries: Queries, points: Tokens, margin: float, *, dtype: torch.dtype
) -> None:
    """Decide all queries by all points."""
    frame = plain_frame(queries, points, margin, dtype)
    screen = ProductScreen(frame)
    pending = _Pending(ballot, frame)
    parts = torch.split(torch.arange(len(frame.rows), device=points.device), rows_at_once(points.device))
    every = in_order(lambda rows: screen.maxima(rows, 0, points.shape[0]), parts, seconds=_seconds(frame))
    for rows, maxima in zip(parts, every, strict=True):
        pending.add(rows, maxima, maxima.amax(dim=1) - screen.error[rows], screen.error[rows])
    pending.revisit()


def decide_by_longest(
    ballot: AbstractBallot,
    queries: Queries,
    points: Tokens,
    margin: float,
    *,
    dtype: torch.dtype,
    hint: Indices | None = None,
    known: PerQuery | None = None,
) -> None:
    """Decide all queries by the points that are long enough to matter.

    ``hint`` names a good point for each query: a row that knows a good score from the start can stop earlier. ``known``
    is a score of each query (perhaps -inf) that only points within the margin below it, or above it, can contest.
    """
    frame = round_frame(queries, points, margin, dtype)
    all_rows = torch.arange(len(frame.rows), device=points.device)
    fine = ProductScreen(frame)
    first = min(TILE, points.shape[0])
    parts = torch.split(all_rows, rows_at_once(points.device))
    start = torch.cat([*in_order(lambda rows: fine.maxima(rows, 0, first), parts, seconds=_seconds(frame))])
    certain = start.amax(dim=1) - fine.error
    if hint is not None:
        certain = torch.maximum(certain, _score_of_hint(frame, hint) - fine.error)
    if known is not None:
        certain = torch.maximum(certain, _in_frame(frame, queries, points, known) - fine.error)
    screen = _screen(frame, fine)
    pending = _Pending(ballot, frame)
    # Rows with a known large score stop early; rows that stop together are processed together.
    parts = torch.split(torch.argsort(certain, descending=True), rows_at_once(points.device))
    every = in_order(
        lambda rows: _maxima_of_longest(frame, screen, rows, start[rows], certain[rows]),
        parts,
        seconds=_seconds(frame),
    )
    for rows, (maxima, best, error) in zip(parts, every, strict=True):
        blocks = pending.add(rows, maxima, best, error)
        if blocks > len(rows) * (4 + maxima.shape[1] // 16):
            screen = fine  # the coarse screen leaves too much to be looked at again
    pending.revisit()


def _seconds(frame: Frame) -> float:
    """Estimated time of one thread to score every pair, in seconds, without pruning."""
    return _SECONDS_A_PRODUCT * len(frame.rows) * frame.points.numel() if frame.points.device.type == "cpu" else 0.0


def _screen(frame: Frame, fine: ProductScreen) -> AbstractScreen:
    n, d = frame.points.shape
    large = len(frame.rows) * n >= _PAIRS_FOR_INTEGERS and d >= _INTEGERS_PAY_FROM
    if large and frame.points.dtype == torch.float32 and integers_are_fast(d):
        return IntegerScreen(frame)
    return fine


def _score_of_hint(frame: Frame, hint: Indices) -> Values:
    place = torch.empty_like(frame.order)
    place[frame.order] = torch.arange(len(place), device=place.device)
    return (frame.queries * frame.points[place[hint[frame.rows]]]).sum(dim=1)


def _in_frame(frame: Frame, queries: Queries, points: Tokens, known: PerQuery) -> Values:
    """Scores of some rows in units of the frame, rounded downwards."""
    rows = queries[frame.rows]
    # Twice the rounding of the score of the centre, which is no longer than the longest point.
    rounding = 4 * (points.shape[1] + 4) * UNIT64 * length(rows) * length(points).max()
    return ((known[frame.rows] - rows @ frame.centre - rounding) / frame.sizes).to(frame.reach.dtype)


def _maxima_of_longest(
    frame: Frame, screen: AbstractScreen, rows: Indices, start: torch.Tensor, known: Values
) -> tuple[torch.Tensor, Values, Values]:
    """Largest score of each row in each block, up to where no row can exceed its known score.

    Also the known score of each row, which some point certainly has, and a bound on the error of the scores.
    """
    parts = [start]
    reach, error = frame.reach[rows], screen.error[rows]
    count, done = frame.points.shape[0], TILE
    while done < count and float(frame.lengths[done]) * (1 + 1e-6) >= float((known - reach).min()):
        # The test for stopping takes time too, so it is made less often the longer the loop runs.
        stop = min(count, done + TILE * (1 + done // (8 * TILE)))
        parts.append(screen.maxima(rows, done, stop))
        known = torch.maximum(known, parts[-1].amax(dim=1) - error)
        done = stop
    return torch.cat(parts, dim=1), known, error


class _Pending:
    """Blocks to be scored again, gathered until there are enough to be worth it."""

    def __init__(self, ballot: AbstractBallot, frame: Frame) -> None:
        self._ballot, self._frame = ballot, frame
        self._known: PerQuery = torch.full_like(frame.reach, -torch.inf)
        self._rows: list[Indices] = []
        self._blocks: list[Indices] = []
        self._count = 0

    def add(self, rows: Indices, maxima: torch.Tensor, known: Values, error: Values) -> int:
        """Note the blocks of these rows that may hold a winner; return how many there are."""
        self._known[rows] = known
        near = maxima >= (known - self._frame.reach[rows] - error)[:, None]
        ends = near.sum(dim=1).cumsum(0)
        row, block = near.nonzero(as_tuple=True)
        start = 0
        while start < len(rows):
            done = int(ends[start - 1]) if start else 0
            stop = int(torch.searchsorted(ends, done + _REVISITS_AT_ONCE - self._count, right=True))
            stop = max(stop, start + 1)
            part = slice(done, int(ends[stop - 1]))
            self._rows.append(rows[row[part]])
            self._blocks.append(block[part])
            self._count += part.stop - part.start
            if self._count >= _REVISITS_AT_ONCE or stop < len(rows):
                self.revisit()
            start = stop
        return len(row)

    def revisit(self) -> None:
        """Score the noted blocks again and pass candidates to the ballot."""
        if self._count == 0:
            return
        blocks, order = torch.sort(torch.cat(self._blocks))
        rows = torch.cat(self._rows)[order]
        visits = []
        visited, sizes = torch.unique_consecutive(blocks, return_counts=True)
        for block, some in zip(visited.tolist(), torch.split(rows, sizes.tolist()), strict=True):
            visits += [self._visit(block, part) for part in torch.split(some, _ROWS_PER_REVISIT)]
        found_rows, found_points = [], []
        for block, some, scores, largest in visits:
            threshold = self._known[some] - self._frame.reach[some] - self._frame.error
            close = (largest >= threshold).nonzero()[:, 0]
            row, point = (scores[close] >= threshold[close, None]).nonzero(as_tuple=True)
            found_rows.append(some[close[row]])
            found_points.append(point + block * BLOCK)
        self._ballot.decide(self._frame.rows[torch.cat(found_rows)], self._frame.order[torch.cat(found_points)])
        self._rows, self._blocks, self._count = [], [], 0

    def _visit(self, block: int, rows: Indices) -> tuple[int, Indices, torch.Tensor, torch.Tensor]:
        scores = self._frame.queries[rows] @ self._frame.points[block * BLOCK : (block + 1) * BLOCK].T
        largest = scores.amax(dim=1)
        self._known[rows] = torch.maximum(self._known[rows], largest - self._frame.error)
        return block, rows, scores, largest
