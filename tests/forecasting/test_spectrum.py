"""What is read off a model, against closed forms and finite differences."""

import numpy as np
import pytest

from hardmax.errors import InputError
from hardmax.forecasting.data.delay_windows import lags
from hardmax.forecasting.diagnostics import spectrum as spectrum_module
from hardmax.forecasting.diagnostics.spectrum import companion, lag_operator, lyapunov_exponent
from hardmax.forecasting.features.feature_map import FeatureMap
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.models.td_dmd import TimeDelayedDMD, least_squares
from hardmax.forecasting.rollout import Fade, Member, Predictor


def _fit(series: np.ndarray, **settings: object) -> TimeDelayedTransformer:
    options = {"random_state": 0, "seconds": 1.0, "progress": False} | settings
    dt = options.pop("dt", 1.0)
    return TimeDelayedTransformer(**options).fit(series, dt=dt)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def logistic() -> TimeDelayedTransformer:
    z = [0.4]
    for _ in range(600):
        z.append(4.0 * z[-1] * (1 - z[-1]))
    return _fit(np.array(z), delays=0, seconds=None)


def test_frequencies_and_growth_rates_are_those_of_the_signal() -> None:
    dt = 0.05
    t = dt * np.arange(600)
    z = np.stack([np.exp(-0.1 * t) * np.cos(2 * np.pi * 1.3 * t), np.exp(-0.1 * t) * np.sin(2 * np.pi * 1.3 * t)], 1)
    model = _fit(z, dt=dt)
    frequencies, rates = model.frequencies(), model.growth_rates()
    found = np.flatnonzero((np.abs(frequencies - 1.3) < 1e-4) & (np.abs(rates + 0.1) < 1e-3))
    assert len(found) >= 1
    mode = model.modes()[:, found[0]]
    assert np.linalg.norm(mode) == pytest.approx(1.0)
    np.testing.assert_allclose(np.abs(mode), np.sqrt(0.5), rtol=1e-2)


def test_the_companion_matrix_advances_windows_as_the_rollout_does() -> None:
    z = np.random.default_rng(0).standard_normal((200, 2)).cumsum(axis=0)
    member = least_squares([z], 4)
    blocks = lag_operator(member, 2)
    window = np.random.default_rng(1).standard_normal((4, 2))
    ahead = companion(blocks) @ window.reshape(-1)
    np.testing.assert_allclose(ahead[:6], window[1:].reshape(-1))
    expected = window[-1] + np.concatenate([[0.0], window.reshape(-1)]) @ member.readouts[0]
    np.testing.assert_allclose(ahead[6:], expected, rtol=1e-10)


def test_local_eigenvalues_of_the_logistic_map_are_its_slope(logistic: TimeDelayedTransformer) -> None:
    for state in (0.2, 0.5, 0.71):
        found = logistic.local_eigenvalues(np.array([state]))
        assert found[0].real == pytest.approx(4.0 * (1 - 2 * state), abs=1e-4)


def _cancelling_logistic(weight: float) -> Predictor:
    """The map z' = 1 - 2 z², with two large weights on z of which only the difference counts."""
    features = FeatureMap(1, lags(1, 1), lags(1, 1), 2)
    member = Member(features, np.array([[[1.0], [weight], [-1.0 - weight], [-2.0]]]))
    return Predictor(1, (member,), member, Fade(np.zeros(1), np.ones(1)))


@pytest.mark.parametrize("weight", [0.0, 1e7, 1e9])
def test_weights_that_amplify_rounding_leave_the_lyapunov_exponent_as_it_is(weight: float) -> None:
    # With the weight 1e9, rounding alone changes a sample by about 1e-7, the smallest difference that is followed.
    found = lyapunov_exponent(_cancelling_logistic(weight), np.array([[[0.3]]]), 0.02, 2000, 0)
    assert found * 0.02 == pytest.approx(np.log(2.0), rel=0.1)


def test_a_lyapunov_exponent_that_depends_on_the_difference_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    # Rounding of the size r makes of every smaller difference one of the size r: a rate of log(r / size) per chunk.
    def by_rounding(predictor: Predictor, windows: object, dt: float, steps: int, seed: int, size: float, chunk: int):
        return np.log(0.1 / size) / (chunk * dt)

    monkeypatch.setattr(spectrum_module, "_growth_rate", by_rounding)
    assert np.isnan(lyapunov_exponent(_cancelling_logistic(0.0), np.array([[[0.3]]]), 0.02, 400, 0))


def test_the_lyapunov_exponent_of_the_logistic_map_is_log_two(logistic: TimeDelayedTransformer) -> None:
    assert logistic.lyapunov_exponent(3000) == pytest.approx(np.log(2.0), rel=0.1)


def test_attention_over_lags_adds_up_to_one() -> None:
    t = np.arange(500)
    z = np.sin(0.2 * t) * np.sin(0.031 * t) ** 3
    model = TimeDelayedTransformer(random_state=0, restarts=1, delays=12).fit(z, dt=0.5)
    found = model.attention()
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    assert found.lags[-1] == 0
    assert (np.diff(found.lags) < 0).all()
    np.testing.assert_allclose(found.times, 0.5 * found.lags)
    uniform = TimeDelayedTransformer(random_state=0, restarts=1, delays=12, ablation="uniform").fit(z).attention()
    np.testing.assert_allclose(uniform.shares, 1 / uniform.shares.shape[1])


def test_attention_that_was_not_trained_is_not_made_up() -> None:
    with pytest.raises(InputError, match="attention was not trained"):
        _fit(np.sin(np.arange(20.0))).attention()


def test_dmd_with_a_given_window_is_plain_least_squares() -> None:
    rng = np.random.default_rng(2)
    z = np.sin(0.3 * np.arange(200))[:, None] + 0.01 * rng.standard_normal((200, 1))
    model = TimeDelayedDMD(3).fit([z], 1.0)
    rows = np.stack([np.concatenate([[1.0], z[k : k + 3, 0]]) for k in range(197)])
    answer = np.linalg.lstsq(rows, z[3:, 0], rcond=None)[0]
    path = list(z[-3:, 0])
    for _ in range(5):
        path.append(answer @ np.concatenate([[1.0], path[-3:]]))
    np.testing.assert_allclose(model.roll(z[None, -3:], 5)[0, :, 0], path[3:], rtol=1e-6)


@pytest.mark.slow
def test_the_lyapunov_exponent_of_the_lorenz_system_is_found() -> None:
    from hardmax.datasets.chaotic import lorenz63

    model = TimeDelayedTransformer(random_state=0).fit(lorenz63(5000).values, dt=0.02)
    assert model.lyapunov_exponent(20_000) == pytest.approx(0.9056, rel=0.1)
