"""Matrices of any size: the direction of B alone matters at zero temperature, and rates scale with V."""

from __future__ import annotations

import numpy as np
import pytest

import hardmax as hm

SCORES, VALUES = np.array([[4.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]]), np.diag([1.0, 2.0, 0.3])
POINTS = np.random.default_rng(0).normal(size=(5, 3))
POINTS /= np.linalg.norm(POINTS, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("b", "v"), [(2.0**990, 2.0**-990), (2.0**-990, 2.0**990), (2.0**660, 1.0), (1.0, 2.0**660), (2.0**-660, 2.0**-300)]
)
def test_limits_and_rates_scale(b: float, v: float) -> None:
    limit, expected = (hm.low_temperature_limit(POINTS, s * SCORES, t * VALUES) for s, t in ((b, v), (1.0, 1.0)))
    np.testing.assert_array_equal(limit.positions, expected.positions)
    np.testing.assert_allclose(limit.eigenvalue / b / v, expected.eigenvalue, rtol=1e-14)
    found, usual = hm.rates(limit), hm.rates(expected)
    np.testing.assert_allclose(found.pointwise / v, usual.pointwise, rtol=1e-12)
    np.testing.assert_allclose(found.slowest / v, usual.slowest, rtol=1e-12)
    np.testing.assert_allclose(found.wasserstein / v, usual.wasserstein, rtol=1e-12)
    assert (found.escape is None) == (usual.escape is None)


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_matrices_whose_product_is_no_float_are_refused(size: float) -> None:
    with pytest.raises(hm.InputError, match="B, V must keep V B within float64, got .*: rescale them"):
        hm.low_temperature_limit(POINTS, size * SCORES, size * VALUES)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e200, 1e300])
def test_flows_run_for_score_matrices_of_any_size(d: int, size: float) -> None:
    points = POINTS[:, :d] / np.linalg.norm(POINTS[:, :d], axis=1, keepdims=True)
    B = SCORES[:d, :d]
    run = hm.simulate(points, hm.SphereFlow(size * B, beta=1.0, few_tokens="ignore"), time=0.2, step=0.05)
    np.testing.assert_allclose(np.linalg.norm(run.final, axis=1), 1.0)
    zero = [
        hm.simulate(points, hm.SphereFlow(s * B, beta=np.inf), time=0.2, step=0.05).final
        for s in (1.0, 2.0 ** round(np.log2(size)))
    ]
    np.testing.assert_array_equal(zero[0], zero[1])
    if size > 1:  # every token hears the one whose score is largest
        hard = hm.simulate(points, hm.SphereHardmaxFlow(B), time=0.2, step=0.05)
        np.testing.assert_allclose(run.final, hard.final, atol=1e-12)
    else:  # every token hears all
        even = hm.simulate(points, hm.SphereFlow(0 * B, beta=1.0, few_tokens="ignore"), time=0.2, step=0.05)
        np.testing.assert_allclose(run.final, even.final, atol=1e-12)


def test_a_circle_of_too_many_modes_is_refused() -> None:
    points = POINTS[:, :2] / np.linalg.norm(POINTS[:, :2], axis=1, keepdims=True)
    flow = hm.SphereFlow(1e200 * np.eye(2), evaluation="circle", few_tokens="ignore")
    with pytest.raises(hm.InputError, match=r'evaluation "circle" must need at most 10000000.*evaluation="auto"'):
        flow.attention(points)
