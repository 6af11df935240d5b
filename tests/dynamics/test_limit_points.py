"""Limits apart by rounding are one point, others are not."""

from __future__ import annotations

import numpy as np
import pytest

import hardmax as hm
from hardmax.dynamics.closed_form import same_limits

EPS, EPS32 = 2.0**-52, 2.0**-23


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize(("unit", "merged", "apart"), [(EPS, 0.5e-12, 2e-12), (EPS32, 4 * EPS32, 16 * EPS32)])
def test_the_grain_of_limits(size: float, unit: float, merged: float, apart: float) -> None:
    for place in (0.0, 0.5, 1 / 3, 1.0 - 2 * apart):
        base = np.array([[place, 0.25]])
        for along in ([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]):
            near, far = base + merged * np.array(along), base + apart * np.array(along)
            assert same_limits(np.concatenate([base, near]) * size, size, unit)[1].tolist() == [0, 0]
            first, which = same_limits(np.concatenate([far, base, near, far]) * size, size, unit)
            assert first.tolist() == [0, 1]
            assert which.tolist() == [0, 1, 1, 0]


def test_points_on_either_side_of_a_multiple_of_the_grain_are_one() -> None:
    points = np.array([[0.5e-12 - 1e-16], [0.5e-12 + 1e-16], [1.0]])
    assert same_limits(points, 1.0, EPS)[1].tolist() == [0, 0, 1]


def test_no_limits() -> None:
    first, which = same_limits(np.zeros((0, 2)), 0.0, EPS)
    assert len(first) == len(which) == 0


@pytest.mark.parametrize("shift", [3e-13, 1e-9])
def test_limits_on_a_face_are_told_apart_down_to_the_grain(shift: float) -> None:
    # Two pairs of leaders whose means, on faces of the hull, differ by the shift along the edge.
    top = np.array([[2.0, 2.0], [-2.0, 2.0]])
    tokens = np.concatenate([top, [[0.0, 1.0], [0.0, 0.5], [0.0, -3.0]]])
    limit = hm.equilibrium(tokens)
    moved = limit.positions.copy()
    moved[3, 0] += shift
    other = hm.Equilibrium(moved, limit.leadership, limit.layers, limit.outcome, limit.assumptions, limit.layer)
    assert len(other.limit_points) == len(hm.clusters(other)) == (4 if shift < 1e-12 else 5)
    single = hm.Equilibrium(
        moved.astype(np.float32), limit.leadership, limit.layers, limit.outcome, limit.assumptions, limit.layer
    )
    assert len(single.limit_points) == len(hm.clusters(single)) == 4
