"""Common parts of the panels of one figure: projection, limits, colours, and the shaded hull of the leaders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from ..drawing.style import LINE, SHADE, SOFT, is_space
from ..dynamics.trajectory import Trajectory
from ..inputs import plain
from ..polytopes import Polytope
from ._marks import CROWD, Marks, Ranks
from ._scene import Scene
from ._view import View, frame

HULL = "hull"
"""Name (gid) of the artists drawn here."""


def draw_hull(ax: Axes, view: View, vertices: np.ndarray) -> None:
    """Shade the convex hull of the leaders, or its projection."""
    polytope = Polytope.of(view.place(vertices))
    corners = polytope.vertices
    style: dict[str, Any] = {"gid": HULL, "zorder": 0.5}
    if polytope.dimension == 0:
        return
    if view.in_space and polytope.dimension == 3:
        _draw_solid(ax, polytope)
    elif view.in_space:
        loop = corners[np.append(polytope.outline, polytope.outline[0])]
        ax.plot(*loop.T, color=SOFT, lw=1.0, **style)
    elif polytope.dimension == 1:
        ax.plot(*corners.T, color=LINE, lw=5.0, solid_capstyle="round", **style)
    else:
        ax.add_patch(Polygon(corners[polytope.outline], facecolor=SHADE, edgecolor=SOFT, lw=0.9, **style))


def _draw_solid(ax: Axes, polytope: Polytope) -> None:
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

    corners = polytope.vertices
    shading = 0.5 + 0.5 * polytope.normals @ np.array([0.35, -0.6, 0.72])
    faces = Poly3DCollection(corners[polytope.faces], lw=0, gid=HULL)
    tones = np.array([0.62, 0.70, 0.77]) + shading[:, None] * np.array([0.30, 0.24, 0.19])
    faces.set_facecolor(np.column_stack([np.clip(tones, 0, 1), np.full(len(tones), 0.42)]).tolist())
    ax.add_collection(faces)
    # A facet with many vertices consists of several triangles; only edges between different planes are drawn.
    edges: dict[tuple[int, int], list[int]] = {}
    for face, triangle in enumerate(polytope.faces.tolist()):
        for a, b in ((0, 1), (1, 2), (2, 0)):
            pair = (min(triangle[a], triangle[b]), max(triangle[a], triangle[b]))
            edges.setdefault(pair, []).append(face)
    sharp = [
        corners[list(pair)]
        for pair, (one, other) in edges.items()
        if polytope.normals[one] @ polytope.normals[other] < 1 - 1e-9
    ]
    ax.add_collection(Line3DCollection(sharp, colors=SOFT, lw=0.8, gid=HULL))


MOST_TRAILS = 400
"""Tokens with a trail; more hide the tokens."""


@dataclass(frozen=True, eq=False)
class Stage:
    """Projection, colours and limits of scenes that are drawn together."""

    view: View
    ranks: Ranks
    extent: np.ndarray
    """Two opposite corners of all scenes in drawing coordinates, shape (2, 2 or 3)."""

    @classmethod
    def of(cls, view: View, scenes: list[Scene], leaders: np.ndarray) -> Stage:
        """The stage of these scenes."""
        placed = [view.place(scene.positions, spread=True) for scene in scenes]
        low = np.min([points.min(axis=0) for points in placed], axis=0)
        high = np.max([points.max(axis=0) for points in placed], axis=0)
        others = np.unique(np.concatenate([scene.followed for scene in scenes]))
        return cls(view, Ranks(leaders, view.place(scenes[-1].positions), others), np.array([low, high]))

    def paint(
        self,
        ax: Axes,
        scene: Scene,
        *,
        hull: np.ndarray | None,
        paths: np.ndarray | None,
        title: str,
        note: bool = True,
    ) -> Marks:
        """Draw one scene: hull below, then trails, then tokens."""
        frame(ax, self.view, self.extent)
        if hull is not None and len(hull):
            draw_hull(ax, self.view, hull)
        marks = Marks(ax, scene, self.ranks, self.view.place(scene.positions, spread=True))
        if paths is not None and not self.view.is_strip and len(scene.positions) <= CROWD:
            self._paint_trails(marks, scene, paths)
        ax.set_title(title)
        if note and marks.notes:
            corner_note(ax, "; ".join(marks.notes))
        return marks

    def _paint_trails(self, marks: Marks, scene: Scene, paths: np.ndarray) -> None:
        count = paths.shape[1]
        chosen = np.arange(count)
        if count > MOST_TRAILS:
            chosen = np.unique(np.linspace(0, count - 1, MOST_TRAILS).astype(np.int64))
            marks.notes.append(f"trails of {len(chosen)} of {count:,} tokens")
        placed = np.stack([self.view.place(moment[chosen]) for moment in paths], axis=1)
        marks.draw_trails(placed, chosen, self.ranks.of(scene.follows[chosen]))


def leaders_of(run: Trajectory, scenes: list[Scene]) -> np.ndarray:
    """Indices of the leaders of a run; without leadership in the run, those of its scenes."""
    if run.leadership is not None:
        return plain(run.leadership.leaders)
    return np.flatnonzero(np.any([scene.leads for scene in scenes], axis=0))


def past(run: Trajectory, k: int) -> np.ndarray:
    """All stored states up to the k-th, shape (moment, token, coordinate)."""
    return plain(run.tokens[: k + 1]).astype(np.float64)


def corner_note(ax: Axes, words: str) -> None:
    """Write a note above the right corner of the axes."""
    style: dict[str, Any] = {"transform": ax.transAxes, "ha": "right", "fontsize": 8, "color": SOFT, "va": "bottom"}
    if is_space(ax):
        ax.text2D(1.0, 1.0, words, **style)  # type: ignore[attr-defined]
    else:
        ax.text(1.0, 1.01, words, **style)
