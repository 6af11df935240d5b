"""Measures of skill against their definitions, and statistics against plain counting."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.errors import InputError
from hardmax.forecasting.diagnostics.skill import (
    compare,
    confidence,
    error_curves,
    histogram_distance,
    mean_ranks,
    spectrum_distance,
    valid_times,
)


def test_errors_are_in_standard_deviations_and_never_nan():
    truth = np.zeros((2, 3, 2))
    forecast = truth.copy()
    forecast[0, 1] = (2.0, 0.0)
    forecast[1, 2] = (np.nan, 0.0)
    curves = error_curves(forecast, truth, np.array([2.0, 5.0]))
    assert curves[0].tolist() == pytest.approx([0.0, np.sqrt(0.5), 0.0])
    assert curves[1].tolist() == [0.0, 0.0, np.inf]
    with pytest.raises(InputError, match="must have the shape of the truth"):
        error_curves(truth[:1], truth, np.ones(2))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000))
def test_valid_times_by_a_plain_loop(seed):
    curves = np.random.default_rng(seed).random((5, 7))
    found = valid_times(curves, 0.1, threshold=0.8, unit=2.0)
    for row, value in zip(curves, found, strict=True):
        steps = 0
        while steps < 7 and row[steps] <= 0.8:
            steps += 1
        assert value == pytest.approx(steps * 0.1 / 2.0)


def test_climate_distances_tell_alike_from_apart():
    rng = np.random.default_rng(0)
    t = np.arange(4000)
    one = np.column_stack([np.sin(0.1 * t), np.sin(0.23 * t)]) + 0.1 * rng.standard_normal((4000, 2))
    same = np.column_stack([np.sin(0.1 * t + 1), np.sin(0.23 * t + 2)]) + 0.1 * rng.standard_normal((4000, 2))
    other = np.column_stack([np.sin(0.4 * t), 3 + 0 * t])
    assert histogram_distance(one, one) == 0.0
    assert spectrum_distance(one, one) == 0.0
    assert histogram_distance(same, one) < 0.1 < 0.5 < histogram_distance(other, one)
    assert spectrum_distance(same, one) < 0.3 < 1.0 < spectrum_distance(other, one)
    # Nothing in common is 1, and a forecast that blew up is far away, not NaN.
    assert histogram_distance(one + 100.0, one) == pytest.approx(1.0, abs=0.02)
    assert np.isfinite(spectrum_distance(np.full_like(one, np.nan), one))


def test_intervals_cover_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(1)
    hits = 0
    for k in range(200):
        found = confidence(rng.normal(3.0, 1.0, 40), draws=400, random_state=k)
        hits += found.low <= 3.0 <= found.high
    assert 0.88 <= hits / 200 <= 0.99
    # Seeds that differ among themselves widen it: starts of one seed are no independent evidence.
    table = np.repeat(rng.normal(3.0, 1.0, (4, 1)), 25, axis=1)
    nested, pooled = confidence(table), confidence(table.reshape(-1))
    assert nested.high - nested.low > 2 * (pooled.high - pooled.low)
    with pytest.raises(InputError, match="values must not be empty"):
        confidence(np.array([]))


def test_comparisons_by_counting_all_signs():
    ours, theirs = np.array([5.0, 3.1, 2.0, 7.0, 1.0, 4.0]), np.array([1.0, 3.0, 2.5, 2.0, 1.0, 2.2])
    found = compare(ours, theirs)
    assert (found.wins, found.losses, found.ties) == (4, 1, 1)
    gaps = (ours - theirs)[ours != theirs]
    ranks = np.argsort(np.argsort(np.abs(gaps))) + 1
    seen = (ranks * np.sign(gaps)).sum()
    signs = list(itertools.product([-1, 1], repeat=len(gaps)))
    assert found.wilcoxon == pytest.approx(np.mean([abs((ranks * s).sum()) >= abs(seen) for s in np.array(signs)]))
    assert found.sign == pytest.approx(np.mean([abs(sum(s)) >= 3 for s in signs]))
    assert compare([1.0, 2.0], [1.0, 2.0]).sign == 1.0


def test_ranks_share_ties():
    assert mean_ranks(np.array([[1.0, 1.0, 0.0]])).tolist() == [1.5, 1.5, 3.0]
