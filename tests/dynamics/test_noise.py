"""Noise: orders of the stochastic integrators against exact laws, seeds, and what is refused.

Expected values after one step are sums over Gauss-Hermite nodes, which are passed as increments of the Brownian motion:
the weak order is measured without random numbers. Runs with random numbers are compared at several standard errors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.special import ive

import hardmax as hm
from hardmax.attention.base import Context
from hardmax.dynamics import AbstractStochasticIntegrator, EulerMaruyama, NoiseSplitting, StochasticHeun, UnitSphere
from hardmax.dynamics.integrators import FlowStep, discretised, integrator_named, name_of
from threads import with_processes

SCHEMES: list[AbstractStochasticIntegrator] = [EulerMaruyama(), StochasticHeun(), NoiseSplitting()]


def normals(count: int, nodes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Gauss-Hermite nodes and weights for ``count`` independent standard normal numbers: (nodes^count, count)."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    points = np.array(list(itertools.product(x, repeat=count)))
    weights = np.prod(np.array(list(itertools.product(w / w.sum(), repeat=count))), axis=1)
    return torch.from_numpy(points), torch.from_numpy(weights)


def follow(
    flow: hm.AbstractFlow, tokens: torch.Tensor, time: float, step: float, integrator: str | None = None, seed: int = 0
) -> torch.Tensor:
    """Final state of a run by plain steps: what simulate does with a seed."""
    layer, depth = discretised(flow, time, step, integrator)
    mass = torch.ones(len(tokens), dtype=torch.float64)
    state = layer.admit(tokens, mass, torch.float64)
    generator = torch.Generator().manual_seed(seed)
    for index in range(depth):
        state = layer.step_at(state, mass, Context(index, generator))
    return state


def still(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(z)


def pulled(strength: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Field towards the first axis: on the circle d(theta) = -strength sin(theta) dt."""

    def pull(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return strength * torch.eye(z.shape[1], dtype=z.dtype)[:1].expand_as(z)

    return pull


def slope(steps: list[float], errors: list[float]) -> float:
    """Order of convergence between the first and the last step."""
    return math.log(abs(errors[0] / errors[-1])) / math.log(steps[0] / steps[-1])


# ---------------------------------------------------------------- Ornstein-Uhlenbeck in R^d


def moments_of_ou(scheme: AbstractStochasticIntegrator, step: float, count: int) -> tuple[float, float]:
    """Mean and variance at time ``count * step`` of dX = -X dt + 0.7 dW from X = 1: the scheme is linear in X and W."""
    flow = hm.NoisyFlow(hm.CallableFlow(lambda z, w: -z), 0.7)
    xi, weights = normals(scheme.substeps, 3)
    parts = math.sqrt(step / scheme.substeps) * xi.T[:, :, None]
    mass = torch.ones(len(xi), dtype=torch.float64)
    at = [scheme.advance_noisy(flow, torch.full((len(xi), 1), x), mass, step, parts)[:, 0] for x in (0.0, 1.0)]
    factor = float((weights * (at[1] - at[0])).sum())
    spread = float((weights * at[0] ** 2).sum())
    mean, variance = 1.0, 0.0
    for _ in range(count):
        mean, variance = factor * mean, factor**2 * variance + spread
    return mean, variance


@pytest.mark.parametrize(("scheme", "order"), [*zip(SCHEMES, (1, 2, 2), strict=True)], ids=str)
def test_mean_and_variance_of_ornstein_uhlenbeck(scheme: AbstractStochasticIntegrator, order: int) -> None:
    exact = math.exp(-1.0), 0.7**2 / 2 * (1 - math.exp(-2.0))
    steps = [1 / 8, 1 / 64]
    found = [moments_of_ou(scheme, h, round(1 / h)) for h in steps]
    for k in range(2):
        errors = [one[k] - exact[k] for one in found]
        assert abs(errors[-1]) < (5e-3 if order == 1 else 2e-4)
        assert slope(steps, errors) == pytest.approx(order, abs=0.25)


def test_strong_order_one_on_one_path() -> None:
    """Additive noise: all three schemes converge to the same path at order one, as increments are refined."""
    generator = torch.Generator().manual_seed(3)
    finest, time = 1024, 1.0
    fine = math.sqrt(time / finest) * torch.randn((finest, 40, 2), dtype=torch.float64, generator=generator)
    flow = hm.NoisyFlow(hm.CallableFlow(lambda z, w: z - z**3), [0.5, 0.3])
    start = torch.ones((40, 2), dtype=torch.float64)
    mass = torch.ones(40, dtype=torch.float64)

    def along(scheme: AbstractStochasticIntegrator, count: int) -> torch.Tensor:
        parts = fine.reshape(count, scheme.substeps, -1, 40, 2).sum(dim=2)
        state = start
        for k in range(count):
            state = scheme.advance_noisy(flow, state, mass, time / count, parts[k], k * time / count)
        return state

    truth = along(StochasticHeun(), finest)
    for scheme in SCHEMES:
        errors = [float((along(scheme, count) - truth).square().mean().sqrt()) for count in (8, 64)]
        assert errors[1] < 6e-3
        assert slope([1 / 8, 1 / 64], errors) > 0.85


def test_noise_per_coordinate() -> None:
    flow = hm.NoisyFlow(hm.CallableFlow(still), [0.0, 0.5, 2.0])
    final = follow(flow, torch.zeros((40_000, 3), dtype=torch.float64), 1.0, 0.25)
    assert bool((final[:, 0] == 0).all())
    assert final.std(dim=0)[1:].tolist() == pytest.approx([0.5, 2.0], rel=0.015)  # 4 standard errors


# ---------------------------------------------------------------- Brownian motion on the sphere


def cosine_of_brownian_motion(scheme: AbstractStochasticIntegrator, d: int, step: float) -> float:
    """E <x_0, x_h> of one step of a flow with noise 1 and no drift."""
    d_noise = d - 1  # the increment along x_0 is removed by the projection at the first half step
    xi, weights = normals(d_noise, 24 if d < 4 else 14)
    start = torch.zeros((len(xi), d), dtype=torch.float64)
    start[:, 0] = 1.0
    if scheme.substeps == 2:  # one half: two of them are independent rotations, whose mean cosines are multiplied
        parts = torch.zeros((2, len(xi), d), dtype=torch.float64)
        parts[0, :, 1:] = math.sqrt(step / 2) * xi
    else:
        parts = torch.zeros((1, len(xi), d), dtype=torch.float64)
        parts[0, :, 1:] = math.sqrt(step) * xi
    flow = hm.NoisyFlow(hm.CallableFlow(still, sphere=True), 1.0)
    moved = scheme.advance_noisy(flow, start, torch.ones(len(xi), dtype=torch.float64), step, parts)
    cosine = float((weights * moved[:, 0]).sum())
    return cosine**2 if scheme.substeps == 2 else cosine


@pytest.mark.parametrize("d", [2, 3, 4])
def test_brownian_motion_on_the_sphere_by_splitting(d: int) -> None:
    """E <x_0, x_t> = exp(-(d-1) t / 2): local error O(h^3), none on the circle."""
    steps = [0.2, 0.05]
    errors = [cosine_of_brownian_motion(NoiseSplitting(), d, h) - math.exp(-(d - 1) * h / 2) for h in steps]
    if d == 2:
        assert np.abs(errors).max() < 1e-13
    else:
        assert abs(errors[0]) < 4e-4
        assert slope(steps, errors) == pytest.approx(3, abs=0.2)


def test_second_harmonic_of_a_brownian_step() -> None:
    """The zonal harmonic of degree 2 decays like exp(-d t): not only the mean of the law is right."""
    errors = []
    for s in (0.04, 0.01):
        xi, weights = normals(2, 24)
        start = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64).repeat(len(xi), 1)
        parts = torch.cat([torch.ones(len(xi), 1, dtype=torch.float64), math.sqrt(s) * xi], dim=1)
        cosine = UnitSphere().brownian(start, parts, s)[:, 0]
        errors.append(float((weights * (3 * cosine**2 - 1) / 2).sum()) - math.exp(-3 * s))
    assert slope([0.04, 0.01], errors) == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("scheme", [EulerMaruyama(), StochasticHeun()], ids=str)
def test_the_other_schemes_have_weak_order_one_on_the_sphere(scheme: AbstractStochasticIntegrator) -> None:
    steps = [0.02, 0.005]
    errors = [cosine_of_brownian_motion(scheme, 3, h) - math.exp(-h) for h in steps]
    assert slope(steps, errors) == pytest.approx(2, abs=0.25)  # local error, one more than the order
    best = [cosine_of_brownian_motion(NoiseSplitting(), 3, h) - math.exp(-h) for h in steps]
    assert abs(best[0]) < 0.01 * abs(errors[0])


@pytest.mark.parametrize(
    ("scheme", "low", "high"),
    [(EulerMaruyama(), 0.075, 0.085), (StochasticHeun(), 0.075, 0.085), (NoiseSplitting(), 0.0, 1e-4)],
    ids=str,
)
def test_errors_that_the_guide_states(scheme: AbstractStochasticIntegrator, low: float, high: float) -> None:
    """Steps without drift are independent rotations: the mean cosine after eight of them is the eighth power of one."""
    error = cosine_of_brownian_motion(scheme, 3, 1 / 8) ** 8 - math.exp(-1)
    assert low <= abs(error) < high


@pytest.mark.parametrize("integrator", ["euler-maruyama", "stochastic-heun", "noise-splitting"])
def test_runs_of_brownian_motion(integrator: str) -> None:
    start = torch.zeros((8_000, 3), dtype=torch.float64)
    start[:, 1] = 1.0
    flow = hm.NoisyFlow(hm.CallableFlow(still, sphere=True), 0.8)
    final = follow(flow, start, 1.0, 0.02, integrator)
    assert float((final.norm(dim=1) - 1).abs().max()) < 1e-14
    wanted = math.exp(-0.64)
    bias = 0.0 if integrator == "noise-splitting" else 0.012  # order one at this step
    assert float(final[:, 1].mean()) == pytest.approx(wanted, abs=0.02 + bias)  # 4 standard errors
    assert float(final[:, [0, 2]].mean(dim=0).abs().max()) < 0.03


# ---------------------------------------------------------------- a drift with noise on the circle


@pytest.mark.parametrize(
    ("scheme", "order"), [*zip(SCHEMES, (2, 2, 3), strict=True)], ids=["euler-maruyama", "heun", "splitting"]
)
def test_the_von_mises_law_is_stationary(scheme: AbstractStochasticIntegrator, order: int) -> None:
    """dtheta = -K sin(theta) dt + sigma dW keeps the density exp(2 K cos(theta) / sigma^2): error of one step."""
    K, sigma = 1.5, 1.0
    angles = torch.arange(64, dtype=torch.float64) * (2 * math.pi / 64)  # the trapezoidal rule is exact for this law
    mass = torch.exp(2 * K / sigma**2 * (angles.cos() - 1))
    mass = mass / mass.sum()
    xi, weights = normals(scheme.substeps, 16)
    flow = hm.NoisyFlow(hm.CallableFlow(pulled(K), sphere=True), sigma)
    start = torch.stack([angles.cos(), angles.sin()], dim=1)

    def error(step: float, k: int) -> float:
        # Half steps at other tokens act on rotated increments: along the tangent at the token where they are used.
        states = start.repeat_interleave(len(xi), dim=0)
        shares = (mass[:, None] * weights).reshape(-1)
        parts = math.sqrt(step / scheme.substeps) * xi.repeat(64, 1).T
        turned = torch.stack([-states[:, 1], states[:, 0]], dim=1)
        if scheme.substeps == 1:
            moved = scheme.advance_noisy(
                flow, states, torch.ones(len(states), dtype=torch.float64), step, (parts[0][:, None] * turned)[None]
            )
        else:
            first = UnitSphere().brownian(states, sigma * parts[0][:, None] * turned, 0.0)
            zero = torch.zeros((2, *states.shape), dtype=torch.float64)
            middle = scheme.advance_noisy(flow, first, torch.ones(len(states), dtype=torch.float64), step, zero)
            turned = torch.stack([-middle[:, 1], middle[:, 0]], dim=1)
            moved = UnitSphere().brownian(middle, sigma * parts[1][:, None] * turned, 0.0)
        after = torch.atan2(moved[:, 1], moved[:, 0])
        return float((shares * torch.cos(k * after)).sum() - (mass * torch.cos(k * angles)).sum())

    steps = [0.04, 0.01]
    for k in (1, 2):
        errors = [error(h, k) for h in steps]
        assert slope(steps, errors) == pytest.approx(order, abs=0.3)


def test_a_long_run_has_the_von_mises_law() -> None:
    K, sigma, n = 1.0, 1.2, 20_000
    angles = torch.linspace(0, 2 * math.pi, n + 1, dtype=torch.float64)[:-1]
    start = torch.stack([angles.cos(), angles.sin()], dim=1)
    final = follow(hm.NoisyFlow(hm.CallableFlow(pulled(K), sphere=True), sigma), start, 6.0, 0.1)
    kappa = 2 * K / sigma**2
    assert float(final[:, 0].mean()) == pytest.approx(ive(1, kappa) / ive(0, kappa), abs=0.02)
    second = 2 * final[:, 0] ** 2 - 1
    assert float(second.mean()) == pytest.approx(ive(2, kappa) / ive(0, kappa), abs=0.02)


def test_noise_below_and_above_the_critical_one() -> None:
    """Kuramoto's model, attention at beta = 0: tokens agree for sigma^2 < 1, with r = I_1(2r/s^2) / I_0(2r/s^2)."""
    law = hm.circle_quantiles(4000, lambda angle: 1 + np.cos(angle) / 2)
    flow = hm.CallableFlow(lambda z, w: z.mean(dim=0).expand_as(z), sphere=True)
    for sigma, wanted in ((0.7, None), (1.3, 0.0)):
        final = follow(hm.NoisyFlow(flow, sigma), torch.from_numpy(law.points), 15.0, 0.1)
        r = float(final.mean(dim=0).norm())
        if wanted is None:
            wanted = 1.0
            for _ in range(200):
                wanted = ive(1, 2 * wanted / sigma**2) / ive(0, 2 * wanted / sigma**2)
            assert 0.5 < wanted < 0.9
        assert r == pytest.approx(wanted, abs=0.04)


# ---------------------------------------------------------------- amplitude that depends on time


def test_amplitude_that_depends_on_time() -> None:
    """sigma(t)^2 = 3 t^2: the variance at time 1 is 1; the splitting integrates it at order two."""
    flow = hm.TimeDependentFlow(lambda t: hm.NoisyFlow(hm.CallableFlow(still), math.sqrt(3) * t))
    scheme = NoiseSplitting()
    xi, weights = normals(2, 3)
    mass = torch.ones(len(xi), dtype=torch.float64)
    errors = []
    for count in (2, 8):
        h, variance = 1 / count, 0.0
        for k in range(count):
            parts = math.sqrt(h / 2) * xi.T[:, :, None]
            moved = scheme.advance_noisy(flow, torch.zeros((len(xi), 1), dtype=torch.float64), mass, h, parts, k * h)
            variance += float((weights * moved[:, 0] ** 2).sum())
        errors.append(variance - 1)
    assert abs(errors[1]) < 1e-2
    assert slope([1 / 2, 1 / 8], errors) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("integrator", ["stochastic-heun", "noise-splitting"])
def test_noise_around_a_flow_that_depends_on_time(integrator: str) -> None:
    """dX = 2 t dt + sigma dW: the mean at time 1 is 1, exactly for methods of order two."""
    moving = hm.TimeDependentFlow(lambda t: hm.CallableFlow(lambda z, w: torch.full_like(z, 2 * t)))
    silent = follow(hm.NoisyFlow(moving, 0.0), torch.zeros((1, 1), dtype=torch.float64), 1.0, 0.1, integrator)
    assert float(silent) == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------- seeds, processes, kinds of input


@pytest.mark.parametrize("integrator", [None, "euler-maruyama", "stochastic-heun"])
def test_the_same_seed_gives_the_same_run(integrator: str | None) -> None:
    tokens = torch.from_numpy(hm.fibonacci_sphere(30).points)
    flow = hm.NoisyFlow(hm.SphereFlow(beta=2.0, few_tokens="ignore"), 0.4)
    first = follow(flow, tokens, 1.0, 0.1, integrator, seed=5)
    assert torch.equal(first, follow(flow, tokens, 1.0, 0.1, integrator, seed=5))
    assert float((first - follow(flow, tokens, 1.0, 0.1, integrator, seed=6)).abs().max()) > 0.1


@pytest.mark.parametrize("integrator", ["euler-maruyama", "stochastic-heun", "noise-splitting"])
def test_noise_zero_is_no_noise(integrator: str) -> None:
    tokens = torch.from_numpy(hm.fibonacci_sphere(30).points)
    flow = hm.SphereFlow(beta=2.0, few_tokens="ignore")
    plain = {"euler-maruyama": "euler"}.get(integrator, "heun")
    silent = follow(hm.NoisyFlow(flow, 0.0), tokens, 1.0, 0.1, integrator)
    assert float((silent - follow(flow, tokens, 1.0, 0.1, plain)).abs().max()) < 1e-14
    assert float((silent - follow(flow, tokens, 1.0, 0.1, integrator)).abs().max()) < 1e-14


def test_gradients_pass_through_noise() -> None:
    tokens = torch.from_numpy(hm.fibonacci_sphere(6).points).requires_grad_()
    flow = hm.SphereFlow(beta=2.0, few_tokens="ignore")
    for noise in (0.0, 0.3):
        follow(hm.NoisyFlow(flow, noise), tokens, 0.2, 0.1).sum().backward()
        assert tokens.grad is not None
        assert bool(torch.isfinite(tokens.grad).all())
        assert float(tokens.grad.abs().max()) > 0


def test_simulate_with_a_seed() -> None:
    tokens = hm.fibonacci_sphere(30).points
    flow = hm.NoisyFlow(hm.SphereFlow(beta=2.0, few_tokens="ignore"), 0.4)
    options = {"time": 1.0, "step": 0.1, "integrator": "noise-splitting"}
    run = hm.simulate(tokens, flow, **options, random_state=5)
    assert run.seed == 5
    assert "noise splitting" in str(run.outcome)
    np.testing.assert_array_equal(hm.simulate(tokens, flow, **options, random_state=5).tokens, run.tokens)
    assert np.abs(run.final - hm.simulate(tokens, flow, **options, random_state=6).final).max() > 0.1
    np.testing.assert_array_equal(follow(flow, torch.from_numpy(tokens), 1.0, 0.1, seed=5).numpy(), run.final)
    unseeded = hm.simulate(tokens, flow, **options)
    np.testing.assert_array_equal(
        hm.simulate(tokens, flow, **options, random_state=unseeded.seed).tokens, unseeded.tokens
    )
    single = hm.simulate(torch.from_numpy(tokens).to(torch.float32), flow, **options, random_state=5)
    assert single.final.dtype == torch.float32
    np.testing.assert_allclose(single.final.numpy(), run.final, atol=1e-5)


def test_the_default_integrator_of_simulate() -> None:
    flow = hm.CallableFlow(still)
    assert "noise splitting" in str(hm.simulate([[0.0]], hm.NoisyFlow(flow, 1.0), time=1.0, random_state=0).outcome)
    assert "Heun" in str(hm.simulate([[0.0]], flow, time=1.0).outcome)


def test_simulate_with_a_seed_in_processes() -> None:
    tokens = hm.fibonacci_sphere(31).points
    flow = hm.TimeDependentFlow(lambda t: hm.NoisyFlow(hm.SphereFlow(beta=1 + t, few_tokens="ignore"), 0.4))
    options = {"time": 0.5, "step": 0.1, "integrator": "noise-splitting", "random_state": 3}
    whole = hm.simulate(tokens, flow, **options)
    for split in with_processes(2, lambda r: hm.simulate(r.share(tokens), flow, processes=r, **options)):
        np.testing.assert_allclose(split.tokens, whole.tokens, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- what is refused


def test_integrators_without_noise_are_refused() -> None:
    flow = hm.NoisyFlow(hm.SphereFlow(), 0.1)
    for name in ("euler", "residual", "heun", "rk4", "adaptive"):
        with pytest.raises(hm.InputError, match="integrator must be one with noise.*euler-maruyama, stochastic-heun"):
            discretised(flow, 1.0, None, name)
    for scheme in SCHEMES:
        assert discretised(flow, 1.0, None, scheme)[0].integrator is scheme
        assert integrator_named(name_of(scheme)) == scheme
    assert isinstance(discretised(flow, 1.0, None, None)[0].integrator, NoiseSplitting)
    assert discretised(hm.SphereFlow(), 1.0, None, None)[0].integrator.name == "Heun"


def test_a_step_without_a_generator_is_refused() -> None:
    layer, _ = discretised(hm.NoisyFlow(hm.SphereFlow(), 0.1), 1.0, None, None)
    assert layer.stochastic
    with pytest.raises(hm.InputError, match="random_state must be given"):
        layer.step(torch.eye(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    assert not FlowStep(hm.SphereFlow(), 0.1, NoiseSplitting()).stochastic


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (-0.1, "noise must be finite and not negative, got -0.1"),
        (math.nan, "noise must be finite"),
        (math.inf, "noise must be finite"),
        (1e200, "noise must be finite"),
        ("loud", "noise must be an array of real numbers"),
        ([0.1, 0.2, 0.3], "noise must be one number: it is the same in all directions of the unit sphere"),
    ],
)
def test_bad_noise(noise: object, message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        hm.NoisyFlow(hm.SphereFlow(), noise)


def test_bad_noise_in_space() -> None:
    flow = hm.CallableFlow(still)
    with pytest.raises(hm.InputError, match="noise must have one per coordinate, 3"):
        follow(hm.NoisyFlow(flow, [0.1, 0.2]), torch.ones((4, 3), dtype=torch.float64), 1.0, 0.1)
    with pytest.raises(hm.InputError, match="noise must be finite and not negative"):
        hm.NoisyFlow(flow, [0.1, -0.2])
    with pytest.raises(hm.InputError, match="noise must be one number, or one per coordinate"):
        hm.NoisyFlow(flow, [[0.1], [0.2]])
    with pytest.raises(hm.InputError, match="has noise already"):
        hm.NoisyFlow(hm.NoisyFlow(flow, 0.1), 0.1)
    with pytest.raises(hm.InputError, match="flow must be a flow"):
        hm.NoisyFlow(lambda z, w: -z, 0.1)  # type: ignore[arg-type]


def test_steps_in_which_noise_reaches_the_whole_sphere() -> None:
    tokens = torch.eye(3, dtype=torch.float64)
    with pytest.raises(hm.InputError, match="step must stay below 0.02.*pass step=0.01"):
        follow(hm.NoisyFlow(hm.CallableFlow(still, sphere=True), 10.0), tokens, 1.0, 0.05)
    assert follow(hm.NoisyFlow(hm.CallableFlow(still), 10.0), tokens, 1.0, 0.5).shape == (3, 3)
    alone = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)  # the sphere of R^1 is two points
    assert torch.equal(follow(hm.NoisyFlow(hm.CallableFlow(still, sphere=True), 10.0), alone, 1.0, 0.5), alone)


def test_a_flow_that_does_not_name_its_space() -> None:
    class Plain(hm.AbstractFlow):
        def drift(self, tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
            return -tokens

        velocity = drift

        def project(self, tokens: torch.Tensor) -> torch.Tensor:
            return tokens

    assert follow(Plain(), torch.ones((1, 2), dtype=torch.float64), 1.0, 0.01)[0, 0] == pytest.approx(
        math.exp(-1), 1e-4
    )
    with pytest.raises(hm.InputError, match="flow does not say in which space tokens move, got Plain"):
        hm.NoisyFlow(Plain(), 0.1)


@pytest.mark.parametrize("given", [None, np.random.default_rng(0)])
def test_processes_that_share_a_run_need_a_seed(given: np.random.Generator | None) -> None:
    tokens, flow = hm.make_tokens("sphere", 6, 3, random_state=0), hm.NoisyFlow(hm.SphereFlow(), 0.1)

    def refused(ranks: hm.Processes) -> str:
        with pytest.raises(hm.InputError) as caught:
            hm.simulate(ranks.share(tokens), flow, time=0.2, step=0.1, random_state=given, processes=ranks)
        return str(caught.value)

    for message in with_processes(2, refused):
        assert "random_state must be a number where several processes share a run" in message
