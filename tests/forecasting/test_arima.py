"""Seasonal ARIMA: covariances, forecasts, likelihoods and orders against plain sums, dense algebra and textbooks."""

from pathlib import Path
from typing import Any, Never

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import hardmax as hm
from hardmax.errors import FileError
from hardmax.forecasting.classical import arima_fit
from hardmax.forecasting.classical.arima import (
    Arima,
    Arma,
    covariances,
    dense_covariance,
    difference,
    differencing,
    expanded,
    transformed,
    window_length,
)
from hardmax.forecasting.classical.arima_fit import (
    Orders,
    conditional_likelihood,
    exact_likelihood,
    fit_arima,
    fit_channel,
    is_stationary,
    seasonal_strength,
    stationary,
)
from hardmax.forecasting.classical.files import get_path, put_path
from hardmax.forecasting.forecaster import TimeDelayedTransformer

PROCESSES = [
    ([], []),
    ([0.7], []),
    ([], [0.6]),
    ([0.5, -0.3], [0.4]),
    ([0.4], [0.3, -0.5, 0.2]),
    ([0.6, 0.0, 0.0, 0.3, -0.18], [-0.4, 0.0, 0.0, -0.5, 0.2]),
]
"""Coefficients of past differences and of past innovations; the last process is seasonal."""

AIRLINE = [
    *[112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118, 115, 126, 141, 135, 125, 149, 170, 170, 158, 133],
    *[114, 140, 145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166, 171, 180, 193, 181, 183, 218, 230, 242],
    *[209, 191, 172, 194, 196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201, 204, 188, 235, 227, 234, 264],
    *[302, 293, 259, 229, 203, 229, 242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278, 284, 277, 317, 313],
    *[318, 374, 413, 405, 355, 306, 271, 306, 315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336, 340, 318],
    *[362, 348, 363, 435, 491, 505, 404, 359, 310, 337, 360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405],
    *[417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432],
]
"""Monthly passengers of airlines from 1949 to 1960 (Box and Jenkins)."""


def _arrays(process: tuple[list[float], list[float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(process[0], dtype=float), np.array(process[1], dtype=float)


def _responses(ar: np.ndarray, ma: np.ndarray, steps: int) -> np.ndarray:
    """What one innovation adds to the differences after it, by the definition of the process."""
    found: list[float] = []
    for step in range(steps):
        own = sum(float(ar[i]) * found[step - 1 - i] for i in range(len(ar)) if step - 1 - i >= 0)
        found.append(own + (1.0 if step == 0 else float(ma[step - 1]) if step <= len(ma) else 0.0))
    return np.array(found)


def _dense(ar: np.ndarray, ma: np.ndarray, samples: int) -> np.ndarray:
    """Covariance of the differences themselves, by long sums over the responses."""
    psi = _responses(ar, ma, 800)
    own = [float(psi[: len(psi) - lag] @ psi[lag:]) for lag in range(samples)]
    return np.array([[own[abs(i - j)] for j in range(samples)] for i in range(samples)])


def _simulated(process: tuple[list[float], list[float]], samples: int, seed: int) -> np.ndarray:
    ar, ma = _arrays(process)
    noise = np.random.default_rng(seed).standard_normal(samples + 300)
    return np.convolve(noise, _responses(ar, ma, 300))[300 : 300 + samples]


# processes


@pytest.mark.parametrize("process", PROCESSES)
def test_covariances_are_sums_over_responses(process: tuple[list[float], list[float]]) -> None:
    ar, ma = _arrays(process)
    own, mixed, noise = covariances(ar, ma)
    psi, b = _responses(ar, ma, 800), np.append(1.0, ma)
    for lag, value in enumerate(own):
        assert value == pytest.approx(float(psi[: len(psi) - lag] @ psi[lag:]), abs=1e-12)
    for lag in range(len(ma) + 1):
        assert mixed[lag] == pytest.approx(float(b[lag:] @ psi[: len(b) - lag]), abs=1e-12)
        assert noise[lag] == pytest.approx(float(b[lag:] @ b[: len(b) - lag]), abs=1e-12)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("samples", [1, 3, 12, 40])
def test_the_covariance_of_transformed_differences_is_that_of_a_linear_map(
    process: tuple[list[float], list[float]], samples: int
) -> None:
    ar, ma = _arrays(process)
    rows = transformed(np.eye(samples), ar)  # what each unit sample is taken to
    np.testing.assert_allclose(
        rows.T @ _dense(ar, ma, samples) @ rows, dense_covariance(ar, ma, samples), rtol=1e-11, atol=1e-11
    )
    bands = arima_fit._banded(ar, ma, samples)
    for lag in range(samples):
        diagonal = np.diagonal(dense_covariance(ar, ma, samples), lag)
        found = bands[lag, : samples - lag] if lag < len(bands) else np.zeros(samples - lag)
        np.testing.assert_allclose(found, diagonal, atol=1e-12)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("differences", [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)])
def test_forecasts_are_conditional_means(
    process: tuple[list[float], list[float]], differences: tuple[int, int]
) -> None:
    """Of the joint normal distribution of the differences, summed back to the series one by one."""
    ar, ma = _arrays(process)
    season, steps, mean = 4, 11, 0.3
    windows = np.random.default_rng(0).standard_normal((2, 30))
    model = Arma(ar, ma, *differences, season, mean)
    found = model.forecast(windows, steps)
    for row, path in zip(windows, found, strict=True):
        whole = list(row)
        series = row.copy()
        for _ in range(differences[1]):
            series = np.array([series[t] - series[t - season] for t in range(season, len(series))])
        for _ in range(differences[0]):
            series = np.array([series[t] - series[t - 1] for t in range(1, len(series))])
        samples = len(series)
        joint = _dense(ar, ma, samples + steps)
        ahead = mean + joint[samples:, :samples] @ np.linalg.solve(joint[:samples, :samples], series - mean)
        polynomial = np.poly1d([1.0])
        for _ in range(differences[0]):
            polynomial *= np.poly1d([-1.0, 1.0])
        for _ in range(differences[1]):
            polynomial *= np.poly1d([-1.0, *[0.0] * (season - 1), 1.0])
        lags = polynomial.coeffs[::-1]
        for change in ahead:
            whole.append(change - sum(lags[k] * whole[-k] for k in range(1, len(lags))))
        np.testing.assert_allclose(path, whole[len(row) :], rtol=1e-8, atol=1e-8)


def test_differences_are_plain_loops() -> None:
    values = np.random.default_rng(0).standard_normal(40)
    once = np.array([values[t] - values[t - 7] for t in range(7, 40)])
    twice = np.array([once[t] - once[t - 1] for t in range(1, 33)])
    np.testing.assert_allclose(difference(values, differencing(1, 1, 7)), twice, atol=1e-14)
    np.testing.assert_array_equal(difference(values, differencing(0, 0, 7)), values)


def test_seasonal_polynomials_are_multiplied_out() -> None:
    # (1 + .5 B)(1 + .2 B^3 + .1 B^6)
    found = expanded(np.array([0.5]), np.array([0.2, 0.1]), 3)
    np.testing.assert_allclose(found, [0.5, 0, 0.2, 0.1, 0, 0.1, 0.05])
    assert len(expanded(np.zeros(0), np.zeros(0), 12)) == 0


@given(st.lists(st.floats(-0.999, 0.999), max_size=6))
@settings(deadline=None, max_examples=80)
def test_partial_autocorrelations_give_stationary_processes(partial: list[float]) -> None:
    found = stationary(np.array(partial))
    roots = np.roots(np.concatenate([[1.0], -found]))
    assert np.abs(roots).max(initial=0.0) < 1.0 + 1e-9


# likelihood


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("samples", [7, 40])
@pytest.mark.parametrize("has_mean", [False, True])
def test_the_exact_likelihood_is_that_of_a_normal_distribution(
    process: tuple[list[float], list[float]], samples: int, has_mean: bool
) -> None:
    ar, ma = _arrays(process)
    changes = np.random.default_rng(samples).standard_normal(samples) + 2.0
    found = exact_likelihood(changes, ar, ma, has_mean=has_mean)
    covariance = _dense(ar, ma, samples)

    def deviance(mean: float, variance: float) -> float:
        return -2 * float(multivariate_normal.logpdf(changes, np.full(samples, mean), variance * covariance))

    best = deviance(found.mean, found.variance)
    assert found.deviance == pytest.approx(best, rel=1e-10)
    assert (found.mean != 0.0) == has_mean
    for factor in (0.98, 1.02):
        assert deviance(found.mean, found.variance * factor) > best
        if has_mean:
            assert deviance(found.mean * factor, found.variance) > best


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("has_mean", [False, True])
def test_the_conditional_likelihood_is_a_loop_over_innovations(
    process: tuple[list[float], list[float]], has_mean: bool
) -> None:
    ar, ma = _arrays(process)
    changes = np.random.default_rng(1).standard_normal(60) + 0.5
    found = conditional_likelihood(changes, ar, ma, 8, has_mean=has_mean)

    def squares(mean: float) -> float:
        noise: list[float] = []
        for t in range(60):
            value = changes[t] - mean
            value -= sum(ar[i] * (changes[t - 1 - i] - mean if t - 1 - i >= 0 else 0.0) for i in range(len(ar)))
            value -= sum(ma[j] * (noise[t - 1 - j] if t - 1 - j >= 0 else 0.0) for j in range(len(ma)))
            noise.append(float(value))
        return float(np.square(noise[8:]).sum())

    assert (found.mean != 0.0) == has_mean
    assert found.variance == pytest.approx(squares(found.mean) / 52, rel=1e-10)
    assert found.deviance <= conditional_likelihood(changes, ar, ma, 8, has_mean=False).deviance
    assert found.deviance == pytest.approx(52 * (np.log(2 * np.pi * found.variance) + 1), rel=1e-10)


def test_the_airline_model_has_the_coefficients_of_the_textbook() -> None:
    """Box and Jenkins: a moving average of one month and one year with .40 and .56; log likelihood 244.70 in R."""
    changes = difference(np.log(np.array(AIRLINE, dtype=float)), differencing(1, 1, 12))
    model = arima_fit._Search(changes, 12, False)._fitted(Orders(0, 1, 0, 1), False, None)
    assert model is not None
    _, ma = arima_fit._polynomials(model, 12)
    assert ma[0] == pytest.approx(-0.4018, abs=2e-3)
    assert ma[11] == pytest.approx(-0.5569, abs=2e-3)
    exact = exact_likelihood(changes, np.zeros(0), ma, has_mean=False)
    assert -exact.deviance / 2 == pytest.approx(244.70, abs=5e-3)


# orders


def test_the_airline_record_has_both_differences() -> None:
    found = fit_channel(np.log(np.array(AIRLINE, dtype=float)), 12)
    assert (found.differences, found.seasonal_differences, found.mean) == (1, 1, 0.0)


@pytest.mark.parametrize("process", PROCESSES[1:5])
def test_responses_of_a_process_are_recovered(process: tuple[list[float], list[float]]) -> None:
    """Orders may differ where two models are alike, so what an innovation adds later is compared."""
    found = fit_channel(10.0 + 3.0 * _simulated(process, 300, 4))
    assert (found.differences, found.seasonal_differences) == (0, 0)
    assert found.mean == pytest.approx(10.0, abs=1.5)
    expected = _responses(*_arrays(process), 6)
    np.testing.assert_allclose(_responses(found.ar, found.ma, 6), expected, atol=0.25)


def test_a_random_walk_is_differenced_and_noise_is_not() -> None:
    plain = np.random.default_rng(3).standard_normal(250)
    assert fit_channel(plain.cumsum()).differences == 1
    assert fit_channel(plain).differences == 0
    assert fit_channel(plain.cumsum().cumsum()).differences == 2


@pytest.mark.parametrize("samples", [30, 120, 600])
def test_the_test_of_a_level_is_the_formula(samples: int) -> None:
    """KPSS with Bartlett weights, by plain sums."""
    rng = np.random.default_rng(samples)
    for values in (rng.standard_normal(samples), rng.standard_normal(samples).cumsum(), np.arange(samples) * 1.0):
        e = values - values.mean()
        lags = int(3 * np.sqrt(samples) / 13)
        variance = sum(x * x for x in e) / samples
        for lag in range(1, lags + 1):
            weight = 1 - lag / (lags + 1)
            variance += 2 * weight * sum(e[t] * e[t - lag] for t in range(lag, samples)) / samples
        sums = [sum(e[: t + 1]) for t in range(samples)]
        statistic = sum(s * s for s in sums) / (samples**2 * variance)
        assert is_stationary(values) == (statistic <= 0.463)
    assert is_stationary(np.full(samples, 1e9 / 3))


def test_seasonal_strength_is_one_for_a_season_and_small_for_noise() -> None:
    rng = np.random.default_rng(0)
    cycle = np.tile(rng.standard_normal(12), 10) + 0.1 * np.arange(120)
    assert seasonal_strength(cycle, 12) == pytest.approx(1.0)
    assert seasonal_strength(np.tile(rng.standard_normal(7), 10), 7) == pytest.approx(1.0)
    assert seasonal_strength(rng.standard_normal(240), 12) < 0.3
    assert seasonal_strength(np.zeros(60), 12) == 0.0
    assert seasonal_strength(cycle[:24], 12) == 0.0


def test_the_fast_search_errs_little_more_than_an_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The conditional likelihood orders the models of a longer record as the exact one would."""
    values = _simulated(PROCESSES[5], 220, 0)
    fast = fit_channel(values, 4)
    monkeypatch.setattr(arima_fit, "_SHORT", 1000)
    slow = fit_channel(values, 4)
    deviances = [exact_likelihood(values, model.ar, model.ma, has_mean=True).deviance for model in (fast, slow)]
    assert deviances[0] < deviances[1] + 6.0


# bad and odd input


@pytest.mark.parametrize("season", [1, 4, 12])
def test_records_without_noise_are_continued(season: int) -> None:
    t = np.arange(80)
    line = 5.0 + 0.25 * t
    np.testing.assert_allclose(
        fit_channel(line, season).forecast(line[None], 9)[0], 5.0 + 0.25 * np.arange(80, 89), rtol=1e-6
    )
    constant = np.full(80, 7.0)
    np.testing.assert_allclose(fit_channel(constant, season).forecast(constant[None], 9)[0], 7.0)
    if season > 1:
        cycle = np.tile(np.random.default_rng(0).standard_normal(season), 80)[:80]
        ahead = fit_channel(cycle, season).forecast(cycle[None], season)[0]
        np.testing.assert_allclose(ahead, [cycle[(80 + k) % season] for k in range(season)], atol=1e-9)


@given(st.lists(st.integers(-2, 2), min_size=12, max_size=60), st.sampled_from([1, 2, 4]))
@settings(deadline=None, max_examples=30)
def test_ties_give_finite_forecasts(values: list[int], season: int) -> None:
    record = np.array(values, dtype=float)[:, None]
    model = fit_arima([record], 1, season, len(record))
    assert model is not None
    ahead = model.paths(record[None], 10)
    assert np.isfinite(ahead).all()
    assert np.abs(ahead).max() < 1e4


@pytest.mark.parametrize("scale", [1e-9, -1.0, 1e9])
def test_units_and_signs_do_not_matter(scale: float) -> None:
    values = 3.0 + _simulated(PROCESSES[3], 140, 2)
    plain = fit_channel(values, 1).forecast(values[None], 8)
    other = fit_channel(values * scale, 1).forecast(values[None] * scale, 8)
    np.testing.assert_allclose(other / scale, plain, rtol=1e-5)


def test_a_record_too_short_is_not_fitted() -> None:
    rng = np.random.default_rng(0)
    assert fit_arima([rng.standard_normal((9, 1))], 1, 1, 9) is None
    assert fit_arima([rng.standard_normal((25, 1))], 1, 12, 25) is None
    cycle = np.tile(rng.standard_normal(12), 8)[:, None]
    assert fit_arima([cycle], 1, 12, 11) is None  # a window holds no seasonal difference
    assert fit_arima([cycle], 1, 12, 40) is not None


def test_channels_are_fitted_one_by_one_and_the_longest_piece_counts() -> None:
    both = np.stack([_simulated(PROCESSES[1], 200, 0), _simulated(PROCESSES[2], 200, 1)], axis=1)
    model = fit_arima([both[:50], both], 2, 1, 100)
    assert model is not None
    windows = both[None, -120:]
    found = model.paths(windows, 7)
    for place in range(2):
        alone = fit_arima([both[:, place : place + 1]], 1, 1, 100)
        assert alone is not None
        np.testing.assert_array_equal(found[:, :, place : place + 1], alone.paths(windows[:, :, place : place + 1], 7))


def test_only_the_end_of_a_long_record_is_fitted() -> None:
    values = _simulated(PROCESSES[1], 2000, 0)[:, None]
    whole, end = (fit_arima([z], 1, 1, 100) for z in (values, values[-window_length(1) :]))
    assert whole is not None
    assert end is not None
    np.testing.assert_array_equal(whole.models[0].ar, end.models[0].ar)


# in the forecaster, and in files


def test_the_forecaster_selects_it_by_name_and_saves_it(tmp_path: Path) -> None:
    series = np.array(AIRLINE, dtype=float)
    model = TimeDelayedTransformer(model="arima", horizon=12, random_state=0, progress=False).fit(series[:-12])
    found = model.forecast(12).values
    assert np.abs(found[:, 0] - series[-12:]).mean() < 25.0  # 478 passengers on average in that year
    model.save(tmp_path / "model")
    again = hm.load_forecaster(tmp_path / "model")
    np.testing.assert_allclose(again.forecast(12).values, found, rtol=1e-9)


def _no_member(name: str, part: object) -> Never:
    raise AssertionError(name)


def _described() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    parts = (
        Arma(np.array([0.5]), np.array([0.2, 0.1]), 1, 1, 12, 0.0),
        Arma(np.zeros(0), np.zeros(0), 1, 0, 12, 0.25),
    )
    arrays: dict[str, np.ndarray] = {}
    return put_path("path", Arima(2, 40, parts), _no_member, arrays), arrays


def test_a_description_is_read_again() -> None:
    words, arrays = _described()
    model = get_path(Path("model"), "path", words, _no_member, arrays, 2)
    windows = np.random.default_rng(0).standard_normal((3, 40, 2))
    single = {name: array.astype(np.float32) for name, array in arrays.items()}
    rounded = get_path(Path("model"), "path", words, _no_member, single, 2)
    np.testing.assert_allclose(rounded.paths(windows, 5), model.paths(windows, 5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        (0, {"differences": 3}),
        (0, {"seasonal_differences": -1}),
        (0, {"season": 0}),
        (0, {"season": 10**9}),
        (1, {"mean": float("nan")}),
        (1, {"mean": "much"}),
        (1, {"differences": None}),
    ],
)
def test_damaged_channels_are_refused(place: int, changed: dict[str, Any]) -> None:
    words, arrays = _described()
    words["channels"][place] |= changed
    with pytest.raises(FileError):
        get_path(Path("model"), "path", words, _no_member, arrays, 2)


def test_damaged_descriptions_are_refused() -> None:
    words, arrays = _described()
    for damaged in (
        words | {"channels": words["channels"][:1]},
        words | {"channels": [1, 2]},
        words | {"length": 5},
        words | {"length": 10**9},
    ):
        with pytest.raises(FileError):
            get_path(Path("model"), "path", damaged, _no_member, arrays, 2)
    for changed in (np.ones(300), np.ones((2, 2)), np.full(1, np.inf), np.array([1.0]), np.array([2.0])):
        with pytest.raises(FileError):
            get_path(Path("model"), "path", words, _no_member, arrays | {"path.ar0": changed}, 2)
