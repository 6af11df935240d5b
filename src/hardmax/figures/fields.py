"""Figure of fields: the start of a forecast, the truth, the forecast, and their difference."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from ..drawing.style import NOBODY, SOFT, new_figure, styled
from ..errors import InputError

FIELD = "field"
"""The name (gid) by which the pictures can be found again."""
_COLOURS = "RdBu_r"  # can be told apart with any common colour blindness, white in the middle
_BRIGHTEST = 99.0
"""Percentile of the values at which the colours end."""
_WIDE = 2.0
"""Fields wider than this ratio are drawn below each other."""


def draw_fields(
    now: np.ndarray,
    truth: np.ndarray,
    forecast: np.ndarray,
    *,
    x: np.ndarray | None = None,
    y: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    name: str = "value",
    ahead: str = "",
    figure: Figure | None = None,
) -> Figure:
    """Figure of four fields: at the start of a forecast, the truth at its end, the forecast, and forecast minus truth.

    The first three share their colours; the difference has a colour scale of its own.

    Parameters
    ----------
    now
        The field at the start, shape (x, y).
    truth
        The field that followed, shape (x, y).
    forecast
        The forecast of it, shape (x, y).
    x
        Coordinates along the first axis, shape (x,); numbers of nodes when left out.
    y
        Coordinates along the second axis, shape (y,); numbers of nodes when left out.
    hidden
        True at nodes to draw in grey, such as those inside a body, shape (x, y).
    name
        Label of the colour bars.
    ahead
        The time of the forecast in words, as in "12 units of time ahead".
    figure
        Figure to draw on; a new one when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    fields = [np.asarray(field, dtype=np.float64) for field in (now, truth, forecast)]
    if fields[0].ndim != 2 or any(field.shape != fields[0].shape for field in fields):
        raise InputError(
            "fields", f"shapes {[field.shape for field in fields]}", "must be three of one shape (x, y)", "align them"
        )
    masked = np.zeros(fields[0].shape, dtype=bool) if hidden is None else np.asarray(hidden, dtype=bool)
    extent = (*_edges(x, fields[0].shape[0]), *_edges(y, fields[0].shape[1]))
    ratio = (extent[1] - extent[0]) / (extent[3] - extent[2])
    wide = ratio > _WIDE
    when = f",{' ' if wide else chr(10)}{ahead}" if ahead else ""
    shown = [
        ("start of the forecast", fields[0]),
        (f"truth{when}", fields[1]),
        (f"forecast{when}", fields[2]),
        ("forecast minus truth", fields[2] - fields[1]),
    ]
    with styled():
        if figure is None:
            figure = new_figure(9.0, 4 * (9.0 * 0.85 / ratio + 0.45)) if wide else new_figure(8.0, 6.7 / ratio)
        axes = figure.subplots(4, 1, sharex=True).ravel() if wide else figure.subplots(2, 2).ravel()
        common = _largest(fields, masked)
        for k, (ax, (title, field)) in enumerate(zip(axes, shown, strict=True)):
            largest = common if k < 3 else _largest([field], masked)
            _one(figure, ax, field, masked, extent, largest, name, 0.012 if wide else 0.04)
            ax.set_title(title, fontsize=10)
            ax.set_ylabel("y" if wide or k % 2 == 0 else "")
        for ax in axes[-1:] if wide else axes[2:]:
            ax.set_xlabel("x")
    return figure


def _one(
    figure: Figure,
    ax: Axes,
    field: np.ndarray,
    masked: np.ndarray,
    extent: tuple[float, float, float, float],
    largest: float,
    name: str,
    breadth: float,
) -> None:
    style: dict[str, Any] = {"origin": "lower", "extent": extent, "aspect": "equal"}
    image = ax.imshow(field.T, cmap=_COLOURS, vmin=-largest, vmax=largest, gid=FIELD, **style)
    if masked.any():
        ax.imshow(np.where(masked, 1.0, np.nan).T, cmap=ListedColormap([NOBODY]), **style)
    bar = figure.colorbar(image, cax=ax.inset_axes((1.0 + breadth, 0.0, breadth, 1.0)))
    bar.set_label(name, color=SOFT)
    bar.outline.set_visible(False)


def _edges(nodes: np.ndarray | None, count: int) -> tuple[float, float]:
    """Lower and upper edge: half a step before the first node and after the last."""
    if nodes is None:
        return -0.5, count - 0.5
    half = (nodes[-1] - nodes[0]) / (len(nodes) - 1) / 2
    return float(nodes[0] - half), float(nodes[-1] + half)


def _largest(fields: list[np.ndarray], masked: np.ndarray) -> float:
    """Value at which the colours end: a high percentile, so that a few extreme nodes do not hide the rest."""
    found = float(np.percentile(np.abs(np.concatenate([field[~masked] for field in fields])), _BRIGHTEST))
    return found if found > 0 else 1.0
