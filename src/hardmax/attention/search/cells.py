r"""Search in few coordinates: directions are divided into small cells, each with the points that can win there.

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

from ..choice import AbstractBallot
from .margins import UNIT64
from .pool import outer_points

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The number of cells of directions grows exponentially with the dimension.
HIGHEST_DIMENSION = 4
# At least so many halvings along each edge of the cube for d = 2, 3, 4, and at most so many cells altogether: the
# table of cells should stay within the cache.
_LEVELS = {2: 14, 3: 7, 4: 5}
_MOST_CELLS = 1 << 21
# Queries, list entries and pairs worked on at a time.
_QUERIES_AT_ONCE = 1 << 15
_ENTRIES_AT_ONCE = 1 << 17
_PAIRS_AT_ONCE = 1 << 21
# List entries looked at before giving up: a fraction of all pairs, since an entry costs as much as hundreds of
# pairs in a matrix product.
_PAIRS_PER_ENTRY = 300
_FEWEST_ENTRIES, _MOST_ENTRIES = 1 << 21, 1 << 27
# A cell is worth halving when this many queries per child share the cost.
_QUERIES_PER_CHILD = 2


def decide_by_cells(ballot: AbstractBallot, queries: Floats, points: Floats, margin: float) -> bool:
    """True after all queries were decided; False where too many points can win."""
    d = points.shape[1]
    # A direction on the cube is at most sqrt(d) long; centre scores are rounded too.
    reach = (margin + 8 * (d + 2) * UNIT64) * np.sqrt(d) * ballot.longest
    pool = outer_points(points, reach)
    budget = min(max(_FEWEST_ENTRIES, len(queries) * len(points) // _PAIRS_PER_ENTRY), _MOST_ENTRIES)
    if 2 * d * len(pool) > budget:
        return False
    places = place(queries, len(pool))
    cells = _build(points[pool], places, reach, budget)
    if cells is None:
        return False
    first = pool[cells.members[cells.starts]]
    ballot.settle(torch.from_numpy(first[cells.table][places.codes]))
    rows = np.flatnonzero((cells.sizes > 1)[cells.table][places.codes])
    rows = rows[queries[rows].any(axis=1)]
    leaves = cells.table[places.codes[rows]]
    ends = np.cumsum(cells.sizes[leaves])
    start = 0
    while start < len(rows):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, side="right")))
        part = leaves[start:stop]
        members = cells.members[ranges(cells.starts[part], cells.sizes[part])]
        several = np.repeat(rows[start:stop], cells.sizes[part])
        ballot.decide(torch.from_numpy(several), torch.from_numpy(pool[members]))
        start = stop
    return True


def ranges(starts: Integers, sizes: Integers) -> Integers:
    """``starts[0], starts[0] + 1, …`` (``sizes[0]`` of them), then the same for the next."""
    shift = starts - (np.cumsum(sizes) - sizes)
    places = np.arange(int(sizes.sum()))
    places += np.repeat(shift, sizes)
    return places


@dataclass(frozen=True)
class Places:
    """Cells of the queries on the cube: a box on every face, halved ``levels`` times along each edge."""

    low: Floats
    width: Floats
    levels: int
    codes: NDArray[np.int32]
    """The finest cell of each query: the face, then the bits of the tangential coordinates, interleaved."""


def place(queries: Floats, pool: int) -> Places:
    """Places of the queries on the cube, in cells fine enough for so many points."""
    m, d = queries.shape
    levels = _LEVELS[d]
    while 2 * d * 2 ** ((d - 1) * (levels + 1)) <= min(4 * pool, _MOST_CELLS):
        levels += 1
    face = np.empty(m, dtype=np.int32)
    tangential = np.empty((d - 1, m))
    for start in range(0, m, _QUERIES_AT_ONCE):
        part = slice(start, start + _QUERIES_AT_ONCE)
        _project(queries[part], face[part], tangential[:, part])
    low, high = tangential.min(axis=1), tangential.max(axis=1)
    width = np.maximum(high - low, 2.0**-40)
    codes = np.empty(m, dtype=np.int32)
    spread = _spread_bits(levels, d - 1)
    for start in range(0, m, _QUERIES_AT_ONCE):
        part = slice(start, start + _QUERIES_AT_ONCE)
        code = face[part] << ((d - 1) * levels)
        for k in range(d - 1):
            ticks = ((tangential[k, part] - low[k]) * (2**levels / width[k])).astype(np.int32)
            np.minimum(ticks, 2**levels - 1, out=ticks)
            code |= ticks if d == 2 else spread[ticks] << k
        codes[part] = code
    return Places(low, width, levels, codes)


def _project(queries: Floats, face: NDArray[np.int32], tangential: Floats) -> None:
    """Central projection onto the cube: face 2k has u_k = 1, face 2k + 1 has u_k = -1."""
    columns = list(queries.T)
    # Zero queries, whose result is not used, are placed anywhere.
    largest, signed = np.maximum(np.abs(columns[0]), 2.0**-1000), columns[0]
    axis = np.zeros(len(queries), dtype=np.int32)
    for k in range(1, len(columns)):
        size = np.abs(columns[k])
        better = size > largest
        signed = np.where(better, columns[k], signed)
        np.maximum(largest, size, out=largest)
        axis = np.where(better, np.int32(k), axis)
    for k in range(len(columns) - 1):
        np.divide(np.where(axis <= k, columns[k + 1], columns[k]), largest, out=tangential[k])
    np.add(2 * axis, signed < 0, out=face)


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


def _build(pool: Floats, places: Places, reach: float, budget: int) -> _Cells | None:
    d = pool.shape[1]
    children = 2 ** (d - 1)
    occupied = [np.bincount(places.codes, minlength=2 * d * children**places.levels)]
    for _ in range(places.levels):
        occupied.insert(0, occupied[0].reshape(-1, children).sum(axis=1))
    table = np.zeros(len(occupied[-1]), dtype=np.int32)
    leaf_sizes, leaf_members, leaves = [], [], 0
    codes = np.flatnonzero(occupied[0])
    members, starts = np.arange(len(pool)), np.zeros(len(codes), dtype=np.int64)
    sizes = np.full(len(codes), len(pool))
    for level in range(places.levels + 1):
        budget -= int(sizes.sum())
        if budget < 0:
            return None
        members, sizes = _filter(pool, *geometry(codes, level, d, places), members, starts, sizes, reach)
        split = (sizes > 1) & (occupied[level][codes] >= _QUERIES_PER_CHILD * children)
        if level == places.levels:
            split[:] = False
        leaf_members.append(members[np.repeat(~split, sizes)])
        leaf_sizes.append(sizes[~split])
        ended = codes[~split]
        table.reshape(2 * d * children**level, -1)[ended] = np.arange(leaves, leaves + len(ended))[:, None]
        leaves += len(ended)
        if not split.any():
            break
        offspring = codes[split, None] * children + np.arange(children)
        alive = occupied[level + 1][offspring] > 0
        codes = offspring[alive]
        starts = np.broadcast_to((np.cumsum(sizes) - sizes)[split, None], alive.shape)[alive]
        sizes = np.broadcast_to(sizes[split, None], alive.shape)[alive]
    sizes = np.concatenate(leaf_sizes)
    return _Cells(table, np.cumsum(sizes) - sizes, sizes, np.concatenate(leaf_members))


def geometry(codes: Integers, level: int, d: int, places: Places) -> tuple[Floats, Floats]:
    """Centres of cells on the cube and their half widths, widened a little against rounding; zero off the face."""
    face = codes >> ((d - 1) * level)
    centres, half = np.zeros((len(codes), d)), np.zeros((len(codes), d))
    every_cell = np.arange(len(codes))
    for k in range(d - 1):
        tick = np.zeros_like(codes)
        for bit in range(level):
            tick |= ((codes >> ((d - 1) * bit + k)) & 1) << bit
        width = places.width[k] / 2**level
        column = np.where(face // 2 <= k, k + 1, k)
        centres[every_cell, column] = places.low[k] + (tick + 0.5) * width
        half[every_cell, column] = 0.5 * width * (1 + 1e-12) + 2.0**-46
    centres[every_cell, face // 2] = 1 - 2.0 * (face % 2)
    return centres, half


def _filter(
    pool: Floats,
    centres: Floats,
    half: Floats,
    source: Integers,
    starts: Integers,
    sizes: Integers,
    reach: float,
) -> tuple[Integers, Integers]:
    """Points of each cell that the best point at its centre does not exceed in the whole cell."""
    columns = [np.ascontiguousarray(column) for column in pool.T]
    ends = np.cumsum(sizes)
    kept_members, kept_sizes = [], []
    begin = 0
    while begin < len(sizes):
        done = ends[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, done + _ENTRIES_AT_ONCE, side="right")))
        part = slice(begin, stop)
        members = source[ranges(starts[part], sizes[part])]
        cell = np.repeat(np.arange(stop - begin), sizes[part])
        stays = _may_win(columns, centres[part], half[part], members, cell, sizes[part]) >= -reach
        kept_members.append(members[stays])
        kept_sizes.append(np.bincount(cell[stays], minlength=stop - begin))
        begin = stop
    return np.concatenate(kept_members), np.concatenate(kept_sizes)


def _may_win(
    columns: list[Floats], centres: Floats, half: Floats, members: Integers, cell: Integers, sizes: Integers
) -> Floats:
    """Largest lead of each point, over its cell, above the best point at the centre."""
    coordinates = [column[members] for column in columns]
    lead: Floats = centres[cell, 0] * coordinates[0]
    for k in range(1, len(columns)):
        lead += centres[cell, k] * coordinates[k]
    best = np.maximum.reduceat(lead, np.cumsum(sizes) - sizes)[cell]
    at_best = np.flatnonzero(lead == best)
    leader = np.empty(len(sizes), dtype=np.int64)
    leader[cell[at_best]] = members[at_best]
    lead -= best
    for k, column in enumerate(columns):
        coordinates[k] -= column[leader][cell]
        lead += half[cell, k] * np.abs(coordinates[k])
    return lead
