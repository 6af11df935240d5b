"""The last word on ties, against the scores themselves at every layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hardmax.attention.choice import default_tolerance
from hardmax.dynamics.ties import all_ties_last

TOLERANCE = default_tolerance(torch.float64)
LEADERS = np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])


def last(alpha: float, tied: np.ndarray, outsider: tuple[np.ndarray, np.ndarray], drift: np.ndarray) -> bool:
    """Whether ``tied`` stays tied with the two leaders while the outsider goes from its first to its second place."""
    points = np.stack([*LEADERS, outsider[0], tied])
    goals = np.stack([*LEADERS, outsider[1], LEADERS.mean(axis=0)])
    drifts = np.stack([0 * drift, 0 * drift, drift, 0 * drift])
    return all_ties_last(
        A=torch.eye(3, dtype=torch.float64),
        alpha=alpha,
        tolerance=TOLERANCE,
        points=torch.from_numpy(points),
        goals=torch.from_numpy(goals),
        drifts=torch.from_numpy(drifts),
        askers=torch.tensor([3]),
        members=torch.tensor([0, 1]),
        rows=torch.tensor([0, 0]),
    )


def looked_at(alpha: float, tied: np.ndarray, outsider: tuple[np.ndarray, np.ndarray], drift: np.ndarray) -> bool:
    """The same by looking at the scores of 200 layers."""
    middle = LEADERS.mean(axis=0)
    for m in range(1, 200):
        s = (1 + alpha) ** -m
        asker = middle + s * (tied - middle)
        place = outsider[1] + s * (outsider[0] - outsider[1] + m * drift)
        if max(asker @ (place - LEADERS[0]), asker @ (asker - LEADERS[0])) > 1e-9:
            return False
    return True


def test_an_outsider_that_wins_for_some_layers_only_ends_the_tie() -> None:
    tied, nothing = np.array([0.0, 0.4, 0.6]), np.zeros(3)
    away, home = np.array([0.0, -10.0, 5.0]), np.zeros(3)
    # It scores below the leaders now and in the limit, and above them at the next layer.
    assert tied @ away < tied @ LEADERS[0]
    assert not looked_at(1.0, tied, (away, home), nothing)
    assert not last(1.0, tied, (away, home), nothing)
    assert last(1.0, tied, (0.3 * away, home), nothing)


def test_an_outsider_that_wins_in_the_limit_ends_the_tie() -> None:
    tied, nothing = np.array([0.0, -0.4, 0.6]), np.zeros(3)
    assert not last(0.5, tied, (np.zeros(3), np.array([0.0, 0.0, 1.0 + 1e-9])), nothing)
    assert last(0.5, tied, (np.zeros(3), np.array([0.0, 0.0, 1.0 - 1e-9])), nothing)


@pytest.mark.parametrize("alpha", [0.25, 1.0, 3.0])
def test_random_outsiders_are_judged_as_by_looking(alpha: float) -> None:
    rng = np.random.default_rng(0)
    answers = set()
    for _ in range(200):
        tied = np.array([0.0, *rng.normal(size=2) * 0.5])
        outsider = (rng.normal(size=3) * 2, rng.normal(size=3) * 0.5)
        drift = rng.normal(size=3) * rng.integers(0, 2)
        expected = looked_at(alpha, tied, outsider, drift)
        answers.add(expected)
        assert last(alpha, tied, outsider, drift) == expected
    assert answers == {True, False}


def test_members_must_tie_at_every_layer() -> None:
    nothing = np.zeros(3)
    assert not last(0.5, np.array([0.1, 0.0, 1.0]), (nothing, nothing), nothing)
    assert not last(0.5, np.array([-1e-9, 0.0, 1.0]), (nothing, nothing), nothing)
