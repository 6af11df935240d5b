"""Tokens on the circle or the sphere, in the colour of where they started, and where theory sends them as a ghost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import panel as pn
import plotly.graph_objects as go
from bokeh.models import ColumnDataSource, Range1d
from matplotlib.colors import to_hex

from ...figures.sphere import _ROUND
from ..look import FONT, Light, keep_round
from ..session import Session

MOST_DOTS = 1_500
_EYE = {"eye": {"x": 1.0, "y": 1.0, "z": 0.6}}


def round_colours(start: np.ndarray) -> list[str]:
    """One colour for each token, by the angle of its first two coordinates."""
    turns = (np.arctan2(start[:, 1], start[:, 0]) / (2 * math.pi)) % 1.0
    return [to_hex(colour) for colour in _ROUND(turns)]


class CircleView:
    """Tokens with two coordinates."""

    def __init__(self, session: Session) -> None:
        plot = session.figure(
            height=430,
            x_range=Range1d(start=-1.3, end=1.3),
            y_range=Range1d(start=-1.3, end=1.3),
            name="circle",
        )
        plot.axis.visible = plot.grid.visible = False
        keep_round(plot)
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
        """Draw tokens here, and their predicted limits."""
        self.tokens.data = {"x": tokens[:, 0], "y": tokens[:, 1], "colour": colours}
        places = np.unique(ghost.round(6), axis=0)
        self._ghost.data = {"x": places[:, 0], "y": places[:, 1]}


class SphereView:
    """Tokens with three coordinates, to turn around."""

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
        """Draw tokens here, and their predicted limits."""
        self._shown = (tokens, ghost, colours)
        self.pane.object = sphere_figure(tokens, ghost, colours, self._light)


def sphere_figure(tokens: np.ndarray, ghost: np.ndarray, colours: list[str], light: Light) -> Any:
    """The figure itself."""
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
