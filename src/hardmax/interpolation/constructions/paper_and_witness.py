r"""Constructions P ("paper") and H ("witness"): sequences are separated block by block.

Tokens of class c sit at :math:`\tau + cS`. A value w that only some members contain is marked by a hat of height one
in the second coordinate; the members that contain it have a leader of height 1 and move to the slot of a new class,
for all others the leader has height 0. Exactly N-1 splits, and only integers or dyadics when the data are.

1. Witnesses give every sequence its own stretch of the first axis.
2. In each sequence one token value becomes its leader :math:`R_j(1,1)`, far out on the diagonal, and m-1 others go to
   rational points of a circle in the open negative quadrant; a hat moves one value at a time.
3. One attention with B = V = I and :math:`\rho=0`: a token left on the axis attends to the leader, while leaders and
   points of the circle attend to themselves. Now there are exactly m points.
4. One hat per point sends it to its target.

The leaders are to the right of the band of all targets and the circle to the left of it, so a hat never meets a point
that is already where it belongs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace

from flint import fmpq

from ..arithmetic.directions import Lattice
from ..arithmetic.numbers import ONE, ZERO, Vector, power_of_two_at_most, scaled, unit
from ..data import DataSet
from ..network import Block, Neuron, OuterProduct, identity, in_layers
from .identification import Identification, behind_pass, plane


def hat(at: fmpq, half_width: fmpq, height: Vector) -> list[tuple[fmpq, Vector]]:
    """Three bends of a line that add ``height`` at one point and zero at distances of at least ``half_width``."""
    slope = tuple(c / half_width for c in height)
    return [(at - half_width, slope), (at, scaled(fmpq(-2), slope)), (at + half_width, slope)]


def witness(lattice: Lattice, u: tuple[int, ...], width: int) -> Identification:
    """Identification by construction H, with N-1 witnesses."""
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
    """Value that divides the sets most evenly into those that contain it and those that do not."""
    counts = Counter(t for values in sets for t in values)
    return min((t for t in counts if counts[t] < len(sets)), key=lambda t: (abs(2 * counts[t] - len(sets)), t))


@dataclass(frozen=True)
class Move:
    """Move of the points at ``start`` of the first axis, whose position is ``origin``, to ``target``."""

    start: fmpq
    origin: Vector
    target: Vector


def paper_route(data: DataSet, found: Identification, width: int) -> tuple[Block, ...]:
    """Blocks of construction P after the witnesses: selection, collapse and interpolation."""
    d = data.dimension
    lowest = min(map(min, found.positions))
    lift = ONE - lowest
    values = [sorted({t + lift for t in own}) for own in found.positions]
    selecting, sending = _moves(data, values)
    first_axis = unit(d, 0)
    taken = sorted({t for own in values for t in own})
    edge = max([*taken, *(y[0] for points in data.outputs for y in points), ZERO]) + 1
    blocks: list[Block] = [Block(ZERO, (Neuron(found.reading, lift, first_axis),), stage="select")]
    limits, height = [*taken, ZERO, edge], _height(selecting)
    for move in selecting:
        blocks += _move_blocks(move, _half_width(move.start, limits), height, width, "select")
    if width >= 4:
        # The pass neuron shares the first layer with the first hat, which then reads the token itself.
        blocks[:2] = [_joined(blocks[0], blocks[1], found.reading, lift)]
    blocks[-1] = replace(blocks[-1], rho=ZERO, B=identity(d), V=identity(d), stage="select, collapse")
    band = [y[0] for points in data.outputs for y in points]
    limits, height = [min(band), max(band), *(move.start for move in sending)], _height(sending)
    for move in sending:
        blocks += _move_blocks(move, _half_width(move.start, limits), height, width, "send")
    return tuple(blocks)


def _moves(data: DataSet, values: list[list[fmpq]]) -> tuple[list[Move], list[Move]]:
    d = data.dimension
    first = [y[0] for points in data.outputs for y in points]
    far = max([own[-1] for own in values] + [max(first), ZERO]) + 1
    radius = 2 * max(abs(min(first)), ONE) + 2
    selecting, sending = [], []
    on_circle = 0
    for j, (own, targets) in enumerate(zip(values, data.outputs, strict=True)):
        for q, (t, y) in enumerate(zip(own, sorted(targets), strict=False)):
            if q == 0:
                spot = (far + j, far + j)
            else:
                on_circle += 1
                s = fmpq(on_circle, 2 * (data.targets + 1))
                spot = (-radius * (1 - s * s) / (1 + s * s), -radius * 2 * s / (1 + s * s))
            place = (*spot, *(ZERO,) * (d - 2))
            selecting.append(Move(t, unit(d, 0, t), place))
            sending.append(Move(spot[0], place, y))
    return selecting, sending


def _half_width(at: fmpq, others: list[fmpq]) -> fmpq:
    return power_of_two_at_most(min(abs(at - t) for t in others if t != at) / 2)


def _height(moves: list[Move]) -> fmpq:
    """Height above every second coordinate that occurs during these moves."""
    return 4 * (max(abs(p[1]) for move in moves for p in (move.origin, move.target)) + 1)


def _move_blocks(move: Move, half: fmpq, height: fmpq, width: int, stage: str) -> list[Block]:
    """One hat where it fits in a layer; otherwise a hat that lifts the second coordinate, which triggers the move."""
    d = len(move.target)
    e1, e2 = unit(d, 0), unit(d, 1)
    path = tuple(b - a for a, b in zip(move.origin, move.target, strict=True))
    if width >= 3:
        return [Block(ONE, tuple(Neuron(e1, -b, w) for b, w in hat(move.start, half, path)), stage=stage)]
    lifting = [Neuron(e1, -b, w) for b, w in hat(move.start, half, scaled(height, e2))]
    blocks = [Block(ONE, layer, stage=stage) for layer in in_layers(lifting, width)]
    # Only the lifted point is above this threshold: relu is exactly one there.
    back = tuple(p - (height if k == 1 else ZERO) for k, p in enumerate(path))
    trigger = Neuron(e2, 1 - move.origin[1] - height, back)
    return [*blocks, Block(ONE, (trigger,), stage=stage)]


def _joined(passing: Block, moving: Block, reading: Vector, lift: fmpq) -> Block:
    hats = tuple(Neuron(reading, lift + n.bias, n.writing) for n in moving.neurons)
    return Block(ZERO, passing.neurons + hats, stage=moving.stage)
