"""Marks of tokens: stars, dots, trails, and a density image of many tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.path import Path

from ..drawing.style import INK, colours_of, darker, marker_of
from ._scene import Scene

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
