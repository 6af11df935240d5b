"""From positions on the line to items: which tokens go together, and which target each of them gets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from flint import fmpq

from ..errors import HardmaxError
from .data import DataSet
from .line import Item
from .numbers import Vector

Interval = tuple[fmpq, fmpq]


class SeparationError(HardmaxError):
    """Two items overlap on the line: the identification stage did not separate the sequences."""


def best_window(values: Sequence[Interval], targets: int) -> int:
    """Where the one group of ``len(values) - targets + 1`` neighbours starts: the smallest gap left is largest."""
    size = len(values) - targets + 1
    if targets == 1 or size == 1:
        return 0
    gaps = [b[0] - a[1] for a, b in itertools.pairwise(values)]
    starts = range(targets)
    return max(starts, key=lambda g: min(gaps[:g] + gaps[g + size - 1 :]))


def distinct(values: Sequence[fmpq]) -> list[Interval]:
    """The distinct values, ascending, as intervals of length zero."""
    return [(v, v) for v in sorted(set(values))]


def make_items(
    data: DataSet, positions: Sequence[Sequence[Interval]], aligned: Sequence[Sequence[int]] | None = None
) -> list[Item]:
    """The items of all sequences, ascending.

    ``positions[j]`` are the ascending, disjoint intervals that hold the tokens of sequence j. With token-level data,
    ``aligned[j][i]`` is the token that interval i holds. Otherwise any of the targets may go to any of the intervals,
    and the freedom is used to let neighbouring sequences meet at a target they share.
    """
    order = sorted(range(len(data)), key=lambda j: positions[j][0][0])
    items: list[Item] = []
    for place, j in enumerate(order):
        spots = list(positions[j])
        if data.token_level:
            if aligned is None:
                raise ValueError("token-level data needs the token of every interval")
            targets = [data.outputs[j][i] for i in aligned[j]]
        else:
            m = len(data.outputs[j])
            if len(spots) < m:
                raise SeparationError(f"sequence {j} keeps {len(spots)} positions for {m} targets")
            g = best_window(spots, m)
            size = len(spots) - m + 1
            spots[g : g + size] = [(spots[g][0], spots[g + size - 1][1])]
            after = data.outputs[order[place + 1]] if place + 1 < len(order) else ()
            targets = _ordered(data.outputs[j], items[-1].target if items else None, after)
        items += [Item(low, high, y) for (low, high), y in zip(spots, targets, strict=True)]
    for a, b in itertools.pairwise(items):
        if not a.high < b.low:
            raise SeparationError("two items overlap on the line")
    return items


def _ordered(own: Sequence[Vector], before: Vector | None, after: Sequence[Vector]) -> list[Vector]:
    """The targets of one sequence, sorted, but with shared ones next to the neighbours that share them."""
    targets = sorted(own)
    shared = [y for y in targets if y in set(after) and y != before]
    if before in targets:
        targets.remove(before)
        targets.insert(0, before)
    if shared and len(targets) > 1:
        targets.remove(shared[-1])
        targets.append(shared[-1])
    return targets
