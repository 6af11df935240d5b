from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

import hardmax as hm
from helpers import SHEARED


def test_matches_the_map_by_hand() -> None:
    # (1, 0) and (3, 0) listen to (3, 0); (0, -2) listens to itself.
    moved = hm.HardmaxLayer(alpha=1.0)([[1.0, 0.0], [3.0, 0.0], [0.0, -2.0]])
    np.testing.assert_array_equal(moved, [[2.0, 0.0], [3.0, 0.0], [0.0, -2.0]])


def test_a_tie_shares_the_weight() -> None:
    tokens = [[0.5, 0.0], [1.0, 1.0], [1.0, -1.0]]
    np.testing.assert_array_equal(hm.HardmaxLayer(alpha=1.0)(tokens)[0], [0.75, 0.0])
    weighted = hm.HardmaxLayer(alpha=1.0)(tokens, weights=[1.0, 3.0, 1.0])
    np.testing.assert_array_equal(weighted[0], [0.75, 0.25])


def test_the_zero_token_hears_everybody() -> None:
    tokens = [[0.0, 0.0], [2.0, 0.0], [0.0, 4.0]]
    np.testing.assert_allclose(hm.HardmaxLayer(alpha=1.0)(tokens)[0], [1 / 3, 2 / 3])


def test_query_and_key_matrices_stand_for_their_product() -> None:
    rng = np.random.default_rng(0)
    Q, K, tokens = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), rng.normal(size=(9, 2))
    split = hm.HardmaxLayer(Q=Q, K=K)(tokens)
    np.testing.assert_array_equal(split, hm.HardmaxLayer(A=K.T @ Q)(tokens))


def test_exact_mode_tells_apart_what_the_tolerance_cannot() -> None:
    # The second point is better for the first token by 1e-17, far below one rounding error of the scores.
    tokens = np.array([[1.0, 0.0], [2.0, 1.0], [2.0 + 2**-51, -1.0]])
    assert hm.choose(tokens, hm.HardmaxLayer())[0].tolist() == [1, 2]
    assert hm.choose(tokens, hm.HardmaxLayer(tolerance="exact"))[0].tolist() == [2]


def test_exact_mode_agrees_with_tolerance_where_nothing_is_close() -> None:
    tokens = np.random.default_rng(1).normal(size=(30, 3))
    exact, rounded = hm.choose(tokens, hm.HardmaxLayer(tolerance="exact")), hm.choose(tokens, hm.HardmaxLayer())
    assert exact.first.tolist() == rounded.first.tolist()
    np.testing.assert_allclose(exact.best, rounded.best, rtol=1e-13)


def test_gradients_flow_through_what_is_heard() -> None:
    tokens = torch.tensor([[0.5, 0.1], [1.0, 0.0], [-1.0, 0.3]], dtype=torch.float64, requires_grad=True)
    hm.HardmaxLayer(alpha=1.0).step(tokens, torch.ones(3, dtype=torch.float64))[0].sum().backward()
    np.testing.assert_array_equal(tokens.grad, [[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])


def test_softmax_approaches_hardmax_as_beta_grows() -> None:
    tokens = np.random.default_rng(2).normal(size=(20, 3))
    hard = hm.HardmaxLayer(alpha=1.0)(tokens)
    gaps = [np.abs(hm.SoftmaxLayer(alpha=1.0, beta=beta)(tokens) - hard).max() for beta in (1.0, 100.0, 1e4, 1e8)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-12


def test_softmax_does_not_overflow() -> None:
    tokens = np.random.default_rng(2).normal(size=(20, 3)) * 1e3
    for beta in (1e-3, 1.0, 1e8, 1e200):
        assert np.isfinite(hm.SoftmaxLayer(beta=beta)(tokens)).all()
    with pytest.raises(hm.InputError, match=r"tokens must keep beta <A z_i, z_j> within float64.*rescale"):
        hm.SoftmaxLayer(beta=1.0)(tokens * 1e200)


def test_softmax_of_many_tokens_is_that_of_the_formula() -> None:
    tokens = np.random.default_rng(3).normal(size=(3000, 2))
    logits = 2.0 * tokens @ np.array(SHEARED).T @ tokens.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = (tokens + 0.5 * (p / p.sum(axis=1, keepdims=True)) @ tokens) / 1.5
    np.testing.assert_allclose(hm.SoftmaxLayer(alpha=0.5, A=SHEARED, beta=2.0)(tokens), expected, atol=1e-12)


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e154, 5e-160])
def test_tokens_of_any_size_are_answered_alike(size: float) -> None:
    tokens = np.random.default_rng(4).normal(size=(12, 2))
    layer = hm.HardmaxLayer(alpha=0.5, A=SHEARED)
    np.testing.assert_allclose(layer(tokens * size) / size, layer(tokens), rtol=1e-12)
    np.testing.assert_array_equal(hm.HardmaxLayer(A=np.array(SHEARED) * size)(tokens), layer(tokens))


def test_a_range_beyond_float64_is_refused() -> None:
    with pytest.raises(hm.InputError, match=r"tokens must not range over more than 288 orders of magnitude, got sizes"):
        hm.HardmaxLayer()([[1e300, 0.0], [1e-300, 1.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "alpha must be positive and finite, got 0.0: pass alpha > 0"),
        ({"alpha": -1}, "alpha must be positive"),
        ({"alpha": float("nan")}, "alpha must be positive"),
        ({"alpha": float("inf")}, "alpha must be positive"),
        ({"alpha": "half"}, "alpha must be a number, got 'half'"),
        ({"A": [[1.0, 2.0]]}, r"A must be a square matrix, got shape \(1, 2\)"),
        ({"A": [[1.0, np.inf], [0.0, 1.0]]}, r"A must be finite, got inf at index \(0, 1\)"),
        ({"Q": [[1.0, 0.0]]}, "K must come together with Q"),
        ({"A": [[1.0]], "Q": [[1.0]], "K": [[1.0]]}, "A must not be given together with Q and K"),
        ({"Q": [[1.0, 0.0]], "K": [[1.0]]}, "Q, K must be matrices of the same shape"),
        ({"tolerance": -1e-9}, r"tolerance must lie in \[0, 0.1\)"),
        ({"tolerance": "near"}, "tolerance must be a number"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        hm.HardmaxLayer(**arguments)


def test_a_matrix_of_another_dimension_hints_at_swapped_axes() -> None:
    with pytest.raises(hm.InputError, match=r"A must be 3 x 3 to match the tokens, got shape \(2, 2\).*transpose"):
        hm.HardmaxLayer(A=SHEARED)(np.ones((5, 3)))


def test_exact_mode_is_for_few_tokens() -> None:
    with pytest.raises(hm.InputError, match="tokens must be at most 2000 with"):
        hm.HardmaxLayer(tolerance="exact")(np.random.default_rng(0).normal(size=(2001, 2)))


def test_repeated_tokens_do_not_blow_up() -> None:
    tokens = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], 100_000, axis=0)
    moved = hm.HardmaxLayer(alpha=Fraction(1, 2))(tokens)
    np.testing.assert_allclose(moved[-1], [1 / 9, 1 / 9])
    np.testing.assert_array_equal(moved[0], [1.0, 0.0])


def test_other_layers_refuse_bad_arguments() -> None:
    with pytest.raises(hm.InputError, match="beta must be finite and not negative.*HardmaxLayer"):
        hm.SoftmaxLayer(beta=float("inf"))
    with pytest.raises(hm.InputError, match=r"U, b, W must have shapes \(h, d\), \(h,\), \(d, h\)"):
        hm.FeedForwardLayer(U=[[1.0, 0.0]], b=[0.0, 1.0], W=[[1.0], [0.0]])
    with pytest.raises(hm.InputError, match="U must be finite"):
        hm.FeedForwardLayer(U=[[np.nan, 0.0]], b=[0.0], W=[[1.0], [0.0]])
    with pytest.raises(hm.InputError, match="tokens must have 2 coordinates to match U"):
        hm.FeedForwardLayer(U=[[1.0, 0.0]], b=[0.0], W=[[1.0], [0.0]])([[1.0, 2.0, 3.0]])
    with pytest.raises(hm.InputError, match="layers must be one or more layers"):
        hm.Block()


def test_defaults_are_those_of_the_signature() -> None:
    layer = hm.SoftmaxLayer()
    assert (layer.alpha, layer.beta) == (0.5, 1.0)
    assert hm.HardmaxLayer().alpha == 0.5
