"""Transport: every method against linear programming, and laws against what they integrate to."""

import math

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hardmax.errors import InputError
from hardmax.meanfield.measures import Measure, circle_quantiles, fibonacci_sphere, on_circle, sphere_sample
from hardmax.meanfield.sparse_transport import sparse_plan
from hardmax.meanfield.transport import Metric, _costs, wasserstein

SIZES = st.integers(1, 12)
SEEDS = st.integers(0, 2**31)


def laws(n: int, m: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    return a, b, {"first_weights": rng.uniform(0.1, 1, n), "second_weights": rng.uniform(0.1, 1, m)}


@given(SIZES, SIZES, SEEDS)
@settings(deadline=None, max_examples=60)
def test_line_is_exact(n: int, m: int, seed: int) -> None:
    a, b, weights = laws(n, m, 1, seed)
    found = wasserstein(a, b, **weights)
    assert found.method == "line"
    assert found.distance == pytest.approx(float(wasserstein(a, b, method="exact", **weights)), abs=1e-7)


@given(SIZES, SIZES, SEEDS)
@settings(deadline=None, max_examples=60)
def test_circle_is_exact(n: int, m: int, seed: int) -> None:
    a, b, weights = laws(n, m, 2, seed)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    found = wasserstein(a, b, metric="geodesic", method="circle", **weights)
    exact = wasserstein(a, b, metric="geodesic", method="exact", **weights)
    assert found.distance == pytest.approx(exact.distance, abs=1e-6)


@given(SIZES, SIZES, st.floats(0.01, 3.0), SEEDS)
@settings(deadline=None, max_examples=60)
def test_chords_on_the_circle_are_sorted_only_where_that_is_optimal(n: int, m: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (on_circle(spread * rng.normal(size=size).round(1)) for size in (n, m))
    weights = {"first_weights": rng.uniform(0.1, 1, n), "second_weights": rng.uniform(0.1, 1, m)}
    found = wasserstein(a, b, **weights)
    assert found.exact
    assert found.distance == pytest.approx(float(wasserstein(a, b, method="exact", **weights)), abs=1e-6)


def test_many_tokens_on_the_circle_have_an_exact_distance() -> None:
    angles = np.random.default_rng(0).uniform(0, 1, 30_000)  # on an arc, so that turning it is optimal
    found = wasserstein(on_circle(angles), on_circle(angles + 0.2))
    assert found.method == "circle"
    assert found.distance == pytest.approx(2 * math.sin(0.1), abs=1e-8)
    with pytest.raises(InputError, match="chords of at most 0.81 radians"):
        wasserstein(on_circle(np.zeros(3)), on_circle(np.array([2.0, 2.1, 2.2])), method="circle")


@given(SIZES, SIZES, st.integers(1, 4), SEEDS)
@settings(deadline=None, max_examples=60)
def test_atoms_are_exact(n: int, m: int, d: int, seed: int) -> None:
    a, b, weights = laws(n, m, d, seed)
    b = b[np.random.default_rng(seed).integers(0, min(2, m), m)]
    found = wasserstein(a, b, method="atoms", **weights)
    assert found.distance == pytest.approx(float(wasserstein(a, b, method="exact", **weights)), abs=1e-7)
    turned = {"first_weights": weights["second_weights"], "second_weights": weights["first_weights"]}
    assert wasserstein(b, a, method="atoms", **turned).distance == pytest.approx(found.distance, abs=1e-7)


@given(st.integers(20, 60), st.integers(20, 60), st.integers(2, 5), st.sampled_from(["chordal", "geodesic"]), SEEDS)
@settings(deadline=None, max_examples=30)
def test_sparse_programme_is_optimal(n: int, m: int, d: int, metric: Metric, seed: int) -> None:
    """Against the dense programme; tiles and coarse laws are smaller than the laws, as for large ones."""
    a, b, weights = laws(n, m, d, seed)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    wa, wb = (weights[name] / weights[name].sum() for name in ("first_weights", "second_weights"))
    found = sparse_plan(a, wa, b, wb, lambda x, y: _costs(x, y, metric), coarse=8, tile=7)
    assert found is not None
    assert found.gap == pytest.approx(0, abs=1e-9)
    costs = _costs(a, b, metric)
    assert found.costs @ found.masses == pytest.approx(float((ot.emd(wa, wb, costs) * costs).sum()), abs=1e-10)


def test_sparse_programme_of_equal_laws_and_of_laws_in_one_place() -> None:
    a = sphere_sample(40, 3, random_state=0).points
    w = np.full(40, 1 / 40)
    same = sparse_plan(a, w, a, w, lambda x, y: _costs(x, y, "chordal"), coarse=5, tile=9)
    assert same is not None
    assert same.costs @ same.masses == pytest.approx(0, abs=1e-15)
    one = sparse_plan(a, w, a[:1], np.ones(1), lambda x, y: _costs(x, y, "chordal"), coarse=5, tile=9)
    assert one is not None
    assert one.costs @ one.masses == pytest.approx(float(((a - a[0]) ** 2).sum(axis=1).mean()))


def test_many_tokens_against_few_atoms_have_an_exact_distance() -> None:
    """Limits of tokens in the kernel of the projector give more than two atoms; the programme stays small."""
    rng = np.random.default_rng(0)
    places = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    a = sphere_sample(6_000, 3, random_state=0).points
    which = rng.choice(4, 6_000, p=[0.4, 0.3, 0.2, 0.1])
    found = wasserstein(a, places[which] + 1e-15 * rng.normal(size=(6_000, 3)))
    assert found.method == "exact"
    costs = _costs(a, places, "chordal")
    share = np.bincount(which) / 6_000
    # The dual of four variables: its largest value is the cost of the best plan.
    lower = minimize(lambda v: -(np.min(costs - v, axis=1).mean() + v @ share), np.zeros(4), method="Powell", tol=1e-10)
    assert found.distance**2 == pytest.approx(-lower.fun, rel=1e-6)


def test_sliced_is_scaled_by_the_dimension() -> None:
    # Shadows of a shift s have squared length |s|^2 / d on average.
    a = sphere_sample(2600, 3, random_state=0).points
    found = wasserstein(a, a + np.array([0.3, 0.0, 0.4]), projections=600, method="sliced")
    assert found.method == "sliced"
    assert not found.exact
    assert found.distance == pytest.approx(0.5 / math.sqrt(3), rel=0.06)


def test_trimming_forgets_a_few_stragglers() -> None:
    a = np.zeros((100, 2))
    a[:, 0] = 0.1
    a[0] = [5.0, 0.0]
    found = wasserstein(a, np.zeros((1, 2)))
    assert found.distance > 0.5
    assert found.trimmed(0.01) == pytest.approx(0.1)
    assert found.trimmed(0.0) == pytest.approx(found.distance)
    assert found.trimmed(0.005) == pytest.approx(math.sqrt((0.99 * 0.01 + 0.005 * 25) / 0.995))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "magic"}, "method is not known"),
        ({"metric": "magic"}, "metric is not known"),
        ({"method": "line"}, "only for d = 1"),
        ({"method": "circle"}, "only for d = 2 and points of the unit circle"),
        ({"method": "atoms"}, "at most two distinct points"),
        ({"metric": "geodesic"}, "needs points on the unit sphere"),
        ({"second_weights": np.zeros(5)}, "second_weights must be positive"),
        ({"first_weights": np.ones(5)}, r"first_weights must have shape \(4,\), got shape \(5,\)"),
    ],
)
def test_bad_transport(arguments: dict[str, object], message: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=message):
        wasserstein(rng.normal(size=(4, 2)), rng.normal(size=(5, 2)), **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="second must have 2"):
        wasserstein(rng.normal(size=(4, 2)), rng.normal(size=(5, 3)))


def test_quantiles_have_equal_mass() -> None:
    law = circle_quantiles(1000, lambda angle: 1 + np.sin(angle) / 2)
    angles = np.sort(np.arctan2(law.points[:, 1], law.points[:, 0]) % (2 * np.pi))
    below = (angles + (1 - np.cos(angles)) / 2) / (2 * np.pi)
    assert np.abs(below - (np.arange(1000) + 0.5) / 1000).max() < 1e-13
    assert law.weights.sum() == pytest.approx(1.0)


def test_a_kink_in_the_density_is_no_problem() -> None:
    law = circle_quantiles(500, lambda angle: np.where(angle < np.pi, 1.0, 0.0))
    assert law.points[:, 1].min() > 0


def test_fibonacci_points_are_even() -> None:
    points = fibonacci_sphere(2000, axis=(1.0, 2.0, -0.5)).points
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-14
    assert np.abs(points.T @ points / 2000 - np.eye(3) / 3).max() < 2e-3
    with pytest.raises(InputError, match="axis must be three numbers"):
        fibonacci_sphere(10, axis=(0.0, 0.0, 0.0))


def test_samples_follow_their_density_and_remember_their_seed() -> None:
    law = sphere_sample(20000, 3, lambda x: 1 + x[:, 2], random_state=5)
    assert law.seed == 5
    assert law.points[:, 2].mean() == pytest.approx(1 / 3, abs=0.02)
    again = sphere_sample(20000, 3, lambda x: 1 + x[:, 2], random_state=5)
    assert np.array_equal(law.points, again.points)
    assert sphere_sample(3, 2).seed is not None


def test_reweighting_leaves_out_what_has_no_mass() -> None:
    law = circle_quantiles(100).reweighted(lambda points: np.maximum(points[:, 0], 0.0))
    assert isinstance(law, Measure)
    assert len(law) == 50
    assert law.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("density", [lambda x: -np.ones(len(x)), lambda x: np.full(len(x), np.nan), lambda x: 1.0])
def test_bad_densities(density: object) -> None:
    with pytest.raises(InputError, match="density must give"):
        circle_quantiles(10, density)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="density must give"):
        sphere_sample(10, 3, density, random_state=0)  # type: ignore[arg-type]


def test_a_density_that_is_zero_everywhere() -> None:
    with pytest.raises(InputError, match="positive somewhere"):
        circle_quantiles(10, lambda angle: 0 * angle)
    with pytest.raises(InputError, match="positive somewhere"):
        circle_quantiles(10).reweighted(lambda x: 0 * x[:, 0])


def test_circle_distance_in_closed_form() -> None:
    points = on_circle(np.linspace(0, 2 * np.pi, 50, endpoint=False))
    turned = on_circle(np.linspace(0, 2 * np.pi, 50, endpoint=False) + 0.03)
    found = wasserstein(points, turned, metric="geodesic")
    assert found.method == "circle"
    assert found.distance == pytest.approx(0.03, abs=1e-10)


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_the_distance_keeps_its_digits_far_from_zero_and_at_any_scale(method: str) -> None:
    points = np.random.default_rng(3).normal(size=(9, 2))
    assert float(wasserstein(points, points, method=method)) == 0.0
    far = points + 2.0**20  # the shift below is representable there
    assert float(wasserstein(far, far + 2.0**-20, method=method)) == pytest.approx(math.sqrt(2) * 2.0**-20, rel=1e-12)
    plain = wasserstein(points, 2 * points, method="exact")
    for scale in (1e-300, 1e-12, 1e300):
        found = wasserstein(scale * points, 2 * scale * points, method=method)
        assert float(found) == pytest.approx(scale * float(plain), rel=1e-9)
        assert found.trimmed(0.2) == pytest.approx(scale * plain.trimmed(0.2), rel=1e-9)
