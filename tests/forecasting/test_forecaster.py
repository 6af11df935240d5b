"""The estimator end to end: what it forecasts, what it refuses, what it says."""

import re
from dataclasses import replace

import numpy as np
import pytest

import hardmax as hm
from hardmax.errors import HardmaxError, InputError
from hardmax.forecasting.data.delay_windows import lags
from hardmax.forecasting.data.series import Units
from hardmax.forecasting.features.feature_map import FeatureMap
from hardmax.forecasting.forecast import outcome_of
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.learned import NotFittedError
from hardmax.forecasting.rollout import Ahead, Member
from hardmax.outcomes import Ending


def _fit(series: object, **settings: object) -> TimeDelayedTransformer:
    options = {"random_state": 0, "seconds": 0.4, "progress": False} | {
        k: v for k, v in settings.items() if k not in ("dt", "times", "u", "gaps", "irregular")
    }
    given = {k: v for k, v in settings.items() if k in ("dt", "times", "u", "gaps", "irregular")}
    return TimeDelayedTransformer(**options).fit(series, **given)  # type: ignore[arg-type]


def _waves(samples: int = 400, channels: int = 1) -> np.ndarray:
    t = np.arange(samples)[:, None]
    return np.sin(0.21 * t + np.arange(channels)) + 0.5 * np.cos(0.07 * t)


def _logistic(samples: int = 400) -> np.ndarray:
    z = [0.4]
    for _ in range(samples - 1):
        z.append(3.9 * z[-1] * (1 - z[-1]))
    return np.array(z)


def test_noise_free_waves_are_forecast_to_rounding_and_the_linear_model_is_selected() -> None:
    z = _waves(500)
    model = _fit(z[:400], dt=0.1, seconds=None)
    ahead = model.forecast(100)
    assert np.abs(np.asarray(ahead) - z[400:]).max() < 1e-8
    assert ahead.values.shape == ahead.spread.shape == (100, 1)
    np.testing.assert_allclose(ahead.times, 0.1 * np.arange(400, 500))
    assert ahead.left_range_at == 0
    assert ahead.outcome.ok
    assert model.report_.numbers["kept"] == "linear"
    assert "linear model was selected" in str(model.report_)


def test_a_chaotic_map_is_learned_where_the_linear_model_cannot() -> None:
    z = _logistic(460)
    model = _fit(z[:400], seconds=None)
    assert np.abs(model.forecast(8).values[:, 0] - z[400:408]).max() < 1e-3
    assert model.report_.numbers["kept"] == "nonlinear"
    assert model.explained_beyond_linear_ > 0.99
    assert model.report_.numbers["score"] < model.report_.numbers["linear_score"] - 1


def test_the_same_seed_gives_the_same_model() -> None:
    z = _logistic(150)
    one, two = (TimeDelayedTransformer(random_state=5, restarts=1).fit(z) for _ in range(2))
    np.testing.assert_array_equal(one.forecast(20).values, two.forecast(20).values)


def test_windows_are_forecast_in_a_batch_as_one_by_one() -> None:
    z = _logistic(300)
    model = _fit(z)
    windows = np.stack([z[k : k + model.window] for k in (10, 50, 90)])[:, :, None]
    together = model.forecast(6, window=windows)
    assert together.values.shape == (3, 6, 1)
    assert together.left_range_at.shape == (3,)
    for start in range(3):
        alone = model.forecast(6, window=windows[start])
        np.testing.assert_allclose(together.values[start], alone.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict(windows), together.values[:, 0], rtol=1e-12)
    np.testing.assert_allclose(model.roll(windows, 6), together.values)
    np.testing.assert_allclose(model.forecast(6, window=z[-model.window :]).values, model.forecast(6).values)


def test_trajectories_of_unequal_length_are_learned_together() -> None:
    rng = np.random.default_rng(0)
    turn = np.array([[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]])
    paths = []
    for length in (60, 45, 80, 30, 5):
        z = [rng.standard_normal(2)]
        for _ in range(length - 1):
            z.append(turn @ z[-1])
        paths.append(np.array(z))
    model = _fit(paths)
    assert "were left out" in str(model.report_)
    new = [np.array([0.3, -0.8])]
    for _ in range(60):
        new.append(turn @ new[-1])
    path = np.array(new)
    ahead = model.forecast(20, window=path[: model.window]).values
    np.testing.assert_allclose(ahead, path[model.window : model.window + 20], atol=1e-6)


def test_inputs_drive_the_forecast() -> None:
    rng = np.random.default_rng(1)
    u = np.repeat(rng.uniform(-1, 1, 60), 10)
    z = np.zeros(600)
    for k in range(599):
        z[k + 1] = 0.6 * z[k] + 0.3 * u[k + 1] - 0.1 * z[k] ** 2
    model = _fit(z[:500], u=u[:500], seconds=None)
    ahead = model.forecast(100, u=u[500:])
    assert np.abs(ahead.values[:, 0] - z[500:]).max() < 1e-4
    window = slice(300 - model.window, 300)
    again = model.forecast(50, window=z[window], u=u[300 - model.window : 350])
    assert np.abs(again.values[:, 0] - z[300:350]).max() < 1e-4
    with pytest.raises(InputError, match="u is needed by a model fitted with inputs"):
        model.forecast(3)
    with pytest.raises(InputError, match=r"u must be \(3, 1\)"):
        model.forecast(3, u=np.zeros((5, 1)))
    with pytest.raises(InputError, match="u was not used in fit"):
        _fit(_waves()).forecast(3, u=np.zeros((3, 1)))


def test_a_forecast_that_leaves_the_training_range_says_when() -> None:
    z = 1.01 ** np.arange(200)
    model = _fit(z)
    ahead = model.forecast(100)
    assert 1 <= ahead.left_range_at <= 20
    assert f"the forecast left the training range at step {ahead.left_range_at}, and it ended" in str(ahead.outcome)
    assert np.isfinite(ahead.values).all()
    np.testing.assert_allclose(ahead.values[:50, 0], 1.01 ** np.arange(200, 250), rtol=1e-3)


def test_trends_that_lead_far_away_are_no_divergence() -> None:
    rng = np.random.default_rng(0)
    model = _fit(5.0 * np.arange(120) + rng.normal(0, 3, 120), model="drift")
    near, far, beyond = (model.forecast(steps).outcome for steps in (30, 200, 100_000))
    assert near.ending is far.ending is Ending.TIME_REACHED
    assert "far outside" not in str(near)
    assert re.search(r"200 steps; the forecast left the training range at step \d+, and it ended far outside", str(far))
    assert beyond.ending is Ending.DIVERGED
    # Above the largest sample, however little, is beyond the range.
    largest = 5.0 * 119
    slow = _fit(np.linspace(0, largest, 120), model="drift").forecast(2)
    assert slow.values.min() > largest
    assert "2 steps within or close to the range" in str(slow.outcome)
    on = _fit(np.linspace(0, largest, 120), model="drift").forecast(60)
    assert "at step 1 (treat it as extrapolation)" in str(on.outcome)
    bounded = _fit(np.linspace(0, largest, 120), model="drift", upper=largest).forecast(60)
    assert "60 steps within the range" in str(bounded.outcome)
    assert bounded.left_range_at == 0
    windows = np.stack([np.arange(120.0) * slope for slope in (5.0, 0.0)])[:, :, None]
    both = model.forecast(300, window=windows).outcome
    assert "1 of 2 forecasts left the training range, the first at step" in str(both)
    assert "1 of 2 forecasts ended far outside" in str(both)


def test_the_first_step_is_that_of_the_forecasts_that_diverged() -> None:
    yes, no = np.array([True, True]), np.array([False, False])

    def said(left: list[int], diverged: np.ndarray) -> str:
        steps = np.array(left, dtype=np.int64)
        return str(outcome_of(Ahead(*np.zeros((3, 2, 50, 1)), yes, steps, diverged, diverged), 50, False))

    assert "1 of 2 forecasts left the training range for good, the first at step 40" in said(
        [2, 40], ~yes | [False, True]
    )
    assert "trust the steps before" in said([2, 40], yes)
    assert "the first at step 1 (train on data" in said([1, 40], yes)
    assert "2 of 2 forecasts left the training range, the first at step 2" in said([2, 40], no)


def test_constant_channels_are_forecast_as_constant() -> None:
    z = np.concatenate([_waves(300), np.full((300, 1), 7.5)], axis=1)
    model = _fit(z)
    assert "1 of 2 channels is constant" in str(model.report_)
    np.testing.assert_array_equal(model.forecast(10).values[:, 1], 7.5)
    still = _fit(np.full((50, 2), -3.0))
    np.testing.assert_array_equal(still.forecast(4).values, np.full((4, 2), -3.0))
    assert still.report_.numbers["kept"] == "constant"
    with pytest.raises(InputError, match="has no dynamics to analyse"):
        still.eigenvalues()


def test_units_of_any_size_do_not_matter() -> None:
    z = _waves(300, 2)
    scale = np.array([1e-12, 1e9])
    plain, scaled = _fit(z, seconds=None), _fit(z * scale, seconds=None)
    np.testing.assert_allclose(scaled.forecast(30).values / scale, plain.forecast(30).values, atol=1e-5)


def test_gaps_are_refused_or_interpolated() -> None:
    z = _waves(300)
    z[40:43] = np.nan
    with pytest.raises(InputError, match=r'nan at sample 40, channel 0 \(3 in all\).*gaps="interpolate"'):
        _fit(z)
    model = _fit(z, gaps="interpolate")
    assert "3 missing values were interpolated" in str(model.report_)
    assert "1 missing value was interpolated" in str(
        _fit(np.where(np.arange(60) == 7, np.nan, _waves(60)[:, 0]), gaps="interpolate").report_
    )
    assert np.isfinite(model.forecast(10).values).all()


def test_uneven_times_are_refused_or_resampled() -> None:
    t = np.cumsum(np.random.default_rng(2).uniform(0.8, 1.2, 300))
    z = np.sin(0.3 * t)
    with pytest.raises(InputError, match=r'times must be evenly spaced.*irregular="resample"'):
        _fit(z, times=t)
    model = _fit(z, times=t, irregular="resample")
    assert "resampled to an even step" in str(model.report_)
    even = _fit(np.sin(0.3 * np.arange(300)), times=np.arange(300) * 0.5)
    assert even.dt_ == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("series", "settings", "message"),
    [
        (np.zeros(5), {}, "has too few samples: at least 12 are needed, got 5 samples"),
        (np.arange(20.0), {"delays": 30}, "at least 42 are needed for delays=30, got 20 samples"),
        (np.zeros((3, 4, 5)), {}, r"must be \(samples,\) or \(samples, channels\)"),
        (["a", "b"], {}, "must be an array of real numbers"),
        (np.arange(30) * 1j, {}, "complex numbers"),
        ([np.zeros((20, 2)), np.zeros((20, 3))], {}, "same channels in every trajectory"),
        (np.zeros((30, 60)), {}, "has fewer samples than channels"),
        (np.full(30, 1e200), {}, "must stay below 1e"),
        (_waves(50), {"dt": -1}, "dt must be a positive number"),
        (_waves(50), {"dt": 1.0, "times": np.arange(50)}, "must not both be given"),
        (_waves(50), {"times": np.arange(49)}, "one time per sample"),
        (_waves(50), {"times": np.zeros(50)}, "must increase: two samples have the same time"),
        (_waves(50), {"gaps": "fill"}, "gaps must be one of"),
        (_waves(50), {"recipe": "magic"}, "recipe must be one of"),
        (_waves(50), {"ablation": "none"}, "ablation must be one of"),
        (_waves(50), {"delays": -1}, "delays must be a whole number"),
        (_waves(50), {"horizon": 1}, "horizon must be a whole number"),
        (_waves(50), {"restarts": 0}, "restarts must be a whole number"),
        (_waves(50), {"seconds": 0}, "seconds must be a positive number"),
        (_waves(50), {"random_state": -1}, "random_state must be"),
        (_waves(50), {"u": np.zeros(40)}, "one row per sample"),
        (_waves(50), {"pod": 0}, "pod must be a rank"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(series: object, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _fit(series, **settings)


def test_bad_windows_are_refused_with_a_remedy() -> None:
    model = _fit(_waves(200, 2), delays=3)
    assert model.window <= 4
    with pytest.raises(InputError, match="window must have 2 channels"):
        model.forecast(3, window=np.zeros((10, 3)))
    with pytest.raises(InputError, match=r"window must hold at least \d+ samples, got 0 samples"):
        model.forecast(3, window=np.zeros((0, 2)))
    with pytest.raises(InputError, match="window must be finite"):
        model.forecast(3, window=np.full((10, 2), np.nan))
    with pytest.raises(InputError, match="steps must be a whole number"):
        model.forecast(0)
    with pytest.raises(NotFittedError, match="call fit"):
        TimeDelayedTransformer().forecast(3)
    with pytest.raises(InputError, match="pod was not used"):
        model.reconstruct(np.zeros((3, 2)))


def test_fields_are_reduced_and_reconstructed() -> None:
    t = np.arange(200)
    x, y = np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 5), indexing="ij")
    fields = 2.0 + np.sin(0.2 * t)[:, None, None] * x + np.cos(0.2 * t)[:, None, None] * y
    for pod in (2, 0.9999):
        model = _fit(fields[:180], pod=pod)
        assert model.pod_ is not None
        assert model.pod_.rank == 2
        ahead = model.reconstruct(model.forecast(20))
        np.testing.assert_allclose(ahead, fields[180:], atol=1e-5)
        assert model.modes().shape[0] == 30
        from_fields = model.forecast(20, window=fields[180 - model.window : 180])
        np.testing.assert_allclose(model.reconstruct(from_fields), fields[180:], atol=1e-5)
        assert "fewer than pod" not in str(model.report_)
    few = _fit(fields[:180], pod=20)
    assert few.pod_ is not None
    assert few.pod_.rank == 2
    assert "The fields have 2 modes that vary, fewer than pod=20." in str(few.report_)


def test_modes_of_noise_do_not_spoil_the_forecast_of_a_field() -> None:
    x, t = np.linspace(0, 1, 40), np.arange(500)[:, None]
    waves = sum(size * np.sin(2 * np.pi * k * (x - 0.02 * t) + k) for k, size in ((1, 1.0), (2, 0.3), (3, 0.1)))
    fields = waves + 0.02 * np.random.default_rng(0).standard_normal(waves.shape)
    model = _fit(fields[:400], pod=12, seconds=1.5)
    ahead = model.reconstruct(model.forecast(100).values)
    assert np.abs(ahead - waves[400:]).mean() < 0.01  # 0.03 and more where every mode counts alike
    # Six modes hold the waves; the typical error is that of the field, in parts of its largest mode.
    assert model.report_.numbers["error"] < 0.1
    scale = model.units_.scale[model.units_.keep]
    assert (scale == scale[0]).all()


def test_units_put_constant_channels_back() -> None:
    units = Units.of([np.array([[1.0, 5.0], [3.0, 5.0]])])
    np.testing.assert_allclose(units.restore(units.normalise(np.array([[2.5, 5.0]]))), [[2.5, 5.0]])
    np.testing.assert_allclose(units.restore_spread(np.array([[1.0]]), np.array([[0.0]])), [[1.0, 0.0]])


def _random_series(rng: np.random.Generator) -> object:
    samples, channels = int(rng.integers(3, 120)), int(rng.integers(1, 4))
    t = np.arange(samples)[:, None]
    kinds = [
        lambda: rng.standard_normal((samples, channels)),
        lambda: rng.standard_normal((samples, channels)).cumsum(axis=0),
        lambda: np.sin(rng.uniform(0.01, 3) * t + np.arange(channels)),
        lambda: np.full((samples, channels), rng.standard_normal()),
        lambda: np.outer(rng.standard_normal(samples), rng.standard_normal(channels)),
        lambda: np.exp(rng.uniform(-0.5, 0.5) * t / 5) * np.ones(channels),
        lambda: rng.integers(0, 2, (samples, channels)).astype(float),
        lambda: (t % rng.integers(2, 9) == 0) * np.ones(channels),
        lambda: [rng.standard_normal((int(n), channels)) for n in rng.integers(2, 60, 4)],
    ]
    series = kinds[int(rng.integers(len(kinds)))]()
    scale = 10.0 ** rng.uniform(-200, 140) if rng.random() < 0.3 else 10.0 ** rng.uniform(-9, 9)
    noise = rng.choice([0.0, 1e-9, 0.1])
    if isinstance(series, list):
        return [scale * part for part in series]
    return scale * (series + noise * rng.standard_normal(series.shape))


def _random_fits(count: int, seed: int) -> tuple[int, int]:
    rng = np.random.default_rng(seed)
    answers = refusals = 0
    for trial in range(count):
        series = _random_series(rng)
        options = {"delays": int(rng.integers(0, 20))} if rng.random() < 0.3 else {}
        try:
            model = TimeDelayedTransformer(seconds=0.05, random_state=trial, progress=False, **options).fit(series)
            ahead = model.forecast(int(rng.integers(1, 80)))
        except HardmaxError:
            refusals += 1
            continue
        assert np.isfinite(ahead.values).all(), trial
        assert np.isfinite(ahead.spread).all(), trial
        answers += 1
    return answers, refusals


def test_random_fits_end_in_an_answer_or_a_clear_error() -> None:
    # Each fit takes two seconds, because every kind of model is tried once; there are a thousand in the slow tests.
    answers, refusals = _random_fits(14, 0)
    assert answers > 6
    assert refusals > 0


@pytest.mark.slow
def test_a_thousand_random_fits_end_in_an_answer_or_a_clear_error() -> None:
    answers, refusals = _random_fits(1000, 1)
    assert answers > 500
    assert answers + refusals == 1000


def test_the_top_level_name_is_this_class() -> None:
    assert hm.TimeDelayedTransformer is TimeDelayedTransformer


@pytest.mark.parametrize("delays", [0, 1, 2])
@pytest.mark.parametrize("channels", [1, 3])
def test_no_model_looks_further_back_than_it_may(delays: int, channels: int) -> None:
    z = np.random.default_rng(delays).standard_normal((60, channels)).cumsum(axis=0)
    assert _fit(z, delays=delays, seconds=None).window <= delays + 1


def test_a_forecast_clipped_at_the_edge_counts_as_diverged() -> None:
    z = _logistic(300)
    model = _fit(z, delays=2)
    assert model.predictor_ is not None
    runaway = FeatureMap(1, lags(1, 1))
    member = Member(runaway, np.array([[[0.5], [0.0]]]))
    fade = replace(model.predictor_.fade, fallback=member)
    model._predictor = replace(model.predictor_, members=(member,), fade=fade)
    ahead = model.forecast(60)
    assert not ahead.outcome.ok
    assert ahead.left_range_at > 0
    assert np.isfinite(ahead.values).all()
