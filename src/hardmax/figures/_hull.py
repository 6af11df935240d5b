"""The hull of the leaders, shaded: a polygon, a segment, a solid, or its shadow in a projection."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from ..polytopes import Polytope
from ._style import LINE, SHADE, SOFT
from ._view import View

HULL = "hull"
"""Name (gid) of the artists drawn here."""


def draw_hull(ax: Axes, view: View, vertices: np.ndarray) -> None:
    """Shade the convex hull of the leaders; in a projection, its shadow."""
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
    # A facet with many corners comes as several triangles; only edges between different planes are edges.
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
