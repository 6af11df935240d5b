"""Clusters of runs and limits, and how fast they form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.geometry.clusters import clusters
from helpers import examples

FACE = np.array([[2.0, 2.0], [-2.0, 2.0], [0.0, 1.0], [0.5, -0.1], [0.0, -3.0], [0.0, 0.5]])


def test_the_clusters_of_a_limit() -> None:
    found = clusters(hm.equilibrium(FACE, hm.HardmaxLayer(0.5)))
    assert found.kinds == ("vertex", "vertex", "vertex", "face")
    assert [c.members.tolist() for c in found] == [[0, 3], [1], [4], [2, 5]]
    assert [c.leaders.tolist() for c in found] == [[0], [1], [4], [0, 1]]
    np.testing.assert_allclose(found.centres, [[2, 2], [-2, 2], [0, -3], [0, 2]])
    assert found.sizes.tolist() == [2, 1, 1, 2]
    assert found.theory == pytest.approx(2 / 3)
    assert np.isnan(found.rates).all()
    assert found[-1].kind == "face"
    with pytest.raises(IndexError, match="there are 4 clusters"):
        _ = found[4]


@pytest.mark.parametrize("alpha", [0.05, 0.5, 3.0])
def test_every_cluster_shrinks_at_the_rate_of_the_theory(alpha: float) -> None:
    for tokens, moving in ((FACE, 2), (np.random.default_rng(0).normal(size=(50, 2)), 4)):
        found = clusters(hm.simulate(tokens, hm.HardmaxLayer(alpha), depth=30))
        measurable = ~np.isnan(found.rates)
        assert measurable.sum() >= moving
        np.testing.assert_allclose(found.rates[measurable], 1 / (1 + alpha), rtol=1e-6)


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 2**31), st.integers(1, 30), st.integers(1, 4), st.booleans())
def test_runs_and_limits_have_the_same_clusters(seed: int, n: int, d: int, on_grid: bool) -> None:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(-2, 3, size=(n, d)).astype(float) if on_grid else rng.normal(size=(n, d))
    weights = rng.uniform(0.5, 2.0, size=n)
    layer = hm.HardmaxLayer(1.0)
    limit = hm.equilibrium(tokens, layer, weights=weights)
    run = hm.simulate(tokens, layer, depth=limit.layers + 2, weights=weights)
    left, right = clusters(limit), clusters(run)
    np.testing.assert_array_equal(left.cluster_of, right.cluster_of)
    np.testing.assert_allclose(left.centres, right.centres, atol=1e-12)
    assert left.kinds == right.kinds
    np.testing.assert_allclose(left.weights, np.bincount(left.cluster_of, weights=weights))
    assert sorted(np.concatenate([c.members for c in left]).tolist()) == list(range(n))
    np.testing.assert_allclose(left.centres[left.cluster_of], limit.positions, atol=1e-12)


def test_without_layer_zero_tied_tokens_of_the_same_leaders_are_one_cluster() -> None:
    found = clusters(hm.simulate(FACE, hm.HardmaxLayer(0.5), depth=20, keep=[10, 20]))
    assert found.kinds == ("vertex", "vertex", "vertex", "face")
    np.testing.assert_allclose(found.centres[3], [0.0, 2.0], atol=2 * 1.5**-20)
    np.testing.assert_allclose(found.rates[0], 2 / 3, rtol=1e-6)


def test_tokens_without_a_decision_are_said_to_be_undecided() -> None:
    tokens = np.random.default_rng(56).normal(size=(30, 3))
    run = hm.simulate(tokens, hm.HardmaxLayer(0.5), depth=0)
    undecided = run.leadership.undecided
    assert undecided > 0
    found = clusters(run)
    assert found.kinds.count("undecided") == undecided
    assert np.isnan(found.rates).all()
    assert all(len(c.leaders) == 0 for c in found if c.kind == "undecided")


def test_a_table_of_clusters() -> None:
    table = clusters(hm.simulate(FACE, hm.HardmaxLayer(0.5), depth=20)).to_pandas()
    assert table["kind"].tolist() == ["vertex", "vertex", "vertex", "face"]
    assert table["leaders"].tolist() == ["0", "1", "4", "0 1"]
    assert list(table.columns[-2:]) == ["x0", "x1"]


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_any_size(size: float) -> None:
    found = clusters(hm.simulate(FACE * size, hm.HardmaxLayer(0.5), depth=20))
    assert found.kinds == ("vertex", "vertex", "vertex", "face")
    np.testing.assert_allclose(found.rates[[0, 3]], 2 / 3, rtol=1e-6)


def test_a_run_that_kept_nothing_is_refused() -> None:
    run = hm.simulate(FACE, hm.HardmaxLayer(0.5), depth=2)
    empty = hm.Trajectory(
        tokens=run.tokens[:0], layers=run.layers[:0], outcome=run.outcome, layer=run.layer, leadership=run.leadership
    )
    with pytest.raises(hm.InputError, match="run must have stored a state"):
        clusters(empty)
