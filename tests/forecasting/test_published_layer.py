"""The published layer that carries TD-DMD: its order in eps against exact arithmetic, and its heads."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import torch

from hardmax.errors import InputError
from hardmax.forecasting import PublishedLayer, TimeDelayedDMD, published_layer_from_td_dmd
from hardmax.forecasting.features.lag_network import LagNetwork, new_network
from hardmax.forecasting.models.layer_training import ProjectedLoss, with_random_units
from hardmax.forecasting.models.published import published_features
from hardmax.forecasting.models.td_dmd_layer import (
    MOST_ORDER,
    carried_td_dmd,
    layer_features,
    layer_network,
    linear_operator,
    tanh_series,
)
from hardmax.forecasting.rollout import Member


def _exact(network: LagNetwork, readout: np.ndarray, window: np.ndarray) -> list[mpmath.mpf]:
    """Prediction of the layer for one window (lags, channels) in plain loops with many digits."""
    w = {
        name: [[mpmath.mpf(float(x)) for x in row] for row in np.atleast_2d(part)]
        for name, part in network.weights.items()
    }
    width, heads = len(w["embed"][0]), network.heads
    size = width // heads
    embedded = [
        [
            sum(mpmath.mpf(float(z[c])) * w["embed"][c][d] for c in range(len(z))) + w["positions"][i][d]
            for d in range(width)
        ]
        for i, z in enumerate(window)
    ]
    state = list(embedded[-1])
    for head in range(heads):
        columns = range(head * size, (head + 1) * size)
        query = [sum(embedded[-1][d] * w["queries"][d][k] for d in range(width)) for k in columns]
        scores = []
        for e in embedded:
            key = [sum(e[d] * w["keys"][d][k] for d in range(width)) for k in columns]
            scores.append(sum(q * k for q, k in zip(query, key, strict=True)) / mpmath.sqrt(size))
        total = sum(mpmath.exp(score) for score in scores)
        shares = [mpmath.exp(score) / total for score in scores]
        pooled = [sum(a * e[d] for a, e in zip(shares, embedded, strict=True)) for d in range(width)]
        for d in range(width):
            state[d] += sum(pooled[k] * w["values"][head * width + k][d] for k in range(width))
    units = [
        mpmath.tanh(sum(state[d] * w["hidden"][d][k] for d in range(width)) + w["bias"][0][k])
        for k in range(len(w["bias"][0]))
    ]
    features = [mpmath.mpf(1), *units, *state]
    return [sum(f * mpmath.mpf(float(b)) for f, b in zip(features, column, strict=True)) for column in readout.T]


def _problem(channels: int, window: int, outputs: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((outputs, window, channels)),
        rng.standard_normal(outputs),
        rng.standard_normal((30, window, channels)),
    )


def _predict(member: Member, windows: np.ndarray) -> np.ndarray:
    return member.features(windows.reshape(len(windows), -1)) @ member.readouts[0]


@pytest.mark.parametrize("order", range(1, MOST_ORDER + 1))
@pytest.mark.parametrize(("channels", "window", "outputs"), [(1, 5, 1), (3, 4, 2)])
def test_the_error_has_the_promised_order(channels: int, window: int, outputs: int, order: int) -> None:
    operator, offset, windows = _problem(channels, window, outputs, order)
    truth = offset + np.einsum("opc,npc->no", operator, windows)
    scales = np.array([0.2, 0.1, 0.05]) if order > 2 else np.array([1e-2, 5e-3, 2.5e-3])
    errors = [np.abs(_predict(carried_td_dmd(operator, offset, eps, order), windows) - truth).max() for eps in scales]
    slope = np.polyfit(np.log(scales), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.25)
    # With the default scale the error is that of the proof, up to rounding of the large readout.
    assert errors[-1] < 40 * np.abs(operator).sum() * scales[-1] ** order


def _replaced(order: int, target: Callable[[int], mpmath.mpf], x: mpmath.mpf) -> mpmath.mpf:
    """Combination of x and units tanh(b + x) with Taylor coefficients ``target(n)`` up to ``order``."""
    biases = [mpmath.mpf(3 + 4 * m) / 10 for m in range(order - 1)]
    series = [mpmath.taylor(mpmath.tanh, b, order) for b in biases]
    linear, units = mpmath.mpf(1), mpmath.mpf(0)
    if biases:
        matrix = mpmath.matrix([[s[n] for s in series] for n in range(2, order + 1)])
        weights = mpmath.lu_solve(matrix, mpmath.matrix([target(n) for n in range(2, order + 1)]))
        linear -= sum(weights[m] * series[m][1] for m in range(order - 1))
        units = sum(weights[m] * (mpmath.tanh(b + x) - mpmath.tanh(b)) for m, b in enumerate(biases))
    return linear * x + units


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_order_is_exact_far_below_rounding(order: int) -> None:
    # The proof of the developers' notes in numbers: samples are read from attention weights of 120 digits.
    errors, deltas = [], [mpmath.mpf(10) ** -8, mpmath.mpf(10) ** -10]
    with mpmath.workdps(120):
        window = [mpmath.mpf(n) / 7 for n in (3, -8, 5, 1, 11)]
        count = len(window)
        for delta in deltas:
            total = sum(mpmath.exp(delta * z) for z in window)
            shares = [mpmath.exp(delta * z) / total for z in window]
            mean = sum(a * z for a, z in zip(shares, window, strict=True))
            excess = [count * a - 1 for a in shares]
            logs = [_replaced(order, lambda n: mpmath.mpf((-1) ** (n + 1)) / n, x) for x in excess]
            entropies = [_replaced(order, lambda n: mpmath.mpf((-1) ** n) / (n * (n - 1)), x) for x in excess]
            level = (window[-1] + mean - logs[-1] / delta - sum(entropies) / (count * delta)) / 2
            errors.append(max(abs(log / delta + level - z) for log, z in zip(logs, window, strict=True)))
        slope = mpmath.log(errors[0] / errors[1]) / mpmath.log(deltas[0] / deltas[1])
    assert float(slope) == pytest.approx(order, abs=0.01)


def test_floating_point_agrees_with_exact_arithmetic() -> None:
    operator, offset, windows = _problem(2, 3, 2, 3)
    member = carried_td_dmd(operator, offset, 0.3, 3)
    (network,) = member.features.networks
    with mpmath.workdps(40):
        exact = np.array([[float(x) for x in _exact(network, member.readouts[0], z)] for z in windows[:5]])
    np.testing.assert_allclose(_predict(member, windows[:5]), exact, rtol=1e-11, atol=1e-11)


def test_one_channel_has_the_weights_of_the_text() -> None:
    network = layer_network(1, 4, 1e-3, 1)
    w = network.weights
    assert network.heads == 1
    np.testing.assert_array_equal(w["embed"], [[1e-3, 0, 0, 0, 0]])
    np.testing.assert_array_equal(w["positions"], np.eye(5)[1:])
    np.testing.assert_array_equal(w["queries"], np.outer(np.eye(5)[4], np.eye(5)[0]))
    np.testing.assert_array_equal(w["keys"], np.eye(5))
    np.testing.assert_array_equal(w["values"], np.eye(5))
    assert not w["hidden"].any()


def test_series_of_tanh_against_many_digits() -> None:
    for at in (-1.0, 0.0, 0.7):
        expected = [float(x) for x in mpmath.taylor(mpmath.tanh, at, 5)]
        np.testing.assert_allclose(tanh_series(at, 5), expected, rtol=1e-9, atol=1e-12)


def test_too_few_hidden_units_are_refused() -> None:
    with pytest.raises(InputError, match="hidden must be at least 8 for order 3, 4 lags and 1 channels"):
        layer_network(1, 4, 1e-3, 3, hidden=7)


def test_several_heads_agree_with_torch_and_with_loops() -> None:
    rng = np.random.default_rng(0)
    network = new_network("shared", 4, 2, rng, width=6, hidden=3, heads=3)
    windows = rng.standard_normal((5, 4, 2))
    part = {name: torch.from_numpy(value) for name, value in network.weights.items()}
    found = network(windows.reshape(5, -1))
    theirs = published_features(network, part, torch.from_numpy(windows.reshape(5, -1))).numpy()
    np.testing.assert_allclose(found, theirs, rtol=1e-12, atol=1e-13)
    readout = np.eye(1 + network.size)[:, 1:]
    exact = [[float(x) for x in _exact(network, readout, z)] for z in windows]
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)
    shares = network.attention(windows.reshape(5, -1))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    operator, _, _ = _problem(2, 3, 2, 1)
    member = carried_td_dmd(operator, np.zeros(2), 1e-3, 3)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(linear_operator(member)[0], operator, rtol=1e-12)  # not linear, only nearly


def _sinusoids(samples: int) -> np.ndarray:
    t = np.arange(samples)
    return np.stack([np.sin(0.31 * t) + 0.5 * np.cos(0.11 * t), np.cos(0.31 * t)], axis=1)


def test_a_fitted_td_dmd_is_carried_over_a_whole_rollout() -> None:
    z = _sinusoids(400)
    model = TimeDelayedDMD(6).fit([z[:300]], 1.0)
    windows = z[None, 294:300]
    expected = model.roll(windows, 100)
    errors = {}
    for order in (1, 2, 3):
        layer = published_layer_from_td_dmd(model, order=order)
        assert layer.window == 6
        assert layer.weights["embed"].shape == (2, 14)
        assert layer.readout.shape[1] == 2
        errors[order] = float(np.abs(layer.roll(windows, 100) - expected).max())
    assert errors[1] < 1e-4
    assert errors[2] < 1e-6
    assert errors[3] < 1e-7
    assert errors[3] < errors[1]
    assert "order 3" in layer.selected_


def test_an_operator_is_carried_as_given() -> None:
    operator = np.zeros((1, 2, 1))
    operator[0, :, 0] = [-1.0, 2 * np.cos(0.3)]  # z_{k+1} = 2 cos(w) z_k - z_{k-1}
    layer = published_layer_from_td_dmd(operator, order=4)
    path = layer.roll(np.sin(0.3 * np.arange(2))[None, :, None], 50)[0, :, 0]
    np.testing.assert_allclose(path, np.sin(0.3 * np.arange(2, 52)), atol=1e-8)
    coarse = published_layer_from_td_dmd(operator, order=1, eps=1e-2)
    assert np.abs(coarse.roll(np.sin(0.3 * np.arange(2))[None, :, None], 50)[0, :, 0] - path).max() > 1e-5


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"order": 0}, "order must be a whole number, at least 1"),
        ({"order": 6}, "order must be at most 5"),
        ({"eps": 0.0}, "eps must be a positive number"),
        ({"model": np.zeros((2, 3))}, r"an array of shape \(2, 3\)"),
        ({"model": np.full((1, 2, 1), np.nan)}, "must be a finite operator"),
        ({"model": TimeDelayedDMD(3)}, "has no data yet"),
    ],
)
def test_what_cannot_be_carried_is_refused(given: dict[str, object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        published_layer_from_td_dmd(**({"model": np.ones((1, 2, 1))} | given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"training": "sgd"}, "training"),
        ({"variant": "linear"}, "variant"),
        ({"heads": 2}, "follows from the data"),
        ({"width": 8}, "follows from the data"),
        ({"training": "adamw", "heads": 3}, "must divide the width 16"),
        ({"rate": -1.0}, "rate must be a positive number"),
        ({"delays": 0}, "delays must be a whole number, at least 1"),
        ({"steps": 0}, "steps must be a whole number, at least 1"),
    ],
)
def test_bad_settings_of_the_layer_are_refused(given: dict[str, object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        PublishedLayer(**given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no weights yet"):
        PublishedLayer().roll(np.zeros((1, 2, 1)), 3)


def test_the_projected_gradient_is_that_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 3))
    targets = np.tanh(rows[:, :1] * rows[:, 2:])
    features = layer_features(with_random_units(np.eye(3)[:, :, None], 1, 0.3, 4, rng))
    loss = ProjectedLoss(features, rows, targets, (), 0)
    at = 0.01 * rng.standard_normal(len(loss.start))
    value, gradient = loss(at)
    direction = rng.standard_normal(len(at))
    step = 1e-5
    slope = (loss(at + step * direction)[0] - loss(at - step * direction)[0]) / (2 * step)
    assert np.isfinite(value)
    assert gradient @ direction == pytest.approx(slope, rel=1e-5)


def test_random_units_of_the_start_act_on_the_samples() -> None:
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((3, 4, 2))
    network = with_random_units(directions, 2, 1e-4, 5, np.random.default_rng(1))
    draw = np.random.default_rng(1)
    bias = 0.5 * draw.standard_normal(5)
    mixed = 0.5 * draw.standard_normal((3, 5))
    windows = rng.standard_normal((6, 4, 2))
    expected = np.tanh(np.einsum("npc,kpc->nk", windows, directions) @ mixed + bias)
    np.testing.assert_allclose(network(windows.reshape(6, -1))[:, :5], expected, atol=2e-2)
    closer = with_random_units(directions, 2, 1e-6, 5, np.random.default_rng(1))
    np.testing.assert_allclose(closer(windows.reshape(6, -1))[:, :5], expected, atol=2e-4)


def test_training_from_td_dmd_is_never_worse_than_it_and_learns_a_nonlinear_map() -> None:
    z = [np.array([0.4, 0.3])]
    for _ in range(400):
        x, y = z[-1]
        z.append(np.array([1.0 - 1.4 * x * x + y, 0.3 * x]))  # Hénon
    series = np.array(z)[100:, :1]
    linear = TimeDelayedDMD(seconds=1.0).fit([series[:240]], 1.0)
    layer = PublishedLayer(1, hidden=20, steps=60, restarts=2, random_state=1).fit([series[:240]], 1.0)
    windows = np.stack([series[k - 100 : k] for k in range(240, 290)])
    truth = series[240:290]
    errors = {
        name: float(np.sqrt(((model.roll(windows[:, -20:], 1)[:, 0] - truth) ** 2).mean()) / series.std())
        for name, model in (("linear", linear), ("layer", layer))
    }
    assert errors["linear"] > 0.3
    assert errors["layer"] < 0.02
    assert "samples" in layer.selected_
    assert layer.parameters > 20
    uniform = PublishedLayer(1, hidden=20, steps=20, variant="uniform", seconds=1.0).fit([series[:240]], 1.0)
    assert not uniform.weights["queries"].any()
    mlp = PublishedLayer(1, hidden=20, steps=20, variant="mlp", seconds=1.0).fit([series[:240]], 1.0)
    assert mlp.roll(windows, 3).shape == (50, 3, 1)


def test_a_linear_record_keeps_td_dmd() -> None:
    z = _sinusoids(300)
    layer = PublishedLayer(3, hidden=4, steps=2, restarts=1).fit([z[:260]], 1.0)
    assert layer.selected_ == "TD-DMD as it is"
    np.testing.assert_allclose(layer.roll(z[None, 200:260], 30)[0], z[260:290], atol=1e-6)
    mlp = PublishedLayer(3, hidden=4, steps=2, restarts=1, variant="mlp").fit([z[:260]], 1.0)
    np.testing.assert_allclose(mlp.roll(z[None, 200:260], 30)[0], z[260:290], atol=1e-6)


def test_sizes_of_the_published_training_are_settable() -> None:
    z = _sinusoids(120)
    layer = PublishedLayer(4, training="adamw", width=6, heads=2, hidden=5, steps=30, rate=1e-2).fit([z], 1.0)
    assert layer.weights["values"].shape == (12, 6)
    assert layer.weights["hidden"].shape == (6, 5)
    assert "30 steps" in layer.selected_
    assert np.isfinite(layer.roll(z[None, -10:], 5)).all()


def test_a_record_with_fewer_windows_than_features() -> None:
    z = _sinusoids(90)
    z = z + 0.01 * np.random.default_rng(0).normal(size=z.shape)
    layer = PublishedLayer(6, steps=4, restarts=1).fit([z], 1.0)  # 48 units beside the state of the layer
    assert layer.parameters > 90
    assert np.isfinite(layer.roll(z[None], 5)).all()
