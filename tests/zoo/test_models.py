"""The models of the field: what they measure beside what theory predicts, in small versions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad, solve_ivp
from scipy.special import iv

import hardmax as hm
from hardmax import zoo
from hardmax.citations import PAPERS_OF_MODEL
from hardmax.zoo.model import equiangular_tokens
from hardmax.zoo.synchronisation import ott_antonsen

SMALL = {
    "kuramoto": {"n": 20},
    "sphere_attention": {"n": 8},
    "metastable": {"n": 12},
    "causal_sphere": {"n": 6},
    "normalisation": {"n": 6, "step": 0.5},
    "equiangular": {"n": 6},
    "long_context": {"n": 8},
    "noisy": {"n": 12},
    "multi_head": {"n": 6},
    "value_spectrum": {"n": 8},
    "sinkhorn": {"n": 8},
    "frank_wolfe": {"n": 8},
    "rank_collapse": {"n": 8},
}


@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_model_runs_measures_and_cites(name: str) -> None:
    model = getattr(zoo, name)(**SMALL[name])
    length = {"time": 0.5} if model.in_time else {"depth": min(4, int(model.duration))}
    run = model.run(random_state=1, **length)
    again = model.with_parameters().run(random_state=1, **length)
    np.testing.assert_array_equal(run.tokens, again.tokens)
    assert run.tokens.shape[1:] == (model.n, model.d)
    np.testing.assert_allclose(model.start(random_state=1), run.tokens[0], atol=1e-14)
    for measure in model.measures:
        value = model.measure(measure, run)
        assert isinstance(value, float)
        assert math.isfinite(value)
    assert set(model.theory) <= set(model.measures)
    assert all(len(pair) == 2 for pair in model.compare(run).values())
    assert PAPERS_OF_MODEL[name][0] in hm.citation(model)
    assert hm.citation(model) == hm.citation(getattr(zoo, name))
    assert "arXiv:" in model.reference
    assert model.equation
    assert str(model).startswith(name)


def test_models_are_listed_once() -> None:
    assert sorted(zoo.MODELS) == sorted(SMALL) == sorted(PAPERS_OF_MODEL)


def test_kuramoto_follows_its_order_parameter() -> None:
    model = zoo.kuramoto(coupling=1.0, initial=0.1)
    for time in (1.0, 3.0, 5.0):
        measured, theory = model.compare(model.run(time=time, random_state=0))["order"]
        assert measured == pytest.approx(theory, rel=1e-6)
    # The closed form against the equation that it solves: r' = K r (1 - r^2)/2 - D r.
    for K, D in ((1.0, 0.0), (2.0, 0.5), (1.0, 0.5), (0.5, 0.5)):
        h = 1e-6
        slope = (ott_antonsen(0.3, 1 + h, K, D) - ott_antonsen(0.3, 1 - h, K, D)) / (2 * h)
        r = ott_antonsen(0.3, 1.0, K, D)
        assert slope == pytest.approx(K * r * (1 - r * r) / 2 - D * r, rel=1e-6, abs=1e-9)


def test_kuramoto_with_frequencies_reaches_the_known_order() -> None:
    model = zoo.kuramoto(coupling=2.0, width=0.5, n=1000)
    run = model.run(time=14.0, step=0.1, random_state=0)
    assert model.critical["coupling"] == 1.0
    assert model.measure("order", run) == pytest.approx(math.sqrt(1 - 2 * 0.5 / 2.0), rel=0.02)
    below = zoo.kuramoto(coupling=0.5, width=0.5, n=1000, initial=0.5).run(time=14.0, step=0.1, random_state=0)
    assert model.measure("order", below) < 0.06


def test_tokens_of_a_hemisphere_meet_with_rate_two_and_growing_energy() -> None:
    model = zoo.sphere_attention(beta=2.0, n=24)
    run = model.run(time=9.0, step=0.1, random_state=0)
    assert model.compare(run)["rate"] == (pytest.approx(2.0, rel=1e-3), 2.0)
    energies = [np.exp(2.0 * (z @ z.T)).mean() for z in run.tokens]
    assert (np.diff(energies) > -1e-12).all()


def test_the_energy_of_clusters_climbs_a_staircase() -> None:
    model = zoo.metastable(n=30)
    values = []
    for time in (2.0, 60.0):
        measured, theory = model.compare(model.run(time=time, step=0.25, random_state=0))["energy"]
        assert measured == pytest.approx(theory, abs=2e-3)
        values.append(measured)
    # Three clusters, then clusters of two thirds and one third of the tokens: 1/3 and 5/9 up to what leaks between.
    assert values[0] == pytest.approx(1 / 3, abs=0.07)
    assert values[1] == pytest.approx(5 / 9, abs=0.01)


def test_causal_tokens_tend_to_the_first() -> None:
    model = zoo.causal_sphere(beta=1.0, n=8)
    early, late = model.run(time=2.0, random_state=3), model.run(time=40.0, step=0.2, random_state=3)
    assert model.compare(early)["angle"] == (
        pytest.approx(model.theory["angle"](early), rel=1e-6),
        pytest.approx(0.0, abs=4),
    )
    assert model.measure("moved", late) < 1e-14
    assert model.measure("farthest", late) < 1e-4


def test_equiangular_tokens_follow_the_scalar_equation() -> None:
    for beta in (0.0, 1.0, 6.0):
        model = zoo.equiangular(rho=0.1, beta=beta, n=12)
        run = model.run(time=2.0)
        measured, theory = model.compare(run)["cosine"]
        assert measured == pytest.approx(theory, rel=1e-6)
        gram = run.final @ run.final.T
        np.testing.assert_allclose(gram, np.full((12, 12), measured) + (1 - measured) * np.eye(12), atol=1e-12)


def test_several_heads_add_their_rates() -> None:
    model = zoo.multi_head(betas=(0.5, 8.0), shares=(1.0, 2.0), rho=0.1, n=10)
    measured, theory = model.compare(model.run(time=1.5))["cosine"]
    assert measured == pytest.approx(theory, rel=1e-6)
    # One head twice with half the share is one head.
    one, two = zoo.equiangular(0.1, 3.0, n=8), zoo.multi_head((3.0, 3.0), rho=0.1, n=8)
    np.testing.assert_allclose(two.run(time=1.0).final, one.run(time=1.0).final, atol=1e-13)


@pytest.mark.parametrize("rho", [0.0, 0.2, 0.5])
def test_the_critical_scale_of_long_contexts(rho: float) -> None:
    # Bisection for the gamma at which a token has half of its attention on itself.
    low, high = 0.5 / (1 - rho), 2.0 / (1 - rho)
    for _ in range(12):
        middle = (low + high) / 2
        model = zoo.long_context(middle, rho, n=300)
        low, high = (middle, high) if model.measure("own_weight", model.run()) < 0.5 else (low, middle)
    critical = zoo.long_context(1.0, rho).critical["gamma"]
    assert critical == 1 / (1 - rho)
    assert low == pytest.approx(critical, rel=0.02)


def test_long_context_predictions_are_those_of_the_layer() -> None:
    for gamma in (0.5, 1.25, 2.0):
        model = zoo.long_context(gamma, 0.3, n=60)
        for measured, theory in model.compare(model.run()).values():
            assert measured == pytest.approx(theory, rel=1e-12)


def test_normalisation_schemes_collapse_in_the_published_order() -> None:
    collapse, early = {}, {}
    for scheme in ("post", "pre", "peri", "nGPT", "mixed"):
        model = zoo.normalisation(scheme, n=16, step=0.04)
        for depth, into in ((25, early), (200, collapse)):
            run = model.run(depth=depth)
            measured, theory = model.compare(run)["cosine"]
            assert measured == pytest.approx(theory, abs=0.02)
            into[scheme] = 1 - measured
    # Exponential collapse where the speed stays bounded, like 1/t^2 where the length grows.
    assert collapse["nGPT"] < collapse["post"] < 1e-4
    assert 1e-3 < collapse["mixed"] < collapse["peri"] < collapse["pre"]
    # At first nGPT and peri move directions fastest: they divide by |A|, which is small for spread tokens.
    assert max(early["nGPT"], early["peri"]) < min(early["post"], early["pre"])


def test_pre_norm_collapses_with_the_square_of_depth() -> None:
    model = zoo.normalisation("pre", n=8, step=0.1)
    apart = [model.measure("collapse", model.run(depth=depth)) for depth in (400, 800)]
    assert apart[0] / apart[1] == pytest.approx(4.0, rel=0.03)


def test_rescaled_tokens_gather_on_hyperplanes_and_on_a_polytope() -> None:
    for seed in range(2):
        model = zoo.value_spectrum((1.0, 0.4), n=16)
        run = model.run(time=9.0, step=0.1, random_state=seed)
        assert 1 <= model.measure("hyperplanes", run) <= 3
        same = zoo.value_spectrum((1.0, 1.0), n=16)
        assert same.measure("on_boundary", same.run(time=9.0, step=0.1, random_state=seed)) == 1.0
        assert same.measure("on_boundary", same.run(time=0.1, random_state=seed)) < 1.0


def test_sinkhorn_attention_keeps_the_mean_and_softmax_does_not() -> None:
    model = zoo.sinkhorn(beta=1.0, coupling=0.5, n=12)
    run = model.run(time=1.0, random_state=0)
    assert model.compare(run)["mean"][0] == pytest.approx(model.theory["mean"](run), rel=1e-6)
    plain = hm.AttentionFlow(weighting=hm.Softmax(1.0), sphere=False, coupling=0.5)
    other = hm.simulate(run.tokens[0], plain, time=1.0, integrator="rk4")
    assert model.measure("mean", other) != pytest.approx(model.theory["mean"](run), rel=1e-2)


def test_frank_wolfe_ends_at_one_token_that_is_not_the_origin() -> None:
    model = zoo.frank_wolfe(alpha=0.5)
    for seed in range(3):
        tokens = model.start(random_state=seed)
        run = model.run(depth=60, random_state=seed)
        limit = hm.equilibrium(tokens, model.rule)
        assert len(limit.leaders) == 1
        np.testing.assert_allclose(run.final, np.broadcast_to(limit.positions, run.final.shape), atol=1e-9)
        size = float(np.linalg.norm(limit.positions, axis=-1).max())
        assert 1e-5 < size < 0.2 * float(np.linalg.norm(tokens, axis=1).max())
    assert model.compare(model.run(random_state=0))["contraction"][0] == pytest.approx(1 / 1.5, rel=1e-9)


def test_residuals_triple_their_digits_without_skip_connections() -> None:
    model = zoo.rank_collapse()
    measured, theory = model.compare(model.run(random_state=0))["exponent"]
    assert measured == pytest.approx(theory, rel=0.01)
    kept = zoo.rank_collapse(skip=0.5)
    run = kept.run(random_state=0)
    assert kept.measure("exponent", run) == pytest.approx(1.0, abs=0.05)
    assert kept.measure("residual", run) > 1e3 * model.measure("residual", model.run(random_state=0))


# Noise


@pytest.mark.parametrize("beta", [0.0, 1e-5, 0.5, 2.0, 10.0])
@pytest.mark.parametrize("d", [2, 3, 8])
def test_the_critical_coupling_is_where_the_first_harmonic_stops_decaying(beta: float, d: int) -> None:
    """Against the velocity field of a tilted uniform law, by quadrature over the angle to its axis."""

    def density(t: float) -> float:
        return (1 - t * t) ** ((d - 3) / 2)

    # Funk-Hecke: the field of the law 1 + eps x_1 is, to first order, K times the gradient of (lambda eps x_1), where
    # beta lambda = the mean of t exp(beta t); for small beta the mean of t^2.
    total = quad(lambda a: density(math.cos(a)) * math.sin(a), 0, math.pi)[0]
    mean = quad(
        lambda a: math.cos(a) ** 2 * _sinhc(beta * math.cos(a)) * density(math.cos(a)) * math.sin(a), 0, math.pi
    )
    eigenvalue = mean[0] / total
    assert zoo.critical_coupling(beta, d) == pytest.approx(0.5 / eigenvalue, rel=1e-7)
    assert zoo.critical_coupling(beta, d, noise=2.0) == pytest.approx(2.0 / eigenvalue, rel=1e-7)
    partition = quad(lambda a: math.exp(beta * math.cos(a)) * density(math.cos(a)) * math.sin(a), 0, math.pi)[0] / total
    assert zoo.critical_coupling(beta, d, normalised=True) == pytest.approx(0.5 * partition / eigenvalue, rel=1e-7)


def _sinhc(x: float) -> float:
    """Odd part of exp, divided by its argument: t exp(beta t)/beta averages to t^2 sinh(beta t)/(beta t)."""
    return math.sinh(x) / x if x else 1.0


@pytest.mark.parametrize(("d", "normalised"), [(2, False), (2, True), (3, False)])
def test_a_tilted_law_grows_above_the_critical_coupling(d: int, normalised: bool) -> None:
    """The velocity of many tokens, evenly spread and tilted a little, by the flow of the model itself."""
    model = zoo.noisy(coupling=1.0, beta=2.0, d=d, normalised=normalised)
    flow = model.rule.flow
    points = hm.circle_quantiles(400).points if d == 2 else hm.fibonacci_sphere(900).points
    points = np.asarray(points)
    tilted = torch.from_numpy(points)
    weights = torch.from_numpy(1 + 0.02 * points[:, 0])
    mean = (weights[:, None] * tilted).sum(dim=0) / weights.sum()
    drift = (weights[:, None] * flow.velocity(tilted, weights)).sum(dim=0) / weights.sum()
    growth = float(drift @ mean / (mean @ mean))
    critical = (d - 1) * 0.5 / growth
    assert critical == pytest.approx(model.critical["coupling"], rel=0.005)


def test_growth_measured_on_noisy_tokens_gives_the_critical_coupling() -> None:
    # Within 2 %: from three seeds, by extrapolation of the growth rate to zero.
    found = []
    for seed in range(3):
        model = zoo.noisy(coupling=0.4, beta=1.0, n=150)
        run = model.run(time=12.0, step=0.2, random_state=seed)
        found.append(0.4 / (1 + model.measure("growth", run) / 0.5))
    assert np.mean(found) == pytest.approx(model.critical["coupling"], rel=0.02)


def test_noise_separates_order_from_disorder() -> None:
    critical = zoo.critical_coupling(1.0, 2)
    above = zoo.noisy(coupling=2.5 * critical, beta=1.0, n=80).run(time=12.0, step=0.1, random_state=0)
    below = zoo.noisy(coupling=0.3 * critical, beta=1.0, n=80).run(time=12.0, step=0.1, random_state=0)
    measure = zoo.noisy(n=80).measures["order"]
    assert measure(above) > 0.7
    assert measure(below) < 0.25


def test_the_order_appears_at_the_critical_coupling_of_a_density() -> None:
    """An independent oracle: the Fokker-Planck equation on the circle, for the Fourier modes of an even density.

    With f = (1 + sum 2 c_k cos(k a))/(2 pi) and the force -K sum b_m c_m sin(m a), b_m = I_{m-1} - I_{m+1}, the modes
    obey c_k' = -k^2/2 c_k + (k K/2) sum_m b_m c_m (c_{k-m} - c_{k+m}).
    """
    beta, count = 1.0, 16
    m = np.arange(1, count + 1)
    strength = iv(m - 1, beta) - iv(m + 1, beta)

    def rates(t: float, c: np.ndarray, K: float) -> np.ndarray:
        whole = np.concatenate([c[::-1], [1.0], c, np.zeros(2 * count)])

        def at(k: np.ndarray) -> np.ndarray:
            return np.where(np.abs(k) <= count, whole[np.clip(k + count, 0, len(whole) - 1)], 0.0)

        force = strength * c
        pull = np.array([(force * (at(k - m) - at(k + m))).sum() for k in m])
        return -(m**2) / 2 * c + m * K / 2 * pull

    critical = zoo.critical_coupling(beta, 2)
    for share, grows in ((0.98, False), (1.02, True)):
        start = np.zeros(count)
        start[0] = 1e-3
        end = solve_ivp(rates, (0, 20), start, args=(share * critical,), method="LSODA", rtol=1e-8, atol=1e-12).y[:, -1]
        # The first mode grows or decays with the rate (share - 1)/2.
        assert (end[0] > start[0]) == grows
        assert math.log(end[0] / start[0]) / 20 == pytest.approx((share - 1) / 2, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "d"), [(0.0, 2), (1.0, 2), (2.0, 2), (1.0, 3), (1.0, 5)])
def test_the_critical_coupling_within_two_percent(beta: float, d: int) -> None:
    critical = zoo.critical_coupling(beta, d)
    for share in (0.3, 0.6):
        found = []
        for seed in range(3):
            model = zoo.noisy(coupling=share * critical, beta=beta, d=d, n=400)
            growth = model.measure("growth", model.run(time=25.0, step=0.1, random_state=seed))
            found.append(share * critical / (1 + growth / ((d - 1) * 0.5)))
        assert np.mean(found) == pytest.approx(critical, rel=0.02)


def test_tricritical_inverse_temperature() -> None:
    for d in (2, 3, 10):
        beta = zoo.tricritical_beta(d)
        assert iv(d / 2 + 1, beta) / iv(d / 2, beta) == pytest.approx(1 / d, rel=1e-10)


# Input


def test_sizes_of_a_run_may_differ_from_those_of_the_model() -> None:
    model = zoo.sphere_attention(n=5, d=3)
    assert model.run(n=7, d=2, time=0.1, random_state=0).tokens.shape[1:] == (7, 2)
    assert model.start(n=4, random_state=0).shape == (4, 3)
    assert zoo.equiangular(n=5).start(n=7).shape == (7, 7)
    with pytest.raises(hm.InputError, match="d must be 2 for kuramoto"):
        zoo.kuramoto(n=5).start(d=3)


def test_equiangular_tokens_have_the_cosine() -> None:
    for n, rho in ((2, 0.0), (7, 0.3), (40, 0.95)):
        tokens = equiangular_tokens(n, rho)
        np.testing.assert_allclose(tokens @ tokens.T, np.full((n, n), rho) + (1 - rho) * np.eye(n), atol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: zoo.kuramoto(width=-1.0), "width must be finite and not negative"),
        (lambda: zoo.kuramoto(initial=1.0), r"initial must lie in \(0, 1\)"),
        (lambda: zoo.sphere_attention(beta=math.nan), "beta must be finite and not negative"),
        (lambda: zoo.metastable(centres=(1.0,)), "centres must be at least two angles"),
        (lambda: zoo.causal_sphere(d=1), "d must be a whole number, at least 2"),
        (lambda: zoo.normalisation("layer"), "scheme must be one of"),
        (lambda: zoo.equiangular(rho=1.0), r"rho must lie in \[0, 1\)"),
        (lambda: zoo.long_context(gamma=-1.0), "gamma must be finite and not negative"),
        (lambda: zoo.noisy(noise=0.0), "noise must be positive"),
        (lambda: zoo.multi_head(betas=()), "betas must be one number per head"),
        (lambda: zoo.multi_head(shares=(1.0,)), "shares must be 2 numbers"),
        (lambda: zoo.value_spectrum(spectrum=1.0), "spectrum must be numbers"),
        (lambda: zoo.frank_wolfe(sign=0), "sign must be 1 or -1"),
        (lambda: zoo.rank_collapse(n=5), "n must be even"),
        (lambda: zoo.rank_collapse(skip=1.0), r"skip must lie in \[0, 1\)"),
        (lambda: zoo.kuramoto().run(depth=3), "depth is for layers; kuramoto is a flow"),
        (lambda: zoo.frank_wolfe().run(time=3.0), "time is for flows; frank_wolfe is made of layers"),
        (lambda: zoo.kuramoto().measure("colour", None), "measure is no measure of kuramoto"),
        (lambda: zoo.kuramoto().with_parameters(beta=1.0), "beta is no parameter of kuramoto"),
        (lambda: zoo.normalisation("mixed", step=1.0).run(depth=100), "depth is more than its 8 layers"),
    ],
)
def test_wrong_arguments_are_named(make, message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        make()
