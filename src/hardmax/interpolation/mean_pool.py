r"""Construction A ("fewest") and E ("conditioned"): one attention layer with B = 0 reads the mean of a sequence.

A. :math:`\lceil K/h\rceil` layers add :math:`v\sum_r a_r\mathrm{relu}(t-b_r)`, :math:`\langle u, v\rangle = 0`, which
leaves t alone; the last one pools with :math:`V=\Lambda\,p\,w^T`, :math:`\langle u,p\rangle=1`, so that
:math:`t' = t + \Lambda c_j`.

E. The code goes to the second coordinate, in intervals far apart, and a flat line stage on that coordinate adds to the
first one the shift that packs the sequences one after the other. The range is then the sum of their widths.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from flint import fmpq

from .blocks import Block, Neuron, OuterProduct, in_layers
from .data import DataSet
from .identification import Identification, behind_pass, crossing, dual, plane, useful_gap
from .lattice import Lattice
from .line import Item, Knot, smallest_gap, top_down
from .numbers import (
    ONE,
    ZERO,
    dot,
    power_of_two_at_least,
    power_of_two_at_most,
    round_down,
    round_up,
    scaled,
    unit,
)
from .pooling import PooledCode, pooled_code


def fewest(lattice: Lattice, u: tuple[int, ...], generator: np.random.Generator, width: int) -> Identification:
    """Construction A: the sequences are told apart by one pooled mean."""
    data = lattice.data
    reading = tuple(fmpq(c) for c in u)
    levels = lattice.levels(reading)
    v, p = crossing(u), dual(u)
    code = pooled_code(lattice, u, generator, across=v)
    neurons = [Neuron(reading, -b, scaled(a, v)) for a, b in zip(code.heights, code.knots, strict=True)]
    blocks = [Block(ONE, layer, stage="pool") for layer in in_layers(neurons, width)]
    single = all(len(y) == 1 for y in data.outputs) and not data.token_level
    extent = max(map(max, levels)) - min(map(min, levels))
    stretch = ONE if single else power_of_two_at_least((extent + useful_gap(data, levels)) / code.gap)
    blocks[-1] = replace(blocks[-1], rho=ZERO if single else ONE, V=(OuterProduct(scaled(stretch, p), code.weights),))
    positions = tuple(
        tuple(stretch * c if single else t + stretch * c for t in own)
        for own, c in zip(levels, code.codes, strict=True)
    )
    return Identification(tuple(blocks), reading, positions, len(code.knots), collapsed=single)


def conditioned(lattice: Lattice, u: tuple[int, ...], generator: np.random.Generator, width: int) -> Identification:
    """Construction E: a pooled code, then an index that packs the sequences side by side."""
    data = lattice.data
    e1, e2 = plane(data)
    reading = tuple(fmpq(c) for c in u)
    levels = lattice.levels(reading)
    lowest = min(map(min, levels))
    extent = max(map(max, levels)) - lowest
    lift = power_of_two_at_most(extent) - lowest
    levels = [[t + lift for t in own] for own in levels]
    # One neuron per layer can carry one reading only, so the code must then read the same direction.
    code = pooled_code(lattice, u, generator, across=None, single=width == 1)
    layers, heights, raised = _coded(data, reading, lift, code, levels, width)
    blocks = [Block(ZERO if k == 0 else ONE, layer, stage="pool") for k, layer in enumerate(layers)]
    spread = max(map(max, heights)) - min(map(min, heights))
    stretch = power_of_two_at_least(2 * spread / code.gap) if spread else ONE
    blocks[-1] = replace(blocks[-1], V=(OuterProduct(scaled(stretch, e2), e2),))
    stretches = [
        (stretch * (c + raised) + min(own), stretch * (c + raised) + max(own))
        for c, own in zip(code.codes, heights, strict=True)
    ]
    index, positions = _packed(data, levels, stretches, width)
    blocks += [Block(ONE, tuple(Neuron(e2, -k.at, k.weight) for k in layer), stage="index") for layer in index]
    return Identification(tuple(blocks), e1, positions, len(code.knots))


def _coded(
    data: DataSet,
    reading: tuple[fmpq, ...],
    lift: fmpq,
    code: PooledCode,
    levels: list[list[fmpq]],
    width: int,
) -> tuple[list[tuple[Neuron, ...]], list[list[fmpq]], fmpq]:
    """Layers that write (t, phi) into the first two coordinates, the heights phi, and what was added to the code."""
    e1, e2 = plane(data)
    forms = [[dot(code.weights, x) for x in tokens] for tokens in data.inputs]
    lowest = min(map(min, forms))
    spread = max(map(max, forms)) - lowest
    raised = (power_of_two_at_most(spread) if spread else ONE) - lowest
    bends = [(a, b + lift) for a, b in zip(code.heights, code.knots, strict=True)]
    heights = [
        [f + raised + sum((a * (t - b) for a, b in bends if t > b), ZERO) for f, t in zip(own, at, strict=True)]
        for own, at in zip(forms, levels, strict=True)
    ]
    if width == 1:
        # w = u, so one pass neuron serves both coordinates: phi starts as t and the code is raised by the lift.
        raised = lift
        heights = [[t + sum((a * (t - b) for a, b in bends if t > b), ZERO) for t in at] for at in levels]
        first = [Neuron(reading, lift, tuple(a + b for a, b in zip(e1, e2, strict=True)))]
    else:
        first = [Neuron(reading, lift, e1), Neuron(code.weights, raised, e2)]
    layers = behind_pass(first, [(b, scaled(a, e2)) for a, b in bends], reading, lift, width)
    return layers, heights, raised


def _packed(
    data: DataSet, levels: list[list[fmpq]], stretches: list[tuple[fmpq, fmpq]], width: int
) -> tuple[list[list[Knot]], tuple[tuple[fmpq, ...], ...]]:
    """Knots on the second coordinate that shift the first, and the positions that result."""
    order = sorted(range(len(data)), key=lambda j: stretches[j][0])
    apart = useful_gap(data, levels)
    place = power_of_two_at_least(apart)
    shift = [ZERO] * len(data)
    items = []
    for j in order:
        shift[j] = place - min(levels[j])
        place += max(levels[j]) - min(levels[j]) + apart
        items.append(Item(*stretches[j], target=()))
    gap = smallest_gap(items) or ONE
    step = power_of_two_at_most(gap / 64)
    parked = round_down(items[0].low, step) - power_of_two_at_least(gap)
    d = data.dimension
    items = [
        Item(
            round_down(item.low, step),
            round_up(item.high, step),
            tuple(a + b for a, b in zip(unit(d, 0, shift[j]), unit(d, 1, parked), strict=True)),
        )
        for j, item in zip(order, items, strict=True)
    ]
    knots = top_down(items, parked, 1, width, width, flat=True)
    return knots, tuple(tuple(t + shift[j] for t in own) for j, own in enumerate(levels))
