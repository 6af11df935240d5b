"""Figures and animations of tokens, in the conventions of Figure 2 of the clustering paper.

Stars are tokens that listen to themselves alone. Every other token has the colour of the token it listens to, and
several colours where it listens to several; a token that others listen to has an edge in the colour of these. The hull
of the leaders is shaded in the last panel and in the limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..drawing.style import SOFT, is_space, new_figure, styled
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.result_arrays import states
from ..inputs import as_tokens, plain
from ..progress import Ticker
from ..shapes import ArrayLike
from ._scene import Scene, axes_for, index_of_layer, scene_of_layer, scene_of_limit, view_of
from ._stage import CROWD, Marks, Stage, corner_note, label_points, leaders_of, past
from .save import checked_target, eased, fix_layout, pixels, write_movie

MOST_LABELS = 24
"""Limit points with a label; more would overlap."""

CONVENTIONS = (
    "star: listens to itself alone  ·  colour: the token that it listens to  ·  two colours: listens to two  ·  "
    "coloured edge: tokens of that colour listen to it  ·  shaded: hull of the leaders"
)


def draw_tokens(
    run_or_limit: Trajectory | Equilibrium,
    *,
    layer: int | None = None,
    start: ArrayLike | None = None,
    ax: Axes | None = None,
    hull: bool | None = None,
    trails: bool = True,
    title: str | None = None,
) -> Axes:
    """Axes with the tokens of a run at one layer, or of an equilibrium.

    Parameters
    ----------
    run_or_limit
        A run, or its limit of infinite depth.
    layer
        The layer of a run to draw, among those stored; the last when left out.
    start
        For a limit: the tokens at layer 0, shape (token, coordinate). They are drawn where they started, in the
        colour of the leader at which they will end. Left out, the tokens are drawn where they end, with their number
        beside each limit point.
    ax
        Axes to draw on: flat ones, or three-dimensional ones for three coordinates. New ones when left out. More
        coordinates than fit are projected onto their principal directions.
    hull
        Shade the hull of the leaders; by default in a limit and at the last layer of a run.
    trails
        Draw light lines from where the tokens came.
    title
        Title of the axes; the layer when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    with styled():
        if isinstance(run_or_limit, Equilibrium):
            if layer is not None:
                raise InputError("layer", layer, "has no meaning in a limit", "pass a run, or leave out layer")
            return _draw_limit(run_or_limit, start, ax, hull is not False, trails, title)
        if not isinstance(run_or_limit, Trajectory):
            raise InputError(
                "run_or_limit",
                type(run_or_limit).__name__,
                "must be a Trajectory or an Equilibrium",
                "pass a result of simulate or equilibrium",
            )
        if start is not None:
            raise InputError("start", "an array", "is only for limits", "leave it out; a run has its own start")
        k = index_of_layer(run_or_limit, layer)
        scene = scene_of_layer(run_or_limit, k)
        stage = _stage_of_run(run_or_limit, [scene], ax)
        ax = axes_for(stage.view) if ax is None else ax
        shaded = hull if hull is not None else k == len(run_or_limit.layers) - 1
        _paint_layer(stage, ax, run_or_limit, k, scene, shaded, trails, title)
        return ax


def draw_panels(
    run: Trajectory,
    layers: Sequence[int] | int | None = None,
    *,
    axes: Sequence[Axes] | None = None,
    trails: bool = True,
    conventions: bool = True,
) -> Figure:
    """Figure with a row of panels, one per layer; the hull of the leaders is shaded in the last.

    All panels share their limits and colours.

    Parameters
    ----------
    run
        A run.
    layers
        The layers to draw, among those stored; a few early ones and the last when left out.
    axes
        Axes to draw on, one per layer; a new figure when left out.
    trails
        Draw light lines from where the tokens came.
    conventions
        Explain the marks in a line below a new figure.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    if not isinstance(run, Trajectory):
        remedy = "a limit has no layers: pass a result of simulate, or use draw(limit)"  # type: ignore[unreachable]
        raise InputError("run", type(run).__name__, "must be a Trajectory", remedy)
    if isinstance(layers, int | np.integer):
        layers = [int(layers)]
    chosen = _some_layers(run) if layers is None else list(layers)
    if not chosen:
        raise InputError("layers", chosen, "must name at least one layer", "pass for example layers=[0, 1, 5]")
    with styled():
        places = [index_of_layer(run, layer) for layer in chosen]
        scenes = [scene_of_layer(run, k) for k in places]
        if axes is None:
            in_space = scenes[0].positions.shape[1] == 3
            figure = new_figure(3.1 * len(chosen), 3.5)
            projection = {"projection": "3d"} if in_space else {}
            grid = figure.subplots(1, len(chosen), squeeze=False, subplot_kw=projection)
            axes = list(grid[0])
            if conventions:
                figure.supxlabel(CONVENTIONS, fontsize=8.5, color=SOFT)
        elif len(axes) != len(chosen):
            raise InputError("axes", f"{len(axes)} axes", f"must be {len(chosen)}, one per layer", "match layers")
        stage = _stage_of_run(run, scenes, axes[0])
        for panel, (ax, k, scene) in enumerate(zip(axes, places, scenes, strict=True)):
            last = panel == len(chosen) - 1
            _paint_layer(stage, ax, run, k, scene, last, trails, None)
            ax.set_xlabel("")
            ax.set_ylabel("")
        return _figure_of(axes[0])


def draw(run_or_limit: Trajectory | Equilibrium, ax: Axes | None = None) -> Figure:
    """Figure of the last layer of a run, or of an equilibrium; a notebook shows it.

    Parameters
    ----------
    run_or_limit
        A run, or its limit of infinite depth.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    return _figure_of(draw_tokens(run_or_limit, ax=ax))


def _figure_of(ax: Axes) -> Figure:
    return cast(Figure, ax.get_figure(root=True))


def _some_layers(run: Trajectory) -> list[int]:
    """The first stored layer, a few early ones, where tokens move most, and the last."""
    wanted = np.unique([0, 1, 3, len(run.layers) - 1])
    return [int(run.layers[k]) for k in wanted if k < len(run.layers)]


def _stage_of_run(run: Trajectory, scenes: list[Scene], ax: Axes | None) -> Stage:
    # The projection is that of the first state, so that figures of other layers of this run can be compared.
    view = view_of(plain(run.tokens[0]).astype(np.float64), ax)
    return Stage.of(view, scenes, leaders_of(run, scenes))


def _paint_layer(
    stage: Stage, ax: Axes, run: Trajectory, k: int, scene: Scene, hull: bool, trails: bool, title: str | None
) -> None:
    layer = int(run.layers[k])
    words = f"layer {layer}" if run.times is None else f"time {run.times[k]:g}"
    stage.paint(
        ax,
        scene,
        hull=scene.positions[scene.leads] if hull else None,
        paths=past(run, k) if trails and k > 0 else None,
        title=words if title is None else title,
    )


def _draw_limit(
    limit: Equilibrium, start: ArrayLike | None, ax: Axes | None, hull: bool, trails: bool, title: str | None
) -> Axes:
    everyone = scene_of_limit(limit)
    ends = _one_per_limit_point(everyone, limit)
    began = None if start is None else _where_they_started(start, everyone)
    view = view_of((began or everyone).positions, ax)
    scenes = [everyone] if began is None else [began, everyone]
    stage = Stage.of(view, scenes, plain(limit.leaders))
    ax = axes_for(view) if ax is None else ax
    corners = everyone.positions[everyone.leads] if hull else None
    words = "infinite depth" if title is None else title
    if began is None:
        stage.paint(ax, ends, hull=corners, paths=None, title=words)
        _label_sizes(ax, stage, limit)
    else:
        few = len(began.positions) <= CROWD
        moves = np.stack([began.positions, everyone.positions]) if trails and few else None
        stage.paint(ax, began, hull=corners, paths=moves, title=words)
        Marks(ax, ends, stage.ranks, view.place(ends.positions))
    return ax


def _where_they_started(start: ArrayLike, end: Scene) -> Scene:
    tokens = as_tokens(start, argument="start")[0].detach().cpu().numpy().astype(np.float64)
    if tokens.shape != end.positions.shape:
        raise InputError(
            "start", f"shape {tokens.shape}", f"must have shape {end.positions.shape}", "pass the same tokens"
        )
    # Leaders that emerge late move first: stars mark their limits, so here they are drawn as dots.
    return Scene(tokens, np.zeros_like(end.leads), end.follows, end.ties)


def _one_per_limit_point(everyone: Scene, limit: Equilibrium) -> Scene:
    """The scene with one token per limit point, a leader if there is one."""
    point_of = plain(limit.limit_point_of)
    order = np.argsort(~everyone.leads, kind="stable")
    _, first = np.unique(point_of[order], return_index=True)
    chosen = order[first]
    ties = {place: everyone.ties[int(token)] for place, token in enumerate(chosen) if int(token) in everyone.ties}
    return Scene(everyone.positions[chosen], everyone.leads[chosen], everyone.follows[chosen], ties)


def _label_sizes(ax: Axes, stage: Stage, limit: Equilibrium) -> None:
    points = plain(limit.limit_points).astype(np.float64)
    if len(points) > MOST_LABELS or stage.view.is_strip:
        return
    sizes = np.bincount(plain(limit.limit_point_of), minlength=len(points))
    if not stage.view.in_space:
        left, right = ax.get_xlim()
        ax.set_xlim(left - 0.06 * (right - left), right + 0.06 * (right - left))  # room for the words
    label_points(ax, stage.view.place(points), [f"{size:,}" for size in sizes])
    corner_note(ax, "numbers: tokens that end there")


# Films are large: fewer dots per inch than pictures.
_DPI = 100
_LAST_FRAMES = 1.2
"""Seconds for which the last layer is shown, so that an animation in a loop can be read."""
_STILL = 5e-3
"""Layers after which no token moves by more than this share of the figure, about two pixels, are left out."""
_MOST_TURN = 40.0
"""Degrees by which space turns in all, so that depth is visible."""


def animate_tokens(
    run: Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: int = 20,
    seconds_per_layer: float = 0.5,
    progress: bool | None = None,
) -> Path:
    """Write an animation of a run as GIF, or as MP4 with the extra ``video``, by the suffix of ``path``.

    Between two stored layers tokens move smoothly. Layers after which no token moves are left out. Tokens of three
    coordinates are shown in space (which turns slowly in MP4; a GIF would be huge), those of more in projection. The
    file appears when it is complete.

    Parameters
    ----------
    run
        A run with at least two stored layers.
    path
        The file to write, ending in ``.gif`` or ``.mp4``.
    fps
        Frames per second, up to 50.
    seconds_per_layer
        Duration of a layer, up to 60 seconds.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Path
        The file that was written.
    """
    target, fps = checked_target(path, fps, "seconds_per_layer", seconds_per_layer, 0.5)
    if fps > 50:
        raise InputError("fps", fps, "must be at most 50", "no GIF is played faster than 50 frames per second")
    stored = states(run)
    if len(stored) < 2:
        raise InputError("run", f"{len(stored)} stored layer", "must have at least two stored layers", 'use keep="all"')
    animation = _Animation(run, stored, fps, seconds_per_layer, turning=target.suffix.lower() == ".mp4")
    return write_movie(target, animation.frames, animation.count, fps, progress)


class _Animation:
    """The frames of a run."""

    def __init__(self, run: Trajectory, stored: np.ndarray, fps: int, seconds_per_layer: float, turning: bool) -> None:
        self._run, self._stored, self._turning = run, stored, turning
        self._steps = max(1, round(fps * seconds_per_layer))
        self._hold = max(1, round(fps * _LAST_FRAMES))
        self._last = _last_moving(stored)
        self.count = self._last * self._steps + self._hold

    def frames(self, ticker: Ticker) -> Iterator[np.ndarray]:
        """Frames of shape (height, width, 3)."""
        scenes = [scene_of_layer(self._run, k) for k in range(self._last + 1)]
        with styled():
            stage = Stage.of(view_of(self._stored[0], None), scenes, leaders_of(self._run, scenes))
            ax = axes_for(stage.view)
            figure = cast(Figure, ax.figure)
            figure.set_dpi(_DPI)
            canvas: Any = FigureCanvasAgg(figure)
            shown = 0
            for k, scene in enumerate(scenes):
                last = k == self._last
                marks = self._paint(stage, scene, k, ax)
                if k == 0:
                    fix_layout(figure)
                following = None if last else self._stored[k + 1]
                for step in range(self._hold if last else self._steps):
                    if following is not None and step:
                        share = eased(step / self._steps)
                        now = (1 - share) * scene.positions + share * following
                        marks.move(stage.view.place(now, spread=True))
                    if self._turning and is_space(ax):
                        ax.view_init(elev=22, azim=-60 + _MOST_TURN * shown / self.count)  # type: ignore[attr-defined]
                    shown += 1
                    ticker.advance()
                    yield pixels(canvas)

    def _paint(self, stage: Stage, scene: Scene, k: int, ax: Axes) -> Marks:
        ax.clear()
        last = k == self._last
        layer = self._run.layers[k]
        title = f"layer {layer}" if self._run.times is None else f"time {self._run.times[k]:.3g}"
        hull = scene.positions[scene.leads] if last else None
        return stage.paint(ax, scene, hull=hull, paths=self._stored[: k + 1], title=title)


def _last_moving(stored: np.ndarray) -> int:
    """Index of the first stored layer after which no token moves visibly."""
    size = float(np.ptp(stored[0], axis=0).max()) or 1.0
    away = np.abs(stored - stored[-1]).max(axis=(1, 2))
    moving = np.flatnonzero(away > _STILL * size)
    return max(1, min(int(moving[-1]) + 1 if len(moving) else 1, len(stored) - 1))
