"""Selection beside the simplest rules, on series made for each way in which a search can fall behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hardmax.forecasting.classical.rules import Drift, Mean, Median
from hardmax.forecasting.classical.seasons import find_seasons
from hardmax.forecasting.search.simple_candidates import Recipe, recipes_for
from hardmax.forecasting.search.simple_comparison import Origin, Scored, compare, evidence, make_origins, score
from hardmax.forecasting.search.validation import log_ratio


def _errors(series: np.ndarray, steps: int, season: int = 1) -> tuple[float, float]:
    """Mean absolute error of the selected simple model without the last ``steps`` samples, and of the seasonal naive.

    The family, whose search depends on a time budget, is left out.
    """
    scale = series[:-steps].std()
    before, after = series[:-steps, None] / scale, series[-steps:] / scale
    seasons = find_seasons([before], 1)
    origins = make_origins([before], 1, steps, seasons)
    recipes = recipes_for([before], 1, seasons, origins[0].windows.shape[1], None, 500)
    found = compare([], recipes, origins, seasons, lambda: True)
    assert found is not None
    model = found.kept.recipe.fit([before], 1)
    assert model is not None
    ahead = model.paths(before[None, -model.window :], steps)[0, :, 0]
    naive = np.tile(before[-season:, 0], -(-steps // season))[:steps]
    return float(np.abs(ahead - after).mean()), float(np.abs(naive - after).mean())


def test_the_median_is_that_of_the_last_samples() -> None:
    windows = np.random.default_rng(0).standard_normal((3, 20, 2))
    found = Median(2, 5).paths(windows, 4)
    assert found.shape == (3, 4, 2)
    np.testing.assert_array_equal(found[:, 3], np.median(windows[:, -5:], axis=1))


def test_counts_that_are_mostly_zero_are_forecast_by_their_median() -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(3.0, 120) * (rng.random(120) < 0.2)
    counts[-13] = 9  # the last sample before the forecast, which a naive rule repeats
    own, naive = _errors(counts.astype(float), 12)
    assert own < 0.3 * naive


def test_counts_that_have_died_out_are_forecast_as_zero() -> None:
    rng = np.random.default_rng(2)
    counts = rng.poisson(np.linspace(4.0, 0.05, 150)).astype(float)
    own, naive = _errors(counts, 12)
    assert own <= 1.15 * naive + 0.05


def test_an_outlier_at_the_end_is_not_continued() -> None:
    rng = np.random.default_rng(3)
    series = rng.standard_normal(120)
    series[-13] += 10.0
    own, naive = _errors(series, 12)
    assert own < 0.3 * naive


@pytest.mark.parametrize("seed", range(4))
def test_weeks_of_two_years_have_a_yearly_season(seed: int) -> None:
    rng = np.random.default_rng(seed)
    year = np.where(rng.random(52) < 0.1, 6.0, 0.0) + 0.5 * rng.standard_normal(52)
    year[[10, 40]] = 6.0
    for samples in (104, 118):
        series = np.tile(year, 3)[:samples] + rng.normal(0, 0.8, samples)
        assert 52 in find_seasons([series[:, None]], 1)


def test_the_yearly_season_of_two_years_is_continued() -> None:
    rng = np.random.default_rng(0)
    year = np.where(rng.random(52) < 0.1, 6.0, 0.0)
    series = np.tile(year, 3)[:143] + rng.normal(0, 0.5, 143)
    own, naive = _errors(series, 13, 52)
    assert own < 1.15 * naive


def test_seasons_that_a_record_does_not_tell_apart_are_one() -> None:
    for seed in (16, 9, 1, 2, 3, 4):
        rng = np.random.default_rng(seed)
        months = np.arange(30)
        series = 100 + 20 * np.sin(2 * np.pi * months / 12) + rng.normal(0, 4, 30) + months
        assert find_seasons([series[:, None]], 1) == (12,)


@pytest.mark.parametrize("samples", [60, 80, 100])
def test_more_of_a_short_record_is_held_out(samples: int) -> None:
    z = np.zeros((samples, 1))
    held_out = samples - len(make_origins([z], 1, 8, ())[0].pieces[-1])
    assert held_out == samples - int((1 - 0.5) * samples)
    assert 400 - len(make_origins([np.zeros((400, 1))], 1, 8, ())[0].pieces[-1]) == pytest.approx(140, abs=1)


def test_the_logarithm_of_a_ratio_has_the_standard_error_of_its_formula() -> None:
    first, second = [np.array([1.0, 2.0]), np.array([3.0])], [np.array([2.0, 2.0]), np.array([1.5])]
    small = 1e-3 * 5.5 / 3 + 1e-12
    logs = np.log([(1 + small) / (2 + small), 1.0, (3 + small) / (1.5 + small)])
    shares = np.array([1 / 6, 1 / 6, 2 / 3])
    mean = shares @ logs
    independent = 2.5 / (2 * (1 / 9 + 4 / 9))
    variance = (independent * (shares @ (logs - mean) ** 2) + 0.8**2) / (independent + 1)
    error = np.sqrt(variance / independent)
    assert log_ratio(first, second, np.array([1 / 3, 2 / 3]), 2.5) == pytest.approx((mean, error))


def _off(kind: str, sizes: np.ndarray, origins: list[Origin]) -> Recipe:
    """Recipe whose forecasts from the starts err by given sizes."""
    truths = {
        window[-1, 0]: truth for origin in origins for window, truth in zip(origin.windows, origin.truth, strict=True)
    }
    places = {key: index for index, key in enumerate(truths)}

    class Off(Drift):
        def paths(self, windows: np.ndarray, steps: int, future: np.ndarray | None = None) -> np.ndarray:
            known = [window[-1, 0] for window in windows]
            if any(key not in truths for key in known):
                return np.zeros((len(windows), steps, 1))
            return np.stack([truths[key] + sizes[places[key]] for key in known])

    return Recipe(kind, kind, lambda pieces, outputs: Off(outputs, 2))


@pytest.mark.parametrize(("logs", "sure"), [((-0.69, -0.69, -0.7), True), ((1.2, 1.2, -2.12), False)])
def test_one_model_replaces_a_rule_only_beyond_the_standard_error(logs: tuple[float, ...], sure: bool) -> None:
    """The typical error is half that of the rule: after every cut, or by a gain after the last one alone."""
    z = np.random.default_rng(0).standard_normal((60, 1))
    origins = make_origins([z], 1, 12, ())
    sizes = np.concatenate([np.full(len(o.truth), np.exp(log)) for o, log in zip(origins, logs, strict=True)])
    rule = _off("persistence", np.ones(len(sizes)), origins)
    other = _off("smoothing", sizes, origins)
    own, simple = (score(recipe, origins) for recipe in (other, rule))
    assert own is not None
    assert simple is not None
    assert own.error == pytest.approx(0.5, abs=0.01)
    assert (evidence(own, simple, origins) > 1.0) is sure
    found = compare([], [rule, other], origins, (), lambda: True)
    assert found is not None
    fitted = found.kept.recipe.fit([z], 1)
    assert (found.kept.recipe is other) is sure
    assert isinstance(fitted, Mean) is not sure


def test_a_chaotic_record_is_compared_over_the_steps_that_can_be_forecast() -> None:
    """After its accurate steps the candidate errs as much as the rule, or ten times as much after one of the cuts."""
    z = np.random.default_rng(0).standard_normal((60, 1))
    origins = make_origins([z], 1, 12, ())
    early = np.arange(origins[0].truth.shape[1]) < 4

    def scored(kind: str, errors: list[np.ndarray]) -> Scored:
        recipe = Recipe(kind, kind, lambda pieces, outputs: Drift(outputs, 2))
        paths = [origin.truth + size[None, :, None] for origin, size in zip(origins, errors, strict=True)]
        return Scored(recipe, paths, np.exp(np.mean(np.log(errors), axis=0)))

    late = [10.0, *[1.0] * (len(origins) - 1)]
    family = scored("family", [np.where(early, 0.01, size) for size in late])
    rule = scored("persistence", [np.ones(len(early)) for _ in origins])
    assert evidence(family, rule, origins) > 1.0
    alike = scored("family", [np.where(early, 0.3, size) for size in late])
    level = scored("persistence", [np.where(early, 0.3, 1.0) for _ in origins])
    assert evidence(alike, level, origins) <= 1.0
    assert evidence(rule, rule, origins) == 0.0


@pytest.mark.parametrize(("size", "optimism"), [(0.95, 1.2), (0.05, 1.0)])
def test_errors_of_a_structure_that_was_selected_with_later_samples_count_more(size: float, optimism: float) -> None:
    """Unless it is that of a model of the dynamics, whose errors are told as they are."""
    z = np.random.default_rng(0).standard_normal((60, 1))
    origins = make_origins([z], 1, 12, ())
    ones = np.ones(sum(len(o.truth) for o in origins))
    family = replace(_off("family", size * ones, origins), optimism=1.2)
    others = [_off(kind, ones, origins) for kind in ("persistence", "smoothing")]
    found = compare([family], others, origins, (), lambda: True)
    assert found is not None
    assert found.error_of("family") == pytest.approx(size * optimism)
    assert found.error_of("persistence") == pytest.approx(1.0)
    assert found.linear_error == found.error_of("family")
    # Where its errors count 1.14 times those of the rule, the rule is the best.
    assert found.scored[0].recipe.kind != "family" or optimism == 1.0
    assert (found.kept.recipe is family) == (optimism == 1.0)


@pytest.mark.parametrize(("other", "kept"), [(0.11, False), (0.5, True)])
def test_the_family_is_no_model_of_the_dynamics_where_another_kind_is_as_accurate(other: float, kept: bool) -> None:
    """A smooth season is continued by an ARIMA as well as by what a long search finds."""
    z = np.random.default_rng(0).standard_normal((60, 1))
    origins = make_origins([z], 1, 12, ())
    ones = np.ones(sum(len(o.truth) for o in origins))
    family = replace(_off("family", 0.12 * ones, origins), optimism=1.2)
    found = compare(
        [family], [_off("persistence", ones, origins), _off("arima", other * ones, origins)], origins, (), lambda: True
    )
    assert found is not None
    assert (found.kept.recipe is family) is kept


def test_a_comparison_cut_short_has_seen_every_kind() -> None:
    z = np.random.default_rng(0).standard_normal((60, 1))
    origins = make_origins([z], 1, 12, ())
    ones = np.ones(sum(len(o.truth) for o in origins))
    kinds = ["persistence", *["smoothing"] * 3, *["analogue"] * 3]
    left = iter([True, True, False])
    found = compare([], [_off(kind, ones, origins) for kind in kinds], origins, (), lambda: next(left))
    assert found is not None
    assert {s.recipe.kind for s in found.scored} >= {"persistence", "smoothing", "analogue"}
