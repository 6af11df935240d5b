"""Answers of reports, guards, backtests and messages that were once wrong, each with the case that showed it."""

from typing import Any, cast

import numpy as np
import pytest

from hardmax.cli.forecast_report import _modes, _verdict
from hardmax.datasets.series import Series
from hardmax.errors import InputError
from hardmax.forecasting.data.delay_windows import lags
from hardmax.forecasting.data.series import read_series
from hardmax.forecasting.data.units import Units
from hardmax.forecasting.diagnostics.backtest import ANEW, Backtest, BacktestRow, spread_about_trend
from hardmax.forecasting.diagnostics.report import _on_the_score
from hardmax.forecasting.features.feature_map import FeatureMap
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.models.baselines import Analogue, Mean, SeasonalNaive, find_season
from hardmax.forecasting.rollout import Fade, Member, Predictor, roll_ahead
from hardmax.forecasting.search.refit import _start_windows
from hardmax.forecasting.search.selection import Finalist, Selection
from hardmax.forecasting.search.validation import make_folds

_SETTINGS = {"restarts": 1, "random_state": 0, "progress": False}
_YEAR = 12


def _seasonal(samples: int = 120, trend: float = 0.0, noise: float = 0.1) -> np.ndarray:
    k = np.arange(samples)
    shape = np.array([0, 3, -1, 4, 1, 5, -2, 6, 2, -5, 3, 1.0])
    return shape[k % _YEAR] + trend * k + noise * np.random.default_rng(0).standard_normal(samples)


@pytest.mark.parametrize(
    ("score", "linear", "said"),
    [
        (-1.3, -1.2, "its score is better (-1.300 against -1.200, lower is better)"),
        (-1.2, -1.2, "its score is as good"),
        (-1.172, -1.291, "better too (-1.172 against -1.291, lower is better) but whose long rollouts left the range"),
    ],
)
def test_a_larger_score_is_not_called_better(score: float, linear: float, said: str) -> None:
    assert said in _on_the_score(Selection(Finalist((), score), Finalist((), linear), (), True, 1))


def _linear(coefficient: float) -> Member:
    """Increments of ``coefficient`` times the latest sample."""
    return Member(FeatureMap(1, lags(1, 1)), np.array([[[0.0], [coefficient]]]))


def test_a_saw_tooth_at_the_clipping_value_has_diverged() -> None:
    units = Units(np.zeros(1), np.ones(1), np.ones(1))
    fade = Fade(np.zeros(1), np.ones(1), _linear(-0.9))
    growing = Predictor(1, (_linear(0.8),), _linear(0.8), fade)
    rolled = [roll_ahead(growing, units, None, np.full((1, 3, 1), 0.5), steps, None) for steps in range(8, 16)]
    ends = [np.abs(ahead.values[0, -1, 0]) for ahead in rolled]
    assert min(ends) < 1.0 < max(ends)  # some forecasts end inside, on their way out again
    assert all(ahead.diverged.all() for ahead in rolled)
    calm = Predictor(1, (_linear(-0.1),), _linear(-0.1), fade)
    assert not roll_ahead(calm, units, None, np.full((1, 3, 1), 0.5), 9, None).far.any()


def test_the_boundedness_check_starts_from_the_last_window_too() -> None:
    z = np.random.default_rng(0).standard_normal((100, 1))
    fold = make_folds([z], 1, 5, 20)[0]
    windows, _ = _start_windows([z], 1, fold)
    np.testing.assert_array_equal(windows[-1], z[-5:])


def test_growing_cycles_are_shown() -> None:
    class Fitted:
        dt_ = 1.0
        predictor_ = None

        def frequencies(self) -> np.ndarray:
            return np.array([1 / 12, 1 / 5, 1 / 7])

        def growth_rates(self) -> np.ndarray:
            return np.array([0.01, 0.0, -0.5])

    k = np.arange(240)
    values = (np.exp(0.01 * k) * np.sin(2 * np.pi * k / 12) + 0.3 * np.sin(2 * np.pi * k / 5))[:, None]
    series = Series(values, k.astype(float), ("x",), "made up")
    (said,) = _modes(cast(Any, Fitted()), series)
    assert "12 (growing), 5" in said
    assert "7" not in said


def test_simple_baselines_repeat_the_season_follow_analogues_and_take_the_mean() -> None:
    z = _seasonal(noise=0.0)[:, None]
    assert find_season([z]) == _YEAR
    assert find_season([z + 0.5 * np.arange(120)[:, None]]) == _YEAR
    assert find_season([np.random.default_rng(1).standard_normal((200, 1))]) == 1
    assert find_season([np.ones((30, 1))]) == 1
    windows, truth = z[None, :96], z[None, 96:]
    np.testing.assert_allclose(SeasonalNaive().fit([z[:96]], 1.0).roll(windows, 24), truth)
    np.testing.assert_allclose(Analogue().fit([z[:96]], 1.0).roll(windows, 24), truth, atol=1e-9)
    np.testing.assert_allclose(Mean().fit([z[:96]], 1.0).roll(windows, 2), z[:96].mean())
    assert SeasonalNaive(7).fit([z], 1.0).window == 7
    with pytest.raises(InputError, match="season must be a whole number"):
        SeasonalNaive(0).fit([z], 1.0)
    with pytest.raises(InputError, match="season is longer than the record of 120 samples, got 121"):
        SeasonalNaive(121).fit([z], 1.0)
    for model in (SeasonalNaive(), Analogue()):
        with pytest.raises(InputError, match="with at least"):
            model.fit([z], 1.0).roll(z[None, :0], 3)


def test_the_backtest_judges_the_model_that_is_kept_beside_simple_baselines() -> None:
    model = TimeDelayedTransformer(**_SETTINGS).fit(_seasonal(trend=0.2))
    found = model.backtest(12, starts=6)
    names = [row.model for row in found.rows]
    assert names[0] == "TD-TF"
    assert {"persistence", "mean", "seasonal naive", "analogue", "TD-DMD"} <= set(names)
    assert found.season == _YEAR
    assert found.label == model.report_.numbers["label"]
    assert (ANEW in names) == (found.anew != found.label)
    # By hand: the seasonal naive forecast is behind by a year of the trend, which is what the data change by in a year.
    assert found.row("seasonal naive").mase == pytest.approx(1.0, abs=0.1)
    assert 0.0 <= found.coverage[0.68] <= found.coverage[0.95] <= 1.0
    assert "(nominal 68 %)" in found.text()
    assert found.data()["coverage"][1][0] == 0.95


@pytest.mark.parametrize(("given", "used"), [(None, _YEAR), (6, 6), ([4, 24], 24), ([], 1)])
def test_the_backtest_takes_the_season_that_the_fit_takes(given: object, used: int) -> None:
    model = TimeDelayedTransformer(**_SETTINGS, season=given).fit(_seasonal())
    found = model.backtest(12, starts=4)
    assert found.season == used
    assert ("seasonal naive" in {row.model for row in found.rows}) == (used > 1)
    assert max(model.report_.numbers["seasons"], default=1) == used


@pytest.mark.parametrize("seed", [9, 16])
def test_the_backtest_of_a_short_record_has_the_season_of_the_fit(seed: int) -> None:
    t = np.arange(30)
    z = 100 + 20 * np.sin(2 * np.pi * t / 12) + np.random.default_rng(seed).normal(0, 4, 30) + t
    model = TimeDelayedTransformer(**_SETTINGS).fit(z)
    found = model.backtest(6)
    assert [found.season] == model.report_.numbers["seasons"] == [12]
    assert "seasonal naive" in {row.model for row in found.rows}


def test_the_models_of_a_mean_are_listed_by_the_report_alone() -> None:
    rows = tuple(BacktestRow(name, 0.1, 0.1, 1.0, 0) for name in ("TD-TF", ANEW))
    mean = "the mean of 2 models (ARIMA; the last sample, repeated)"
    found = Backtest(rows, {}, np.arange(1.0, 3.0), 4, mean, {}, 1, "polynomials (degree 2)")
    assert "TD-TF is the selected model (the mean of 2 models), refitted" in found.text()
    assert '("selected anew": polynomials (degree 2))' in found.text()
    assert found.data()["kept"] == mean


def test_errors_of_a_record_with_a_trend_are_not_hidden_by_the_trend() -> None:
    z = _seasonal(trend=3.0)[:, None]
    season = _seasonal()
    assert spread_about_trend([z])[0] == pytest.approx(season.std(), rel=0.1)
    assert z.std() > 20 * season.std()
    np.testing.assert_array_equal(spread_about_trend([season[:, None]]), [season.std()])
    np.testing.assert_allclose(spread_about_trend([np.arange(9.0)[:, None]]), np.arange(9.0).std())
    model = TimeDelayedTransformer(**_SETTINGS).fit(z)
    assert model.backtest(12, starts=6).row("persistence").valid_time < 2.0


def _table(*rows: tuple[str, float]) -> Backtest:
    made = tuple(BacktestRow(name, error, error, 5.0, 0, error) for name, error in rows)
    return Backtest(made, {}, np.arange(1.0, 11.0), 20, "a model")


def test_the_verdict_compares_with_every_baseline_and_recommends_what_can_be_selected() -> None:
    best = _verdict(_table(("TD-TF", 0.5), ("persistence", 2.0), ("TD-DMD", 0.71)), "months", 1.0)
    assert best.startswith("Backtest: the error of the selected model is 1.42 times smaller than that of TD-DMD")
    worse = _verdict(_table(("TD-TF", 0.5), ("TD-DMD", 0.71), ("seasonal naive", 0.25)), "months", 1.0)
    assert worse.startswith("Backtest: seasonal naive forecasts better than the selected model, MASE 0.25 against 0.5:")
    assert "prefer it" not in worse
    # The kind of the kept model was selected with all data: a search without the last quarter is judged as well.
    anew = _verdict(_table(("TD-TF", 0.5), (ANEW, 0.9), ("TD-DMD", 0.71)), "months", 1.0)
    assert anew.startswith("Backtest: TD-DMD forecasts better than the model that a search without the last quarter")
    assert '("selected anew"), MASE 0.71 against 0.9' in anew
    level = _verdict(_table(("TD-TF", 0.5), ("NG-RC", 0.5)), "months", 1.0)
    assert level.startswith("Backtest: the selected model does as well as NG-RC, the best baseline")


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([0, 1, 1, 2, 2, 3], "must increase: two samples have the same time, got 2 repeated, the first at sample 2"),
        ([5, 4, 3, 2, 1, 0], "a step back at sample 1: reverse the order"),
        ([0, 1, 3, 2, 4, 5], "a step back at sample 3: sort the samples by time"),
        ([0, 1, np.nan, 3, 4, 5], "must be finite, got no time at sample 2"),
        ([0, 1, 2, 3, 13, 23, 33, 43], "steps of 1 up to sample 3 and of 10 from there on: use the part with one"),
        (
            [0, 1, 2, 3, 8, 9, 10, 11],
            r"1 missing block \(4 samples of 1, the first before sample 4\).*split the series",
        ),
        ([0, 1, 2.2, 3, 4.1, 5, 6, 7.3], "differ from their median"),
        ([0], "two or more"),
    ],
)
def test_times_that_cannot_be_used_are_refused_with_what_is_wrong(times: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_series(np.arange(float(len(times))), times=times)


def test_dates_are_refused_alike() -> None:
    import pandas as pd

    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02", "2024-01-03"])
    with pytest.raises(InputError, match="two samples have the same time.*keep one sample per time"):
        read_series(pd.Series(np.arange(4.0), index=days))
    hours = pd.date_range("2024-01-01", periods=48, freq="h")
    later = pd.date_range("2024-01-03", periods=20, freq="D")
    with pytest.raises(InputError, match="steps of 1 hour up to sample 48 and of 1 day from there on"):
        read_series(pd.Series(np.arange(68.0), index=hours.append(later)))
    days = pd.date_range("2024-01-01", periods=20, freq="D")
    months = pd.date_range("2024-02-01", periods=10, freq="MS")
    with pytest.raises(InputError, match="steps of 1 day up to sample .* from there on: use the part with one"):
        read_series(pd.Series(np.arange(30.0), index=days.append(months)))


def test_one_sample_and_all_zeros_are_answered_in_words() -> None:
    with pytest.raises(InputError, match="has too few samples: at least 12 are needed"):
        TimeDelayedTransformer(**_SETTINGS).fit([1.0])
    zeros = TimeDelayedTransformer(**_SETTINGS).fit(np.zeros(40))
    assert "all values are zero" in str(zeros.report_)
    np.testing.assert_array_equal(zeros.forecast(3).values, np.zeros((3, 1)))


def test_bounds_hold_for_forecasts_and_intervals() -> None:
    k = np.arange(200)
    power = np.maximum(0.0, np.sin(2 * np.pi * k / 24)) + 0.02 * np.abs(np.random.default_rng(0).standard_normal(200))
    free = TimeDelayedTransformer(6, **_SETTINGS).fit(power)
    bound = TimeDelayedTransformer(6, **_SETTINGS, lower=0, upper=[1.1]).fit(power)
    assert free.forecast(96).interval(0.95).lower.min() < 0.0
    ahead = bound.forecast(96)
    for part in (ahead.values, *ahead.interval(0.95), *ahead.interval(0.9, simultaneous=True), ahead.samples(50, 0)):
        assert part.min() >= 0.0
        assert part.max() <= 1.1
    np.testing.assert_array_equal(ahead.values, np.clip(free.forecast(96).values, 0.0, 1.1))
    for wrong, said in (
        ({"lower": 0.5}, "lower is passed by the data: channel 0 reaches"),
        ({"upper": 0.5}, "upper is passed by the data"),
        ({"lower": "a"}, "must be a number, or one number or None for each of the 1 channels"),
        ({"lower": [0, 0]}, "for each of the 1 channels"),
        ({"transform": "sqrt"}, "transform must be one of"),
        ({"transform": "log", "pod": 2}, "cannot be used with pod"),
    ):
        with pytest.raises(InputError, match=said):
            TimeDelayedTransformer(**_SETTINGS, **cast(Any, wrong)).fit(power)


def _multiplicative(samples: int = 160) -> np.ndarray:
    k = np.arange(samples)
    rng = np.random.default_rng(0)
    return np.exp(0.02 * k + 0.3 * np.sin(2 * np.pi * k / 12) + 0.03 * rng.standard_normal(samples))


def test_logarithms_are_taken_where_the_spread_grows_with_the_level() -> None:
    z = _multiplicative()
    assert Units.of([z[:, None]], transform="auto").shift is not None
    assert Units.of([np.log(z)[:, None] + 9.0], transform="auto").shift is None
    assert Units.of([z[:, None] - 2 * z.max()], transform="auto").shift is None
    model = TimeDelayedTransformer(13, **_SETTINGS, transform="auto").fit(z[:136])
    assert "Logarithms were fitted, because their spread grows with their level." in model.report_.sentences
    ahead = model.forecast(24)
    assert np.abs(np.log(ahead.values[:, 0] / z[136:])).mean() < 0.1
    lower, upper = ahead.interval(0.9)
    assert (lower > 0).all()
    # In logarithms the interval is symmetric and never shrinks.
    np.testing.assert_allclose(upper * lower, ahead.values**2, rtol=1e-9)
    assert (np.diff(np.log(upper / lower)[:, 0]) >= -1e-12).all()
    assert np.isfinite(model.backtest(12, starts=4).row("TD-TF").mase)


def test_counts_with_zeros_are_shifted_by_one_and_restored(tmp_path: Any) -> None:
    from hardmax import load_forecaster

    counts = np.random.default_rng(0).poisson(np.exp(1 + np.sin(np.arange(120) / 5)), 120).astype(float)
    assert counts.min() == 0
    model = TimeDelayedTransformer(4, **_SETTINGS, transform="log", lower=0).fit(counts)
    units = model.units_
    assert units.shift is not None
    np.testing.assert_array_equal(units.shift, [1.0])
    np.testing.assert_allclose(units.restore(units.normalise(counts[:, None])), counts[:, None], atol=1e-9)
    ahead = model.forecast(12)
    assert ahead.values.min() >= 0.0
    again = load_forecaster(model.save(tmp_path / "counts"))
    np.testing.assert_array_equal(again.forecast(12).interval(0.9).upper, ahead.interval(0.9).upper)
    with pytest.raises(InputError, match="is not positive, and the model was fitted to logarithms"):
        model.forecast(3, window=np.full((20, 1), -1.0))
    with pytest.raises(InputError, match="needs values of zero or more, and channel 0 has -1"):
        TimeDelayedTransformer(**_SETTINGS, transform="log").fit(counts - 1)


def test_rescaled_data_are_forecast_alike_with_and_without_logarithms() -> None:
    z = _multiplicative(60)
    for transform in (None, "log"):
        one = TimeDelayedTransformer(4, **_SETTINGS, transform=transform).fit(z).forecast(5)
        for factor in (1e-120, 1e120):
            other = TimeDelayedTransformer(4, **_SETTINGS, transform=transform).fit(factor * z).forecast(5)
            np.testing.assert_allclose(other.values / factor, one.values, rtol=1e-5)
            np.testing.assert_allclose(other.interval(0.9).upper / factor, one.interval(0.9).upper, rtol=1e-4)


def test_units_without_a_transform_are_mean_and_standard_deviation() -> None:
    z = np.random.default_rng(0).standard_normal((50, 3)) * [1.0, 0.0, 5.0]
    plain = Units.of([z])
    assert plain.shift is plain.lower is plain.upper is None
    np.testing.assert_allclose(plain.normalise(z), ((z - z.mean(axis=0)) / (z.std(axis=0) + 1e-300))[:, [0, 2]])
