"""The backtest and the ablation: splits, baselines, tables."""

from pathlib import Path

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.errors import InputError
from hardmax.forecasting.diagnostics.ablation import Ablation
from hardmax.forecasting.diagnostics.backtest import ANEW, Backtest, _split
from hardmax.forecasting.features.lag_network import Kind, new_network
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.models.published import _DECAY, LABEL, _AdamW, published_features


def _logistic(samples: int = 501) -> np.ndarray:
    z = [0.4]
    for _ in range(samples - 1):
        z.append(3.9 * z[-1] * (1 - z[-1]))
    return np.array(z)


@pytest.fixture(scope="module")
def model() -> TimeDelayedTransformer:
    return TimeDelayedTransformer(random_state=0, restarts=1).fit(_logistic(), dt=0.5)


@pytest.fixture(scope="module")
def past(model: TimeDelayedTransformer) -> Backtest:
    return model.backtest(10, starts=8)


@pytest.fixture(scope="module")
def ablation(model: TimeDelayedTransformer) -> Ablation:
    return model.ablate()


def test_the_baselines_are_in_the_table(past: Backtest) -> None:
    found = past
    names = [row.model for row in found.rows if row.model not in (ANEW, "seasonal naive")]
    assert names == ["TD-TF", "persistence", "mean", "analogue", "TD-DMD", "NG-RC"]
    assert found.starts == 8
    assert found.row("TD-TF").error < 0.1 < found.row("TD-DMD").error
    assert found.row("TD-TF").valid_time >= 4.5
    assert set(found.curves) == {row.model for row in found.rows}
    np.testing.assert_allclose(found.times, 0.5 * np.arange(1, 11))
    for name in ("TD-TF", "persistence", "NG-RC"):
        assert name in found.text()
    assert found.data()["rows"][0]["model"] == "TD-TF"


def test_a_backtest_uses_the_seed_of_the_fit() -> None:
    drawn = TimeDelayedTransformer(restarts=1).fit(_logistic(200), dt=0.5)
    seed = drawn.seed_
    first, again = drawn.backtest(5, starts=4), drawn.backtest(5, starts=4)
    assert drawn.seed_ == seed
    assert first.data() == again.data()


def test_nothing_that_is_forecast_was_learned_from() -> None:
    record = [np.arange(100.0)[:, None]]
    training, tests = _split(record)
    assert training[0].max() < tests[0][0][tests[0][1] :].min()
    several = [np.full((20, 1), float(i)) for i in range(5)]
    training, tests = _split(several)
    assert {float(z[0, 0]) for z in training}.isdisjoint(float(z[0, 0]) for z, _ in tests)


def test_a_backtest_longer_than_the_data_is_cut(model: TimeDelayedTransformer) -> None:
    assert len(model.backtest(10_000, starts=3).times) <= 126


def test_the_ablation_has_all_variants(ablation: Ablation) -> None:
    found = ablation
    names = [row.variant for row in found.rows]
    assert names == [
        "attention",
        "uniform attention",
        "an MLP in its place",
        "no feed-forward",
        "no linear path",
        "no network",
    ]
    assert all(np.isfinite(row.error) and row.parameters > 0 for row in found.rows)
    assert "uniform attention" in found.text()
    assert found.data()["horizon"] == found.horizon


def test_the_published_recipe_learns_and_says_what_it_is() -> None:
    z = np.sin(0.2 * np.arange(400))
    model = TimeDelayedTransformer(8, recipe="paper", random_state=0, seconds=2.0, progress=False).fit(z[:350])
    assert model.window == 9
    assert np.abs(model.forecast(20).values[:, 0] - z[350:370]).max() < 0.2
    assert model.report_.numbers["kept"] == "paper"
    assert model.attention().shares.shape == (1, 9)
    assert model.attention().used
    assert len(model.eigenvalues()) == 9


def test_a_model_from_a_file_is_backtested_and_ablated_on_data_that_are_given(
    model: TimeDelayedTransformer, past: Backtest, ablation: Ablation, tmp_path: Path
) -> None:
    again = hm.load_forecaster(model.save(tmp_path / "model"))
    for purpose in ("backtest", "ablate"):
        with pytest.raises(InputError, match=f"series is needed to {purpose} a model from a file.*pass the data"):
            getattr(again, purpose)()
    assert again.backtest(10, starts=8, series=_logistic()).data() == past.data()
    expected, found = ablation, again.ablate(series=_logistic())
    assert (found.base, found.horizon, found.rows[-1]) == (expected.base, expected.horizon, expected.rows[-1])
    # Trained networks are known up to rounding only: their errors here are some 1e-9 standard deviations.
    for one, other in zip(expected.rows, found.rows, strict=True):
        assert (one.variant, one.parameters) == (other.variant, other.parameters)
        assert other.score == pytest.approx(one.score, abs=0.3)


def test_a_model_is_backtested_on_other_data_of_its_kind(model: TimeDelayedTransformer) -> None:
    found = model.backtest(10, starts=4, series=[_logistic(300), _logistic(200)])
    assert found.starts == 4
    for series, u, message in (
        (np.ones((90, 2)), None, "must have the 1 channels of the fit, got 2"),
        (_logistic(5), None, "too few samples"),
        (_logistic(), np.ones(501), "u was not used in fit"),
        (None, np.ones(501), "needs the series"),
    ):
        with pytest.raises(InputError, match=message):
            model.backtest(series=series, u=u)


def test_inputs_and_fields_are_read_as_in_the_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 200).cumsum()
    z = np.convolve(u, [0.3, 0.2, 0.1])[:200]
    forced = TimeDelayedTransformer(4, random_state=0, restarts=1).fit(z, u=u)
    again = hm.load_forecaster(forced.save(tmp_path / "forced"))
    assert again.backtest(5, starts=4, series=z, u=u).rows == forced.backtest(5, starts=4).rows
    with pytest.raises(InputError, match="u is needed by a model fitted with inputs"):
        again.backtest(5, series=z)
    with pytest.raises(InputError, match="must have the 1 inputs of the fit"):
        again.backtest(5, series=z, u=np.ones((200, 2)))
    t = np.arange(120)
    fields = np.stack([np.sin(0.3 * t), np.cos(0.3 * t)], 1) @ rng.standard_normal((2, 12))
    fields = fields.reshape(120, 3, 4)
    reduced = TimeDelayedTransformer(4, random_state=0, restarts=1, pod=2).fit(fields)
    again = hm.load_forecaster(reduced.save(tmp_path / "reduced"))
    assert again.backtest(5, starts=4, series=fields).rows == reduced.backtest(5, starts=4).rows
    with pytest.raises(InputError, match=r"must be \(samples, \*\(3, 4\)\)"):
        again.backtest(5, series=fields[:, :2])


def test_the_published_recipe_is_backtested_beside_the_baselines() -> None:
    # After two seconds attention is five times as accurate as without the feed-forward layer; one is too short under
    # load.
    settings = {"random_state": 0, "seconds": 2.0, "progress": False}
    model = TimeDelayedTransformer(1, recipe="paper", horizon=3, **settings).fit(_logistic())
    found = model.backtest(3, starts=8)
    names = [row.model for row in found.rows if row.model != "seasonal naive"]
    assert names == ["TD-TF", "persistence", "mean", "analogue", "TD-DMD", "NG-RC"]
    assert found.label == LABEL
    assert found.row("NG-RC").error < 1e-3 < found.row("TD-TF").error < 0.5 * found.row("TD-DMD").error
    table = model.ablate()
    names = [row.variant for row in table.rows]
    assert names == ["attention", "uniform attention", "an MLP in its place", "no feed-forward", "no network"]
    errors = {row.variant: row.error for row in table.rows}
    # No linear map forecasts a parabola; softmax bends even without a feed-forward layer, but less well.
    assert errors["attention"] < errors["no feed-forward"] < 0.5 * errors["no network"]
    assert max(errors["uniform attention"], errors["an MLP in its place"]) < 0.5 * errors["no network"]
    sizes = {row.variant: row.parameters for row in table.rows}
    assert sizes["attention"] - sizes["uniform attention"] == 2 * 16 * 16


@pytest.mark.parametrize("samples", [16, 21, 40])
def test_a_short_record_can_be_backtested_and_ablated(samples: int) -> None:
    z = _logistic(samples)
    for recipe in ("family", "paper"):
        model = TimeDelayedTransformer(recipe=recipe, random_state=0, seconds=0.3, progress=False).fit(z)
        assert np.isfinite(model.backtest().row("TD-TF").error)
        assert all(np.isfinite(row.error) for row in model.ablate().rows)


@pytest.mark.parametrize(("attentive", "kind", "feed_forward"), [(True, "shared", False), (False, "shared", True)])
def test_the_ablated_layer_is_the_same_in_training_and_in_use(attentive: bool, kind: Kind, feed_forward: bool) -> None:
    rng = np.random.default_rng(3)
    network = new_network(kind, 5, 2, rng, feed_forward=feed_forward)
    if not attentive:
        network.weights["queries"][:] = 0.0
    tokens = rng.standard_normal((7, 10))
    part = {name: torch.from_numpy(value) for name, value in network.weights.items()}
    theirs = published_features(network, part, torch.from_numpy(tokens)).numpy()
    np.testing.assert_allclose(network(tokens), theirs, rtol=1e-12)
    assert theirs.shape[1] == network.size
    if not attentive:
        np.testing.assert_allclose(network.attention(tokens), 0.2)


def test_adamw_is_that_of_torch() -> None:
    start = torch.linspace(-1, 1, 6, dtype=torch.float64)
    ours, theirs = start.clone().requires_grad_(), start.clone().requires_grad_()
    one, two = _AdamW([ours]), torch.optim.AdamW([theirs], lr=0.05, weight_decay=_DECAY)
    for _ in range(20):
        ((ours - 0.3) ** 4).sum().backward()
        one.step(0.05)
        two.zero_grad()
        ((theirs - 0.3) ** 4).sum().backward()
        two.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
