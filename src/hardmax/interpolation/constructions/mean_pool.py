r"""Constructions A ("fewest") and E ("conditioned"): attention with B = 0 computes distinct means.

With :math:`t=\langle u, x\rangle` and :math:`f_b(j) = \mathrm{mean}_{x\in X^j}\,\mathrm{relu}(t(x)-b)`, two different
measures on the line differ in :math:`f_b` for some token value b. So starting from the partition of the sequences by
their means and adding knots that split a class, at most N-1 knots make the vectors
:math:`(\mathrm{mean}_j, f_{b_1}(j),\dots,f_{b_K}(j))` pairwise different, and almost every linear form of them is a
code. The search takes small integer coefficients and prefers the largest ratio of the smallest gap to the range.

A. :math:`\lceil K/h\rceil` layers add :math:`v\sum_r a_r\mathrm{relu}(t-b_r)`, :math:`\langle u, v\rangle = 0`, which
leaves t alone; the last one pools with :math:`V=\Lambda\,p\,w^T`, :math:`\langle u,p\rangle=1`, so that
:math:`t' = t + \Lambda c_j`.

E. The code goes to the second coordinate, in intervals far apart, and a flat line stage on that coordinate adds to the
first one the shift that packs the sequences one after the other. The range is then the sum of their widths.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import fmpq

from ...errors import HardmaxError
from ..arithmetic.directions import Lattice
from ..arithmetic.numbers import (
    ONE,
    ZERO,
    Vector,
    dot,
    power_of_two_at_least,
    power_of_two_at_most,
    round_down,
    round_up,
    scaled,
    to_float,
    unit,
)
from ..data import DataSet
from ..network import Block, Neuron, OuterProduct, in_layers
from .identification import Identification, behind_pass, crossing, dual, plane, useful_gap
from .line import Item, Knot, smallest_gap, top_down

_TRIES = 400  # random coefficients among which the best is selected
_MOST_TRIES = 20_000  # until the first that is admissible
_CANDIDATES = 256  # knots per split that are compared, a bound on time
_RESOLVED = 1e-13  # float64 gap ratios below this are rounding


class NoCodeError(HardmaxError):
    """Error: no coefficients were found, although almost all choices are admissible."""


@dataclass(frozen=True)
class PooledCode:
    r""":math:`c_j = \langle w, \mathrm{mean}_j\rangle + g(w)\sum_r a_r f_{b_r}(j)`: coefficients and codes."""

    weights: Vector
    knots: tuple[fmpq, ...]
    heights: tuple[fmpq, ...]
    codes: tuple[fmpq, ...]

    @property
    def gap(self) -> fmpq:
        """Smallest distance between two codes."""
        ordered = sorted(self.codes)
        return min(b - a for a, b in itertools.pairwise(ordered))


def pooled_code(
    lattice: Lattice, u: Sequence[int], generator: np.random.Generator, *, across: Vector | None, single: bool = False
) -> PooledCode:
    r"""Find a code. ``across`` = v means that knots write along v, so that :math:`g(w)=\langle w, v\rangle`; without
    it :math:`g=1`. ``single`` allows only multiples of u as :math:`w`.
    """
    levels = lattice.project(u)
    means = _means(lattice)
    flat = [(dot([fmpq(c) for c in u], mean),) for mean in means] if single else means
    knots = _splitting_knots(lattice, levels, _classes(flat))
    features = [_feature(lattice, levels, b) for b in knots]
    weights, heights, codes = _search(lattice, u, means, features, generator, across, single)
    scale = fmpq(1, lattice.denominator)
    return PooledCode(weights, tuple(b * scale for b in knots), heights, codes)


def _means(lattice: Lattice) -> list[Vector]:
    totals = lattice.sums(lattice.points).tolist()
    return [
        tuple(fmpq(int(c), n * lattice.denominator) for c in row)
        for row, n in zip(totals, lattice.sizes.tolist(), strict=True)
    ]


def _classes(keys: Sequence[object]) -> np.ndarray:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _splitting_knots(lattice: Lattice, levels: np.ndarray, label: np.ndarray) -> list[int]:
    """Token values at which the partition is split until every class has one member, greedily."""
    knots: list[int] = []
    while len(set(label.tolist())) < len(label):
        members = np.flatnonzero(np.bincount(label)[label] > 1)
        values = np.unique(np.concatenate([levels[lattice.starts[j] : lattice.starts[j + 1]] for j in members]))
        if len(values) > _CANDIDATES:
            pick = np.linspace(0, len(values) - 1, _CANDIDATES).round().astype(int)
            found = _best_knot(lattice, levels, label, members, values[pick]) or _best_knot(
                lattice, levels, label, members, values
            )
        else:
            found = _best_knot(lattice, levels, label, members, values)
        if found is None:
            raise NoCodeError("the direction does not keep the measures apart")
        knots.append(found[0])
        label = found[1]
    return knots


def _best_knot(
    lattice: Lattice, levels: np.ndarray, label: np.ndarray, members: np.ndarray, values: np.ndarray
) -> tuple[int, np.ndarray] | None:
    """Value that splits the classes most, with the new classes; None when no value splits a class."""
    own = [levels[lattice.starts[j] : lattice.starts[j + 1]].astype(object) for j in members]
    best: tuple[int, int] | None = None
    count = len(set(label[members].tolist()))
    for b in values.tolist():
        keys = set()
        for j, t in zip(members.tolist(), own, strict=True):
            total, n = int(sum(x - b for x in t if x > b)), len(t)
            divisor = math.gcd(total, n)
            keys.add((int(label[j]), total // divisor, n // divisor))
        if len(keys) > count:
            count, best = len(keys), (len(keys), int(b))
    if best is None:
        return None
    b = best[1]
    features = _feature(lattice, levels, b)
    return b, _classes([(int(c), f) for c, f in zip(label, features, strict=True)])


def _feature(lattice: Lattice, levels: np.ndarray, knot: int) -> list[fmpq]:
    totals = lattice.sums(np.maximum(levels - knot, 0)).tolist()
    return [fmpq(int(s), n * lattice.denominator) for s, n in zip(totals, lattice.sizes.tolist(), strict=True)]


def _search(
    lattice: Lattice,
    u: Sequence[int],
    means: list[Vector],
    features: list[list[fmpq]],
    generator: np.random.Generator,
    across: Vector | None,
    single: bool,
) -> tuple[Vector, tuple[fmpq, ...], tuple[fmpq, ...]]:
    d, count, knots = lattice.data.dimension, len(means), len(features)
    mean_table = np.array([[to_float(c) for c in mean] for mean in means])
    feature_table = np.array([[to_float(f) for f in feature] for feature in features]).reshape(knots, count)
    along = np.array([to_float(c) for c in across]) if across is not None else None
    best: tuple[float, list[int], list[int], tuple[fmpq, ...]] | None = None
    size = 2
    for attempt in range(1, _MOST_TRIES + 1):
        if attempt > _TRIES and best is not None:
            break
        if attempt % 60 == 0:
            size *= 2
        w = list(u) if single else generator.integers(-size, size, size=d, endpoint=True).tolist()
        a = (generator.integers(1, size, size=knots, endpoint=True) * generator.choice([-1, 1], size=knots)).tolist()
        gain = float(along @ np.array(w, dtype=float)) if along is not None else 1.0
        if not any(w) or (knots and gain == 0.0):
            continue
        codes = mean_table @ np.array(w, dtype=float)
        if knots:
            codes = codes + gain * (np.array(a, dtype=float) @ feature_table)
        ratio = _gap_ratio(codes)
        if ratio < _RESOLVED and attempt <= _TRIES:
            continue
        if best is None or ratio > best[0]:
            exact = _exact_codes(means, features, w, a, across)
            if len(set(exact)) == count:
                best = (ratio, w, a, exact)
                if single and not knots:
                    break
    if best is None:
        raise NoCodeError("no small coefficients give every sequence its own code")
    return tuple(fmpq(c) for c in best[1]), tuple(fmpq(c) for c in best[2]), best[3]


def _gap_ratio(codes: np.ndarray) -> float:
    ordered = np.sort(codes)
    extent = float(ordered[-1] - ordered[0])
    return float(np.diff(ordered).min()) / extent if extent > 0 else 0.0


def _exact_codes(
    means: list[Vector], features: list[list[fmpq]], w: list[int], a: list[int], across: Vector | None
) -> tuple[fmpq, ...]:
    weights = [fmpq(c) for c in w]
    gain = fmpq(1) if across is None else dot(weights, across)
    codes = []
    for j, mean in enumerate(means):
        bends = sum((height * feature[j] for height, feature in zip(a, features, strict=True)), ZERO)
        codes.append(dot(weights, mean) + gain * bends)
    return tuple(codes)


def fewest(lattice: Lattice, u: tuple[int, ...], generator: np.random.Generator, width: int) -> Identification:
    """Identification by construction A: one pooled mean separates the sequences."""
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
    """Identification by construction E: a pooled code, then an index that places the sequences side by side."""
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
    """Layers that write (t, phi) into the first two coordinates, the heights phi, and the offset of the code."""
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
    """Knots on the second coordinate that shift the first, and the resulting positions."""
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
