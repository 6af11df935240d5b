"""Attention in continuous time: against plain loops, against SphereFlow, and under a causal mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm

WEIGHTINGS = [
    hm.Softmax(3.0),
    hm.Exponential(1.5),
    hm.TopK(3, beta=2.0),
    hm.Sigmoid(2.0),
    hm.Linear(0.5),
    hm.Hardmax(),
]


def unit(n: int, d: int, seed: int) -> np.ndarray:
    z = np.random.default_rng(seed).normal(size=(n, d))
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def ones(tokens: torch.Tensor) -> torch.Tensor:
    return torch.ones(len(tokens), dtype=torch.float64)


def loops(z: np.ndarray, heads: list[tuple[np.ndarray, np.ndarray]], beta: float, causal: bool, w: np.ndarray):
    """Drift by the definition, with plain loops."""
    out = np.zeros_like(z)
    for i in range(len(z)):
        seen = range(i + 1) if causal else range(len(z))
        for A, V in heads:
            scores = np.array([beta * np.dot(A @ z[i], z[k]) for k in seen])
            kernel = np.array([w[k] for k in seen]) * np.exp(scores - scores.max())
            mean = sum(kernel[j] * z[k] for j, k in enumerate(seen)) / kernel.sum()
            out[i] += V @ mean / len(heads)
    return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sphere", [False, True])
def test_drift_and_velocity_follow_the_definition(causal: bool, sphere: bool) -> None:
    generator = np.random.default_rng(3)
    z, w = unit(9, 3, 0), generator.uniform(0.5, 2.0, 9)
    heads = [(generator.normal(size=(3, 3)), generator.normal(size=(3, 3))) for _ in range(2)]
    flow = hm.AttentionFlow(
        [hm.Head(A, V=V) for A, V in heads], hm.Softmax(2.0), causal=causal, sphere=sphere, coupling=-0.7
    )
    drift = -0.7 * loops(z, heads, 2.0, causal, w)
    wanted = drift - (drift * z).sum(1, keepdims=True) * z if sphere else drift
    got = flow.velocity(torch.from_numpy(z), torch.from_numpy(w))
    np.testing.assert_allclose(flow.drift(torch.from_numpy(z), torch.from_numpy(w)), drift, atol=1e-13)
    np.testing.assert_allclose(got, wanted, atol=1e-13)
    part = flow.velocity_of(slice(2, 7), torch.from_numpy(z), torch.from_numpy(w))
    np.testing.assert_array_equal(part, got[2:7])


@pytest.mark.parametrize("weighting", [hm.Softmax, hm.Exponential])
def test_at_infinite_temperature_the_mean_is_evaluated_once(weighting: type) -> None:
    z, w = torch.from_numpy(unit(30, 3, 2)), torch.linspace(0.5, 2.0, 30, dtype=torch.float64)
    heads = [hm.Head(V=np.diag([1.0, 2.0, 3.0]), value_bias=[0.1, 0.0, 0.2]), hm.Head()]
    fast = hm.AttentionFlow(heads, weighting(0.0), shares=[0.3, 0.9], coupling=2.0)
    slow = hm.AttentionFlow(heads, weighting(1e-300), shares=[0.3, 0.9], coupling=2.0)
    np.testing.assert_allclose(fast.velocity(z, w), slow.velocity(z, w), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(fast.velocity_of(slice(3, 9), z, w), fast.velocity(z, w)[3:9])


def test_it_is_the_sphere_flow_where_both_apply() -> None:
    z, B, V = unit(60, 2, 1), np.diag([2.0, 1.0]), np.array([[1.0, 0.3], [0.0, 2.0]])
    ours = hm.AttentionFlow([hm.Head(B, V=V)], hm.Softmax(4.0))
    for causal in (False, True):
        flow = hm.SphereFlow(B, V, 4.0, few_tokens="ignore", causal=causal)
        ours = hm.AttentionFlow([hm.Head(B, V=V)], hm.Softmax(4.0), causal=causal)
        a = hm.simulate(z, flow, time=3.0, integrator="rk4").final
        b = hm.simulate(z, ours, time=3.0, integrator="rk4").final
        np.testing.assert_allclose(a, b, atol=1e-11)


@pytest.mark.parametrize("evaluation", ["auto", "rows", "symmetric", "circle", "truncated"])
def test_a_causal_sphere_flow_gives_the_same_numbers_by_every_method(evaluation: str) -> None:
    z = torch.from_numpy(unit(200, 2, 2))
    flow = hm.SphereFlow(beta=30.0, few_tokens="ignore", evaluation=evaluation, causal=True)
    plain = hm.AttentionFlow(weighting=hm.Softmax(30.0), causal=True)
    np.testing.assert_array_equal(flow.velocity(z, ones(z)), plain.velocity(z, ones(z)))
    np.testing.assert_array_equal(flow.velocity_of(slice(7, 90), z, ones(z)), plain.velocity(z, ones(z))[7:90])
    np.testing.assert_allclose(flow.attention(z.numpy())[0], z[0], rtol=1e-14)  # normalised first


def test_a_causal_mask_on_the_sphere_flow_is_refused_where_it_has_no_meaning() -> None:
    with pytest.raises(hm.InputError, match="causal needs a finite beta"):
        hm.SphereFlow(beta=np.inf, causal=True)
    with pytest.raises(hm.InputError, match="queries have no place in a causal sequence"):
        hm.SphereFlow(causal=True).attention(unit(5, 2, 0), queries=unit(2, 2, 1))
    run = hm.simulate(unit(5, 2, 0), hm.SphereFlow(few_tokens="ignore", causal=True), time=0.1)
    for analysis in (hm.lyapunov, hm.phases):
        with pytest.raises(hm.InputError, match="run must not be causal"):
            analysis(run)


@pytest.mark.parametrize("weighting", WEIGHTINGS, ids=str)
@pytest.mark.parametrize("d", [2, 5])
def test_the_prefix_of_a_causal_run_is_the_run_of_the_prefix(weighting: hm.AbstractWeighting, d: int) -> None:
    # O3, for flows and layers, across the border of a block of rows.
    z = unit(150, d, 4)
    A = np.random.default_rng(5).normal(size=(d, d))
    flow = hm.AttentionFlow([hm.Head(A, V=A / 4)], weighting, causal=True)
    layer = hm.AttentionLayer([hm.Head(A)], weighting=weighting, move=hm.SphereStep(0.3, tangent=True), causal=True)
    whole = hm.simulate(z, flow, time=0.2, step=0.1).final
    layers = hm.simulate(z, layer, depth=2).final
    for m in (1, 129) if isinstance(weighting, hm.Hardmax) else (1, 2, 3, 64, 127, 128, 129, 149):
        np.testing.assert_array_equal(hm.simulate(z[:m], flow, time=0.2, step=0.1).final, whole[:m])
        np.testing.assert_array_equal(hm.simulate(z[:m], layer, depth=2).final, layers[:m])


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=2, max_size=9),
    st.sampled_from(WEIGHTINGS),
    st.data(),
)
def test_prefixes_of_tie_rich_tokens(points: list, weighting: hm.AbstractWeighting, data: st.DataObject) -> None:
    z = np.array(points, dtype=float) / 2
    m = data.draw(st.integers(1, len(z)))
    flow = hm.AttentionFlow(weighting=weighting, causal=True, sphere=False, coupling=0.01)
    whole = hm.simulate(z, flow, time=0.2, step=0.1).final
    np.testing.assert_array_equal(hm.simulate(z[:m], flow, time=0.2, step=0.1).final, whole[:m])


def test_the_prefix_of_a_causal_sphere_flow() -> None:
    z = unit(140, 3, 6)
    flow = hm.SphereFlow(np.diag([2.0, 1.0, 0.5]), np.diag([1.0, 0.5, 2.0]), 3.0, few_tokens="ignore", causal=True)
    whole = hm.simulate(z, flow, time=0.3, step=0.1).final
    for m in (1, 5, 128, 139):
        np.testing.assert_array_equal(hm.simulate(z[:m], flow, time=0.3, step=0.1).final, whole[:m])


def test_on_the_circle_all_tokens_tend_to_the_first() -> None:
    # O8: causal softmax on the circle with A = V = I (2411.04990).
    z = unit(12, 2, 7)
    run = hm.simulate(z, hm.AttentionFlow(weighting=hm.Softmax(1.0), causal=True), time=60.0, step=0.2, keep="last")
    np.testing.assert_allclose(run.final[0], z[0], atol=1e-15)
    assert np.abs(run.final - z[0]).max() < 1e-6


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_tokens_of_any_size_have_a_direction(scale: float) -> None:
    z = unit(6, 3, 8)
    flow = hm.AttentionFlow(weighting=hm.Softmax(2.0))
    np.testing.assert_allclose(
        hm.simulate(scale * z, flow, time=1.0).final, hm.simulate(z, flow, time=1.0).final, rtol=1e-13
    )


def test_exponential_weights_are_softmax_times_their_sum() -> None:
    z = torch.from_numpy(unit(8, 3, 9))
    expected = torch.exp(1.5 * z @ z.T) @ z / 8
    flow = hm.AttentionFlow(weighting=hm.Exponential(1.5), sphere=False)
    np.testing.assert_allclose(flow.velocity(z, ones(z)), expected, rtol=1e-13)
    doubled = hm.AttentionFlow(weighting=hm.Exponential(1.5), sphere=False).velocity(z, 2 * ones(z))
    np.testing.assert_allclose(doubled, expected, rtol=1e-13)
    with pytest.raises(
        hm.InputError, match=r"beta must stay below 700 in exp\(beta \* score\), got beta \* score = 900"
    ):
        hm.AttentionFlow(weighting=hm.Exponential(900.0)).velocity(z, ones(z))


def test_wrong_parts_are_refused() -> None:
    with pytest.raises(hm.InputError, match="weighting must be a weighting"):
        hm.AttentionFlow(weighting=2.0)
    with pytest.raises(hm.InputError, match="coupling must be finite"):
        hm.AttentionFlow(coupling=np.nan)
    with pytest.raises(hm.InputError, match="must not be zero"):
        hm.simulate(np.zeros((2, 2)), hm.AttentionFlow(), time=1.0)
    with pytest.raises(hm.InputError, match="is wider than the 3 tokens"):
        hm.simulate(unit(3, 2, 0), hm.AttentionFlow(window=9), time=1.0)


@pytest.mark.parametrize(
    "flow",
    [
        hm.AttentionFlow([hm.Head(np.diag([2.0, 1.0]), V=np.eye(2)), hm.Head()], hm.TopK(3), causal=True, window=4),
        hm.AttentionFlow(weighting=hm.Exponential(0.5), sphere=False, coupling=-2.0, shares=[3.0]),
        hm.SphereFlow(beta=3.0, few_tokens="ignore", causal=True),
    ],
    ids=["heads", "euclidean", "sphere flow"],
)
def test_runs_come_back_from_files_with_their_flow(flow: hm.AbstractFlow, tmp_path: Path) -> None:
    run = hm.simulate(unit(9, 2, 1), flow, time=0.5, step=0.1)
    hm.save(run, tmp_path / "run.zip")
    loaded = hm.load(tmp_path / "run.zip")
    assert str(loaded.layer) == str(run.layer)
    again = hm.simulate(unit(9, 2, 1), loaded.layer.flow, time=0.5, step=0.1)
    np.testing.assert_array_equal(again.tokens, run.tokens)
