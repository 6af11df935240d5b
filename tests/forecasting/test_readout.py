"""Readouts against NumPy's least squares, polynomials against powers, the rollout against a loop."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.forecasting.data.delay_windows import lags
from hardmax.forecasting.features.feature_map import FeatureMap, Monomials, monomial_count
from hardmax.forecasting.features.reservoir import draw_reservoir
from hardmax.forecasting.models.td_dmd import least_squares
from hardmax.forecasting.rollout import Fade, Member, roll
from hardmax.forecasting.search.readout_search import gram, merge_triangles, ridge_path, ridge_path_of_gram, triangle


@given(st.integers(1, 5), st.integers(2, 4))
@settings(deadline=None, max_examples=20)
def test_monomials_are_all_products(coordinates: int, degree: int) -> None:
    values = np.random.default_rng(0).standard_normal((3, coordinates))
    found = Monomials(coordinates, degree)(values)
    expected = [
        np.prod(values[:, list(chosen)], axis=1)
        for power in range(2, degree + 1)
        for chosen in combinations_with_replacement(range(coordinates), power)
    ]
    assert 1 + coordinates + len(expected) == monomial_count(coordinates, degree)
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-12)


@given(st.integers(0, 1000), st.integers(1, 3), st.floats(-8, 0))
@settings(deadline=None, max_examples=25)
def test_ridge_readouts_solve_the_augmented_least_squares(seed: int, outputs: int, power: float) -> None:
    rng = np.random.default_rng(seed)
    features, targets = rng.standard_normal((60, 9)), rng.standard_normal((60, outputs))
    ridge = 10.0**power
    for size in (4, 9):
        stacked = np.concatenate([features[:, :size], np.sqrt(ridge * 60) * np.eye(size)])
        expected = np.linalg.lstsq(stacked, np.concatenate([targets, np.zeros((size, outputs))]), rcond=None)[0]
        parts = [triangle(features[:25], targets[:25]), triangle(features[25:], targets[25:])]
        ridges = np.array([ridge])
        by_factor = ridge_path(merge_triangles(parts), size, outputs, 60, ridges)[0]
        by_gram = ridge_path_of_gram(gram(features, targets), size, outputs, 60, ridges)[0]
        np.testing.assert_allclose(by_factor, expected, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(by_gram, expected, rtol=1e-8, atol=1e-10)


def test_fewer_rows_than_features_are_solved_too() -> None:
    rng = np.random.default_rng(1)
    features, targets = rng.standard_normal((5, 12)), rng.standard_normal((5, 1))
    found = ridge_path(triangle(features, targets), 12, 1, 5, np.array([1e-12]))[0]
    np.testing.assert_allclose(features @ found, targets, atol=1e-6)


def test_the_linear_operator_of_a_linear_system_is_found_exactly() -> None:
    rng = np.random.default_rng(2)
    a = np.array([[0.9, -0.3], [0.3, 0.9]])
    z = [rng.standard_normal(2)]
    for _ in range(80):
        z.append(a @ z[-1])
    member = least_squares([np.array(z)], 1)
    np.testing.assert_allclose(member.readouts[0, 1:].T + np.eye(2), a, atol=1e-10)


def test_rolling_feeds_predictions_back_as_a_loop_does() -> None:
    rng = np.random.default_rng(3)
    pool = draw_reservoir(2, 12, rng).scaled(0.8, 0.5, 0.4, 6)
    features = FeatureMap(2, lags(2, 2), lags(2, 2, 2), 3, reservoir=pool)
    readouts = 0.03 * rng.standard_normal((2, features.size, 2))
    windows = 0.3 * rng.standard_normal((3, 9, 2))
    found = roll([Member(features, readouts)], windows, 7)
    for copy in range(2):
        for start in range(3):
            path = list(windows[start])
            state = np.zeros(12)
            for sample in path[-6:]:
                state = 0.6 * state + 0.4 * np.tanh(state @ pool.recurrent + sample @ pool.inputs + pool.bias)
            for step in range(7):
                coordinates = np.concatenate([path[-3], path[-1]])
                powers = [
                    np.prod(coordinates[list(chosen)])
                    for power in (2, 3)
                    for chosen in combinations_with_replacement(range(4), power)
                ]
                seen = np.concatenate([[1.0], path[-2], path[-1], coordinates, powers, state])
                path.append(path[-1] + seen @ readouts[copy])
                state = 0.6 * state + 0.4 * np.tanh(state @ pool.recurrent + path[-1] @ pool.inputs + pool.bias)
                np.testing.assert_allclose(found[copy, start, step], path[-1], rtol=1e-9, atol=1e-12)


def test_outside_the_range_the_linear_model_takes_over() -> None:
    growing = Member(FeatureMap(1, lags(1, 1)), np.array([[[0.0], [0.5]]]))
    resting = Member(FeatureMap(1, lags(1, 1)), np.array([[[0.0], [-0.5]]]))
    fade = Fade(np.zeros(1), np.ones(1), resting)
    path = roll([growing], np.array([[[0.5]]]), 40, fade=fade)[0, 0, :, 0]
    assert np.abs(path).max() <= 1.6
    free = roll([growing], np.array([[[0.5]]]), 40, ceiling=1e3)[0, 0, :, 0]
    assert free[-1] == pytest.approx(1e3)
    np.testing.assert_allclose(path[:2], free[:2])


def test_means_of_members_are_means_of_increments() -> None:
    rng = np.random.default_rng(4)
    features = FeatureMap(1, lags(1, 2))
    one, two = (0.1 * rng.standard_normal((1, 3, 1)) for _ in range(2))
    windows = rng.standard_normal((2, 3, 1))
    found = roll([Member(features, one), Member(features, two)], windows, 5)
    np.testing.assert_allclose(found, roll([Member(features, (one + two) / 2)], windows, 5), rtol=1e-12)
