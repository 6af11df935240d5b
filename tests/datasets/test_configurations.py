"""Each configuration behaves as its description says, in exact arithmetic too."""

import numpy as np
import pytest

from hardmax.attention.layer import HardmaxLayer
from hardmax.datasets import four_configurations, half_space_example, make_matrix, paper_configurations
from hardmax.dynamics.equilibrium import equilibrium
from hardmax.dynamics.simulate import choose, simulate
from hardmax.geometry.leaders import attention_at

BY_NAME = {c.name: c for c in (*four_configurations(), *paper_configurations())}


def _limit(name, tolerance=None):
    return equilibrium(BY_NAME[name].tokens, HardmaxLayer(BY_NAME[name].alpha, tolerance=tolerance))


@pytest.mark.parametrize("name", BY_NAME)
def test_theorem_applies_and_everything_is_decided(name):
    limit = _limit(name)
    assert limit.assumptions.hold
    assert limit.outcome.ok
    assert (limit.decided_at >= 0).all()


@pytest.mark.parametrize("name", BY_NAME)
def test_rounding_changes_nobodys_leader(name):
    rounded, exact = _limit(name), _limit(name, "exact")
    assert np.array_equal(rounded.follows, exact.follows)
    assert np.array_equal(rounded.emerged_at, exact.emerged_at)
    assert {t: m.tolist() for t, m in rounded.ties.items()} == {t: m.tolist() for t, m in exact.ties.items()}


@pytest.mark.parametrize("name", BY_NAME)
def test_panels_begin_at_the_start_and_end_near_the_limit(name):
    configuration = BY_NAME[name]
    assert configuration.layers[0] == 0
    final = simulate(configuration.tokens, HardmaxLayer(0.5), depth=configuration.layers[-1], keep="last").final
    assert np.abs(final - _limit(name).positions).max() < 1e-5


def test_cloud_ends_at_vertices():
    limit = _limit("cloud")
    assert len(limit.leaders) == 5
    assert not limit.on_faces.any()


def test_equals_have_tokens_that_end_in_the_middle_of_edges():
    limit = _limit("equals")
    assert len(limit.leaders) == 6
    assert set(limit.ties) == {6, 7, 8, 9, 10}
    for token, (one, other) in limit.ties.items():
        assert np.allclose(limit.positions[token], (limit.positions[one] + limit.positions[other]) / 2)
    assert limit.on_faces.sum() == 4  # two of the five share an edge


def test_late_leader_emerges_at_layer_three():
    limit = _limit("late-leader")
    assert dict(zip(limit.leaders.tolist(), limit.emerged_at.tolist(), strict=True)) == {0: 0, 4: 0, 5: 0, 6: 3}


def test_broken_ties_last_one_layer():
    configuration = BY_NAME["broken-ties"]
    run = simulate(configuration.tokens, HardmaxLayer(0.5), depth=1)
    assert set(attention_at(run, 0).ties) == {3, 4, 5, 6}
    assert len(attention_at(run, 1).ties) == 0
    limit = _limit("broken-ties")
    assert not limit.on_faces.any()
    assert limit.follows[[3, 4, 5, 6]].tolist() == [1, 1, 1, 2]  # the larger norm of the two


def test_tokens_cannot_be_overwritten():
    with pytest.raises(ValueError, match="read-only"):
        BY_NAME["cloud"].tokens[0, 0] = 1.0


def test_the_papers_figure_has_its_layers_and_its_leaders():
    names = [(c.name, len(c.tokens), _limit(c.name).leaders.tolist()) for c in paper_configurations()]
    assert names == [
        ("triangle", 9, [0, 1, 2]),
        ("emerging-leader", 8, [0, 1, 2]),
        ("square", 10, [0, 1, 2, 3]),
        ("non-leader-clusters", 10, [0, 1, 2, 3]),
    ]
    assert {c.layers for c in paper_configurations()} == {(0, 1, 2, 5, 30)}


def test_the_papers_leader_emerges_where_the_published_figure_has_its_star():
    limit = _limit("emerging-leader")
    assert limit.emerged_at.tolist() == [0, 1, 0]
    assert np.allclose(limit.positions[1], [-1 / 18, 5 / 36])


def test_the_papers_tokens_that_follow_two_end_in_the_middle_of_sides():
    limit = _limit("non-leader-clusters")
    assert {token: members.tolist() for token, members in limit.ties.items()} == {4: [2, 3], 5: [0, 1]}
    assert np.allclose(limit.positions[[4, 5]], [[-1.0, 0.0], [1.0, 0.0]])
    assert not _limit("square").ties


def test_the_papers_triangle_has_a_token_that_follows_a_follower():
    run = simulate(BY_NAME["triangle"].tokens, HardmaxLayer(0.5), depth=0)
    follows = attention_at(run, 0).follows
    assert (follows[8], follows[5]) == (5, 2)


def test_figure_one_has_the_tie_of_the_paper():
    tokens = half_space_example()
    assert choose(tokens, HardmaxLayer(0.5))[0].tolist() == [1, 2]
    assert choose(tokens, HardmaxLayer(0.5, tolerance="exact"))[0].tolist() == [1, 2]
    assert choose(tokens, HardmaxLayer(0.5, make_matrix("paper", 2, 0)))[0].tolist() == [2]
