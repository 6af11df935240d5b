"""Figures of compiled networks: five stages of a construction in the plane, and an animation through the blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from ..drawing.style import INK, LINE, MARKERS, SOFT, colour_of, new_figure, style_axes, styled
from ..interpolation.arithmetic.numbers import to_floats
from ..interpolation.evaluation.running import Moment, five_moments, journey
from ..interpolation.transformer import ExactTransformer
from ..progress import Ticker
from .save import checked_target, eased, fix_layout, pixels, write_movie

TOKENS, TARGETS = "tokens", "targets"
"""Names (gid) by which the artists can be found again."""
_MOST_STOPS = 24
"""Stops of a long network: about 15 seconds at the default duration of a stop."""


def draw_construction(network: ExactTransformer, figure: Figure | SubFigure | None = None) -> Figure | SubFigure:
    """Figure of five stages of a network in the plane of its first two coordinates, one colour and shape per sequence.

    Rings are the targets. Every panel has axes of its own, because the stages differ in scale by orders of magnitude.

    Parameters
    ----------
    network
        A compiled network.
    figure
        Figure to draw on; a new one when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    way = journey(network)
    with styled():
        if figure is None:
            figure = new_figure(13.0, 3.0)
        axes = figure.subplots(1, 5)
        for k, (ax, moment) in enumerate(zip(axes, five_moments(network, way), strict=True)):
            shows_targets = k == 4
            _paint(ax, moment.positions, way.owner, targets_of(network) if shows_targets else None)
            _limit(ax, *window_around(moment.positions, targets_of(network)[0] if shows_targets else None))
            ax.set_title(moment.title, fontsize=10)
            ax.set_xlabel("before the first block" if moment.block == 0 else f"after block {moment.block}")
    return figure


def targets_of(network: ExactTransformer) -> tuple[np.ndarray, np.ndarray]:
    """Output points of all sequences, shape (point, coordinate), and the sequence of each, shape (point,)."""
    points = np.concatenate([to_floats(y, network.dimension) for y in network.data.outputs])
    return points, np.repeat(np.arange(len(network.data)), [len(y) for y in network.data.outputs])


def _paint(
    ax: Axes, positions: np.ndarray, owner: np.ndarray, targets: tuple[np.ndarray, np.ndarray] | None
) -> list[Any]:
    style_axes(ax)
    ax.axhline(0, color=LINE, lw=0.6, zorder=0)
    ax.axvline(0, color=LINE, lw=0.6, zorder=0)
    if targets is not None:
        points, owners = targets
        ax.scatter(
            points[:, 0], points[:, 1], s=210, facecolors="none", gid=TARGETS,
            edgecolors=[colour_of(int(j)) for j in owners], linewidths=1.4,
        )  # fmt: skip
    marks = []
    names = np.unique(owner)
    # Tokens that several sequences share show as nested shapes: the earlier, the larger.
    sizes = np.linspace(95, 26, len(names)) if len(names) > 1 else np.array([40.0])
    for j, size in zip(names, sizes, strict=True):
        own = positions[owner == j]
        marks.append(
            ax.scatter(
                own[:, 0],
                own[:, 1],
                s=float(size),
                color=[colour_of(int(j))],
                marker=MARKERS[int(j) % len(MARKERS)],
                edgecolors=INK,
                linewidths=0.5,
                gid=TOKENS,
                zorder=3,
            )
        )
    ax.tick_params(labelsize=8)
    return marks


def window_around(positions: np.ndarray, more: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of a window around the points, with a margin."""
    points = positions[:, :2] if more is None else np.concatenate([positions[:, :2], more[:, :2]])
    low, high = points.min(axis=0), points.max(axis=0)
    reach = high - low
    # A panel of a line still needs some height, at the scale of the other axis.
    reach = np.maximum(reach, 0.15 * reach.max()) if reach.max() > 0 else np.ones(2)
    centre = (low + high) / 2
    return centre - 0.6 * reach, centre + 0.6 * reach


def _limit(ax: Axes, low: np.ndarray, high: np.ndarray) -> None:
    ax.set_xlim(float(low[0]), float(high[0]))
    ax.set_ylim(float(low[1]), float(high[1]))
    ax.locator_params(nbins=4)
    ax.ticklabel_format(style="sci", scilimits=(-3, 4))
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_offset_text().set(fontsize=7, color=SOFT)


def animate_network(
    network: ExactTransformer,
    path: str | os.PathLike[str],
    *,
    fps: int = 16,
    seconds_per_stop: float = 0.6,
    progress: bool | None = None,
) -> Path:
    """Write an animation of the tokens on their way through the blocks; the view follows the tokens.

    Long networks stop at about two dozen blocks; the others are passed without a stop.

    Parameters
    ----------
    network
        A compiled network.
    path
        The file to write, ending in ``.gif`` or ``.mp4`` (with the extra ``video``).
    fps
        Frames per second.
    seconds_per_stop
        Duration of a stop, up to 60 seconds.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Path
        The file that was written.
    """
    target, fps = checked_target(path, fps, "seconds_per_stop", seconds_per_stop, 0.6)
    stops = _stops(network)
    steps = max(1, round(fps * seconds_per_stop))
    return write_movie(target, lambda ticker: _frames(network, stops, steps, ticker), steps * len(stops), fps, progress)


def _stops(network: ExactTransformer) -> list[Moment]:
    way = journey(network)
    last = len(way.after_block) - 1
    chosen = sorted(set(np.linspace(0, last, min(last + 1, _MOST_STOPS)).round().astype(int).tolist()))
    return [Moment(0, "inputs", way.before)] + [
        Moment(k + 1, network.blocks[k].stage, way.after_block[k]) for k in chosen
    ]


def _frames(network: ExactTransformer, stops: list[Moment], steps: int, ticker: Ticker) -> Iterator[np.ndarray]:
    owner = journey(network).owner
    targets = targets_of(network)
    windows = [window_around(stop.positions, targets[0]) for stop in stops]
    with styled():
        figure = new_figure(5.2, 4.6)
        figure.set_dpi(100)
        ax = figure.add_subplot()
        canvas: Any = FigureCanvasAgg(figure)
        marks = _paint(ax, stops[0].positions, owner, targets)
        _limit(ax, *windows[0])
        ax.set_title("inputs")
        fix_layout(figure)
        for k, stop in enumerate(stops):
            following = stops[min(k + 1, len(stops) - 1)]
            name = "inputs" if stop.block == 0 else f"block {stop.block} of {len(network.blocks)}: {stop.title}"
            ax.set_title(name)
            for step in range(steps):
                share = eased(step / steps)
                now = (1 - share) * stop.positions + share * following.positions
                low, high = (
                    (1 - share) * a + share * b
                    for a, b in zip(windows[k], windows[min(k + 1, len(stops) - 1)], strict=True)
                )
                for j, mark in zip(np.unique(owner), marks, strict=True):
                    mark.set_offsets(now[owner == j][:, :2])
                _limit(ax, low, high)
                ticker.advance()
                yield pixels(canvas)
