"""Ties that last for ever, against the scores themselves at every layer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.attention.choice import default_tolerance
from hardmax.dynamics.equilibrium import equilibrium_and_layers
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
        tied=torch.tensor([3]),
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


def fraction_layers(tokens: list[list[int]], A: list[list[int]], alpha: Fraction, layers: int) -> list[list[Fraction]]:
    """Tokens after so many layers, in rationals by loops."""
    z = [[Fraction(x) for x in row] for row in tokens]
    for _ in range(layers):
        moved = []
        for a in z:
            query = [sum(m * x for m, x in zip(row, a, strict=True)) for row in A]
            scores = [sum(q * x for q, x in zip(query, b, strict=True)) for b in z]
            heard = [b for b, score in zip(z, scores, strict=True) if score == max(scores)]
            mean = [sum(column) / len(heard) for column in zip(*heard, strict=True)]
            moved.append([(x + alpha * m) / (1 + alpha) for x, m in zip(a, mean, strict=True)])
        z = moved
    return z


def test_a_token_tied_with_itself_for_ever_comes_closer_at_its_own_rate() -> None:
    """The matrix does not see the second coordinate, in which token 1 differs from what it listens to."""
    tokens = [[-1, 2, 2], [0, 2, -2], [-1, -1, -2], [1, -1, -2], [-2, 2, 1], [0, 1, 1]]
    A = [[2, 0, 0], [0, 0, 0], [0, 0, 2]]
    layer = hm.HardmaxLayer(2.0, A=np.array(A, dtype=float), tolerance="exact")
    layers = [0, 1, 2, 6]
    limit, found = equilibrium_and_layers(np.array(tokens, dtype=float), layer, layers)
    assert limit.layers == 0
    assert limit.ties[1].tolist() == [2, 3]
    for number, state in zip(layers, found, strict=True):
        expected = np.array(fraction_layers(tokens, A, Fraction(2), number), dtype=float)
        np.testing.assert_allclose(state, expected, rtol=1e-14, atol=1e-15)


def test_a_tie_that_moves_is_not_taken_for_one_that_arrived() -> None:
    """Token 4 lies between the two leaders, which form at layer 1, and listens to both for ever from layer 2 on."""
    tokens = np.array([[-1.0, -1, -2], [-1, 0, 2], [2, 0, -1], [2, 2, -1], [2, 1, -1]])
    A = np.array([[-1.0, -1, 0], [-1, 2, 0], [0, 0, 0]])
    found = hm.equilibrium(tokens, hm.HardmaxLayer(1.0, A=A, tolerance="exact"))
    assert found.decided_at.tolist() == [1, 1, 1, 1, 2]
    assert found.ties[4].tolist() == [0, 1]
