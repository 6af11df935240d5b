"""The view of the Mean field page as files: a figure, a film, and a page of its own that plays and turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle

import hardmax as hm

from ...drawing.style import styled
from ...figures.save import fix_layout, write_movie
from ...progress import Progress, Ticker
from ..jobs import JobPool
from ..look import NIGHT, PALETTE, Light
from ..session import Session
from ..stage import eye_axes
from ..standalone import standalone
from .view import PHASES, DistancesView, RoundView, phase_spans, round_colours, some_dots, subscripted

INTERVAL = 60
"""Milliseconds between two states at the usual speed."""
FPS = 12
"""Frames per second of a film."""
_SECONDS = 8.0
"""A film is at most this long; longer runs are played faster."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The plots of the page as they are seen now."""

    run: hm.Trajectory
    limit: hm.LowTemperatureLimit
    found: hm.Phases | None
    moment: int
    light: Light
    camera: tuple[float, float]

    def figure(self) -> Figure:
        """Tokens at the moment that is shown, and the distances with their phases."""
        with styled():
            figure, left, right = self._axes()
            self._paint_still(left, right)
            self._paint_moving(left, right, self.moment)
        return figure

    def film(self, path: Path, progress: Progress = False) -> Path:
        """Write the motion as GIF or MP4, by the suffix of ``path``."""
        last = len(self.run) - 1
        count = min(round(FPS * last * INTERVAL / 1000), round(FPS * _SECONDS))
        times = [*np.linspace(0, last, max(2, count)).tolist(), *[float(last)] * FPS]

        def frames(_ticker: Ticker) -> Iterator[np.ndarray]:
            with styled():
                figure, left, right = self._axes()
                figure.set_dpi(90)
                canvas: Any = FigureCanvasAgg(figure)
                self._paint_still(left, right)
                fix_layout(figure)
                canvas.draw()
                still = canvas.copy_from_bbox(figure.bbox)  # what does not move is drawn once
                for shown, t in enumerate(times, start=1):
                    canvas.restore_region(still)
                    for ax, artist in self._paint_moving(left, right, t):
                        ax.draw_artist(artist)
                        artist.remove()
                    if callable(progress):
                        progress("frames", shown, len(times))
                    frame = np.asarray(canvas.buffer_rgba())[:, :, :3]
                    yield np.ascontiguousarray(frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2])

        return write_movie(path, frames, len(times), FPS, False)

    def page(self) -> str:
        """The view as an HTML page that needs no server."""
        pool = JobPool(workers=1)
        try:
            session = Session(pool)
            session.lighting.switch(self.light == NIGHT)
            distances = DistancesView(session)
            distances.show(self.found)
            times = self._times
            distances.at(float(times[self.moment]))
            states = np.asarray(self.run.tokens)
            tokens = RoundView(session, distances.here, sphere=states.shape[2] == 3)
            tokens.camera.data = {"azimuth": [self.camera[0]], "elevation": [self.camera[1]]}
            tokens.show(states, times, np.asarray(self.limit.positions), self.moment)
        finally:
            pool.close()
        player = {"label": "t =", "named": "Time", "value": self.moment, "end": len(times) - 1, "last": ""}
        player |= {"interval": INTERVAL, "scale": float(times[1] - times[0]) if len(times) > 1 else 1.0}
        figures = [[tokens.figure, distances.figure]]
        return standalone("Mean field", figures, [tokens.frames.name], player, dark=self.light == NIGHT)

    @property
    def _times(self) -> np.ndarray:
        return np.asarray(self.run.times, dtype=np.float64)

    def _axes(self) -> tuple[Figure, Axes, Axes]:
        figure = Figure(figsize=(10.8, 4.8), layout="constrained")
        figure.set_facecolor(self.light.card)
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
        left.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
        left.set_axis_off()
        return figure, left, right

    def _projected(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places on the screen, shape (n, 2), and the distance towards the eye, shape (n,)."""
        if points.shape[1] == 2:
            return points, np.ones(len(points))
        seen = points @ eye_axes(*self.camera).T
        return seen[:, :2], seen[:, 2]

    def _paint_still(self, left: Axes, right: Axes) -> None:
        light = self.light
        sphere = np.asarray(self.run.tokens).shape[2] == 3
        left.add_patch(Circle((0, 0), 1.0, facecolor=light.shade if sphere else "none", edgecolor=light.line, lw=1.2))
        ghost, depth = self._projected(np.unique(np.asarray(self.limit.positions).round(3), axis=0)[:200])
        rings = [to_rgba(light.soft, 0.35 if behind else 1.0) for behind in depth < 0]
        left.scatter(ghost[:, 0], ghost[:, 1], s=320, facecolors="none", edgecolors=rings, ls="--", lw=1.5)
        right.set_facecolor(light.card)
        right.tick_params(colors=light.soft)
        right.set_xlabel("time", color=light.soft)
        for spine in right.spines.values():
            spine.set_color(light.line)
        if self.found is None:
            right.set_axis_off()
            return
        right.set_ylabel(f"{subscripted(self.found.distance_name)} to the predicted limit", color=light.soft)
        right.set_yscale("log")
        right.grid(color=light.shade, lw=0.8)
        heights = np.maximum(self.found.distances, 1e-12)
        right.set_ylim(0.6 * float(heights.min()), 2.6 * float(heights.max()))
        right.set_xlim(0, float(self.found.times[-1]))
        for (start, stop), name, colour in zip(phase_spans(self.found), PHASES, PALETTE, strict=False):
            if stop - start > 0.02 * float(self.found.times[-1]):
                right.axvspan(start, stop, color=colour, alpha=0.12, lw=0)
                place: dict[str, Any] = {"transform": right.get_xaxis_transform(), "ha": "center", "va": "top"}
                right.text(0.5 * (start + stop), 0.97, name, color=light.ink, fontsize=9, **place)
        right.plot(self.found.times, heights, color=PALETTE[0], lw=1.8)
        for time in (self.found.expected_approach_time, self.found.expected_escape_time):
            if time is not None and time <= self.found.times[-1]:
                right.axvline(time, color=light.soft, ls="--", lw=1)

    def _paint_moving(self, left: Axes, right: Axes, t: float) -> list[tuple[Axes, Any]]:
        states = np.asarray(self.run.tokens)
        some = some_dots(states)
        k = min(int(t), len(states) - 1)
        following, share = min(k + 1, len(states) - 1), t - k
        now, depth = self._projected((1 - share) * states[k][some] + share * states[following][some])
        order = np.argsort(depth)
        colours = np.array(round_colours(states[0][some]))[order].tolist()
        alpha = np.where(depth[order] < 0, 0.22, 0.85)
        x, y = now[order].T
        dots = left.scatter(x, y, s=34, c=colours, alpha=alpha, lw=0, zorder=3)  # type: ignore[arg-type]
        time = float((1 - share) * self._times[k] + share * self._times[following])
        words = left.text(0.0, 0.98, f"t = {time:.1f}", transform=left.transAxes, va="top", color=self.light.ink)
        return [(left, dots), (left, words), (right, right.axvline(time, color=self.light.ink, lw=1.3))]
