r"""Few coordinates: cut the directions into small cells and list, for each, the few points that can win there.

Only the direction of a query matters, so queries are placed on the surface of the cube :math:`|u|_\infty = 1`. Over a
cell with centre c and half widths w, the lead of one point over another is linear, so point j never beats point b
in the cell exactly when

.. math:: \langle c, z_j - z_b\rangle + \sum_k w_k |z_j - z_b|_k < 0 .

Cells are halved where several points remain and enough queries fall. A query then costs one look-up. No convex hull is
built, and flat clouds, collinear points and repeated points are ordinary input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..choice import Ballot
from .margins import UNIT64
from .pool import outer_points

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HIGHEST_DIMENSION = 4
# Halvings along each edge of the cube for d = 2, 3, 4: the table of cells stays within the cache.
_LEVELS = {2: 14, 3: 7, 4: 5}
_CHUNK = 1 << 15
_PAIRS_AT_ONCE = 1 << 21
# A cell is worth halving when this many queries per child share the cost.
_QUERIES_PER_CHILD = 2


def decide_by_cells(ballot: Ballot, queries: Floats, points: Floats, margin: float) -> bool:
    """Decide all queries; give up, and say so by False, where too many points can win."""
    d = points.shape[1]
    size = float(np.sqrt((points * points).sum(axis=1).max()))
    # A direction on the cube is at most sqrt(d) long; centre scores are rounded too.
    reach = (margin + 8 * (d + 2) * UNIT64) * np.sqrt(d) * size
    pool = outer_points(points, reach)
    most = 4 * len(queries) + (1 << 20)
    if 2 * d * len(pool) > most:
        return False
    places = _place(queries)
    cells = _build(points[pool], places, reach, most)
    if cells is None:
        return False
    leaf = cells.table[places.codes]
    ballot.settle(torch.from_numpy(pool[cells.members[cells.starts[leaf]]]))
    rows = np.flatnonzero(cells.sizes[leaf] > 1)
    sizes = cells.sizes[leaf[rows]]
    total = np.cumsum(sizes)
    starts = 0
    while starts < len(rows):
        done = total[starts - 1] if starts else 0
        stops = max(starts + 1, int(np.searchsorted(total, done + _PAIRS_AT_ONCE, side="right")))
        part = slice(starts, stops)
        members = _ranges(cells.starts[leaf[rows[part]]], sizes[part])
        ballot.decide(
            torch.from_numpy(np.repeat(rows[part], sizes[part])),
            torch.from_numpy(pool[cells.members[members]]),
        )
        starts = stops
    return True


def _ranges(starts: Integers, sizes: Integers) -> Integers:
    """``starts[0], starts[0] + 1, …`` (``sizes[0]`` of them), then the same for the next."""
    shift = starts - (np.cumsum(sizes) - sizes)
    return np.arange(int(sizes.sum())) + np.repeat(shift, sizes)


@dataclass(frozen=True)
class _Places:
    """Where the queries lie on the cube: a box on every face, halved ``levels`` times along each edge."""

    low: Floats
    width: Floats
    levels: int
    codes: NDArray[np.int32]
    """The finest cell of each query: the face, then the bits of the tangential coordinates, interleaved."""


def _place(queries: Floats) -> _Places:
    m, d = queries.shape
    levels = _LEVELS[d]
    face = np.empty(m, dtype=np.int32)
    tangential = np.empty((d - 1, m))
    for start in range(0, m, _CHUNK):
        part = slice(start, start + _CHUNK)
        _project(queries[part], face[part], tangential[:, part])
    low, high = tangential.min(axis=1), tangential.max(axis=1)
    width = np.maximum(high - low, 2.0**-40)
    codes = np.empty(m, dtype=np.int32)
    spread = _spread_bits(levels, d - 1)
    for start in range(0, m, _CHUNK):
        part = slice(start, start + _CHUNK)
        code = face[part] << ((d - 1) * levels)
        for k in range(d - 1):
            ticks = ((tangential[k, part] - low[k]) * (2**levels / width[k])).astype(np.int32)
            code |= spread[np.minimum(ticks, 2**levels - 1)] << k
        codes[part] = code
    return _Places(low, width, levels, codes)


def _project(queries: Floats, face: NDArray[np.int32], tangential: Floats) -> None:
    """Central projection onto the cube: face 2k has u_k = 1, face 2k + 1 has u_k = -1."""
    d = queries.shape[1]
    columns = [np.ascontiguousarray(queries[:, k]) for k in range(d)]
    largest, signed = np.abs(columns[0]), columns[0]
    face[:] = 0
    for k in range(1, d):
        size = np.abs(columns[k])
        better = size > largest
        largest = np.where(better, size, largest)
        signed = np.where(better, columns[k], signed)
        face[better] = 2 * k
    inverse = 1.0 / np.where(largest == 0, 1.0, largest)
    for k in range(d - 1):
        np.multiply(np.where(face <= 2 * k, columns[k + 1], columns[k]), inverse, out=tangential[k])
    face += signed < 0


def _spread_bits(bits: int, gap: int) -> NDArray[np.int32]:
    """For each number of so many bits, the number with its bits ``gap`` places apart."""
    numbers = np.arange(2**bits, dtype=np.int32)
    spread = np.zeros_like(numbers)
    for bit in range(bits):
        spread |= ((numbers >> bit) & 1) << (gap * bit)
    return spread


@dataclass(frozen=True)
class _Cells:
    """For each finest cell its leaf, and for each leaf the points that can win: ``members[start : start + size]``."""

    table: NDArray[np.int32]
    starts: Integers
    sizes: Integers
    members: Integers


def _build(pool: Floats, places: _Places, reach: float, most: int) -> _Cells | None:
    d = pool.shape[1]
    children = 2 ** (d - 1)
    occupied = [np.bincount(places.codes, minlength=2 * d * children**places.levels)]
    for _ in range(places.levels):
        occupied.insert(0, occupied[0].reshape(-1, children).sum(axis=1))
    table = np.zeros(len(occupied[-1]), dtype=np.int32)
    leaf_sizes, leaf_members, leaves = [], [], 0
    codes = np.flatnonzero(occupied[0])
    members, sizes = np.tile(np.arange(len(pool)), len(codes)), np.full(len(codes), len(pool))
    for level in range(places.levels + 1):
        centres, half = _geometry(codes, level, d, places)
        members, sizes = _filter(pool, centres, half, members, sizes, reach)
        split = (sizes > 1) & (occupied[level][codes] >= _QUERIES_PER_CHILD * children)
        if level == places.levels:
            split[:] = False
        kept = np.repeat(split, sizes)
        leaf_members.append(members[~kept])
        leaf_sizes.append(sizes[~split])
        ended = codes[~split]
        table.reshape(2 * d * children**level, -1)[ended] = np.arange(leaves, leaves + len(ended))[:, None]
        leaves += len(ended)
        if not split.any():
            break
        parents, members, sizes = codes[split], members[kept], sizes[split]
        offspring = parents[:, None] * children + np.arange(children)
        alive = occupied[level + 1][offspring] > 0
        starts = np.broadcast_to((np.cumsum(sizes) - sizes)[:, None], offspring.shape)[alive]
        sizes = np.broadcast_to(sizes[:, None], offspring.shape)[alive]
        codes = offspring[alive]
        if int(sizes.sum()) > most:
            return None
        members = members[_ranges(starts, sizes)]
    sizes = np.concatenate(leaf_sizes)
    return _Cells(table, np.cumsum(sizes) - sizes, sizes, np.concatenate(leaf_members))


def _geometry(codes: Integers, level: int, d: int, places: _Places) -> tuple[Floats, Floats]:
    """Centres of cells on the cube and their half widths, slightly widened against rounding; zero off the face."""
    face = codes >> ((d - 1) * level)
    centres, half = np.zeros((len(codes), d)), np.zeros((len(codes), d))
    everybody = np.arange(len(codes))
    for k in range(d - 1):
        tick = np.zeros_like(codes)
        for bit in range(level):
            tick |= ((codes >> ((d - 1) * bit + k)) & 1) << bit
        width = places.width[k] / 2**level
        column = np.where(face // 2 <= k, k + 1, k)
        centres[everybody, column] = places.low[k] + (tick + 0.5) * width
        half[everybody, column] = 0.5 * width * (1 + 1e-12) + 2.0**-46
    centres[everybody, face // 2] = 1 - 2.0 * (face % 2)
    return centres, half


def _filter(
    pool: Floats, centres: Floats, half: Floats, members: Integers, sizes: Integers, reach: float
) -> tuple[Integers, Integers]:
    """Of each cell's members, those that the best at the centre does not beat all over the cell."""
    d = pool.shape[1]
    starts = np.cumsum(sizes) - sizes
    cell = np.repeat(np.arange(len(sizes)), sizes)
    score = centres[cell, 0] * pool[members, 0]
    for k in range(1, d):
        score += centres[cell, k] * pool[members, k]
    best = np.maximum.reduceat(score, starts)
    is_best = np.flatnonzero(score == best[cell])
    leader = np.empty(len(sizes), dtype=np.int64)
    leader[cell[is_best]] = members[is_best]
    score -= best[cell]
    for k in range(d):
        score += half[cell, k] * np.abs(pool[members, k] - pool[leader, k][cell])
    stays = score >= -reach
    return members[stays], np.bincount(cell[stays], minlength=len(sizes))
