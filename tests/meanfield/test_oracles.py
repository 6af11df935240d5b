"""Closed forms that the flow, its attention and its limit must reproduce to rounding."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
import torch
from numpy.polynomial.legendre import leggauss
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import ive, roots_jacobi

from hardmax.dynamics.integrators import Adaptive
from hardmax.dynamics.simulate import simulate
from hardmax.meanfield.exact import zero_temperature_solution
from hardmax.meanfield.flow import SphereFlow
from hardmax.meanfield.limit import low_temperature_limit
from hardmax.meanfield.measures import circle_quantiles, on_circle, sphere_quadrature, sphere_sample
from hardmax.meanfield.transport import wasserstein

TIGHT = Adaptive(tolerance=1e-14)


def bessel_ratio(d: int, kappa: np.ndarray) -> np.ndarray:
    return ive(d / 2, kappa) / ive(d / 2 - 1, kappa)


@pytest.mark.parametrize("evaluation", ["auto", "rows", "sdpa", "circle", "truncated"])
@pytest.mark.parametrize(("n", "beta"), [(256, 10.0), (1200, 1000.0)])
def test_o1_equispaced_circle_attends_to_a_bessel_ratio(n: int, beta: float, evaluation: str) -> None:
    B = np.array([[1.3, 0.2], [-0.4, 0.9]])
    points = on_circle(2 * np.pi * np.arange(n) / n)
    mean = SphereFlow(B, beta=beta, evaluation=evaluation).attention(points)
    asked = points @ B.T
    length = np.linalg.norm(asked, axis=1)
    expected = asked / length[:, None] * bessel_ratio(2, beta * length)[:, None]
    assert np.abs(mean - expected).max() < 1e-12


@pytest.mark.parametrize(("rings", "kappa"), [(40, 10.0), (100, 100.0)])
def test_o1b_uniform_sphere(rings: int, kappa: float) -> None:
    rule = sphere_quadrature(rings, 2 * rings)
    queries = sphere_sample(50, 3, random_state=0).points
    mean = SphereFlow(beta=kappa).attention(rule.points, rule.weights, queries=queries)
    ratio = 1 / math.tanh(kappa) - 1 / kappa
    assert abs(ratio - bessel_ratio(3, np.array(kappa))) < 1e-14
    assert np.abs(mean - ratio * queries).max() < 1e-12


@pytest.mark.parametrize("kappa", [2.0, 40.0])
def test_o1c_linear_density(kappa: float) -> None:
    rule = sphere_quadrature(60, 120)
    a = np.array([0.3, -0.5, 0.2])
    law = rule.reweighted(lambda y: 1 + y @ a)
    b = sphere_sample(30, 3, random_state=1).points
    mean = SphereFlow(beta=kappa).attention(law.points, law.weights, queries=b)
    R = 1 / math.tanh(kappa) - 1 / kappa
    along = (b @ a)[:, None]
    expected = R * b + (1 - 2 * R / kappa) * along * b + (R / kappa) * (a - along * b)
    assert np.abs(mean - expected / (1 + R * along)).max() < 1e-12


SIGNS = [(1, 1, 1, 1), (-1, 1, 1, -1), (1, -1, -1, -1), (-1, -1, 1, 1)]


def _signed(d: int, signs: tuple[int, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Diagonal entries of B and V of distinct sizes, with the signs repeated along the diagonal."""
    rng = np.random.default_rng(seed)
    b, v = rng.uniform(0.5, 2.0, d), rng.uniform(0.5, 2.0, d)
    return b * np.resize(signs[:2], d), v * np.resize(signs[2:], d)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("signs", SIGNS)
def test_o1_and_o1c_in_any_dimension_by_quadrature_along_the_query(d: int, signs: tuple[int, ...]) -> None:
    """Tokens on rings around the query carry a law with density 1 + <a, y> exactly, a along the query or against it."""
    b, _ = _signed(d, signs, d)
    query = sphere_sample(1, d, random_state=d).points[0]
    asked = b * query
    kappa = 7.0 * float(np.linalg.norm(asked))
    direction = asked / np.linalg.norm(asked)
    heights, weights = roots_jacobi(60, (d - 3) / 2, (d - 3) / 2)
    across = np.linalg.svd(direction[None])[2][1:]
    ring = np.concatenate([across, -across])  # the mean over a ring is its centre
    points = heights[:, None, None] * direction + np.sqrt(1 - heights**2)[:, None, None] * ring
    flow = SphereFlow(np.diag(b), beta=7.0, few_tokens="ignore")
    R = float(bessel_ratio(d, np.array(kappa)))
    for tilt in (0.0, 0.6, -0.6):
        mass = np.repeat(weights * (1 + tilt * heights), len(ring)) / len(ring)
        mean = flow.attention(points.reshape(-1, d), mass, queries=query[None])[0]
        expected = (R + (1 - (d - 1) * R / kappa) * tilt) / (1 + R * tilt) * direction
        assert np.abs(mean - expected).max() < 1e-12


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("signs", SIGNS)
def test_o2_and_o3_in_any_dimension(d: int, signs: tuple[int, ...]) -> None:
    """Ratios of coordinates decay exponentially in s; in t the first integral of the plane of two axes is linear."""
    b, v = _signed(d, signs, 10 + d)
    start = sphere_sample(4, d, random_state=0).points
    # O2: B = I, any V: each ratio x_k/x_0 changes like exp((v_k - v_0) t).
    end = zero_temperature_solution(start, V=np.diag(v), time=0.7)
    expected = start[:, 1:] / start[:, :1] * np.exp((v[1:] - v[0]) * 0.7)
    assert np.abs(end[:, 1:] / end[:, :1] - expected).max() < 1e-11 * max(1.0, np.abs(expected).max())
    # O3: a token in the plane of the axes with the largest and the smallest |b|.
    wide, narrow = int(np.abs(b).argmax()), int(np.abs(b).argmin())
    plane = np.zeros((1, d))
    plane[0, [wide, narrow]] = math.cos(0.9), math.sin(0.9)
    after = zero_temperature_solution(plane, np.diag(b), np.diag(v), time=0.3)

    def first_integral(point: np.ndarray) -> float:
        z = float(np.linalg.norm(b * point))
        return abs(b[wide]) * math.atanh(z / abs(b[wide])) - abs(b[narrow]) * math.atanh(abs(b[narrow]) / z)

    growth = first_integral(after[0]) - first_integral(plane[0])
    assert growth == pytest.approx(0.3 * (b[wide] * v[wide] - b[narrow] * v[narrow]), abs=1e-11)


@pytest.mark.parametrize("d", [3, 5, 10])
def test_o5_in_any_dimension(d: int) -> None:
    """B = I and V with one leading axis: the distance to the two atoms is an integral over the height alone."""
    heights, weights = roots_jacobi(400, (d - 3) / 2, (d - 3) / 2)
    weights = weights / weights.sum()
    start = np.zeros((len(heights), d))
    start[:, 0], start[:, 1] = heights, np.sqrt(1 - heights**2)
    V = np.diag([2.0] + [0.5] * (d - 1))
    end = zero_temperature_solution(start, V=V, time=0.8)
    law = low_temperature_limit(start, V=V)
    found = wasserstein(end, law.positions, first_weights=weights, second_weights=weights)
    eps = math.exp(-1.5 * 0.8)
    moved = np.abs(heights) / np.sqrt(heights**2 + eps**2 * (1 - heights**2))
    assert float(found) ** 2 == pytest.approx(float(weights @ (2 - 2 * moved)), abs=1e-12)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("signs", SIGNS)
def test_o6_and_o7_in_any_dimension(d: int, signs: tuple[int, ...]) -> None:
    b, v = _signed(d, signs, 20 + d)
    x0 = sphere_sample(1, d, random_state=d).points
    flow = SphereFlow(np.diag(b), np.diag(v), 9.0, few_tokens="ignore")
    end = simulate(np.repeat(x0, 3, axis=0), flow, time=0.5, integrator=TIGHT, keep="last").final
    expected = x0[0] * np.exp(0.5 * v)
    assert np.abs(end - expected / np.linalg.norm(expected)).max() < 1e-11
    # O7 with V = +-I: two tokens in any plane of the space.
    sign = signs[2]
    other = sphere_sample(1, d, random_state=d + 100).points
    phi = math.acos(float(x0[0] @ other[0]))
    two = simulate(
        np.concatenate([x0, other]),
        SphereFlow(V=sign * np.eye(d), beta=3.0, few_tokens="ignore"),
        time=0.5,
        integrator=TIGHT,
        keep="last",
    ).final
    right = lambda _, angle: -2 * sign * np.sin(angle) / (1 + np.exp(3.0 * (1 - np.cos(angle))))  # noqa: E731
    angle = solve_ivp(right, (0, 0.5), [phi], method="DOP853", rtol=1e-13, atol=1e-15).y[0, -1]
    assert math.acos(float(two[0] @ two[1])) == pytest.approx(angle, abs=1e-10)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_o8_cross_polytopes_rest(d: int, sign: float) -> None:
    """The vertices of the cross-polytope, a symmetric law in any dimension, attend to multiples of themselves."""
    points = torch.from_numpy(np.concatenate([np.eye(d), -np.eye(d)]))
    flow = SphereFlow(sign * np.eye(d), -sign * np.eye(d), beta=4.0, few_tokens="ignore")
    assert float(flow.velocity(points, torch.ones(2 * d, dtype=torch.float64)).abs().max()) < 1e-12


def test_o2_tangent_of_the_angle_decays() -> None:
    angle = np.array([0.1, 0.7, 1.2, 1.5, -0.4])
    v1, v2, t = 2.0, 0.5, 3.0
    flow = SphereFlow(V=np.diag([v1, v2]), beta=math.inf)
    end = simulate(on_circle(angle), flow, time=t, integrator=TIGHT).final
    expected = math.exp(-(v1 - v2) * t) * np.tan(angle)
    assert np.abs(end[:, 1] / end[:, 0] - expected).max() < 1e-12


@pytest.mark.parametrize(("b", "v"), [((3.0, 1.0), (1.0, 1.0)), ((4.0, 1.0), (1.0, 2.0)), ((3.0, 2.0), (0.25, 2.0))])
def test_o3_length_of_the_query_in_closed_form(b: tuple[float, float], v: tuple[float, float]) -> None:
    def first_integral(points: np.ndarray) -> np.ndarray:
        z = np.linalg.norm(points * np.array(b), axis=1)
        return b[0] * np.arctanh(z / b[0]) - b[1] * np.arctanh(b[1] / z)

    start = on_circle(np.array([0.2, 0.7, 1.2, 1.5]))
    flow = SphereFlow(np.diag(b), np.diag(v), beta=math.inf)
    end = simulate(start, flow, time=1.5, integrator=TIGHT).final
    growth = first_integral(end) - first_integral(start)
    assert np.abs(growth - (b[0] * v[0] - b[1] * v[1]) * 1.5).max() < 1e-12


@pytest.mark.parametrize("d", [2, 3, 5, 10])
def test_o4_exact_solution_in_any_dimension(d: int) -> None:
    rng = np.random.default_rng(d)
    B, V = rng.normal(size=(d, d)), rng.normal(size=(d, d))
    start = sphere_sample(3, d, random_state=rng).points
    for x0, s in zip(start, (0.1, 0.4, 1.0), strict=True):

        def speed(u: float, x0: np.ndarray = x0) -> float:
            y = expm(u * V @ B) @ x0
            return float(np.linalg.norm(B @ y) / np.linalg.norm(y))

        edges = np.linspace(0, s, 21)
        t = sum(
            0.5 * (b - a) * w * speed(0.5 * (a + b) + 0.5 * (b - a) * node)
            for a, b in itertools.pairwise(edges)
            for node, w in zip(*leggauss(16), strict=True)
        )
        expected = expm(s * V @ B) @ x0
        expected /= np.linalg.norm(expected)
        assert np.abs(zero_temperature_solution(x0[None], B, V, time=t) - expected).max() < 1e-12
        followed = simulate(x0[None], SphereFlow(B, V, math.inf), time=t, step=t / 20, integrator=TIGHT).final
        assert np.abs(followed - expected).max() < 1e-12


@pytest.mark.parametrize("t", [0.5, 2.0, 4.0, 8.0])
def test_o5_distance_to_the_limit(t: float) -> None:
    # Gauss points in each quarter of the circle: the distance to the two atoms has kinks between quarters alone.
    nodes, weights = leggauss(400)
    # sinh substitution gathers nodes at the ends of a quarter, where the flow separates tokens
    stretch = 12.0
    quarter = np.pi / 4 * (1 + np.tanh(stretch * nodes / 2) / np.tanh(stretch / 2))
    mass = weights * (1 - np.tanh(stretch * nodes / 2) ** 2)
    angles = np.concatenate([quarter + k * np.pi / 2 for k in range(4)])
    masses = np.tile(mass, 4)
    V = np.diag([2.0, 0.5])
    start = on_circle(angles)
    law = low_temperature_limit(start, V=V)
    end = zero_temperature_solution(start, V=V, time=t)
    found = wasserstein(end, law.positions, first_weights=masses, second_weights=masses)
    eps = math.exp(-1.5 * t)
    expected = 2 * (1 - (2 / math.pi) * math.acos(eps) / math.sqrt(1 - eps**2))
    assert found.method == "atoms"
    assert abs(float(found) - math.sqrt(expected)) < 1e-9


@pytest.mark.parametrize("beta", [0.0, 1.0, 50.0, 1e6])
def test_o6_equal_tokens_obey_the_value_matrix_alone(beta: float) -> None:
    rng = np.random.default_rng(0)
    V, B = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    x0 = sphere_sample(1, 4, random_state=0).points
    flow = SphereFlow(B, V, beta, few_tokens="ignore")
    end = simulate(np.repeat(x0, 7, axis=0), flow, time=1.0, integrator=TIGHT).final
    expected = x0[0] @ expm(V).T
    assert np.abs(end - expected / np.linalg.norm(expected)).max() < 1e-12


@pytest.mark.parametrize("beta", [1.0, 5.0, 20.0])
def test_o7_two_tokens_obey_one_equation(beta: float) -> None:
    start = on_circle(np.array([0.0, 1.0]))
    end = simulate(start, SphereFlow(beta=beta, few_tokens="ignore"), time=2.0, integrator=TIGHT).final
    right = lambda _, phi: -2 * np.sin(phi) / (1 + np.exp(beta * (1 - np.cos(phi))))  # noqa: E731
    angle = solve_ivp(right, (0, 2.0), [1.0], method="DOP853", rtol=1e-13, atol=1e-15).y[0, -1]
    found = math.atan2(float(np.linalg.det(end)), float(end[0] @ end[1]))
    assert abs(found - angle) < 1e-12


@pytest.mark.parametrize(("n", "beta"), [(7, 3.0), (100, 50.0), (1000, 1000.0)])
def test_o8_equispaced_circle_rests(n: int, beta: float) -> None:
    points = torch.from_numpy(circle_quantiles(n).points)
    flow = SphereFlow(beta=beta, few_tokens="ignore")
    assert float(flow.velocity(points, torch.ones(n, dtype=torch.float64)).abs().max()) < 1e-12


@cache
def _flow_and_its_truth(beta: float) -> tuple[np.ndarray, SphereFlow, np.ndarray]:
    """A start, a flow and the end of its tight integration, the same for all integrators."""
    B, V = np.diag([1.5, 1.0, 0.7]), np.random.default_rng(3).normal(size=(3, 3))
    start = sphere_sample(40, 3, random_state=2).points
    flow = SphereFlow(B, V, beta, few_tokens="ignore")
    return start, flow, simulate(start, flow, time=1.0, integrator=TIGHT, keep="last").final


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("residual", 1), ("heun", 2), ("rk4", 4)])
@pytest.mark.parametrize("beta", [5.0, math.inf])
def test_integrators_have_their_order(integrator: str, order: int, beta: float) -> None:
    start, flow, truth = _flow_and_its_truth(beta)
    steps = np.array([0.05, 0.025, 0.0125])
    errors = [
        np.abs(simulate(start, flow, time=1.0, step=h, integrator=integrator, keep="last").final - truth).max()
        for h in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.12
