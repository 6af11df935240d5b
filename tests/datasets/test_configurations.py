"""Each configuration does what its words say, in exact arithmetic too."""

import numpy as np
import pytest

from hardmax.attention.layer import HardmaxLayer
from hardmax.datasets import four_configurations
from hardmax.dynamics.equilibrium import equilibrium
from hardmax.dynamics.simulate import simulate
from hardmax.geometry.listening import attention_at

BY_NAME = {c.name: c for c in four_configurations()}


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
