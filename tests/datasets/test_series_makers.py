"""Made series are solutions of what they say, reach known figures, and the same seed gives the same numbers."""

import numpy as np
import pytest

from hardmax.datasets import (
    Series,
    TypicalSection,
    airfoil,
    chaotic_series,
    chaotic_systems,
    lorenz63,
    sinusoids,
    spiral,
)
from hardmax.errors import InputError


def _lorenz(beta):
    return lambda s: np.array([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - beta * s[2]])


def _residual(series, speed):
    """How far central differences of order 4 are from the speed, relative to its size."""
    x, h = series.values, series.dt
    measured = (x[:-4] - 8 * x[1:-3] + 8 * x[3:-1] - x[4:]) / (12 * h)
    wanted = np.array([speed(state) for state in x[2:-2]])
    return np.abs(measured - wanted).max() / np.abs(wanted).max()


def test_sinusoids_are_a_sum_of_four_lines():
    clean = sinusoids(4000)
    spectrum = np.abs(np.fft.rfft(clean.values[:, 0] * np.hanning(4000)))
    peaks = np.flatnonzero((spectrum[1:-1] > spectrum[:-2]) & (spectrum[1:-1] > spectrum[2:])) + 1
    found = 2 * np.pi * peaks[spectrum[peaks] > 0.05 * spectrum.max()] / (4000 * clean.dt)
    assert np.allclose(np.sort(found), sorted([1.0, 1.7 * 2**0.5, 1.3 * np.pi, 5.9]), atol=0.03)
    noisy = sinusoids(4000, noise=0.1)
    assert (noisy.values - clean.values).std() / clean.values.std() == pytest.approx(0.1, rel=0.05)
    with pytest.raises(InputError, match="amplitudes must be 1, one a frequency, got 2 of them"):
        sinusoids(frequencies=[1.0], amplitudes=[1.0, 2.0])


def test_lorenz_solves_its_equations_and_seeds_start_elsewhere():
    series = lorenz63(400, 0.005, random_state=3)
    assert _residual(series, _lorenz(8 / 3)) < 1e-4
    assert np.array_equal(series.values, lorenz63(400, 0.005, random_state=3).values)
    assert not np.array_equal(series.values, lorenz63(400, 0.005, random_state=4).values)


def test_the_airfoil_flutters_at_the_classical_speed():
    wing = TypicalSection()
    speed = wing.flutter_speed()
    assert speed == pytest.approx(6.285, abs=0.005)
    # By simulation too: a small disturbance of the full equations dies out below and grows above.
    for U, grows in ((speed - 0.15, False), (speed + 0.15, True)):
        pitch = airfoil(900, 2.0, initial_pitch=1e-4, U=U).values[:, 0]
        assert bool(np.abs(pitch[-300:]).max() > np.abs(pitch[100:400]).max()) is grows
    with pytest.raises(InputError, match="must bracket the flutter speed"):
        wing.flutter_speed(1.0, 2.0)


def test_past_flutter_every_angle_ends_on_one_cycle():
    ends = [airfoil(1500, initial_pitch=angle).values[-400:, 0] for angle in (0.02, 0.2)]
    assert 0.05 < ends[0].max() < 0.5
    assert ends[0].max() == pytest.approx(ends[1].max(), rel=0.02)


def test_the_spiral_is_resolved_and_turns():
    shots = spiral(60, 0.5, grid=32, substep=0.05)
    finer = spiral(60, 0.5, grid=32, substep=0.025)
    assert np.abs(shots - finer).max() < 1e-4
    w = shots[:, 0] + 1j * shots[:, 1]
    assert np.abs(w[-1]).max() == pytest.approx(1.0, abs=0.02)
    with pytest.raises(InputError, match="substep must divide dt = 0.1"):
        spiral(2, 0.1, substep=0.03)
    with pytest.raises(InputError, match="amplitude makes the solution blow up with substep 0.05, got 1000000"):
        spiral(2, 0.5, grid=8, amplitude=1e6)


def test_without_diffusion_every_point_is_the_closed_form():
    # r' = r(1 - r^2), phase' = -beta r^2, solved in closed form.
    amplitude, beta, time = 0.4, 0.7, 0.5
    first, last = spiral(2, time, grid=8, diffusion=0.0, beta=beta, amplitude=amplitude, substep=0.0125)
    start, end = first[0] + 1j * first[1], last[0] + 1j * last[1]
    r0 = np.abs(start)
    grown = 1 + r0**2 * np.expm1(2 * time)
    assert np.allclose(np.abs(end), r0 * np.exp(time) / np.sqrt(grown), atol=1e-8)
    assert np.allclose(end / np.abs(end), start / r0 * np.exp(-0.5j * beta * np.log(grown)), atol=1e-8)


def test_chaotic_systems_are_sorted_and_solved():
    names = chaotic_systems()
    assert len(names) == 129
    assert list(names) == sorted(names)
    assert names[::15][:3] == ("Aizawa", "CaTwoPlus", "Duffing")
    series = chaotic_series("Lorenz", 300, 400)
    assert series.lyapunov_exponent == pytest.approx(0.89, abs=0.05)
    assert _residual(series, _lorenz(2.667)) < 1e-4
    assert chaotic_series("Lorenz", 300, 400) is series  # kept in memory
    assert not np.array_equal(chaotic_series("Lorenz", 300, 400, random_state=1).values, series.values)
    with pytest.raises(InputError, match="name is no chaotic system of dysts, got 'Lorentz'"):
        chaotic_series("Lorentz")


def test_systems_with_their_own_right_hand_side_and_unbounded_coordinates():
    assert chaotic_series("ExcitableCell", 200).values.shape == (200, 3)
    folded = chaotic_series("DoublePendulum", 200).values
    assert np.abs(folded[:, :2]).max() <= 1.0  # sines or cosines of the angles


def test_a_series_can_be_seen_partly_coarsely_and_through_noise():
    series = lorenz63(200)
    assert series.observing(2, 0).names == ("z", "x")
    assert np.array_equal(series.observing(2).values[:, 0], series.values[:, 2])
    assert series.every(4).dt == pytest.approx(4 * series.dt)
    noisy = series.with_noise(0.02, 0).values - series.values
    assert np.allclose(noisy.std(axis=0), 0.02 * series.values.std(axis=0), rtol=0.2)
    with pytest.raises(ValueError, match="read-only"):
        series.values[0] = 0.0
    assert isinstance(series, Series)
