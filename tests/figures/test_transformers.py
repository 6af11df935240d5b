"""Figures of trained transformers show what was measured."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import hardmax as hm
from drawn import artists, colour_at, places, words
from hardmax.drawing.style import colour_of
from hardmax.errors import InputError
from hardmax.figures.transformers import (
    ARROWS,
    LEADERS,
    MARKS,
    SINKS,
    TRAILS,
    WORDS,
    Targets,
    draw_depth,
    draw_heads,
    draw_who_attends,
    draw_word_paths,
    word_paths,
)

NAMES = ("[CLS]", "a", "dull", "$plot", "[SEP]")


@pytest.fixture(scope="module")
def run() -> hm.Trajectory:
    model = hm.models.random_transformer(layers=3, heads=2, d=8, vocabulary=9, scale=0.5, random_state=0)
    return hm.simulate(model.tokens([0, 1, 2, 3, 4]), model.layers)


def test_the_plane_is_that_of_the_largest_variance_of_all_layers_together(run: hm.Trajectory) -> None:
    placed = word_paths(run)
    cloud = np.asarray(run.tokens, dtype=np.float64).reshape(-1, 8)
    values = np.linalg.eigvalsh(np.cov(cloud.T))
    assert placed.path.shape == (4, 5, 2)
    spread = placed.path.reshape(-1, 2)
    np.testing.assert_allclose(np.cov(spread.T), np.diag(values[[-1, -2]]), atol=1e-9)
    np.testing.assert_allclose(placed.variance, values[[-1, -2]] / values.sum(), rtol=1e-6)
    assert placed.sentence() == f"The plane holds {sum(placed.variance):.0%} of the variance of all layers together."
    # Projections never lengthen a distance.
    flat = np.linalg.norm(spread[:, None] - spread[None], axis=2)
    assert (flat <= np.linalg.norm(cloud[:, None] - cloud[None], axis=2) + 1e-6).all()


def test_unit_length_forgets_the_length_of_tokens() -> None:
    points = np.random.default_rng(0).normal(size=(3, 6, 4))
    scaled = points * np.array([1.0, 20.0, 400.0])[:, None, None]
    runs = [_stored(one) for one in (points, scaled)]
    first, second = (word_paths(one, unit_length=True) for one in runs)
    np.testing.assert_allclose(first.path, second.path, atol=1e-9)
    assert not np.allclose(word_paths(runs[0]).path, word_paths(runs[1]).path)


def _stored(states: np.ndarray) -> hm.Trajectory:
    """A trajectory with these states."""
    from dataclasses import replace

    made = hm.simulate(states[0], hm.HardmaxLayer(0.5), depth=len(states) - 1)
    return replace(made, tokens=states, leadership=None)


@pytest.mark.parametrize("count", [1, 2])
def test_few_tokens_have_a_plane(count: int) -> None:
    model = hm.models.random_transformer(layers=1, heads=1, d=2, vocabulary=9, random_state=0)
    made = hm.simulate(model.tokens([*range(count)]), model.layers)
    assert word_paths(made).path.shape == (2, count, 2)
    draw_word_paths(made, NAMES[:count])


def test_words_stand_where_they_are_and_have_the_colour_of_what_they_attend_to(run: hm.Trajectory) -> None:
    follows, sinks = np.array([0, 2, 2, 2, 0]), np.array([True, False, False, False, True])
    ax = draw_word_paths(run, NAMES, 2, follows=follows, sinks=sinks)
    path = word_paths(run).path
    np.testing.assert_allclose(places(ax, LEADERS), path[2, [2]])
    np.testing.assert_allclose(places(ax, SINKS), path[2, [0]])
    np.testing.assert_allclose(places(ax, WORDS), path[2, [1, 3, 4]])
    assert colour_at(ax, LEADERS, path[2, 2]) == colour_at(ax, WORDS, path[2, 1]) == [_rounded(colour_of(0))]
    assert colour_at(ax, WORDS, path[2, 4]) == [_rounded(colour_of(-1))]  # attends to a sink
    (trails,) = artists(ax, TRAILS)
    np.testing.assert_allclose(trails.get_segments()[3], path[:3, 3])
    assert "$plot" in words(ax.figure)
    assert ax.get_title(loc="left") == "layer 2 of 3"
    assert artists(draw_word_paths(run, NAMES, 2, trails=False), TRAILS) == []
    # The view is that of all layers, so that pictures of several layers can be compared.
    assert draw_word_paths(run, NAMES, 0).get_xlim() == ax.get_xlim()


def _rounded(colour: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(np.round(colour, 6))


def test_targets_are_ranked_by_followers_and_sinks_have_no_rank() -> None:
    found = Targets.of(np.array([0, 0, 0, 1, 1, 5, -1]), np.array([True, *[False] * 6]))
    assert found.leads.tolist() == [True, True, False, False, False, True, False]
    assert found.own.tolist() == [-1, 0, -1, -1, -1, 1, -1]
    assert found.ranks.tolist() == [-1, -1, -1, 0, 0, 1, -1]
    assert found.colours.tolist() == [-1, 0, -1, 0, 0, 1, -1]


def test_lines_lead_from_tokens_to_what_they_attend_to() -> None:
    follows, weights = [0, 0, 3, 3, -1], [0.2, 1.0, 0.5, 0.9, 0.0]
    ax = draw_who_attends(NAMES, follows, weights, sinks=[True, False, False, False, True])
    (lines,) = artists(ax, ARROWS)
    ends = [(segment[0, 1], segment[1, 1]) for segment in lines.get_segments()]
    assert ends == [(0, 0), (1, 0), (2, 3), (3, 3)]
    assert np.argsort(lines.get_linewidths()).tolist() == [0, 2, 3, 1]
    assert places(ax, LEADERS).tolist() == [[1.0, 3.0]]
    assert places(ax, SINKS).tolist() == [[1.0, 0.0]]
    assert [text.get_text() for text in ax.texts].count("$plot") == 2


def test_heads_are_averaged_over_texts_and_marked_by_their_verdict() -> None:
    table = pandas.DataFrame(
        {
            "layer": [0, 0, 1, 1, 1],
            "head": [0, 1, 0, 1, 1],
            "tau": [1.0, 2.0, 3.0, 4.0, 6.0],
            "verdict": ["hard", "soft", "sink", "idle", "idle"],
        }
    )
    ax = draw_heads(table)
    np.testing.assert_allclose(ax.images[0].get_array(), [[1, 2], [3, 5]])
    marks = {(text.get_position(), text.get_text()) for text in artists(ax, MARKS)}
    assert marks == {((0, 0), "H"), ((0, 1), "s"), ((1, 1), "i")}
    assert "H: hard" in ax.get_title(loc="left")
    assert artists(draw_heads(table.drop(columns="verdict")), MARKS) == []


@pytest.mark.parametrize("values", [[np.inf, 1.0, 2.0], [np.nan, np.nan, np.nan], [3.0, 3.0, 3.0]])
def test_heads_without_a_number_are_drawn_too(values: list[float]) -> None:
    table = pandas.DataFrame({"layer": [0, 0, 0], "head": [0, 1, 2], "tau": values, "verdict": ["hard"] * 3})
    ax = draw_heads(table)
    ax.figure.draw_without_rendering()
    assert len(artists(ax, MARKS)) == 3
    assert ax.images[0].get_array().shape == (1, 3)


def test_clusters_against_depth() -> None:
    ax = draw_depth({"with feed-forward": {12: 58, 0: 62}, "attention alone": {0: 62, 6: 1}}, trained=12)
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(lines["with feed-forward"].get_xdata(), [0, 12])
    np.testing.assert_allclose(lines["attention alone"].get_ydata(), [62, 1])
    assert "trained depth" in words(ax.figure)


def test_bad_input_is_named(run: hm.Trajectory) -> None:
    ones = np.ones(5)
    table = pandas.DataFrame({"layer": [0], "head": [0], "tau": [1.0]})
    for call, words_ in [
        (lambda: word_paths(np.zeros((2, 3, 4))), "run must be a trajectory"),
        (lambda: draw_word_paths(run, NAMES[:3]), "one word per token, 5"),
        (lambda: draw_word_paths(run, "abcde"), "one word per token, 5"),
        (lambda: draw_word_paths(run, NAMES, 4), "a stored state from 0 to 3"),
        (lambda: draw_word_paths(run, NAMES, follows=[0, 1, 2, 3, 5]), "from 0 to 4"),
        (lambda: draw_word_paths(run, NAMES, follows=[0.5] * 5), "from 0 to 4"),
        (lambda: draw_word_paths(run, NAMES, sinks=[0] * 5), "sinks must be True or False"),
        (lambda: draw_who_attends(NAMES, [0] * 5, 2 * ones), "weight from 0 to 1"),
        (lambda: draw_who_attends(NAMES, [0] * 5, ones[:4]), "weight from 0 to 1"),
        (lambda: draw_who_attends([], [], []), "words must be"),
        (lambda: draw_heads(table, "beta"), "choose among tau"),
        (lambda: draw_heads(table[:0]), "at least one head"),
        (lambda: draw_heads([1]), "must be a table"),
        (lambda: draw_depth({}), "must be numbers of clusters by depth"),
        (lambda: draw_depth({"a": {0: 0}}), "positive numbers of clusters"),
        (lambda: draw_depth({"a": {-1: 3}}), "depths from 0"),
    ]:
        with pytest.raises(InputError, match=words_):
            call()
