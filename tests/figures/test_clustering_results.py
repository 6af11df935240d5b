"""Figures of results show the given numbers."""

import numpy as np
import pytest

import hardmax as hm
from drawn import artists, words
from hardmax.datasets import four_configurations, make_tokens
from hardmax.errors import InputError
from hardmax.figures import draw_cluster_sizes, draw_convergence, draw_layers_until_decided

CONFIGURATIONS = {c.name: c for c in four_configurations()}


def test_bars_add_up_to_cluster_sizes_and_shared_ones_have_two_colours():
    limit = hm.equilibrium(CONFIGURATIONS["equals"].tokens)
    ax = draw_cluster_sizes(limit)
    bars = artists(ax, "bars")
    widths = np.zeros(10)
    parts = np.zeros(10, dtype=int)
    for bar in bars:
        row = round(bar.get_y() + bar.get_height() / 2)
        widths[row] += bar.get_width()
        parts[row] += 1
    assert widths.tolist() == [3.0] * 6 + [2.0] + [1.0] * 3
    assert parts.tolist() == [1] * 6 + [2] * 4
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[:6] == [f"leader {k}" for k in range(6)]
    assert "between 0 and 1" in labels


def test_many_clusters_are_cut_aloud():
    limit = hm.equilibrium(make_tokens("sphere", 60, 2, 0))
    assert "the 24 largest of 60 clusters" in words(draw_cluster_sizes(limit).figure)


def test_convergence_curves_have_the_slope_of_the_theory():
    run = hm.simulate(CONFIGURATIONS["late-leader"].tokens, hm.HardmaxLayer(0.5), depth=30)
    ax = draw_convergence(run)
    (theory,) = artists(ax, "theory")
    slope = np.diff(np.log(theory.get_ydata()))
    assert np.allclose(slope, -np.log(1.5))
    curves = artists(ax, "measured")
    assert len(curves) == 7  # eleven tokens less the leaders, of which three never move and one arrives early
    for curve in curves:
        heights = np.asarray(curve.get_ydata())
        steps = np.diff(np.log(heights[np.isfinite(heights)]))
        assert np.allclose(steps, -np.log(1.5), atol=1e-4)
        assert (heights < theory.get_ydata()[-len(heights) :]).all()


def test_convergence_needs_tokens_that_move():
    run = hm.simulate(np.eye(2), hm.HardmaxLayer(0.5), depth=3)
    with pytest.raises(InputError, match="must have decided tokens that move"):
        draw_convergence(run)


def test_histograms_are_shares_by_layer():
    data = {(10, 2): np.array([0, 0, 1, 3]), (20, 2): np.array([1, 1]), (10, 3): np.array([0])}
    figure = draw_layers_until_decided(data)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["d = 2", "d = 3"]
    first, second = artists(figure.axes[0], "measured")
    assert first.get_ydata().tolist() == [50.0, 25.0, 0.0, 25.0]
    assert second.get_ydata().tolist() == [0.0, 100.0, 0.0, 0.0]
    with pytest.raises(InputError, match="layers must hold at least one system"):
        draw_layers_until_decided({})
