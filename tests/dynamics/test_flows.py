"""Flows in Euclidean space, with parameters that depend on time, and with momentum, against exact solutions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.attention.base import Context
from hardmax.dynamics.integrators import FlowStep, discretised, integrator_named
from threads import with_processes

Field = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def slope(steps: list[float], errors: list[float]) -> float:
    """Order of convergence between the first and the last step."""
    return math.log(errors[0] / errors[-1]) / math.log(steps[0] / steps[-1])


def spring(stiffness: float = 1.0) -> hm.CallableFlow:
    """Force towards the origin."""
    return hm.CallableFlow(lambda z, w: -stiffness * z)


class Mean(hm.EuclideanFlow):
    """Every token moves towards the weighted mean of all."""

    def velocity(self, tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return (weights[:, None] * tokens).sum(dim=0) / weights.sum() - tokens


# ---------------------------------------------------------------- Euclidean space


@pytest.mark.parametrize("integrator", ["euler", "residual", "heun", "rk4", "adaptive", "stochastic-heun"])
def test_one_method_makes_a_flow(integrator: str) -> None:
    tokens, weights = np.random.default_rng(0).normal(size=(7, 3)), np.arange(1.0, 8.0)
    run = hm.simulate(tokens, Mean(), time=2.0, step=0.05, weights=weights, integrator=integrator)
    centre = weights @ tokens / weights.sum()
    exact = centre + math.exp(-2.0) * (tokens - centre)
    order = integrator_named(integrator).order
    assert np.abs(run.final - exact).max() < (
        0.05 if integrator in ("euler", "residual") else 1e-3 if order < 4 else 1e-6
    )
    assert isinstance(run.tokens, np.ndarray)
    assert str(run.layer).startswith("Mean; ")


def test_flows_in_space_shared_by_processes() -> None:
    tokens = np.random.default_rng(0).normal(size=(41, 3))
    flow = hm.TimeDependentFlow(lambda t: hm.CallableFlow(lambda z, w: (t + 1) * (z.mean(dim=0) - z)))
    for one in (Mean(), flow, hm.MomentumFlow(flow, friction=0.3)):
        whole = hm.simulate(tokens, one, time=0.5, step=0.1)
        for split in with_processes(
            2, lambda r, f=one: hm.simulate(r.share(tokens), f, time=0.5, step=0.1, processes=r)
        ):
            np.testing.assert_allclose(split.tokens, whole.tokens, rtol=0, atol=1e-13)


def test_a_function_on_the_sphere() -> None:
    """The field P_x a moves the angle to a like tan(theta / 2) = tan(theta_0 / 2) exp(-t)."""
    angles = np.array([0.3, 1.0, 3.0])
    tokens = 5.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)  # scaled to length one
    a = torch.tensor([1.0, 0.0], dtype=torch.float64)
    flow = hm.CallableFlow(lambda z, w: a.expand_as(z), sphere=True)
    final = hm.simulate(tokens, flow, time=1.5, integrator="rk4").final
    exact = 2 * np.arctan(np.tan(angles / 2) * math.exp(-1.5))
    np.testing.assert_allclose(np.arctan2(final[:, 1], final[:, 0]), exact, atol=1e-7)
    with pytest.raises(hm.InputError, match="zero token at index 1"):
        hm.simulate([[1.0, 0.0], [0.0, 0.0]], flow, time=1.0)
    for size in (1e-300, 1e300):
        np.testing.assert_allclose(
            hm.simulate(size * tokens, flow, time=1.5, integrator="rk4").final, final, atol=1e-14
        )


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_sizes_in_space(size: float) -> None:
    tokens = size * np.array([[1.0, -0.5], [0.25, 0.0]])
    final = hm.simulate(tokens, spring(), time=1.0, integrator="rk4").final
    np.testing.assert_allclose(final, math.exp(-1.0) * tokens, rtol=1e-6)


def test_bad_functions() -> None:
    with pytest.raises(hm.InputError, match="function must be a function, got 3"):
        hm.CallableFlow(3)  # type: ignore[arg-type]
    for function in (lambda z, w: z[:1], lambda z, w: 0.0, lambda z, w: z.numpy()):
        with pytest.raises(hm.InputError, match=r"function must return a tensor of shape \(2, 2\)"):
            hm.simulate([[1.0, 0.0], [0.0, 1.0]], hm.CallableFlow(function), time=1.0)


def test_a_flow_that_diverges_says_so() -> None:
    run = hm.simulate([[2.0]], hm.CallableFlow(lambda z, w: z**3), time=5.0)
    assert run.outcome.ending is hm.Ending.DIVERGED
    assert np.isfinite(run.tokens).all()


# ---------------------------------------------------------------- time


def forced(t: float) -> hm.AbstractFlow:
    """x' = -2 t x + cos(t) exp(-t^2): from x = 1, x(t) = (1 + sin t) exp(-t^2)."""
    return hm.CallableFlow(lambda z, w: -2 * t * z + math.cos(t) * math.exp(-t * t))


@pytest.mark.parametrize("integrator", ["euler", "residual", "heun", "rk4"])
def test_stages_have_their_own_times(integrator: str) -> None:
    flow = hm.TimeDependentFlow(forced)
    exact = (1 + math.sin(1.2)) * math.exp(-1.44)
    steps = [0.1, 0.025]
    errors = [
        abs(float(hm.simulate([[1.0]], flow, time=1.2, step=h, integrator=integrator).final[0, 0]) - exact)
        for h in steps
    ]
    assert slope(steps, errors) == pytest.approx(integrator_named(integrator).order, abs=0.35)


def test_the_adaptive_integrator_knows_the_time() -> None:
    flow = hm.TimeDependentFlow(forced)
    exact = (1 + math.sin(1.2)) * math.exp(-1.44)
    for step in (1.2, 0.3):  # several substeps inside each step
        final = hm.simulate([[1.0]], flow, time=1.2, step=step, integrator=hm.Adaptive(1e-10)).final
        assert final[0, 0] == pytest.approx(exact, abs=1e-8)


def test_one_adaptive_step_has_order_five() -> None:
    flow = hm.TimeDependentFlow(forced)
    loose = hm.Adaptive(0.5)  # accepts every step: the error is that of the pair
    mass = torch.ones(1, dtype=torch.float64)
    errors = []
    for h in (0.4, 0.1):
        start = torch.tensor([[(1 + math.sin(0.3)) * math.exp(-0.09)]], dtype=torch.float64)
        end = (1 + math.sin(0.3 + h)) * math.exp(-((0.3 + h) ** 2))
        errors.append(abs(float(loose.advance(flow, start, mass, h, 0.3)) - end))
    assert slope([0.4, 0.1], errors) > 5.3


def test_a_temperature_that_falls() -> None:
    """Two tokens on the circle, angle g apart: g' = -sin(g) / (1 + exp(beta (1 - cos g))) at every moment."""
    flow = hm.TimeDependentFlow(lambda t: hm.SphereFlow(beta=4 * t, few_tokens="ignore"))
    final = hm.simulate([[1.0, 0.0], [math.cos(2.0), math.sin(2.0)]], flow, time=1.0, step=0.02, integrator="rk4").final
    g, h = 2.0, 1e-3

    def slope_of(t: float, g: float) -> float:
        return -2 * math.sin(g) / (1 + math.exp(4 * t * (1 - math.cos(g))))

    for k in range(1000):
        t = k * h
        k1 = slope_of(t, g)
        k2 = slope_of(t + h / 2, g + h / 2 * k1)
        k3 = slope_of(t + h / 2, g + h / 2 * k2)
        g += h / 6 * (k1 + 2 * k2 + 2 * k3 + slope_of(t + h, g + h * k3))
    assert math.acos(final[0] @ final[1]) == pytest.approx(g, abs=1e-7)


def test_bad_functions_of_time() -> None:
    with pytest.raises(hm.InputError, match="flow_at must be a function of time"):
        hm.TimeDependentFlow(hm.SphereFlow())  # type: ignore[arg-type]
    with pytest.raises(hm.InputError, match=r"flow_at\(time\) must be a flow"):
        hm.TimeDependentFlow(lambda t: t)  # type: ignore[arg-type, return-value]


# ---------------------------------------------------------------- momentum


@pytest.mark.parametrize(("friction", "mass"), [(0.0, 1.0), (0.4, 2.0), (3.0, 0.5)])
@pytest.mark.parametrize("integrator", ["heun", "rk4"])
def test_the_damped_oscillator(friction: float, mass: float, integrator: str) -> None:
    """m x'' + c x' + x = 0, undamped, underdamped and overdamped, with the exact position and momentum."""
    starts, kicks = np.array([[1.0], [-0.5]]), np.array([[0.0], [1.5]])
    flow = hm.MomentumFlow(spring(), friction, mass, momenta=kicks)
    matrix = torch.tensor([[0.0, 1 / mass], [-1.0, -friction / mass]], dtype=torch.float64)
    exact = np.concatenate([starts, kicks], axis=1) @ torch.linalg.matrix_exp(2.0 * matrix).numpy().T
    steps, errors = [0.05, 0.0125], []
    for h in steps:
        run = hm.simulate(starts, flow, time=2.0, step=h, integrator=integrator)
        assert flow.positions(run).shape == flow.momenta(run).shape == (len(run), 2, 1)
        np.testing.assert_array_equal(flow.momenta(run)[0], kicks)
        np.testing.assert_array_equal(flow.without_momenta(run).tokens, flow.positions(run))
        found = np.concatenate([flow.positions(run)[-1], flow.momenta(run)[-1]], axis=1)
        errors.append(float(np.abs(found - exact).max()))
    assert slope(steps, errors) == pytest.approx(integrator_named(integrator).order, abs=0.3)


def test_energy_is_kept_without_friction_and_falls_with_it() -> None:
    tokens = np.random.default_rng(1).normal(size=(20, 3))
    for friction in (0.0, 0.5):
        flow = hm.MomentumFlow(spring(2.0), friction, mass=0.7)
        run = hm.simulate(tokens, flow, time=6.0, step=0.02, integrator="rk4")
        energy = (flow.momenta(run) ** 2).sum(axis=2) / 1.4 + (flow.positions(run) ** 2).sum(axis=2)
        if friction == 0:
            np.testing.assert_allclose(energy, energy[:1].repeat(len(run), axis=0), rtol=1e-6)
        else:
            assert (np.diff(energy, axis=0) <= 1e-12).all()
            assert (energy[-1] < 0.1 * energy[0]).all()


def test_a_small_mass_follows_the_flow_itself() -> None:
    tokens = hm.fibonacci_sphere(20).points
    flow = hm.SphereFlow(beta=2.0, few_tokens="ignore")
    first = hm.simulate(tokens, flow, time=1.0, step=0.02).final
    errors = []
    for mass in (0.1, 0.025):
        heavy = hm.MomentumFlow(flow, friction=1.0, mass=mass)
        run = hm.simulate(tokens, heavy, time=1.0, step=0.02)
        errors.append(np.abs(heavy.positions(run)[-1] - first).max())
    assert errors[1] < 0.3 * errors[0] < 0.02


def test_free_motion_on_the_sphere_is_a_great_circle() -> None:
    tokens = np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])
    momenta = np.array([[5.0, 0.0, 2.0], [1.0, 0.0, 0.0]])  # the part along the first token does not count
    still = hm.CallableFlow(lambda z, w: torch.zeros_like(z), sphere=True)
    flow = hm.MomentumFlow(still, friction=0.0, mass=2.0, momenta=momenta)
    run = hm.simulate(tokens, flow, time=2.0, step=0.01, integrator="rk4")
    speeds = np.array([[0.0, 0.0, 1.0], [0.5, 0.0, 0.0]])
    lengths = np.linalg.norm(speeds, axis=1, keepdims=True)
    exact = np.cos(2 * lengths) * tokens + np.sin(2 * lengths) / lengths * speeds
    np.testing.assert_allclose(flow.positions(run)[-1], exact, atol=1e-8)
    np.testing.assert_allclose((flow.positions(run) * flow.momenta(run)).sum(axis=2), 0, atol=1e-14)
    np.testing.assert_allclose(
        np.linalg.norm(flow.momenta(run), axis=2), 2 * lengths.T.repeat(len(run), axis=0), rtol=1e-8
    )


def test_langevin_dynamics_has_the_law_of_gibbs() -> None:
    """m x'' + c x' + k x = sigma W': at the temperature T = sigma^2 / (2 c), Var x = T / k and Var p = m T."""
    c, m, k, sigma = 1.5, 0.5, 2.0, 1.1
    temperature = sigma**2 / (2 * c)
    flow = hm.NoisyFlow(hm.MomentumFlow(spring(k), c, m), sigma)
    run = hm.simulate(
        np.zeros((20_000, 1)), flow, time=6.0, step=0.1, keep="last", integrator="noise-splitting", random_state=0
    )
    position, momentum = run.final.var(axis=0)
    assert position == pytest.approx(temperature / k, rel=0.04)  # 4 standard errors
    assert momentum == pytest.approx(m * temperature, rel=0.04)
    assert abs(np.mean(run.final[:, 0] * run.final[:, 1])) < 0.01


def test_noise_acts_on_momenta_alone() -> None:
    flow = hm.NoisyFlow(hm.MomentumFlow(spring(), 1.0), 2.0)
    start = torch.zeros((50, 6), dtype=torch.float64)
    for name in ("euler-maruyama", "stochastic-heun", "noise-splitting"):
        layer = FlowStep(flow, 1e-6, integrator_named(name))
        moved = layer.step_at(start, torch.ones(50, dtype=torch.float64), Context(0, torch.Generator().manual_seed(0)))
        assert float(moved[:, :3].abs().max()) < 1e-7
        assert float(moved[:, 3:].std()) == pytest.approx(2e-3, rel=0.3)


def test_nesterov_friction_depends_on_time() -> None:
    """x'' + 3/t x' + x = 0 has the solution 2 J_1(t) / t."""
    from scipy.special import j1

    def exact(t: float) -> float:
        return 2 * j1(t) / t

    start, speed = exact(0.5), (exact(0.5 + 1e-6) - exact(0.5 - 1e-6)) / 2e-6
    flow = hm.TimeDependentFlow(lambda t: hm.MomentumFlow(spring(), friction=3 / (t + 0.5), momenta=[[speed]]))
    run = hm.simulate([[start]], flow, time=2.0, step=0.02, integrator="rk4")
    assert hm.MomentumFlow(spring()).positions(run)[-1, 0, 0] == pytest.approx(exact(2.5), abs=1e-6)


def test_a_force_that_depends_on_time() -> None:
    """x'' = cos(t) from rest: x = 1 - cos(t) and p = sin(t)."""
    force = hm.TimeDependentFlow(lambda t: hm.CallableFlow(lambda z, w: torch.full_like(z, math.cos(t))))
    flow = hm.MomentumFlow(force, friction=0.0)
    run = hm.simulate([[0.0]], flow, time=2.0, step=0.05, integrator="rk4")
    assert flow.positions(run)[-1, 0, 0] == pytest.approx(1 - math.cos(2.0), abs=1e-7)
    assert flow.momenta(run)[-1, 0, 0] == pytest.approx(math.sin(2.0), abs=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"friction": -1.0}, "friction must be finite and not negative"),
        ({"friction": math.nan}, "friction must be finite"),
        ({"mass": 0.0}, "mass must be positive"),
        ({"momenta": [1.0, 2.0]}, "momenta must have shape"),
        ({"momenta": [[math.nan]]}, "momenta must be finite"),
    ],
)
def test_bad_momentum_flows(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        hm.MomentumFlow(spring(), **arguments)


def test_bad_combinations_with_momentum() -> None:
    with pytest.raises(hm.InputError, match=r"neither noise nor momentum.*NoisyFlow\(MomentumFlow"):
        hm.MomentumFlow(hm.NoisyFlow(spring(), 0.1))
    with pytest.raises(hm.InputError, match="neither noise nor momentum"):
        hm.MomentumFlow(hm.MomentumFlow(spring()))
    with pytest.raises(hm.InputError, match="flow must be a flow"):
        hm.MomentumFlow(abs)  # type: ignore[arg-type]
    with pytest.raises(hm.InputError, match=r"momenta must have shape \(3, 2\)"):
        hm.simulate(np.ones((3, 2)), hm.MomentumFlow(spring(), momenta=np.ones((2, 2))), time=1.0)
    with pytest.raises(hm.InputError, match="noise must be one number"):
        hm.NoisyFlow(hm.MomentumFlow(spring()), [0.1, 0.2])
    with pytest.raises(hm.InputError, match="run must be a run of a flow with momentum"):
        hm.MomentumFlow(spring()).positions(np.ones((1, 2, 2)))  # type: ignore[arg-type]
    with pytest.raises(hm.InputError, match="step must stay below the stability limit 0.02"):
        hm.simulate(np.ones((3, 2)), hm.MomentumFlow(spring(), friction=1.0, mass=0.01), time=1.0, step=0.05)


def test_tensors_and_float32_are_kept() -> None:
    flow = hm.MomentumFlow(spring())
    run = hm.simulate(torch.ones((2, 3), dtype=torch.float32), flow, time=0.1)
    assert isinstance(flow.positions(run), torch.Tensor)
    assert flow.momenta(run).dtype == torch.float32
    layer, steps = discretised(flow, 1.0, 0.3, None)
    assert (steps, layer.length) == (4, 0.25)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_adaptive_steps_do_not_depend_on_the_unit_of_time(size: float) -> None:
    """A fast flow over a short time is a slow one over a long time: several substeps in either case."""
    flow = hm.CallableFlow(lambda z, w: -z / size)
    final = hm.simulate([[1.0]], flow, time=3.0 * size, step=3.0 * size, integrator=hm.Adaptive(1e-10)).final
    assert final[0, 0] == pytest.approx(math.exp(-3.0), abs=1e-8)


@pytest.mark.parametrize("integrator", ["euler", "heun", "rk4"])
def test_decaying_flows_are_stable_up_to_the_stated_interval(integrator: str) -> None:
    named = integrator_named(integrator)
    one, mass = torch.ones(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)

    def growth(z: float) -> float:
        return abs(float(named.advance(hm.CallableFlow(lambda tokens, w: -z * tokens), one, mass, 1.0)))

    assert growth(named.real_interval) == pytest.approx(1.0, abs=3e-3)
    assert growth(0.99 * named.real_interval) < 1.0 < growth(1.01 * named.real_interval)
