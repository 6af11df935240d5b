from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from helpers import SHEARED, exact_layers, examples, spd


def same_leadership(left: hm.Equilibrium, right: hm.Equilibrium) -> None:
    for name in ("leaders", "emerged_at", "follows", "decided_at"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    assert {t: m.tolist() for t, m in left.ties.items()} == {t: m.tolist() for t, m in right.ties.items()}


@st.composite
def tie_rich(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    """Small integer tokens, often symmetric, with the zero token and repeats among them; A integer SPD."""
    d = draw(st.integers(1, 3))
    coordinates = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    tokens = np.array(draw(st.lists(coordinates, min_size=1, max_size=7)), dtype=float)
    if draw(st.booleans()):
        tokens = np.concatenate([tokens, -tokens])
    root = np.array(draw(st.lists(coordinates, min_size=d, max_size=d)), dtype=float)
    A = np.eye(d) if draw(st.booleans()) else root @ root.T + np.eye(d)
    return tokens, A, draw(st.sampled_from([0.25, 0.5, 1.0, 2.0]))


@settings(deadline=None, max_examples=examples(150))
@given(tie_rich())
def test_floats_rationals_and_plain_loops_agree_on_ties(system: tuple[np.ndarray, np.ndarray, float]) -> None:
    tokens, A, alpha = system
    rounded, exact = hm.HardmaxLayer(alpha, A), hm.HardmaxLayer(alpha, A, tolerance="exact")
    limit, truth = hm.equilibrium(tokens, rounded, max_layers=60), hm.equilibrium(tokens, exact, max_layers=60)
    assert truth.outcome.ending is hm.Ending.DECIDED
    same_leadership(limit, truth)
    np.testing.assert_allclose(limit.positions, truth.positions, atol=1e-9)
    states = exact_layers(tokens, A, alpha, depth=6)
    for layer in (rounded, exact):
        run = hm.simulate(tokens, layer, depth=6)
        np.testing.assert_allclose(run.tokens, states, atol=1e-9)


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 5), st.floats(0.05, 3.0))
def test_floats_and_rationals_agree_on_random_systems(seed: int, n: int, d: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    tokens, A = rng.normal(size=(n, d)), spd(rng, d)
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A))
    assert limit.outcome.ending is hm.Ending.DECIDED
    same_leadership(limit, hm.equilibrium(tokens, hm.HardmaxLayer(alpha, A, tolerance="exact")))


@pytest.mark.parametrize("d", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("n", [1, 2, 300])
def test_agrees_with_four_hundred_layers(n: int, d: int) -> None:
    rng = np.random.default_rng(n + d)
    tokens, layer = rng.normal(size=(n, d)), hm.HardmaxLayer(0.5, spd(rng, d))
    limit = hm.equilibrium(tokens, layer)
    run = hm.simulate(tokens, layer, depth=400, keep="last")
    np.testing.assert_allclose(run.final, limit.positions, rtol=1e-9, atol=1e-9 * np.abs(tokens).max())
    state = tokens
    for _ in range(60):  # without the closed form, layer after layer
        state = layer(state)
    np.testing.assert_allclose(state, hm.simulate(tokens, layer, depth=60, keep="last").final, atol=1e-9)


def test_a_token_between_two_equal_leaders_rests_on_the_face() -> None:
    tokens = np.array([[2.0, 1.0], [2.0, -1.0], [-1.0, 0.3], [1.0, 0.0]])
    limit = hm.equilibrium(tokens)
    assert limit.ties[3].tolist() == [0, 1]
    assert limit.follows[3] == 0
    np.testing.assert_array_equal(limit.positions[3], [2.0, 0.0])
    np.testing.assert_array_equal(limit.limit_points[limit.on_faces], [[2.0, 0.0]])
    assert limit.limit_point_of.tolist() == [0, 1, 2, 3]


def test_the_larger_of_two_tied_leaders_wins_at_the_next_layer() -> None:
    tokens = np.array([[2.0, 3.0], [2.0, -1.0], [0.5, 0.0], [-1.0, 0.0]])
    layer = hm.HardmaxLayer(1.0)
    assert hm.choose(tokens, layer)[2].tolist() == [0, 1]
    limit = hm.equilibrium(tokens, layer)
    assert limit.decided_at[2] == 1
    assert limit.follows[2] == 0
    assert len(limit.ties) == 0


def test_a_tie_with_followers_on_the_way_has_its_closed_form() -> None:
    # Token 4 hears two leaders and two of their followers on the same face; symmetric, so it stays tied.
    tokens = np.array([[2.0, 2.0], [2.0, -2.0], [2.0, 1.0], [2.0, -1.0], [1.0, 0.0], [2.0, 0.0], [-3.0, 0.0]])
    layer = hm.HardmaxLayer(0.5)
    limit = hm.equilibrium(tokens, layer)
    assert limit.outcome.ending is hm.Ending.DECIDED
    assert sorted(limit.ties) == [4, 5]
    states = exact_layers(tokens, np.eye(2), 0.5, depth=12)
    np.testing.assert_allclose(hm.simulate(tokens, layer, depth=12).tokens, states, atol=1e-12)


@pytest.mark.parametrize(
    ("tokens", "token"),
    [
        # An outsider that is loyal to a third leader rises above the tie in the limit of the mean, but never meets it.
        ([[1, 0, 1], [-1, 0, 1], [0, 1.5, 1], [0, -0.5, 0.5], [0, 1.3, 1.05]], 3),
        # The tie is with followers alone: their leaders score less, at every layer.
        ([[2, 2, 0], [-2, 2, 0], [1, 2, 1], [-1, 2, 1], [0, 1, 0.5]], 4),
    ],
)
def test_ties_that_only_the_whole_future_decides(tokens: list[list[float]], token: int) -> None:
    for alpha in (1 / 16, 0.5):
        for layer in (hm.HardmaxLayer(alpha), hm.HardmaxLayer(alpha, tolerance="exact")):
            limit = hm.equilibrium(tokens, layer)
            assert limit.outcome.ending is hm.Ending.DECIDED
            assert limit.decided_at[token] == 1
            assert limit.ties[token].tolist() == [0, 1]
            run = hm.simulate(tokens, layer, depth=12)
            np.testing.assert_allclose(run.tokens, exact_layers(tokens, np.eye(3), alpha, 12), atol=1e-12)


def test_a_leader_can_emerge_late() -> None:
    tokens = np.random.default_rng(151).normal(size=(12, 2))
    limit = hm.equilibrium(tokens)
    late = limit.leaders[limit.emerged_at > 0]
    assert len(late) == 1
    assert hm.choose(tokens, limit.layer)[int(late[0])].tolist() != late.tolist()
    run = hm.simulate(tokens, limit.layer, depth=1)
    assert hm.choose(run.final, limit.layer)[int(late[0])].tolist() == late.tolist()


def test_repeated_tokens_are_one_point() -> None:
    tokens = np.array([[1.0, 0.0], [-1.0, 0.5], [1.0, 0.0], [0.4, 0.0], [0.0, 0.0]])
    limit = hm.equilibrium(tokens)
    assert limit.leaders.tolist() == [0, 1]
    assert limit.follows[:4].tolist() == [0, 1, 0, 0]
    assert not limit.assumptions.distinct
    assert not limit.assumptions.nonzero
    assert "some token is zero; some tokens are repeated" in str(limit.assumptions)


def test_near_duplicates_lead_jointly() -> None:
    angle = np.array([0.0, 1e-9, 2.0, 4.0])
    tokens = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    limit = hm.equilibrium(tokens)
    assert limit.leaders.tolist() == [0, 2, 3]
    np.testing.assert_allclose(limit.positions[0], tokens[:2].mean(axis=0), atol=1e-15)
    exact = hm.equilibrium(tokens, hm.HardmaxLayer(tolerance="exact"))
    assert exact.leaders.tolist() == [1, 2, 3]  # in floats the second is (1, 1e-9), longer than (1, 0)


@pytest.mark.parametrize("tokens", [[[0.0, 0.0]], [[3.0, 1.0]], [[1.0, 1.0]] * 4, [[0.0], [0.0]], [[5.0], [-1.0]]])
def test_tiny_systems_are_answered(tokens: list[list[float]]) -> None:
    for layer in (hm.HardmaxLayer(), hm.HardmaxLayer(tolerance="exact")):
        limit = hm.equilibrium(tokens, layer)
        assert limit.outcome.ending is hm.Ending.DECIDED
        np.testing.assert_array_equal(limit.positions, tokens)


def test_weights_decide_where_a_tied_token_rests() -> None:
    tokens = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert hm.equilibrium(tokens).positions[0].tolist() == [0.0, 0.0]
    moved = hm.equilibrium(tokens, weights=[1.0, 1.0, 1.0, 1.0, 5.0])
    assert moved.follows[0] == 4


def test_a_zero_token_waits_for_those_that_are_undecided() -> None:
    # The mean of all is zero, and would remain so if token 3, tied between tokens 0 and 1, stayed where it is.
    tokens = np.array([[2.0, 3.0], [2.0, -1.0], [-4.5, -2.0], [0.5, 0.0], [0.0, 0.0]])
    limit, exact = hm.equilibrium(tokens), hm.equilibrium(tokens, hm.HardmaxLayer(tolerance="exact"))
    assert limit.decided_at[3] == 1
    assert limit.decided_at[4] > 1
    same_leadership(limit, exact)
    np.testing.assert_allclose(limit.positions, exact.positions, atol=1e-12)


def test_without_positive_definiteness_the_outcome_says_so() -> None:
    tokens = np.random.default_rng(0).normal(size=(10, 2))
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(A=-np.eye(2)))
    assert limit.outcome.ending in (hm.Ending.SETTLED, hm.Ending.DECIDED)
    assert "A is not positive definite" in str(limit.assumptions)
    state = hm.simulate(tokens, hm.HardmaxLayer(A=-np.eye(2)), depth=300, keep="last").final
    np.testing.assert_allclose(state, limit.positions, atol=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64, int])
def test_a_value_matrix_that_is_the_identity_is_none(kind: type) -> None:
    tokens = np.random.default_rng(3).normal(size=(30, 2))
    layer, plain = hm.HardmaxLayer(0.5, SHEARED, V=np.eye(2, dtype=kind)), hm.HardmaxLayer(0.5, SHEARED)
    limit, expected = hm.equilibrium(tokens, layer), hm.equilibrium(tokens, plain)
    same_leadership(limit, expected)
    assert limit.assumptions.plain_values
    assert hm.check_assumptions(tokens, layer).hold
    assert hm.check_theorem(tokens, layer).holds
    run = hm.simulate(tokens, layer, depth=4)
    np.testing.assert_array_equal(hm.leaders(run).index, expected.leaders)
    np.testing.assert_array_equal(run.tokens, hm.simulate(tokens, plain, depth=4).tokens)
    assert not hm.check_assumptions(tokens, hm.HardmaxLayer(V=np.eye(2) + 1e-15)).plain_values


def test_gradients_of_a_value_matrix_that_starts_at_the_identity_are_kept() -> None:
    V = torch.eye(2, dtype=torch.float64, requires_grad=True)
    tokens = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    hm.HardmaxLayer(V=V)(tokens).sum().backward()
    assert V.grad is not None
    assert V.grad.abs().max() > 0


@pytest.mark.parametrize("alpha", [1e-17, 1e-300, 5e-13])
def test_an_alpha_lost_in_rounding_is_said_to_be_undecidable(alpha: float) -> None:
    tokens = np.random.default_rng(151).normal(size=(12, 2))
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(alpha))
    assert limit.outcome.ending is hm.Ending.UNDECIDED
    assert limit.layers == 0
    assert "cannot be decided in floating point" in str(limit.outcome)
    assert 'pass alpha of at least 9e-13, or tolerance="exact"' in str(limit.outcome)
    known = limit.decided_at == 0  # what is decided at layer 0 needs no step
    usual = hm.equilibrium(tokens)
    np.testing.assert_array_equal(limit.follows[known], usual.follows[known])
    found = hm.clusters(hm.simulate(tokens, hm.HardmaxLayer(alpha), depth=2))
    assert "undecided" in found.kinds
    report = hm.check_theorem(tokens, hm.HardmaxLayer(alpha))
    assert report["convergence"].holds is None
    assert "is lost in rounding: pass alpha >= 9e-13" in report["convergence"].sentence
    assert hm.equilibrium(tokens, hm.HardmaxLayer(1e-12), max_layers=3).layers == 3


def test_ties_that_would_have_to_be_followed_for_ever_are_left_undecided() -> None:
    tokens = [[1, 0, 1], [-1, 0, 1], [0, 1.5, 1], [0, -0.5, 0.5], [0, 1.3, 1.05]]
    for layer in (hm.HardmaxLayer(1e-9), hm.HardmaxLayer(1e-17, tolerance="exact")):
        assert hm.equilibrium(tokens, layer, max_layers=2).outcome.ending is hm.Ending.UNDECIDED


def test_giving_up_is_said_aloud() -> None:
    tokens = np.random.default_rng(1).normal(size=(400, 3))
    limit = hm.equilibrium(tokens, max_layers=0)
    assert limit.outcome.ending is hm.Ending.UNDECIDED
    assert not limit.outcome.ok
    assert "raise max_layers" in str(limit.outcome)
    assert (limit.decided_at == -1).sum() == (limit.follows == -1).sum() > 0
    assert hm.equilibrium(tokens, seconds=1e-9).outcome.ending is hm.Ending.OUT_OF_TIME


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_extreme_sizes_have_the_same_leaders(size: float) -> None:
    tokens = np.random.default_rng(2).normal(size=(50, 3))
    same_leadership(hm.equilibrium(tokens * size), hm.equilibrium(tokens))


def test_tensors_in_tensors_out() -> None:
    tokens = torch.randn(40, 2, dtype=torch.float32, generator=torch.Generator().manual_seed(0))
    limit = hm.equilibrium(tokens)
    assert limit.positions.dtype == torch.float32
    assert isinstance(limit.follows, torch.Tensor)
    assert limit.follows.dtype == torch.int64


def test_the_polytope_has_the_leaders_as_vertices() -> None:
    limit = hm.equilibrium(np.random.default_rng(0).normal(size=(500, 2)), hm.HardmaxLayer(0.5, SHEARED))
    assert len(limit.polytope.vertices) == len(limit.leaders)
    assert limit.polytope.contains(limit.positions, 1e-9).all()


def test_bad_arguments_are_named() -> None:
    tokens = np.ones((3, 2))
    with pytest.raises(hm.InputError, match="layer must be a HardmaxLayer: other layers have no closed form"):
        hm.equilibrium(tokens, hm.SoftmaxLayer())
    with pytest.raises(hm.InputError, match="layer must have V = identity"):
        hm.equilibrium(tokens, hm.HardmaxLayer(V=2 * np.eye(2)))
    with pytest.raises(hm.InputError, match=r"V must be 2 x 2 to match the tokens, got shape \(3, 3\)"):
        hm.equilibrium(tokens, hm.HardmaxLayer(V=np.eye(3)))
    with pytest.raises(hm.InputError, match=r"tokens look transposed.*got shape \(2, 1000\): pass tokens.T, or A"):
        hm.equilibrium(np.ones((2, 1000)))
    with pytest.raises(hm.InputError, match=r"tokens must have shape \(token, coordinate\), got shape \(1, 3, 2\)"):
        hm.equilibrium(tokens[None])
    with pytest.raises(hm.InputError, match=r"weights must have shape \(3,\), got shape \(2,\)"):
        hm.equilibrium(tokens, weights=[1.0, 2.0])
    with pytest.raises(hm.InputError, match="weights must be positive, got 0.0"):
        hm.equilibrium(tokens, weights=[1.0, 2.0, 0.0])
    with pytest.raises(hm.InputError, match="max_layers must be a whole number"):
        hm.equilibrium(tokens, max_layers=-1)
