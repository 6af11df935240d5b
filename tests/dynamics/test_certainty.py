"""Dropping tokens that are never listened to again changes no result, also within a wide tolerance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.dynamics import process
from hardmax.dynamics.certainty import safely_inside

SQUARE = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], dtype=torch.float64)


def _none(points: torch.Tensor, leaders: torch.Tensor, margin: float) -> torch.Tensor:
    return torch.zeros(len(points), dtype=torch.bool)


@pytest.mark.parametrize("seed", [0, 1, 3, 7])
def test_answers_are_those_without_pruning(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Followers close to the edges of the leaders' hull, and a tolerance within which these tie with the leaders.
    rng = np.random.default_rng(seed)
    corners = int(rng.integers(4, 9))
    angles = np.sort(rng.uniform(0, 2 * np.pi, corners))
    hull = np.stack([np.cos(angles), np.sin(angles)], axis=1) * rng.uniform(0.8, 1.2, (corners, 1))
    which, share = rng.integers(0, corners, 300), rng.random((300, 1))
    edges = hull[which] * share + hull[(which + 1) % corners] * (1 - share)
    inwards = 1 - rng.choice([1e-4, 1e-3, 1e-2], size=(300, 1))
    tokens = np.concatenate([hull, edges * inwards, rng.normal(size=(20, 2)) * 0.2])
    layer = hm.HardmaxLayer(0.5, tolerance=float(rng.choice([1e-3, 1e-2, 3e-2])))
    pruned = hm.equilibrium(tokens, layer, max_layers=60)
    monkeypatch.setattr(process, "safely_inside", _none)
    whole = hm.equilibrium(tokens, layer, max_layers=60)
    for name in ("positions", "follows", "decided_at", "leaders"):
        np.testing.assert_array_equal(getattr(pruned, name), getattr(whole, name), err_msg=name)
    assert pruned.layers == whole.layers > 0


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5, 2.0])
def test_inside_means_the_margin_away_from_every_edge(margin: float) -> None:
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.uniform(-1.1, 1.1, size=(2000, 2)))
    inside = safely_inside(points, SQUARE, margin)
    np.testing.assert_array_equal(inside.numpy(), (1 - points.abs().amax(dim=1) >= margin).numpy())
    assert not safely_inside(points[:200], SQUARE, margin).any()  # for so few a hull does not pay


def test_the_hull_may_lie_beside_the_origin_or_be_flat() -> None:
    points = torch.from_numpy(np.random.default_rng(1).uniform(1.9, 4.1, size=(2000, 2)))
    inside = safely_inside(points, SQUARE + 3, 0.1)
    np.testing.assert_array_equal(inside.numpy(), (1 - (points - 3).abs().amax(dim=1) >= 0.1).numpy())
    assert not safely_inside(points, torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).double(), 0.1).any()
    assert not safely_inside(points, SQUARE[:2], 0.1).any()
