"""Figures of tokens on the circle and on the sphere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from ..drawing.style import INK, LINE, SHADE, SOFT, axes_or_new, new_figure, style_axes, styled
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.result_arrays import states

TOKENS, TRAILS = "tokens", "trails"
"""Names (gid) by which the artists can be found again."""
_MOST_LINES = 250  # more lines cannot be told apart
_MOST_DOTS = 4000  # more dots hide each other
_ALIKE = 0.02  # tokens closer than this overlap in a panel
# A cyclic colour map of similar lightness that can be told apart with any common colour blindness.
CYCLIC_COLOURS = LinearSegmentedColormap.from_list(
    "round", ["#0072B2", "#009E73", "#E69F00", "#D55E00", "#A0457E", "#0072B2"]
)


def _times(run: Trajectory) -> np.ndarray:
    if run.times is None:
        raise InputError("run", str(run.layer), "must have times", "follow a flow: simulate(tokens, flow, time=8.0)")
    return np.asarray(run.times)


def _some(count: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def draw_angles(run: Trajectory, ax: Axes | None = None, *, marks: dict[str, float] | None = None) -> Axes:
    """Angle of each token on the circle through time, in the colour of its starting angle.

    Parameters
    ----------
    run
        A run of a flow in two coordinates.
    ax
        Axes to draw on; new ones when left out.
    marks
        Times to mark by a line, by the word to write above it.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    stored, times = states(run), _times(run)
    if stored.shape[2] != 2:
        raise InputError("run", f"{stored.shape[2]} coordinates", "must be on the circle", "use draw_sphere for d = 3")
    chosen = _some(stored.shape[1], _MOST_LINES)
    angles = np.unwrap(np.arctan2(stored[:, chosen, 1], stored[:, chosen, 0]), axis=0)
    colours = CYCLIC_COLOURS((angles[0] / (2 * math.pi)) % 1.0)
    with styled():
        ax = axes_or_new(ax, 6.2, 4.0)
        style_axes(ax)
        lines = []
        for column in range(len(chosen)):
            # The circle is cut at -pi; a token that crosses the cut is drawn on both sides.
            turns = np.unique(np.floor((angles[:, column] + math.pi) / (2 * math.pi)))
            lines += [(column, angles[:, column] - 2 * math.pi * turn) for turn in turns]
        segments = [np.column_stack([times, path]) for _, path in lines]
        ax.add_collection(
            LineCollection(segments, colors=[colours[column] for column, _ in lines], lw=0.8, alpha=0.8, gid=TRAILS)
        )
        ax.set_xlim(times[0], times[-1])
        ax.set_ylim(-math.pi, math.pi)
        ax.set_yticks([k * math.pi / 2 for k in range(-2, 3)], [r"$-\pi$", r"$-\pi/2$", "0", r"$\pi/2$", r"$\pi$"])
        for word, time in (marks or {}).items():
            ax.axvline(time, color=INK, lw=1.0, ls=(0, (4, 3)))
            ax.text(time, 1.01, word, transform=ax.get_xaxis_transform(), ha="center", va="bottom", fontsize=9)
        ax.set_xlabel("time")
        ax.set_ylabel("angle of each token")
        ax.xaxis.label.set_color(SOFT)
        ax.yaxis.label.set_color(SOFT)
    return ax


def draw_sphere(run: Trajectory, times: Sequence[float] | None = None, *, colours: np.ndarray | None = None) -> Figure:
    """Figure of tokens on the circle or the sphere, one panel per time.

    The sphere is seen from the direction (1, 1, 0.6): tokens in front are bright, those behind pale.

    Parameters
    ----------
    run
        A run of a flow in two or three coordinates.
    times
        The times to draw; four when left out.
    colours
        One number from 0 to 1 per token, shape (token,), or one colour per token, shape (token, 3); by default the
        angle at which the token started.

    Returns
    -------
    Figure
        A new figure.
    """
    stored, known = states(run), _times(run)
    d = stored.shape[2]
    if d not in (2, 3):
        raise InputError("run", f"{d} coordinates", "must be on the circle or the sphere", "project the tokens first")
    wanted = np.linspace(known[0], known[-1], 4) if times is None else np.asarray(times, dtype=np.float64)
    if len(wanted) == 0 or wanted.min() < known[0] - 1e-9 or wanted.max() > known[-1] + 1e-9:
        raise InputError("times", wanted.tolist(), f"must lie in [{known[0]:g}, {known[-1]:g}]", "simulate for longer")
    chosen = _some(stored.shape[1], _MOST_DOTS)
    shades = _shades(stored[0, chosen], colours, chosen)
    with styled():
        figure = new_figure(2.5 * len(wanted), 2.85)
        for ax, time in zip(np.atleast_1d(figure.subplots(1, len(wanted))), wanted, strict=True):
            k = int(np.abs(known - time).argmin())
            _draw_ball(ax, stored[k, chosen], shades)
            ax.set_title(f"t = {known[k]:.3g}", loc="center")
    return figure


def _shades(start: np.ndarray, colours: np.ndarray | None, chosen: np.ndarray) -> np.ndarray:
    if colours is None:
        colours = (np.arctan2(start[:, 1], start[:, 0]) / (2 * math.pi)) % 1.0
    elif len(colours) != len(chosen):
        colours = np.asarray(colours)[chosen]
    colours = np.asarray(colours, dtype=np.float64)
    return np.asarray(CYCLIC_COLOURS(colours))[:, :3] if colours.ndim == 1 else colours[:, :3]


def _crowding(tokens: np.ndarray) -> np.ndarray:
    """Factor of the size of each dot, shape (token,): larger where many tokens are at one place."""
    _, place, counts = np.unique((tokens / _ALIKE).round(), axis=0, return_inverse=True, return_counts=True)
    share = counts[place.ravel()] / len(tokens)
    return np.asarray(1 + 9 * share**0.5 * (share > 0.01))


def _camera() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    towards = np.array([1.0, 1.0, 0.6]) / math.sqrt(2.36)
    right = np.array([-1.0, 1.0, 0.0]) / math.sqrt(2)
    return towards, right, np.cross(towards, right)


def _draw_ball(ax: Axes, tokens: np.ndarray, shades: np.ndarray) -> None:
    ax.set_aspect("equal")
    ax.set_axis_off()
    reach = 1.3 if tokens.shape[1] == 2 else 1.14
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    size = (7.0 if len(tokens) > 1000 else 14.0) * _crowding(tokens)
    if tokens.shape[1] == 2:
        ax.add_patch(Circle((0, 0), 1.0, fill=False, ec=LINE, lw=1.2))
        ax.scatter(tokens[:, 0], tokens[:, 1], s=2 * size, c=shades, linewidths=0, alpha=0.85, gid=TOKENS, zorder=3)
        for axis, name in ((0, "$e_1$"), (1, "$e_2$")):
            x, y = 1.2 * np.eye(2)[axis]
            ax.text(float(x), float(y), name, ha="center", va="center", fontsize=9, color=SOFT)
        return
    towards, right, up = _camera()
    ax.add_patch(Circle((0, 0), 1.0, fc="#f4f6f8", ec=LINE, lw=1.0))
    front = tokens @ towards >= 0
    x, y = tokens @ right, tokens @ up
    pale = 0.4 * shades[~front] + 0.6
    ax.scatter(x[~front], y[~front], s=0.6 * size[~front], c=pale, linewidths=0, zorder=2)
    _draw_axes(ax, right, up, towards)
    ax.scatter(x[front], y[front], s=size[front], c=shades[front], linewidths=0, gid=TOKENS, zorder=3)


def _draw_axes(ax: Axes, right: np.ndarray, up: np.ndarray, towards: np.ndarray) -> None:
    """Draw the ends of the coordinate axes, and the great circle of the first two."""
    turn = np.linspace(0, 2 * math.pi, 200)
    circle = np.column_stack([np.cos(turn), np.sin(turn), 0 * turn])
    seen = circle @ towards >= 0
    for part, width in ((~seen, 0.5), (seen, 0.9)):
        shown = np.where(part[:, None], np.column_stack([circle @ right, circle @ up]), np.nan)
        ax.plot(shown[:, 0], shown[:, 1], color=SHADE if width < 0.7 else LINE, lw=width, zorder=2.5)
    for axis in range(3):
        end = np.eye(3)[axis]
        ax.plot([end @ right], [end @ up], "+", color=INK, ms=7, mew=1.1, zorder=2.6)
        ax.annotate(
            f"$e_{axis + 1}$",
            (float(end @ right), float(end @ up)),
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=9,
            color=INK,
            zorder=5,
        )
