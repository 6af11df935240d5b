"""The words of a document at chosen layers, and as an animation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from ..drawing.style import INK, SOFT, colours_of, new_figure, style_axes, styled
from ..drawing.words import LEADERS, MEAN, draw_boundary, label_words, name_axes, words_in_plane
from ..errors import InputError
from ..inputs import as_count
from ..progress import Ticker
from ..text.explaining.explanation import Explanation
from .save import checked_target, eased, fix_layout, pixels, write_movie

WORDS = "words"
"""Name (gid) by which the dots of the words can be found again."""
_HELD = 1.5
"""Seconds for which the first and the last layer are shown."""
_NAMED = 8
"""Followers with a name in each panel; more would overlap."""
_MARGINS = (0.3, 0.14)
"""Room at the sides for the names of words, as a share of the axes."""


@dataclass(frozen=True)
class _Words:
    """Data of all panels: positions in the plane, ranks of the leaders (for colours) and sizes of the dots."""

    explanation: Explanation
    path: np.ndarray
    ranks: np.ndarray
    sizes: np.ndarray
    leads: np.ndarray
    boundary: float | None

    @staticmethod
    def of(explanation: Explanation) -> _Words:
        placed = words_in_plane(explanation)
        sizes = 12 + 150 * explanation.shares / explanation.shares.max()
        return _Words(explanation, placed.path, placed.ranks, sizes, placed.leads, placed.boundary)

    def mean(self, positions: np.ndarray) -> np.ndarray:
        """The mean that the decoder reads, shape (1, 2); the mass that no word has stays at the origin."""
        found = (self.explanation.shares[:, None] * positions).sum(axis=0)
        if self.explanation.path.shape[2] == 1:
            found[1] = 0.0
        return np.asarray(found[None])


def draw_layers(explanation: Explanation, layers: Sequence[int] | None = None) -> Figure:
    """Figure of the words of a document at some layers, side by side.

    Parameters
    ----------
    explanation
        What :meth:`hardmax.LeaderClassifier.explain` returned.
    layers
        The layers to draw; the first, the second and the last when left out.

    Returns
    -------
    Figure
        A new figure, one panel per layer.
    """
    words = _Words.of(explanation)
    depth = len(words.path) - 1
    chosen = [0, 1, depth] if layers is None else [as_count("layers", layer, least=0) for layer in layers]
    chosen = sorted(set(chosen))
    if not chosen or chosen[-1] > depth:
        raise InputError("layers", list(layers or ()), f"must be layers from 0 to {depth}", f"pass [0, {depth}]")
    with styled():
        figure = new_figure(3.9 * len(chosen), 3.9)
        panels = figure.subplots(1, len(chosen), sharex=True, sharey=True, squeeze=False)[0]
        for ax, layer in zip(panels, chosen, strict=True):
            _paint(ax, words, words.path[layer])
            ax.set_title("the words as learned" if layer == 0 else f"layer {layer} of {depth}", loc="left")
            ax.margins(*_MARGINS)
            name_axes(ax, explanation.path.shape[2], explanation.classes, explanation.output)
        for ax in panels[1:]:
            ax.set_ylabel("")
        for ax, layer in zip(panels, chosen, strict=True):
            _name_words(ax, words, words.path[layer], followers=layer < depth)
    return figure


def animate_explanation(
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    fps: int = 16,
    seconds_per_layer: float = 0.6,
    progress: bool | None = None,
) -> Path:
    """Write an animation of the words of a document on their way to their leaders.

    The dashed line is the boundary of the decoder, the diamond is the mean that the decoder reads.

    Parameters
    ----------
    explanation
        What :meth:`hardmax.LeaderClassifier.explain` returned.
    path
        The file to write, ending in ``.gif`` or ``.mp4`` (with the extra ``video``).
    fps
        Frames per second.
    seconds_per_layer
        Duration of a layer, up to 60 seconds.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Path
        The file that was written.
    """
    target, fps = checked_target(path, fps, "seconds_per_layer", seconds_per_layer, 0.6)
    words = _Words.of(explanation)
    steps, hold = max(1, round(fps * seconds_per_layer)), max(1, round(fps * _HELD))
    count = steps * (len(words.path) - 1) + 2 * hold
    return write_movie(target, lambda ticker: _frames(words, steps, hold, ticker), count, fps, progress)


def _frames(words: _Words, steps: int, hold: int, ticker: Ticker) -> Iterator[np.ndarray]:
    depth = len(words.path) - 1
    with styled():
        figure = new_figure(5.6, 4.6)
        figure.set_dpi(100)
        ax = figure.add_subplot()
        canvas: Any = FigureCanvasAgg(figure)
        dots, stars, mean = _paint(ax, words, words.path[0])
        ax.margins(*_MARGINS)
        ax.set_title("layer 0", loc="left")
        name_axes(ax, words.explanation.path.shape[2], words.explanation.classes, words.explanation.output)
        passing = _name_words(ax, words, words.path[0])
        fix_layout(figure)
        ax.set_autoscale_on(False)
        for layer in range(depth + 1):
            ax.set_title(f"layer {layer} of {depth}", loc="left")
            following = words.path[min(layer + 1, depth)]
            for name in passing:
                name.set_visible(layer == 0)
            for step in range((hold if layer in (0, depth) else 0) + (steps if layer < depth else 0)):
                gone = step - (hold if layer == 0 else 0)
                share = eased(gone / steps) if layer < depth and gone > 0 else 0.0
                now = (1 - share) * words.path[layer] + share * following
                dots.set_offsets(now[~words.leads])
                stars.set_offsets(now[words.leads])
                mean.set_offsets(words.mean(now))
                ticker.advance()
                yield pixels(canvas)


def _paint(ax: Axes, words: _Words, positions: np.ndarray) -> tuple[PathCollection, PathCollection, PathCollection]:
    style_axes(ax)
    colours = colours_of(words.ranks)
    follows = ~words.leads
    draw_boundary(ax, words.boundary, words.explanation.classes)
    dots = ax.scatter(
        positions[follows, 0],
        positions[follows, 1],
        s=words.sizes[follows],
        c=colours[follows],
        alpha=0.75,
        linewidths=0,
        zorder=3,
        gid=WORDS,
    )
    stars = ax.scatter(
        positions[words.leads, 0],
        positions[words.leads, 1],
        s=200,
        marker="*",
        c=colours[words.leads],
        edgecolors=INK,
        linewidths=0.8,
        zorder=5,
        gid=LEADERS,
    )
    read = words.mean(positions)
    mean = ax.scatter(
        read[:, 0], read[:, 1], s=60, marker="D", c="white", edgecolors=INK, linewidths=1.3, zorder=6, gid=MEAN
    )
    return dots, stars, mean


def _name_words(ax: Axes, words: _Words, positions: np.ndarray, *, followers: bool = True) -> list[Annotation]:
    """Label the leaders and the heaviest followers; the labels of the followers are returned."""
    heaviest = [k for k in np.argsort(-words.explanation.shares, kind="stable") if not words.leads[k]][:_NAMED]
    leaders = np.flatnonzero(words.leads)
    named = [*leaders[np.argsort(words.ranks[leaders])], *(heaviest if followers else [])]
    names = [words.explanation.words[k] for k in named]
    before = len(ax.texts)
    label_words(ax, positions[named], names, bold=len(leaders), colours=[SOFT] * len(named))
    own = {words.explanation.words[k] for k in leaders}
    return [text for text in ax.texts[before:] if isinstance(text, Annotation) and text.get_text() not in own]
