"""Common parts of the panels of one figure: projection, limits, colours, marks of tokens, and the hull of the leaders.

Marks are stars, dots and trails, and a density image of many tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Polygon
from matplotlib.path import Path

from ..drawing.style import INK, LINE, SHADE, SOFT, colours_of, darker, is_space, marker_of
from ..dynamics.trajectory import Trajectory
from ..inputs import plain
from ..polytopes import Polytope
from ._scene import Scene, View, frame

_PIXELS = 420
"""Pixels of the longer side of a density image, about one per point of a default figure."""


def density(placed: np.ndarray, colours: np.ndarray, limits: tuple[float, ...]) -> np.ndarray:
    """Density image of shape (height, width, 4): the mean colour of the tokens in a pixel, more opaque for more "
    "tokens."""
    left, right, bottom, top = limits
    longest = max(right - left, top - bottom)
    shape = [max(1, round(_PIXELS * span / longest)) for span in (top - bottom, right - left)]
    column = ((placed[:, 0] - left) / (right - left) * shape[1]).astype(np.int64)
    row = ((placed[:, 1] - bottom) / (top - bottom) * shape[0]).astype(np.int64)
    inside = (column >= 0) & (column < shape[1]) & (row >= 0) & (row < shape[0])
    pixel, colours = (row * shape[1] + column)[inside], colours[inside]
    many = np.bincount(pixel, minlength=shape[0] * shape[1])
    picture = np.zeros((len(many), 4))
    for channel in range(3):
        total = np.bincount(pixel, weights=colours[:, channel], minlength=len(many))
        picture[:, channel] = total / np.maximum(many, 1)
    strongest = math.log1p(int(many.max())) if len(pixel) else 1.0
    picture[:, 3] = np.where(many > 0, 0.35 + 0.65 * np.log1p(many) / strongest, 0.0)
    return picture.reshape(*shape, 4)


CROWD = 20_000
"""More tokens than this become a density image in the plane, or are thinned in space."""
# The same tokens are drawn each time.
_SEED_OF_THINNING = 0
_EDGE_OF_FOLLOWED = 2.0
"""Width of the edge, in points, of a token that others listen to: wide enough for its colour to be visible."""

TRAILS, FOLLOWERS, TIES, LEADERS, CROWDS = "trails", "followers", "ties", "leaders", "crowd"
"""Names (gid) by which the artists can be found again."""


class Ranks:
    """Ranks of tokens, which determine their colours: leaders by angle, then other tokens that are listened to."""

    def __init__(self, leaders: np.ndarray, positions: np.ndarray, others: np.ndarray) -> None:
        ordered = leaders[_around(positions[leaders])] if len(leaders) else leaders
        self._tokens = np.concatenate([ordered, np.setdiff1d(others, ordered)]).astype(np.int64)
        self._order = np.argsort(self._tokens, kind="stable")
        self._across = positions[self._tokens, 0]

    def of(self, tokens: np.ndarray) -> np.ndarray:
        """Rank of each token, -1 for tokens without rank."""
        if len(self._tokens) == 0:
            return np.full(len(tokens), -1)
        place = np.searchsorted(self._tokens, tokens, sorter=self._order).clip(max=len(self._tokens) - 1)
        ranks = self._order[place]
        return np.where(self._tokens[ranks] == tokens, ranks, -1)

    def left_to_right(self, tokens: np.ndarray) -> np.ndarray:
        """Ranks of a few tokens, the leftmost first."""
        ranks = self.of(tokens)
        return np.asarray(ranks[np.argsort(self._across[ranks], kind="stable")])


def _around(points: np.ndarray) -> np.ndarray:
    """Indices by angle around the mean, so that neighbours get colours of different lightness."""
    offsets = points - points.mean(axis=0)
    if offsets.shape[1] < 2:
        return np.argsort(offsets[:, 0], kind="stable")
    return np.argsort(np.arctan2(offsets[:, 1], offsets[:, 0]), kind="stable")


def _wedge(part: int, parts: int) -> Path:
    """Marker of one of ``parts`` equal slices of a disc; the first of two is the left half."""
    full = 360.0 / parts
    return Path.wedge(90 + part * full, 90 + (part + 1) * full)


def dot_size(count: int) -> float:
    """Area of a dot in points, smaller for more tokens."""
    return float(np.clip(1100.0 / math.sqrt(max(count, 1)) - 60.0, 7.0, 64.0))


def _scatter(ax: Axes, placed: np.ndarray, **style: Any) -> Any:
    if placed.shape[1] == 3:
        style["depthshade"] = False
    return ax.scatter(*placed.T, **style)


class Marks:
    """The marks of one scene; ``move`` moves them, for the frames of an animation."""

    def __init__(self, ax: Axes, scene: Scene, ranks: Ranks, placed: np.ndarray) -> None:
        self._ax, self._placed = ax, placed
        self._shown: list[tuple[Any, np.ndarray]] = []
        self._trails: tuple[Any, np.ndarray, np.ndarray] | None = None
        self.notes: list[str] = []
        """Notes on how the tokens are drawn."""
        count, in_space = len(placed), placed.shape[1] == 3
        rank = ranks.of(scene.follows)
        tied = np.array(sorted(scene.ties), dtype=np.int64)
        plain = ~scene.leads
        self._crowd: np.ndarray | None = None
        if count > CROWD and not in_space:
            self._crowd = colours_of(rank)
            self.notes.append(f"{count:,} tokens as a density image; stronger is denser")
            plain[:] = False
            tied = tied[:0]
        elif count > CROWD:
            chosen = np.random.default_rng(_SEED_OF_THINNING).permutation(count)[:CROWD]
            kept = np.zeros(count, dtype=bool)
            kept[chosen] = True
            self.notes.append(f"{CROWD:,} of {count:,} tokens drawn")
            plain &= kept
            tied = tied[kept[tied]]
        plain[tied] = False
        if scene.leads.any() and (scene.follows < 0).any():
            self.notes.append("grey: listens to many tokens")
        self._image: Any = None
        self._draw_dots(np.flatnonzero(plain), scene, ranks, dot_size(count))
        self._draw_shared(tied, scene, ranks, 1.6 * dot_size(count))
        self._draw_stars(np.flatnonzero(scene.leads), scene, ranks)
        self._draw_crowd()

    def _show(self, tokens: np.ndarray, **style: Any) -> None:
        if len(tokens):
            self._shown.append((_scatter(self._ax, self._placed[tokens], **style), tokens))

    def _draw_dots(self, tokens: np.ndarray, scene: Scene, ranks: Ranks, size: float) -> None:
        """Dots in the colour of the token they listen to; a token that others listen to has an edge of its own "
        "colour."""
        rank, own = ranks.of(scene.follows), ranks.of(np.arange(len(scene.follows)))
        attended = np.isin(np.arange(len(rank)), scene.followed) & (own >= 0) & (own != rank)
        shapes = np.array([marker_of(r) for r in range(7 * 7)])[np.maximum(rank[tokens], 0) % 49]
        for shape in np.unique(shapes):
            same = tokens[shapes == shape]
            colours = colours_of(rank[same])
            self._show(
                same,
                s=size,
                c=colours,
                edgecolors=np.where(attended[same, None], colours_of(own[same]), darker(colours)),
                linewidths=np.where(attended[same], _EDGE_OF_FOLLOWED, 0.5),
                marker=shape,
                gid=FOLLOWERS,
                zorder=3,
            )

    def _draw_shared(self, tokens: np.ndarray, scene: Scene, ranks: Ranks, size: float) -> None:
        """Dots of several colours, one slice per token that is listened to."""
        sizes = np.array([len(scene.ties[int(token)]) for token in tokens])
        for parts in np.unique(sizes):
            same = tokens[sizes == parts]
            attended = np.array([ranks.left_to_right(scene.ties[int(token)]) for token in same])
            for part in range(int(parts)):
                style = {
                    "linewidths": 0.6,
                    "edgecolors": INK,
                    "marker": _wedge(part, int(parts)),
                    "zorder": 4,
                }
                self._show(same, s=size, c=colours_of(attended[:, part]), gid=TIES, **style)

    def _draw_stars(self, tokens: np.ndarray, scene: Scene, ranks: Ranks) -> None:
        size = float(np.clip(900.0 / math.sqrt(max(len(tokens), 1)), 14.0, 250.0))
        colours = colours_of(ranks.of(scene.follows[tokens]))
        self._show(
            tokens, s=size, c=colours, edgecolors=INK, linewidths=min(0.7, size / 80), marker="*", gid=LEADERS, zorder=5
        )

    def _draw_crowd(self) -> None:
        if self._crowd is None:
            return
        limits = (*self._ax.get_xlim(), *self._ax.get_ylim())
        picture = density(self._placed, self._crowd, limits)
        if self._image is None:
            style: dict[str, Any] = {
                "origin": "lower",
                "aspect": self._ax.get_aspect(),
                "interpolation": "nearest",
            }
            self._image = self._ax.imshow(picture, extent=limits, gid=CROWDS, zorder=2, **style)
        self._image.set_data(picture)
        self._image.set_extent(limits)

    def draw_trails(self, paths: np.ndarray, tokens: np.ndarray, ranks: np.ndarray) -> None:
        """Draw the paths of some tokens, shape (token, moment, drawing coordinate)."""
        style: dict[str, Any] = {"colors": colours_of(ranks), "lw": 0.9, "alpha": 0.4, "gid": TRAILS, "zorder": 1}
        lines: Any
        if paths.shape[2] == 3:
            from mpl_toolkits.mplot3d.art3d import Line3DCollection

            lines = Line3DCollection(list(paths), **style)
            self._ax.add_collection(lines)
        else:
            lines = LineCollection(list(paths), **style)
            self._ax.add_collection(lines, autolim=False)
        self._trails = (lines, paths, tokens)

    def move(self, placed: np.ndarray) -> None:
        """Move the marks to other drawing coordinates; trails are extended."""
        self._placed = placed
        if self._trails is not None:
            lines, paths, tokens = self._trails
            lines.set_segments(list(np.concatenate([paths, placed[tokens, None]], axis=1)))
        for artist, tokens in self._shown:
            if placed.shape[1] == 3:
                artist._offsets3d = tuple(placed[tokens].T)
            else:
                artist.set_offsets(placed[tokens])
        self._draw_crowd()


def label_points(ax: Axes, placed: np.ndarray, words: list[str]) -> None:
    """Write labels beside points, on the side away from the mean."""
    middle = placed.mean(axis=0)
    for point, text in zip(placed, words, strict=True):
        away = point - middle
        side, up = away[:2] / (float(np.hypot(*away[:2])) or 1.0)
        style: dict[str, Any] = {"fontsize": 9, "color": INK, "zorder": 6}
        style["ha"] = "center" if abs(side) < 0.35 else ("left" if side > 0 else "right")
        style["va"] = "center" if abs(up) < 0.35 else ("bottom" if up > 0 else "top")
        if len(point) == 3:
            ax.text(*(point + 0.07 * away), text, **style)  # type: ignore[call-arg]
        else:
            ax.annotate(
                text,
                point,
                xytext=(9 * side, 9 * up),
                textcoords="offset points",
                annotation_clip=False,
                **style,
            )


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
