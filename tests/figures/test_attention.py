"""The half-plane that can attract a token: its boundary, the tokens in it, and the attended tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from drawn import artists, places, words
from hardmax.datasets import half_space_example, make_matrix, make_tokens
from hardmax.errors import InputError
from hardmax.figures import draw_attention_geometry


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
