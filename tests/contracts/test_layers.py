"""The contract of every layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import hardmax as hm
from helpers import PLANE_LAYERS

ids = [str(layer) for layer in PLANE_LAYERS]
pytestmark = pytest.mark.parametrize("layer", PLANE_LAYERS, ids=ids)


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(7, 2))


def test_keeps_the_kind_and_dtype_of_its_input(layer: hm.AbstractLayer, tokens: np.ndarray) -> None:
    for dtype in (np.float32, np.float64):
        array = layer(tokens.astype(dtype))
        assert isinstance(array, np.ndarray)
        assert array.dtype == dtype
        tensor = layer(torch.from_numpy(tokens.astype(dtype)))
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_allclose(tensor.numpy(), array)


def test_is_pure(layer: hm.AbstractLayer, tokens: np.ndarray) -> None:
    before = tokens.copy()
    first, second = layer(tokens), layer(tokens)
    np.testing.assert_array_equal(tokens, before)
    np.testing.assert_array_equal(first, second)


def test_is_blind_to_the_order_of_tokens(layer: hm.AbstractLayer, tokens: np.ndarray) -> None:
    order = np.random.default_rng(0).permutation(len(tokens))
    np.testing.assert_allclose(layer(tokens[order]), layer(tokens)[order], atol=1e-12)


def test_runs_a_batch_as_its_entries(layer: hm.AbstractLayer, tokens: np.ndarray) -> None:
    batch = np.stack([tokens, tokens[::-1] * 2, tokens + 1]).reshape(3, 1, 7, 2)
    moved = layer(batch)
    assert moved.shape == batch.shape
    for one, result in zip(batch, moved, strict=True):
        np.testing.assert_allclose(result[0], layer(one[0]), atol=1e-14)


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 1, 2), (0, 0, 5, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_empty_batch_stays_empty(layer: hm.AbstractLayer, shape: tuple[int, ...], dtype: type) -> None:
    moved = layer(np.zeros(shape, dtype=dtype))
    assert moved.shape == shape
    assert moved.dtype == dtype
    tensor = layer(torch.zeros(shape), torch.ones(shape[-2]))
    assert isinstance(tensor, torch.Tensor)
    assert tensor.shape == shape
    with pytest.raises(hm.InputError, match="tokens must not be empty"):
        layer(np.zeros((*shape[:-2], 0, 2)))


def test_an_empty_batch_is_checked_like_any_other(layer: hm.AbstractLayer) -> None:
    if getattr(layer, "A", None) is not None or isinstance(layer, hm.FeedForwardLayer):
        with pytest.raises(hm.InputError, match="to match"):
            layer(np.zeros((0, 4, 7)))


def test_a_weight_counts_like_copies(layer: hm.AbstractLayer, tokens: np.ndarray) -> None:
    weights = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0])
    copies = np.repeat(np.arange(7), weights.astype(int))
    np.testing.assert_allclose(layer(tokens[copies]), layer(tokens, weights)[copies], atol=1e-12)


def test_refuses_what_is_not_tokens(layer: hm.AbstractLayer, tokens: np.ndarray) -> None:
    broken = tokens.copy()
    broken[3, 1] = np.nan
    with pytest.raises(hm.InputError, match=r"tokens must be finite, got nan at index \(3, 1\): remove"):
        layer(broken)
    with pytest.raises(hm.InputError, match=r"tokens must have shape .*, got shape \(7,\): n points on a line"):
        layer(tokens[:, 0])
    with pytest.raises(hm.InputError, match="tokens must not be empty"):
        layer(tokens[:0])
    with pytest.raises(hm.InputError, match="tokens must be an array of real numbers"):
        layer([[1.0, 2.0], [3.0]])


def test_simulate_repeats_it(layer: hm.AbstractLayer, tokens: np.ndarray) -> None:
    run = hm.simulate(tokens, layer, depth=4)
    state = tokens
    assert run.layers.tolist() == [0, 1, 2, 3, 4]
    for kept in run.tokens:
        np.testing.assert_allclose(kept, state, atol=1e-9)
        state = layer(state)
