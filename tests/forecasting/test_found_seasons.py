"""Seasons that a record has are found, those that only noise or a growing level suggest are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from hardmax.forecasting.classical.seasons import find_seasons

SEEDS = 12


def _wave(samples: int, season: float, shift: float = 0.0) -> np.ndarray:
    return np.sin(2 * np.pi * np.arange(samples) / season + shift)


def _found(record: Callable[[np.random.Generator], np.ndarray]) -> Counter[tuple[int, ...]]:
    """Seasons of normalised records with different noise, and how often each is found."""
    found: Counter[tuple[int, ...]] = Counter()
    for seed in range(SEEDS):
        made = record(np.random.default_rng(seed))
        values = made[:, None] if made.ndim == 1 else made
        found[find_seasons([(values - values.mean(axis=0)) / values.std(axis=0)], values.shape[1])] += 1
    return found


def _autoregression(rng: np.random.Generator, factor: float, samples: int) -> np.ndarray:
    values = rng.normal(0, 1, samples + 50)
    for i in range(1, len(values)):
        values[i] += factor * values[i - 1]
    return values[50:]


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_growth_whose_changes_grow_with_the_level_has_no_season(noise: float) -> None:
    growth = 100 * np.exp(0.02 * np.arange(200))
    assert _found(lambda rng: growth * (1 + rng.normal(0, noise, 200)))[()] >= SEEDS - 1
    assert _found(lambda rng: growth * np.exp(np.cumsum(rng.normal(0, noise, 200))))[()] >= SEEDS - 1


def test_a_step_of_the_level_has_no_season() -> None:
    step = 100 / (1 + np.exp(-(np.arange(200) - 100) / 15))
    assert _found(lambda rng: step + rng.normal(0, 1, 200))[()] >= SEEDS - 1


@pytest.mark.parametrize("slope", [0.1, 0.3, 1 / 3])
def test_rounding_of_a_straight_line_has_no_season(slope: float) -> None:
    assert _found(lambda rng: slope * np.arange(144.0) + 5) == {(): SEEDS}


def test_an_alternation_that_noise_forgets_is_no_season() -> None:
    assert _found(lambda rng: _autoregression(rng, -0.8, 400))[()] >= SEEDS - 2


def test_noise_around_a_long_season_is_no_shorter_one() -> None:
    assert _found(lambda rng: 6 * _wave(883, 144) + rng.normal(0, 0.2, 883)) == {(144,): SEEDS}


def test_noise_around_long_seasons_of_two_channels_is_no_shorter_one() -> None:
    def record(rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(0, 1, (883, 2))
        return np.stack([6 * _wave(883, 144) + 0.2 * noise[:, 0], -10 * _wave(883, 144, 0.3) + 0.5 * noise[:, 1]], 1)

    assert _found(record)[(144,)] >= SEEDS - 1


def test_a_channel_of_noise_does_not_blur_the_season_of_another() -> None:
    wave = 10 * _wave(200, 30)
    counts = _found(lambda rng: np.stack([rng.poisson(0.8, 200), wave + rng.normal(0, 1, 200)], 1))
    assert counts == {(30,): SEEDS}
    four = _found(lambda rng: np.column_stack([rng.normal(0, 1, (300, 4)), _wave(300, 24) + rng.normal(0, 0.3, 300)]))
    assert four == {(24,): SEEDS}


def test_two_channels_may_have_different_seasons() -> None:
    both = np.stack([_wave(200, 25), _wave(200, 40, 1.5)], 1)
    assert _found(lambda rng: both + rng.normal(0, 0.01, (200, 2))) == {(25, 40): SEEDS}


def test_many_channels_of_noise_or_random_walks_have_no_season() -> None:
    assert _found(lambda rng: rng.normal(0, 1, (200, 5)))[()] >= SEEDS - 1
    assert _found(lambda rng: rng.normal(0, 1, (200, 5)).cumsum(axis=0))[()] >= SEEDS - 1


@pytest.mark.parametrize("season", [7, 12])
def test_a_part_of_the_pattern_is_no_season_of_its_own(season: int) -> None:
    def record(rng: np.random.Generator) -> np.ndarray:
        samples = 20 * season
        return np.resize(rng.normal(0, 1, season), samples) + np.cumsum(rng.normal(0, 0.3, samples))

    assert _found(record)[(season,)] >= SEEDS - 2


def test_a_season_that_grows_with_the_level_is_found_alone() -> None:
    def record(rng: np.random.Generator) -> np.ndarray:
        pattern = np.resize(0.1 * rng.normal(0, 1, 12), 144)
        return 100 * np.exp(0.03 * np.arange(144) + pattern + np.cumsum(rng.normal(0, 0.03, 144)))

    assert _found(record)[(12,)] >= SEEDS - 2


def test_an_outlier_does_not_hide_a_season() -> None:
    def record(rng: np.random.Generator) -> np.ndarray:
        outlier = 15 * (np.arange(144) == rng.integers(20, 120))
        return np.resize(rng.normal(0, 1, 12), 144) + rng.normal(0, 0.2, 144) + outlier

    assert _found(record)[(12,)] >= SEEDS - 2


@pytest.mark.parametrize(("short", "long", "cycles"), [(24, 168, 6), (7, 365, 4), (48, 336, 5)])
@pytest.mark.parametrize("sine", [True, False])
def test_two_seasons_of_the_calendar_are_found(short: int, long: int, cycles: int, sine: bool) -> None:
    samples = cycles * long

    def record(rng: np.random.Generator) -> np.ndarray:
        shapes = [_wave(s, s) if sine else rng.normal(0, 0.7, s) for s in (short, long)]
        return np.resize(shapes[0], samples) + np.resize(shapes[1], samples) + rng.normal(0, 0.3, samples)

    assert _found(record)[(short, long)] >= SEEDS - 2


@pytest.mark.parametrize("season", [20, 30, 100])
def test_noise_does_not_move_a_long_season_of_many_cycles(season: int) -> None:
    assert _found(lambda rng: _wave(20 * season, season) + rng.normal(0, 0.7, 20 * season))[(season,)] >= SEEDS - 1
