r"""Give every sequence its own stretch of a line: the common shape of the four ways to do it.

An identification ends with positions :math:`t'=\langle u', x\rangle` such that the stretches of different sequences
are disjoint and every sequence keeps at least as many distinct values as it has targets.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from flint import fmpq

from .blocks import Block, Neuron, in_layers
from .data import DataSet
from .items import best_window, distinct
from .numbers import ONE, Vector, unit


@dataclass(frozen=True)
class Identification:
    """Blocks that tell the sequences apart, and where the tokens are after them."""

    blocks: tuple[Block, ...]
    reading: Vector
    positions: tuple[tuple[fmpq, ...], ...]
    """``<reading, x>`` of every token, sequence by sequence."""
    cuts: int
    """K: knots, queries or witnesses used."""
    collapsed: bool = False
    """Whether every sequence has become a single point."""


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
    """A short integer vector that is orthogonal to u and not zero (u has at least two coordinates)."""
    i = max(range(len(u)), key=lambda k: abs(u[k]))
    j = (i + 1) % len(u)
    vector = [0] * len(u)
    if u[j] == 0:
        vector[j] = 1
    else:
        vector[i], vector[j] = -u[j], u[i]
    return tuple(fmpq(c) for c in vector)


def dual(u: tuple[int, ...]) -> Vector:
    """An integer vector p with <u, p> = 1, by the extended Euclidean algorithm (u has no common divisor)."""
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
    """A single sequence needs no identification."""
    return Identification((), tuple(fmpq(c) for c in u), tuple(tuple(own) for own in levels), 0)


def plane(data: DataSet) -> tuple[Vector, Vector]:
    """The first two basis vectors, on which leaders write."""
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
