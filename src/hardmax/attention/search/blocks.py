r"""Any number of coordinates: matrix products that never leave the cache, with one number kept for each block.

Scores are screened a tile at a time in float32. Of each row and each block of 128 points only the largest score
is kept; blocks that come within the proven error of the row's best are scored again, and the few pairs left are put
to the ballot. Where lengths differ, points are visited by decreasing length and rows stop as soon as

.. math:: |q|\,|z_j| \;<\; \text{best so far} - \text{margin}

(Cauchy–Schwarz), after a linear change of variables that makes the cloud round and centred, which prunes best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ...shapes import Indices, PerQuery, PerToken, Points, Queries, Square, Tokens, Values
from ..choice import Ballot, length, zero_rows
from .margins import UNIT32, UNIT64, product_error

_BLOCK = 128
_TILE = 512
_ROWS_AT_ONCE = 1024
# Pairs of a row and a block scored again at a time: at most 2**17 * 128 candidates are held.
_REVISITS_AT_ONCE = 1 << 17
_ROWS_PER_REVISIT = 1 << 13
# Points from which the shape of the cloud is guessed.
_SAMPLE = 8192


@dataclass(frozen=True)
class _Frame:
    """Queries of length one and points, in the coordinates and the precision of the screen."""

    rows: Indices
    """The query of each row; zero queries are left out."""
    queries: Queries
    points: Tokens
    order: Indices
    """The original index of each point."""
    reach: PerQuery
    """How far below the best of its row a screened score may lie and still win."""


def decide_by_blocks(ballot: Ballot, queries: Queries, points: Tokens, margin: float, *, dtype: torch.dtype) -> None:
    """Decide all queries by all points."""
    rows, queries = _nonzero(queries)
    frame = _plain_frame(rows, queries, points, margin, dtype)
    pending = _Pending(ballot, frame)
    for part in _parts(len(rows), _ROWS_AT_ONCE):
        some = torch.arange(part.start, part.stop, device=rows.device)
        pending.add(some, _maxima(frame.queries[part], frame.points))
    pending.revisit()


def decide_by_longest(
    ballot: Ballot,
    queries: Queries,
    points: Tokens,
    margin: float,
    *,
    dtype: torch.dtype,
    hint: Indices | None = None,
) -> None:
    """Decide all queries by the points that are long enough to matter.

    ``hint`` names a good point for each query: a row that knows a good score from the start can stop earlier.
    """
    rows, queries = _nonzero(queries)
    if len(rows) == 0:
        return
    frame, lengths = _round_frame(rows, queries, points, margin, dtype)
    longest = frame.points[:_TILE]
    start = torch.cat([_maxima(frame.queries[part], longest) for part in _parts(len(rows), _ROWS_AT_ONCE)])
    known = start.amax(dim=1)
    if hint is not None:
        known = torch.maximum(known, _score_of_hint(frame, hint))
    # Rows that know a good score stop early; rows that stop together are kept together.
    order = torch.argsort(known, descending=True)
    pending = _Pending(ballot, frame)
    for part in _parts(len(rows), _ROWS_AT_ONCE):
        some = order[part]
        pending.add(some, _maxima_of_longest(frame, lengths, some, start[some], known[some]))
    pending.revisit()


def _nonzero(queries: Queries) -> tuple[Indices, Points]:
    rows = (~zero_rows(queries)).nonzero()[:, 0]
    return rows, queries if len(rows) == len(queries) else queries[rows]


def _score_of_hint(frame: _Frame, hint: Indices) -> Values:
    place = torch.empty_like(frame.order)
    place[frame.order] = torch.arange(len(place), device=place.device)
    return (frame.queries * frame.points[place[hint[frame.rows]]]).sum(dim=1)


def _parts(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _plain_frame(rows: Indices, queries: Queries, points: Tokens, margin: float, dtype: torch.dtype) -> _Frame:
    d, unit = points.shape[1], _unit(dtype)
    longest = length(points).max()
    order = torch.arange(points.shape[0], device=rows.device)
    if dtype == torch.float32:
        scale = 2.0 ** -float(torch.frexp(longest).exponent)
        points, longest = (points * scale).to(dtype), longest * scale
    reach = (margin + 2 * (product_error(d, unit) + (d + 8) * UNIT64)) * float(longest)
    units = (queries / length(queries)[:, None]).to(dtype)
    return _Frame(rows, units, points, order, torch.full_like(units[:, 0], reach * (1 + UNIT32)))


def _round_frame(
    rows: Indices, queries: Queries, points: Tokens, margin: float, dtype: torch.dtype
) -> tuple[_Frame, PerToken]:
    r"""The cloud made round and centred, by decreasing length, and the lengths.

    Scores are :math:`\langle q, c\rangle + \langle p, y\rangle` with :math:`y = W (z - c)` and
    :math:`p = W^{-T} q`; the first term is the same for all points.
    """
    d, unit = points.shape[1], _unit(dtype)
    longest = float(length(points).max())
    centre, axes, deviations = _shape(points, longest)
    y = (points - centre) @ (axes / deviations)
    p = queries @ (axes * deviations)
    lengths, order = torch.sort(length(y), descending=True)
    size, farthest = length(p), float(lengths[0])
    stretch = length(queries) / size
    # y and p each err by (d + 4) roundings of what they are made of, |W| 2 R and |1 / W| |q|.
    rounding = 2 * longest / float(deviations.min()) + float(deviations.max()) * stretch * farthest
    reach = margin * longest * stretch + 2 * (d + 4) * UNIT64 * rounding
    reach += 2 * (product_error(d, unit) + (d + 8) * UNIT64) * farthest
    units = (p / size[:, None]).to(dtype)
    return _Frame(rows, units, y[order].to(dtype), order, (reach * (1 + UNIT32)).to(dtype)), lengths


def _unit(dtype: torch.dtype) -> float:
    return UNIT32 if dtype == torch.float32 else UNIT64


def _shape(points: Tokens, longest: float) -> tuple[Values, Square, Values]:
    """Centre, axes and deviations of the cloud; flat directions are given some thickness, to stay invertible."""
    sample = points[:: max(1, points.shape[0] // _SAMPLE)]
    centre = sample.mean(dim=0)
    offsets = sample - centre
    variances, axes = torch.linalg.eigh(offsets.T @ offsets / len(sample))
    thinnest = max(1e-3 * float(variances[-1].clamp(min=0).sqrt()), 1e-7 * longest)
    return centre, axes, variances.clamp(min=thinnest**2).sqrt()


def _maxima(queries: Queries, points: Tokens) -> torch.Tensor:
    """For each query, its largest score in each block of points."""
    scores = None
    parts = []
    for tile in range(0, points.shape[0], _TILE):
        some = points[tile : tile + _TILE]
        if scores is None or scores.shape[1] != len(some):
            scores = queries.new_empty(len(queries), len(some))
        torch.mm(queries, some.T, out=scores)
        whole = len(some) // _BLOCK * _BLOCK
        parts.append(scores[:, :whole].view(len(scores), -1, _BLOCK).amax(dim=2))
        if whole < len(some):
            parts.append(scores[:, whole:].amax(dim=1, keepdim=True))
    return torch.cat(parts, dim=1)


def _maxima_of_longest(
    frame: _Frame, lengths: PerToken, rows: Indices, start: torch.Tensor, known: PerQuery
) -> torch.Tensor:
    """For each row, its largest score in each block, up to where no row can do better than what it knows."""
    queries, reach = frame.queries[rows], frame.reach[rows]
    parts = [start]
    for tile in range(_TILE, frame.points.shape[0], _TILE):
        if float(lengths[tile]) * (1 + 1e-6) < float((known - reach).min()):
            break
        parts.append(_maxima(queries, frame.points[tile : tile + _TILE]))
        known = torch.maximum(known, parts[-1].amax(dim=1))
    return torch.cat(parts, dim=1)


class _Pending:
    """Blocks to be scored again, gathered until there are enough to be worth it."""

    def __init__(self, ballot: Ballot, frame: _Frame) -> None:
        self._ballot, self._frame = ballot, frame
        self._threshold = torch.empty_like(frame.reach)
        self._rows: list[Indices] = []
        self._blocks: list[Indices] = []
        self._count = 0

    def add(self, rows: Indices, maxima: torch.Tensor) -> None:
        """Note the blocks of these rows that come close to the best of their row."""
        threshold = maxima.amax(dim=1) - self._frame.reach[rows]
        self._threshold[rows] = threshold
        near = maxima >= threshold[:, None]
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

    def revisit(self) -> None:
        """Score the noted blocks again and put what comes close to the ballot."""
        if self._count == 0:
            return
        frame = self._frame
        blocks, order = torch.sort(torch.cat(self._blocks))
        rows = torch.cat(self._rows)[order]
        found_rows, found_points = [], []
        visited, sizes = torch.unique_consecutive(blocks, return_counts=True)
        ends = np.cumsum(sizes.cpu().numpy())
        for block, start, stop in zip(visited.tolist(), ends - sizes.cpu().numpy(), ends, strict=True):
            points = frame.points[block * _BLOCK : (block + 1) * _BLOCK]
            for part in _parts(int(stop - start), _ROWS_PER_REVISIT):
                some = rows[start + part.start : start + part.stop]
                near = frame.queries[some] @ points.T >= self._threshold[some][:, None]
                row, point = near.nonzero(as_tuple=True)
                found_rows.append(some[row])
                found_points.append(point + block * _BLOCK)
        found = torch.cat(found_points)
        self._ballot.decide(frame.rows[torch.cat(found_rows)], frame.order[found])
        self._rows, self._blocks, self._count = [], [], 0
