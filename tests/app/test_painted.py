"""Plots painted with Matplotlib: marks are at the places of the browser's and have their colours, at every moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgba
from PIL import Image

from hardmax.app.look import DAY
from hardmax.app.models.page import ModelsPage
from hardmax.app.networks.page import NetworksPage
from hardmax.app.page import Page
from hardmax.app.painted import PaintedPlots
from hardmax.app.real_model.page import RealModelPage
from hardmax.app.stage import stage_of
from hardmax.app.text.page import TextPage
from hardmax.errors import HardmaxError
from visits import Visit

_PAGES: list[tuple[type[Page], dict[str, str], str]] = [
    (TextPage, {"text": "a wonderful film, a terrible ending"}, "_plane.plot"),
    (NetworksPage, {"example": "swap", "construction": "fewest"}, "_results._plane.plot"),
    (ModelsPage, {"model": "kuramoto", "n": "12", "frame": "20"}, "_plane.figure"),
    (RealModelPage, {"model": "random-encoder", "text": "a dull plot"}, "_plane.figure"),
]


def _found(page: Any, path: str) -> Any:
    for name in path.split("."):
        page = getattr(page, name)
    return page


@pytest.fixture(params=_PAGES, ids=lambda case: case[0].slug)
def seen(request: pytest.FixtureRequest) -> Iterator[tuple[Visit, Any]]:
    """A visit to a page, and its plot of tokens."""
    kind, state, path = request.param
    visit = Visit(kind(), dict(state))
    yield visit, _found(visit.page, path)
    visit.close()


def _player(visit: Visit) -> Any:
    page: Any = visit.page
    steps = getattr(page, "_steps", None) or getattr(page, "_steps_shown", None) or page._results._steps
    return steps.player


def _marks(ax: Any) -> tuple[np.ndarray, list[str]]:
    """Places and colours of the filled marks."""
    drawn = [one for one in ax.collections if isinstance(one, PathCollection) and len(one.get_facecolor())]
    places = np.concatenate([np.asarray(one.get_offsets()) for one in drawn])
    return places, [to_hex(colour) for one in drawn for colour in np.asarray(one.get_facecolor())]


def test_marks_are_those_of_the_page_and_move_along_their_paths(seen: tuple[Visit, Any]) -> None:
    visit, plot = seen
    player, stage = _player(visit), stage_of(plot)
    assert stage is not None
    painted = PaintedPlots([("Tokens", plot)], player, DAY)
    tokens = stage["parts"][0].data
    places, colours = _marks(painted.figure().axes[0])
    at_rest = np.column_stack([tokens["x"], tokens["y"]])
    assert len(at_rest) > 1
    for place, colour in zip(at_rest, tokens["colour"], strict=True):
        near = [colours[k] for k in np.flatnonzero(np.abs(places - place).max(axis=1) < 1e-12)]
        assert to_hex(to_rgba(colour)) in near
    frames = stage["frames"].data
    path = np.reshape(frames["positions"][0], frames["shape"][0])[:, np.asarray(tokens["token"])]
    for moment, share in ((0, 0.0), (1, 0.0), (len(path) - 2, 0.25), (len(path) - 1, 0.0)):
        eased = share * share * (3 - 2 * share) if frames["eased"][0] else share
        there = path[moment] if share == 0 else (1 - eased) * path[moment] + eased * path[moment + 1]
        places, _ = _marks(painted._painted(moment + share, moving=True).axes[0])
        for place in there:
            assert np.abs(places - place).max(axis=1).min() < 1e-12


def test_a_film_of_the_page(seen: tuple[Visit, Any], tmp_path: Path) -> None:
    visit, _ = seen
    told: list[tuple[object, ...]] = []
    path = visit.page.film(tmp_path / "film.gif", lambda *words: told.append(words))
    assert path is not None
    with Image.open(path) as film:
        assert 1 < film.n_frames <= len(told)  # equal frames are one
        first = np.asarray(film.convert("RGB")).astype(int)
        film.seek(film.n_frames - 1)
        last = np.asarray(film.convert("RGB")).astype(int)
    assert first.shape == last.shape
    assert np.abs(first - last).max() > 100
    assert told[-1][1] == told[-1][2]


def test_a_figure_of_a_model_has_the_colours_and_the_scale_of_the_page() -> None:
    visit = Visit(ModelsPage(), {"model": "kuramoto", "n": "12", "frame": "20"})
    page: Any = visit.page
    figure = page.figure()
    tokens, curve = figure.axes
    _, colours = _marks(tokens)
    assert len(set(colours)) == 12
    assert sorted(colours) == sorted(page._plane.tokens.data["colour"])
    figure.canvas.draw()
    box, (left, right), (bottom, top) = tokens.get_window_extent(), tokens.get_xlim(), tokens.get_ylim()
    assert abs((right - left) / box.width / ((top - bottom) / box.height) - 1) < 0.05
    assert [words.get_text() for words in curve.get_legend().get_texts()] == ["theory", "measured"]
    visit.close()


def test_there_is_no_film_of_what_does_not_move_or_is_not_proved(tmp_path: Path) -> None:
    visit = Visit(TextPage(), {"text": ""})
    assert visit.page.film(tmp_path / "film.gif", False) is None
    visit.close()
    visit = Visit(NetworksPage(), {"example": "swap"})
    page: Any = visit.page
    page._area.value_input = "(0, 0) -> (1, 1)"
    visit.settle()
    with pytest.raises(HardmaxError, match="Press Compile"):
        page.film(tmp_path / "film.gif", False)
    visit.close()
