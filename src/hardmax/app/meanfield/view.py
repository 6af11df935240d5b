"""Tokens on the circle and the sphere, and their distance to the limit law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import panel as pn
import plotly.graph_objects as go
from bokeh.models import BoxAnnotation, ColumnDataSource, Label, Range1d, Span
from matplotlib.colors import to_hex

import hardmax as hm

from ...figures.sphere import CYCLIC_COLOURS
from ..look import FONT, PALETTE, Light, equal_scales, on_first_screen
from ..session import Session

_NAMES = ("concentration", "metastable", "terminal")


class DistancesView:
    """Plot of the distance to the limit by time, with the three phases and their expected times."""

    def __init__(self, session: Session) -> None:
        self.figure = session.figure(
            height=360, y_axis_type="log", y_range=Range1d(start=0.1, end=3.0), name="distances"
        )
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = "time", "W₂ to the predicted limit"
        self.curve = ColumnDataSource({"t": [], "w": []})
        self._dots = ColumnDataSource({"t": [], "w": []})
        self._bands = [BoxAnnotation(fill_alpha=0.12, fill_color=colour, line_color=None) for colour in PALETTE[:3]]
        self._labels = [
            Label(x=0, y=3, text="", text_font=FONT, text_font_size="12px", text_align="center", text_baseline="top")
            for _ in _NAMES
        ]
        self._expected = [Span(dimension="height", line_dash=[4, 4], line_width=1.2) for _ in range(2)]
        self._here = Span(dimension="height", line_width=1.5)
        for piece in (*self._bands, *self._labels, *self._expected, self._here):
            piece.visible = False
            self.figure.add_layout(piece)
        self.figure.line("t", "w", source=self.curve, line_width=2.2, line_color=PALETTE[0])
        self.figure.scatter("t", "w", source=self._dots, size=10, fill_color=PALETTE[4], line_color="white")
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        for label in self._labels:
            label.text_color = light.ink
        for span in self._expected:
            span.line_color = light.soft
        self._here.line_color = light.ink

    def at(self, time: float) -> None:
        """Mark the time of the tokens that are shown."""
        self._here.update(location=time, visible=True)

    def show(self, found: hm.Phases | None) -> None:
        """Draw the phases; an empty plot for None."""
        if found is None:
            self.curve.data = self._dots.data = {"t": [], "w": []}
            for piece in (*self._bands, *self._labels, *self._expected):
                piece.visible = False
            return
        self.figure.yaxis.axis_label = f"{found.distance_name.replace('W2', 'W₂')} to the predicted limit"
        heights = np.maximum(found.distances, 1e-12)
        top = 2.6 * float(heights.max())  # room for the names of the phases
        self.figure.y_range.update(start=0.6 * float(heights.min()), end=top)
        self.curve.data = {"t": found.times, "w": heights}
        self._dots.data = {"t": [found.approach_time], "w": [max(found.approach_distance, 1e-12)]}
        begin, end = found.window
        last = float(found.times[-1])
        left_again = found.escape_time is not None
        spans = ((0.0, begin), (begin, end), (end, last if left_again else end))
        for (start, stop), name, band, label in zip(spans, _NAMES, self._bands, self._labels, strict=True):
            wide = stop - start > 0.02 * last
            band.update(left=start, right=stop, visible=wide)
            label.update(x=0.5 * (start + stop), y=0.93 * top, text=name, visible=wide and stop - start > 0.12 * last)
        expected = (found.expected_approach_time, found.expected_escape_time)
        for span, time in zip(self._expected, expected, strict=True):
            span.visible = time is not None and time <= last
            if time is not None:
                span.location = time


# Dots that a browser draws without delay.
MOST_DOTS = 1_500
_EYE = {"eye": {"x": 1.0, "y": 1.0, "z": 0.6}}


def round_colours(start: np.ndarray) -> list[str]:
    """One colour per token, by the angle of its first two coordinates."""
    turns = (np.arctan2(start[:, 1], start[:, 0]) / (2 * math.pi)) % 1.0
    return [to_hex(colour) for colour in CYCLIC_COLOURS(turns)]


class CircleView:
    """Plot of tokens on the circle."""

    def __init__(self, session: Session) -> None:
        plot = session.figure(
            height=430,
            x_range=Range1d(start=-1.3, end=1.3),
            y_range=Range1d(start=-1.3, end=1.3),
            name="circle",
        )
        plot.axis.visible = plot.grid.visible = False
        equal_scales(plot)
        on_first_screen(plot, around=420)
        self.figure = plot
        self.tokens = ColumnDataSource({"x": [], "y": [], "colour": []})
        self._ghost = ColumnDataSource({"x": [], "y": []})
        turn = np.linspace(0, 2 * math.pi, 200)
        self._rim = plot.line(np.cos(turn), np.sin(turn), line_width=1.2)
        self._shade = plot.scatter(
            "x", "y", source=self._ghost, size=24, fill_color=None, line_width=2, line_dash="dashed"
        )
        plot.scatter("x", "y", source=self.tokens, size=9, fill_color="colour", line_color=None, fill_alpha=0.8)
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        self._rim.glyph.line_color = light.line
        self._shade.glyph.line_color = light.soft

    def show(self, tokens: np.ndarray, ghost: np.ndarray, colours: list[str]) -> None:
        """Draw tokens and their predicted limits."""
        self.tokens.data = {"x": tokens[:, 0], "y": tokens[:, 1], "colour": colours}
        places = np.unique(ghost.round(6), axis=0)
        self._ghost.data = {"x": places[:, 0], "y": places[:, 1]}


class SphereView:
    """Plot of tokens on the sphere, which can be turned."""

    def __init__(self, session: Session) -> None:
        self._light = session.lighting.light
        self._shown: tuple[np.ndarray, np.ndarray, list[str]] | None = None
        self.pane = pn.pane.Plotly(
            go.Figure(), height=430, sizing_mode="stretch_width", config={"displayModeBar": False}, margin=0
        )
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        self._light = light
        if self._shown is not None:
            self.show(*self._shown)

    def show(self, tokens: np.ndarray, ghost: np.ndarray, colours: list[str]) -> None:
        """Draw tokens and their predicted limits."""
        self._shown = (tokens, ghost, colours)
        self.pane.object = sphere_figure(tokens, ghost, colours, self._light)


def sphere_figure(tokens: np.ndarray, ghost: np.ndarray, colours: list[str], light: Light) -> Any:
    """The plotly figure."""
    around, up = np.meshgrid(np.linspace(0, 2 * math.pi, 33), np.linspace(0, math.pi, 17))
    ball = go.Surface(
        x=0.985 * np.cos(around) * np.sin(up),
        y=0.985 * np.sin(around) * np.sin(up),
        z=0.985 * np.cos(up),
        colorscale=[[0, light.shade], [1, light.shade]],
        showscale=False,
        opacity=0.55,
        hoverinfo="skip",
        lighting={"ambient": 0.9, "diffuse": 0.2, "specular": 0.0},
    )
    places = np.unique(ghost.round(3), axis=0)[:MOST_DOTS]
    hollow = {"size": 9 if len(places) <= 4 else 4, "color": light.soft, "symbol": "circle-open", "line": {"width": 2}}
    hidden = {"visible": False, "range": [-1.1, 1.1]}
    parts = [ball]
    for points, marker in ((places, hollow), (tokens, {"size": 4, "color": colours})):
        x, y, z = points.T
        parts.append(go.Scatter3d(x=x, y=y, z=z, mode="markers", marker=marker, hoverinfo="skip"))
    return go.Figure(
        parts,
        layout={
            "scene": {"xaxis": hidden, "yaxis": hidden, "zaxis": hidden, "aspectmode": "cube", "camera": _EYE},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT},
            "showlegend": False,
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "uirevision": "kept",
        },
    )
