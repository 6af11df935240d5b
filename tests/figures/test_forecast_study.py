"""The figure of a study: a dot per system, models by rank."""

import numpy as np
import pytest

from hardmax.errors import InputError
from hardmax.figures.forecast_diagnostics import MEAN, SYSTEMS, draw_study

_TIMES = {"first": {"a": np.array([1.0, 3.0]), "b": np.array([2.0, 6.0])}, "noisy": {"a": np.array([5.0])}}
_RANKS = {"first": {"a": 2.0, "b": 1.0}, "noisy": {"a": 1.0}}


def _lines(ax, gid):
    return [line for line in ax.lines if line.get_gid() == gid]


def test_every_system_is_a_dot_and_the_best_rank_on_top():
    figure = draw_study(_TIMES, _RANKS, ours="b")
    first, noisy = figure.axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["a", "b"]
    assert [list(line.get_xdata()) for line in _lines(first, SYSTEMS)] == [[1.0, 3.0], [2.0, 6.0]]
    assert [line.get_xdata()[0] for line in _lines(first, MEAN)] == [2.0, 4.0]
    assert [text.get_text() for text in first.texts] == ["2.00", "1.00", "rank"]
    assert len(_lines(noisy, SYSTEMS)) == 1
    colours = [line.get_color() for line in _lines(first, SYSTEMS)]
    assert colours[0] != colours[1]


def test_an_odd_number_of_settings_leaves_no_empty_frame():
    times = {name: {"a": np.ones(2)} for name in "xyz"}
    ranks = {name: {"a": 1.0} for name in "xyz"}
    assert [ax.get_visible() for ax in draw_study(times, ranks).axes] == [True, True, True, False]


def test_nothing_to_draw_is_said():
    with pytest.raises(InputError, match="settings must hold at least one setting"):
        draw_study({}, {})
