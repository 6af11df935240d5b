"""Every construction, on every adversarial family and on generated data: exact, within its counts, within its width."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.interpolation import ExactTransformer, interpolate
from hardmax.interpolation.arithmetic import reference
from hardmax.interpolation.arithmetic.numbers import as_fraction
from helpers import examples
from interpolation.families import FAMILIES, make

CONSTRUCTIONS = ("leaders", "fewest", "witness", "conditioned", "paper")


def literally_right(net: ExactTransformer) -> bool:
    """T(X) = Y by the independent evaluator with plain fractions."""
    for x, y in zip(net.data.inputs, net.data.outputs, strict=True):
        tokens = [[as_fraction(c) for c in token] for token in x]
        targets = [tuple(as_fraction(c) for c in target) for target in y]
        reached = reference.run(net.blocks, tokens)
        if (reached if net.data.token_level else set(reached)) != (targets if net.data.token_level else set(targets)):
            return False
    return True


def assert_exact(net: ExactTransformer) -> None:
    certificate = net.certify()
    assert certificate.proved, str(certificate)
    counts = net.counts
    assert counts.blocks <= counts.formula <= counts.worst_case
    assert max(len(block.neurons) for block in net.blocks) <= net.width
    if net.width == 4:
        assert counts.worst_case <= counts.published


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_adversarial_families(family: str, construction: str) -> None:
    for seed in range(4):
        inputs, outputs = make(family, seed, d=2 + seed % 2)
        if construction == "paper" and sum(map(len, outputs)) > 60:
            inputs, outputs = inputs[:8], outputs[:8]
        flat = bool(seed % 2)
        width = (4, 2, 1, 16)[(seed + len(family)) % 4]
        assert_exact(interpolate(inputs, outputs, construction=construction, flat=flat, width=width))
        if seed >= 2:  # any number of targets, and one for each token
            assert_exact(interpolate(inputs, outputs, construction=construction))


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("width", [1, 2, 3, 16, 1000])
@pytest.mark.parametrize("flat", [False, True])
def test_widths(construction: str, width: int, flat: bool) -> None:
    for family, seed in (("grid", 2), ("symmetric", 3), ("flip", 0)):
        inputs, outputs = make(family, seed, d=2)
        assert_exact(interpolate(inputs, outputs, construction=construction, flat=flat, width=width))


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("d", [2, 5, 16])
def test_literal_evaluator_agrees(construction: str, d: int) -> None:
    for family, seed in (("grid", 1), ("subsets", 2), ("symmetric", 0), ("rationals", 3)):
        inputs, outputs = make(family, seed, d)
        few = 6 if d < 16 else 3
        net = interpolate(inputs[:few], outputs[:few], construction=construction)
        assert net.certify().proved
        assert literally_right(net)


# Drawing from lists is much faster than drawing fractions.
FRACTIONS = sorted({Fraction(n, d) for d in range(1, 7) for n in range(-2 * d, 2 * d + 1)}, key=abs)
coordinate = st.sampled_from([0, 1, -1, 2, -2, 3, -3, *FRACTIONS, "3/8", "-0.125", 0.1])


@st.composite
def data_sets(draw: st.DrawFn) -> tuple[list, list]:
    """Sets that overlap, contain each other, share means; targets shared or not, from one to all."""
    d = draw(st.integers(2, 4))
    token = st.tuples(*[coordinate] * d)
    pool = draw(st.lists(token, min_size=2, max_size=7, unique_by=lambda x: tuple(map(Fraction, x))))
    chosen = draw(
        st.lists(st.sets(st.integers(0, len(pool) - 1), min_size=1), min_size=1, max_size=6, unique_by=frozenset)
    )
    inputs = [[pool[i] for i in sorted(x)] for x in chosen]
    target = st.tuples(*[st.integers(-2, 2)] * d)
    outputs = [draw(st.lists(target, min_size=1, max_size=len(x), unique=True)) for x in inputs]
    return inputs, outputs


@settings(deadline=None, max_examples=examples(60))
@given(data_sets(), st.sampled_from(CONSTRUCTIONS), st.booleans(), st.sampled_from([1, 2, 4, 16]))
def test_any_data(data: tuple[list, list], construction: str, flat: bool, width: int) -> None:
    net = interpolate(*data, construction=construction, flat=flat, width=width)
    assert_exact(net)
    assert literally_right(net)


@settings(deadline=None, max_examples=examples(25))
@given(data_sets(), st.sampled_from(CONSTRUCTIONS[:4]), st.integers(0, 2**31))
def test_token_level(data: tuple[list, list], construction: str, seed: int) -> None:
    inputs = data[0]
    d = len(inputs[0][0])
    outputs = [[[(seed >> (i + k + j)) % 5 - 2 for k in range(d)] for i in range(len(x))] for j, x in enumerate(inputs)]
    net = interpolate(inputs, outputs, construction=construction, token_level=True)
    assert_exact(net)
    assert literally_right(net)


@pytest.mark.parametrize("family", ["grid", "chain", "symmetric", "flip", "windows"])
@pytest.mark.parametrize("construction", ["leaders", "witness"])
def test_leaders_do_not_care_about_repeated_tokens(family: str, construction: str) -> None:
    inputs, outputs = make(family, 1, d=2)
    net = interpolate(inputs, outputs, construction=construction)
    for x, y in zip(inputs, outputs, strict=True):
        assert set(reference.run(net.blocks, x + x[:1] + x[-1:])) == set(map(tuple, y))


def test_shared_targets_of_neighbours_cost_one_interval() -> None:
    inputs = [[[k, 0], [k, 1]] for k in range(40)]
    outputs = [[[0, 0]]] * 20 + [[[1, 0]]] * 20
    net = interpolate(inputs, outputs, construction="fewest")
    assert net.certify().proved
    assert len(net.blocks) < net.counts.formula / 2


def test_two_blocks_suffice_for_wide_layers() -> None:
    inputs, outputs = make("chain", 2, d=3)
    net = interpolate(inputs, outputs, construction="fewest", width=1000)
    assert len(net.blocks) == net.counts.necessary_blocks == 2


def test_one_sequence_meets_the_rank_bound_within_one_block() -> None:
    inputs = [[[k, *[0] * 20] for k in range(20)]]
    outputs = [[[int(i == k) for i in range(21)] for k in range(20)]]
    net = interpolate(inputs, outputs)
    assert net.certify().proved
    assert len(net.blocks) == 6


def test_flip_needs_every_knot() -> None:
    inputs, outputs = make("flip", 0, d=2)
    assert interpolate(inputs, outputs, construction="fewest").report.cuts == len(inputs) - 1


def test_the_paper_route_has_its_own_count() -> None:
    inputs, outputs = make("windows", 2, d=2)
    net = interpolate(inputs, outputs, construction="paper")
    assert len(net.blocks) == 2 * net.data.targets + len(net.data) - 1


def test_the_paper_route_sends_from_beyond_all_first_coordinates() -> None:
    inputs = [[[0, 0], [1, 0]], [[0, 0], [2, 1]], [[1, 0], [2, 1]]]
    # Tokens are sent one group after the other: a target must not lie where another group still waits. The tokens
    # themselves are at most at 9, so groups that waited right behind them would be at 10, 11 and 12.
    for place in (10, 11, 12):
        net = interpolate(inputs, [[[place, 0]], [[40, 0]], [[-5, 0]]], construction="paper")
        assert_exact(net)
        assert literally_right(net)
