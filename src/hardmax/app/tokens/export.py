"""The view of the Tokens page as files: a figure, a film, and a page of its own that plays and turns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from ...drawing.style import styled
from ...figures.save import fix_layout, write_movie
from ...progress import Progress, Ticker
from ..look import NIGHT, PALETTE, Light, rank_colours
from ..player import INTERVAL
from ..session import Session
from ..stage import camera_source, eye_axes
from ..standalone import standalone
from .picture import Picture
from .view import PlaneView, SpaceView, dot_size, rims

FPS = 12
"""Frames per second of a film: smooth, and a GIF of some megabytes."""
_FILM_DPI = 90
"""Dots per inch of a film, which has many pictures."""
_HOLD = 1.2
"""Seconds for which the end of a film is shown."""
_STILL = 5e-3
"""A film ends where no token is farther than this share of the view, about two pixels, from its place at the end."""
_POINT = 0.75
"""Points per pixel: sizes of the browser's markers are in pixels."""
_INCHES = 5.4
"""Height of a panel."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One plot."""

    picture: Picture
    title: str
    window: tuple[float, float, float]
    """Ends of the first axis and upper end of the second, which is symmetric."""
    ellipse: tuple[float, float, float] | None
    """Angle and semi-axes; None in space."""


@dataclass(frozen=True, eq=False)
class Scene:
    """All plots of the page as they are seen now."""

    panels: tuple[Panel, ...]
    light: Light
    camera: tuple[float, float]
    """Azimuth and elevation of the eye, in radians."""
    end: int
    last: str
    """Words for the end of the timeline."""

    def figure(self) -> Figure:
        """The view at rest."""
        with styled():
            figure, axes = self._axes()
            for panel, ax in zip(self.panels, axes, strict=True):
                self._paint_still(ax, panel)
                self._paint_moving(ax, panel, panel.picture.moment, moving=False)
                if panel.picture.half_space is not None:
                    self._paint_half_space(ax, panel)
        return figure

    def film(self, path: Path, progress: Progress = False) -> Path:
        """Write the motion from layer 0 to the end as GIF or MP4, by the suffix of ``path``."""
        times = self._times()

        def frames(_ticker: Ticker) -> Iterator[np.ndarray]:
            with styled():
                figure, axes = self._axes()
                figure.set_dpi(_FILM_DPI)
                canvas: Any = FigureCanvasAgg(figure)
                for panel, ax in zip(self.panels, axes, strict=True):
                    self._paint_still(ax, panel)
                words = _above(axes[0], "", 8, right=True, color=self.light.ink, fontweight="bold", animated=True)
                fix_layout(figure)
                canvas.draw()
                still = canvas.copy_from_bbox(figure.bbox)  # what does not move is drawn once
                for shown, t in enumerate(times, start=1):
                    canvas.restore_region(still)
                    for panel, ax in zip(self.panels, axes, strict=True):
                        for artist in self._paint_moving(ax, panel, t, moving=True):
                            ax.draw_artist(artist)
                            artist.remove()
                    words.set_text(self._moment(t))
                    axes[0].draw_artist(words)
                    if callable(progress):
                        progress("frames", shown, len(times))
                    frame = np.asarray(canvas.buffer_rgba())[:, :, :3]
                    yield np.ascontiguousarray(frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2])

        return write_movie(path, frames, len(times), FPS, False)

    def page(self) -> str:
        """The view as an HTML page that needs no server: it plays, and turns in space."""
        from ..jobs import JobPool

        pool = JobPool(workers=1)
        try:
            session = Session(pool)
            session.lighting.switch(self.light == NIGHT)
            camera = camera_source()
            camera.data = {"azimuth": [self.camera[0]], "elevation": [self.camera[1]]}
            views: list[Any] = []
            for k, panel in enumerate(self.panels):
                view: Any
                if panel.ellipse is None:
                    view = SpaceView(session, camera, name=f"space{k}")
                else:
                    view = PlaneView(session, None, name=f"plane{k}")
                    view.show_ellipse(*panel.ellipse)
                view.title(panel.title)
                view.figure.y_range.update(start=-panel.window[2], end=panel.window[2])
                view.show(panel.picture)
                views.append(view)
        finally:
            pool.close()
        player = {"label": "Layer", "value": self.panels[0].picture.moment, "end": self.end, "last": self.last}
        return standalone(
            "Tokens",
            [[view.figure for view in views]],
            [view.frames.name for view in views],
            player | {"interval": INTERVAL, "scale": 1},
            dark=self.light == NIGHT,
        )

    def _moment(self, t: float) -> str:
        return self.last if self.last and round(t) >= self.end else f"Layer {round(t)}"

    def _times(self) -> list[float]:
        """Moments of the frames of a film: it ends where no token moves any more."""
        reach = min(panel.window[2] for panel in self.panels)
        stop = 1
        for panel in self.panels:
            frames = panel.picture.frames
            away = np.abs(frames - frames[-1]).max(axis=(1, 2)) if len(frames) > 1 else np.zeros(1)
            moving = np.flatnonzero(away > _STILL * reach)
            stop = max(stop, min(int(moving[-1]) + 1 if len(moving) else 1, self.end))
        steps = round(FPS * INTERVAL / 1000)
        # The last frames show the end itself, which is infinite depth where it is known.
        return [k / steps for k in range(stop * steps)] + [float(self.end)] * round(FPS * _HOLD)

    # Drawing with Matplotlib what static/stage.js draws with Bokeh

    def _axes(self) -> tuple[Figure, list[Axes]]:
        widths = [max(0.5, (p.window[1] - p.window[0]) / (2 * p.window[2])) for p in self.panels]
        figure = Figure(figsize=(_INCHES * min(3.0, sum(widths)), _INCHES), layout="constrained")
        figure.set_facecolor(self.light.card)
        grid = figure.subplots(1, len(self.panels), squeeze=False, width_ratios=widths)
        return figure, list(grid[0])

    def _paint_still(self, ax: Axes, panel: Panel) -> None:
        """Draw what does not move."""
        light, (left, right, top) = self.light, panel.window
        ax.set(xlim=(left, right), ylim=(-top, top), aspect="equal", facecolor=light.card)
        if panel.ellipse is None:
            ax.set_axis_off()
            self._paint_solid(ax, panel.picture, top)
        else:
            self._paint_plane(ax, panel)
        good = panel.picture.badge.holds
        dark = light == NIGHT
        back, ink = ("#14322a", "#8fe3c6") if dark else ("#e3f4ee", "#00553f")
        if not good:
            back, ink = ("#3a2417", "#ffbe97") if dark else ("#fdeee5", "#8a3c00")
        # Above the plot, as on the page, where they cover no token.
        if panel.title:
            _above(ax, panel.title, 28, color=light.ink, fontweight="bold", fontsize=11)
        box = {"boxstyle": "round", "facecolor": back, "edgecolor": "none"}
        _above(ax, panel.picture.badge.words, 8, 4, color=ink, bbox=box, fontsize=9)

    def _paint_plane(self, ax: Axes, panel: Panel) -> None:
        light, hull = self.light, panel.picture.hull
        ax.set_xlabel("first coordinate", color=light.soft)
        ax.set_ylabel("second coordinate", color=light.soft)
        ax.grid(color=light.shade, lw=0.8)
        ax.tick_params(colors=light.soft)
        for spine in ax.spines.values():
            spine.set_color(light.line)
        if len(hull) > 1:
            ax.add_patch(Polygon(hull, facecolor=light.shade, edgecolor=light.line, lw=1.2, alpha=0.75, zorder=0.6))
        if panel.ellipse is not None:
            turn, t = math.radians(panel.ellipse[0]), np.linspace(0, 2 * math.pi, 97)
            axes = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
            _, a, b = panel.ellipse
            ax.plot(
                *(a * np.cos(t)[:, None] * axes[0] + b * np.sin(t)[:, None] * axes[1]).T, "--", color=light.soft, lw=1
            )
        ax.plot(0, 0, "+", color="#7b8794", ms=8, zorder=1.5)

    def _paint_solid(self, ax: Axes, picture: Picture, top: float) -> None:
        hull = picture.hull @ self._eye().T if len(picture.hull) else np.zeros((0, 3))
        faces = [hull[face, :2] for face in picture.faces]
        solid = PolyCollection(
            faces, facecolor=self.light.grey, edgecolor=self.light.grey, lw=0.6, alpha=0.22, zorder=0.6
        )
        ax.add_collection(solid)
        reach = 1.05 * max(float(np.abs(picture.frames[0]).max()), 1e-300)
        for k, (x, y) in enumerate(reach * self._eye()[:2].T):
            ax.plot([0, x], [0, y], color=self.light.line, lw=1, zorder=0.5)
            ax.text(x, y, str(k + 1), color=self.light.soft, fontsize=9)

    def _eye(self) -> np.ndarray:
        return eye_axes(*self.camera)

    def _paint_moving(self, ax: Axes, panel: Panel, t: float, *, moving: bool) -> list[Any]:
        """Draw tokens and trails at a time; the artists, which a film removes again."""
        picture, light = panel.picture, self.light
        at = min(t, len(picture.frames) - 1) if picture.playable else 0
        now, paths, leads = picture.at(at), picture.trails(at, moving), picture.leads_at(at)
        if not picture.playable:
            leads = picture.leads
        scale = np.ones(len(now))
        if panel.ellipse is None:
            eye = self._eye()
            depth = now @ eye[2]
            scale += 0.3 * depth / max(float(np.abs(picture.frames[0]).max()), 1e-300)
            now, paths = now @ eye[:2].T, paths @ eye[:2].T
            order = np.argsort(depth)
        else:
            order = np.arange(len(now))
        fill, tied = to_rgba_array(rank_colours(picture.rank, light)), picture.second >= 0
        trails = LineCollection(list(paths), colors=fill[picture.trail_of], alpha=0.45, lw=0.9, zorder=2)
        made: list[Any] = [ax.add_collection(trails, autolim=False)]
        edge = to_rgba_array(np.where(leads, light.ink, rims(picture, light)).tolist())
        dot = dot_size(len(picture.index))
        size = scale * np.where(leads, 2 * max(dot, 9), np.where(tied, dot + 2, dot)) * _POINT
        wide = np.where(tied & ~leads, 3.0, 0.6) * _POINT
        for some, marker in ((~leads, "o"), (leads, "*")):
            shown = order[some[order]]
            dots = ax.scatter(
                now[shown, 0],
                now[shown, 1],
                s=size[shown] ** 2,
                c=fill[shown],
                edgecolors=edge[shown],
                linewidths=wide[shown],
                marker=marker,
                zorder=3,
            )
            made.append(dots)
        return made

    def _paint_half_space(self, ax: Axes, panel: Panel) -> None:
        half = panel.picture.half_space
        assert half is not None  # noqa: S101 - the caller has just looked
        length = float(np.hypot(*half.normal))
        top = panel.window[2]
        if length > 0:
            unit = half.normal / length
            along = np.array([-unit[1], unit[0]])
            corners = half.here + 20 * top * np.array([along, along + unit, unit - along, -along])
            ax.add_patch(Polygon(corners, facecolor=PALETTE[3], edgecolor=self.light.soft, alpha=0.18, zorder=0.4))
            tip = half.here + 0.36 * top * unit
            ax.annotate(
                "",
                tuple(tip),
                tuple(half.here),
                arrowprops={"arrowstyle": "->", "color": self.light.ink, "lw": 1.6},
                zorder=4,
            )
        rings: dict[str, Any] = {"facecolors": "none", "zorder": 4}
        ax.scatter(
            half.favourites[:, 0],
            half.favourites[:, 1],
            s=(24 * _POINT) ** 2,
            edgecolors="#D55E00",
            linewidths=1.9,
            **rings,
        )
        ax.scatter(half.here[0], half.here[1], s=(19 * _POINT) ** 2, edgecolors=self.light.ink, linewidths=1.9, **rings)


def _above(ax: Axes, words: str, height: float, indent: float = 0, *, right: bool = False, **style: Any) -> Any:
    """Write words so many points above a plot, from its left edge or up to its right one."""
    at: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
    return ax.annotate(words, (int(right), 1), (indent, height), ha="right" if right else "left", **at, **style)
