r"""Search in few coordinates where each query sees a prefix of the points: cells of directions with lists in time.

As without a mask (:mod:`hardmax.attention.search.cells`) directions are divided into cells, in which the largest lead
of one point over another is known. A point enters the list of a cell only if no *earlier* point exceeds it in the whole
cell, since every query that sees it sees the earlier points too; for points in random order that leaves a number
of entries that is logarithmic in the number of points. An entry leaves at the first later entry that exceeds it in
the whole cell. A query finds its place in the list by the number of points it sees, and its candidates are the
entries before that which have not left: one, for most queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from .cells import Floats, Integers, Places, geometry, place, ranges
from .intervals import IntervalBallot
from .margins import UNIT64, tie_margin
from .pool import outer_points_of_prefixes

# List entries and pairs worked on at a time, and list entries looked at before giving up: each takes about 0.1 µs.
_ENTRIES_AT_ONCE = 1 << 17
_PAIRS_AT_ONCE = 1 << 21
_MOST_ENTRIES = 1 << 27
# Entries of a cell whose length of stay is measured, to estimate how many candidates its queries have.
_MEASURED = 32
# Time of one entry in a division of a cell, over that of one candidate of a query.
_ENTRY_COST = 1.0


@dataclass(frozen=True)
class _Lists:
    """Entries of some cells, cell by cell and in the order of time."""

    members: Integers
    """The point of each entry."""
    sizes: Integers
    """Number of entries of each cell."""
    leaders: Integers
    """For each entry the place, in these lists, of the entry up to it that has the largest score at the centre."""

    @property
    def starts(self) -> Integers:
        """The place of the first entry of each cell."""
        return np.cumsum(self.sizes) - self.sizes


def decide_prefixes(
    ballot: IntervalBallot, rows: Integers, queries: Floats, counts: Integers, points: Floats, names: Integers
) -> bool:
    """True after the queries were decided by the first ``counts[i]`` points each; False where too many can win.

    Parameters
    ----------
    ballot
        Receives the candidates.
    rows, queries, counts
        The row of each query in the ballot, the query, none of them zero, and the number of points that it sees.
    points, names
        The points in the order in which they are seen, and the index of each in the ballot.

    Returns
    -------
    bool
        Whether candidates were proposed; if not, none were.
    """
    d = points.shape[1]
    if d == 1:  # as in the plane, with a second coordinate of zero
        queries, points, d = np.pad(queries, ((0, 0), (0, 1))), np.pad(points, ((0, 0), (0, 1))), 2
    longest = float(ballot.longest[torch.from_numpy(rows)].max())
    # A direction on the cube is at most sqrt(d) long; centre scores are rounded too.
    reach = (tie_margin(ballot.tolerance, d) + 8 * (d + 2) * UNIT64) * np.sqrt(d) * longest
    pool = outer_points_of_prefixes(points, reach)
    budget = min(max(1 << 21, len(queries) * len(points) // 300), _MOST_ENTRIES)
    places = place(queries, len(pool))
    found = _build(points[pool], np.searchsorted(pool, np.sort(counts)), places, reach, budget)
    if found is None:
        return False
    table, lists, departures = found
    # The entries of all cells in one ascending sequence: cell by cell, in each the points in order.
    cell = np.repeat(np.arange(len(lists.sizes)), lists.sizes)
    sequence = cell * len(points) + pool[lists.members]
    last = np.searchsorted(sequence, table[places.codes].astype(np.int64) * len(points) + counts) - 1
    earliest = np.searchsorted(np.maximum.accumulate(departures), np.arange(len(departures)), side="right")
    first = earliest[last]
    named = names[pool[lists.members]]
    single = first == last
    ballot.propose(torch.from_numpy(rows[single]), torch.from_numpy(named[last[single]]))
    rows, first, last = rows[~single], first[~single], last[~single]
    ends = np.cumsum(last - first + 1)
    start = 0
    while start < len(rows):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, side="right")))
        sizes = last[start:stop] - first[start:stop] + 1
        entries = ranges(first[start:stop], sizes)
        stays = departures[entries] > np.repeat(last[start:stop], sizes)
        several = np.repeat(rows[start:stop], sizes)[stays]
        ballot.propose(torch.from_numpy(several), torch.from_numpy(named[entries[stays]]))
        start = stop
    return True


def _build(
    pool: Floats, seen: Integers, places: Places, reach: float, budget: int
) -> tuple[NDArray[np.int32], _Lists, Integers] | None:
    """Leaf of each finest cell, the lists of the leaves, and where each entry leaves; None where that takes too long.

    ``seen`` is the number of points of the pool that each query sees, ascending.
    """
    d = pool.shape[1]
    children = 2 ** (d - 1)
    columns = [np.ascontiguousarray(column) for column in pool.T]
    occupied = [np.bincount(places.codes, minlength=2 * d * children**places.levels)]
    for _ in range(places.levels):
        occupied.insert(0, occupied[0].reshape(-1, children).sum(axis=1))
    # Number of queries, in all, that see no more than so many points of the pool.
    before = np.searchsorted(seen, np.arange(len(pool) + 1), side="right")
    table = np.zeros(len(occupied[-1]), dtype=np.int32)
    leaves: list[tuple[_Lists, Integers]] = []
    number = 0
    codes = np.flatnonzero(occupied[0])
    source = np.arange(len(pool))
    starts, sizes = np.zeros(len(codes), dtype=np.int64), np.full(len(codes), len(pool))
    for level in range(places.levels + 1):
        budget -= int(sizes.sum())
        if budget < 0:
            return None
        ended_codes, split_codes, kept = [], [], []
        for part in _portions(sizes):
            centres, half = geometry(codes[part], level, d, places)
            cells = _Cells(columns, centres, half, reach)
            lists = cells.filtered(source[ranges(starts[part], sizes[part])], sizes[part])
            queries = occupied[level][codes[part]]
            split = np.zeros(len(queries), dtype=bool)
            if level < places.levels:
                several = cells.excess(lists, before) * queries / max(1, len(seen))
                split = several > _ENTRY_COST * children * lists.sizes
            ended, going_on = _taken(lists, ~split), _taken(lists, split)
            centres, half = centres[~split], half[~split]
            leaves.append((ended, _Cells(columns, centres, half, reach).departures(ended)))
            ended_codes.append(codes[part][~split])
            split_codes.append(codes[part][split])
            kept.append(going_on)
        ended_here = np.concatenate(ended_codes)
        table.reshape(2 * d * children**level, -1)[ended_here] = np.arange(number, number + len(ended_here))[:, None]
        number += len(ended_here)
        parents = np.concatenate(split_codes)
        if len(parents) == 0:
            break
        source = np.concatenate([some.members for some in kept])
        parent_sizes = np.concatenate([some.sizes for some in kept])
        offspring = parents[:, None] * children + np.arange(children)
        alive = occupied[level + 1][offspring] > 0
        codes = offspring[alive]
        starts = np.broadcast_to((np.cumsum(parent_sizes) - parent_sizes)[:, None], alive.shape)[alive]
        sizes = np.broadcast_to(parent_sizes[:, None], alive.shape)[alive]
    members = np.concatenate([some.members for some, _ in leaves])
    sizes = np.concatenate([some.sizes for some, _ in leaves])
    shifts = np.cumsum([0, *(len(some.members) for some, _ in leaves)])
    departures = np.concatenate([gone + shift for (_, gone), shift in zip(leaves, shifts, strict=False)])
    return table, _Lists(members, sizes, members[:0]), departures


def _portions(sizes: Integers) -> list[slice]:
    """Cells in portions of at most ``_ENTRIES_AT_ONCE`` entries, or of one cell."""
    ends = np.cumsum(sizes)
    portions, begin = [], 0
    while begin < len(sizes):
        done = ends[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, done + _ENTRIES_AT_ONCE, side="right")))
        portions.append(slice(begin, stop))
        begin = stop
    return portions


def _taken(lists: _Lists, cells: NDArray[np.bool_]) -> _Lists:
    """The lists of some of the cells."""
    entries = np.repeat(cells, lists.sizes)
    places = np.cumsum(entries) - 1
    return _Lists(lists.members[entries], lists.sizes[cells], places[lists.leaders[entries]])


@dataclass(frozen=True)
class _Cells:
    """Some cells of directions: the largest lead of a point over another is linear in the half widths."""

    columns: list[Floats]
    centres: Floats
    half: Floats
    reach: float

    def filtered(self, members: Integers, sizes: Integers) -> _Lists:
        """The entries that no earlier entry of their cell exceeds in the whole cell."""
        cell = np.repeat(np.arange(len(sizes)), sizes)
        leaders = self._leaders(members, cell)
        stays = self._largest_lead(members, members[leaders], cell) >= -self.reach
        # A leader leads itself up to its own place, so it stays.
        places = np.cumsum(stays) - 1
        return _Lists(members[stays], np.bincount(cell[stays], minlength=len(sizes)), places[leaders[stays]])

    def departures(self, lists: _Lists) -> Integers:
        """Place of the first entry found that exceeds each entry in the whole cell; the end of the list if none."""
        return self._departures_of(lists, np.arange(len(lists.members)))

    def excess(self, lists: _Lists, before: Integers) -> Floats:
        """Candidates beyond the first of all queries, had all of them directions in this cell, estimated per cell."""
        sizes = np.minimum(lists.sizes, _MEASURED)
        steps = lists.sizes / np.maximum(1, sizes)
        places = np.repeat(lists.starts, sizes) + (
            ranges(np.zeros_like(sizes), sizes) * np.repeat(steps, sizes)
        ).astype(np.int64)
        gone = self._departures_of(lists, places)
        cell = np.repeat(np.arange(len(sizes)), sizes)
        last = len(lists.members) - 1
        ended = gone >= np.repeat(np.cumsum(lists.sizes), sizes)
        until = np.where(ended, before[-1], before[lists.members[np.minimum(gone, last)]])
        stay = until - before[lists.members[places]]
        queries_seeing = before[-1] - before[lists.members[lists.starts]]
        excess: Floats = np.bincount(cell, weights=stay, minlength=len(sizes)) * steps - queries_seeing
        return excess

    def _leaders(self, members: Integers, cell: Integers) -> Integers:
        """Place of the entry with the largest score at the centre, up to each entry of its cell.

        Scores are rounded to integers, so that score, cell and place fit into one number: any earlier entry may serve.
        """
        score = self.centres[cell, 0] * self.columns[0][members]
        for k in range(1, len(self.columns)):
            score += self.centres[cell, k] * self.columns[k][members]
        bits = len(members).bit_length()
        room = 62 - bits - len(self.centres).bit_length()
        score *= 2.0 ** (room - 1) / max(float(np.abs(score).max()), 2.0**-900)
        key = score.astype(np.int64) + (1 << (room - 1))
        key += cell << (room + 1)
        key <<= bits
        key += np.arange(len(members))
        leaders: Integers = np.maximum.accumulate(key) & ((1 << bits) - 1)
        return leaders

    def _departures_of(self, lists: _Lists, places: Integers) -> Integers:
        """Departures of the entries at these places, by probing twice as far each time and then halving the gap."""
        cell = np.repeat(np.arange(len(lists.sizes)), lists.sizes)[places]
        end = np.cumsum(lists.sizes)[cell]
        low, high, step = places.copy(), end.copy(), np.ones_like(places)
        asked = np.arange(len(places))
        gallop = np.ones(len(places), dtype=bool)
        while True:
            asked = asked[low[asked] + 1 < high[asked]]
            if len(asked) == 0:
                return high
            probe = np.where(
                gallop[asked],
                np.minimum(low[asked] + step[asked], high[asked] - 1),
                (low[asked] + high[asked]) // 2,
            )
            members = lists.members[places[asked]]
            gone = self._largest_lead(members, lists.members[lists.leaders[probe]], cell[asked]) < -self.reach
            high[asked[gone]] = probe[gone]
            low[asked[~gone]] = probe[~gone]
            gallop[asked[gone]] = False
            step[asked] *= 2

    def _largest_lead(self, members: Integers, others: Integers, cell: Integers) -> Floats:
        """Largest lead of each point over another in a cell."""
        lead = np.zeros(len(members))
        for k, column in enumerate(self.columns):
            ahead = column[members] - column[others]
            lead += self.centres[cell, k] * ahead
            lead += self.half[cell, k] * np.abs(ahead)
        return lead
