"""Plots of the explorer painted with Matplotlib as they are seen: figures, and films of their motion.

What static/stage.js moves in a plot of the kind ``points`` is moved here by the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, LabelSet, Line, LogScale, MultiLine, Scatter, Segment, Span, Text
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from ..drawing.style import styled
from ..figures.save import fix_layout, pixels, write_movie
from ..progress import Progress, Ticker
from .look import Light
from .player import Player
from .stage import stage_of

FPS = 12
"""Frames per second of a film, as on the other pages."""
_SECONDS = 12.0
"""A film is at most this long; longer motion is played faster."""
_HOLD = 1.2
"""Seconds for which the end of a film is shown."""
_DPI = 90
"""Dots per inch of a film, which has many pictures."""
_POINT = 0.75
"""Points per pixel: sizes of the browser's marks are in pixels."""
_INCH = 96
"""Pixels per inch."""
_SIZE = (620, 420)
"""Pixels of the frame of a plot: a browser does not tell the server how large it is."""
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "star": "*", "diamond": "d", "inverted_triangle": "v"}
_OTHER_MARKER = "h"


@dataclass(frozen=True, eq=False)
class PaintedPlots:
    """Bokeh figures with their headings, from left to right, and the player that moves them."""

    plots: Sequence[tuple[str, Any]]
    player: Player
    light: Light
    held: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The data of all sources by their ids, as they were at first: a film is drawn while the page may change."""
    sizes: list[tuple[float, float]] = field(default_factory=list)
    """Width and height of each frame in pixels, at first."""

    def __post_init__(self) -> None:
        for _, plot in self.plots:
            self.sizes.append(_frame_size(plot))
            stage = stage_of(plot) or {"frames": ColumnDataSource(), "parts": []}
            sources = [stage["frames"], *stage["parts"], *(mark.data_source for mark in plot.renderers)]
            sources += [one.source for one in plot.center if isinstance(one, LabelSet)]
            self.held.update({source.id: dict(source.data) for source in sources})

    def figure(self) -> Figure:
        """The plots at rest."""
        with styled():
            return self._painted(float(self.player.value), moving=False)

    def film(self, path: Path, progress: Progress = False) -> Path:
        """Write the motion from the first moment to the last as GIF or MP4, by the suffix of ``path``."""
        end = float(self.player.end)
        seconds = min(end * self.player.interval / 1000, _SECONDS)
        times = [*np.linspace(0, end, max(2, round(FPS * seconds))).tolist(), *[end] * round(FPS * _HOLD)]

        def frames(_ticker: Ticker) -> Iterator[np.ndarray]:
            with styled():
                first = self._painted(0.0, moving=True)
                places = [ax.get_position() for ax in first.axes]  # to find them takes longer than to draw
                for shown, t in enumerate(times, start=1):
                    figure = self._painted(t, places, moving=True)
                    if callable(progress):
                        progress("frames", shown, len(times))
                    yield pixels(FigureCanvasAgg(figure))

        return write_movie(path, frames, len(times), FPS, False)

    def _painted(self, t: float, places: Sequence[Bbox] = (), *, moving: bool) -> Figure:
        """The plots at a time, at their places in the figure where these are known."""
        sizes = self.sizes
        wide, high = sum(size[0] for size in sizes), max(size[1] for size in sizes)
        inches = (wide + 110 * len(sizes)) / _INCH, (high + 110) / _INCH
        figure = Figure(figsize=inches, facecolor=self.light.card, dpi=_DPI)
        figure.set_layout_engine("none" if places else "constrained")
        grid = figure.subplots(1, len(sizes), squeeze=False, width_ratios=[size[0] for size in sizes])
        spans = _spans([plot for _, plot in self.plots], self.held, t)
        for ax, (title, plot) in zip(grid[0], self.plots, strict=True):
            self._paint(ax, plot, t, spans, moving=moving)
            ax.set_title(title, color=self.light.ink, fontsize=11, fontweight="bold", loc="left")
        grid[0][0].set_title(self._moment(t), color=self.light.ink, fontsize=10, loc="right")
        if not places:
            fix_layout(figure)
        for ax, place in zip(grid[0], places, strict=False):
            ax.set_position(place)
        return figure

    def _moment(self, t: float) -> str:
        """The words of the player, as static/player.js chooses them."""
        k, player = round(t), self.player
        if k < len(player.titles):
            return str(player.titles[k])
        return f"{player.label} {k if player.scale == 1 else round(t * player.scale, 1)}"

    def _paint(self, ax: Axes, plot: Any, t: float, spans: dict[str, float], *, moving: bool) -> None:
        light, stage = self.light, stage_of(plot)
        moved = {} if stage is None or not moving else _moved(stage, self.held, t)
        self._paint_axes(ax, plot, None if stage is None or not moving else _window(stage, self.held, t))
        named = {item.renderers[0].id: item.label.value for key in plot.legend for item in key.items if item.visible}
        resting = [] if stage is None or not moving else stage.get("resting", [])
        for order, mark in enumerate(plot.renderers, start=2):
            if mark.visible and mark not in resting:
                source = mark.data_source.id
                data = moved.get(source, self.held[source])
                _paint_glyph(ax, mark.glyph, data, order, named.get(mark.id))
        for one in plot.center:
            if isinstance(one, Span) and one.visible:
                at = spans.get(one.id, one.location)
                ax.axvline(at, color=one.line_color, lw=one.line_width * _POINT, ls=_dashes(one.line_dash), zorder=1.5)
            elif isinstance(one, LabelSet):
                _paint_words(ax, one, self.held[one.source.id], 20)
        if named:
            ax.legend(labelcolor=light.ink, frameon=False, fontsize=9)

    def _paint_axes(self, ax: Axes, plot: Any, window: np.ndarray | None) -> None:
        light = self.light
        ax.set_facecolor(light.card)
        ax.set_yscale("log" if isinstance(plot.y_scale, LogScale) else "linear")
        ends = [plot.x_range.start, plot.x_range.end, plot.y_range.start, plot.y_range.end]
        ends = ends if window is None else window.tolist()
        if all(isinstance(end, (int, float)) and math.isfinite(end) for end in ends):
            ax.set(xlim=ends[:2], ylim=ends[2:])
        ax.set_xlabel(_plain(plot.xaxis[0].axis_label), color=light.soft)
        ax.set_ylabel(_plain(plot.yaxis[0].axis_label), color=light.soft)
        ax.grid(color=light.shade, lw=0.8)
        ax.set_axisbelow(True)
        ax.tick_params(colors=light.soft)
        for spine in ax.spines.values():
            spine.set_color(light.line)


def _frame_size(plot: Any) -> tuple[float, float]:
    """Width and height of the frame of a plot in pixels; both axes of a plot around zero have the same scale."""
    if not plot.tags:
        return _SIZE
    wide, high = (axis.end - axis.start for axis in (plot.x_range, plot.y_range))
    return _SIZE[1] * wide / high, _SIZE[1]


def _plain(label: Any) -> str:
    return str(getattr(label, "text", label) or "")


def _dashes(pattern: Any) -> Any:
    """A pattern of Bokeh as Matplotlib writes it."""
    return (0, list(pattern)) if pattern else "-"


# What moves


def _share(frames: dict[str, Any], t: float) -> tuple[int, int, float]:
    """The moments before and after a time, and the share of the way between them."""
    count = frames["shape"][0][0]
    t = max(0.0, min(t, count - 1))
    k = min(math.floor(t), count - 1)
    share = t - k
    return k, min(k + 1, count - 1), share * share * (3 - 2 * share) if frames["eased"][0] else share


def _moved(stage: dict[str, Any], held: dict[str, dict[str, Any]], t: float) -> dict[str, dict[str, Any]]:
    """The data of the sources of a stage at a time, by their ids."""
    frames = held[stage["frames"].id]
    if not len(frames["at"]) or not frames["playable"][0]:
        return {}
    path = np.reshape(frames["positions"][0], frames["shape"][0])
    t *= frames["pace"][0]
    before, after, share = _share(frames, t)
    now = (1 - share) * path[before] + share * path[after]
    made: dict[str, dict[str, Any]] = {}
    for part in stage["parts"]:
        places = now[np.asarray(held[part.id]["token"], dtype=np.int64)]
        if part is stage.get("names"):
            places = _thinned(places, stage["plot"])
        made[part.id] = {**held[part.id], "x": places[:, 0], "y": places[:, 1]}
    if stage.get("trails") is not None:
        chosen = np.asarray(frames["chosen"][0], dtype=np.int64)
        trail = np.concatenate([path[: before + 1, chosen], now[None, chosen]])
        columns = {"xs": list(trail[..., 0].T), "ys": list(trail[..., 1].T), "colour": frames["tints"][0]}
        made[stage["trails"].id] = columns
    return made


def _thinned(places: np.ndarray, plot: Any) -> np.ndarray:
    """Places of names, without those that would be written over an earlier one."""
    wide, high = plot.x_range.end - plot.x_range.start, plot.y_range.end - plot.y_range.start
    close = np.array([0.18 * wide, 0.05 * high])  # of a usual word
    places = places.copy()
    for k in range(1, len(places)):
        if (np.abs(places[:k] - places[k]) < close).all(axis=1).any():
            places[k, 0] = np.nan
    return places


def _window(stage: dict[str, Any], held: dict[str, dict[str, Any]], t: float) -> np.ndarray | None:
    """Ranges of the plot of a stage at a time, where each moment has its own: left, right, bottom, top."""
    frames = held[stage["frames"].id]
    if not len(frames["at"]) or not len(frames["windows"][0]):
        return None
    windows = np.reshape(frames["windows"][0], (-1, 4))
    before, after, share = _share({**frames, "eased": [1]}, t * frames["pace"][0])
    return np.asarray((1 - share) * windows[before] + share * windows[after])


def _spans(plots: Sequence[Any], held: dict[str, dict[str, Any]], t: float) -> dict[str, float]:
    """Places of the lines that mark the time of a stage, by their ids."""
    made: dict[str, float] = {}
    for stage in filter(None, map(stage_of, plots)):
        frames = held[stage["frames"].id]
        if len(frames["at"]) and "times" in frames:
            times = np.asarray(frames["times"][0])
            made |= {one.id: float(np.interp(t, np.arange(len(times)), times)) for one in stage.get("here", [])}
    return made


# Marks


def _column(spec: Any, data: dict[str, Any]) -> Any:
    """The values of a property of a glyph: a column of its data, or one value for all."""
    name = getattr(spec, "field", spec)
    if isinstance(name, str) and name in data:
        return data[name]
    return getattr(spec, "value", spec)


def _all(values: Any, count: int) -> list[Any]:
    return list(values) if isinstance(values, (list, np.ndarray)) else [values] * count


def _paint_glyph(ax: Axes, glyph: Any, data: dict[str, Any], order: int, label: str | None) -> None:
    column = {name: _column(getattr(glyph, name), data) for name in glyph.properties() if name not in ("name", "tags")}
    if isinstance(glyph, Text):
        _paint_words(ax, glyph, data, 20)
        return
    line = {"alpha": column["line_alpha"], "zorder": order}
    if isinstance(glyph, Line):
        style = {"color": glyph.line_color, "lw": glyph.line_width * _POINT, "ls": _dashes(glyph.line_dash)}
        ax.plot(column["x"], column["y"], label=label, **line, **style)
    elif isinstance(glyph, (MultiLine, Segment)):
        if isinstance(glyph, MultiLine):
            pieces = [np.column_stack(pair) for pair in zip(column["xs"], column["ys"], strict=True)]
        else:
            ends = np.array([column[name] for name in ("x0", "y0", "x1", "y1")], dtype=float)
            pieces = list(ends.T.reshape(-1, 2, 2))
        style = {"colors": column["line_color"], "linewidths": column["line_width"] * _POINT}
        if pieces:
            ax.add_collection(LineCollection(pieces, ls=_dashes(glyph.line_dash), **line, **style), autolim=False)
    elif isinstance(glyph, Scatter) and len(_all(column["x"], 1)):
        _paint_marks(ax, column, order)


def _paint_marks(ax: Axes, column: dict[str, Any], order: int) -> None:
    n = len(_all(column["x"], 1))
    x, y, shapes = (np.array(_all(column[name], n)) for name in ("x", "y", "marker"))
    sizes = (np.array(_all(column["size"], n), dtype=float) * _POINT) ** 2
    filled = column["fill_alpha"] != 0
    for shape in dict.fromkeys(shapes.tolist()):
        some = np.flatnonzero(shapes == shape)
        ax.scatter(
            x[some],
            y[some],
            s=sizes[some],
            marker=_MARKERS.get(shape, _OTHER_MARKER),
            facecolors=[_all(column["fill_color"], n)[k] for k in some] if filled else "none",
            edgecolors=[_all(column["line_color"] or "none", n)[k] for k in some],
            linewidths=column["line_width"] * _POINT,
            alpha=column["fill_alpha"] if filled else None,
            zorder=order,
        )


def _paint_words(ax: Axes, glyph: Any, data: dict[str, Any], order: int) -> None:
    x, y, words = (_column(getattr(glyph, name), data) for name in ("x", "y", "text"))
    colour, shift = getattr(glyph.text_color, "value", glyph.text_color), glyph.x_offset
    shift, lift = (getattr(one, "value", one) * _POINT for one in (shift, glyph.y_offset))
    for left, bottom, word in zip(x, y, words, strict=True):
        if math.isfinite(left):
            ax.annotate(
                str(word).replace("$", r"\$"),  # a text, not a formula
                (left, bottom),
                (shift, -lift),  # downwards on a screen
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=colour,
                zorder=order,
                annotation_clip=True,
            )
