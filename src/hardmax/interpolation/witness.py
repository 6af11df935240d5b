r"""Construction H ("witness"): one token value per block splits one class of sequences in two.

Tokens of class c sit at :math:`\tau + cS`. A value w that only some members contain is marked by a hat of height one
in the second coordinate; the members that contain it have a leader of height 1 and move to the slot of a new class,
for all others the leader has height 0. Exactly N-1 splits, and only integers or dyadics when the data are.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

from flint import fmpq

from .blocks import Block, Neuron, OuterProduct
from .identification import Identification, behind_pass, plane
from .lattice import Lattice
from .numbers import ONE, ZERO, Vector, power_of_two_at_most, scaled


def hat(at: fmpq, half_width: fmpq, height: Vector) -> list[tuple[fmpq, Vector]]:
    """Three bends of a line that add ``height`` at one point and nothing from ``half_width`` away on."""
    slope = tuple(c / half_width for c in height)
    return [(at - half_width, slope), (at, scaled(fmpq(-2), slope)), (at + half_width, slope)]


def witness(lattice: Lattice, u: tuple[int, ...], width: int) -> Identification:
    """Construction H: N-1 witnesses."""
    data = lattice.data
    e1, e2 = plane(data)
    reading = tuple(fmpq(c) for c in u)
    levels = lattice.levels(reading)
    values = sorted({t for own in levels for t in own})
    nearest = min((b - a for a, b in itertools.pairwise(values)), default=ONE)
    extent = values[-1] - values[0]
    lift = power_of_two_at_most(extent) - values[0] if extent else ONE - values[0]
    sets = [{t + lift for t in own} for own in levels]
    step = extent + nearest
    members: dict[int, list[int]] = {0: list(range(len(data)))}
    slot = [0] * len(data)
    todo = [0] if len(data) > 1 else []
    blocks: list[Block] = []
    while todo:
        c = todo.pop()
        w = _dividing_value([sets[j] for j in members[c]])
        new = len(members)
        members[new] = [j for j in members[c] if w in sets[j]]
        members[c] = [j for j in members[c] if w not in sets[j]]
        for j in members[new]:
            slot[j] = new
        read, bias = (reading, lift) if not blocks else (e1, ZERO)
        half = power_of_two_at_most(nearest / 2)
        bends = hat(w + c * step, half, e2)
        layers = behind_pass([Neuron(read, bias, e1)], bends, read, bias, width)
        built = [Block(ZERO if k == 0 else ONE, layer, stage="witness") for k, layer in enumerate(layers)]
        built[-1] = replace(built[-1], B=(OuterProduct(e2, e1),), V=(OuterProduct(scaled((new - c) * step, e1), e2),))
        blocks += built
        todo += [q for q in (c, new) if len(members[q]) > 1]
    positions = tuple(tuple(t + lift + slot[j] * step for t in own) for j, own in enumerate(levels))
    return Identification(tuple(blocks), e1, positions, len(data) - 1)


def _dividing_value(sets: list[set[fmpq]]) -> fmpq:
    """The value that divides the sets most evenly into those that contain it and those that do not."""
    counts = Counter(t for values in sets for t in values)
    return min((t for t in counts if counts[t] < len(sets)), key=lambda t: (abs(2 * counts[t] - len(sets)), t))
