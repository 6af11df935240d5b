"""Infinite depth under masks, heads and steps: closed forms against plain loops, and the symmetries they must have."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.attention.heads import Head
from hardmax.attention.masks import Mask
from hardmax.attention.moves import GeometricSteps, PowerSteps
from hardmax.distributed import Processes
from hardmax.dynamics.family import ExactFamilyProcess, FamilyProcess
from hardmax.dynamics.leadership import Undecided, leaders_of_groups
from hardmax.dynamics.process import HardmaxProcess
from hardmax.dynamics.process_setup import start
from hardmax.errors import InputError
from helpers import examples, spd
from threads import with_processes

Row = list[Fraction]


def dot(left: Row, right: Row) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def plain_layer(
    z: list[Row], matrices: list[list[Row]], shares: list[Fraction], mass: list[Fraction], causal: bool, alpha: Fraction
) -> list[Row]:
    """One layer by the definition, in plain loops over fractions."""
    moved, d = [], len(z[0])
    for i in range(len(z)):
        seen, mean = range(i + 1) if causal else range(len(z)), [Fraction(0)] * d
        for A, share in zip(matrices, shares, strict=True):
            query = [dot(row, z[i]) for row in A]
            best = max(dot(query, z[k]) for k in seen)
            members = [k for k in seen if dot(query, z[k]) == best]
            total = sum(mass[k] for k in members)
            for k in members:
                mean = [m + share * mass[k] / total * x for m, x in zip(mean, z[k], strict=True)]
        moved.append([(x + alpha * m) / (1 + alpha) for x, m in zip(z[i], mean, strict=True)])
    return moved


def float_layer(
    z: np.ndarray, matrices: list[np.ndarray], shares: list[float], causal: bool, alpha: float
) -> np.ndarray:
    """Next tokens, by dense float scores, without ties."""
    heard = np.zeros_like(z)
    for A, share in zip(matrices, shares, strict=True):
        scores = (z @ A.T) @ z.T
        if causal:
            scores = np.where(np.tril(np.ones((len(z), len(z)), dtype=bool)), scores, -np.inf)
        heard += share * z[scores.argmax(axis=1)]
    return (z + alpha * heard) / (1 + alpha)


def grid(
    seed: int, count: int, size: int, heads: int, definite: bool
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Tokens of an integer grid, with repetitions, a score matrix per head and weights."""
    rng = random.Random(seed)  # noqa: S311
    tokens = [[rng.randint(-size, size) for _ in range(2)] for _ in range(count)]
    matrices = []
    for _ in range(heads):
        M = np.array([[rng.randint(-2, 2) for _ in range(2)] for _ in range(2)], dtype=float)
        plain = definite and rng.random() < 0.4
        matrices.append(np.eye(2) if plain else M @ M.T + np.eye(2) if definite else M)
    return np.array(tokens, dtype=float), matrices, np.array([rng.randint(1, 3) for _ in range(count)], dtype=float)


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("causal", [True, False])
def test_every_layer_equals_plain_loops_over_fractions(causal: bool, heads: int, definite: bool) -> None:
    decided = 0
    for seed in range(2):
        alpha: Fraction | PowerSteps = Fraction(1, 2) if seed % 2 else PowerSteps(1.0, power=1.0)
        tokens, matrices, weights = grid(seed, 7, 1 + seed % 3, heads, definite)
        layer = hm.HardmaxLayer(alpha, heads=matrices, causal=causal, tolerance="exact")
        mass = torch.from_numpy(weights)
        started = start(torch.from_numpy(tokens), mass, layer)
        z = [[Fraction(x) for x in row] for row in tokens.tolist()]
        As = [[[Fraction(x) for x in row] for row in A.tolist()] for A in matrices]
        for t in range(10):
            places = started.process.exact_positions(t)  # type: ignore[union-attr]
            point_of = range(len(z)) if started.found.point_of is None else started.found.point_of.tolist()
            mine = [[Fraction(int(x.p), int(x.q)) for x in places[point]] for point in point_of]
            assert mine == z, (seed, t)
            step = Fraction(layer.alpha_at(t))
            shares = [Fraction(1, heads)] * heads
            following = plain_layer(z, As, shares, [Fraction(w) for w in weights], causal, step)
            if t == 9:
                goals = [
                    [x + (y - x) * (1 + step) / step for x, y in zip(a, b, strict=True)]
                    for a, b in zip(z, following, strict=True)
                ]
            z = following
            if not started.process.done:
                started.process.move()
        if isinstance(started.process, ExactFamilyProcess):
            limit, reasons = started.limit().tolist(), started.reasons().tolist()
            for i, point in enumerate(point_of):
                future = started.process._future.get(point)
                assert (future is None) == (reasons[i] > 0)
                if future is not None and future.straight and future.layer <= 9:
                    assert limit[i] == [float(x) for x in goals[i]]  # a straight token hears its target
                    decided += 1
    assert decided > 0 or (heads == 1 and not causal)


@pytest.mark.parametrize(("causal", "heads"), [(True, 1), (True, 2), (False, 2), (False, 3)])
def test_floats_decide_what_rationals_decide(causal: bool, heads: int) -> None:
    both = 0
    for seed in range(4):
        tokens, matrices, weights = grid(100 + seed, 8, 1 + seed % 3, heads, definite=seed % 3 > 0)
        options = {"heads": matrices, "causal": causal}
        real = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, **options), weights=weights, max_layers=9)
        exact = hm.equilibrium(
            tokens, hm.HardmaxLayer(0.5, tolerance="exact", **options), weights=weights, max_layers=9
        )
        known = (real.decided_at >= 0) & (exact.decided_at >= 0)
        np.testing.assert_allclose(real.positions[known], exact.positions[known], atol=1e-12)
        if known.all():
            np.testing.assert_array_equal(real.leaders, exact.leaders)
            np.testing.assert_array_equal(real.choices, exact.choices)
        both += int(known.sum())
    assert both > 8


@pytest.mark.parametrize(
    ("causal", "heads", "d"), [(True, 1, 2), (True, 2, 8), (True, 4, 2), (False, 2, 2), (False, 4, 3)]
)
def test_decided_tokens_are_loyal_and_arrive(causal: bool, heads: int, d: int) -> None:
    rng = np.random.default_rng(10 * heads + d)
    tokens = rng.normal(size=(30, d))
    matrices = [spd(rng, d) for _ in range(heads)]
    layer = hm.HardmaxLayer(0.5, heads=matrices, causal=causal)
    started = start(torch.from_numpy(tokens), torch.ones(30, dtype=torch.float64), layer)
    while not started.process.done and started.process.layer < 16:
        started.process.move()
    known = (started.process.decided_at >= 0).numpy()
    z = tokens
    for t in range(160):
        if t >= started.process.layer and t % 10 == 0:
            np.testing.assert_allclose(started.positions(t).numpy()[known], z[known], atol=1e-12)
        z = float_layer(z, matrices, [1 / heads] * heads, causal, 0.5)
    limit = hm.equilibrium(tokens, layer, max_layers=16)
    np.testing.assert_allclose(z[known], limit.positions[known], atol=1e-6)  # some approach slowly
    if heads == 1:
        assert known.all()
    assert known.mean() > 0.5
    assert limit.reasons is None or ((limit.reasons > 0) == ~known).all()
    assert sum(limit.undecided_reasons.values()) == (~known).sum()


def test_chains_of_followers_are_decided_together() -> None:
    # Two tokens, each the best of one head, approach one another and all others follow: no token is ever fixed.
    rng = np.random.default_rng(3)
    corners = np.array([[2.0, 0.5], [0.5, 2.0]])
    tokens = np.concatenate([corners, 0.2 * rng.random((12, 2)) + 0.3])
    matrices = [np.diag([1.0, 0.001]), np.diag([0.001, 1.0])]
    for tolerance in (None, "exact"):
        layer = hm.HardmaxLayer(0.5, heads=matrices, tolerance=tolerance)
        limit = hm.equilibrium(tokens, layer, max_layers=8)
        assert limit.outcome.ok, limit
        np.testing.assert_allclose(limit.positions, np.full_like(tokens, 1.25), atol=1e-12)
        assert limit.leaders.tolist() == [0]


def test_tokens_that_meet_may_be_overtaken() -> None:
    # The first two tokens listen to one another and retreat from the hull, and then the third one scores higher.
    tokens = np.array([[2.0, 0.5], [0.5, 2.0], [1.625, -3.0]])
    matrices = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    layer = hm.HardmaxLayer(0.5, heads=matrices, tolerance="exact")
    process = start(torch.from_numpy(tokens), torch.ones(3, dtype=torch.float64), layer).process
    assert isinstance(process, ExactFamilyProcess)
    z = [[Fraction(x) for x in row] for row in tokens.tolist()]
    As = [[[Fraction(x) for x in row] for row in A.tolist()] for A in matrices]
    for t in range(10):
        assert [[Fraction(int(x.p), int(x.q)) for x in row] for row in process.exact_positions(t)] == z
        z = plain_layer(z, As, [Fraction(1, 2)] * 2, [Fraction(1)] * 3, False, Fraction(1, 2))
        if not process.done:
            process.move()


def test_the_basic_layer_keeps_its_process() -> None:
    tokens = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 2)))
    mass = torch.ones(50, dtype=torch.float64)
    assert isinstance(start(tokens, mass, hm.HardmaxLayer(0.5)).process, HardmaxProcess)
    assert isinstance(start(tokens, mass, hm.HardmaxLayer(0.5, causal=True)).process, FamilyProcess)


tokens_of_a_kind = st.sampled_from(["gaussian", "grid", "repeated", "zeros"])


def tokens_for(kind: str, seed: int, n: int, d: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(n, d))
    if kind == "grid":
        tokens = rng.integers(-2, 3, size=(n, d)).astype(float)
    if kind == "repeated":
        tokens = tokens[rng.integers(0, max(1, n // 3), size=n)]
    if kind == "zeros":
        tokens[rng.random(n) < 0.3] = 0.0
    return tokens


@settings(deadline=None, max_examples=examples(15))
@given(kind=tokens_of_a_kind, seed=st.integers(0, 2**20), n=st.integers(2, 40), heads=st.integers(1, 2), data=st.data())
def test_a_prefix_has_the_limit_of_its_own(kind: str, seed: int, n: int, heads: int, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, n - 1))
    tokens, rng = tokens_for(kind, seed, n), np.random.default_rng(seed + 1)
    weights = rng.uniform(0.5, 2.0, size=n)
    layer = hm.HardmaxLayer(0.5, heads=[spd(rng, 2) for _ in range(heads)], causal=True)
    depth = 12  # both runs go equally far, so that undecided tokens can be compared
    whole = hm.equilibrium(tokens, layer, weights=weights, max_layers=depth)
    part = hm.equilibrium(tokens[:m], layer, weights=weights[:m], max_layers=depth)
    decided = part.decided_at >= 0
    np.testing.assert_array_equal(whole.decided_at[:m], part.decided_at)
    np.testing.assert_array_equal(whole.positions[:m][decided], part.positions[decided])
    np.testing.assert_array_equal(whole.follows[:m], part.follows)
    np.testing.assert_array_equal(whole.choices[:, :m], part.choices)
    assert whole.leaders[whole.leaders < m].tolist() == part.leaders.tolist()
    if whole.layers == part.layers and part.reasons is not None and whole.reasons is not None:
        np.testing.assert_array_equal(whole.reasons[:m], part.reasons)
        np.testing.assert_array_equal(whole.positions[:m], part.positions)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", ["gaussian", "grid"])
def test_equal_heads_are_one_head(kind: str, causal: bool) -> None:
    tokens, A = tokens_for(kind, 3, 60), spd(np.random.default_rng(4), 2)
    one = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, A, causal=causal))
    three = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, heads=[A, A, A], causal=causal))
    for name in ("positions", "leaders", "follows", "decided_at", "emerged_at"):
        np.testing.assert_array_equal(getattr(one, name), getattr(three, name))
    assert one.choices.shape == (1, 60)
    np.testing.assert_array_equal(three.choices, np.tile(one.follows, (3, 1)))


@pytest.mark.parametrize("causal", [True, False])
def test_the_order_of_heads_does_not_matter(causal: bool) -> None:
    tokens, matrices, _ = grid(5, 9, 2, 3, definite=True)
    shares = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))

    def limit(order: list[int], tolerance: str | None) -> hm.Equilibrium:
        layer = hm.HardmaxLayer(
            0.5,
            heads=[matrices[h] for h in order],
            shares=[shares[h] for h in order],
            causal=causal,
            tolerance=tolerance,
        )
        return hm.equilibrium(tokens, layer, max_layers=12)

    first, other = limit([0, 1, 2], "exact"), limit([2, 0, 1], "exact")
    np.testing.assert_array_equal(first.positions, other.positions)
    np.testing.assert_array_equal(first.choices[[2, 0, 1]], other.choices)
    real = limit([2, 0, 1], None)
    np.testing.assert_array_equal(first.decided_at < 0, real.decided_at < 0)
    np.testing.assert_allclose(first.positions, real.positions, atol=1e-12)


@pytest.mark.parametrize(("kind", "n"), [("gaussian", 400), ("grid", 40), ("zeros", 40)])
def test_constant_steps_are_the_constant(kind: str, n: int) -> None:
    tokens = tokens_for(kind, 7, n)
    one = hm.equilibrium(tokens, hm.HardmaxLayer(0.5), max_layers=100)
    other = hm.equilibrium(tokens, hm.HardmaxLayer(PowerSteps(0.5, power=0.0)), max_layers=100)
    known = (one.decided_at >= 0) & (other.decided_at >= 0)
    assert known.mean() > 0.8
    np.testing.assert_array_equal(one.leaders, other.leaders)
    np.testing.assert_array_equal(one.follows[known], other.follows[known])
    np.testing.assert_allclose(one.positions[known], other.positions[known], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 2.0**-40, 1e300])
def test_sizes_of_tokens_and_matrices_do_not_matter(scale: float) -> None:
    rng = np.random.default_rng(2)
    power = 2.0 ** round(np.log2(scale))
    tokens, matrices = rng.normal(size=(40, 3)), [spd(rng, 3), spd(rng, 3)]
    plain = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, heads=matrices, causal=True), max_layers=30)
    layer = hm.HardmaxLayer(0.5, heads=[matrices[0] / power, matrices[1] * 2.0], causal=True)
    scaled = hm.equilibrium(tokens * power, layer, max_layers=30)
    np.testing.assert_array_equal(scaled.positions, plain.positions * power)
    np.testing.assert_array_equal(scaled.choices, plain.choices)


@pytest.mark.parametrize(
    ("causal", "heads", "steps"),
    [
        (True, 1, GeometricSteps(0.5, ratio=0.8)),
        (False, 1, GeometricSteps(1.0, 0.6)),
        (True, 2, GeometricSteps(1.0, 0.6)),
    ],
)
def test_steps_of_a_finite_sum_stop_short(steps: GeometricSteps, causal: bool, heads: int) -> None:
    rng = np.random.default_rng(8)
    tokens, matrices = rng.normal(size=(40, 2)), [spd(rng, 2) for _ in range(heads)]
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(steps, heads=matrices, causal=causal))
    z = tokens
    for t in range(250):
        z = float_layer(z, matrices, [1 / heads] * heads, causal, steps.at(t))
    np.testing.assert_allclose(limit.positions, z, atol=1e-12)  # undecided tokens stopped too
    known = limit.decided_at >= 0
    assert known.mean() > 0.8
    moved = known & (limit.follows != np.arange(40))
    assert np.abs(limit.positions - limit.positions[limit.follows])[moved].max() > 1e-3
    assert len(limit.limit_points) > len(limit.leaders)


def test_steps_of_an_infinite_sum_arrive() -> None:
    tokens = tokens_for("gaussian", 9, 200)
    slow = hm.equilibrium(tokens, hm.HardmaxLayer(PowerSteps(1.0, power=1.0), causal=True))
    assert slow.outcome.ok
    np.testing.assert_array_equal(slow.positions, tokens[slow.follows])


def test_a_leader_that_does_not_lead_in_sight_is_left() -> None:
    # Token 2 first listens to token 0, but in the direction of token 0 the later token 1 scores higher.
    tokens = np.array([[1.0, 0.0], [3.0, -4.0], [0.3, 0.2]])
    for tolerance in (None, "exact"):
        early = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, causal=True, tolerance=tolerance), max_layers=0)
        assert early.reasons is not None
        assert early.reasons.tolist() == [0, 0, Undecided.NOT_LEADING_IN_SIGHT]
        assert "1 following a token that does not lead in its sight" in str(early)
        late = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, causal=True, tolerance=tolerance))
        assert late.follows.tolist() == [0, 1, 1]


@pytest.mark.parametrize("causal", [True, False])
def test_a_target_outside_a_cone_is_named_with_the_head(causal: bool) -> None:
    named = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        tokens, matrices = rng.normal(size=(40, 2)), [spd(rng, 2) for _ in range(3)]
        limit = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, heads=matrices, causal=causal), max_layers=0)
        assert limit.reasons is not None
        for i in np.flatnonzero(limit.reasons >= Undecided.OUTSIDE_CONE):
            seen = tokens[: i + 1] if causal else tokens
            members = [int((seen @ A @ tokens[i]).argmax()) for A in matrices]
            target = tokens[members].mean(axis=0)
            misses = [int((seen @ A @ target).argmax()) != k for A, k in zip(matrices, members, strict=True)]
            assert misses.index(True) == limit.reasons[i] - Undecided.OUTSIDE_CONE
            assert set(members) <= set(limit.leaders.tolist())
            named += 1
    assert named > 0


def test_a_state_that_repeats_ends_the_run() -> None:
    # A quarter turn sends every token to the next corner of a square, for ever; a fixed token far away does not matter.
    tokens = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    layer = hm.HardmaxLayer(1.0, heads=[turn, turn @ turn @ turn], shares=(0.75, 0.25))
    limit = hm.equilibrium(tokens, layer, max_layers=3000)
    assert limit.layers < 3000
    assert (limit.decided_at < 0).all()
    assert sum(limit.undecided_reasons.values()) == 4


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (hm.HardmaxLayer(0.5, causal=True, window=3), "the hull of what a token sees may grow"),
        (hm.HardmaxLayer(0.5, heads=[Head(V=[[2.0, 0.0], [0.0, 1.0]])]), "V = identity"),
        (hm.HardmaxLayer(0.5, heads=[Head(bias=np.zeros((5, 5)))]), "bias"),
    ],
)
def test_layers_without_a_closed_form_are_refused(layer: hm.HardmaxLayer, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hm.equilibrium(np.ones((5, 2)), layer)


@pytest.mark.parametrize("tolerance", [None, "exact"])
def test_tokens_that_see_themselves_alone_stay(tolerance: str | None) -> None:
    tokens = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-2.0, 1.0]])
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, window=1, tolerance=tolerance))
    np.testing.assert_array_equal(limit.positions, tokens)
    assert limit.leaders.tolist() == [0, 1, 3]
    assert limit.follows.tolist() == [0, 1, 0, 3]


@pytest.mark.parametrize("tolerance", [None, "exact"])
def test_tokens_that_see_later_ones_are_causal_in_reverse(tolerance: str | None) -> None:
    tokens = tokens_for("grid", 12, 20)
    causal = hm.HardmaxLayer(0.5, causal=True, tolerance=tolerance)
    reverse = copy.copy(causal)
    object.__setattr__(reverse, "mask", Mask(before=0))
    one, other = hm.equilibrium(tokens, causal), hm.equilibrium(tokens[::-1].copy(), reverse)
    np.testing.assert_array_equal(one.positions, other.positions[::-1])
    np.testing.assert_array_equal(one.follows, 19 - other.follows[::-1])
    assert {t: m.tolist() for t, m in one.ties.items()} == {19 - t: sorted(19 - m) for t, m in other.ties.items()}


@pytest.mark.parametrize("tolerance", [None, "exact"])
@pytest.mark.parametrize(
    ("tokens", "causal", "limit"),
    [
        # tied with itself and two leaders on one face: it stays at their mean
        ([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]], True, [[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]),
        # the same from inside the face: it moves to the mean of the leaders
        ([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0]], True, [[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]),
        # tied with the leaders and with a token that stays for ever in the middle of the face
        ([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [0.5, 0.0]], True, [[1.0, 1.0], [1.0, -1.0], [1.0, 0.0], [1.0, 0.0]]),
    ],
)
def test_ties_that_last(tokens: list, causal: bool, limit: list, tolerance: str | None) -> None:
    found = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, causal=causal, tolerance=tolerance))
    assert found.outcome.ok
    np.testing.assert_allclose(found.positions, limit, atol=1e-12)
    assert found.ties[len(tokens) - 1].tolist() == [0, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda d: hm.HardmaxLayer(0.5, causal=True),
        lambda d: hm.HardmaxLayer(0.5, heads=[np.eye(d), np.diag(np.arange(1.0, d + 1))]),
        lambda d: hm.HardmaxLayer(PowerSteps(1.0), causal=True, heads=[np.eye(d), np.diag(np.arange(1.0, d + 1))]),
    ],
)
def test_processes_give_the_same_limit(make: Callable[[int], hm.HardmaxLayer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardmax.dynamics.distributed._PAIRS_WORTH_SPLITTING", 1)
    tokens, layer = tokens_for("grid", 1, 50), make(2)
    whole = hm.equilibrium(tokens, layer, max_layers=20)

    def work(ranks: Processes) -> hm.Equilibrium:
        return hm.equilibrium(ranks.share(tokens), layer, processes=ranks, max_layers=20)

    for split in with_processes(2, work):
        for name in ("positions", "leaders", "emerged_at", "follows", "decided_at", "choices"):
            np.testing.assert_array_equal(getattr(split, name), getattr(whole, name), err_msg=name)
        assert (split.undecided_reasons, str(split.outcome)) == (whole.undecided_reasons, str(whole.outcome))


def test_tokens_that_listen_to_one_another_alone_are_a_group_with_a_leader() -> None:
    """A cycle without a leader: one member is named as the leader of all."""
    nobody, ties = torch.full((3,), -1), {}
    found = list(leaders_of_groups([0, 1, 2], {0: [[1]], 1: [[2]], 2: [[0]]}, nobody, ties))
    assert sorted(token for token, _, _ in found) == [0, 1, 2]
    assert {tuple(map(tuple, leaders)) for _, leaders, _ in found} == {((1,),)}


@pytest.mark.parametrize("tolerance", [None, "exact"])
def test_assumptions_are_those_of_all_heads_and_of_the_tokens(tolerance: str | None) -> None:
    positive, indefinite, skew = np.eye(2), np.diag([1.0, -1.0]), np.array([[1.0, 1.0], [0.0, 1.0]])
    apart, repeated = [[1.0, 2.0], [3.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]]
    for tokens, distinct in ((apart, True), (repeated, False)):
        for second, symmetric, definite in ((2 * positive, True, True), (indefinite, True, False), (skew, False, True)):
            layer = hm.HardmaxLayer(0.5, heads=[positive, second], causal=True, tolerance=tolerance)
            found = hm.equilibrium(tokens, layer, max_layers=3).assumptions
            assert (found.distinct, found.symmetric) == (distinct, symmetric)
            if symmetric:
                assert found.positive_definite == definite
            assert not found.basic
