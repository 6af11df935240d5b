"""Flows through simulate: what they keep, what they refuse, what they warn of."""

import math

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.dynamics.integrators import Adaptive
from hardmax.dynamics.simulate import simulate
from hardmax.errors import InputError
from hardmax.meanfield.flow import SphereFlow, SphereHardmaxFlow
from hardmax.meanfield.measures import FewTokensWarning, circle_quantiles, kernel_occupancy, on_circle, sphere_sample
from hardmax.outcomes import Ending

POINTS = sphere_sample(100, 3, random_state=0).points


def test_public_names() -> None:
    for name in ("SphereFlow", "SphereHardmaxFlow", "low_temperature_limit", "NoLimitError", "wasserstein", "phases"):
        assert hasattr(hm, name)
    assert issubclass(hm.NoLimitError, hm.HardmaxError)


def test_a_run_in_time() -> None:
    run = simulate(POINTS, SphereFlow(beta=4.0), time=1.0, step=0.3)
    assert run.times is not None
    assert run.times[-1] == pytest.approx(1.0, abs=1e-12)
    assert len(run.times) == 5
    assert run.outcome.ending is Ending.TIME_REACHED
    assert np.abs(np.linalg.norm(run.tokens, axis=2) - 1).max() < 1e-12
    assert run.to_xarray()["time"].shape == (5,)


def test_kind_and_precision_are_kept() -> None:
    run = simulate(torch.tensor(POINTS, dtype=torch.float32), SphereFlow(beta=2.0), time=0.2)
    assert isinstance(run.tokens, torch.Tensor)
    assert run.tokens.dtype == torch.float32


def test_keep_rules_count_steps() -> None:
    run = simulate(POINTS, SphereFlow(beta=2.0), time=1.0, step=0.1, keep=[0, 5, 10])
    assert run.times is not None
    assert run.times.tolist() == pytest.approx([0.0, 0.5, 1.0])


def test_adaptive_meets_its_tolerance() -> None:
    flow = SphereFlow(np.diag([2.0, 1.0, 1.0]), np.diag([1.0, 2.0, 0.5]), beta=2.0)
    fine = simulate(POINTS, flow, time=1.0, step=1.0, integrator=Adaptive(1e-12)).final
    for tolerance in (1e-4, 1e-7):
        coarse = simulate(POINTS, flow, time=1.0, step=1.0, integrator=Adaptive(tolerance)).final
        assert np.abs(coarse - fine).max() < 100 * tolerance


def test_weights_count_like_repeated_tokens() -> None:
    weights = np.ones(100)
    weights[0] = 3.0
    flow = SphereFlow(beta=4.0)
    heavy = simulate(POINTS, flow, time=0.5, weights=weights).final
    repeated = simulate(np.concatenate([POINTS[:1], POINTS[:1], POINTS]), flow, time=0.5).final
    assert np.abs(heavy - repeated[2:]).max() < 1e-12


def test_query_and_key_matrices() -> None:
    rng = np.random.default_rng(0)
    Q, K = rng.normal(size=(2, 3, 3))
    one = SphereFlow(Q=Q, K=K, beta=2.0).attention(POINTS)
    assert np.abs(one - SphereFlow(K.T @ Q, beta=2.0).attention(POINTS)).max() < 1e-13


def test_zero_temperature_and_hardmax_are_different_objects() -> None:
    points = on_circle(np.array([0.0, 1.0, 2.5]))
    V = np.diag([1.0, 2.0])
    field = simulate(points, SphereFlow(V=V, beta=math.inf), time=1.0).final
    finite = simulate(points, SphereHardmaxFlow(np.diag([3.0, 1.0]), V), time=1.0).final
    # With B = I every token hears itself, in both; with another B tokens hear others, and there is no such direction.
    alone = simulate(points, SphereHardmaxFlow(V=V), time=1.0).final
    assert np.abs(field - alone).max() < 1e-12
    assert np.abs(field - finite).max() > 0.1


@pytest.mark.parametrize("integrator", ["euler", "residual", "heun", "rk4", "adaptive"])
@pytest.mark.parametrize("beta", [1e-3, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_runs_stay_finite(integrator: str, beta: float, precision: str) -> None:
    flow = SphereFlow(np.diag([2.0, 1.0, 1.0]), beta=beta, precision=precision, few_tokens="ignore")
    # Rounding of float32 scores at large beta makes the field rough; an adaptive step would try to resolve that.
    chosen = Adaptive(0.05) if integrator == "adaptive" else integrator
    run = simulate(POINTS, flow, time=0.3, step=0.1, integrator=chosen)
    assert np.isfinite(run.tokens).all()


def test_tokens_off_the_sphere() -> None:
    with pytest.raises(InputError, match="tokens must lie on the unit sphere.*normalise=True"):
        simulate(2 * POINTS, SphereFlow(), time=1.0)
    run = simulate(2 * POINTS, SphereFlow(normalise=True), time=0.1)
    assert np.abs(run.tokens[0] - POINTS).max() < 1e-12
    for flow in (SphereFlow(normalise=True), SphereFlow()):
        with pytest.raises(InputError, match="zero token at index 1"):
            simulate(np.array([[1.0, 0.0], [0.0, 0.0]]), flow, time=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": -1.0}, "beta must not be negative"),
        ({"beta": math.nan}, "beta must not be negative or NaN"),
        ({"B": np.ones((2, 3))}, "B must be a square matrix"),
        ({"V": np.full((3, 3), np.nan)}, "V must be finite"),
        ({"B": np.full((3, 3), np.inf)}, "B must be finite"),
        ({"Q": np.eye(3)}, "K must come together with Q"),
        ({"Q": np.eye(3), "K": np.eye(2)}, "same shape"),
        ({"B": np.eye(3), "Q": np.eye(3), "K": np.eye(3)}, "not be given together"),
        ({"evaluation": "magic"}, "evaluation 'magic'|is not known"),
        ({"precision": "float16"}, "is not known"),
    ],
)
def test_bad_flows(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SphereFlow(**arguments)  # type: ignore[arg-type]


def test_matrices_of_another_dimension() -> None:
    with pytest.raises(InputError, match="B must be 3 x 3 to match the tokens"):
        simulate(POINTS, SphereFlow(np.eye(2)), time=1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time": 0.0}, "time must be positive"),
        ({"time": 1.0, "step": -0.1}, "step must be positive"),
        ({"time": 1.0, "integrator": "magic"}, "integrator is not known"),
        ({"depth": 5}, "depth is for layers"),
        ({"time": 1.0, "step": 1e-9}, "would need"),
    ],
)
def test_bad_times(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(POINTS, SphereFlow(beta=1.0), **arguments)  # type: ignore[arg-type]
    if "time" in arguments:
        with pytest.raises(InputError, match="is for flows"):
            simulate(POINTS, hm.HardmaxLayer(), time=1.0)


def test_a_step_beyond_the_stability_limit_says_the_limit() -> None:
    # Tokens ask for what is opposite; between two halves attention restores, at the rate beta |V| |B| D^2 / 4.
    points = on_circle(np.concatenate([np.full(500, 0.01), np.full(500, np.pi - 0.01), [np.pi / 2]]))
    flow = SphereFlow(B=-np.eye(2), beta=100.0, few_tokens="ignore")
    with pytest.raises(InputError, match=r"step must stay below the stability limit 0\.02\d* of Heun"):
        simulate(points, flow, time=1.0, step=0.05)
    simulate(points, flow, time=0.1, step=0.01)
    simulate(points, flow, time=0.1, step=0.1, integrator="adaptive")
    with pytest.raises(InputError, match="stability limit"):
        simulate(POINTS, SphereFlow(V=100 * np.eye(3), beta=math.inf), time=1.0, step=0.5)
    # Attractive attention has no such limit at any temperature.
    simulate(circle_quantiles(200).points, SphereFlow(beta=1e4, few_tokens="ignore"), time=0.5, step=0.25)


def test_few_tokens_a_kernel_warn_with_the_number_that_would_do() -> None:
    with pytest.warns(FewTokensWarning, match=r"only 0\.375 tokens share.*use n >= 39\d\d\d") as caught:
        simulate(sphere_sample(1500, 3, random_state=0).points, SphereFlow(np.diag([2.0, 1, 1]), beta=1e3), time=0.1)
    assert len(caught) == 1


def test_occupancy_in_closed_form() -> None:
    found = kernel_occupancy(circle_quantiles(1000).points, beta=400.0)
    assert found.smallest == pytest.approx(1000 / math.sqrt(2 * math.pi * 400), rel=1e-12)
    # d = 3: n / (2 kappa)
    found = kernel_occupancy(POINTS, 2 * np.eye(3), beta=50.0)
    assert found.smallest == pytest.approx(100 / 200, rel=1e-12)
    assert found.enough == 2000
    assert kernel_occupancy(POINTS, beta=1e-9).smallest == 100


@pytest.mark.parametrize(("time", "step", "steps"), [(2.1, 0.3, 7), (2.7, 0.3, 9), (2.3, 0.1, 23), (1.05, 0.1, 11)])
def test_rounding_adds_no_step(time: float, step: float, steps: int) -> None:
    run = simulate(POINTS, SphereFlow(beta=4.0), time=time, step=step)
    assert run.times is not None
    assert len(run.times) == steps + 1
    assert run.times[-1] == pytest.approx(time, abs=1e-12)
