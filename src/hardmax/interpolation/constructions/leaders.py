r"""Construction B ("leaders") with hardmax attention, and with softmax attention by proved enclosures.

With :math:`\tau = t + C > 0` and a query point w, :math:`\varphi_w(\tau)=\tau-2\,\mathrm{relu}(\tau-w) = w-|\tau-w|`,
so the highest token of a sequence sits at :math:`M_w(j)=w-\mathrm{dist}(w,T_j)`. A value that one sequence has and
another lacks separates the two, so at most N-1 queries separate all. Block r writes the tent of :math:`w_r` into the
second coordinate; every token attends to its maximiser (score :math:`\tau_i\,x_{l,2}`) and
:math:`s_j \leftarrow (1+\lambda_r)s_j+\lambda_r M_{w_r}(j)`. At the end
:math:`t'=2x_1+x_2=s_j+2\tau+\varphi_{w_K}(\tau)` increases
in :math:`\tau` with slopes 3 and 1, and the last :math:`\lambda` puts the stretches apart.

The first coordinate :math:`\tau_i` never changes, so all tents are switched at exact rational points; only the second
coordinate becomes irrational. With the scores multiplied by a gain :math:`\omega` and by the temperature T, which
softmax divides by again, the leader's value is off by at most
:math:`(n-1)\,\mathrm{range}(x_2)\,e^{-\omega\tau_{\min}g}`: the same at every temperature. The gain is raised until
the enclosures of :math:`t'=2x_1+x_2` are separated; the flat line stage is then built around them, and on a flat piece
the linear part vanishes exactly, so the irrational numbers disappear from the output.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from flint import arb, ctx, fmpq

from ...errors import InputError
from ..arithmetic.directions import Lattice
from ..arithmetic.exact_evaluation import Number, State, UndecidedError, evaluate, is_exact, linear, sparse
from ..arithmetic.numbers import ONE, TWO, ZERO, Vector, power_of_two, power_of_two_at_most, scaled
from ..network import Block, Neuron, OuterProduct
from .identification import Identification, Interval, SeparationError, behind_pass, make_items, plane, useful_gap
from .line import Item

# At most this many values are tried as query points, which bounds the time.
_CANDIDATES = 256
# Relative to the range: smaller differences are decimals rounded to binary, which float64 would not resolve later.
_HAIR = 1e-9
# Integers of more bits do not fit into float64, whose largest number has 1,024.
_MOST_BITS = 1000
_PATIENCE = 12
"""Rounds with larger factors that are tried while the gap is below ``_HAIR``."""
# Small integers first, since they keep the numbers short; both signs, since either may separate.
_FACTORS = [1, -2, 2, -3, 3, -4, 4, -5, 5, 6, -6, 7, -7, 8, -8, 9, 10, 11, 12, 13, 14, 15, 16]


@dataclass(frozen=True)
class Queries:
    """Query points, the reading of each of them from every sequence, and the factors that combine the readings."""

    points: list[int]
    readings: list[np.ndarray]
    factors: list[int]
    sums: np.ndarray
    """:math:`s_j` before the last query."""


def leaders(lattice: Lattice, u: tuple[int, ...], generator: np.random.Generator, width: int) -> Identification:
    """Identification by construction B."""
    data = lattice.data
    reading = tuple(fmpq(c) for c in u)
    scale = fmpq(1, lattice.denominator)
    levels = lattice.levels(reading)
    lowest = min(map(min, levels))
    extent = max(map(max, levels)) - lowest
    lift = power_of_two_at_most(extent) - lowest
    found = _find_queries(lattice, lattice.project(u), generator)
    apart = 3 * extent + useful_gap(data, levels)
    # The readings are heights below a query point in lattice units; the lift enters them as it enters the tents.
    heights = [[scale * int(m) + lift for m in reading_] for reading_ in found.readings]
    sums = [ZERO] * len(data)
    for factor, height in zip(found.factors, heights, strict=False):
        sums = [(1 + factor) * s + factor * m for s, m in zip(sums, height, strict=True)]
    last = ONE
    while True:
        final = sorted((1 + last) * s + last * m for s, m in zip(sums, heights[-1], strict=True))
        if all(b - a >= apart for a, b in itertools.pairwise(final)):
            break
        last *= 2
    factors = [fmpq(f) for f in found.factors] + [last]
    points = [scale * w + lift for w in found.points]
    shifts = [(1 + last) * s + last * m for s, m in zip(sums, heights[-1], strict=True)]
    positions = tuple(
        tuple(s + 2 * (t + lift) + points[-1] - abs(t + lift - points[-1]) for t in own)
        for s, own in zip(shifts, levels, strict=True)
    )
    blocks = _blocks(reading, lift, points, factors, width, plane(data))
    e1, e2 = plane(data)
    read_out = tuple(2 * a + b for a, b in zip(e1, e2, strict=True))
    return Identification(tuple(blocks), read_out, positions, len(points))


def _blocks(
    reading: Vector,
    lift: fmpq,
    points: list[fmpq],
    factors: list[fmpq],
    width: int,
    basis: tuple[Vector, Vector],
) -> list[Block]:
    e1, e2 = basis
    both = tuple(a + b for a, b in zip(e1, e2, strict=True))
    blocks: list[Block] = []
    for r, (w, factor) in enumerate(zip(points, factors, strict=True)):
        fall = (w, scaled(-TWO, e2))
        if r == 0:
            layers = behind_pass([Neuron(reading, lift, both)], [fall], reading, lift, width)
        else:
            layers = behind_pass([], [(points[r - 1], scaled(TWO, e2)), fall], e1, ZERO, width)
        built = [Block(ZERO if r == k == 0 else ONE, layer, stage="leader") for k, layer in enumerate(layers)]
        built[-1] = replace(
            built[-1],
            B=(OuterProduct(e2, e1),),
            V=(OuterProduct(scaled(factor, e2), e2),),
        )
        blocks += built
    return blocks


def _find_queries(lattice: Lattice, levels: np.ndarray, generator: np.random.Generator) -> Queries:
    count = len(lattice.data)
    label = np.zeros(count, dtype=np.int64)
    values = np.unique(levels)
    if len(values) > _CANDIDATES:
        values = np.sort(generator.choice(values, size=_CANDIDATES, replace=False))
    # In a unit that keeps the largest level finite in float64; the unit is one unless the data span 300 decimals.
    unit = 1 << max(0, int(max(abs(v) for v in values.tolist())).bit_length() - _MOST_BITS)
    rough = levels.astype(np.float64) if unit == 1 else np.array([v / unit for v in levels.tolist()])
    points: list[int] = []
    readings: list[np.ndarray] = []
    # Readings that differ by a hair (decimals rounded to binary do) count as equal first: another query is cheaper
    # than a code that float64 cannot resolve.
    coarse = label
    hair = _HAIR * (float(rough.max() - rough.min()) or 1.0)
    while label.max() < count - 1 or (hair and coarse.max() < count - 1) or not points:
        if hair:
            w, finer = _best_query(lattice, rough, values, coarse, hair, unit)
            if finer.max() == coarse.max() and points:
                hair = 0.0
                continue
            coarse = finer
        else:
            w, _ = _best_query(lattice, rough, values, label, 0.0, unit)
            if _refine(label, _reading(lattice, levels, w)).max() == label.max():
                w = _witness(lattice, levels, label)
        reading = _reading(lattice, levels, w)
        points.append(w)
        readings.append(reading)
        label = _refine(label, reading)
    factors, sums = _factors(readings)
    return Queries(points, readings, factors, sums)


def _reading(lattice: Lattice, levels: np.ndarray, w: int) -> np.ndarray:
    """Exact value of w minus the distance from w to each sequence."""
    return np.asarray((w - np.minimum.reduceat(np.abs(levels - w), lattice.starts[:-1])).astype(object))


def _refine(label: np.ndarray, reading: np.ndarray) -> np.ndarray:
    numbers: dict[tuple[int, int], int] = {}
    keys = zip(label.tolist(), reading.tolist(), strict=True)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _best_query(
    lattice: Lattice, rough: np.ndarray, values: np.ndarray, label: np.ndarray, hair: float, unit: int
) -> tuple[int, np.ndarray]:
    """Candidate that splits the classes most, by float64 distances, and the resulting classes.

    Distances at most ``hair`` apart count as equal.
    """
    best, chosen, classes = (-1, 0.0), int(values[0]), label
    for w in values.tolist():
        distance = np.minimum.reduceat(np.abs(rough - w / unit), lattice.starts[:-1])
        order = np.lexsort((distance, label))
        steps = np.diff(distance[order])
        same = np.diff(label[order]) == 0
        fresh = ~same | (steps > hair)
        useful = steps[same & (steps > hair)]
        rank = (int(fresh.sum()), float(useful.min()) if len(useful) else 0.0)
        if rank > best:
            best, chosen = rank, int(w)
            classes = np.empty_like(label)
            classes[order] = np.concatenate([[0], np.cumsum(fresh)])
    return chosen, classes


def _witness(lattice: Lattice, levels: np.ndarray, label: np.ndarray) -> int:
    """Value that is in one of two sequences of the same class and not in the other."""
    first: dict[int, int] = {}
    for j, c in enumerate(label.tolist()):
        k = first.setdefault(c, j)
        if k != j:
            own, other = (set(levels[lattice.starts[i] : lattice.starts[i + 1]].tolist()) for i in (j, k))
            return int(min(own ^ other))
    raise AssertionError("every class has one member")


def _factors(readings: list[np.ndarray]) -> tuple[list[int], np.ndarray]:
    r"""Integers :math:`\lambda_1,\dots,\lambda_{K-1}`, chosen one after the other by the gap they leave.

    Invariant of every step: for each later query q, :math:`s + M_q` separates all sequences that s and :math:`M_q`
    separate. The next value is :math:`\lambda(s+M_r) + (s+M_q)`, so only finitely many :math:`\lambda` violate it.
    """
    sums = np.zeros(len(readings[0]), dtype=object)
    label = np.zeros(len(sums), dtype=np.int64)
    chosen: list[int] = []
    for r, reading in enumerate(readings[:-1]):
        label = _refine(label, reading)
        later = [(ahead, int(_refine(label, ahead).max()) + 1) for ahead in readings[r + 1 :]]
        best: tuple[float, int] | None = None
        candidates = list(_FACTORS)
        patience = _PATIENCE
        while best is None or (best[0] < _HAIR and patience):
            patience -= best is not None
            for factor in candidates:
                trial = (1 + factor) * sums + factor * reading
                if all(len(set((trial + ahead).tolist())) == classes for ahead, classes in later):
                    ratio = _gap_ratio(trial + readings[-1])
                    if best is None or ratio > best[0]:
                        best = (ratio, factor)
            candidates = [2 * c + 1 for c in candidates]
        chosen.append(best[1])
        sums = (1 + best[1]) * sums + best[1] * reading
    return chosen, sums


def _gap_ratio(values: np.ndarray) -> float:
    ordered = sorted(set(values.tolist()))
    if len(ordered) < 2:
        return 1.0
    return float(min(b - a for a, b in itertools.pairwise(ordered)) / (ordered[-1] - ordered[0]))


_PRECISION = 128  # bits of the balls for the first gains
_START = fmpq(64)  # the first gain, over the squared extent: not close to hardmax, and mostly enough to separate
_DOUBLINGS = 40  # gains that are doubled before their exponent is doubled
_LAST_EXPONENT = 8192  # of a gain; larger ratios of distances are refused
_FINEST = 1 << 17
"""Ends of enclosures are multiples of 2 to minus this power, which bounds their memory."""


def hull(value: Number) -> Interval:
    """Rational ends of an enclosure."""
    if is_exact(value):
        return value, value
    if not value.is_finite():
        raise UndecidedError("an enclosure has no end")
    return _dyadic(value.lower(), up=False), _dyadic(value.upper(), up=True)


def _dyadic(value: arb, *, up: bool) -> fmpq:
    """Exact ball as a rational; a number below the finest multiple is rounded outwards."""
    mantissa, exponent = map(int, value.man_exp())
    if exponent < -_FINEST:
        away_from_zero = (mantissa > 0) == up
        return power_of_two(-_FINEST) * (1 if mantissa > 0 else -1) if mantissa and away_from_zero else ZERO
    return mantissa * power_of_two(exponent)


def with_gain(blocks: tuple[Block, ...], gain: fmpq) -> tuple[Block, ...]:
    """Blocks with all attention scores multiplied by ``gain``."""
    return tuple(
        replace(block, B=tuple(OuterProduct(scaled(gain, term.left), term.right) for term in block.B))
        for block in blocks
    )


def _attempts() -> Iterator[tuple[int, int]]:
    """Exponents of the gains to try, with their precision: the gain is doubled, and later squared."""
    for exponent in range(_DOUBLINGS):
        yield exponent, _PRECISION
    exponent = _DOUBLINGS
    while exponent < _LAST_EXPONENT:
        exponent *= 2
        # Only data on very different scales need these, with bits for all scales at once.
        yield exponent, _PRECISION + 2 * exponent


def soft_leaders(
    lattice: Lattice, u: tuple[int, ...], generator: np.random.Generator, width: int, heat: fmpq
) -> tuple[Identification, list[Item], fmpq]:
    """Identification, items that enclose the tokens after softmax attention, and the factor on its scores."""
    found = leaders(lattice, u, generator, width)
    heights = [t for own in lattice.levels(tuple(fmpq(c) for c in u)) for t in own]
    extent = max(heights) - min(heights)
    # Scores have the size of the squared extent, so this start is the same for data in any unit.
    start = power_of_two_at_most(_START / (extent * extent))
    for exponent, precision in _attempts():
        gain = start * power_of_two(exponent)
        try:
            with ctx.workprec(precision):
                state = evaluate(with_gain(found.blocks, gain), lattice.data.inputs, ONE)
                items = _enclosed_items(lattice, state, found)
        except (UndecidedError, SeparationError):
            continue
        return replace(found, blocks=with_gain(found.blocks, gain * heat)), items, gain * heat
    raise InputError(
        "inputs",
        f"tokens whose distances differ by a factor of more than 2^{_LAST_EXPONENT}",
        "must be closer in scale for construction='leaders' under softmax attention",
        "use construction='fewest'",
    )


def _enclosed_items(lattice: Lattice, state: State, found: Identification) -> list[Item]:
    data = lattice.data
    row = sparse(found.reading)
    positions: list[list[Interval]] = []
    aligned: list[list[int]] = []
    for tokens in state.sequences():
        ends = [hull(linear(row, x)) for x in tokens]
        order = sorted(range(len(ends)), key=ends.__getitem__)
        merged: list[Interval] = []
        for i in order:
            low, high = ends[i]
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        if data.token_level and len(merged) < len(tokens):
            raise SeparationError("two tokens of a sequence are not separated")
        positions.append(merged)
        aligned.append(order)
    return make_items(data, positions, aligned if data.token_level else None)
