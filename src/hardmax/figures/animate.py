"""Animation of a run: tokens move from layer to layer, coloured by the token that they listen to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..drawing.style import is_space, styled
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.result_arrays import states
from ..progress import Ticker
from ._marks import Marks
from ._movies import FORMATS as FORMATS
from ._movies import checked_target, eased, fix_layout, pixels, write_movie
from ._scene import Scene, scene_of_layer
from ._stage import Stage, leaders_of
from ._view import axes_for, view_of

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
