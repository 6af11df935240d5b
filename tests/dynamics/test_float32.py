"""Tokens of lower precision: the arithmetic is float64, and so is the tolerance of ties."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from helpers import examples, spd
from rational_oracle import System, generic, tie_rich

CLOSE = np.array([[1, 0], [0.99999, 0.0037], [0, 1]], np.float32)


def circle(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def same_leadership(left: hm.Leadership, right: hm.Leadership) -> None:
    for name in ("leaders", "emerged_at", "follows", "decided_at"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    assert left.ties == right.ties


@pytest.mark.parametrize("kind", ["numpy", "torch", "half", "bfloat16"])
def test_close_tokens_are_told_apart(kind: str) -> None:
    exact = hm.equilibrium(CLOSE, hm.HardmaxLayer(tolerance="exact"))
    assert exact.leaders.tolist() == [0, 1, 2]
    tokens = {
        "numpy": CLOSE,
        "torch": torch.from_numpy(CLOSE),
        "half": torch.tensor([[1, 0], [0.9995, 0.037], [0, 1]], dtype=torch.float16),
        "bfloat16": torch.tensor([[1, 0], [0.996, 0.1], [0, 1]], dtype=torch.bfloat16),
    }[kind]
    limit = hm.equilibrium(tokens)
    assert limit.leaders.tolist() == [0, 1, 2]
    assert hm.choose(tokens, limit.layer).first.tolist() == [0, 1, 2]
    run = hm.simulate(tokens, hm.HardmaxLayer(), depth=2)
    assert hm.leaders(run).index.tolist() == [0, 1, 2]
    assert hm.attention_at(run, 0).leads.all()
    assert len(hm.clusters(run)) == len(hm.clusters(limit)) == 3
    batch = torch.stack([torch.as_tensor(tokens)] * 2)
    np.testing.assert_array_equal(hm.HardmaxLayer()(batch), batch.to(torch.float64))


def test_random_points_of_the_circle_lead_as_exact_arithmetic_says() -> None:
    tokens = circle(np.random.default_rng(1).uniform(0, 2 * np.pi, 200))
    limit = hm.equilibrium(tokens)
    same_leadership(limit.leadership, hm.equilibrium(tokens, hm.HardmaxLayer(tolerance="exact")).leadership)
    assert len(limit.leaders) == 200
    assert hm.check_theorem(tokens, hm.HardmaxLayer()).holds


def test_evenly_spaced_points_of_the_circle_are_decided() -> None:
    limit = hm.equilibrium(circle(np.arange(2000) * (2 * np.pi / 2000)))
    assert limit.outcome.ending is hm.Ending.DECIDED
    assert len(limit.leaders) == 2000


@settings(deadline=None, max_examples=examples(12))
@given(st.one_of(tie_rich(), generic()))
def test_float32_tokens_are_answered_as_the_same_numbers_in_float64(system: System) -> None:
    tokens = system.tokens.astype(np.float32)
    rule = system.layer(exact=False)
    limit = hm.equilibrium(tokens, rule)
    truth = hm.equilibrium(tokens.astype(np.float64), hm.HardmaxLayer(float(system.alpha), system.A, tolerance="exact"))
    same_leadership(limit.leadership, truth.leadership)
    run, double = hm.simulate(tokens, rule, depth=5), hm.simulate(tokens.astype(np.float64), rule, depth=5)
    assert run.tokens.dtype == np.float32
    np.testing.assert_array_equal(run.tokens, double.tokens.astype(np.float32))
    assert hm.check_theorem(run).holds == hm.check_theorem(double).holds
    for k in range(6):
        mine, theirs = hm.attention_at(run, k), hm.attention_at(double, k)
        np.testing.assert_array_equal(mine.follows, theirs.follows)
        assert mine.ties == theirs.ties
    np.testing.assert_array_equal(hm.clusters(run).cluster_of, hm.clusters(double).cluster_of)
    np.testing.assert_array_equal(hm.clusters(limit).cluster_of, hm.clusters(truth).cluster_of)


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 2**31), st.floats(0.05, 3.0))
def test_random_float32_tokens_have_the_exact_leaders(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    tokens, A = rng.normal(size=(30, 3)).astype(np.float32), spd(rng, 3)
    exact = hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A, tolerance="exact"))
    same_leadership(hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A)).leadership, exact.leadership)


@pytest.mark.parametrize("tolerance", [None, 1e-12])
def test_ties_survive_the_rounding_of_kept_states(tolerance: float | None) -> None:
    # Token 2 is tied between the two leaders at every layer; on the line of slope 3 float32 rounds it off the line.
    tokens = np.array([[4, 2], [-2, 4], [0.2, 0.6], [0.1, 0.3], [-1, -3]], np.float32)
    tokens[2:4] = np.array([[1, 3], [3, 9]], np.float32) / 8
    layer = hm.HardmaxLayer(alpha=0.3, tolerance=tolerance)
    run = hm.simulate(tokens, layer, depth=6)
    assert {i: m.tolist() for i, m in run.leadership.ties.items()} == {2: [0, 1], 3: [0, 1]}
    assert hm.check_theorem(run).holds
    late = hm.simulate(tokens, layer, depth=6, keep=[4, 5, 6])
    assert hm.check_theorem(late)["map"].holds
    for k in range(7):
        assert hm.attention_at(run, k).ties[2].tolist() == [0, 1]


def test_rates_of_deep_float32_runs_are_measured_before_the_rounding() -> None:
    tokens = np.array([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], np.float32)
    for keep in ("all", [1, 5, 10, 60, 80]):
        rates = hm.clusters(hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=80, keep=keep)).rates
        np.testing.assert_allclose(rates[0], 2 / 3, rtol=1e-3 if keep != "all" else 1e-6)


def test_a_float32_run_that_was_changed_is_read_as_it_is() -> None:
    run = hm.simulate(CLOSE, hm.HardmaxLayer(), depth=2)
    changed = run.tokens.copy()
    changed[2, 1] = [5.0, 5.0]
    other = hm.Trajectory(changed, run.layers, run.outcome, run.layer, None, None, run.leadership, run.assumptions)
    report = hm.check_theorem(other)
    assert not report["nested hulls"].holds
    assert not report["map"].holds
