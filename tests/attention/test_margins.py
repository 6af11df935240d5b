"""The margins within which a screen must pass candidates on, against exact rounding errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from hardmax.attention.choice import score
from hardmax.attention.search.margins import UNIT32, UNIT64, product_error, tie_margin


def gamma(d: int, unit: float) -> Fraction:
    """The worst relative error of a sum of d rounded products."""
    u = Fraction(unit)
    return d * u / (1 - d * u)


@pytest.mark.parametrize("d", [1, 2, 3, 16, 1000, 100_000])
@pytest.mark.parametrize("tolerance", [0.0, 64 * 2.0**-52, 1e-6, 0.09])
def test_ties_leave_room_for_the_rounding_of_both_scores_and_of_the_slack(d: int, tolerance: float) -> None:
    # The slack is tolerance |q| R: a root of a sum for either length, two products; then best - slack is rounded too.
    slack = Fraction(tolerance) * (1 + gamma(d + 4, UNIT64))
    needed = slack + 2 * gamma(d, UNIT64) + 2 * Fraction(UNIT64)
    assert Fraction(tie_margin(tolerance, d)) >= needed
    assert Fraction(tie_margin(tolerance, d)) <= (needed + 8 * Fraction(UNIT64)) * Fraction(1001, 1000)


@pytest.mark.parametrize("d", [1, 2, 3, 64])
@pytest.mark.parametrize("unit", [UNIT32, UNIT64])
def test_products_leave_room_for_rounded_operands(d: int, unit: float) -> None:
    assert Fraction(product_error(d, unit)) >= gamma(d, unit) + 2 * Fraction(unit)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_deciding_scores_err_by_no_more_than_the_margin(d: int) -> None:
    rng = np.random.default_rng(d)
    left, right = rng.normal(size=(50, d)), rng.normal(size=(50, d))
    computed = score(torch.from_numpy(left), torch.from_numpy(right)).tolist()
    for q, z, value in zip(left.tolist(), right.tolist(), computed, strict=True):
        exact = sum((Fraction(a) * Fraction(b) for a, b in zip(q, z, strict=True)), Fraction(0))
        lengths = float(np.linalg.norm(q) * np.linalg.norm(z))
        assert abs(float(Fraction(value) - exact)) <= 0.5 * tie_margin(0.0, d) * lengths
