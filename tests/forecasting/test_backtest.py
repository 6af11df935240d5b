"""The backtest and the ablation: honest splits, the rivals beside, tables that can be read."""

import numpy as np
import pytest
import torch

from hardmax.forecasting.backtest import _split
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.paper import _DECAY, _AdamW


@pytest.fixture(scope="module")
def model() -> TimeDelayedTransformer:
    z = [0.4]
    for _ in range(500):
        z.append(3.9 * z[-1] * (1 - z[-1]))
    return TimeDelayedTransformer(random_state=0, restarts=1).fit(np.array(z), dt=0.5)


def test_the_rivals_stand_beside_the_model(model: TimeDelayedTransformer) -> None:
    found = model.backtest(10, starts=8)
    assert [row.model for row in found.rows] == ["TD-TF", "persistence", "TD-DMD", "NG-RC"]
    assert found.starts == 8
    assert found.row("TD-TF").error < 0.1 < found.row("TD-DMD").error
    assert found.row("TD-TF").valid_time >= 4.5
    assert set(found.curves) == {row.model for row in found.rows}
    np.testing.assert_allclose(found.times, 0.5 * np.arange(1, 11))
    for name in ("TD-TF", "persistence", "NG-RC"):
        assert name in found.text()
    assert found.data()["rows"][0]["model"] == "TD-TF"


def test_nothing_that_is_forecast_was_learned_from() -> None:
    record = [np.arange(100.0)[:, None]]
    training, tests = _split(record)
    assert training[0].max() < tests[0][0][tests[0][1] :].min()
    several = [np.full((20, 1), float(i)) for i in range(5)]
    training, tests = _split(several)
    assert {float(z[0, 0]) for z in training}.isdisjoint(float(z[0, 0]) for z, _ in tests)


def test_a_backtest_longer_than_the_data_is_cut(model: TimeDelayedTransformer) -> None:
    assert len(model.backtest(10_000, starts=3).times) <= 126


def test_the_ablation_compares_equal_pools(model: TimeDelayedTransformer) -> None:
    found = model.ablate()
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
