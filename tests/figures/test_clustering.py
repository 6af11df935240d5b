"""Figures of clustering: the half-plane that can attract a token, and results that show the given numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from drawn import artists, places, words
from hardmax.datasets import four_configurations, half_space_example, make_matrix, make_tokens
from hardmax.errors import InputError
from hardmax.figures import draw_attention_geometry, draw_cluster_sizes, draw_convergence, draw_layers_until_decided


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), token=st.integers(0, 11))
def test_region_boundary_and_favourites_are_those_of_the_definition(seed, token):
    tokens = make_tokens("gaussian", 12, 2, seed)
    A = make_matrix("random-spd", 2, seed)
    ax = draw_attention_geometry(tokens, hm.HardmaxLayer(0.5, A), token)
    query = A @ tokens[token]
    scores = tokens @ query
    own = scores[token]
    (line,) = artists(ax, "boundary")
    ends = np.column_stack(line.get_data())
    assert np.allclose(ends @ query, own)
    (region,) = artists(ax, "region")
    corners = region.get_xy()[:4]
    assert (corners @ query >= own - 1e-9).all()
    assert (corners @ query > own + 1e-9).any()
    others = np.arange(12) != token
    assert len(places(ax, "attracting")) == (scores[others] >= own).sum()
    assert len(places(ax, "others")) == (scores[others] < own).sum()
    assert np.allclose(places(ax, "attended"), tokens[[scores.argmax()]])


def test_example_listens_elsewhere_under_the_papers_matrix():
    tokens = half_space_example()
    plain = places(draw_attention_geometry(tokens, hm.HardmaxLayer(0.5)), "attended")
    skewed = places(draw_attention_geometry(tokens, hm.HardmaxLayer(0.5, make_matrix("paper", 2, 0))), "attended")
    assert np.array_equal(plain, tokens[[1, 2]])
    assert np.array_equal(skewed, tokens[[2]])


def test_those_who_are_listened_to_are_named_as_in_the_paper():
    said = words(draw_attention_geometry(half_space_example(), hm.HardmaxLayer(0.5)).figure)
    for label in ("$z_{1}$", "$z_{2}$", "$z_{3}$", r"$C_{1} = \{2,\,3\}$"):
        assert label in said
    assert "$z_{4}$" not in said
    many = np.array([[0.0, 0.0], *make_tokens("circle", 30, 2, 0)])
    said = words(draw_attention_geometry(many, hm.HardmaxLayer(0.5)).figure)
    assert r"\ldots\}$" in said
    assert "$z_{9}$" not in said


def test_token_at_zero_listens_to_all():
    tokens = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    ax = draw_attention_geometry(tokens, hm.HardmaxLayer(0.5))
    assert len(places(ax, "attended")) == 3
    assert len(places(ax, "others")) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_attention_geometry(np.ones((3, 3)), hm.HardmaxLayer(0.5)), "tokens must have two coordinates"),
        (lambda: draw_attention_geometry(np.ones((3, 2)), hm.SoftmaxLayer(0.5)), "layer must be a HardmaxLayer"),
        (
            lambda: draw_attention_geometry(np.ones((3, 2)), hm.HardmaxLayer(0.5), 3),
            "token must be one of 0 … 2, got 3",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


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
