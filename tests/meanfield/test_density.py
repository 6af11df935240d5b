"""The density solver: against closed forms, the exact zero-temperature flow, tokens, and its own refinement."""

import math

import numpy as np
import pytest
from scipy.special import ive

from hardmax.dynamics.simulate import simulate
from hardmax.errors import InputError
from hardmax.meanfield import density as panels
from hardmax.meanfield.density import SphereDensity, axial_density, circle_density
from hardmax.meanfield.density_attention import AxialKernel, CircleKernel, Kernel, NearKeys, attended
from hardmax.meanfield.density_flow import DensityRun, simulate_density
from hardmax.meanfield.energy import lyapunov
from hardmax.meanfield.exact import zero_temperature_solution
from hardmax.meanfield.flow import SphereFlow
from hardmax.meanfield.measures import circle_quantiles, on_circle, sphere_sample
from hardmax.meanfield.phases import phases
from hardmax.meanfield.transport import wasserstein

B_A, V_A = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])


def tilted(angle: np.ndarray) -> np.ndarray:
    return np.asarray(1 + np.sin(angle) / 2)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("kappa", [1e-3, 1.0, 30.0, 1000.0, -5.0, -300.0])
def test_attention_to_a_tilted_law_in_closed_form(d: int, kappa: float) -> None:
    """O1, O1b and O1c: the mean that a query attends to for densities 1 + c <a, y>."""
    for tilt in (0.0, 0.5):
        law = axial_density(d, lambda u, tilt=tilt: 1 + tilt * u, points=600)
        angles = np.linspace(0, np.pi, 7)
        found, _ = AxialKernel(kappa, kappa, d).mean(angles, law.angles.ravel(), law.masses)
        size = abs(kappa)
        ratio = ive(d / 2, size) / ive(d / 2 - 1, size)
        towards, axis = math.copysign(1.0, kappa) * on_circle(angles), np.array([tilt, 0.0])
        inner = towards @ axis
        along = (ratio + (1 - (d - 1) * ratio / size) * inner)[:, None] * towards
        expected = along + ratio / size * (axis - inner[:, None] * towards)
        assert np.abs(found - expected / (1 + ratio * inner)[:, None]).max() < 1e-13


@pytest.mark.parametrize("size", [0.0, 3.0, 100.0, 2000.0])
def test_close_nodes_are_evaluated_together_without_loss(size: float) -> None:
    rng = np.random.default_rng(0)
    angles = np.concatenate(
        [1 + 0.01 * rng.normal(size=400), 4 + 1e-6 * rng.normal(size=400), np.full(50, 2.0), rng.uniform(0, 6, 60)]
    )
    weights = rng.uniform(size=len(angles))
    weights[-60:] *= 1e-25
    for kernel in (
        CircleKernel(size * np.array([[1.0, 0.3], [-0.2, -0.7]])),
        AxialKernel(size, -0.5 * size, 4),
    ):
        places = angles if isinstance(kernel, CircleKernel) else angles / 2
        direct, _ = Kernel.mean(kernel, places, places, weights)
        assert np.abs(attended(kernel, places, weights) - direct).max() < 1e-12


@pytest.mark.parametrize("size", [0.0, 40.0, 1e3, 1e5])
@pytest.mark.parametrize("law", ["spread", "clusters", "one key", "masses of all sizes"])
def test_negligible_blocks_of_keys_are_left_out_without_loss(size: float, law: str) -> None:
    rng = np.random.default_rng(3)
    keys = {
        "spread": rng.uniform(-3, 9, 700),
        "clusters": np.concatenate([0.02 * rng.normal(size=400), np.pi + 1e-5 * rng.normal(size=300)]),
        "one key": np.array([2.0]),
        "masses of all sizes": np.linspace(0, 2 * np.pi, 500),
    }[law]
    weights = 10 ** rng.uniform(-300, 0, len(keys)) if law == "masses of all sizes" else rng.uniform(size=len(keys))
    queries = np.concatenate([keys, rng.uniform(-7, 7, 50)])
    kernel = CircleKernel(size * np.array([[1.0, 0.3], [-0.2, -0.7]]))
    blocks = NearKeys.of(on_circle(queries) @ kernel.scores.T, keys, weights)
    assert law == "one key" or size < 1e3 or blocks.pairs < 0.8 * len(queries) * len(keys)
    (mean, logs), (direct, heights) = blocks.mean(), Kernel.mean(kernel, queries, keys, weights)
    assert np.abs(mean - direct).max() < 1e-11
    assert logs == pytest.approx(heights, rel=1e-13, abs=1e-11)


def test_quantiles_and_integrals_are_those_of_the_law() -> None:
    law = circle_density(tilted)
    assert np.abs(law.quantiles(1000).points - circle_quantiles(1000, tilted).points).max() < 1e-12
    shares = np.array([-1.3, -0.2, 0.1, 0.7, 1.2, 2.5])
    fine = law.quantile(np.linspace(-1.3, 2.5, 400_001))
    middles = 0.5 * (fine[1:] + fine[:-1])
    whole = law.integrals(shares)[-1] - law.integrals(shares)[0]
    rough = [np.mean(f) * 3.8 for f in (1.0, middles, middles**2, np.cos(middles), np.sin(middles))]
    assert whole == pytest.approx(rough, abs=1e-7)


def test_a_split_changes_neither_mass_nor_law() -> None:
    law = circle_density(lambda angle: np.exp(2 * np.cos(angle)), points=64)
    half = law.split(np.arange(len(law.angles)) % 2 == 0).split_at(1.234)
    assert half.masses.sum() == pytest.approx(1.0, abs=1e-15)
    shares = np.linspace(0.01, 0.99, 50)
    assert np.abs(half.quantile(shares) - law.quantile(shares)).max() < 1e-10
    assert half.mean == pytest.approx(law.mean, abs=1e-13)
    assert (half.angles[1:, 0] == half.angles[:-1, -1]).all()


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_zero_temperature_is_the_exact_solution(signs: tuple[int, int]) -> None:
    B, V = signs[0] * np.array([[2.0, 0.5], [0.1, 1.0]]), signs[1] * np.array([[1.0, 0.2], [-0.3, 0.7]])
    run = simulate_density(circle_density(tilted, points=64), SphereFlow(B, V, math.inf), time=1.5, every=1.5)
    shares = np.linspace(0.02, 0.98, 25)
    start = on_circle(run.states[0].quantile(shares))
    exact = np.asarray(zero_temperature_solution(start, B, V, time=1.5))
    # Nodes keep their share of the mass up to the turn at which the angles are counted from.
    found = on_circle(run.final.quantile(shares))
    assert np.abs(found - exact).max() < 1e-7


def test_distance_to_the_limit_of_the_uniform_circle_in_closed_form() -> None:
    """O5, at the level of densities."""
    run = simulate_density(
        circle_density(points=64), SphereFlow(V=np.diag([1.5, 0.5]), beta=math.inf), time=4.0, every=0.5
    )
    small = np.exp(-run.times[1:])
    expected = np.sqrt(2 * (1 - 2 / np.pi * np.arccos(small) / np.sqrt(1 - small**2)))
    assert phases(run).distances[1:] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("d", [3, 5, 10])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_axial_density_is_what_many_tokens_do(d: int, signs: tuple[int, int]) -> None:
    axis = np.eye(d)[1]
    along, across = np.outer(axis, axis), np.eye(d) - np.outer(axis, axis)
    B, V = signs[0] * (2 * along + across), signs[1] * (along + 0.5 * across)
    flow = SphereFlow(B, V, 2.0, few_tokens="ignore")
    law = axial_density(d, lambda u: 1 + 0.8 * u, axis=axis, points=32)
    run = simulate_density(law, flow, time=1.0, every=1.0)
    tokens = sphere_sample(1500, d, lambda x: 1 + 0.8 * x[:, 1], random_state=0).points
    final = np.asarray(simulate(tokens, flow, time=1.0, step=0.1, keep="last").final)
    for found, sample in ((run.final, final), (run.states[0], tokens)):
        assert np.abs(found.mean - sample.mean(axis=0)).max() < 4 / math.sqrt(1500)
        assert np.abs(found.second_moment - sample.T @ sample / 1500).max() < 4 / math.sqrt(1500)
    assert np.abs(run.final.mean - run.states[0].mean).max() > 0.03


def test_two_dimensions_with_an_axis_are_the_circle() -> None:
    B, V = np.diag([2.0, 0.5]), np.diag([0.5, 1.0])
    flow = SphereFlow(B, V, 8.0)
    whole = simulate_density(circle_density(lambda a: 1 + 0.5 * np.cos(a)), flow, time=1.5, every=1.5).final
    half = simulate_density(axial_density(2, lambda u: 1 + 0.5 * u), flow, time=1.5, every=1.5).final
    assert half.mean == pytest.approx(whole.mean, abs=1e-8)
    assert half.second_moment == pytest.approx(whole.second_moment, abs=1e-8)


@pytest.fixture(scope="module")
def case_a() -> DensityRun:
    return simulate_density(circle_density(tilted), SphereFlow(B_A, V_A, 10.0), time=9.0, every=0.25, tolerance=1e-7)


def test_the_same_phases_are_found_from_density_and_tokens(case_a: DensityRun) -> None:
    tokens = circle_quantiles(1000, tilted).points
    run = simulate(
        tokens, SphereFlow(B_A, V_A, 10.0), time=9.0, step=0.125, integrator="rk4", keep=list(range(0, 73, 2))
    )
    found, expected = phases(case_a), phases(run)
    assert np.abs(found.distances - expected.distances).max() < 5e-4
    assert found.approach_time == pytest.approx(expected.approach_time, abs=2e-3)
    assert found.escape_time == pytest.approx(expected.escape_time, abs=2e-3)
    assert found.approach_distance == pytest.approx(0.24873, abs=2e-4)
    assert found.terminal.distance == pytest.approx(expected.terminal.distance, abs=1e-3)
    assert (found.isolated, found.few_dominate) == (0.0, False)
    wide = phases(case_a, metric="geodesic")
    assert (wide.distances >= found.distances).all()
    assert wide.metric == "geodesic"


def test_mass_is_conserved_and_edges_do_not_tear(case_a: DensityRun) -> None:
    assert case_a.final.angles.size > case_a.states[0].angles.size
    for state in case_a.states:
        assert state.masses.sum() == pytest.approx(1.0, abs=1e-14)
        assert (state.angles[1:, 0] == state.angles[:-1, -1]).all()
        assert state.angles[-1, -1] - state.angles[0, 0] == pytest.approx(2 * math.pi, abs=1e-12)


def test_tokens_approach_the_density_at_the_rates_of_theory(case_a: DensityRun) -> None:
    law = case_a.states[2]  # later the law has a gap, in which more tokens than these are needed for the rate
    rng = np.random.default_rng(1)

    def distance(points: np.ndarray) -> float:
        return float(wasserstein(law, points, metric="geodesic"))

    regular = [distance(law.quantiles(n).points) for n in (40, 160, 640)]
    random = [np.mean([distance(on_circle(law.quantile(rng.random(n)))) ** 2 for _ in range(6)]) for n in (40, 640)]
    assert np.polyfit(np.log([40, 160, 640]), np.log(regular), 1)[0] == pytest.approx(-1, abs=0.1)
    assert math.log(random[1] / random[0]) / (2 * math.log(16)) == pytest.approx(-0.5, abs=0.15)


def test_energy_of_the_gradient_flow_never_falls() -> None:
    B = np.array([[1.5, 0.3], [0.3, 0.8]])
    for law, matrix in (
        (circle_density(lambda a: 1 + 0.4 * np.cos(a) + 0.3 * np.sin(2 * a), points=64), B),
        (axial_density(5, lambda u: 1 + 0.5 * u, points=64), np.diag([1.5, 0.7, 0.7, 0.7, 0.7])),
    ):
        run = simulate_density(law, SphereFlow(matrix, matrix, 4.0), time=1.6, every=0.2)
        energy = lyapunov(run).interaction
        assert energy is not None
        assert np.diff(energy).min() > -1e-10
        assert energy[-1] > energy[0] + 0.02


def test_error_falls_with_the_length_of_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Order of the quadrature: two panels of 16 nodes, then four; the kernel is integrated to degree 29."""
    angles = np.linspace(0, math.pi, 9)
    kernel = CircleKernel(200 * np.eye(2))
    exact = on_circle(angles) * (ive(1, 200) / ive(0, 200))

    def error(count: int) -> float:
        law = circle_density(points=count)
        return float(np.abs(kernel.mean(angles, law.angles.ravel(), law.masses)[0] - exact).max())

    coarse, fine = error(8 * panels.NODES), error(16 * panels.NODES)
    assert coarse > 1e-9
    assert fine < coarse / 2**8
    assert error(32 * panels.NODES) < 1e-13


def test_tolerance_is_kept() -> None:
    flow = SphereFlow(np.array([[2.0, 0.4], [-0.3, 1.0]]), np.array([[1.0, 0.2], [0.1, 1.5]]), 12.0)
    law = circle_density(tilted)
    fine = simulate_density(law, flow, time=2.0, every=2.0, tolerance=1e-12).final
    shares = np.linspace(0.01, 0.99, 60)
    for tolerance, bound in ((1e-9, 1e-7), (1e-5, 1e-3)):
        found = simulate_density(law, flow, time=2.0, every=2.0, tolerance=tolerance).final
        assert np.abs(on_circle(found.quantile(shares)) - on_circle(fine.quantile(shares))).max() < bound


def test_distance_to_a_density_is_that_to_its_fine_quantiles() -> None:
    law = circle_density(tilted)
    tokens = on_circle(law.quantile(np.random.default_rng(5).random(60)))
    for metric in ("chordal", "geodesic"):
        fine = wasserstein(law.quantiles(1500).points, tokens, metric=metric, method="exact")
        assert float(wasserstein(tokens, law, metric=metric)) == pytest.approx(float(fine), abs=1e-5)


def test_what_a_density_is_and_what_it_refuses() -> None:
    law = axial_density(4, axis=[0.0, 0.0, 3.0, 4.0])
    assert law.axis == pytest.approx([0, 0, 0.6, 0.8])
    assert law.second_moment == pytest.approx(np.eye(4) / 4, abs=1e-13)
    angles, values = circle_density(tilted).curve()
    assert values == pytest.approx(tilted(angles) / (2 * math.pi), rel=1e-9)
    assert repr(law) == "<SphereDensity about an axis in 4 dimensions, 256 nodes>"
    jump = circle_density(lambda a: np.where(a < 1, 1.0, 0.0))
    assert jump.quantile([0.5]) == pytest.approx([0.5], abs=1e-9)
    flow = SphereFlow(np.eye(4), np.diag([1.0, 2.0, 3.0, 4.0]), 1.0)
    with pytest.raises(InputError, match="V must be b a a"):
        simulate_density(law, flow, time=1.0)
    with pytest.raises(InputError, match="density must be a SphereDensity"):
        simulate_density(np.eye(2), flow, time=1.0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="flow must be a SphereFlow without a mask"):
        simulate_density(law, SphereFlow(causal=True), time=1.0)
    with pytest.raises(InputError, match="time must be positive"):
        simulate_density(law, SphereFlow(), time=-1.0)
    with pytest.raises(InputError, match="axis must be 3 numbers"):
        axial_density(3, axis=[1.0, 0.0])
    with pytest.raises(InputError, match="density must give"):
        circle_density(lambda a: -np.ones(len(a)))
    with pytest.raises(InputError, match="positive somewhere"):
        circle_density(lambda a: 0 * a)
    with pytest.raises(InputError, match=r"shares must lie in \[0, 1\]"):
        law.quantile([1.5])
    with pytest.raises(InputError, match="must lie on the unit sphere in 4 dimensions"):
        wasserstein(law, np.eye(3))
    with pytest.raises(InputError, match="cannot be a density"):
        wasserstein(law, law)
    with pytest.raises(InputError, match="must be closer to the points"):
        wasserstein(circle_density(), [[1.0, 0.0]])
    assert isinstance(law, SphereDensity)
