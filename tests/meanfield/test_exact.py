"""The exact zero-temperature solution for matrices of any condition number and size, against independent oracles."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hardmax.errors import InputError
from hardmax.meanfield import exact
from hardmax.meanfield.exact import zero_temperature_solution
from hardmax.meanfield.measures import on_circle, sphere_sample

ANGLES = np.array([0.3, 1.5, 2.9])


def _closed_form(angle: float, small: float, time: float) -> float:
    """Angle to the second axis for B = diag(1, small) and V = -I, from the first integral O3, by root finding.

    With tan(phi) = x_1/x_2 = a e^{-(1 - small) s} and z = |Bx|, dt = z ds.
    """
    start = abs(math.cos(angle) / math.sin(angle))

    def passed(ratio: mpmath.mpf) -> mpmath.mpf:
        def potential(r: mpmath.mpf) -> mpmath.mpf:
            # Integral of |B x| over log r: |Bx| = sqrt((r^2 + small^2)/(1 + r^2)).
            z = mpmath.sqrt((r**2 + mpmath.mpf(small) ** 2) / (1 + r**2))
            return mpmath.atanh(z) - small * mpmath.atanh(small / z)

        return (potential(mpmath.mpf(start)) - potential(ratio)) / (1 - mpmath.mpf(small))

    with mpmath.workdps(32):
        low, high = mpmath.log(start) - 100, mpmath.log(start)
        if passed(mpmath.exp(low)) < time:
            return 0.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if passed(mpmath.exp(middle)) > time else (low, middle)
        return float(mpmath.exp(low))


@pytest.mark.parametrize("small", [1e-2, 1e-5, 1e-12])
@pytest.mark.parametrize("time", [0.3, 1.0, 5.0])
def test_any_condition_number_in_closed_form(small: float, time: float) -> None:
    found = zero_temperature_solution(on_circle(ANGLES), np.diag([1.0, small]), -np.eye(2), time=time)
    for angle, position in zip(ANGLES, found, strict=True):
        expected = _closed_form(angle, small, time)
        assert abs(abs(position[0] / position[1]) - expected) < 1e-12 * (1 + expected)
        assert np.sign(position[1]) == np.sign(math.sin(angle))


def _oracle(x0: np.ndarray, B: np.ndarray, V: np.ndarray, s: float) -> tuple[float, np.ndarray]:
    """Time and position of a token that has followed M for s, in forty digits: eigenvectors and quadrature."""
    with mpmath.workdps(40):
        score, start = mpmath.matrix(B.tolist()), mpmath.matrix(x0.tolist())
        values, vectors = mpmath.eig(mpmath.matrix(V.tolist()) * score)
        parts = mpmath.lu_solve(vectors, start)
        top = max(mpmath.re(value) for value in values)

        def state(u: mpmath.mpf) -> mpmath.matrix:
            grown = mpmath.matrix([part * mpmath.exp((v - top) * u) for part, v in zip(parts, values, strict=True)])
            return (vectors * grown).apply(mpmath.re)

        def speed(u: mpmath.mpf) -> mpmath.mpf:
            y = state(u)
            return mpmath.norm(score * y) / mpmath.norm(y)

        edges = [mpmath.mpf(0), *(mpmath.mpf(s) * mpmath.mpf(2) ** -k for k in range(40, -1, -1))]
        y = state(mpmath.mpf(s))
        nodes, weights = np.polynomial.legendre.leggauss(14)
        t = mpmath.mpf(0)
        for a, b in itertools.pairwise(edges):
            t += (
                (b - a) / 2 * sum(w * speed((a + b) / 2 + (b - a) / 2 * u) for u, w in zip(nodes, weights, strict=True))
            )
        return float(t), np.array([float(value / mpmath.norm(y)) for value in y])


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-9])
def test_ill_conditioned_matrices_against_many_digits(d: int, small: float) -> None:
    rng = np.random.default_rng(d)
    B = np.diag(np.geomspace(1.0, small, d))
    V = rng.normal(size=(d, d))
    while np.iscomplex(np.linalg.eigvals(V @ B)).any():  # turning tokens need too many nodes of quadrature
        V = rng.normal(size=(d, d))
    x0 = sphere_sample(1, d, random_state=rng).points
    for s in (3.0, 0.1 / small):
        time, expected = _oracle(x0[0], B, V, s)
        found = zero_temperature_solution(x0, B, V, time=time)
        # Slow parts of e^{sM} are known up to the rounding of its fast parts.
        assert np.abs(found[0] - expected).max() < 1e-13 / math.sqrt(small), (V, x0, s, time)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
def test_against_an_integrator(d: int) -> None:
    rng = np.random.default_rng(10 + d)
    B, V = rng.normal(size=(d, d)), rng.normal(size=(d, d))
    x0 = sphere_sample(2, d, random_state=rng).points

    def field(_: float, flat: np.ndarray) -> np.ndarray:
        asked = B @ flat
        moved = V @ asked / np.linalg.norm(asked)
        return np.asarray(moved - (flat @ moved) / (flat @ flat) * flat)

    found = zero_temperature_solution(x0, B, V, time=2.0)
    for start, end in zip(x0, found, strict=True):
        done = solve_ivp(field, (0, 2.0), start, method="DOP853", rtol=1e-12, atol=1e-13)
        assert np.abs(done.y[:, -1] / np.linalg.norm(done.y[:, -1]) - end).max() < 1e-9


@pytest.mark.parametrize("power", [-990, -300, -30, 30, 300, 990])
def test_sizes_scale(power: int) -> None:
    rng = np.random.default_rng(0)
    B, V = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    x0 = sphere_sample(8, 3, random_state=0).points
    usual = zero_temperature_solution(x0, B, V, time=[0.25, 2.0])
    other = zero_temperature_solution(x0, np.ldexp(B, power), V, time=[0.25, 2.0])
    np.testing.assert_array_equal(other, usual)
    times = np.ldexp([0.25, 2.0], -power)
    np.testing.assert_array_equal(zero_temperature_solution(x0, B, np.ldexp(V, power), time=times), usual)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-10, 1e10, 1e200, 1e300])
def test_sizes_that_are_no_power_of_two(size: float) -> None:
    rng = np.random.default_rng(1)
    B, V = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    x0 = sphere_sample(8, 3, random_state=0).points
    usual = zero_temperature_solution(x0, B, V, time=1.0)
    np.testing.assert_allclose(zero_temperature_solution(x0, size * B, V, time=1.0), usual, rtol=0, atol=1e-13)
    np.testing.assert_allclose(zero_temperature_solution(x0, B, size * V, time=1 / size), usual, rtol=0, atol=1e-12)


def test_very_long_times_reach_the_limit_and_rotations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x0 = sphere_sample(5, 2, random_state=0).points
    found = zero_temperature_solution(x0, np.diag([4.0, 1.0]), np.diag([1.0, 2.0]), time=[1e3, 1e300])
    np.testing.assert_allclose(np.abs(found), np.broadcast_to([1.0, 0.0], found.shape), atol=1e-15)
    monkeypatch.setattr(exact, "_MOST_PANELS", 200)
    turning = np.array([[0.0, -1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match=r"time is too long for these matrices and tokens, got 1000000000"):
        zero_temperature_solution(x0[:1], np.diag([2.0, 1.0]), turning, time=1e9)


def test_a_token_in_the_kernel_of_the_projector_stays_where_the_arithmetic_is_exact() -> None:
    found = zero_temperature_solution([[0.0, 1.0]], np.diag([4.0, 1.0]), np.diag([1.0, 2.0]), time=50.0)
    np.testing.assert_array_equal(found, [[0.0, 1.0]])


def test_the_closed_form_of_the_circle_is_its_own_inverse() -> None:
    """The oracle itself: O3 gives the time at which a ratio is reached, integrated here step by step."""
    small, time = 1e-2, 0.4
    ratio = _closed_form(0.3, small, time)
    speed = lambda log_r: math.sqrt((math.exp(2 * log_r) + small**2) / (1 + math.exp(2 * log_r)))  # noqa: E731
    start = math.log(math.cos(0.3) / math.sin(0.3))
    grid = np.linspace(start, math.log(ratio), 4001)
    passed = -np.trapezoid([speed(x) for x in grid], grid) / (1 - small)
    assert passed == pytest.approx(time, rel=1e-6)
