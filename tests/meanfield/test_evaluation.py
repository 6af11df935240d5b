"""Every way of evaluating attention gives the answer of plain rows, at any temperature."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.errors import InputError
from hardmax.meanfield.evaluation import Evaluation
from hardmax.meanfield.fast_attention import circle_mean, modes, truncated_mean
from hardmax.meanfield.flow import SphereFlow, SphereHardmaxFlow
from hardmax.meanfield.measures import on_circle, sphere_sample
from hardmax.meanfield.rows import rows_mean, rows_mean_in_log_domain

BETAS = [0.0, 1e-3, 1.0, 30.0, 1e3, 1e5, 1e8]


def plain(queries: np.ndarray, keys: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One query at a time, in float64."""
    means = []
    for q in queries:
        exponents = keys @ q + np.log(weights)
        shares = np.exp(exponents - exponents.max())
        means.append(shares @ keys / shares.sum())
    return np.array(means)


@pytest.mark.parametrize("method", ["auto", "rows", "symmetric", "sdpa", "circle", "truncated"])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("d", [2, 3, 9])
def test_methods_agree(method: str, beta: float, d: int) -> None:
    if method == "circle" and d != 2:
        return
    rng = np.random.default_rng(0)
    keys = sphere_sample(700, d, random_state=0).points
    weights = rng.uniform(0.1, 1.0, 700)
    B = np.diag(np.linspace(2.0, 1.0, d))
    found = SphereFlow(B, beta=beta, evaluation=method).attention(keys, weights)
    expected = plain(beta * keys @ B, keys, weights)
    # A score of size kappa is rounded by kappa eps, and that is how uncertain the attended mean is.
    assert np.abs(found - expected).max() < 1e-13 + 20 * beta * 2.3e-16


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("method", ["auto", "rows", "sdpa", "truncated", "circle", "symmetric"])
@pytest.mark.parametrize("clustered", [False, True])
def test_no_temperature_overflows(precision: str, method: str, clustered: bool) -> None:
    rng = np.random.default_rng(1)
    angles = rng.normal(0, 0.05, 400) + np.pi * rng.integers(0, 2, 400) if clustered else rng.uniform(0, 7, 400)
    points = on_circle(angles)
    B = np.array([[2.0, 0.3], [0.3 if method == "symmetric" else -0.1, 1.0]])
    hottest = 6 if method == "circle" else 8  # modes grow like the root of beta, and "auto" does not go there
    for beta in np.logspace(-3, hottest, 8):
        mean = SphereFlow(B, beta=beta, evaluation=method, precision=precision).attention(points)
        assert np.isfinite(mean).all()
        assert np.linalg.norm(mean, axis=1).max() < 1 + 1e-5


def test_symmetric_rows_are_chosen_only_where_they_do_not_underflow() -> None:
    points = sphere_sample(500, 3, random_state=0).points
    B = np.diag([5.0, 1.0, 1.0])
    for beta in (10.0, 1e3):
        found = SphereFlow(B, beta=beta).attention(points)
        assert np.abs(found - plain(beta * points @ B, points, np.ones(500))).max() < 1e-11


def test_float32_is_as_good_as_its_scores() -> None:
    points = sphere_sample(3000, 3, random_state=0).points
    expected = SphereFlow(beta=10.0).attention(points)
    for method in ("auto", "rows", "symmetric", "sdpa", "truncated"):
        found = SphereFlow(beta=10.0, precision="float32", evaluation=method).attention(points)
        assert np.abs(found - expected).max() < 2e-5


@given(
    st.integers(1, 400),
    st.integers(1, 40),
    st.integers(2, 4),
    st.floats(0.0, 1e4),
    st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=60)
def test_truncation_is_exact_to_its_tolerance(n: int, m: int, d: int, kappa: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = sphere_sample(n, d, random_state=rng).points
    keys[: n // 2] = keys[0] + 0.01 * rng.normal(size=(n // 2, d))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    queries = sphere_sample(m, d, random_state=rng).points * rng.uniform(0, kappa, (m, 1))
    weights = 10 ** rng.uniform(-8, 0, n)
    weights /= weights.max()
    found = truncated_mean(queries, keys, weights, tolerance=1e-15)
    assert found is not None
    assert np.abs(found - plain(queries, keys, weights)).max() < 1e-13 + 20 * kappa * 2.3e-16


def test_truncation_gives_up_when_everything_matters() -> None:
    keys = sphere_sample(500, 3, random_state=0).points
    assert truncated_mean(keys, keys, np.ones(500), tolerance=1e-15, largest_share=0.3) is None


def test_rows_far_below_their_bound_are_done_again() -> None:
    keys = on_circle(np.linspace(-0.1, 0.1, 300))
    queries = -1000.0 * keys  # best scores near -1000: exp underflows without the true maximum
    expected = plain(queries, keys, np.ones(300))
    assert np.abs(rows_mean(queries, keys, np.ones(300)) - expected).max() < 1e-12
    assert np.abs(rows_mean_in_log_domain(queries, keys, np.ones(300)) - expected).max() < 1e-12


def test_circle_sum_knows_where_it_cancels() -> None:
    rng = np.random.default_rng(0)
    angles = np.concatenate([rng.normal(0, 0.02, 500), rng.normal(np.pi, 0.02, 500), [1.2]])
    points = on_circle(angles)
    for beta in (10.0, 30.0, 100.0):
        mean, left = circle_mean(beta * points, points, np.ones(1001))
        assert 1000 in left
        error = np.abs(mean - plain(beta * points, points, np.ones(1001))).max(axis=1)
        assert np.delete(error, left).max() < 1e-12
        auto = SphereFlow(beta=beta, evaluation="circle").attention(points)
        assert np.abs(auto - plain(beta * points, points, np.ones(1001))).max() < 1e-12


def test_modes_grow_like_the_root() -> None:
    assert modes(1e6, 1e-17) / modes(1e4, 1e-17) == pytest.approx(10, rel=0.2)


def test_gradients_flow_through_attention() -> None:
    points = torch.tensor(sphere_sample(6, 3, random_state=0).points, requires_grad=True)
    weights = torch.ones(6, dtype=torch.float64)
    mean = Evaluation().mean(points, 3 * torch.eye(3, dtype=torch.float64), weights)
    assert (
        np.abs(mean.detach().numpy() - plain(3 * points.detach().numpy(), points.detach().numpy(), np.ones(6))).max()
        < 1e-14
    )
    mean.sum().backward()
    assert points.grad is not None
    assert bool(torch.isfinite(points.grad).all())


def test_hardmax_rule_is_the_limit_for_fixed_tokens() -> None:
    points = sphere_sample(50, 3, random_state=0).points
    B = np.diag([3.0, 1.0, 1.0])
    soft = SphereFlow(B, beta=1e8).attention(points)
    assert np.abs(soft - SphereHardmaxFlow(B).attention(points)).max() < 1e-12


def test_methods_refuse_what_they_cannot_do() -> None:
    points = sphere_sample(20, 3, random_state=0).points
    with pytest.raises(InputError, match="circle is only for d = 2|is only for d = 2"):
        SphereFlow(evaluation="circle").attention(points)
    with pytest.raises(InputError, match="symmetric positive"):
        SphereFlow(B=-np.eye(3), evaluation="symmetric").attention(points)
    with pytest.raises(InputError, match="beta"):
        SphereFlow(beta=1e300, precision="float32").attention(points)
