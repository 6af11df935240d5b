"""Baselines agree with their packages, are tuned on validation rollouts, and give NaN after a divergence."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from hardmax.datasets import airfoil, lorenz63, sinusoids
from hardmax.errors import InputError, MissingExtraError
from hardmax.forecasting import (
    EchoState,
    HigherOrderDMD,
    NextGenerationReservoir,
    Perceptron,
    Persistence,
    Sindy,
    TimeDelayedDMD,
    error_curves,
)
from hardmax.forecasting.models import baselines, echo_state

BASELINES = [Persistence, HigherOrderDMD, Sindy, EchoState, Perceptron]


def _made(baseline, seconds=0.1):
    return baseline() if baseline is Persistence else baseline(seconds=seconds, horizon=40)


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_baseline_fits_and_rolls(baseline, channels):
    z = lorenz63(700).values[:, :channels]
    model = _made(baseline).fit([z[:600]], 0.02)
    assert model.window <= 600 // 4
    windows = np.stack([z[400:600], z[300:500]])
    ahead = model.roll(windows, 30)
    assert ahead.shape == (2, 30, channels)
    # The same start gives the same forecast, alone or among others.
    assert np.allclose(ahead[1:], model.roll(windows[1:], 30), equal_nan=True)
    if baseline is not Persistence:
        still = np.sqrt(((windows[:, -1] - z[[600, 500]]) ** 2).mean())
        assert np.sqrt(((ahead[:, 0] - z[[600, 500]]) ** 2).mean()) < still  # one step beats persistence


def test_hodmd_is_exact_on_sinusoids_and_on_several_channels():
    z = sinusoids(1000).values
    model = HigherOrderDMD(seconds=0.5, horizon=100).fit([z[:800]], 0.05)
    assert error_curves(model.roll(z[None, 600:800], 200), z[None, 800:], z.std(axis=0)).max() < 1e-6
    # Three channels with one that is nearly silent: dropping it (svd_rank_extra=0) would show.
    wave = np.column_stack([z[:, 0], 0.5 * np.roll(z[:, 0], 3), 1e-6 * np.roll(z[:, 0], 7)])[10:]
    model = HigherOrderDMD(seconds=0.5, horizon=100).fit([wave[:800]], 0.05)
    ahead = model.roll(wave[None, 600:800], 100)
    assert error_curves(ahead, wave[None, 800:900], wave.std(axis=0)).max() < 1e-3


def test_hodmd_steps_as_the_operator_of_pydmd_does():
    z = airfoil(300).values
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    trial = baselines._Hodmd(baselines._pydmd(), 6, -1).fit([z], 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = baselines._pydmd().HODMD(svd_rank=-1, d=6, svd_rank_extra=-1, opt=True).fit(z.T)
        rebuilt = model.reconstructed_data.real.T
    # PyDMD's own reconstruction begins at the first window; this one starts from any window.
    first = trial.roll(rebuilt[None, :6], 20)[0, 0]
    assert np.allclose(first, rebuilt[6:26], atol=1e-6)


def test_sindy_finds_the_lorenz_equations():
    z = lorenz63(3000, 0.01).values
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    trial = baselines._Sindy(1, 1, baselines._pysindy(), 2, 0.02, False).fit([z], 0.01)
    # Errors grow by the Lyapunov exponent: over 60 steps rounding, which differs between processors, does not decide.
    ahead = trial.roll(z[None, 1000:1200], 60)[0]
    assert error_curves(ahead, z[None, 1200:1260], z.std(axis=0)).max() < 0.02


def test_the_echo_state_is_reservoirpys():
    from reservoirpy.nodes import Reservoir

    trial = echo_state._reservoir(3, 0.9, 0.4, 0.7, 0.0, 50, 5)
    node = Reservoir(
        echo_state.UNITS,
        lr=0.7,
        sr=0.9,
        input_scaling=0.4,
        rc_connectivity=0.1,
        input_connectivity=1.0,
        bias=1.0,
        seed=5,
    )
    samples = lorenz63(40).values
    theirs = node.run(samples)
    state = np.zeros((1, echo_state.UNITS))
    for sample in samples:
        state = trial.step(state, sample[None])
    assert np.allclose(state[0], theirs[-1], atol=1e-12)


def test_the_best_of_the_tried_settings_is_selected():
    z = lorenz63(900).values[:, :1]
    short = EchoState(seconds=0.0, horizon=60).fit([z], 0.02)
    longer = EchoState(seconds=0.6, horizon=60).fit([z], 0.02)
    assert longer.tried_ > short.tried_ == 9
    assert longer.score_ <= short.score_


def test_a_divergence_is_nan_from_its_step_on():
    z = np.exp(0.05 * np.arange(300))[:, None] + 1e-3 * np.random.default_rng(0).standard_normal((300, 1))
    model = HigherOrderDMD(seconds=0.2, horizon=20).fit([z], 1.0)
    ahead = model.roll(z[None], 2000)[0, :, 0]
    gone = np.flatnonzero(np.isnan(ahead))
    assert len(gone)
    assert np.isnan(ahead[gone[0] :]).all()
    assert np.isfinite(ahead[: gone[0]]).all()


def test_constant_data_are_refused_and_several_trajectories_welcome():
    with pytest.raises(InputError, match="trajectories must vary"):
        EchoState(seconds=0.0).fit([np.ones((100, 2))], 1.0)
    runs = [airfoil(200 + 20 * k, initial_pitch=0.05 + 0.05 * k).values for k in range(4)]
    for baseline in BASELINES:
        assert np.isfinite(_made(baseline).fit(runs, 2.0).roll(runs[0][None, :60], 5)).all()


@pytest.mark.parametrize(
    ("baseline", "package"), [(HigherOrderDMD, "pydmd"), (Sindy, "pysindy"), (EchoState, "reservoirpy")]
)
def test_a_missing_package_names_the_extra(monkeypatch, baseline, package):
    for name in [package, *(loaded for loaded in sys.modules if loaded.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)  # what cannot be imported
    with pytest.raises(
        MissingExtraError, match=rf"needs the package {package}: pip install .*{package}.*\(the extra: rivals\)"
    ):
        _made(baseline).fit([lorenz63(300).values], 0.02)


@pytest.mark.parametrize("baseline", [HigherOrderDMD, EchoState, Perceptron, TimeDelayedDMD, NextGenerationReservoir])
def test_one_table_is_one_trajectory_and_what_cannot_be_used_is_named(baseline):
    z = np.sin(0.3 * np.arange(120))
    one = baseline(seconds=0.1).fit(z, 0.1)
    windows = z[None, :40, None]
    assert one.roll(windows, 5).shape == (1, 5, 1)
    if baseline in (TimeDelayedDMD, NextGenerationReservoir):  # searched to their end, however long it takes
        one, several = baseline().fit(pd.DataFrame({"a": z}), 0.1), baseline().fit([z[:, None]], 0.1)
        np.testing.assert_array_equal(one.roll(windows, 5), several.roll(windows, 5))
    with pytest.raises(InputError, match=r"windows must be \(starts, samples, 1\), got shape \(40, 1\)"):
        one.roll(windows[0], 5)
    for bad, words in ((z[:5], "8 or more"), (np.ones(50), "must vary"), (np.where(z > 0.9, np.nan, z), "has gaps")):
        with pytest.raises(InputError, match=words):
            baseline(seconds=0.1).fit(bad, 0.1)
