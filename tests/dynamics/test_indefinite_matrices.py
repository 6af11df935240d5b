"""Matrices that are not positive definite: what is decided in floats is what rational arithmetic decides."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import hardmax as hm

TURN = [[0.0, -1.0], [1.0, 0.0]]
AXES = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]


@cache
def exact_limit(
    tokens: tuple[tuple[float, ...], ...], A: tuple[tuple[float, ...], ...], alpha: float
) -> hm.Equilibrium:
    """The limit in rational arithmetic, computed once for all sizes of the tokens."""
    return hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A=A, tolerance="exact"), max_layers=12)


@pytest.mark.parametrize(
    ("tokens", "A", "leaders"),
    [
        (AXES, TURN, []),
        ([[1e-200 * x for x in row] for row in AXES], TURN, []),
        ([[1.0], [0.0], [-1.0], [0.0], [1.0], [-1.0]], [[-2.0]], []),
        ([[1.0, 1.0], [1.0, -1.0]], [[-1.0, 0.0], [0.0, -1.0]], []),  # to a point that is not zero
        ([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [[1.0, 0.0], [0.0, -1.0]], [0, 1]),  # only some shrink
        # Two tokens shrink faster than the others and then choose by rounding errors.
        ([[0.0, -1.0], [1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]], [[-1.0, 0.0], [0.0, -1.0]], []),
    ],
)
@pytest.mark.parametrize("size", [1.0, 1e200])
def test_tokens_that_shrink_to_a_point_settle_without_a_leader(
    tokens: list[list[float]], A: list[list[float]], leaders: list[int], size: float
) -> None:
    alpha = 0.5 if len(tokens) != 4 or leaders or A == TURN else 0.25
    limit = hm.equilibrium(np.array(tokens) * size, hm.HardmaxLayer(alpha, A=A))
    exact = exact_limit(tuple(map(tuple, tokens)), tuple(map(tuple, A)), alpha)
    assert limit.outcome.ending is hm.Ending.SETTLED
    assert limit.leaders.tolist() == exact.leaders.tolist() == leaders
    np.testing.assert_array_equal(limit.follows, exact.follows)
    assert 'scores came to differ by rounding errors alone, see tolerance="exact"' in str(limit.outcome)


@pytest.mark.parametrize("kind", ["negative", "skew", "symmetric", "general", "singular"])
@pytest.mark.parametrize("on_grid", [True, False])
def test_what_floats_decide_rationals_decide_alike(kind: str, on_grid: bool) -> None:
    decided = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(1, 4)), int(rng.integers(2, 8))
        tokens = rng.integers(-2, 3, size=(n, d)).astype(float) if on_grid else rng.normal(size=(n, d))
        if seed % 2:
            tokens = np.concatenate([tokens, -tokens])
        root = rng.integers(-2, 3, size=(d, d)).astype(float) if on_grid else rng.normal(size=(d, d))
        A = {
            "negative": -(root @ root.T) - np.eye(d),
            "skew": root - root.T,
            "symmetric": root + root.T,
            "general": root,
            "singular": -np.outer(root[0], root[0]),
        }[kind]
        alpha = float(rng.choice([0.25, 0.5, 1.0, 2.0]))
        limit = hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A), max_layers=200)
        known = limit.decided_at >= 0
        # Only tokens that floats decide are compared, so no later layer matters; rationals grow with every layer.
        last = max(0, int(limit.decided_at.max()))
        exact = hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A, tolerance="exact"), max_layers=last)
        decided += int(known.sum())
        assert set(limit.leaders.tolist()) <= set(exact.leaders.tolist()), seed
        np.testing.assert_array_equal(limit.follows[known], exact.follows[known], err_msg=str(seed))
        np.testing.assert_array_equal(limit.decided_at[known], exact.decided_at[known], err_msg=str(seed))
        assert all(np.array_equal(limit.ties[i], exact.ties[i]) for i in limit.ties)
    assert decided > 0


@pytest.mark.parametrize(
    ("tokens", "A", "alpha"),
    [
        ([[1.0, 0.0], [-1.0, 0.0]], [[-1.0, 0.0], [0.0, -1.0]], 1.0),  # they meet at once
        ([[2.0, 1.0], [-1.0, 1.0], [1.0, 2.0]], [[-5.0, -5.0], [-5.0, -5.0]], 2.0),  # they tie apart from one another
        ([[-1.0], [2.0], [-1.0], [1.0], [-2.0]], [[-4.0]], 1.0),  # two were at zero together one layer before
        ([[1.0], [2.0], [2.0], [-2.0], [0.0], [-1.0]], [[-2.0]], 1.0),  # others tied before, not mutually
        ([[1.0, 0.5], [1.0, -0.5]], [[1.0, 0.0], [0.0, 0.0]], 0.5),  # they tie from the start
    ],
)
def test_joint_leaders_in_earnest_are_found(tokens: list[list[float]], A: list[list[float]], alpha: float) -> None:
    limit, exact = (hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A, tolerance=t)) for t in (None, "exact"))
    assert limit.outcome.ending is exact.outcome.ending is hm.Ending.DECIDED
    np.testing.assert_array_equal(limit.leaders, exact.leaders)
    np.testing.assert_array_equal(limit.emerged_at, exact.emerged_at)
    np.testing.assert_allclose(limit.positions, exact.positions, atol=1e-15)
