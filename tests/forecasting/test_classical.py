"""Seasons, simple rules, smoothing, decompositions and analogues, against formulas and plain loops."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.errors import FileError, InputError
from hardmax.forecasting.classical.decomposition import (
    Decomposition,
    Logarithm,
    SeasonalDifference,
    SeasonalTrend,
    remainders,
)
from hardmax.forecasting.classical.files import get_path, put_path
from hardmax.forecasting.classical.rules import (
    Analogue,
    Drift,
    Mean,
    SeasonalNaive,
    Smoothing,
    fit_analogue,
    fit_smoothing,
    weighted_mean,
)
from hardmax.forecasting.classical.seasons import find_seasons
from hardmax.forecasting.diagnostics.report import _on_networks
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.search.simple_candidates import Recipe, recipes_for
from hardmax.forecasting.search.simple_comparison import (
    Origin,
    Scored,
    best_of_each,
    compare,
    make_origins,
    mean_of,
    resolution_of,
    samples_repeat,
    score,
    step_weights,
    typical_error,
)
from hardmax.forecasting.settings import MODELS

RULES = (
    "persistence",
    "seasonal-naive",
    "drift",
    "median",
    "smoothing",
    "arima",
    "seasonal-trend",
    "seasonal-difference",
    "analogue",
)


def _seasonal(samples: int = 150, season: int = 12, noise: float = 2.0, seed: int = 0) -> np.ndarray:
    t = np.arange(samples)
    rng = np.random.default_rng(seed)
    return 100 + 20 * np.sin(2 * np.pi * t / season) + 0.3 * t + rng.normal(0, noise, samples)


# seasons


@pytest.mark.parametrize("season", [4, 7, 12, 24, 52])
@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_a_season_is_found_in_noise_and_drift(season: int, slope: float) -> None:
    rng = np.random.default_rng(season)
    shape = rng.standard_normal(season)
    series = np.tile(shape, 8) + rng.normal(0, 0.3, 8 * season) + slope * np.arange(8 * season) / season
    assert find_seasons([series[:, None]], 1) == (season,)


def test_a_strong_season_is_found_in_two_and_a_half_cycles_and_no_multiple_of_a_shorter_one() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shape = rng.standard_normal(52)
        series = np.tile(shape, 3)[:130] + rng.normal(0, 0.3, 130)
        assert find_seasons([series[:, None]], 1) == (52,)
        assert find_seasons([np.cumsum(rng.standard_normal(130))[:, None]], 1) == ()
        wave = 20 * np.sin(2 * np.pi * np.arange(60) / 12) + rng.normal(0, 4, 60) + np.arange(60)
        assert find_seasons([wave[:, None]], 1) == (12,)


@pytest.mark.parametrize("samples", [120, 200])
def test_noise_around_one_season_is_no_second_one_at_a_multiple(samples: int) -> None:
    t, second = np.arange(samples), 0
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 9, samples)
        second += find_seasons([(1.5 * t + 40 * np.sin(2 * np.pi * t / 12) + noise)[:, None]], 1) != (12,)
    assert second <= 2


def test_windows_of_trends_and_seasons_grow_with_the_record() -> None:
    series = _seasonal(100)[:, None]
    origins = make_origins([series], 1, 12, (12,))
    assert [origin.windows.shape[1] for origin in origins] == [len(origin.pieces[-1]) for origin in origins]
    recipes = {r.label: r for r in recipes_for([series], 1, (12,), 65, None, 500)}
    for label in ("exponential smoothing, season 12", "stiff trend and season 12 over 100 samples, equal weights"):
        found = [recipes[label].fit([series[:length]], 1) for length in (65, 90)]
        assert [model.window for model in found if model is not None] == [65, 90]


def test_two_seasons_are_found_at_once() -> None:
    t = np.arange(24 * 7 * 6)
    week = np.where((t // 24) % 7 >= 5, -1.0, 0.0)
    series = np.sin(2 * np.pi * t / 24) + week + np.random.default_rng(0).normal(0, 0.2, len(t))
    assert find_seasons([series[:, None]], 1) == (24, 168)


@pytest.mark.parametrize("seed", range(6))
def test_noise_and_random_walks_have_no_season(seed: int) -> None:
    noise = np.random.default_rng(seed).standard_normal((300, 1))
    assert find_seasons([noise], 1) == ()
    assert find_seasons([noise.cumsum(axis=0)], 1) == ()


@pytest.mark.parametrize("samples", [1, 2, 3, 5, 7])
def test_a_record_of_few_samples_has_no_season(samples: int) -> None:
    assert find_seasons([np.arange(samples, dtype=float)[:, None]], 1) == ()
    assert find_seasons([np.zeros((samples, 2))], 1) == ()


@given(st.lists(st.integers(-2, 2), min_size=8, max_size=60))
@settings(deadline=None, max_examples=60)
def test_seasons_of_ties_are_within_the_record(values: list[int]) -> None:
    for season in find_seasons([np.array(values, dtype=float)[:, None]], 1):
        assert 2 <= season <= len(values) / (2 if season in (12, 24) else 2.2)


# rules, against loops


def test_naive_and_drift_are_their_formulas() -> None:
    windows = np.random.default_rng(0).standard_normal((3, 20, 2))
    naive, drift = SeasonalNaive(2, 7).paths(windows, 17), Drift(2, 20).paths(windows, 5)
    for start in range(3):
        for step in range(17):
            np.testing.assert_array_equal(naive[start, step], windows[start, 13 + step % 7])
        for step in range(5):
            slope = (windows[start, 19] - windows[start, 0]) / 19
            np.testing.assert_allclose(drift[start, step], windows[start, 19] + slope * (step + 1))


def _holt_winters(y: np.ndarray, season: int, weights: np.ndarray, steps: int) -> list[float]:
    """Additive Holt–Winters by the textbook, in plain numbers, from the same initial state."""
    alpha, beta, gamma, damping = (float(w) for w in weights)
    slope = float(y[season : 2 * season].mean() - y[:season].mean()) / season
    middle = float(y[: 2 * season].mean())
    line = [middle + slope * (t - season + 0.5) for t in range(2 * season)]
    cycle = [(y[k] - line[k] + y[season + k] - line[season + k]) / 2 for k in range(season)]
    level = middle - slope * (season + 0.5)
    for t, value in enumerate(y):
        ahead = level + damping * slope
        error = value - ahead - cycle[t % season]
        level = ahead + alpha * error
        slope = damping * slope + alpha * beta * error
        cycle[t % season] += gamma * (1 - alpha) * error
    path, total = [], 0.0
    for k in range(1, steps + 1):
        total += damping**k
        path.append(level + total * slope + cycle[(len(y) + k - 1) % season])
    return path


@pytest.mark.parametrize("season", [2, 5, 12])
def test_smoothing_is_holt_winters(season: int) -> None:
    rng = np.random.default_rng(season)
    windows = rng.standard_normal((2, 5 * season + 3, 2)).cumsum(axis=1)
    weights = rng.uniform(0.05, 0.95, 4)
    found = Smoothing(2, season, windows.shape[1], weights).paths(windows, 9)
    for start in range(2):
        for channel in range(2):
            expected = _holt_winters(windows[start, :, channel], season, weights, 9)
            np.testing.assert_allclose(found[start, :, channel], expected, rtol=1e-10, atol=1e-10)


def test_fitted_smoothing_errs_no_more_than_any_weights_of_a_grid() -> None:
    series = _seasonal(120)[:, None]
    series = (series - series.mean()) / series.std()
    fitted = fit_smoothing([series], 1, 12, 60)

    def squares(weights: np.ndarray) -> float:
        errors = [
            Smoothing(1, 12, t, weights).paths(series[None, :t], 1)[0, 0, 0] - series[t, 0] for t in range(24, 120, 2)
        ]
        return float(np.mean(np.square(errors)))

    best = squares(fitted.weights)
    for weights in np.random.default_rng(0).uniform(0, 1, (4, 4)):
        assert best <= 1.05 * squares(weights)


def test_an_analogue_forecast_is_a_weighted_mean_over_neighbours() -> None:
    rng = np.random.default_rng(1)
    pieces = [rng.standard_normal((40, 2)), rng.standard_normal((30, 2))]
    for anchored, spacing in ((False, 1), (True, 1), (False, 2), (True, 2)):
        length = 2 * spacing + 1
        model = fit_analogue(pieces, 2, length, 4, anchored, 2, spacing)
        assert model is not None
        window = rng.standard_normal((1, 6, 2))
        seen = window[0, -length::spacing]
        near = []
        for piece in pieces:
            for k in range(len(piece) - length - 2 + 1):
                rows, last = piece[k : k + length : spacing], piece[k + length - 1]
                change = (rows - last) - (seen - seen[-1]) if anchored else rows - seen
                follow = piece[k + length : k + length + 2] - (last - seen[-1] if anchored else 0)
                near.append((float(np.sqrt((change**2).sum())), follow))
        near.sort(key=lambda pair: pair[0])
        weights = np.exp([-distance / near[0][0] for distance, _ in near[:4]])
        expected = sum(w * follow for w, (_, follow) in zip(weights, near, strict=False)) / weights.sum()
        np.testing.assert_allclose(model.paths(window, 2)[0], expected, rtol=1e-9)


def test_analogues_of_a_repeated_record_continue_it() -> None:
    series = np.tile(np.arange(5.0), 20)[:, None]
    model = fit_analogue([series], 1, 4, 8, False, 2)
    assert isinstance(model, Analogue)
    np.testing.assert_allclose(model.paths(series[None, :98], 7)[0, :, 0], np.arange(98, 105) % 5, atol=1e-9)
    assert fit_analogue([series[:8]], 1, 4, 8, False, 2) is None


def test_analogues_that_match_exactly_share_the_weight_and_windows_are_handled_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Large offsets, where an expanded square has no correct digit: both exact matches count the same.
    series = 1e6 + np.array([0.0, 1.0, 3.0, 5.0, 0.0, 1.0, 3.0, 7.0] * 6)[:, None]
    model = fit_analogue([series], 1, 3, 4, False, 1)
    assert model is not None
    ahead = model.paths(series[None, :3], 1)[0, 0, 0]
    assert ahead - 1e6 in (5.0, 6.0, 7.0)
    windows = np.random.default_rng(0).standard_normal((9, 3, 1)) + 1e6
    whole = model.paths(windows, 4)
    monkeypatch.setattr("hardmax.forecasting.classical.rules._MOST_DISTANCES", 50)
    np.testing.assert_array_equal(model.paths(windows, 4), whole)


# decompositions


def test_a_decomposition_is_penalised_least_squares_and_continues_what_it_can_represent() -> None:
    t = np.arange(-95.0, 25.0)
    truth = 3 + 0.02 * t + np.cos(2 * np.pi * t / 12) + 0.5 * np.sin(2 * np.pi * t / 4)
    parts = Decomposition((12,), 96, 30.0, np.inf, 1.0)
    rest, ahead = parts.split(truth[None, :96, None], 24)
    np.testing.assert_allclose(ahead[0, :, 0], truth[96:], atol=0.02)
    assert np.abs(rest).max() < 0.02


def test_a_damped_slope_dies_out() -> None:
    line = np.arange(60.0)[None, :, None]
    _, ahead = Decomposition((), 60, 30.0, np.inf, 0.5).split(line, 40)
    np.testing.assert_allclose(ahead[0, :, 0], 59 + (1 - 0.5 ** np.arange(1, 41)), atol=0.05)


def test_remainders_are_what_a_forecast_sees() -> None:
    series = _seasonal(100)[:, None]
    parts = Decomposition((12,), 48, 0.3, 24.0, 0.9)
    found = remainders([series], 1, parts, 10)
    np.testing.assert_allclose(found[0], parts.split(series[None, -48:], 1)[0][0, -16:])
    assert all(piece.shape == (16, 1) for piece in found)


def test_seasonal_differences_are_added_back() -> None:
    windows = np.random.default_rng(0).standard_normal((2, 15, 1))
    model = SeasonalDifference(1, 4, Drift(1, 3))
    path = model.paths(windows, 9)
    for start in range(2):
        y = windows[start, :, 0].tolist()
        change = [y[k] - y[k - 4] for k in range(12, 15)]
        slope = (change[-1] - change[0]) / 2
        for step in range(1, 10):
            y.append(y[-4] + change[-1] + slope * step)
        np.testing.assert_allclose(path[start, :, 0], y[15:])


def test_logarithms_turn_growth_into_a_line() -> None:
    growth = 1.05 ** np.arange(60.0)
    mean, scale = growth.mean(), growth.std()
    zero = np.array([mean / scale])
    model = Logarithm(1, zero, np.array([1e-3]), Drift(1, 30))
    path = model.paths(((growth[:50] - mean) / scale)[None, :, None], 10)
    np.testing.assert_allclose(path[0, :, 0] * scale + mean, growth[50:])


def test_a_mean_is_the_mean_and_reaches_as_far_as_its_parts() -> None:
    windows = np.random.default_rng(0).standard_normal((2, 15, 1))
    model = Mean((SeasonalNaive(1, 4), Drift(1, 9)))
    assert model.window == 9
    expected = (SeasonalNaive(1, 4).paths(windows, 5) + Drift(1, 9).paths(windows, 5)) / 2
    np.testing.assert_allclose(model.paths(windows, 5), expected)
    weighted = Mean(model.parts, (0.25, 0.75)).paths(windows, 5)
    np.testing.assert_allclose(weighted, 0.5 * expected + 0.5 * Drift(1, 9).paths(windows, 5))


@pytest.mark.parametrize("channels", [1, 2])
def test_weights_of_a_mean_may_depend_on_the_step_and_the_last_holds_for_later_ones(channels: int) -> None:
    windows = np.random.default_rng(0).standard_normal((2, 15, channels))
    parts = (SeasonalNaive(channels, 4), Drift(channels, 9))
    first = np.array([0.9, 0.5, 0.2])
    model = Mean(parts, np.stack([first, 1 - first]))
    naive, drift = (part.paths(windows, 6) for part in parts)
    for step, weight in enumerate((0.9, 0.5, 0.2, 0.2, 0.2, 0.2)):
        expected = weight * naive[:, step] + (1 - weight) * drift[:, step]
        np.testing.assert_allclose(model.paths(windows, 6)[:, step], expected)
    np.testing.assert_array_equal(model.paths(windows, 2), model.paths(windows, 6)[:, :2])
    alike = Mean(parts, np.repeat([[0.3], [0.7]], 3, axis=1))
    np.testing.assert_allclose(alike.paths(windows, 6), Mean(parts, (0.3, 0.7)).paths(windows, 6))


@pytest.mark.parametrize("ties", [False, True])
def test_a_trimmed_mean_leaves_out_weight_on_either_side(ties: bool) -> None:
    rng = np.random.default_rng(5)
    found = rng.integers(0, 3, (5, 2, 4, 2)).astype(float) if ties else rng.standard_normal((5, 2, 4, 2))
    weights = rng.random((5, 4))
    weights /= weights.sum(axis=0)
    result = weighted_mean(found, weights, 0.25)
    for s, k, c in np.ndindex(result.shape):
        low, high, total, below = 0.25, 0.75, 0.0, 0.0
        for m in sorted(range(5), key=lambda m: found[m, s, k, c]):
            above = below + weights[m, k]
            total += max(0.0, min(above, high) - max(below, low)) * found[m, s, k, c]
            below = above
        assert result[s, k, c] == pytest.approx(2 * total, abs=1e-12)
    np.testing.assert_allclose(weighted_mean(found, weights), (weights[:, None, :, None] * found).sum(axis=0))
    # A model with three quarters of the weight decides alone, however far the others are; two equal ones share.
    leading = np.array([[0.75], [0.15], [0.1]])
    np.testing.assert_allclose(weighted_mean(np.array([1.0, 1e6, -1e6])[:, None, None, None], leading, 0.25), 1.0)
    two = np.array([1.0, 3.0])[:, None, None, None]
    np.testing.assert_allclose(weighted_mean(two, np.full((2, 1), 0.5), 0.25), 2.0)


def test_trimming_is_saved_and_absent_in_earlier_files() -> None:
    parts = (SeasonalNaive(1, 4), Drift(1, 9), SeasonalNaive(1, 2))
    model = Mean(parts, np.array([0.5, 0.3, 0.2]), 0.25)
    arrays: dict[str, np.ndarray] = {}
    words = put_path("path", model, _no_member, arrays)
    windows = np.random.default_rng(0).standard_normal((2, 15, 1))
    again = get_path(Path("model"), "path", words, _no_member, arrays, 1)
    np.testing.assert_array_equal(again.paths(windows, 5), model.paths(windows, 5))
    earlier = {key: value for key, value in words.items() if key != "trimmed"}
    plain = get_path(Path("model"), "path", earlier, _no_member, arrays, 1)
    np.testing.assert_array_equal(plain.paths(windows, 5), Mean(parts, model.weights).paths(windows, 5))
    assert (plain.paths(windows, 5) != model.paths(windows, 5)).any()
    for damaged in (0.5, -0.1, "much"):
        with pytest.raises(FileError, match="trimmed"):
            get_path(Path("model"), "path", words | {"trimmed": damaged}, _no_member, arrays, 1)


@pytest.mark.parametrize("weights", [None, np.array([0.25, 0.75]), np.array([[0.9, 0.5, 0.2], [0.1, 0.5, 0.8]])])
def test_means_are_read_with_weights_by_step_by_model_or_equal_ones(weights: np.ndarray | None) -> None:
    """Files of earlier versions hold the first two kinds."""
    model = Mean((SeasonalNaive(1, 4), Drift(1, 9)), weights)
    arrays: dict[str, np.ndarray] = {}
    words = put_path("path", model, _no_member, arrays)
    again = get_path(Path("model"), "path", words, _no_member, arrays, 1)
    windows = np.random.default_rng(0).standard_normal((2, 15, 1))
    np.testing.assert_array_equal(again.paths(windows, 5), model.paths(windows, 5))
    for damaged in (
        np.ones((3, 2)),
        np.ones((2, 0)),
        np.zeros((2, 2)),
        np.full(2, np.nan),
        np.ones((2, 2, 2)),
        np.ones(()),
    ):
        with pytest.raises(FileError, match="weights"):
            get_path(Path("model"), "path", words, _no_member, {"path.weights": damaged}, 1)


def _no_member(name: str, part: object) -> Never:
    raise AssertionError(name)


def test_a_mean_with_weights_by_step_is_saved_loaded_and_updated(tmp_path: Path) -> None:
    series = _seasonal(60, noise=12.0)
    fitted = TimeDelayedTransformer(seconds=0.5, horizon=12, random_state=0, progress=False).fit(series[:50])
    path = fitted.predictor_.path
    assert isinstance(path, Mean)
    assert np.shape(path.weights) == (len(path.parts), 12)
    again = hm.load_forecaster(fitted.save(tmp_path / "model", updatable=True))
    np.testing.assert_array_equal(again.forecast(30).values, fitted.forecast(30).values)
    for one in (again, again.update(series[50:]), fitted.update(series[50:])):
        assert np.isfinite(one.forecast(30).values).all()
    np.testing.assert_array_equal(again.forecast(30).values, fitted.forecast(30).values)


# comparison


@pytest.mark.parametrize("samples", [14, 39, 150, 7000])
def test_origins_never_show_what_they_forecast(samples: int) -> None:
    z = np.arange(samples, dtype=float)[:, None]
    origins = make_origins([z], 1, 12, (4,))
    for origin in origins:
        known = origin.pieces[-1][-1, 0]
        assert (origin.truth[:, 0, 0] == origin.windows[:, -1, 0] + 1).all()
        assert (origin.truth[:, 0, 0] > known).all()
    assert origins[-1].truth[-1, -1, 0] == samples - 1
    assert sum(len(origin.truth) for origin in origins) >= 2
    held_out = samples - origins[0].pieces[-1].shape[0]
    assert sum(origin.horizons for origin in origins) == pytest.approx(held_out / origins[0].truth.shape[1])


def test_the_typical_error_is_that_of_its_formula() -> None:
    z = np.random.default_rng(0).standard_normal((60, 2))
    origins = make_origins([z], 2, 5, ())
    found = score(Recipe("persistence", "last", lambda pieces, outputs: SeasonalNaive(outputs, 1)), origins)
    assert found is not None
    total = 0.0
    for step in range(5):
        for weight, origin in zip((1, 2, 4), origins, strict=True):
            errors = [
                np.sqrt(((window[-1] - truth[step]) ** 2).mean())
                for window, truth in zip(origin.windows, origin.truth, strict=True)
            ]
            total += weight / 7 * np.log(np.mean(errors))
    assert found.error == pytest.approx(np.exp(total / 5))
    assert found.error == typical_error(found.curve)


def test_of_counts_that_repeat_the_typical_error_is_a_mean_that_zeros_do_not_decide() -> None:
    counts = np.random.default_rng(1).poisson(0.15, 200).astype(float)[:, None]
    origins = make_origins([counts], 1, 12, ())
    assert samples_repeat(origins)
    found = score(Recipe("persistence", "last", lambda pieces, outputs: SeasonalNaive(outputs, 1)), origins)
    assert found is not None
    total = 0.0
    for weight, origin in zip((1, 2, 4), origins, strict=True):
        total += weight / 7 * np.abs(origin.windows[:, -1:] - origin.truth).mean()
    assert found.error == pytest.approx(total)
    assert min(np.abs(origin.windows[:, -1:] - origin.truth).mean(axis=(0, 2)).min() for origin in origins) == 0.0
    assert found.error_up_to(3) == pytest.approx(found.curve[:3].mean())


def test_errors_of_rounded_data_are_no_smaller_than_half_the_least_that_is_not_zero() -> None:
    rng = np.random.default_rng(0)
    pattern = np.tile([1.0] * 5 + [0, 0], 60)[:400]
    flips = np.where(rng.random(400) < 0.05, 1 - pattern, pattern)[:, None]
    scaled = (flips - flips.mean()) / flips.std()
    origins = make_origins([scaled], 1, 14, (7,))
    assert not samples_repeat(origins)
    assert origins[0].resolution == pytest.approx(1 / flips.std())
    found = score(Recipe("seasonal-naive", "last", lambda pieces, outputs: SeasonalNaive(outputs, 7)), origins)
    assert found is not None
    true = np.abs(scaled[7:] - scaled[:-7]).mean()
    assert 0.4 * true < found.error < 1.5 * true  # without the bound below 1e-3 of it
    for data, step in ((rng.standard_normal(300), 0.0), (np.round(rng.standard_normal(300), 1), 0.1), (pattern, 1.0)):
        assert resolution_of([data[:, None]], 1) == pytest.approx(step)
    both = np.stack([np.round(rng.standard_normal(200), 1), rng.standard_normal(200)], axis=1)
    assert resolution_of([both[:150], both[150:]], 2) == pytest.approx(0.1 / np.sqrt(2))
    assert resolution_of([np.zeros((9, 1))], 1) == 0.0
    season = np.exp(np.sin(2 * np.pi * np.arange(60) / 12))[:, None]  # equal values but for rounding
    assert resolution_of([season - 3.0], 1) == 0.0


def test_samples_that_do_not_repeat_have_geometric_means() -> None:
    rng = np.random.default_rng(0)
    assert not samples_repeat(make_origins([rng.standard_normal((200, 1))], 1, 12, ()))
    assert not samples_repeat(make_origins([np.sin(0.3 * np.arange(200.0))[:, None]], 1, 12, ()))
    # Counts that are large differ between the starts.
    assert not samples_repeat(make_origins([rng.poisson(30.0, (200, 1)).astype(float)], 1, 12, ()))


@pytest.mark.parametrize("seed", range(4))
def test_the_error_that_is_printed_of_rare_counts_is_about_that_of_forecasts(seed: int) -> None:
    counts = np.random.default_rng(seed).poisson(0.15, 260).astype(float)
    model = TimeDelayedTransformer(12, seconds=0.3, random_state=0, progress=False).fit(counts[:200])
    starts = range(200, 248, 4)
    ahead = model.forecast(12, window=np.stack([counts[k - model.window : k, None] for k in starts]))
    truth = np.stack([counts[k : k + 12, None] for k in starts])
    measured = np.abs(ahead.values - truth).mean() / counts[:200].std()
    assert 0.3 * measured < model.report_.numbers["error"] < 3 * measured


def test_an_accurate_model_of_the_family_is_kept_without_a_search() -> None:
    t = np.arange(300.0)
    z = np.sin(0.37 * t)[:, None]
    origins = make_origins([z], 1, 20, ())

    class Exact(Drift):
        def paths(self, windows: np.ndarray, steps: int, future: np.ndarray | None = None) -> np.ndarray:
            a, b = windows[:, -1, :1], windows[:, -2, :1]
            out = []
            for _ in range(steps):
                a, b = 2 * np.cos(0.37) * a - b, a
                out.append(a)
            return np.stack(out, axis=1)

    family = Recipe("family", "exact", lambda pieces, outputs: Exact(outputs, 2))

    def refuse(pieces: object, outputs: int) -> None:
        raise AssertionError("no other model is to be tried")

    recipes = [*recipes_for([z], 1, (), 50, None)[:3], Recipe("smoothing", "never", refuse)]
    found = compare([family], recipes, origins, (), lambda: True)
    assert found is not None
    assert found.kept.recipe is family
    assert found.linear_error == found.kept.error


@pytest.mark.parametrize(("early", "kept"), [(0.02, True), (0.45, False)])
def test_accurate_steps_of_the_family_count_before_late_ones(early: float, kept: bool) -> None:
    """A model of chaos forecasts the first steps far better than simple kinds, and nothing after them."""
    z = np.random.default_rng(0).standard_normal((200, 1))
    truths = {origin.windows[0, -1, 0]: origin.truth for origin in make_origins([z], 1, 20, ())}

    class Chaotic(Drift):
        def paths(self, windows: np.ndarray, steps: int, future: np.ndarray | None = None) -> np.ndarray:
            truth = truths[windows[0, -1, 0]]
            off = np.where(np.arange(steps) < 8, early, 3.0)
            return np.asarray(truth + off[None, :, None])

    family = Recipe("family", "chaotic", lambda pieces, outputs: Chaotic(outputs, 2))
    origins = make_origins([z], 1, 20, ())
    mean = Recipe(
        "smoothing",
        "at the mean",
        lambda pieces, outputs: Logarithm(outputs, np.ones(1), np.ones(1), Drift(outputs, 2)),
    )
    found = compare([family], [*recipes_for([z], 1, (), 50, None)[:3], mean], origins, (), lambda: True)
    assert found is not None
    assert (found.kept.recipe is family) is kept


@pytest.mark.parametrize(("late", "kept"), [(0.1, False), (0.9, True)])
def test_a_simple_kind_that_is_accurate_at_more_steps_is_not_left_out(late: float, kept: bool) -> None:
    z = np.random.default_rng(0).standard_normal((200, 1))
    origins = make_origins([z], 1, 20, ())
    truths = {origin.windows[0, -1, 0]: origin.truth for origin in origins}

    def off(kind: str, first: float, then: float) -> Recipe:
        class Off(Drift):
            def paths(self, windows: np.ndarray, steps: int, future: np.ndarray | None = None) -> np.ndarray:
                errors = np.where(np.arange(steps) < 4, first, then)
                return np.asarray(truths[windows[0, -1, 0]] + errors[None, :, None])

        return Recipe(kind, kind, lambda pieces, outputs: Off(outputs, 2))

    family, smoothing = off("family", 0.02, 3.0), off("smoothing", 0.6, late)
    found = compare([family], [*recipes_for([z], 1, (), 50, None)[:3], smoothing], origins, (), lambda: True)
    assert found is not None
    assert (found.kept.recipe is family) is kept


def test_what_is_kept_has_nearly_the_smallest_typical_error() -> None:
    z = _seasonal(144)[:, None]
    z = (z - z.mean()) / z.std()
    origins = make_origins([z], 1, 12, (12,))
    recipes = recipes_for([z], 1, (12,), origins[0].windows.shape[1], np.array([5.0]))
    found = compare([], recipes, origins, (12,), lambda: True)
    assert found is not None
    singles = [s for s in found.scored if s.recipe.kind != "mean"]
    assert {s.recipe.kind for s in singles} >= {"td-dmd", *RULES}
    assert found.kept.error <= singles[0].error / 0.65
    naive = found.error_of("seasonal-naive")
    assert naive is not None
    assert found.kept.error < naive
    assert best_of_each(singles) == singles
    pair = mean_of(singles[:2], origins)
    weights = _weights_by_loops([single.curve for single in singles[:2]])
    for index, path in enumerate(pair.paths):
        for step in range(path.shape[1]):
            # Of two models, the middle half of the weight is what each has beyond a quarter, up to a half.
            middle = 2 * np.clip(weights[:, step] - 0.25, 0.0, 0.5)
            expected = sum(w * s.paths[index][:, step] for w, s in zip(middle, singles[:2], strict=True))
            np.testing.assert_allclose(path[:, step], expected)
    fitted = pair.recipe.fit([z], 1)
    assert isinstance(fitted, Mean)
    np.testing.assert_allclose(fitted.weights, weights)


def _weights_by_loops(curves: list[np.ndarray]) -> np.ndarray:
    """Weights inverse to the squares of mean errors over the steps within a factor of 1.5."""
    inverse = np.zeros((len(curves), len(curves[0])))
    for m, curve in enumerate(curves):
        for k in range(1, len(curve) + 1):
            near = [curve[j - 1] for j in range(1, len(curve) + 1) if 2 * k <= 3 * j and 2 * j <= 3 * k]
            inverse[m, k - 1] = (sum(near) / len(near)) ** -2
    return inverse / inverse.sum(axis=0)


def _with_errors(kind: str, errors: np.ndarray, origins: list[Origin]) -> Scored:
    """A candidate whose forecasts err by ``errors``, shape (steps,), from every start and in every channel."""
    size = errors if kind in RULES else -errors
    recipe = Recipe(kind, kind, lambda pieces, outputs: SeasonalNaive(outputs, 1 + len(kind)))
    return Scored(recipe, [origin.truth + size[None, :, None] for origin in origins], errors)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_model_that_is_accurate_early_is_not_diluted_there_by_one_that_is_good_late(channels: int) -> None:
    z = np.random.default_rng(0).standard_normal((200, channels))
    origins = make_origins([z], channels, 24, ())
    steps = np.arange(1, 25)
    early = _with_errors("family", np.where(steps <= 6, 0.02, 2.0), origins)
    late = _with_errors("drift", np.full(24, 0.5), origins)
    # The typical errors are so close that weights by them alone would give either half of every step.
    assert 0.5 < early.error / late.error < 2.0
    for share in (0.0, 0.4):
        weights = step_weights([early, late], late, share)
        np.testing.assert_allclose(weights.sum(axis=0), 1.0)
        assert (weights[1, :4] < 0.01).all()
        assert (weights[1, -4:] > 0.9).all()
        found = mean_of([early, late], origins, late, share)
        assert (found.curve[:4] < 0.01 + 1.1 * early.curve[:4]).all()
        assert (found.curve[-4:] < 1.1 * late.curve[-4:]).all()
    fitted = found.recipe.fit([z], channels)
    assert isinstance(fitted, Mean)
    np.testing.assert_allclose(fitted.weights, weights)


def test_ties_have_equal_weights_and_an_error_of_zero_by_chance_decides_about_its_step_alone() -> None:
    z = np.zeros((200, 1))
    origins = make_origins([z], 1, 12, ())
    ones = np.ones(12)
    ties = [_with_errors(kind, ones, origins) for kind in ("drift", "median", "smoothing", "analogue")]
    np.testing.assert_array_equal(step_weights(ties), np.full((4, 12), 0.25))
    exact = [_with_errors(kind, np.zeros(12), origins) for kind in ("drift", "median")]
    np.testing.assert_array_equal(step_weights(exact), np.full((2, 12), 0.5))
    chance = _with_errors("drift", np.where(np.arange(12) == 8, 0.0, 1.0), origins)
    weights = step_weights([chance, ties[1]])
    np.testing.assert_allclose(weights, _weights_by_loops([chance.curve, ones]))
    assert (weights[0] < 0.7).all()


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_the_least_weight_of_a_rule_holds_only_where_it_is_nearly_as_accurate(share: float) -> None:
    origins = make_origins([np.zeros((200, 1))], 1, 12, ())
    best = _with_errors("smoothing", np.array([*[0.1] * 4, *[0.72] * 8]), origins)
    rule = _with_errors("persistence", np.ones(12), origins)
    plain, raised = step_weights([best, rule]), step_weights([best, rule], rule, share)
    times = 1.0 / np.array([_mean_around(best.curve, k) for k in range(1, 13)])
    assert (times[:4] > 1.75).all()
    assert ((times > 1.25) & (times < 1.75)).any()  # between them the least weight falls along a line
    least = [share * min(1.0, max(0.0, 2 * (1.75 - ratio))) for ratio in times]
    np.testing.assert_allclose(raised[1], np.maximum(plain[1], least))
    np.testing.assert_allclose(raised.sum(axis=0), 1.0)


def test_weights_do_not_jump_from_step_to_step() -> None:
    origins = make_origins([np.zeros((600, 1))], 1, 40, ())
    steps = np.arange(1, 41)
    best, rule = (_with_errors(kind, 1 - np.exp(-steps / k), origins) for kind, k in (("arima", 25), ("drift", 7)))
    weights = step_weights([best, rule], rule, 0.5)
    assert weights[1].max() > 0.4
    assert weights[1].min() < 0.2
    assert np.abs(np.diff(weights, axis=1)).max() < 0.1


def _mean_around(curve: np.ndarray, step: int) -> float:
    return float(np.mean([curve[j - 1] for j in range(1, len(curve) + 1) if 2 * step <= 3 * j and 2 * j <= 3 * step]))


@pytest.mark.parametrize(("worse", "share"), [(6, 7 / 15), (7, 25 / 74), (8, 25 / 89), (10, None)])
def test_the_simplest_rule_keeps_a_share_where_few_horizons_are_held_out(worse: int, share: float | None) -> None:
    z = np.random.default_rng(0).standard_normal((30, 1))
    origins = make_origins([z], 1, 12, ())
    assert sum(origin.horizons for origin in origins) == pytest.approx(15 / 7)
    truths = {origin.windows[0, -1, 0]: origin.truth for origin in origins}

    class Off(Drift):
        def paths(self, windows: np.ndarray, steps: int, future: np.ndarray | None = None) -> np.ndarray:
            return np.asarray(truths.get(windows[0, -1, 0], np.zeros((1, steps, 1))) + 0.1 * self.length)

    # Errors in proportion to the lengths: the rule is worse by a factor of 1.2, 1.4 or 1.6 (less and less of its least
    # weight is left), or 2 (too much for the mean).
    rule = Recipe("persistence", "rule", lambda pieces, outputs: Off(outputs, worse))
    best = Recipe("smoothing", "best", lambda pieces, outputs: Off(outputs, 5))
    found = compare([], [rule, best], origins, (), lambda: True)
    assert found is not None
    fitted = found.kept.recipe.fit([z], 1)
    if share is None:
        assert found.kept.recipe is best
    else:
        assert isinstance(fitted, Mean)
        np.testing.assert_allclose(fitted.weights, np.repeat([[1 - share], [share]], 7, axis=1))
    scored = [s for s in found.scored if s.recipe.kind != "mean"]
    last = max(0.9 * np.clip(2 * (1.75 - worse / 5), 0, 1), 25 / (25 + worse**2))
    weights = mean_of(scored, origins, scored[1], 0.9).recipe.fit([z], 1).weights
    np.testing.assert_allclose(weights, np.repeat([[1 - last], [last]], 7, axis=1))


def test_a_recipe_that_does_not_fit_or_is_no_number_is_left_out() -> None:
    z = _seasonal(60)[:, None]
    origins = make_origins([z], 1, 6, ())
    assert score(Recipe("drift", "too long", lambda pieces, outputs: Drift(outputs, 1000)), origins) is None
    assert score(Recipe("drift", "none", lambda pieces, outputs: None), origins) is None


# the estimator


@pytest.mark.parametrize("model", RULES)
def test_a_model_that_is_asked_for_is_fitted_saved_and_loaded(model: str, tmp_path: Path) -> None:
    series = _seasonal()
    fitted = TimeDelayedTransformer(model=model, horizon=12, random_state=0, progress=False).fit(series)
    found = fitted.fitted_.comparison
    assert found.kept.recipe.kind in (model, "mean")
    assert fitted.forecast(3).values.shape == (3, 1)
    again = hm.load_forecaster(fitted.save(tmp_path / "model"))
    assert again.model == model
    np.testing.assert_array_equal(again.forecast(30).values, fitted.forecast(30).values)
    np.testing.assert_array_equal(again.forecast(30).spread, fitted.forecast(30).spread)
    if model == "persistence":
        np.testing.assert_allclose(fitted.forecast(4).values[:, 0], series[-1])
    if model == "seasonal-naive":
        np.testing.assert_allclose(fitted.forecast(14).values[:, 0], [*series[-12:], *series[-12:-10]])


def test_a_season_beats_what_the_family_alone_does() -> None:
    series = _seasonal(132)
    both = {
        model: TimeDelayedTransformer(model=model, seconds=0.5, horizon=12, random_state=0, progress=False)
        .fit(series[:120])
        .forecast(12)
        .values[:, 0]
        for model in ("auto", "seasonal-naive")
    }
    truth = series[120:]
    assert np.abs(both["auto"] - truth).mean() <= 1.15 * np.abs(both["seasonal-naive"] - truth).mean()


def test_seasons_and_windows_of_a_fit() -> None:
    series = _seasonal(90)
    found = TimeDelayedTransformer(model="seasonal-trend", season=[12, 6], random_state=0, progress=False).fit(series)
    assert found.fitted_.comparison.seasons == (6, 12)
    assert TimeDelayedTransformer(model="drift", delays=5, random_state=0, progress=False).fit(series).window <= 6
    none = TimeDelayedTransformer(model="smoothing", season=[], random_state=0, progress=False).fit(series)
    assert none.fitted_.comparison.seasons == ()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "prophet"}, "model"),
        ({"season": 1}, "season must be a number of samples, 2 or more"),
        ({"season": 12.0}, "season must be a number of samples"),
        ({"season": [12, True]}, "season must be a number of samples"),
        ({"season": 200}, "longer than the record"),
        ({"season": 60}, "more than half of the record"),
        ({"model": "seasonal-naive", "season": []}, "no season was found"),
        ({"model": "reservoir"}, "needs 600 samples"),
        ({"model": "drift", "recipe": "paper"}, "model"),
    ],
)
def test_bad_choices_are_refused_in_words(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TimeDelayedTransformer(random_state=0, progress=False, **parameters).fit(_seasonal(100))  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["auto", "smoothing", "seasonal-naive"])
def test_constant_records_are_told_and_forecast_as_constant(model: str) -> None:
    found = TimeDelayedTransformer(model=model, random_state=0, progress=False).fit(np.zeros(50))
    assert "Nothing varies" in str(found.report_)
    np.testing.assert_array_equal(found.forecast(5).values, 0.0)
    with pytest.raises(InputError, match="too few samples"):
        TimeDelayedTransformer(model=model, progress=False).fit(np.ones(1))


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e140])
def test_units_do_not_change_a_forecast(scale: float) -> None:
    series = _seasonal(60)
    options = {"model": "seasonal-trend", "season": 12, "horizon": 6, "random_state": 0, "progress": False}
    plain = TimeDelayedTransformer(**options).fit(series).forecast(6).values
    scaled = TimeDelayedTransformer(**options).fit(series * scale).forecast(6).values
    np.testing.assert_allclose(scaled / scale, plain, rtol=1e-9)


def test_damaged_descriptions_are_refused(tmp_path: Path) -> None:
    from hardmax.forecasting.classical.files import get_path

    for words, message in [
        ({"kind": "prophet"}, "not known"),
        ({"kind": "drift", "length": 0}, "is 0"),
        ({"kind": "mean", "parts": []}, "mean of none"),
        ({"kind": "rollout", "members": []}, "no members"),
    ]:
        with pytest.raises(FileError, match=message):
            get_path(tmp_path, "path", words, lambda name, part: None, {}, 1)  # type: ignore[arg-type,return-value]
    deep: dict[str, object] = {"kind": "drift", "length": 2}
    for _ in range(9):
        deep = {"kind": "mean", "parts": [deep]}
    with pytest.raises(FileError, match="too many"):
        get_path(tmp_path, "path", deep, lambda name, part: None, {}, 1)  # type: ignore[arg-type,return-value]


def test_names_of_models_are_documented() -> None:
    text = TimeDelayedTransformer.__doc__ or ""
    assert all(f'``"{model}"``' in text for model in MODELS)


def test_a_decomposition_without_an_inner_model_is_its_continuation() -> None:
    windows = np.random.default_rng(0).standard_normal((2, 40, 1))
    parts = Decomposition((4,), 30, 0.3, np.inf, 0.9)
    np.testing.assert_allclose(
        SeasonalTrend(1, parts).paths(windows, 5), parts.split(windows[:, -30:], 5)[1], rtol=1e-12
    )


def test_updates_of_a_simple_model_move_its_window(tmp_path: Path) -> None:
    series = _seasonal(150)
    model = TimeDelayedTransformer(model="seasonal-naive", season=12, random_state=0, progress=False)
    model.fit(series[:140]).update(series[140:])
    np.testing.assert_allclose(model.forecast(12).values[:, 0], series[138:])
    again = hm.load_forecaster(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.forecast(12).values, model.forecast(12).values)


@pytest.mark.parametrize(
    ("first", "settings"),
    [(15, {}), (20, {}), (20, {"season": 12}), (13, {"season": 24}), (20, {"season": 24, "model": "smoothing"})],
)
def test_two_records_of_unequal_length_are_fitted(first: int, settings: dict[str, Any]) -> None:
    season = settings.get("season", 12)
    t = np.arange(140)
    y = 50 + 10 * np.sin(2 * np.pi * t / season) + np.random.default_rng(1).normal(0, 1, 140)
    for parts in ([y[:first], y[first:80]], [y[:60], y[60 : 60 + first]]):
        model = TimeDelayedTransformer(random_state=0, progress=False, restarts=1, **settings)
        model.fit(parts)
        if len(parts[-1]) < model.window:
            with pytest.raises(InputError, match="samples in the last record, from which forecasts start"):
                model.forecast(5)
        ahead = model.forecast(5, window=parts[int(len(parts[0]) < len(parts[1]))])
        assert np.isfinite(ahead.values).all()
        assert (ahead.spread > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_means_of_linear_models_are_extrapolated_as_they_are(seed: int) -> None:
    z = np.exp(0.03 * np.arange(60)) + 0.01 * np.random.default_rng(seed).standard_normal(60)
    model = TimeDelayedTransformer(model="td-dmd", seconds=0.5, random_state=0, progress=False).fit(z)
    ahead = model.forecast(100)
    assert ahead.values[-1, 0] > 0.8 * np.exp(0.03 * 159)
    assert "fades out" not in str(model.forecast(20).outcome)


def test_reports_name_the_samples_a_reservoir_needs() -> None:
    z = np.random.default_rng(0).standard_normal((500, 2))
    with pytest.raises(InputError, match="needs 600 samples before the held-out part, and the record has 400 there"):
        TimeDelayedTransformer(model="reservoir", seconds=0.3, random_state=0, progress=False).fit(z)


def test_intervals_of_one_width_are_told_where_logarithms_are_better() -> None:
    t = np.arange(200)
    grows = 100 * np.exp(0.02 * t) * (1 + 0.01 * np.random.default_rng(0).standard_normal(200))
    flat = 100 + np.random.default_rng(0).standard_normal(200)
    for data, transform, seconds, told in (
        (grows, None, None, True),
        (grows, "log", 0.5, False),
        (flat, None, 0.5, False),
    ):
        model = TimeDelayedTransformer(seconds=seconds, transform=transform, random_state=0, progress=False).fit(data)
        assert ('transform="log"' in str(model.report_)) is told


def test_attention_that_is_better_and_left_out_has_a_reason() -> None:
    recipe = Recipe("median", "the median", lambda pieces, outputs: SeasonalNaive(outputs, 1))

    def said(attention: float, kept: Recipe | None) -> str:
        best = {"attention": SimpleNamespace(score=attention), "linear": SimpleNamespace(score=-0.5)}
        chosen = SimpleNamespace(recipe=kept, sources=[SimpleNamespace(family="linear")])
        return _on_networks(SimpleNamespace(best_by_family=best, selection=SimpleNamespace(chosen=chosen)), None)

    reason = "but simple models were selected"
    assert reason in said(-1.0, recipe)
    assert reason not in said(-0.1, recipe)
    assert reason not in said(-1.0, None)
