"""Intervals, quantiles and sample paths of forecasts: formulas, bounds, coverage, files."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.stats import norm, t

import hardmax as hm
from hardmax.errors import InputError
from hardmax.forecasting.error_growth import (
    _LEVELS,
    ErrorGrowth,
    _never_decreasing,
    _widening,
    measure_growth,
)
from hardmax.forecasting.forecaster import TimeDelayedTransformer

_OLD = Path(__file__).parent / "files" / "forecaster_format_1"
_SETTINGS = {"restarts": 1, "random_state": 0, "progress": False}


def _walks(rollouts: int = 200, steps: int = 30, seed: int = 0) -> ErrorGrowth:
    """Growth of errors that are random walks with steps of size 0.1 and 0.2."""
    rng = np.random.default_rng(seed)
    truth = 5 * rng.standard_normal((rollouts, steps, 2))
    errors = np.cumsum(rng.standard_normal((rollouts, steps, 2)) * [0.1, 0.2], axis=1)
    return measure_growth([truth - errors], [truth], [float(steps)])


def test_half_widths_are_the_quantiles_of_the_held_out_errors() -> None:
    levels = np.array([0.5, 0.68, 0.9, 0.95])
    found = _walks().half_widths(levels, 30)
    assert found.shape == (4, 30, 2)
    expected = norm.ppf((1 + levels) / 2)[:, None, None] * np.sqrt(np.arange(1, 31))[:, None] * [0.1, 0.2]
    np.testing.assert_allclose(found, 1.08 * expected, rtol=0.25)
    assert abs(np.log(found / (1.08 * expected)).mean()) < 0.06
    assert (np.diff(found, axis=0) > 0).all()
    assert (np.diff(found, axis=1) >= 0).all()


def test_beyond_the_rollouts_half_widths_go_on_with_the_expected_error() -> None:
    growth = _walks()
    found, scale = growth.half_widths(np.array([0.9]), 90)[0], growth.ahead(90)
    np.testing.assert_allclose(found[30:] / found[29], scale[30:] / scale[29], rtol=1e-12)
    assert (np.diff(found, axis=0) >= 0).all()


@pytest.mark.parametrize("freedom", [3.0, 5.0, 12.0, 100.0])
def test_widening_is_that_of_students_t(freedom: float) -> None:
    upper = (1 + _LEVELS) / 2
    found = _widening(np.array([freedom]))[:, 0]
    exact = t.ppf(upper, freedom) / norm.ppf(upper)
    some = _LEVELS <= 0.96
    np.testing.assert_allclose(found[some], exact[some], rtol=0.02)
    assert (found >= 1.0).all()


def test_few_independent_rollouts_widen_the_intervals() -> None:
    rng = np.random.default_rng(1)
    truth = 5 * rng.standard_normal((40, 10, 1))
    paths = truth - rng.standard_normal(truth.shape)
    many, overlapping = (measure_growth([paths], [truth], [gap]) for gap in (10.0, 0.5))
    # Starts half a sample apart overlap, but errors without relation count in full.
    np.testing.assert_allclose(overlapping.independent, 40, rtol=0.35)
    related = np.repeat(rng.standard_normal((8, 10, 1)), 5, axis=0)
    few = measure_growth([truth - related], [truth], [0.5])
    assert few.independent is not None
    assert many.independent is not None
    assert (few.independent[3:] < 16).all()
    ratios = [
        g.half_widths(np.array([0.95]), 10)[0, 9, 0] / np.sqrt(np.mean(g.held_out[:, 9] ** 2)) for g in (few, many)
    ]
    assert ratios[0] > 1.05 * ratios[1]


@pytest.mark.parametrize("whole", [True, False])
def test_never_decreasing_is_isotonic_regression(whole: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        rows = rng.integers(0, 4, (3, 12)).astype(float) if whole else rng.standard_normal((3, 12))
        found = _never_decreasing(rows)
        for row, fitted in zip(rows, found, strict=True):
            np.testing.assert_allclose(fitted, isotonic_regression(row).x, atol=1e-12)


def test_paths_have_the_marginals_of_the_intervals_and_the_sums_of_the_errors() -> None:
    growth = _walks(240)
    paths = growth.paths(4000, 30, np.random.default_rng(0))
    for level in (0.5, 0.9):
        width = growth.half_widths(np.array([level]), 30)[0]
        np.testing.assert_allclose((np.abs(paths) <= width).mean(axis=0), level, atol=0.03)
    # The sum of a random walk of 30 steps has variance sum (31 - k)^2 = 9455; independent errors would give 465.
    total = paths[:, :, 0].sum(axis=1)
    assert total.std() == pytest.approx(0.108 * np.sqrt(9455), rel=0.2)
    assert abs(np.mean(total)) < 0.1 * total.std()


def test_errors_that_alternate_cancel_in_sums() -> None:
    rng = np.random.default_rng(6)
    truth = 5 * rng.standard_normal((120, 20, 1))
    errors = rng.standard_normal((120, 1, 1)) * (-1.0) ** np.arange(20)[None, :, None]
    growth = measure_growth([truth - errors], [truth], [20.0])
    paths = growth.paths(1000, 20, np.random.default_rng(0))
    assert np.abs(paths.sum(axis=1)).max() < 0.5 * np.abs(paths).max()


def test_steps_whose_errors_differ_by_chance_share_a_width_between_them() -> None:
    rng = np.random.default_rng(7)
    truth = 9 * rng.standard_normal((400, 24, 1))
    sizes = np.where(np.arange(24) % 2, 1.0, 2.0)[None, :, None]
    growth = measure_growth([truth - sizes * rng.standard_normal(truth.shape)], [truth], [24.0])
    widths = growth.half_widths(np.array([0.68]), 24)[0, :, 0] / 1.08
    # One standard deviation of the steps is 1 and 2 in turn; a running maximum would be 2 from the first on.
    assert (np.diff(widths) >= 0).all()
    assert np.median(widths) == pytest.approx(1.5, abs=0.2)


def test_diverged_rollouts_are_left_out_and_errors_bounded_by_the_range() -> None:
    rng = np.random.default_rng(3)
    truth = rng.standard_normal((20, 8, 1))
    paths = truth + 0.1 * rng.standard_normal(truth.shape)
    good = measure_growth([paths[:15]], [truth[:15]])
    broken = paths.copy()
    broken[15:] *= 1e6
    with_broken = measure_growth([broken], [truth])
    assert with_broken.held_out is not None
    assert with_broken.held_out.shape[0] == 15
    np.testing.assert_allclose(with_broken.per_step, good.per_step)
    everything = measure_growth([np.full_like(paths, 1e9)], [truth])
    assert (everything.per_step <= np.ptp(truth)).all()
    assert everything.half_widths(np.array([0.95]), 100).max() < 4 * np.ptp(truth)


def test_steps_after_the_end_of_the_data_do_not_count() -> None:
    rng = np.random.default_rng(4)
    truth = rng.standard_normal((12, 9, 2))
    paths = truth + rng.standard_normal(truth.shape)
    truth[6:, 5:] = np.nan
    truth[:, 8:] = np.nan
    found = measure_growth([paths], [truth])
    assert found.per_step.shape == (8, 2)
    worst = np.zeros(2)
    for k in range(8):
        rows = slice(0, 12) if k < 5 else slice(0, 6)
        worst = np.maximum(worst, np.sqrt(((paths - truth)[rows, k] ** 2).mean(axis=0)))
        np.testing.assert_allclose(found.per_step[k], worst, rtol=1e-12)
    assert np.isfinite(found.paths(50, 20, np.random.default_rng(0))).all()


def test_what_is_stored_is_bounded() -> None:
    rng = np.random.default_rng(5)
    truth = rng.standard_normal((700, 3, 1))
    found = measure_growth([truth + 0.1], [truth])
    assert found.held_out is not None
    assert found.held_out.shape[0] <= 256


def _monthly(seed: int, samples: int = 30) -> np.ndarray:
    k = np.arange(samples)
    return 100 + 20 * np.sin(2 * np.pi * k / 12) + np.random.default_rng(seed).normal(0, 4, samples) + k


@pytest.mark.parametrize("seed", [16, 9])
def test_thirty_noisy_months_have_intervals_that_are_neither_zero_nor_absurd(seed: int) -> None:
    z = _monthly(seed)
    ahead = TimeDelayedTransformer(**_SETTINGS).fit(z).forecast(36)
    assert (ahead.spread > 0.1 * 4).all()
    assert (ahead.spread < np.ptp(z)).all()
    lower, upper = ahead.interval(0.95)
    assert (np.diff((upper - lower)[:, 0]) >= -1e-9).all()
    assert (upper - lower < 8 * np.ptp(z)).all()
    np.testing.assert_allclose(ahead.quantiles([0.5])[0], ahead.values, rtol=1e-12)


def test_intervals_hold_what_they_say_on_short_records() -> None:
    inside, steps = [], 12
    for seed in range(8):
        rng, z = np.random.default_rng(seed), np.zeros(400)
        for k in range(2, 400):
            z[k] = 1.2 * z[k - 1] - 0.5 * z[k - 2] + rng.standard_normal()
        model = TimeDelayedTransformer(**_SETTINGS).fit(z[:60])
        starts = np.linspace(60, 400 - steps, 12).astype(int)
        ahead = model.forecast(steps, window=np.stack([z[k - model.window : k, None] for k in starts]))
        truth = np.stack([z[k : k + steps, None] for k in starts])
        bands = [ahead.interval(level) for level in (0.68, 0.95)]
        inside.append([((truth >= band.lower) & (truth <= band.upper)).mean() for band in bands])
    one, two = np.mean(inside, axis=0)
    assert 0.6 <= one <= 0.85
    assert 0.9 <= two <= 1.0


def test_bands_for_whole_paths_hold_whole_paths() -> None:
    model = TimeDelayedTransformer(4, **_SETTINGS).fit(_monthly(0, 90))
    ahead = model.forecast(15)
    single, whole = ahead.interval(0.8), ahead.interval(0.8, simultaneous=True)
    assert (whole.upper >= single.upper).all()
    assert (whole.lower <= single.lower).all()
    paths = ahead.samples(3000, random_state=1)
    assert paths.shape == (3000, 15, 1)
    inside = ((paths >= whole.lower) & (paths <= whole.upper)).all(axis=(1, 2)).mean()
    assert inside == pytest.approx(0.8, abs=0.04)
    assert ((paths >= single.lower) & (paths <= single.upper)).all(axis=(1, 2)).mean() < 0.75
    np.testing.assert_array_equal(ahead.samples(5, 3), ahead.samples(5, 3))
    many = model.forecast(6, window=np.stack([_monthly(0, 90)[-40:, None]] * 3))
    assert many.samples(7, 0).shape == (7, 3, 6, 1)
    assert many.quantiles([0.1, 0.9]).shape == (2, 3, 6, 1)
    assert many.interval(0.5, simultaneous=True).upper.shape == (3, 6, 1)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 2, "a", True, float("nan"), None])
def test_levels_that_are_no_probability_are_refused(level: object) -> None:
    ahead = TimeDelayedTransformer(2, **_SETTINGS).fit(np.ones(20)).forecast(3)
    with pytest.raises(InputError, match="must be a number between 0 and 1"):
        ahead.interval(level)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be a number between 0 and 1"):
        ahead.quantiles([0.5, level])  # type: ignore[list-item]
    with pytest.raises(InputError, match="count must be a whole number"):
        ahead.samples(0)


def test_constant_data_have_intervals_of_no_width() -> None:
    ahead = TimeDelayedTransformer(2, **_SETTINGS).fit(np.full(20, 7.0)).forecast(3)
    for part in (*ahead.interval(0.9), *ahead.interval(0.9, simultaneous=True), *ahead.samples(2, 0)):
        np.testing.assert_array_equal(part, np.full((3, 1), 7.0))


def test_intervals_are_saved_and_those_of_old_files_are_refused_in_words(tmp_path: Path) -> None:
    model = TimeDelayedTransformer(4, **_SETTINGS).fit(_monthly(1, 60), dt=0.5)
    again = hm.load_forecaster(model.save(tmp_path / "model"))
    one, two = model.forecast(40), again.forecast(40)
    np.testing.assert_array_equal(one.interval(0.9).upper, two.interval(0.9).upper)
    np.testing.assert_array_equal(one.samples(9, 0), two.samples(9, 0))
    with pytest.raises(InputError, match="has no intervals, got without held-out errors: fit the model again"):
        hm.load_forecaster(_OLD).forecast(3).interval(0.9)


def test_files_with_expected_errors_only_give_normal_intervals() -> None:
    growth = ErrorGrowth(np.array([[0.5], [1.0]]), np.array([2.0]))
    found = growth.half_widths(np.array([0.95]), 3)[0, :, 0]
    np.testing.assert_allclose(found[:2], [0.98, 1.96], rtol=1e-3)
    assert growth.paths(10, 3, np.random.default_rng(0)).shape == (10, 3, 1)


def test_intervals_at_a_bound_keep_their_width_within_it() -> None:
    sales = 360 - 2.3 * np.arange(150.0) + 4 * np.random.default_rng(0).standard_normal(150)
    model = hm.TimeDelayedTransformer(model="drift", lower=0.0, random_state=0, progress=False).fit(sales)
    ahead = model.forecast(60)
    assert (ahead.values[-1] == 0).all()  # the drift leads below zero
    band = ahead.interval(0.9)
    assert (band.lower >= 0).all()
    assert (band.upper > ahead.values).all()
    assert band.upper[-1] > 1.0
    drawn = ahead.samples(200, random_state=0)
    assert drawn.min() == 0.0
    assert drawn[:, -1].max() > 0.0
