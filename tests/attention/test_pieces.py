"""The small pieces under a layer: distinct points, scaling by powers of two, rational choice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.attention import reference
from hardmax.attention.normal_form import distinct, scale, scaled_down
from hardmax.attention.rational import as_float, exact_choice, rational

small = st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=9)


@settings(deadline=None, max_examples=100)
@given(small)
def test_distinct_points_in_order_of_appearance(rows: list[list[int]]) -> None:
    tokens = torch.tensor(rows, dtype=torch.float64)
    found = distinct(tokens, torch.ones(len(rows), dtype=torch.float64))
    seen = list(dict.fromkeys(map(tuple, rows)))
    assert [tuple(p) for p in found.points.tolist()] == seen
    assert found.first.tolist() == [rows.index(list(p)) for p in seen]
    assert found.weights.tolist() == [rows.count(list(p)) for p in seen]
    assert torch.equal(found.expand(found.points), tokens)


def test_negative_zero_is_zero() -> None:
    found = distinct(torch.tensor([[0.0, 1.0], [-0.0, 1.0]], dtype=torch.float64), torch.ones(2, dtype=torch.float64))
    assert len(found.points) == 1


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=5))
def test_scaling_down_is_undone_exactly(values: list[float]) -> None:
    tensor = torch.tensor([values], dtype=torch.float64)
    scaled, exponent = scaled_down("tokens", tensor)
    assert float(scaled.abs().max()) <= 1
    assert torch.equal(scale(scaled, exponent), tensor)


@settings(deadline=None, max_examples=60)
@given(small, st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=2, max_size=2))
def test_rational_choice_is_that_of_the_plain_loops(rows: list[list[int]], matrix: list[list[int]]) -> None:
    choice = exact_choice(torch.tensor(matrix, dtype=torch.float64), torch.tensor(rows, dtype=torch.float64))
    for i in range(len(rows)):
        expected = reference.attended(matrix, rows, i)
        if bool(choice.everyone[i]):
            assert expected == list(range(len(rows)))
            with pytest.raises(LookupError, match="zero"):
                choice[i]
        else:
            assert choice[i].tolist() == expected


def test_rationals_are_the_numbers_themselves() -> None:
    assert rational(0.1) == rational(Fraction(0.1))
    assert rational(0.1) != rational(Fraction(1, 10))
    assert as_float(rational(Fraction(1, 3))) == 1 / 3


def test_fractions_are_tokens_too() -> None:
    limit = hm.equilibrium([[Fraction(1, 2), 1], [Fraction(-1, 4), 0]])
    np.testing.assert_array_equal(limit.positions, [[0.5, 1.0], [-0.25, 0.0]])
    with pytest.raises(hm.InputError, match="tokens must be an array of real numbers"):
        hm.equilibrium([["a", "b"]])
    with pytest.raises(hm.InputError, match="tokens must hold real numbers, got dtype torch.complex64"):
        hm.equilibrium(torch.ones(2, 2, dtype=torch.complex64))
