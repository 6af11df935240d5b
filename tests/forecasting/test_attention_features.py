"""The features of attention against a plain loop written from the formula, and gradients against autograd."""

import math

import numpy as np
import pytest
import torch

from hardmax.forecasting.features.lag_network import NAMES, Kind, LagNetwork, features_and_gradient, new_network
from hardmax.forecasting.models.published import published_features
from hardmax.forecasting.search.attention_training import Projection, train

_KINDS: list[Kind] = ["attention", "uniform", "mlp", "shared"]


def _by_loops(network: LagNetwork, window: np.ndarray) -> np.ndarray:
    """One window ``(lags, channels)``, oldest first, line by line."""
    w = network.weights
    if network.kind == "mlp":
        flat = window.reshape(-1)
        return np.array(
            [
                math.tanh(sum(flat[i] * w["hidden"][i, j] for i in range(len(flat))) + w["bias"][j])
                for j in range(len(w["bias"]))
            ]
        )
    embedded = [z @ w["embed"] + p for z, p in zip(window, w["positions"], strict=True)]
    latest = embedded[-1]
    count = len(window)
    if network.kind == "uniform":
        shares = [1 / count] * count
    else:
        scores = [float((latest @ w["queries"]) @ (e @ w["keys"])) / math.sqrt(len(e)) for e in embedded]
        total = sum(math.exp(score) for score in scores)
        shares = [math.exp(score) / total for score in scores]
    state = latest.copy()
    for i in range(count):
        if network.kind == "shared":
            state = state + shares[i] * (embedded[i] @ w["values"])
        else:
            values = w["values"].reshape(count, network.channels, -1)[i]
            state = state + count * shares[i] * (window[i] @ values)
    return np.concatenate([np.tanh(state @ w["hidden"] + w["bias"]), state])


@pytest.mark.parametrize("kind", _KINDS)
def test_features_are_those_of_a_plain_loop(kind: Kind) -> None:
    rng = np.random.default_rng(3)
    network = new_network(kind, 5, 2, rng, width=4, hidden=6, start=0.5)
    windows = rng.standard_normal((7, 5, 2))
    found = network(windows.reshape(7, -1))
    assert found.shape == (7, network.size)
    np.testing.assert_allclose(found, [_by_loops(network, window) for window in windows], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["attention", "shared"])
def test_attention_adds_up_to_one(kind: Kind) -> None:
    rng = np.random.default_rng(4)
    network = new_network(kind, 6, 3, rng)
    shares = network.attention(rng.standard_normal((20, 18)))
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


def test_the_published_layer_is_the_same_with_gradients() -> None:
    rng = np.random.default_rng(5)
    network = new_network("shared", 4, 2, rng, width=3, hidden=5)
    tokens = rng.standard_normal((9, 8))
    part = {name: torch.from_numpy(value) for name, value in network.weights.items()}
    np.testing.assert_allclose(
        published_features(network, part, torch.from_numpy(tokens)).numpy(), network(tokens), rtol=1e-12, atol=1e-13
    )


def _torch_features(network: LagNetwork, part: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    if network.kind == "mlp":
        return torch.tanh(tokens @ part["hidden"] + part["bias"])
    shaped = tokens.reshape(len(tokens), network.lags, network.channels)
    embedded = shaped @ part["embed"] + part["positions"]
    latest = embedded[:, -1]
    shares = torch.full(shaped.shape[:2], 1.0 / network.lags, dtype=tokens.dtype)
    if network.kind == "attention":
        scores = ((embedded @ part["keys"]) * (latest @ part["queries"])[:, None]).sum(-1)
        shares = torch.softmax(scores / math.sqrt(embedded.shape[2]), dim=1)
    weighted = (shaped * shares[:, :, None] * network.lags).reshape(len(tokens), -1)
    state = latest + weighted @ part["values"]
    if not network.feed_forward:
        return state
    return torch.cat([torch.tanh(state @ part["hidden"] + part["bias"]), state], dim=1)


@pytest.mark.parametrize("kind", ["attention", "uniform", "mlp"])
@pytest.mark.parametrize("feed_forward", [True, False])
def test_gradients_are_those_of_autograd(kind: Kind, feed_forward: bool) -> None:
    rng = np.random.default_rng(6)
    network = new_network(kind, 4, 2, rng, width=3, hidden=5, feed_forward=feed_forward)
    tokens = rng.standard_normal((30, 8))
    features, pull_back = features_and_gradient(network, tokens)
    np.testing.assert_allclose(features, network(tokens), rtol=1e-12, atol=1e-13)
    weights = rng.standard_normal(features.shape)
    found = pull_back(weights)
    part = {name: torch.tensor(value, requires_grad=True) for name, value in network.weights.items()}
    (_torch_features(network, part, torch.from_numpy(tokens)) * torch.from_numpy(weights)).sum().backward()
    for name in NAMES[kind]:
        gradient = part[name].grad
        expected = np.zeros_like(found[name]) if gradient is None else gradient.numpy()
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["attention", "uniform", "mlp"])
def test_the_projected_loss_is_that_of_a_joint_least_squares(kind: Kind) -> None:
    rng = np.random.default_rng(7)
    tokens = rng.standard_normal((200, 6))
    base = np.concatenate([np.ones((200, 1)), tokens], axis=1)
    targets = np.stack([tokens[:, 0] * tokens[:, 3], np.sin(tokens[:, 1])], axis=1)
    network = new_network(kind, 3, 2, rng, width=3, hidden=4, start=0.4)
    loss = Projection(network, tokens, base, targets)
    value, gradient = loss(loss.start)
    alone = targets - base @ np.linalg.lstsq(base, targets, rcond=None)[0]
    both = np.concatenate([base, network(tokens)], axis=1)
    left = (targets - both @ np.linalg.lstsq(both, targets, rcond=None)[0]) / alone.std(axis=0)
    assert value == pytest.approx(math.log(float((left**2).mean())), abs=1e-6)
    direction = rng.standard_normal(len(gradient))
    step = 1e-6
    slope = (loss(loss.start + step * direction)[0] - loss(loss.start - step * direction)[0]) / (2 * step)
    assert float(gradient @ direction) == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_training_explains_what_lags_alone_cannot() -> None:
    rng = np.random.default_rng(8)
    tokens = rng.standard_normal((600, 4))
    base = np.concatenate([np.ones((600, 1)), tokens], axis=1)
    targets = np.tanh(tokens[:, :1] * tokens[:, 2:3])
    found = train(new_network("attention", 4, 1, rng), tokens, base, targets, iterations=60)
    assert found.explained > 0.9


def test_training_leaves_an_exact_base_alone() -> None:
    rng = np.random.default_rng(9)
    tokens = rng.standard_normal((100, 4))
    network = new_network("attention", 4, 1, rng)
    found = train(network, tokens, tokens, tokens[:, :1] * 2.0, iterations=5)
    assert found.network is network
    assert found.explained == 0.0
