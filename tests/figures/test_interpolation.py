"""Figures of compiled networks show the positions that the network computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hardmax.errors import FileError, InputError
from hardmax.figures.interpolation import TARGETS, TOKENS, animate_network, draw_construction
from hardmax.figures.interpolation_results import (
    draw_block_counts,
    draw_float_errors,
    draw_loss_against_decay,
    draw_training_loss,
)
from hardmax.interpolation import interpolate
from hardmax.interpolation.regularised import paper_data, train

X = [[[-2, 0], [-1, 2], [1, 1]], [[-1, 2], [1, 1], [2, -1]]]
Y = [[[-1, -1], [0, 2]], [[2, 2]]]


@pytest.mark.parametrize("construction", ["leaders", "fewest", "witness", "conditioned", "paper"])
def test_five_moments_end_in_the_rings(construction: str) -> None:
    figure = draw_construction(interpolate(X, Y, construction=construction))
    assert len(figure.axes) == 5
    tokens = [a for a in figure.axes[-1].collections if a.get_gid() == TOKENS]
    rings = [a for a in figure.axes[-1].collections if a.get_gid() == TARGETS]
    reached = {tuple(p) for mark in tokens for p in np.asarray(mark.get_offsets()).round(9).tolist()}
    assert reached == {tuple(p) for p in np.asarray(rings[0].get_offsets()).round(9).tolist()}
    start = {tuple(p) for m in figure.axes[0].collections if m.get_gid() == TOKENS for p in np.asarray(m.get_offsets())}
    assert start == {(float(a), float(b)) for x in X for a, b in x}


def test_a_single_sequence_can_be_drawn() -> None:
    for construction in ("leaders", "paper"):
        assert len(draw_construction(interpolate(X[:1], Y[:1], construction=construction)).axes) == 5


def test_film(tmp_path: Path) -> None:
    path = animate_network(interpolate(X, Y), tmp_path / "a.gif", fps=4, seconds_per_stop=0.5, progress=False)
    with Image.open(path) as film:
        assert film.n_frames >= 4
    with pytest.raises(FileError, match="names no format"):
        animate_network(interpolate(X, Y), tmp_path / "a.png")
    with pytest.raises(InputError, match="seconds_per_stop"):
        animate_network(interpolate(X, Y), tmp_path / "b.gif", seconds_per_stop=0)
    assert [p.name for p in tmp_path.iterdir()] == ["a.gif"]


def test_counts_and_errors() -> None:
    ax = draw_block_counts({"published bound": {2: 9, 4: 17}, "leaders": {2: 3, 4: 5}})
    drawn = {str(line.get_label()): list(line.get_ydata()) for line in ax.get_lines()}
    assert drawn["leaders"] == [3, 5]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2", "4"]
    ax = draw_float_errors({"leaders": {2: 0.0, 4: 1e-12}})
    assert "exact" in {t.get_text() for t in ax.texts}
    for draw in (draw_block_counts, draw_float_errors):
        with pytest.raises(InputError, match="at least one size"):
            draw({})


def test_training_figures() -> None:
    data = paper_data(0, sequences=2, tokens=3, dimension=2)
    runs = [train(data, eps, 20, progress=False) for eps in (1.0, 0.1)]
    ax = draw_training_loss(runs[0])
    assert list(ax.get_lines()[0].get_ydata()) == list(runs[0].losses)
    ax = draw_loss_against_decay(runs)
    assert list(ax.get_lines()[0].get_xdata()) == [0.1, 1.0]
    with pytest.raises(InputError, match="at least two"):
        draw_loss_against_decay(runs[:1])
