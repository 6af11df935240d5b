"""Leaders, and the tokens that each token listens to at a layer."""

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.geometry.leaders import attention_at, leaders

# A token between two equally long leaders, one that follows the right one, one far below.
FACE = np.array([[2.0, 2.0], [-2.0, 2.0], [0.0, 1.0], [0.5, -0.1], [0.0, -3.0]])
SHEARED = np.array([[2.0, 1.0], [1.0, 1.0]])


def test_leaders_of_a_limit_and_of_a_run_are_the_same() -> None:
    tokens = np.random.default_rng(0).normal(size=(40, 3))
    layer = hm.HardmaxLayer(0.5)
    left, right = leaders(hm.equilibrium(tokens, layer)), leaders(hm.simulate(tokens, layer, depth=30))
    for name in ("index", "emerged_at", "followers"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    np.testing.assert_allclose(left.positions, right.positions)
    assert int(left.followers.sum()) == 40 - len(left)


def test_a_tied_token_counts_for_each_of_its_leaders() -> None:
    found = leaders(hm.equilibrium(FACE))
    assert found.index.tolist() == [0, 1, 4]
    assert found.followers.tolist() == [2, 1, 0]
    assert found.to_pandas()["followers"].tolist() == [2, 1, 0]
    assert "emerged_at" in str(found)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_a_norms(size: float) -> None:
    tokens = np.array([[3.0, 4.0], [-5.0, 1.0]]) * size
    found = leaders(hm.equilibrium(tokens, hm.HardmaxLayer(A=SHEARED)))
    assert found.index.tolist() == [0, 1]
    expected = [np.sqrt(2 * 9 + 2 * 12 + 16), np.sqrt(2 * 25 - 2 * 5 + 1)]
    np.testing.assert_allclose(found.a_norms / size, expected, rtol=1e-14)


def test_without_positive_definiteness_there_is_no_a_norm() -> None:
    found = leaders(hm.equilibrium(FACE, hm.HardmaxLayer(A=-np.eye(2))))
    assert found.a_norms is None


def test_tensors_are_read_too() -> None:
    run = hm.simulate(torch.from_numpy(FACE), hm.HardmaxLayer(), depth=3)
    assert leaders(run).index.tolist() == [0, 1, 4]
    assert attention_at(run, -1).follows.tolist() == [0, 1, 0, 0, 4]


def test_only_hardmax_has_leaders() -> None:
    with pytest.raises(hm.InputError, match=r"run must come from a layer that chooses.*, got softmax attention"):
        leaders(hm.simulate(FACE, hm.SoftmaxLayer(), depth=1))
    with pytest.raises(hm.InputError, match="run must have V = identity to have leaders"):
        leaders(hm.simulate(FACE, hm.HardmaxLayer(V=np.eye(2) / 2), depth=1))
    with pytest.raises(hm.InputError, match="run must be a Trajectory or an Equilibrium, got ndarray"):
        leaders(FACE)  # type: ignore[arg-type]


def test_attention_at_the_first_layer_is_the_choice() -> None:
    rng = np.random.default_rng(1)
    tokens, layer = rng.normal(size=(30, 2)), hm.HardmaxLayer(1.0, SHEARED)
    seen = attention_at(hm.simulate(tokens, layer, depth=4), 0)
    choice = hm.choose(tokens, layer)
    np.testing.assert_array_equal(seen.follows, choice.first.numpy())
    np.testing.assert_array_equal(seen.leads, choice.first.numpy() == np.arange(30))
    assert seen.layer == 0
    assert len(seen.ties) == 0


@pytest.mark.parametrize("tolerance", [None, "exact"])
def test_ties_are_listed_at_every_layer(tolerance: str | None) -> None:
    run = hm.simulate(FACE, hm.HardmaxLayer(0.5, tolerance=tolerance), depth=12)
    for k in range(len(run)):
        seen = attention_at(run, k)
        assert {i: m.tolist() for i, m in seen.ties.items()} == {2: [0, 1]}
        assert seen.follows.tolist() == [0, 1, 0, 0, 4]
        assert np.flatnonzero(seen.leads).tolist() == [0, 1, 4]


def test_a_late_leader_is_shown_as_a_leader_only_from_its_layer_on() -> None:
    tokens = np.random.default_rng(56).normal(size=(30, 3))
    run = hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=8)
    late = np.flatnonzero(run.leadership.emerged_at > 0)
    assert len(late) > 0
    token, layer = run.leadership.leaders[late[0]], run.leadership.emerged_at[late[0]]
    shown = [bool(attention_at(run, k).leads[token]) for k in range(len(run))]
    assert shown == [k >= layer for k in range(len(run))]
    for k in range(layer):
        heard = hm.choose(run.tokens[k], run.layer)[int(token)].tolist()
        assert attention_at(run, k).follows[token] == heard[0]


def test_followers_too_close_to_their_leader_are_not_called_tied() -> None:
    tokens = np.random.default_rng(2).normal(size=(200, 2))
    run = hm.simulate(tokens, hm.HardmaxLayer(2.0), depth=80, keep="last")
    seen = attention_at(run, -1)
    assert len(seen.ties) == 0
    np.testing.assert_array_equal(seen.follows, run.leadership.follows)
    assert int(seen.leads.sum()) == len(run.leadership.leaders)


def test_repeated_tokens_share_one_name_and_the_zero_token_hears_everyone() -> None:
    tokens = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-0.5, 0.5]])
    run = hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=3)
    seen = attention_at(run, 0)
    assert seen.follows[[0, 2, 3]].tolist() == [0, 0, 3]
    assert seen.leads.tolist() == [True, False, False, True]
    assert seen.hears_everyone.tolist() == [False, True, False, False]
    assert not attention_at(run, -1).hears_everyone.any()


@pytest.mark.parametrize("tolerance", [None, "exact"])
def test_undecided_tokens_are_asked(tolerance: str | None) -> None:
    tokens = np.array([[2.0, 3.0], [2.0, -1.0], [0.5, 0.0], [-1.0, 0.0]])
    run = hm.simulate(tokens, hm.HardmaxLayer(1.0, tolerance=tolerance), depth=2)
    assert attention_at(run, 0).ties[2].tolist() == [0, 1]
    assert attention_at(run, 1).follows[2] == 0
    assert len(attention_at(run, 1).ties) == 0


def test_attention_with_a_value_matrix_is_asked_of_everybody() -> None:
    run = hm.simulate(FACE, hm.HardmaxLayer(V=np.eye(2) / 2), depth=2)
    seen = attention_at(run, 0)
    assert seen.follows.tolist() == [0, 1, 0, 0, 4]
    assert seen.ties[2].tolist() == [0, 1]
    assert np.flatnonzero(seen.leads).tolist() == [0, 1, 4]


def test_bad_questions_are_refused() -> None:
    run = hm.simulate(FACE, hm.HardmaxLayer(), depth=2)
    for k in (3, -4, 0.5, True):
        with pytest.raises(hm.InputError, match="k must be the index of a stored state.*pass k from 0 to 2"):
            attention_at(run, k)  # type: ignore[arg-type]
    with pytest.raises(hm.InputError, match="run must be a Trajectory, got Equilibrium"):
        attention_at(hm.equilibrium(FACE), 0)  # type: ignore[arg-type]
    with pytest.raises(hm.InputError, match="run must come from a layer that chooses"):
        attention_at(hm.simulate(FACE, hm.SoftmaxLayer(), depth=1), 0)
