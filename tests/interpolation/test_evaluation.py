"""The fast exact evaluator against the literal one, on random networks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.interpolation import Block, Neuron, OuterProduct
from hardmax.interpolation.arithmetic import reference
from hardmax.interpolation.arithmetic.affine import SignFilter, affine_map, patterns
from hardmax.interpolation.arithmetic.exact_evaluation import evaluate
from hardmax.interpolation.arithmetic.numbers import as_fraction, to_float
from helpers import examples

# Drawing from a list is much faster than drawing a fraction: nearly all of the time goes into drawing networks.
SMALL = sorted(
    {Fraction(n) for n in range(-3, 4)} | {Fraction(n, d) for d in range(1, 9) for n in range(-2 * d, 2 * d + 1)},
    key=abs,
)
small = st.sampled_from([fmpq(x.numerator, x.denominator) for x in SMALL])
wild = small | st.sampled_from([fmpq(10**30), fmpq(1, 10**30), fmpq(-1, 3 * 10**12), fmpq(10**320), fmpq(1, 10**330)])


def vectors(d: int, entry: st.SearchStrategy = small) -> st.SearchStrategy:
    return st.tuples(*[entry] * d)


@st.composite
def networks(draw: st.DrawFn, entry: st.SearchStrategy = small) -> tuple[list[Block], list[list[tuple]]]:
    d = draw(st.integers(2, 3))
    vector = vectors(d, entry)
    term = st.builds(OuterProduct, vector, vector)
    block = st.builds(
        Block,
        st.sampled_from([fmpq(0), fmpq(1), fmpq(1, 2)]),
        st.lists(st.builds(Neuron, vector, entry, vector), max_size=4).map(tuple),
        st.sampled_from([fmpq(0), fmpq(1), fmpq(-1, 3)]),
        st.lists(term, max_size=2).map(tuple),
        st.lists(term, max_size=2).map(tuple),
    )
    blocks = draw(st.lists(block, min_size=1, max_size=3))
    sequences = draw(st.lists(st.lists(vector, min_size=1, max_size=4), min_size=1, max_size=3))
    return blocks, sequences


def _agree(blocks: list[Block], sequences: list[list[tuple]]) -> None:
    moved = evaluate(blocks, sequences).sequences()
    for x, y in zip(sequences, moved, strict=True):
        expected = reference.run(blocks, [[as_fraction(c) for c in token] for token in x])
        assert [tuple(as_fraction(c) for c in token) for token in y] == expected


@settings(deadline=None, max_examples=examples(150))
@given(networks())
def test_any_network(case: tuple[list[Block], list[list[tuple]]]) -> None:
    _agree(*case)


@settings(deadline=None, max_examples=examples(60))
@given(networks(wild))
def test_numbers_that_floats_cannot_hold(case: tuple[list[Block], list[list[tuple]]]) -> None:
    _agree(*case)


def test_a_tiny_number_keeps_its_sign_however_long_it_is() -> None:
    long = 10**400 + 1  # no float holds the numerator alone
    assert 0 < to_float(fmpq(long, 10**800)) < 1e-300
    assert -1e-300 < to_float(fmpq(-long, 10**800)) < 0


def test_a_sign_that_float64_gets_wrong_is_decided_exactly() -> None:
    # In float64 0.1 * 3 - 0.3 is positive; with rationals it is zero, and a hair less than zero here.
    third = fmpq(3, 10) + fmpq(1, 10**40)
    block = Block(fmpq(1), (Neuron((fmpq(3), fmpq(0)), -third, (fmpq(0), fmpq(1))),))
    state = evaluate([block], [[(fmpq(1, 10), fmpq(0))]])
    assert state.rows[0] == [fmpq(1, 10), fmpq(0)]


def test_filter_never_contradicts_exact_signs() -> None:
    rng = np.random.default_rng(0)
    tokens = [[Fraction(int(a), 7**9) for a in row] for row in rng.integers(-(7**9), 7**9, size=(300, 3))]
    block = Block(
        fmpq(1),
        tuple(Neuron(tuple(fmpq(int(c)) for c in u), fmpq(0), (fmpq(1),) * 3) for u in rng.integers(-9, 9, (4, 3))),
    )
    middle = np.array([[float(c) for c in x] for x in tokens])

    def decide(row: int, neuron: Neuron) -> bool:
        return sum(as_fraction(u) * x for u, x in zip(neuron.reading, tokens[row], strict=True)) > 0

    on, _ = SignFilter(block, 3).active(middle, np.zeros_like(middle), decide)
    for i, x in enumerate(tokens):
        for r, neuron in enumerate(block.neurons):
            assert on[i, r] == (sum(as_fraction(u) * c for u, c in zip(neuron.reading, x, strict=True)) > 0)


def test_patterns_cover_every_row_once() -> None:
    on = np.random.default_rng(1).random((200, 11)) < 0.5
    seen = np.zeros(200, dtype=int)
    for pattern, rows in patterns(on):
        seen[rows] += 1
        assert (on[rows] == pattern).all()
    assert (seen == 1).all()


def test_a_hat_far_to_the_right_is_exactly_the_identity() -> None:
    e1, w = (fmpq(1), fmpq(0)), (fmpq(1, 3), fmpq(5, 7))
    hat = tuple(Neuron(e1, fmpq(-b), tuple(k * c for c in w)) for b, k in ((0, 1), (1, -2), (2, 1)))
    assert affine_map(Block(fmpq(1), hat), hat, 2).changed() == []
