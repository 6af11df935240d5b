r"""Map every sequence to its own interval of a line, and find which tokens share a target.

An identification ends with positions :math:`t'=\langle u', x\rangle` such that the stretches of different sequences
are disjoint and every sequence keeps at least as many distinct values as it has targets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import fmpq

from ...errors import HardmaxError
from ..arithmetic.numbers import ONE, Vector, unit
from ..data import DataSet
from ..network import Block, Neuron, in_layers
from .line import Item


@dataclass(frozen=True)
class Identification:
    """Blocks that separate the sequences, and the positions of the tokens after them."""

    blocks: tuple[Block, ...]
    reading: Vector
    positions: tuple[tuple[fmpq, ...], ...]
    """``<reading, x>`` of every token, per sequence."""
    cuts: int
    """K: number of knots, queries or witnesses."""
    collapsed: bool = False
    """Whether every sequence is a single point after the blocks."""


def useful_gap(data: DataSet, levels: list[list[fmpq]]) -> fmpq:
    """The smallest gap between items of one sequence on the line; the range when there is none."""
    smallest: fmpq | None = None
    for own, targets in zip(levels, data.outputs, strict=True):
        spots = distinct(own)
        m = len(spots) if data.token_level else len(targets)
        if m < 2:
            continue
        start, size = best_window(spots, m), len(spots) - m + 1
        gaps = [b[0] - a[1] for a, b in itertools.pairwise(spots)]
        kept = min(gaps[:start] + gaps[start + size - 1 :])
        smallest = kept if smallest is None else min(smallest, kept)
    if smallest is not None:
        return smallest
    extent = max(map(max, levels)) - min(map(min, levels))
    return extent if extent > 0 else ONE


def crossing(u: tuple[int, ...]) -> Vector:
    """Short non-zero integer vector orthogonal to u (u has at least two coordinates)."""
    i = max(range(len(u)), key=lambda k: abs(u[k]))
    j = (i + 1) % len(u)
    vector = [0] * len(u)
    if u[j] == 0:
        vector[j] = 1
    else:
        vector[i], vector[j] = -u[j], u[i]
    return tuple(fmpq(c) for c in vector)


def dual(u: tuple[int, ...]) -> Vector:
    """Integer vector p with <u, p> = 1, by the extended Euclidean algorithm (u has no common divisor)."""
    p = [0] * len(u)
    common = 0
    for i, c in enumerate(u):
        if c == 0:
            continue
        r0, r1, x0, x1, y0, y1 = common, c, 1, 0, 0, 1
        while r1:
            quotient = r0 // r1
            r0, r1, x0, x1, y0, y1 = r1, r0 - quotient * r1, x1, x0 - quotient * x1, y1, y0 - quotient * y1
        if r0 < 0:
            r0, x0, y0 = -r0, -x0, -y0
        p = [x0 * c for c in p]
        p[i] = y0
        common = r0
    if common != 1 or math.gcd(*u) != 1:
        raise ValueError(f"{u} has a common divisor")
    return tuple(fmpq(c) for c in p)


def untouched(u: tuple[int, ...], levels: list[list[fmpq]]) -> Identification:
    """Identification of a single sequence, which needs no blocks."""
    return Identification((), tuple(fmpq(c) for c in u), tuple(tuple(own) for own in levels), 0)


def plane(data: DataSet) -> tuple[Vector, Vector]:
    """The first two basis vectors, along which leaders are marked."""
    return unit(data.dimension, 0), unit(data.dimension, 1)


def behind_pass(
    first: list[Neuron], bends: list[tuple[fmpq, Vector]], reading: Vector, lift: fmpq, width: int
) -> list[tuple[Neuron, ...]]:
    r"""Layers that pass :math:`\tau=\langle u, x\rangle + C` to the first coordinate and bend it at given knots.

    ``first`` are the pass neurons, ``bends`` pairs of a knot and what is written per unit beyond it. In the layer of
    the pass neurons a bend still reads the token itself; in later layers it reads the first coordinate.
    """
    e1 = unit(len(reading), 0)
    room = width - len(first)
    neurons = first + [
        Neuron(reading, lift - b, w) if r < room else Neuron(e1, -b, w) for r, (b, w) in enumerate(bends)
    ]
    return in_layers(neurons, width)


Interval = tuple[fmpq, fmpq]


class SeparationError(HardmaxError):
    """Error: two items overlap on the line, so the identification stage did not separate the sequences."""


def best_window(values: Sequence[Interval], targets: int) -> int:
    """Start of the group of ``len(values) - targets + 1`` neighbours that leaves the largest smallest gap."""
    size = len(values) - targets + 1
    if targets == 1 or size == 1:
        return 0
    gaps = [b[0] - a[1] for a, b in itertools.pairwise(values)]
    starts = range(targets)
    return max(starts, key=lambda g: min(gaps[:g] + gaps[g + size - 1 :]))


def distinct(values: Sequence[fmpq]) -> list[Interval]:
    """Distinct values, ascending, as intervals of length zero."""
    return [(v, v) for v in sorted(set(values))]


def make_items(
    data: DataSet, positions: Sequence[Sequence[Interval]], aligned: Sequence[Sequence[int]] | None = None
) -> list[Item]:
    """Items of all sequences, ascending.

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
    """Targets of one sequence, sorted, with shared ones next to the neighbours that share them."""
    targets = sorted(own)
    shared = [y for y in targets if y in set(after) and y != before]
    if before in targets:
        targets.remove(before)
        targets.insert(0, before)
    if shared and len(targets) > 1:
        targets.remove(shared[-1])
        targets.append(shared[-1])
    return targets
