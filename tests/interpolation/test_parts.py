"""The parts that constructions, proofs and files are made of, each against a literal or brute-force answer."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb, fmpq

from hardmax.errors import InputError
from hardmax.interpolation import Block, Neuron, OuterProduct, interpolate
from hardmax.interpolation.arithmetic.affine import SignFilter, affine_map, patterns
from hardmax.interpolation.arithmetic.directions import Lattice, _candidates, _separation, admissible, choose_direction
from hardmax.interpolation.arithmetic.exact_evaluation import State, evaluate, linear, sparse
from hardmax.interpolation.arithmetic.numbers import (
    as_fraction,
    bits,
    brief,
    power_of_two_at_least,
    power_of_two_at_most,
    round_down,
    round_up,
    to_float,
)
from hardmax.interpolation.constructions.identification import (
    SeparationError,
    _ordered,
    behind_pass,
    best_window,
    crossing,
    distinct,
    dual,
    make_items,
    untouched,
    useful_gap,
)
from hardmax.interpolation.constructions.leaders import _enclosed_items
from hardmax.interpolation.constructions.line import Item, line_stage, merge_neighbours, smallest_gap
from hardmax.interpolation.constructions.mean_pool import pooled_code
from hardmax.interpolation.constructions.paper_and_witness import _dividing_value, hat
from hardmax.interpolation.data import read_data
from hardmax.interpolation.evaluation.counts import advice, block_bound, necessary_blocks, published_bound
from hardmax.interpolation.export.torch_module import _chunks, _padding
from hardmax.interpolation.network import stacked

ZERO, ONE = fmpq(0), fmpq(1)
E1, E2 = (ONE, ZERO), (ZERO, ONE)


def q(*numbers: object) -> tuple[fmpq, ...]:
    return tuple(fmpq(str(c)) for c in numbers)


def relu_sum(bends: list, at: fmpq) -> tuple[Fraction, ...]:
    """What bends of the form (knot, slope vector) add at a point, from the definition."""
    total = [Fraction(0)] * len(bends[0][1])
    for knot, slope in bends:
        height = max(as_fraction(at) - as_fraction(knot), Fraction(0))
        total = [t + height * as_fraction(s) for t, s in zip(total, slope, strict=True)]
    return tuple(total)


def test_powers_of_two_and_rounding() -> None:
    for value in [fmpq(p, r) for p in range(1, 40) for r in (1, 3, 4, 7, 16)]:
        low, high = power_of_two_at_most(value), power_of_two_at_least(value)
        assert low <= value < 2 * low
        assert high / 2 < value <= high
        assert bin(int(low.p) * int(low.q)).count("1") == 1
        for step in (fmpq(1, 4), fmpq(3)):
            down, up = round_down(value, step), round_up(value, step)
            assert down <= value < down + step
            assert up - step < value <= up
            assert (down / step).q == (up / step).q == 1
    assert bits(fmpq(-5, 8)) == 3 + 4
    assert brief(fmpq(1, 3)) == "1/3"
    assert brief(fmpq(2, 3) / 10**40) == "6.66667e-41"
    assert brief(fmpq(12345678901234567890)) == "12345678901234567890"
    assert brief(fmpq(123456789012345678901)) == "1.23457e20"
    assert to_float(fmpq(10) ** 400) == np.inf
    assert to_float(-(fmpq(10) ** 400)) == -np.inf
    assert to_float(fmpq(0)) == 0.0
    assert to_float(fmpq(1, 10**400)) == -to_float(fmpq(-1, 10**400)) == 5e-324  # positive stays positive


def test_a_hat_is_a_hat() -> None:
    bends = hat(fmpq(3), fmpq(1, 2), q(4, -6))
    assert relu_sum(bends, fmpq(3)) == (4, -6)
    assert relu_sum(bends, fmpq(11, 4)) == (2, -3)
    for outside in (fmpq(5, 2), fmpq(7, 2), fmpq(0), fmpq(100)):
        assert relu_sum(bends, outside) == (0, 0)


def test_the_value_that_divides_most_evenly() -> None:
    assert _dividing_value([{fmpq(1), fmpq(2)}, {fmpq(1), fmpq(3)}, {fmpq(1), fmpq(3)}, {fmpq(1)}]) == 3
    assert _dividing_value([{fmpq(5)}, {fmpq(4)}]) == 4  # ties by value
    assert _dividing_value([{fmpq(1), fmpq(7)}, {fmpq(1)}]) == 7


@pytest.mark.parametrize("u", [(1, 0), (0, 1), (2, 3), (-2, 5), (6, 10, 15), (0, 0, 1), (0, -1), (4, 0, 7), (-9, 4)])
def test_dual_and_crossing_vectors(u: tuple[int, ...]) -> None:
    p, v = dual(u), crossing(u)
    assert sum(a * b for a, b in zip(u, p, strict=True)) == 1
    assert all(c.q == 1 for c in p)
    assert sum(a * b for a, b in zip(u, v, strict=True)) == 0
    assert any(v)
    with pytest.raises(ValueError, match="common divisor"):
        dual(tuple(3 * c for c in u))


def test_bends_behind_a_pass_neuron() -> None:
    reading, lift = q(2, 1), fmpq(3)
    first = [Neuron(reading, lift, E1)]
    bends = [(fmpq(k), q(0, k)) for k in range(1, 5)]
    for width in (1, 2, 3, 5, 9):
        layers = behind_pass(first, bends, reading, lift, width)
        assert all(len(layer) <= width for layer in layers)
        assert sum(map(len, layers)) == 5
        for token in (q(0, 0), q(1, "1/2"), q(-1, 0), q(4, 4)):
            height = as_fraction(2 * token[0] + token[1] + 3)
            blocks = [Block(ZERO if k == 0 else ONE, layer) for k, layer in enumerate(layers)]
            moved = evaluate(blocks, [[token]]).rows[0]
            wanted = sum(k * max(height - k, 0) for k in range(1, 5))
            assert [as_fraction(c) for c in moved] == [max(height, 0), wanted]


def brute_window(values: list, targets: int) -> int:
    """All windows, the one with the largest smallest gap that is left; the first of equals."""
    size = len(values) - targets + 1
    best, chosen = None, 0
    for g in range(targets):
        spots = [
            *[(v, v) for v in values[:g]],
            (values[g], values[g + size - 1]),
            *[(v, v) for v in values[g + size :]],
        ]
        gap = min(b[0] - a[1] for a, b in itertools.pairwise(spots))
        if best is None or gap > best:
            best, chosen = gap, g
    return chosen


def test_the_best_window_and_the_gap_it_leaves() -> None:
    rng = random.Random(4)  # noqa: S311
    for _ in range(60):
        values = sorted(fmpq(v) for v in rng.sample(range(40), rng.randint(2, 7)))
        for m in range(2, len(values)):
            g = best_window([(v, v) for v in values], m)
            assert g == brute_window(values, m)
            size = len(values) - m + 1
            kept = (
                [(v, v) for v in values[:g]]
                + [(values[g], values[g + size - 1])]
                + [(v, v) for v in values[g + size :]]
            )
            data = read_data([[[v, 0] for v in values]], [[[k, 1] for k in range(m)]])
            assert useful_gap(data, [values]) == min(b[0] - a[1] for a, b in itertools.pairwise(kept))
        data = read_data([[[v, 0] for v in values]], [[[k, 1] for k in range(len(values))]], token_level=True)
        assert useful_gap(data, [values]) == min(b - a for a, b in itertools.pairwise(values))
        single = read_data([[[v, 0] for v in values]], [[[0, 1]]])
        assert useful_gap(single, [values]) == values[-1] - values[0]
    assert useful_gap(read_data([[[3, 0]]], [[[0, 1]]]), [[fmpq(3)]]) == 1


def brute_separation(lattice: Lattice, u: tuple[int, ...], needed: list[int]) -> float:
    levels = [sorted(as_fraction(t) for t in own) for own in lattice.levels(tuple(map(fmpq, u)))]
    every = [t for own in levels for t in own]
    extent = max(every) - min(every)
    if not extent:
        return 0.0
    worst: Fraction | None = None
    for own, m in zip(levels, needed, strict=True):
        if m < 2:
            continue
        size = len(own) - m + 1
        best = Fraction(0)
        for g in range(m):
            gaps = [b - a for a, b in itertools.pairwise(own)]
            best = max(best, min(gaps[:g] + gaps[g + size - 1 :]))
        worst = best if worst is None else min(worst, best)
    return 1.0 if worst is None else float(worst / extent)


def first_candidates(lattice: Lattice, box: int) -> list[tuple[int, ...]]:
    """The candidates that the choice with seed 0 begins with."""
    return list(_candidates(lattice, box, np.random.default_rng(0)))


def test_separation_of_directions_by_brute_force() -> None:
    rng = random.Random(9)  # noqa: S311
    for _ in range(25):
        inputs = [
            [list(p) for p in {(rng.randint(-3, 3), rng.randint(-3, 3)) for _ in range(rng.randint(1, 5))}]
            for _ in range(rng.randint(1, 4))
        ]
        inputs = list({frozenset(map(tuple, x)): x for x in inputs}.values())
        outputs = [[[k, 0] for k in range(rng.randint(1, len(x)))] for x in inputs]
        lattice = Lattice(read_data(inputs, outputs))
        needed = [len(y) for y in outputs]
        for u in ((1, 0), (0, 1), (2, -3), (1, 1), (0, 0)):
            assert _separation(lattice, u, np.array(needed)) == pytest.approx(brute_separation(lattice, u, needed))
            projected = [[u[0] * x[0] + u[1] * x[1] for x in own] for own in inputs]
            enough = all(len(set(t)) >= m for t, m in zip(projected, needed, strict=True))
            sets = {frozenset(t) for t in projected}
            laws = {frozenset((v, Fraction(t.count(v), len(t))) for v in t) for t in projected}
            for measures, kinds in ((False, sets), (True, laws)):
                wanted = enough and len(kinds) == len(inputs)
                assert admissible(lattice, u, np.array(needed), measures=measures) == wanted
        for measures in (False, True):
            u = choose_direction(lattice, measures=measures, generator=np.random.default_rng(0))
            assert admissible(lattice, u, np.array(needed), measures=measures)
            assert np.gcd.reduce(u) == 1
            # No admissible candidate of the first box is better.
            first = first_candidates(lattice, 1)
            allowed = [v for v in first if admissible(lattice, v, np.array(needed), measures=measures)]
            best = max((_separation(lattice, v, np.array(needed)) for v in allowed), default=0.0)
            assert _separation(lattice, u, np.array(needed)) >= best * (1 - 1e-12)


def test_codes_of_means_and_bends_are_what_they_say() -> None:
    inputs = [[[k, 0], [-k, 0]] for k in range(1, 5)] + [[[1, 3]], [[0, 0], [2, 2], [4, 1]]]
    lattice = Lattice(read_data(inputs, [[[k, 0]] for k in range(len(inputs))]))
    for across, single in ((None, True), (q(0, 1), False), (None, False)):
        u = (1, 0) if across is not None else (2, 1)
        code = pooled_code(lattice, u, np.random.default_rng(1), across=across, single=single)
        assert len(set(code.codes)) == len(inputs)
        assert code.gap == min(b - a for a, b in itertools.pairwise(sorted(code.codes)))
        gain = sum(a * b for a, b in zip(code.weights, across, strict=True)) if across is not None else 1
        for x, found in zip(inputs, code.codes, strict=True):
            mean = sum(sum(w * c for w, c in zip(code.weights, p, strict=True)) for p in x) / len(x)
            bends = ZERO
            for knot, height in zip(code.knots, code.heights, strict=True):
                bends += height * sum(max(u[0] * p[0] + u[1] * p[1] - knot, ZERO) for p in x) / len(x)
            assert found == mean + gain * bends
        if single:
            assert code.weights[0] == 2 * code.weights[1]


def test_neighbours_with_one_target_are_joined() -> None:
    a, b = q(1, 0), q(2, 0)
    items = [Item(fmpq(k), fmpq(k) + fmpq(1, 4), y) for k, y in enumerate([a, a, b, a, a, a])]
    joined = merge_neighbours(items)
    assert [(i.low, i.high, i.target) for i in joined] == [
        (0, fmpq(5, 4), a),
        (2, fmpq(9, 4), b),
        (3, fmpq(21, 4), a),
    ]
    assert [i.lowest_top for i in joined] == [fmpq(1, 4), None, fmpq(13, 4)]
    assert [(i.collapsed.low, i.collapsed.high) for i in joined] == [
        (fmpq(1, 4), fmpq(5, 4)),
        (fmpq(9, 4), fmpq(9, 4)),
        (fmpq(13, 4), fmpq(21, 4)),
    ]
    assert smallest_gap(joined) == fmpq(3, 4)
    assert smallest_gap(joined[:1]) is None
    assert Item(ONE, ONE, a).is_point
    assert not joined[0].is_point


def test_targets_that_neighbours_share_lie_beside_them() -> None:
    a, b, c = q(0, 0), q(1, 0), q(2, 0)
    assert _ordered([c, b, a], None, []) == [a, b, c]
    assert _ordered([a, b, c], b, []) == [b, a, c]
    assert _ordered([a, b, c], b, [a]) == [b, c, a]
    assert _ordered([a, b, c], None, [a, b]) == [a, c, b]
    assert _ordered([a], a, [a]) == [a]


def test_items_that_touch_are_refused() -> None:
    data = read_data([[[0, 0], [1, 0]], [[2, 0]]], [[[1, 1]], [[2, 2]]])
    assert len(make_items(data, [[(ZERO, ONE)], [(fmpq(2), fmpq(2))]])) == 2
    for second in ((ONE, fmpq(2)), (fmpq(1, 2), fmpq(3))):
        with pytest.raises(SeparationError, match="overlap"):
            make_items(data, [[(ZERO, ONE)], [second]])
    with pytest.raises(SeparationError, match="keeps 1 positions for 2 targets"):
        make_items(read_data([[[0, 0], [1, 0]]], [[[1, 1], [2, 2]]]), [[(ZERO, ZERO)]])
    level = read_data([[[0, 0]]], [[[1, 1]]], token_level=True)
    with pytest.raises(ValueError, match="token of every interval"):
        make_items(level, [distinct([ZERO])])


def test_enclosures_of_tokens_that_touch_or_overlap_are_one_interval() -> None:
    found = untouched((1, 0), [])
    # Two tokens at the same place are one: the best gap is then that between 0 and 10.
    data = read_data([[[0, 0], [0, 1], [10, 0], [12, 0]]], [[[1, 1], [2, 2]]])
    lattice = Lattice(data)
    items = _enclosed_items(lattice, State(data.inputs), found)
    assert [(item.low, item.high) for item in items] == [(0, 0), (10, 12)]
    # A ball inside another does not shorten it.
    state = State(data.inputs)
    for row, (low, high) in zip(state.rows, [(0, 6), (2, 4), (20, 22), (23, 24)], strict=True):
        row[0] = arb((low + high) / 2, (high - low) / 2)
    first, second = _enclosed_items(lattice, state, found)
    assert first.low <= 0 < 6 <= first.high < 7
    assert 19 < second.low <= 20 < 24 <= second.high < 25
    level = read_data([[[0, 0], [0, 1]]], [[[1, 1], [2, 2]]], token_level=True)
    with pytest.raises(SeparationError, match="two tokens of a sequence are not separated"):
        _enclosed_items(Lattice(level), State(level.inputs), found)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
def test_the_line_stage_sends_intervals_and_their_neighbourhood(flat: bool, width: int) -> None:
    rng = random.Random(width)  # noqa: S311
    ends = sorted(rng.sample(range(-30, 60), 12))
    items = [
        Item(fmpq(ends[2 * k]), fmpq(ends[2 * k + 1 - k % 2]), q(rng.randint(-3, 3), rng.randint(-9, 9), k))
        for k in range(6)
    ]
    reading = q(2, "-1/3", 1)
    stage = line_stage(items, reading, width, flat=flat)
    assert all(len(block.neurons) <= width for block in stage.blocks)
    assert len(stage.blocks) <= -(-((2 * 6 if flat else 6 + 3) + 1) // width)
    assert stage.gap == smallest_gap(stage.items)
    assert stage.extent == stage.items[-1].high - stage.items[0].low + stage.gap
    assert stage.conditioning == pytest.approx(float(as_fraction(stage.extent / stage.gap)))
    hair = fmpq(1, 2**20) if flat else ZERO
    for item in items:
        for t in (item.low - hair, item.high + hair, (item.low + item.high) / 2):
            token = (t / 2 + fmpq(1, 6), ONE, ZERO)
            assert tuple(evaluate(stage.blocks, [[token]]).rows[0]) == item.target


def test_blocks_are_counted_as_the_derivation_says() -> None:
    data = read_data(
        [[[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [2, 0, 0, 0, 0]], [[0, 1, 0, 0, 0]], [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0]]],
        [[[1, 0, 0, 0, 0], [2, 0, 0, 0, 0]], [[3, 0, 0, 0, 0]], [[4, 0, 0, 0, 0], [5, 0, 0, 0, 0]]],
    )
    assert (data.targets, data.merging, len(data), data.tokens) == (5, 1, 3, 6)
    assert published_bound(data, softmax=False) == 2 * 5 + 2 * 3 + 1
    assert published_bound(data, softmax=True) == 2 * 5 + 3 * 3
    ceil = lambda a, b: -(-a // b)  # noqa: E731
    for h, cuts in itertools.product((1, 2, 3, 4, 8), (0, 1, 2)):
        for flat in (False, True):
            line = ceil(2 * 5 + 1, h) if flat else ceil(5 + 1 + 1, h)
            bound = lambda name: block_bound(data, name, cuts, h, flat=flat)  # noqa: E731, B023
            assert bound("fewest") == max(1, ceil(cuts, h)) + line
            assert bound("conditioned") == ceil(cuts + 2, h) + ceil(6, h) + line
            assert bound("leaders") == cuts * ceil(2, h) + line
            assert bound("witness") == cuts * ceil(4, h) + line
            moves = 1 if h >= 3 else ceil(3, h) + 1
            assert bound("paper") == 2 * ceil(4, h) + 10 * moves + (h < 4)
        assert necessary_blocks(data, h) == max(2, ceil(4, h + 1))
    one = read_data([[[0, 0], [1, 0]]], [[[1, 1], [2, 1]]])
    assert necessary_blocks(one, 4) == 1
    assert block_bound(one, "leaders", 0, 4, flat=False) == 1
    assert necessary_blocks(read_data([[[0, 0], [1, 0], [2, 2]]], [[[1, 1], [2, 1], [0, 7]]]), 1) == 1
    single = read_data([[[0, 0], [1, 0]], [[2, 0], [3, 1]], [[5, 5]]], [[[1, 1]], [[2, 2]], [[3, 3]]])
    assert block_bound(single, "fewest", 1, 1, flat=False) == 1 + 4
    assert block_bound(single, "leaders", 1, 1, flat=False) == 2 + 4
    assert block_bound(single, "leaders", 1, 3, flat=False) == 1 + min(2, 1 + 1)
    assert block_bound(single, "witness", 2, 4, flat=True) == 2 + 2


def test_tokens_over_a_common_denominator() -> None:
    data = read_data([[["1/6", 0], ["1/4", 1]], [[2**40, "-1/3"]]], [[[0, 0]], [[1, 1]]])
    lattice = Lattice(data)
    assert lattice.denominator == 12
    assert lattice.points.tolist() == [[2, 0], [3, 12], [12 * 2**40, -4]]
    assert lattice.points.dtype == object
    assert lattice.starts.tolist() == [0, 2, 3]
    assert lattice.owner.tolist() == [0, 0, 1]
    assert lattice.project((2**70, 1)).tolist() == [2 * 2**70, 3 * 2**70 + 12, 12 * 2**110 - 4]
    assert np.abs(lattice.floats).max() == 1.0
    small = Lattice(read_data([[[1, 2], [3, -4]], [[5, 6]]], [[[0, 0]], [[1, 1]]]))
    assert small.points.dtype == np.int64
    assert small.project((2**60, 2**59)).tolist() == [2**61, 2**60, 2**63]  # past int64
    assert small.sums(np.array([2**61, 2**61, 1])).tolist() == [2**62, 1]
    assert small.sums(np.array([2**62, 2**62, 1])).tolist() == [2**63, 1]
    assert small.levels(q("1/2", 1)) == [[fmpq(5, 2), fmpq(-5, 2)], [fmpq(17, 2)]]
    edge = Lattice(read_data([[[2**31 - 1, 0]], [[2**31, 0]]], [[[0, 0]], [[1, 1]]]))
    assert edge.points.dtype == object


def neuron_filter(*neurons: Neuron) -> SignFilter:
    return SignFilter(Block(ONE, neurons), 2)


def asked(screen: SignFilter, middle: np.ndarray, radius: np.ndarray | None = None) -> tuple[list, np.ndarray, float]:
    """What is left to exact arithmetic, the signs, and the margin."""
    questions: list[tuple[int, Neuron]] = []

    def decide(row: int, neuron: Neuron) -> bool:
        questions.append((row, neuron))
        return False

    on, margin = screen.active(middle, np.zeros_like(middle) if radius is None else radius, decide)
    return questions, on, margin


def test_the_filter_asks_only_where_it_must() -> None:
    steep = Neuron(q(3, -2), fmpq(-1), E1)
    screen = neuron_filter(steep, Neuron(E2, fmpq(-5), E1))
    far = np.array([[1.0, 0.5], [0.0, 7.0], [1.0, 1.0 - 1e-13]])
    questions, on, margin = asked(screen, far)
    assert questions == []
    assert on.tolist() == [[True, False], [False, True], [True, False]]
    assert margin == pytest.approx(2e-13, rel=1e-2)
    near = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-16], [1e6, 1.5e6 - 0.5]])
    questions, on, margin = asked(screen, near)
    assert [row for row, neuron in questions if neuron is steep] == [0, 1, 2]
    assert margin == 4.0
    # A radius widens what is left open by what the layer makes of it, and by little more.
    token = np.array([[1.0, 0.5]])
    for size, open_ in ((0.19, 0), (0.21, 1)):
        questions, *_ = asked(neuron_filter(steep), token, np.full((1, 2), size))
        assert len(questions) == open_


def test_the_filter_knows_what_stays_off() -> None:
    for neurons in (
        (Neuron(q(2, 0), fmpq(-3), E1), Neuron(q(2, 0), fmpq(-5), E1)),
        (Neuron(q(2, 0), fmpq(-3), E1), Neuron(q(0, 1), fmpq(-9), E1)),
    ):
        screen = neuron_filter(*neurons)
        tokens = np.array([[1.0, 0.0], [1.5, 0.0], [1.25, 0.0], [2.0, 0.0], [1.5 - 1e-9, 0.0]])
        for exact in (True, False):
            index, margin = screen.possibly_active(tokens, np.zeros_like(tokens), exact=exact)
            assert index.tolist() == [1, 3]
            assert margin == pytest.approx(2e-9, rel=1e-3)
        blurred = np.full_like(tokens, 0.3)
        index, margin = screen.possibly_active(tokens, blurred, exact=False)
        assert index.tolist() == [1, 2, 3, 4]
        assert margin == 1.0
    falling = neuron_filter(Neuron(q(-2, 0), fmpq(3), E1))
    index, margin = falling.possibly_active(
        np.array([[1.0, 0.0], [1.5, 0.0], [1.75, 0.0]]), np.zeros((3, 2)), exact=True
    )
    assert (index.tolist(), margin) == ([0, 1], 0.5)


def test_weights_that_floats_round_to_nothing_are_left_to_exact_arithmetic() -> None:
    tiny = fmpq(1, 10**300)
    for neuron in (Neuron((tiny, ZERO), ZERO, E1), Neuron(E1, tiny, E1)):
        screen = neuron_filter(neuron)
        tokens = np.array([[-1.0, 0.0], [1.0, 0.0]])
        questions, *_ = asked(screen, tokens)
        assert [row for row, _ in questions] == [0, 1]
        for exact in (True, False):
            assert screen.possibly_active(tokens, np.zeros_like(tokens), exact=exact)[0].tolist() == [0, 1]


def test_affine_maps_from_the_definition() -> None:
    block = Block(fmpq(1, 2), (Neuron(q(1, 2), fmpq(3), q(5, 0)), Neuron(q(0, -1), ZERO, q(1, 7))))
    piece = affine_map(block, block.neurons, 2)
    assert piece.rows == (((0, fmpq(11, 2)), (1, fmpq(9))), ((1, fmpq(-13, 2)),))
    assert piece.shift == q(15, 0)
    assert piece.changed() == [0, 1]
    plain = affine_map(Block(ONE, ()), (), 3)
    assert plain.changed() == []
    assert plain.reads() == []
    zero = affine_map(Block(ZERO, ()), (), 2)
    assert zero.reads() == [0, 1]
    assert linear(sparse(q(0, 3, 1)), q(9, 2, 4), fmpq(1)) == 11
    assert patterns(np.zeros((0, 3), dtype=bool)) == []
    assert [rows.tolist() for _, rows in patterns(np.zeros((3, 0), dtype=bool))] == [[0, 1, 2]]


def test_stacked_weights() -> None:
    blocks = [
        Block(ZERO, (Neuron(q(1, 2), fmpq(3), q(4, 5)),), fmpq(1, 2), (OuterProduct(q(6, 0), q(0, 7)),)),
        Block(ONE, (Neuron(E1, ONE, E2), Neuron(E2, ZERO, E1)), V=(OuterProduct(E1, E1), OuterProduct(E2, q(8, 9)))),
    ]
    plain = stacked(blocks, 2)
    assert {name: a.shape for name, a in plain.items()} == {
        "eta": (2,), "U": (2, 2, 2), "b": (2, 2), "W": (2, 2, 2), "rho": (2,),
        "B_left": (2, 1, 2), "B_right": (2, 1, 2), "V_left": (2, 2, 2), "V_right": (2, 2, 2),
    }  # fmt: skip
    assert plain["W"][0].tolist() == [[4, 0], [5, 0]]
    assert plain["b"].tolist() == [[3, 0], [1, 0]]
    assert plain["B_left"][0].tolist() == [[6, 0]]
    assert plain["V_right"][1].tolist() == [[1, 0], [8, 9]]
    cold = stacked(blocks, 2, fmpq(1, 10**400))
    assert cold["B_left"][0].tolist() == [[np.inf, 0]]
    warm = stacked(blocks, 2, fmpq(3))
    assert warm["B_left"][0].tolist() == [[2, 0]]
    assert all(np.array_equal(warm[name], plain[name]) for name in plain if name != "B_left")


def test_batches_are_cut_where_memory_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardmax.interpolation.export.torch_module._MOST_SCORES", 100)
    assert _chunks([5, 5, 5, 5, 5]) == [[0, 1, 2, 3], [4]]
    assert _chunks([2, 2, 10, 3, 3]) == [[0, 1], [2], [3, 4]]
    assert _chunks([50, 1]) == [[0], [1]]
    assert _padding([2, 1, 3]).tolist() == [[0, 1, -1], [2, -1, -1], [3, 4, 5]]
    net = interpolate([[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[[1, 1]], [[2, 2]]])
    tokens = [torch.tensor(x, dtype=torch.float64) for x in ([[0, 0], [1, 0]], [[0, 0], [0, 1]])] * 20
    ends = net.to_torch()(tokens)
    assert [y.tolist() for y in ends] == [[[1, 1]] * 2, [[2, 2]] * 2] * 20


def test_advice_at_its_limits() -> None:
    net = interpolate([[[k, 0], [k, 1]] for k in range(12)], [[[k, 0]] for k in range(12)])

    def said(name: str, ratio: float, **report: object) -> str:
        return advice(replace(net, construction=name, report=replace(net.report, conditioning=ratio, **report)))

    assert "comparison" in said("paper", 1.0)
    assert said("leaders", 1e12).startswith("use construction='conditioned'")
    assert said("leaders", 1.01e12).startswith("float64 cannot resolve")
    assert "suits the data" in said("leaders", 1e7)
    assert said("leaders", 1.01e7).startswith("use construction='conditioned'")
    assert "suits the data" in said("leaders", 1.01e7, flat=True)
    assert "suits the data" in said("conditioned", 1e8)
    assert "suits the data" in said("conditioned", 1e4)
    assert "well conditioned" in said("conditioned", 9e3)
    assert "fewer attention layers" in said("witness", 10.0, cuts=9)
    assert "suits the data" in said("witness", 10.0, cuts=8)


def test_sizes_are_refused_at_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, outputs = [[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[[1, 1]], [[2, 2]]]
    monkeypatch.setattr("hardmax.interpolation.data._MOST_NUMBERS", 8)
    data = read_data(inputs, outputs)
    with pytest.raises(InputError, match="more than 8 numbers"):
        read_data([[[0, 0], [1, 0]], [[0, 0], [0, 1], [5, 5]]], outputs)
    weights = block_bound(data, "leaders", 1, 4, flat=False) * 4 * 5
    monkeypatch.setattr("hardmax.interpolation.constructions.interpolate._MOST_WEIGHTS", weights)
    assert interpolate(inputs, outputs).certify().proved
    monkeypatch.setattr("hardmax.interpolation.constructions.interpolate._MOST_WEIGHTS", weights - 1)
    with pytest.raises(InputError, match=f"would need up to {weights} weights"):
        interpolate(inputs, outputs)
