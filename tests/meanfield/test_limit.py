"""The limit map: its projector, its special cases, and the run that it predicts."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmax.dynamics.simulate import simulate
from hardmax.errors import HardmaxError, InputError
from hardmax.meanfield import spectrum
from hardmax.meanfield.exact import zero_temperature_solution
from hardmax.meanfield.flow import SphereFlow
from hardmax.meanfield.limit import low_temperature_limit
from hardmax.meanfield.measures import circle_quantiles, sphere_sample
from hardmax.meanfield.rates import rates
from hardmax.meanfield.spectrum import NoLimit, NoLimitError


def turned(values: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random similarity of a small matrix."""
    S = np.random.default_rng(seed).normal(size=values.shape)
    return S @ values @ np.linalg.inv(S), S


@given(st.integers(2, 7), st.data())
@settings(deadline=None, max_examples=80)
def test_projector_of_a_repeated_leading_eigenvalue(d: int, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, d))
    seed = data.draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    values = np.diag(np.concatenate([np.full(m, 1.5), 1.5 - rng.uniform(0.1, 2.0, d - m)]))
    M, S = turned(values, seed)
    if np.linalg.cond(S) > 1e3:
        return
    B = rng.normal(size=(d, d)) + 3 * np.eye(d)
    if np.linalg.cond(B) > 1e3:
        return
    tokens = sphere_sample(20, d, random_state=rng).points
    law = low_temperature_limit(tokens, B, M @ np.linalg.inv(B))
    onto = S @ np.diag([1.0] * m + [0.0] * (d - m)) @ np.linalg.inv(S)
    assert law.dimension == m
    assert law.eigenvalue == pytest.approx(1.5, abs=1e-6)
    assert np.abs(np.asarray(law.projector) - onto).max() < 1e-6 * np.linalg.cond(S)


def test_eigenvalues_that_differ_by_rounding_may_not_be_separable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions of LAPACK select none of two leading eigenvalues when a third is a rounding error away."""
    ordered = spectrum._ordered

    def unlucky(M: np.ndarray, first: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        T, Z, count = ordered(M, first, rest)
        return T, Z, 0 if len(rest) and first.min() - rest.max() < 1e-12 else count

    monkeypatch.setattr(spectrum, "_ordered", unlucky)
    tokens = sphere_sample(20, 4, random_state=0).points
    law = low_temperature_limit(tokens, np.eye(4), np.diag([1.5, 1.5 - 1e-15, 1.5 - 4e-15, 0.2]))
    assert law.dimension == 3


def test_the_limit_is_where_the_exact_flow_ends() -> None:
    rng = np.random.default_rng(0)
    B, V = np.diag([2.0, 1.0, 1.0]) + 0.2 * rng.normal(size=(3, 3)), np.diag([1.0, 0.5, 0.2])
    tokens = sphere_sample(30, 3, random_state=1).points
    law = low_temperature_limit(tokens, B, V)
    end = zero_temperature_solution(tokens, B, V, time=60.0)
    assert np.abs(end - law.positions).max() < 1e-9


def test_symmetric_formula() -> None:
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    B = root @ root.T + np.eye(4)
    V = rng.normal(size=(4, 4))
    V = V + V.T
    values, vectors = np.linalg.eig(V @ B)
    E = vectors[:, [values.real.argmax()]].real
    expected = E @ np.linalg.inv(E.T @ B @ E) @ E.T @ B
    law = low_temperature_limit(sphere_sample(5, 4, random_state=0).points, B, V)
    assert np.abs(np.asarray(law.projector) - expected).max() < 1e-11


def test_tokens_follow_the_oblique_projector_not_the_orthogonal_one() -> None:
    B, V = np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[1.0, 0.5], [0.0, 0.5]])
    assert np.abs(B @ V - V @ B).max() > 0.5
    tokens = circle_quantiles(800).points
    law = low_temperature_limit(tokens, B, V)
    E = law.leading.basis
    orthogonal = tokens @ E @ E.T
    orthogonal /= np.linalg.norm(orthogonal, axis=1, keepdims=True)
    end = simulate(tokens, SphereFlow(B, V, beta=100.0), time=10.0, step=0.1, keep="last").final
    # Tokens beside the kernel of the projector have no clear side at finite temperature.
    clear = np.linalg.norm(tokens @ np.asarray(law.projector).T, axis=1) > 0.15
    assert clear.mean() > 0.9
    assert np.linalg.norm(end - law.positions, axis=1)[clear].max() < 0.05
    assert np.linalg.norm(end - orthogonal, axis=1)[clear].mean() > 0.5


BLOCKS = [
    np.array([[2.0, 1.0, 0], [0, 2.0, 0], [0, 0, 1.0]]),
    np.array([[2.0, 1.0, 0], [0, 2.0, 1.0], [0, 0, 2.0]]),
]
SCORES = np.diag([2.0, 1.0, 1.5])


@pytest.mark.parametrize("matrix", BLOCKS)
@pytest.mark.parametrize("seed", range(3))
def test_jordan_blocks_are_approached_like_one_over_t(matrix: np.ndarray, seed: int) -> None:
    """The exact flow is at the distance a/t of the limit, to first order."""
    M, _ = turned(matrix, seed)
    tokens = sphere_sample(4, 3, random_state=seed).points
    V = M @ np.linalg.inv(SCORES)
    law = low_temperature_limit(tokens, SCORES, V)
    assert law.kind == "algebraic"
    assert "like 1/t" in str(law)
    assert law.leading.dimension == np.count_nonzero(np.diag(matrix) == 2.0)
    times = np.array([150.0, 300.0]) * max(1.0, float(law.algebraic.max()))
    late = zero_temperature_solution(tokens, SCORES, V, time=times)
    scaled = times[:, None] * np.linalg.norm(late - law.positions, axis=2)
    # Tokens beside the kernel of the block turn late; of the others the next order is 1/t (Richardson).
    settled = np.abs(scaled[1] / scaled[0] - 1) < 0.1
    assert settled.sum() >= 3
    np.testing.assert_allclose((2 * scaled[1] - scaled[0])[settled], law.algebraic[settled], rtol=0.03)
    found = rates(law)
    assert found.slowest == 0
    assert found.approach_time(100.0) is None


def test_tokens_that_a_jordan_block_does_not_move() -> None:
    """An eigenvector of the block is its own limit; the others go to it, on the side of their second coordinate."""
    block = np.array([[1.0, 1.0], [0.0, 1.0]])
    law = low_temperature_limit([[1.0, 0.0], [-1.0, 0.0], [0.6, 0.8], [0.6, -0.8]], None, block)
    np.testing.assert_allclose(law.positions, [[1, 0], [-1, 0], [1, 0], [-1, 0]], atol=1e-12)
    np.testing.assert_allclose(law.algebraic, [0, 0, 1, 1], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_complex_pairs_have_orbits(seed: int) -> None:
    M, _ = turned(np.array([[2.0, 1.0, 0], [-1.0, 2.0, 0], [0, 0, 1.0]]), seed)
    V = M @ np.linalg.inv(SCORES)
    tokens = sphere_sample(4, 3, random_state=seed).points
    law = low_temperature_limit(tokens, SCORES, V)
    orbit = law.orbit
    assert law.kind == "orbit"
    assert orbit.frequency == pytest.approx(1.0, abs=1e-9)
    again = zero_temperature_solution(law.positions, SCORES, V, time=float(orbit.periods[0]))
    np.testing.assert_allclose(again, law.positions, atol=1e-9)
    half = zero_temperature_solution(law.positions, SCORES, V, time=float(orbit.periods[0]) / 2)
    assert np.linalg.norm(half - law.positions, axis=1).min() > 0.1
    # All tokens approach the great circle of the plane.
    late = zero_temperature_solution(tokens, SCORES, V, time=60.0)
    for token, plane in zip(late, orbit.planes, strict=True):
        assert np.linalg.norm(token - plane @ (plane.T @ token)) < 1e-5
    with pytest.raises(NoLimitError, match="turn for ever") as caught:
        rates(law)
    assert caught.value.reason is NoLimit.ROTATES
    assert isinstance(caught.value, HardmaxError)
    assert caught.value.remedy in str(caught.value)
    scaled = low_temperature_limit(tokens, 2.0**300 * SCORES, 2.0**-200 * V)
    np.testing.assert_allclose(scaled.orbit.periods * 2.0**-200, orbit.periods, rtol=1e-12)


def test_several_frequencies_have_no_period() -> None:
    V = np.zeros((4, 4))
    V[:2, :2], V[2:, 2:] = [[0, -1], [1, 0]], [[0, -2], [2, 0]]
    law = low_temperature_limit(sphere_sample(3, 4, random_state=0).points, None, V)
    assert np.isnan(law.orbit.periods).all()
    assert "several frequencies" in str(law)


def test_a_jordan_block_below_the_top_does_no_harm() -> None:
    M, _ = turned(np.array([[2.0, 0, 0], [0, 1.0, 1.0], [0, 0, 1.0]]), 0)
    law = low_temperature_limit(sphere_sample(10, 3, random_state=0).points, None, M)
    assert law.dimension == 1
    assert np.abs(np.asarray(law.projector) @ M - 2 * np.asarray(law.projector)).max() < 1e-6


def test_close_eigenvalues_are_no_jordan_block() -> None:
    law = low_temperature_limit(np.ones((1, 3)), None, np.diag([2.0, 2.0 - 1e-6, 1.0]))
    assert law.dimension == 1
    assert law.leading.gap == pytest.approx(1e-6)


def test_singular_scores_and_tokens_in_the_kernel() -> None:
    with pytest.raises(NoLimitError, match="singular B") as singular:
        low_temperature_limit(np.eye(3), np.diag([1.0, 1.0, 0.0]))
    assert singular.value.reason is NoLimit.SINGULAR_B
    turning = np.array([[3.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, 1.0, 1.0]])
    with pytest.raises(NoLimitError, match="2 tokens, the first at index 1, .* turn for ever") as kernel:
        low_temperature_limit(np.eye(3), None, turning)
    assert kernel.value.reason is NoLimit.IN_KERNEL


@pytest.mark.parametrize("seed", range(4))
def test_tokens_in_the_kernel_of_the_projector_go_to_the_next_eigenspace(seed: int) -> None:
    """In the kernel, the flow is that of a smaller matrix; the exact solution of the flow agrees."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(4, 4)) + 2 * np.eye(4)
    vectors /= np.linalg.norm(vectors, axis=0)
    B = np.diag(rng.uniform(0.5, 2.0, 4))
    V = vectors @ np.diag([4.0, 2.0, 1.0, -1.0]) @ np.linalg.inv(vectors) @ np.linalg.inv(B)
    mixtures = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, -2.0, 1.0], [0.0, 0.0, -1.0, 0.5], [0.0, 0.0, 0.0, 1.0]])
    tokens = mixtures @ vectors.T
    law = low_temperature_limit(tokens, B, V)
    expected = (vectors * np.sign(np.diag(mixtures))).T
    np.testing.assert_allclose(law.positions, expected, rtol=0, atol=1e-10)
    assert law.elsewhere.tolist() == [1, 2, 3]
    found = rates(law)
    assert np.isnan(found.pointwise).tolist() == [False, True, True, True]
    # Rounding grows along the leading eigenvector, so that the flow stays in the kernel for some time only.
    second = zero_temperature_solution(tokens[1:2], B, V, time=5.0, normalise=True)
    assert np.linalg.norm(second[0] - expected[1]) < 0.1


def test_everything_is_its_own_limit_when_all_eigenvalues_agree() -> None:
    tokens = sphere_sample(10, 3, random_state=0).points
    for V in (np.eye(3), np.zeros((3, 3)), -np.eye(3)):
        law = low_temperature_limit(tokens, None, V)
        assert law.dimension == 3
        assert np.abs(law.positions - tokens).max() < 1e-14


def test_exact_solution_at_several_times() -> None:
    tokens = circle_quantiles(40).points
    B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
    several = zero_temperature_solution(tokens, B, V, time=[0.0, 0.5, 0.5, 3.0])
    assert np.abs(several[0] - tokens).max() < 1e-14
    assert np.abs(several[2] - zero_temperature_solution(tokens, B, V, time=0.5)).max() < 1e-14
    restart = zero_temperature_solution(several[2], B, V, time=2.5)
    assert np.abs(restart - several[3]).max() < 1e-13
    with pytest.raises(InputError, match="must ascend"):
        zero_temperature_solution(tokens, B, V, time=[1.0, 0.5])
    with pytest.raises(NoLimitError, match="singular"):
        zero_temperature_solution(tokens, np.diag([1.0, 0.0]), V, time=1.0)


def test_error_in_beta_falls_like_one_over_beta() -> None:
    law = circle_quantiles(2000, lambda angle: 1 + np.sin(angle) / 2)
    B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
    truth = zero_temperature_solution(law.points, B, V, time=1.0)
    betas = np.array([150.0, 300.0, 600.0, 1200.0])
    errors = []
    for beta in betas:
        end = simulate(law.points, SphereFlow(B, V, beta), time=1.0, step=0.1, integrator="rk4", keep="last").final
        errors.append(math.sqrt(((end - truth) ** 2).sum(axis=1).mean()))
    slope = np.polyfit(np.log(betas), np.log(errors), 1)[0]
    assert -1.1 < slope < -0.9


def test_the_rate_of_approach_is_also_given_for_orbits() -> None:
    """A pair 1 ± i and the eigenvalue 0.5, B = I: m = 2, gap 0.5, both lengths |Bx| are one."""
    V = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
    tokens = [[0.6, 0.0, 0.8]]
    assert low_temperature_limit(tokens, np.eye(3), V).approach_rate == pytest.approx(0.5)
    assert low_temperature_limit(tokens, 2 * np.eye(3), 3 * V).approach_rate == pytest.approx(1.5)
    jordan = np.array([[1.0, 1.0], [0.0, 1.0]])
    assert low_temperature_limit([[0.6, 0.8]], np.eye(2), jordan).approach_rate == 0.0
    assert low_temperature_limit([[0.6, 0.8]]).approach_rate == math.inf
