"""Facts 1 to 6 of the hardmax map: in fractions without rounding, and in the results of the library."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.attention import reference
from hardmax.polytopes import Polytope
from helpers import examples
from rational_oracle import ALPHAS, System, dot, fractions, generic, tie_rich

SYSTEMS = st.one_of(tie_rich(), generic())


def on_many_systems(check: Callable[[System], None], number: int) -> None:
    """Run a check on fresh random systems, half of them rich in ties."""

    @settings(deadline=None, max_examples=number, suppress_health_check=list(HealthCheck), database=None)
    @given(SYSTEMS)
    def run(system: System) -> None:
        check(system)

    run()


def hulls_are_nested(system: System) -> None:
    for Z, following in pairwise(system.states):
        directions = {system.query(z) for z in [*Z, *following]}
        for u in directions | {tuple(-x for x in u) for u in directions}:
            assert max(dot(u, z) for z in following) <= max(dot(u, z) for z in Z)
        hull = Polytope.of(np.array(Z, dtype=float))
        assert hull.excess(np.array(following, dtype=float)).max() <= 1e-12


def a_norms_never_decrease(system: System) -> None:
    norms = [[system.squared_norm(z) for z in Z] for Z in system.states]
    for now, later in pairwise(norms):
        assert all(after >= before for before, after in zip(now, later, strict=True))


def the_longest_leads_from_layer_zero(system: System) -> None:
    Z = system.states[0]
    norms = {z: system.squared_norm(z) for z in Z}
    longest = [z for z in norms if norms[z] == max(norms.values())]
    if len(longest) > 1:
        return
    token = Z.index(longest[0])
    assert system.leads(0, token)
    for exact in (False, True):
        limit = hm.equilibrium(system.tokens, system.layer(exact=exact))
        assert dict(zip(limit.leaders.tolist(), limit.emerged_at.tolist(), strict=True))[token] == 0


def leaders_stay_leaders(system: System) -> None:
    for k in range(system.depth):
        for i, z in enumerate(system.states[k]):
            if system.leads(k, i):
                assert system.leads(k + 1, i)
                assert system.states[k + 1][i] == z


def followers_are_loyal(system: System) -> None:
    """From the sets C_i: one leader alone is followed for ever, by the closed form, and no other token joins."""
    for i in range(len(system.tokens)):
        for k in range(system.depth):
            heard = system.heard[k][i]
            if len(system.points_heard(k, i)) > 1 or not system.leads(k, heard[0]):
                continue
            leader = system.states[k][heard[0]]
            for m in range(system.depth - k + 1):
                assert system.points_heard(k + m, i) == {leader}
                share = (1 + system.alpha) ** -m
                now = zip(system.states[k][i], leader, strict=True)
                assert system.states[k + m][i] == tuple(y + share * (x - y) for x, y in now)
            break


def the_library_agrees(system: System, exact: bool) -> None:
    """Leaders with their layers, followers and positions, against the definitions."""
    run = hm.simulate(system.tokens, system.layer(exact=exact), depth=system.depth)
    truth = np.array(system.states, dtype=float)
    np.testing.assert_allclose(run.tokens, truth, rtol=0, atol=1e-10)
    assert run.leadership is not None
    found = run.leadership
    names = {z: i for i, z in reversed(list(enumerate(system.states[0])))}
    name_of = [names[z] for z in system.states[0]]

    emerged = dict(zip(found.leaders.tolist(), found.emerged_at.tolist(), strict=True))
    first = {i: next((k for k in range(system.depth + 1) if system.leads(k, i)), None) for i in set(name_of)}
    zero = all(x == 0 for z in system.states[0] for x in z)
    if not zero:
        assert emerged == {i: k for i, k in first.items() if k is not None}

    for i, (leader, since) in enumerate(zip(found.follows.tolist(), found.decided_at.tolist(), strict=True)):
        assert (leader < 0) == (since < 0)
        if since < 0:
            continue
        leaders = _leaders(found, i)
        assert leader == leaders[0]
        assert leader in emerged
        for k in range(since, system.depth + 1):
            heard = {name_of[j] for j in system.heard[k][i]}
            if len(leaders) == 1:
                assert heard == set(leaders)
            # A lasting tie is with leaders, with followers on their way to them, or both; no other token joins.
            assert set().union(*(_leaders(found, j) for j in heard)) == set(leaders)


def _leaders(found: hm.Leadership, token: int) -> list[int]:
    return found.ties[token].tolist() if token in found.ties else [int(found.follows[token])]


def check_exact(system: System) -> None:
    the_library_agrees(system, exact=True)


def check_rounded(system: System) -> None:
    the_library_agrees(system, exact=False)


def equilibria_agree(system: System) -> None:
    """The limit in floats and in rationals: all decided, the same leaders and followers, the same places."""
    exact = hm.equilibrium(system.tokens, system.layer(exact=True), max_layers=100)
    rounded = hm.equilibrium(system.tokens, system.layer(exact=False))
    for limit in (exact, rounded):
        assert limit.outcome.ending is hm.Ending.DECIDED
    for name in ("leaders", "emerged_at", "follows"):
        np.testing.assert_array_equal(getattr(rounded, name), getattr(exact, name), err_msg=name)
    assert {i: m.tolist() for i, m in rounded.ties.items()} == {i: m.tolist() for i, m in exact.ties.items()}
    np.testing.assert_allclose(rounded.positions, exact.positions, rtol=0, atol=1e-10)


def the_theorem_holds(system: System) -> None:
    """Theorem 1.1 itself, also for the repeated and the zero token: limits lie on the face with normal A s."""
    limit = hm.equilibrium(system.tokens, system.layer(exact=False))
    assert len(limit.leaders) >= 1
    K = limit.polytope
    assert K.vertex_indices.tolist() == list(range(len(limit.leaders)))
    queries = limit.limit_points @ system.A.T
    own = (queries * limit.limit_points).sum(axis=1)
    scale = max(np.abs(queries).max() * np.abs(limit.limit_points).max(), 1e-300)
    assert np.abs(K.support(queries) - own).max() <= 1e-10 * scale
    assert K.contains(limit.positions, tolerance=1e-10).all()


ALL_CHECKS = [
    hulls_are_nested,
    a_norms_never_decrease,
    the_longest_leads_from_layer_zero,
    leaders_stay_leaders,
    followers_are_loyal,
    check_exact,
    check_rounded,
    equilibria_agree,
    the_theorem_holds,
]


@pytest.mark.parametrize("check", ALL_CHECKS)
def test_no_violation(check: Callable[[System], None]) -> None:
    on_many_systems(check, examples(60))


@pytest.mark.slow
@pytest.mark.parametrize("check", ALL_CHECKS)
def test_no_violation_in_many_more_systems(check: Callable[[System], None]) -> None:
    on_many_systems(check, 1500)


def _moved(system: System, A: list[list[Fraction]], tokens: list[list[Fraction]]) -> list[list[list[Fraction]]]:
    states = [tokens]
    for _ in range(3):
        states.append(reference.hardmax_step(A, states[-1], system.alpha))
    return states


@settings(deadline=None, max_examples=examples(50))
@given(SYSTEMS, st.randoms(use_true_random=False))
def test_the_order_of_tokens_does_not_matter(system: System, random: object) -> None:
    order = list(range(len(system.tokens)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = _moved(system, system.matrix, [list(system.states[0][i]) for i in order])
    assert [[tuple(z) for z in Z] for Z in shuffled] == [[Z[i] for i in order] for Z in system.states[:4]]
    for exact in (False, True):
        layer = system.layer(exact=exact)
        limit = hm.equilibrium(system.tokens, layer)
        other = hm.equilibrium(system.tokens[order], layer)
        np.testing.assert_allclose(other.positions, limit.positions[order], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(other.decided_at, limit.decided_at[order])
        assert _leading_points(other, system.tokens[order]) == _leading_points(limit, system.tokens)


def _leading_points(limit: hm.Equilibrium, tokens: np.ndarray) -> dict[tuple[float, ...], int]:
    points = map(tuple, tokens[limit.leaders].tolist())
    return dict(zip(points, limit.emerged_at.tolist(), strict=True))


@settings(deadline=None, max_examples=examples(50))
@given(SYSTEMS, st.sampled_from([Fraction(1, 3), Fraction(2), Fraction(7, 4)]))
def test_the_size_of_a_does_not_matter(system: System, c: Fraction) -> None:
    larger = [[c * x for x in row] for row in system.matrix]
    assert [[tuple(z) for z in Z] for Z in _moved(system, larger, fractions(system.tokens))] == system.states[:4]
    limit = hm.equilibrium(system.tokens, system.layer(exact=False))
    other = hm.equilibrium(system.tokens, hm.HardmaxLayer(float(system.alpha), float(c) * system.A))
    _same_limits(limit, other)
    truth = hm.equilibrium(system.tokens, system.layer(exact=True))
    exact = hm.equilibrium(system.tokens, hm.HardmaxLayer(system.alpha, 4 * system.A, tolerance="exact"))
    _same_limits(truth, exact)


def _same_limits(limit: hm.Equilibrium, other: hm.Equilibrium) -> None:
    for name in ("leaders", "emerged_at", "follows", "decided_at"):
        np.testing.assert_array_equal(getattr(other, name), getattr(limit, name), err_msg=name)
    np.testing.assert_allclose(other.positions, limit.positions, rtol=0, atol=1e-12)


@st.composite
def _unimodular(draw: st.DrawFn, d: int) -> tuple[np.ndarray, np.ndarray]:
    """An integer matrix of determinant one and its inverse, as a product of shears."""
    M, inverse = np.eye(d), np.eye(d)
    for _ in range(draw(st.integers(1, 3)) if d > 1 else 0):
        i, j = draw(st.permutations(range(d)))[:2]
        shear = np.eye(d)
        shear[i, j] = draw(st.sampled_from([-2.0, -1.0, 1.0, 2.0]))
        back = 2 * np.eye(d) - shear
        M, inverse = shear @ M, inverse @ back
    return M, inverse


@settings(deadline=None, max_examples=examples(50))
@given(SYSTEMS.flatmap(lambda s: st.tuples(st.just(s), _unimodular(s.tokens.shape[1]))))
def test_a_linear_change_of_variables_commutes(case: tuple[System, tuple[np.ndarray, np.ndarray]]) -> None:
    system, (M, inverse) = case
    A, tokens = inverse.T @ system.A @ inverse, system.tokens @ M.T  # few digits: nothing is rounded
    changed = _moved(system, fractions(A), fractions(tokens))
    turn = fractions(M)
    assert [[tuple(z) for z in Z] for Z in changed] == [
        [tuple(dot(row, z) for row in turn) for z in Z] for Z in system.states[:4]
    ]
    for exact, alpha in ((True, system.alpha), (False, float(system.alpha))):
        limit = hm.equilibrium(system.tokens, system.layer(exact=exact))
        layer = hm.HardmaxLayer(alpha, A, tolerance="exact" if exact else None)
        other = hm.equilibrium(tokens, layer)
        for name in ("leaders", "emerged_at", "follows", "decided_at"):
            np.testing.assert_array_equal(getattr(other, name), getattr(limit, name), err_msg=name)
        np.testing.assert_allclose(other.positions, limit.positions @ M.T, rtol=0, atol=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("height", "winner"), [(3.0, 0), (1.0, 1), (2.0, None)])
def test_a_tie_between_two_leaders_lasts_only_if_they_are_equally_long(
    alpha: Fraction, height: float, winner: int | None
) -> None:
    """Token 2 hears both leaders at layer 0; the longer one wins at layer 1, equal ones keep it for ever."""
    tokens = np.array([[1.0, height], [1.0, -2.0], [0.25, 0.0]])
    system = System(tokens, np.eye(2), alpha, 5)
    assert system.heard[0][2] == [0, 1]
    for exact in (True, False):
        limit = hm.equilibrium(tokens, system.layer(exact=exact))
        if winner is None:
            assert limit.ties[2].tolist() == [0, 1]
            assert limit.positions[2].tolist() == [1.0, 0.0]
            assert all(system.heard[k][2] == [0, 1] for k in range(6))
        else:
            assert limit.follows[2] == winner
            assert limit.decided_at[2] == 1
            assert len(limit.ties) == 0
            assert system.heard[1][2] == [winner]


@pytest.mark.parametrize("exact", [True, False])
def test_a_tie_lasts_although_an_outsider_stays_above_the_face(exact: bool) -> None:
    """Token 4 is loyal to leader 2 and never below the face with normal A c, yet token 3 never hears it."""
    tokens = np.array([[1, 0, 1], [-1, 0, 1], [0, 1.5, 1], [0, -0.5, 0.5], [0, 1.25, 1.0625]])
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, tolerance="exact" if exact else None))
    assert limit.outcome.ending is hm.Ending.DECIDED
    assert limit.ties[3].tolist() == [0, 1]
    assert limit.positions[3].tolist() == [0.0, 0.0, 1.0]
    assert limit.follows[4] == 2
    assert limit.layers <= 2


@pytest.mark.parametrize("exact", [True, False])
def test_a_tie_with_followers_of_its_leaders_lasts(exact: bool) -> None:
    tokens = np.array([[2, 2], [-2, 2], [1, 2], [-1, 2], [0, 1.0]])
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(0.5, tolerance="exact" if exact else None))
    assert limit.outcome.ending is hm.Ending.DECIDED
    assert limit.ties[4].tolist() == [0, 1]
    assert limit.positions[4].tolist() == [0.0, 2.0]


@pytest.mark.parametrize("exact", [True, False])
def test_a_tie_with_followers_alone_lasts(exact: bool) -> None:
    """Token 4 hears the followers 2 and 3 at all layers, above their leaders by a term of second order only."""
    tokens = np.array([[2, 2, 0], [-2, 2, 0], [1, 2, 1], [-1, 2, 1], [0, 1, 0.5]])
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(0.05, tolerance="exact" if exact else None), max_layers=50)
    assert limit.outcome.ending is hm.Ending.DECIDED
    assert limit.ties[4].tolist() == [0, 1]
    assert limit.positions[4].tolist() == [0.0, 2.0, 0.0]
    system = System(tokens, np.eye(3), Fraction(1, 20), 8)
    assert all(system.heard[k][4] == [2, 3] for k in range(9))


@pytest.mark.parametrize("exact", [True, False])
def test_a_token_that_rests_for_a_layer_has_not_settled(exact: bool) -> None:
    """Token 1 hears itself between two others, so it rests; but one of them leaves the face at once."""
    tokens = np.array([[0.0, 3.0], [3.0, 0.0], [3.0, 1.0], [3.0, -1.0]])
    layer = hm.HardmaxLayer(0.5, np.diag([0.25, 2.0]), tolerance="exact" if exact else None)
    limit = hm.equilibrium(tokens, layer)
    assert limit.outcome.ending is hm.Ending.DECIDED
    assert limit.follows.tolist() == [0, 3, 0, 3]


@pytest.mark.parametrize("exact", [True, False])
def test_one_token_at_zero_leads(exact: bool) -> None:
    limit = hm.equilibrium([[0.0, 0.0]], hm.HardmaxLayer(tolerance="exact" if exact else None))
    assert limit.leaders.tolist() == [0]
    assert limit.polytope.dimension == 0
