"""Windows, lags and principal coordinates against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.forecasting.data.delay_windows import (
    autocorrelation_time,
    flat_windows,
    information_time,
    lag_spacing,
    lags,
    principal,
)


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 12))
@settings(deadline=None, max_examples=40)
def test_windows_are_those_of_a_loop(samples: int, channels: int, length: int) -> None:
    z = np.arange(samples * channels, dtype=float).reshape(samples, channels)
    rows = flat_windows(z, length)
    expected = [z[k : k + length].reshape(-1) for k in range(samples - length)]
    assert rows.shape == (max(0, samples - length), length * channels)
    for row, wanted in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(row, wanted)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_lags_pick_samples_from_the_end(channels: int, count: int, spacing: int) -> None:
    length = (count - 1) * spacing + 3
    window = np.random.default_rng(0).standard_normal((length, channels))
    picked = lags(channels, count, spacing)(window.reshape(1, -1))[0]
    expected = np.concatenate([window[length - 1 - spacing * i] for i in reversed(range(count))])
    np.testing.assert_array_equal(picked, expected)


def test_principal_coordinates_span_the_leading_singular_vectors() -> None:
    z = np.random.default_rng(1).standard_normal((300, 2)).cumsum(axis=0)
    embedding = principal([z], 6, 3)
    right = np.linalg.svd(flat_windows(z, 6), full_matrices=False)[2][:3]
    assert embedding.matrix is not None
    unit = embedding.matrix / np.linalg.norm(embedding.matrix, axis=0)
    np.testing.assert_allclose(unit @ unit.T, right.T @ right, atol=1e-8)


def test_the_autocorrelation_time_of_a_sine_is_where_the_cosine_falls_below_one_over_e() -> None:
    period = 100
    signal = np.sin(2 * np.pi * np.arange(20_000) / period)
    assert abs(autocorrelation_time(signal) - period * np.arccos(1 / np.e) / (2 * np.pi)) <= 1


def test_the_information_of_a_noisy_sine_is_least_at_a_quarter_period() -> None:
    rng = np.random.default_rng(0)
    signal = np.sin(2 * np.pi * np.arange(20_000) / 60) + 0.3 * rng.standard_normal(20_000)
    assert information_time(signal) == pytest.approx(15, abs=4)


@pytest.mark.parametrize("period", [8, 20, 60])
def test_lag_spacing_follows_the_period(period: int) -> None:
    z = np.sin(2 * np.pi * np.arange(4000) / (period * 1.001))[:, None]
    assert period / 12 <= lag_spacing([z]) <= period / 3
