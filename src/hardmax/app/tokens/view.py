"""Tokens in the plane (drawn with Bokeh) and in space (with plotly): markers, trails, hull and half-plane."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn
import plotly.graph_objects as go
from bokeh.models import Arrow, ColumnDataSource, CustomJS, HoverTool, LinearColorMapper, OpenHead, Range1d

from ..look import FONT, PALETTE, Light, equal_scales, leader_colours, on_first_screen, rank_colours, static
from ..session import Session
from .picture import Picture

_EVENTS = ("panstart", "pan", "panend", "tap", "doubletap")
# Beyond what a view shows, so that the corners of a half-plane are never seen.
_FAR = 1e4


class PlaneView:
    """The plot of tokens with two coordinates; ``act(kind, what, x, y)`` is called for every action of the pointer.

    ``kind`` is move, drop, select or add; ``what`` is a token, or -1 and -2 for the ends of the ellipse's axes.
    """

    def __init__(self, session: Session, act: Callable[[str, int, float, float], None]) -> None:
        self._light = session.lighting.light
        self._picture: Picture | None = None
        self.figure = session.figure(
            height=560, x_range=Range1d(start=-3, end=3), y_range=Range1d(start=-3, end=3), name="plane"
        )
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = "first coordinate", "second coordinate"
        self.tokens = ColumnDataSource(
            {name: [] for name in ("x", "y", "index", "fill", "line", "size", "shape", "wide")}
        )
        self._hull = ColumnDataSource({"x": [], "y": []})
        self._trails = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1", "rank")})
        self._ellipse = ColumnDataSource({"x": [], "y": []})
        self.handles = ColumnDataSource({"x": [], "y": []})
        self._region = ColumnDataSource({"x": [], "y": []})
        self._favourites = ColumnDataSource({"x": [], "y": []})
        self._chosen = ColumnDataSource({"x": [], "y": []})
        self._arrow = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": []})
        self._draw()
        self.wire = ColumnDataSource({"kind": [], "what": [], "x": [], "y": [], "serial": []}, name="hand")
        self._answer = ColumnDataSource({"serial": [0]})
        self._listen(act)
        session.lighting.follow(self._repaint)

    def _draw(self) -> None:
        plot = self.figure
        self._shaded = plot.patch("x", "y", source=self._region, line_width=1, fill_color=PALETTE[3], fill_alpha=0.18)
        self._solid = plot.patch("x", "y", source=self._hull, line_width=1.5, fill_alpha=0.55)
        mapper = LinearColorMapper(palette=list(leader_colours()), low=-0.5, high=len(leader_colours()) - 0.5)
        self._mapper = mapper
        plot.segment(
            "x0",
            "y0",
            "x1",
            "y1",
            source=self._trails,
            line_color={"field": "rank", "transform": mapper},
            line_alpha=0.4,
        )
        self._round = plot.line("x", "y", source=self._ellipse, line_dash=[5, 4], line_width=1.3)
        self._ends = plot.scatter("x", "y", source=self.handles, marker="square", size=11, line_width=2)
        dots = plot.scatter(
            "x",
            "y",
            source=self.tokens,
            size="size",
            marker="shape",
            fill_color="fill",
            line_color="line",
            line_width="wide",
        )
        plot.scatter(
            "x",
            "y",
            source=self._favourites,
            size=24,
            fill_color=None,
            line_color="#D55E00",
            line_width=2.5,
            marker="circle",
        )
        self._ring = plot.scatter(
            "x", "y", source=self._chosen, size=19, fill_color=None, line_width=2.5, marker="circle"
        )
        self._head = OpenHead(size=9, line_width=2)
        self._pointer = Arrow(
            end=self._head, source=self._arrow, x_start="x0", y_start="y0", x_end="x1", y_end="y1", line_width=2
        )
        plot.add_layout(self._pointer)
        plot.scatter([0], [0], marker="cross", size=10, line_color="#7b8794", fill_color=None)
        hover = HoverTool(renderers=[dots], tooltips=[("token", "@index"), ("at", "(@x{0.000}, @y{0.000})")])
        plot.add_tools(hover)

    def _listen(self, act: Callable[[str, int, float, float], None]) -> None:
        known = {
            "plot": self.figure,
            "tokens": self.tokens,
            "handles": self.handles,
            "wire": self.wire,
            "answer": self._answer,
        }
        equal_scales(self.figure)
        on_first_screen(self.figure, around=330)
        callback = CustomJS(args=known, code=static("drag.js"))
        for event in _EVENTS:
            self.figure.js_on_event(event, callback)
        self._answer.js_on_change("data", callback)
        self.tokens.js_on_change("data", callback)

        def on_action(_attr: str, _old: Any, new: dict[str, list[Any]]) -> None:
            if not new["kind"]:
                return
            try:
                act(str(new["kind"][0]), int(new["what"][0]), float(new["x"][0]), float(new["y"][0]))
            finally:
                self._answer.data = {"serial": [new["serial"][0]]}

        self.wire.on_change("data", on_action)

    def _repaint(self, light: Light) -> None:
        self._light = light
        self._solid.glyph.fill_color, self._solid.glyph.line_color = light.shade, light.line
        self._shaded.glyph.line_color = light.soft
        self._round.glyph.line_color = light.soft
        self._ends.glyph.line_color, self._ends.glyph.fill_color = light.soft, light.card
        self._ring.glyph.line_color = light.ink
        self._pointer.line_color = self._head.line_color = light.ink
        self._mapper.low_color = light.grey
        if self._picture is not None:
            self.show(self._picture)

    def fit(self, points: np.ndarray) -> None:
        """Set the ranges so that all points are inside, with the same scale on both axes."""
        reach = 1.15 * max(float(np.abs(points).max()), 1e-3)
        self.figure.y_range.update(start=-reach, end=reach)

    def show_ellipse(self, angle: float, a: float, b: float) -> None:
        """Draw the ellipse of points z with ⟨A z, z⟩ = 1."""
        turn, t = math.radians(angle), np.linspace(0, 2 * math.pi, 97)
        first, second = np.array([math.cos(turn), math.sin(turn)]), np.array([-math.sin(turn), math.cos(turn)])
        points = a * np.cos(t)[:, None] * first + b * np.sin(t)[:, None] * second
        self._ellipse.data = {"x": points[:, 0], "y": points[:, 1]}
        self.handles.data = {"x": [a * first[0], b * second[0]], "y": [a * first[1], b * second[1]]}

    def show(self, picture: Picture) -> None:
        """Draw a picture in place of the previous one."""
        self._picture = picture
        light = self._light
        dot = 12 if len(picture.index) <= 60 else 9 if len(picture.index) <= 500 else 5
        fill = rank_colours(picture.rank, light)
        tied = picture.second >= 0
        line = np.where(tied, np.array(rank_colours(picture.second, light)), light.soft)
        line = np.where(picture.leads, light.ink, line)
        self.tokens.data = {
            "x": picture.positions[:, 0],
            "y": picture.positions[:, 1],
            "index": picture.index,
            "fill": fill,
            "line": line.tolist(),
            "size": np.where(picture.leads, 2 * max(dot, 9), np.where(tied, dot + 2, dot)),
            "shape": np.where(picture.leads, "star", "circle").tolist(),
            "wide": np.where(tied & ~picture.leads, 3.0, 0.6),
        }
        self._hull.data = {"x": picture.hull[:, 0], "y": picture.hull[:, 1]}
        trails = picture.trails
        self._trails.data = {
            "x0": trails[:, :-1, 0].ravel(),
            "y0": trails[:, :-1, 1].ravel(),
            "x1": trails[:, 1:, 0].ravel(),
            "y1": trails[:, 1:, 1].ravel(),
            "rank": np.repeat(_folded(picture.trail_rank), max(0, trails.shape[1] - 1)).astype(np.float64),
        }
        self._show_half_space(picture)

    def _show_half_space(self, picture: Picture) -> None:
        half = picture.half_space
        nothing: dict[str, Any] = {"x": [], "y": []}
        if half is None:
            self._region.data = self._favourites.data = self._chosen.data = nothing
            self._arrow.data = {"x0": [], "y0": [], "x1": [], "y1": []}
            return
        length = float(np.hypot(*half.normal))
        unit = half.normal / length if length > 0 else np.zeros(2)
        along = np.array([-unit[1], unit[0]])
        corners = half.here + _FAR * np.array([along, along + unit, unit - along, -along])
        self._region.data = {"x": corners[:, 0], "y": corners[:, 1]} if length > 0 else nothing
        self._favourites.data = {"x": half.favourites[:, 0], "y": half.favourites[:, 1]}
        self._chosen.data = {"x": [half.here[0]], "y": [half.here[1]]}
        tip = half.here + 0.18 * (self.figure.y_range.end - self.figure.y_range.start) * unit
        self._arrow.data = {"x0": [half.here[0]], "y0": [half.here[1]], "x1": [tip[0]], "y1": [tip[1]]}


def _folded(ranks: np.ndarray) -> np.ndarray:
    """Ranks as the colour mapper needs them: colours repeat, -1 is grey."""
    return np.where(ranks < 0, -1, ranks % len(leader_colours()))


class SpaceView:
    """The plot of tokens with three coordinates."""

    def __init__(self, session: Session) -> None:
        self._light = session.lighting.light
        self._picture: Picture | None = None
        self.pane = pn.pane.Plotly(
            go.Figure(), height=560, sizing_mode="stretch_width", config={"displayModeBar": False}, margin=0
        )
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        self._light = light
        if self._picture is not None:
            self.show(self._picture)

    def show(self, picture: Picture) -> None:
        """Draw a picture in place of the previous one."""
        self._picture = picture
        self.pane.object = space_figure(picture, self._light)


def _dots(points: np.ndarray, colours: list[str], size: float, symbol: str, name: str, edge: str) -> Any:
    x, y, z = points.T
    marker = {"size": size, "color": colours, "symbol": symbol, "line": {"width": 1, "color": edge}}
    return go.Scatter3d(x=x, y=y, z=z, mode="markers", marker=marker, name=name, hoverinfo="skip")


def space_figure(picture: Picture, light: Light) -> Any:
    """The plotly figure."""
    colours = np.array(rank_colours(picture.rank, light))
    leads, points = picture.leads, picture.positions
    size = 4.0 if len(points) <= 500 else 2.2
    parts = []
    if len(picture.faces):
        x, y, z = picture.hull.T
        i, j, k = picture.faces.T
        parts.append(
            go.Mesh3d(x=x, y=y, z=z, i=i, j=j, k=k, color=light.grey, opacity=0.18, hoverinfo="skip", name="hull")
        )
    if len(picture.trails):
        broken = np.concatenate([picture.trails, np.full((len(picture.trails), 1, 3), np.nan)], axis=1).reshape(-1, 3)
        x, y, z = broken.T
        line = {"width": 1.5, "color": light.line}
        parts.append(go.Scatter3d(x=x, y=y, z=z, mode="lines", line=line, hoverinfo="skip", name="trails"))
    parts.append(_dots(points[~leads], colours[~leads].tolist(), size, "circle", "tokens", light.card))
    parts.append(_dots(points[leads], colours[leads].tolist(), 7.0, "diamond", "leaders", light.ink))
    axis: dict[str, Any] = {
        "backgroundcolor": "rgba(0,0,0,0)",
        "gridcolor": light.shade,
        "zerolinecolor": light.line,
        "tickfont": {"color": light.soft, "size": 10},
        "title": {"font": {"color": light.soft, "size": 11}},
    }
    names = ("first", "second", "third")
    scene = {
        f"{key}axis": {**axis, "title": {**axis["title"], "text": name}} for key, name in zip("xyz", names, strict=True)
    }
    return go.Figure(
        parts,
        layout={
            "scene": {**scene, "aspectmode": "data"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT},
            "showlegend": False,
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "uirevision": "kept",  # the point of view stays after an update
        },
    )
