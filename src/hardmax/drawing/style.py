"""Style of all figures: colours, fonts and axes, applied locally and never at import.

Colours are those of Okabe and Ito, which can be told apart with any common colour blindness, ordered so that neighbours
also differ in lightness. Beyond seven leaders the shape of the marker changes with each round of the palette.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .fonts import families, one_warning_for_boxes

INK = "#1d2730"
SOFT = "#5b6873"
LINE = "#c9d0d6"
SHADE = "#e6ebef"
GRID = "#e8ebee"
NOBODY = "#a9b1b8"
"""The grey of tokens without a leader."""
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#F0E442", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    "axes.titlecolor": INK,
    "axes.labelsize": 10.0,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": LINE,
    "axes.linewidth": 0.8,
    "axes.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "text.color": INK,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 100.0,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "hardmax",  # the same drawing gives the same file
}


@contextmanager
def styled() -> Iterator[None]:
    """Context in which figures have the style of the library; the settings of the caller are restored afterwards."""
    with mpl.rc_context({**_STYLE, "font.family": families()}):
        yield


class Drawing(Figure):
    """A figure in the style of the library, without a window, that a notebook shows.

    A notebook shows its axes as the whole figure too, because drawing functions return axes: they have ``_repr_png_``,
    without which a notebook would print ``<Axes: …>``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._boxes: set[str] = set()

    def draw(self, renderer: Any) -> None:
        """Draw the figure; characters that no installed font has are named in one warning."""
        with one_warning_for_boxes(self._boxes):
            super().draw(renderer)

    def add_subplot(self, *args: Any, **kwargs: Any) -> Any:
        """Axes that show this figure in a notebook; see :meth:`matplotlib.figure.Figure.add_subplot`."""
        ax = super().add_subplot(*args, **kwargs)
        ax._repr_png_ = self._repr_png_
        return ax

    def subplots(self, *args: Any, **kwargs: Any) -> Any:
        """Axes in the style of the library; see :meth:`matplotlib.figure.Figure.subplots`."""
        with styled():
            return super().subplots(*args, **kwargs)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with styled():
            self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()


def new_figure(width: float, height: float) -> Drawing:
    """An empty figure in the style of the library, laid out so that nothing overlaps.

    Parameters
    ----------
    width
        Width in inches.
    height
        Height in inches.

    Returns
    -------
    Drawing
        The figure; a notebook shows it.
    """
    with styled():
        return Drawing(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """``ax``, or the axes of a new figure."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def rule_lines(ax: Axes) -> None:
    """Add light horizontal grid lines to the axes."""
    ax.grid(axis="y", color=GRID, linewidth=0.7)


def colour_of(rank: int) -> tuple[float, float, float]:
    """The colour of the rank-th leader; grey for negative ranks.

    The second round of the palette is darker and the third lighter, then they repeat.
    """
    if rank < 0:
        return to_rgb(NOBODY)
    base = np.array(to_rgb(PALETTE[rank % len(PALETTE)]))
    shift = (rank // len(PALETTE)) % 3
    if shift == 1:
        base = 0.62 * base
    elif shift == 2:
        base = 0.55 * base + 0.45
    return (float(base[0]), float(base[1]), float(base[2]))


def colours_of(ranks: np.ndarray) -> np.ndarray:
    """One colour per rank, shape (…, 3)."""
    period = 3 * len(PALETTE)
    table = np.array([colour_of(rank) for rank in [*range(period), -1]])
    return np.asarray(table[np.where(ranks < 0, period, ranks % period)])


def marker_of(rank: int) -> str:
    """The marker of the followers of the rank-th leader: a new shape for each round of the palette."""
    return MARKERS[(max(rank, 0) // len(PALETTE)) % len(MARKERS)]


def darker(colours: np.ndarray) -> np.ndarray:
    """Darker colours for edges, shape (…, 3)."""
    return np.asarray(0.55 * np.asarray(colours, dtype=np.float64))


def is_space(ax: Axes) -> bool:
    """Whether these axes are three-dimensional."""
    return ax.name == "3d"


def style_axes(ax: Axes) -> None:
    """Apply the style of the library to axes that were made without it."""
    ax.tick_params(color=LINE, labelcolor=SOFT, labelsize=9)
    if is_space(ax):
        ax.grid(False)
        axes: tuple[Any, ...] = (ax.xaxis, ax.yaxis, ax.zaxis)  # type: ignore[attr-defined]
        for axis in axes:
            axis.set_major_locator(MaxNLocator(5))
            axis.set_pane_color((0.98, 0.98, 0.99, 1.0))
            axis.line.set_color(LINE)
        return
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(LINE)
