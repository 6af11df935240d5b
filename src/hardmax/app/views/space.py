"""Tokens with three coordinates, to turn around: stars become diamonds, the leaders' polytope is translucent."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn
import plotly.graph_objects as go

from ..look import FONT, Light, rank_colours
from ..session import Session
from ..states.tokens_picture import Picture


class SpaceView:
    """Draws pictures of tokens with three coordinates."""

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
        """Draw this picture in place of the last."""
        self._picture = picture
        self.pane.object = space_figure(picture, self._light)


def _dots(points: np.ndarray, colours: list[str], size: float, symbol: str, name: str, edge: str) -> Any:
    x, y, z = points.T
    marker = {"size": size, "color": colours, "symbol": symbol, "line": {"width": 1, "color": edge}}
    return go.Scatter3d(x=x, y=y, z=z, mode="markers", marker=marker, name=name, hoverinfo="skip")


def space_figure(picture: Picture, light: Light) -> Any:
    """The figure itself."""
    colours = np.array(rank_colours(picture.rank, light))
    leads, points = picture.leads, picture.positions
    size = 4.0 if len(points) <= 500 else 2.2
    parts = []
    if len(picture.faces):
        x, y, z = picture.hull.T
        i, j, k = picture.faces.T
        parts.append(
            go.Mesh3d(x=x, y=y, z=z, i=i, j=j, k=k, color=light.nobody, opacity=0.18, hoverinfo="skip", name="hull")
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
            "uirevision": "kept",  # the visitor's point of view survives an update
        },
    )
