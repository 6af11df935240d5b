"""The theorem of concentration: a true bound on random runs, and the Laplace principle it rests on."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import hardmax as hm
from hardmax.meanfield.laplace import CapMasses, ball_masses

TILTED = hm.circle_quantiles(1000, lambda angle: 1 + np.sin(angle) / 2).points


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("kappa", [0.5, 10.0, 300.0, 1e5, 1e9])
def test_laplace_error_of_the_uniform_law_is_a_bessel_ratio(d: int, kappa: float) -> None:
    with mpmath.workdps(40):
        exact = 1 - mpmath.besseli(mpmath.mpf(d) / 2, kappa) / mpmath.besseli(mpmath.mpf(d) / 2 - 1, kappa)
    assert hm.laplace_error(d, kappa) == pytest.approx(float(exact), rel=1e-9)
    bound = CapMasses(d, 1.0).laplace(kappa)
    assert hm.laplace_error(d, kappa) <= bound
    if kappa >= 300:  # the bound is that of the theorem, sqrt(log(kappa)/kappa) up to a factor
        assert bound < 3 * math.sqrt(d * math.log(kappa) / kappa)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
def test_laplace_principle_on_random_tokens(d: int) -> None:
    rng = np.random.default_rng(d)
    for beta in (0.3, 10.0, 1e4):
        tokens = hm.sphere_sample(300, d, random_state=rng).points
        B = rng.normal(size=(d, d))
        queries = hm.sphere_sample(20, d, random_state=rng).points
        found = hm.check_laplace(tokens, B, beta=beta, weights=rng.uniform(0.1, 1.0, 300), queries=queries)
        assert found.holds
        assert found.distances.shape == found.bounds.shape == (20,)
        assert found.looseness >= 1
    single = hm.check_laplace(np.eye(d)[:1], beta=5.0, queries=-np.eye(d)[:1])
    # One token: attention is at the token, whatever the query, and the bound is attained.
    np.testing.assert_allclose(single.distances, single.bounds, rtol=1e-12)


def test_cap_masses_are_areas() -> None:
    points = hm.sphere_sample(20_000, 5, random_state=0).points
    for radius in (0.5, 1.0, 1.5):
        share = (np.linalg.norm(points - np.eye(5)[0], axis=1) <= radius).mean()
        assert float(CapMasses(5, 1.0)(np.array(radius))) == pytest.approx(share, abs=0.01)
    for d in (2, 3, 5, 10):
        q, c = CapMasses(d, 0.5).power
        radii = np.geomspace(1e-5, 1.0, 50)
        assert (CapMasses(d, 0.5)(radii) >= c * radii**q).all()
        assert (CapMasses(d, 0.5)(radii) <= 20 * c * radii**q).all()


@pytest.mark.parametrize("d", [2, 3, 4])
def test_ball_masses_of_tokens_are_lower_bounds(d: int) -> None:
    rng = np.random.default_rng(d)
    tokens = hm.sphere_sample(400, d, random_state=rng).points
    weights = rng.uniform(0.2, 1.0, 400)
    weights /= weights.sum()
    masses = ball_masses(tokens, weights)
    assert masses.resolved
    centres = hm.sphere_sample(2000, d, random_state=rng).points
    distances = np.linalg.norm(tokens[None] - centres[:, None], axis=2)
    assert distances.min(axis=1).max() <= masses.hole
    assert distances.min(axis=1).max() > 0.6 * masses.hole
    for radius in (0.2, 0.6, 1.2):
        assert float(masses(np.array(radius))) <= ((distances <= radius) * weights).sum(axis=1).min() + 1e-12
    assert not ball_masses(np.abs(tokens), weights).resolved


def _run(B: np.ndarray, V: np.ndarray, beta: float, tokens: np.ndarray, time: float) -> hm.Trajectory:
    flow = hm.SphereFlow(B, V, beta, few_tokens="ignore")
    return hm.simulate(tokens, flow, time=time, step=time / 6, integrator="rk4")


def test_the_bound_holds_on_random_runs_and_says_something() -> None:
    """Counted: no violation, on runs of which most states have a bound below the diameter of the sphere."""
    rng = np.random.default_rng(0)
    violated, telling, states = 0, 0, 0
    for k in range(8):
        B, V = np.eye(2) + 0.15 * rng.normal(size=(2, 2)), np.diag([1.0, 0.2]) + 0.2 * rng.normal(size=(2, 2))
        beta = float(np.exp(rng.uniform(np.log(100), np.log(1e4))))
        run = _run(B, V, beta, TILTED[::2] if k % 2 else hm.circle_quantiles(600).points, 0.8)
        theorem = hm.check_theorem(run)
        if not theorem.assumptions.hold:
            assert theorem.verdict(run).outcome == "not applicable"
            continue
        verdict = theorem.verdict(run)
        violated += verdict.outcome != "holds"
        rows = verdict.rows()
        states += len(rows)
        telling += sum(row["bound"] < 2 for row in rows)
        assert verdict.looseness is None or verdict.looseness >= 1
    assert violated == 0
    assert telling > 0.5 * states > 20


def test_a_wrong_constant_is_noticed() -> None:
    """The verdict can fail: with constants of another pair of matrices the same run violates the bound."""
    from dataclasses import replace

    run = _run(np.eye(2), np.diag([1.0, 0.2]), 30.0, TILTED, 0.6)
    theorem = hm.check_theorem(run)
    assert theorem.verdict(run).outcome == "holds"
    wrong = replace(theorem, value_norm=1e-3 * theorem.value_norm, ratios=1e-2 * theorem.ratios)
    found = wrong.verdict(run)
    assert found.outcome == "violated"
    assert "violated at" in str(found)


def test_each_part_of_the_bound_is_true_of_the_exact_flow() -> None:
    """D(t) against the exact zero-temperature solution in d = 2, 3, 5, 10, for matrices that are not normal."""
    for d in (2, 3, 5, 10):
        rng = np.random.default_rng(d)
        for _ in range(3):
            B, V = np.eye(d) + 0.3 * rng.normal(size=(d, d)), rng.normal(size=(d, d))
            tokens = hm.sphere_sample(60, d, random_state=rng).points
            theorem = hm.check_theorem(tokens, hm.SphereFlow(B, V, normalise=True), density_floor=1.0)
            if not theorem.assumptions.hold:
                continue
            for t in (0.0, 0.5, 2.0, 20.0):
                cold = hm.zero_temperature_solution(tokens, B, V, time=t)
                measured = math.sqrt(((cold - theorem.limit.positions) ** 2).sum(axis=1).mean())
                assert measured <= theorem.limit_bound(t) + 1e-12
            assert theorem.limit_bound(1e4) < 2e-3


def test_constants_have_the_form_of_the_theorem() -> None:
    theorem = hm.check_theorem(TILTED, hm.SphereFlow(np.diag([2.0, 1.0]), np.diag([1.0, 0.5])), density_floor=0.5)
    assert theorem.lipschitz == pytest.approx(1.0 * (1 + 2.0))
    assert theorem.rate == pytest.approx((2.0 - 0.5) / 2.0)
    for beta in (1.0, 30.0, 1e3, 1e6):
        for t in (0.0, 0.3, 1.0, 2.0):
            shape = math.sqrt(math.log(beta + 1) / beta) * math.exp(theorem.growth * t) + math.exp(-theorem.rate * t)
            assert theorem.bound(beta, t) <= theorem.constant * shape
    # The best time grows like log beta.
    times = [theorem.t_star(beta) for beta in (1e20, 1e40, 1e60)]
    slope = 1 / (2 * (theorem.growth + theorem.rate))
    assert (times[2] - times[1]) / (20 * math.log(10)) == pytest.approx(slope, rel=0.02)
    assert (times[1] - times[0]) / (20 * math.log(10)) == pytest.approx(slope, rel=0.03)
    grid = np.linspace(0, 3 * times[2], 200)
    bounds = [theorem.bound(1e60, float(t)) for t in grid]
    assert min(bounds) < 0.01
    assert float(grid[int(np.argmin(bounds))]) == pytest.approx(times[2], rel=0.25)


@pytest.mark.parametrize(
    ("B", "V", "tokens", "reason"),
    [
        (np.diag([1.0, 0.0]), np.eye(2), TILTED, "singular value"),
        (np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]]), TILTED, "complex pair"),
        (np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]]), TILTED, "defective"),
        (np.eye(2), np.diag([1.0, 0.5]), TILTED[:100], "half sphere"),
        (np.eye(2), np.diag([1.0, 0.5]), np.array([[0.6, 0.8], [-0.6, 0.8], [0.0, -1.0]]), "kernel"),
    ],
)
def test_assumptions_that_fail_are_named(B: np.ndarray, V: np.ndarray, tokens: np.ndarray, reason: str) -> None:
    flow = hm.SphereFlow(B, V, beta=10.0, few_tokens="ignore")
    theorem = hm.check_theorem(tokens, flow)
    assert not theorem.assumptions.hold
    assert reason in str(theorem.assumptions)
    assert theorem.bound(100.0, 1.0) == 2.0
    assert math.isnan(theorem.t_star(100.0))
    assert len(theorem.assumptions.rows()) == 5
    run = hm.simulate(tokens, flow, time=0.2, step=0.1)
    assert theorem.verdict(run).outcome == "not applicable"
    with pytest.raises(hm.InputError, match="must satisfy the assumptions"):
        hm.check_theorem(tokens, flow, require_assumptions=True)


def test_arguments_are_checked() -> None:
    flow = hm.SphereFlow(V=np.diag([1.0, 0.5]), beta=10.0)
    theorem = hm.check_theorem((TILTED, flow))
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(hm.InputError, match="beta"):
            theorem.bound(wrong, 1.0)
    with pytest.raises(hm.InputError, match="t must be finite"):
        theorem.bound(10.0, -1.0)
    with pytest.raises(hm.InputError, match="density_floor must lie in"):
        hm.check_theorem(TILTED, flow, density_floor=2.0)
    with pytest.raises(hm.InputError, match="tolerance belongs to layers"):
        hm.check_theorem(TILTED, flow, tolerance=1e-3)
    with pytest.raises(hm.InputError, match="weights belongs to flows"):
        hm.check_theorem(np.eye(2), hm.HardmaxLayer(), weights=[1.0, 1.0])
    other = hm.simulate(TILTED[::-1].copy(), flow, time=0.2, step=0.1)
    with pytest.raises(hm.InputError, match="run must start at the tokens of the theorem"):
        theorem.verdict(other)
