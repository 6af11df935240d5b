"""Small counts are forecast by whole counts, which err less than means."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import poisson

import hardmax as hm
from hardmax.errors import FileError
from hardmax.forecasting.classical.counts import Counts, medians, small_counts
from hardmax.forecasting.classical.rules import SeasonalNaive
from hardmax.forecasting.data.units import Units
from hardmax.forecasting.fitting import count_of
from hardmax.forecasting.search.simple_candidates import recipes_for
from hardmax.forecasting.search.simple_comparison import Comparison, compare, in_whole_counts, make_origins


def _counts(seed: int, samples: int = 180, mean: float = 0.9) -> np.ndarray:
    return np.random.default_rng(seed).poisson(mean, samples).astype(float)


def _fitted(values: np.ndarray, **settings: object) -> hm.TimeDelayedTransformer:
    return hm.TimeDelayedTransformer(12, seconds=0.3, random_state=0, progress=False, **settings).fit(values)


def test_medians_have_the_smallest_expected_error() -> None:
    means = np.concatenate([np.linspace(0.0, 4.0, 401), np.linspace(4.0, 40.0, 73)])
    found = medians(means[:, None, None], np.zeros(1), np.ones(1))[:, 0, 0]
    values = np.arange(200)
    shares = poisson.pmf(values, means[:, None])
    expected = (shares[:, None] * np.abs(values - values[:100, None])).sum(axis=2)
    best, of_found = expected.min(axis=1), expected[np.arange(len(means)), found.astype(int)]
    assert (of_found - best <= 0.002 * np.maximum(best, 1e-3)).all()
    assert (found == poisson.median(means)).mean() > 0.99
    # Rounding and means err more.
    rounded = expected[np.arange(len(means)), np.round(means).astype(int)]
    assert of_found.sum() < rounded.sum()


def test_small_counts_are_found_channel_by_channel() -> None:
    counts, other = _counts(0), np.random.default_rng(1).standard_normal(180)
    filled = counts.copy()
    filled[[20, 70, 71]] += 0.5  # gaps that were filled
    table = np.stack([counts, other, filled, counts + 1], axis=1)
    np.testing.assert_array_equal(small_counts([table[:70], table[70:]]), [True, False, True, False])
    units = Units.of([table])
    found = count_of([table], units)
    assert found is not None
    np.testing.assert_allclose(found, [1 / counts.std(), 0.0, 1 / filled.std(), 0.0])
    # Counts are their own medians, other channels stay.
    rows, size = units.normalise(table), np.asarray(found)
    kept = medians(rows[None], units.mean / units.scale, size)[0]
    np.testing.assert_allclose(kept[:, [0, 1, 3]], rows[:, [0, 1, 3]], atol=1e-12)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).poisson(40.0, 200),
        np.random.default_rng(0).poisson(4.0, 200) - 2,
        np.random.default_rng(0).gamma(1.0, 1.0, 200),
        np.where(np.random.default_rng(0).random(200) < 0.4, 0.0, np.random.default_rng(1).random(200)),
        np.where(np.random.default_rng(0).random(200) < 0.4, 0.0, np.random.default_rng(1).integers(1, 900, 200)),
        np.zeros(30),
        np.ones(30),
        np.arange(200.0),
        3.7 * (np.random.default_rng(0).random(200) < 0.5),
        1000 * np.random.default_rng(0).poisson(0.9, 200),
    ],
    ids=["large", "negative", "real", "rain", "large beside zeros", "zeros", "ones", "line", "power", "thousands"],
)
def test_other_data_are_no_small_counts(values: np.ndarray) -> None:
    assert not small_counts([np.asarray(values, dtype=float)[:, None]]).any()


def test_forecasts_are_whole_counts_and_err_less() -> None:
    errors, whole = np.zeros(2), 0
    for seed in range(6):
        values = _counts(seed, 260, 0.5)
        model = _fitted(values[:200])
        starts = np.arange(200, 248, 4)
        windows = np.stack([values[k - model.window : k, None] for k in starts])
        truth = np.stack([values[k : k + 12] for k in starts])
        ahead = model.forecast(12, window=windows)
        if "rounded to whole counts" not in str(model.report_):
            continue  # whole counts erred more on the held-out part
        whole += 1
        assert "Forecasts are medians, as whole counts." in str(model.report_)
        np.testing.assert_array_equal(ahead.values, np.round(ahead.values))
        assert ahead.values.min() >= 0.0
        assert model.predictor_ is not None
        assert isinstance(model.predictor_.path, Counts)
        means = model.units_.restore(model.predictor_.path.inner.paths(model.units_.normalise(windows), 12))
        errors += [np.abs(ahead.values[..., 0] - truth).mean(), np.abs(means[..., 0] - truth).mean()]
        band = ahead.interval(0.9)
        assert (band.lower >= 0).all()
        assert (band.lower <= ahead.values).all()
        assert (ahead.values <= band.upper).all()
    assert whole >= 4
    assert errors[0] < 0.95 * errors[1]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_zeros_are_restored_as_zeros(scale: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        data = scale * (rng.poisson(0.7, (60, 1)) + rng.choice([0.0, -3.0]))
        units = Units.of([data])
        found = units.restore(units.normalise(data))
        assert (found[data == 0] == 0).all()
        np.testing.assert_allclose(found, data, rtol=1e-12)
        near = data + 1e-12 * scale  # what is no rounding stays
        assert (units.restore(units.normalise(near))[data == 0] != 0).all()


def test_only_the_automatic_choice_is_rounded() -> None:
    values = _counts(3)
    for settings in ({"model": "smoothing"}, {"model": "td-dmd"}, {"transform": "log"}):
        model = _fitted(values, **settings)
        assert "whole counts" not in str(model.report_)
    assert "whole counts" not in str(_fitted(values + 0.5).report_)


def _compared(values: np.ndarray) -> tuple[Comparison, list, np.ndarray]:
    z = values[:, None]
    origins = make_origins([z], 1, 12, ())
    recipes = [r for r in recipes_for([z], 1, (), 60, None) if r.kind in ("persistence", "smoothing")]
    found = compare([], recipes, origins, (), lambda: True)
    assert found is not None
    return found, origins, np.ones(1)


def test_counts_are_kept_only_where_they_err_no_more() -> None:
    found, origins, unit = _compared(_counts(5))
    rounded = in_whole_counts(found, origins, np.zeros(1), unit)
    assert rounded.kept.error < found.kept.error
    assert any(scored is rounded.kept for scored in rounded.scored)
    assert all(scored is not found.kept for scored in rounded.scored)
    assert len(rounded.scored) == len(found.scored)
    # With a wrong zero every forecast is off by a half, so the mean is kept.
    assert in_whole_counts(found, origins, np.full(1, 0.5), unit) is found
    family = replace(found, kept=replace(found.kept, recipe=replace(found.kept.recipe, kind="family")))
    assert in_whole_counts(family, origins, np.zeros(1), unit) is family


def test_counts_survive_in_files_and_updates(tmp_path: object) -> None:
    from hardmax.forecasting.model_files import KIND
    from hardmax.tensor_files import read, write

    values = _counts(2)
    model = _fitted(values[:160])
    place = model.save(f"{tmp_path}/counts")
    loaded = hm.load_forecaster(place)
    np.testing.assert_array_equal(loaded.forecast(20).values, model.forecast(20).values)
    updated = model.update(values[160:]).forecast(7).values
    np.testing.assert_array_equal(updated, np.round(updated))
    recipe, arrays = read(place / "model.safetensors", KIND)
    kind = recipe.pop("kind")
    recipe.pop("format")
    name = next(key for key in arrays if key.endswith(".unit"))
    write(place / "model.safetensors", kind, recipe, arrays | {name: np.array([-1.0])})
    with pytest.raises(FileError, match="have sizes"):
        hm.load_forecaster(place)


def test_filled_gaps_make_no_half_counts() -> None:
    t = np.arange(200)
    values = np.random.default_rng(0).poisson(np.maximum(0, 2 + 2.2 * np.sin(2 * np.pi * t / 12))).astype(float)
    place = next(k for k in range(50, 60) if (values[k - 1] + values[k + 1]) % 2 == 1)
    values[place] = np.nan
    model = hm.TimeDelayedTransformer(12, seconds=0.3, random_state=0, progress=False, season=12)
    ahead = model.fit(values, gaps="interpolate").forecast(12).values
    assert "whole counts" in str(model.report_)
    np.testing.assert_array_equal(ahead, np.round(ahead))


def test_channels_are_rounded_by_themselves() -> None:
    model = Counts(2, np.array([0.2, 0.0]), np.array([0.5, 0.0]), SeasonalNaive(2, 1))
    windows = np.array([[[0.31, 0.77]], [[-0.9, -3.0]]])
    np.testing.assert_allclose(model.paths(windows, 2)[:, 1], [[0.3, 0.77], [-0.2, -3.0]])
    assert model.window == 1


def test_the_backtest_of_a_loaded_simple_model_says_that_it_was_selected_anew(tmp_path: object) -> None:
    values = _counts(2)
    model = _fitted(values)
    told = "a model from a file does not hold how it was fitted"
    loaded = hm.load_forecaster(model.save(f"{tmp_path}/model")).backtest(6, series=values)
    assert told in str(loaded)
    assert not loaded.is_kept
    own = model.backtest(6)
    assert told not in str(own)
    assert own.is_kept
