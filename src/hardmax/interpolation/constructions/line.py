r"""The last stage: points and intervals on a line are mapped to their targets, from the top down.

The items are disjoint intervals of :math:`t=\langle u, x\rangle`, each with a target. The first layer sends every
token to :math:`\xi e_a`, with all :math:`\xi` above every target's coordinate a; each layer then treats the topmost
items left. A treated item lands on its target, below every later knot, and is never touched again; an item below the
knots is not touched yet. So layers do not interact, and no error or length of numbers is carried along.

In one layer, going upwards from the identity piece :math:`H(t) = t e_a`, an item costs one neuron when it is a point
(a slope that reaches the target there) and two when it is an interval (a ramp, then a constant). An interval for which
only one neuron is left is first collapsed to a point by that neuron, so no neuron is wasted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from flint import fmpq

from ..arithmetic.numbers import (
    ONE,
    ZERO,
    Vector,
    power_of_two_at_least,
    power_of_two_at_most,
    round_down,
    round_up,
    scaled,
    to_float,
    unit,
)
from ..network import Block, Neuron, OuterProduct, identity


@dataclass(frozen=True, slots=True)
class Item:
    """Closed interval of the line, and its target."""

    low: fmpq
    high: fmpq
    target: Vector
    lowest_top: fmpq | None = None
    """Upper end of the lowest of several joined intervals; None when nothing was joined."""

    @property
    def collapsed(self) -> Item:
        """Interval that remains when each of the joined intervals has moved to its upper end."""
        return replace(self, low=self.high if self.lowest_top is None else self.lowest_top)

    @property
    def is_point(self) -> bool:
        """Whether the interval is a single point."""
        return bool(self.low == self.high)


@dataclass(frozen=True, slots=True)
class Knot:
    """Neuron of the line: ``weight * relu(x_a - at)``."""

    at: fmpq
    weight: Vector


@dataclass(frozen=True)
class LineStage:
    """Blocks of the last stage, and the separation of its items."""

    blocks: tuple[Block, ...]
    items: tuple[Item, ...]
    gap: fmpq
    """Smallest distance between neighbouring items."""
    extent: fmpq
    """Length of the interval that contains all items."""

    @property
    def conditioning(self) -> float:
        """Ratio ``range/gap``, on which float64 accuracy depends."""
        return to_float(self.extent / self.gap)


def merge_neighbours(items: Sequence[Item]) -> list[Item]:
    """Items with neighbours of the same target joined: one interval costs two neurons, whatever its content."""
    merged: list[Item] = []
    for item in items:
        if merged and merged[-1].target == item.target:
            last = merged[-1]
            lowest = last.high if last.lowest_top is None else last.lowest_top
            merged[-1] = replace(last, high=item.high, lowest_top=lowest)
        else:
            merged.append(item)
    return merged


def smallest_gap(items: Sequence[Item]) -> fmpq | None:
    """Smallest distance between neighbours; None for a single item."""
    return min((b.low - a.high for a, b in itertools.pairwise(items)), default=None)


def line_stage(items: Sequence[Item], reading: Vector, width: int, *, flat: bool, collapse: bool = False) -> LineStage:
    """Line stage that maps ascending, disjoint items of ``<reading, x>`` to their targets.

    ``flat`` makes the output locally constant around every item, with dyadic knots. ``collapse`` adds to the first
    block an attention that sends every token to the top token of its sequence: allowed when every sequence lies in
    one item.
    """
    items = merge_neighbours(items)
    d = len(reading)
    targets = [item.target for item in items]
    axis = min(range(d), key=lambda k: max(y[k] for y in targets) - min(y[k] for y in targets))
    base = max(ZERO, *(y[axis] for y in targets))
    gap = smallest_gap(items) or (items[0].high - items[0].low) or ONE
    if flat:
        # There is slack around every item: ends on a coarse dyadic grid make short numbers.
        step = power_of_two_at_most(gap / 16)
        items = [replace(i, low=round_down(i.low, step), high=round_up(i.high, step)) for i in items]
        gap = smallest_gap(items) or gap
    extent = items[-1].high - items[0].low + gap
    size = max((abs(c) for y in targets for c in y), default=ZERO) or ONE
    scale = power_of_two_at_most(size / extent)
    offset = base / scale - items[0].low + power_of_two_at_least(gap)
    placed = [_moved(i, scale, offset) for i in items]
    layers = top_down(placed, base, axis, width - 1, width, flat=flat, collapse=collapse)
    e = unit(d, axis)
    read, bias = scaled(scale, reading), scale * offset
    first = Block(
        ZERO,
        (Neuron(read, bias, e), *(Neuron(read, bias - k.at, k.weight) for k in layers[0])),
        stage="line",
    )
    if collapse:
        first = replace(first, rho=ZERO, B=(OuterProduct(e, e),), V=identity(d), stage="line, collapse")
    rest = (Block(ONE, tuple(Neuron(e, -k.at, k.weight) for k in layer), stage="line") for layer in layers[1:])
    return LineStage((first, *rest), tuple(items), gap, extent)


def _moved(item: Item, scale: fmpq, offset: fmpq) -> Item:
    top = None if item.lowest_top is None else scale * (item.lowest_top + offset)
    return Item(scale * (item.low + offset), scale * (item.high + offset), item.target, top)


def top_down(
    items: Sequence[Item], base: fmpq, axis: int, first_room: int, room: int, *, flat: bool, collapse: bool = False
) -> list[list[Knot]]:
    r"""Layers of knots that map :math:`x = t e_a + \dots` with t in ``items[k]`` to ``items[k].target``.

    Coordinate a of a target is absolute and at most ``base``; the others are increments. The first layer has room
    for ``first_room`` knots, every other for ``room``.
    """
    left = list(items)
    done = [False] * len(left)  # collapsed to a point by an earlier layer, so one neuron is enough even when flat
    layers: list[list[Knot]] = []
    k = len(left) - 1
    while k >= 0 or not layers:
        free = room if layers else first_room
        plan: list[tuple[str, int]] = []
        while free and k >= 0:
            if done[k] or (left[k].is_point and not flat):
                plan.append(("point", k))
                free -= 1
            elif free >= 2:
                plan.append(("interval", k))
                free -= 2
            elif collapse and not layers:
                break
            else:
                plan.append(("squeeze", k))
                break
            k -= 1
        layers.append(_one_layer(plan, left, done, base, axis, flat))
        if collapse and len(layers) == 1:
            for q in range(k + 1):
                left[q] = left[q].collapsed
    return layers


def _one_layer(
    plan: list[tuple[str, int]], left: list[Item], done: list[bool], base: fmpq, axis: int, flat: bool
) -> list[Knot]:
    """The knots of one layer, bottom up; squeezed items are replaced in ``left`` by the point they become."""
    knots: list[Knot] = []
    if not plan:
        return knots
    d = len(left[0].target)
    slope: Vector = unit(d, axis)
    at, value = ZERO, (ZERO,) * d  # the piece so far is value + slope * (t - at)

    def turn(where: fmpq, new: Vector) -> None:
        nonlocal at, value, slope
        value = tuple(v + s * (where - at) for v, s in zip(value, slope, strict=True))
        knots.append(Knot(where, tuple(n - s for n, s in zip(new, slope, strict=True))))
        at, slope = where, new

    level: Vector = (ZERO,) * d
    previous = ""
    squeezed: tuple[int, fmpq] | None = None
    for kind, k in reversed(plan):
        item = left[k]
        below = left[k - 1].high if k else base
        gap = item.low - below
        margin = power_of_two_at_most(gap / 4)
        if kind == "squeeze":
            corner = item.low - margin
            turn(corner, level)
            squeezed = (k, corner)
            continue
        corner = item.low - margin if kind == "interval" else item.low
        # Two points in a row may share a knot at the lower one; elsewhere knots stay strictly inside gaps, so that
        # rounding near an item cannot leak through a steep slope.
        shared = previous == kind == "point" and not flat
        start = below if shared else corner - power_of_two_at_most(gap / 2)
        here = tuple(v + s * (start - at) for v, s in zip(value, slope, strict=True))
        turn(start, tuple((y - h) / (corner - start) for y, h in zip(item.target, here, strict=True)))
        if kind == "interval":
            turn(corner, level)
        previous = kind
    if squeezed is not None:
        k, corner = squeezed
        left[k] = replace(left[k], low=corner, high=corner)
        done[k] = True
    return knots
