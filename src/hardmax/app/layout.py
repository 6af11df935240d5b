"""Layout of a page (cards of controls beside wide cards) and the panes that several pages use."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn
from bokeh.core.properties import value

from .look import FONT
from .player import Player

if TYPE_CHECKING:
    from .session import Session


def card(*contents: Any, title: str = "", **options: Any) -> Any:
    """A card of full width with these contents."""
    head = [pn.pane.HTML(heading(title), margin=0)] if title else []
    options = {"sizing_mode": "stretch_width", "margin": 0, **options}
    classes = ["card", *options.pop("css_classes", [])]
    return pn.Column(*head, *contents, css_classes=classes, **options)


def heading(title: str) -> str:
    """The heading of a card as HTML, escaped."""
    return f"<h2>{html.escape(title)}</h2>"


def controls(*widgets: Any, title: str = "") -> Any:
    """A card of controls for the left column; every widget is as wide as the card."""
    for widget in widgets:
        if isinstance(widget, pn.widgets.Widget):
            widget.sizing_mode = "stretch_width"
            widget.margin = (3, 0)
    return card(*widgets, title=title, css_classes=["controls"])


def split(side: Any, *wide: Any) -> Any:
    """Controls in a left column and wide cards beside them."""
    left = pn.Column(*(side if isinstance(side, (list, tuple)) else [side]), css_classes=["side"], margin=0)
    right = pn.Column(*wide, css_classes=["wide"], margin=0, sizing_mode="stretch_width")
    return pn.Row(left, right, css_classes=["split"], sizing_mode="stretch_width", margin=(6, 0))


def beside(*cards: Any) -> Any:
    """Cards side by side where the window is wide enough."""
    return pn.Row(*cards, css_classes=["beside"], sizing_mode="stretch_width", margin=0)


def stack(*cards: Any, roomy: bool = False) -> Any:
    """Cards one below the other, to be put beside others; ``roomy`` ones are as wide as a card alone."""
    classes = ["stack", "roomy"] if roomy else ["stack"]
    return pn.Column(*cards, css_classes=classes, sizing_mode="stretch_width", margin=0)


def empty(title: str, words: str) -> Any:
    """A placeholder that says what to do, shown until there are results."""
    return pn.pane.HTML(
        f'<div class="empty"><b>{html.escape(title)}</b>{html.escape(words)}</div>',
        sizing_mode="stretch_width",
        margin=0,
    )


def note(words: str) -> Any:
    """A pane with a small note; set ``.object`` through :func:`noted`."""
    return pn.pane.HTML(noted(words), sizing_mode="stretch_width", margin=(2, 0))


def noted(words: str) -> str:
    """A small note as HTML, escaped."""
    return f'<p class="soft" aria-live="polite">{html.escape(words)}</p>'


def say(pane: Any, words: str) -> None:
    """Set the words of a note; without words it is hidden."""
    pane.object, pane.visible = noted(words), bool(words)


def wide_html(*classes: str) -> Any:
    """An empty HTML pane of full width."""
    return pn.pane.HTML("", css_classes=list(classes), sizing_mode="stretch_width", margin=0)


def plot_pane(plot: Any) -> Any:
    """A pane of full width with a Bokeh figure."""
    return pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0)


def beside_bars(session: Session, plot: Any, source: Any, *, x: str, text: str) -> None:
    """Write the numbers of horizontal bars at their ends."""
    written = plot.text(
        x=x,
        y="bar",
        text=text,
        x_offset=6,
        text_baseline="middle",
        text_font_size="12px",
        text_font=value(FONT),
        source=source,
    )
    session.lighting.follow(lambda light: setattr(written.glyph, "text_color", light.ink))


_LETTER, _HEIGHT, _GAP = 6.6, 14.0, 9.0
"""Sizes in pixels of a letter, a line, and the gap between a point and its name."""


def readable(
    places: np.ndarray,
    names: Sequence[str],
    low: np.ndarray,
    high: np.ndarray,
    pixels: tuple[float, float],
    *,
    dots: np.ndarray | None = None,
    leading: int = 0,
) -> list[int]:
    """Indices of the names that do not overlap earlier ones.

    ``low`` and ``high`` are the corners of a view that is drawn on so many ``pixels``. A name that would cover one of
    the ``dots``, shape (dot, 2), is left out too, unless it is one of the first ``leading``.
    """
    with np.errstate(all="ignore"):
        spots = (places - low) / (high - low) * np.array(pixels)
        marks = np.empty((0, 2)) if dots is None else (dots - low) / (high - low) * np.array(pixels)
    boxes: list[tuple[float, float, float, float]] = []
    shown = []
    for k, (x, y) in enumerate(spots.tolist()):
        box = (x, y - _HEIGHT / 2, x + _GAP + _LETTER * len(names[k]), y + _HEIGHT / 2)
        if not np.isfinite(box).all():
            continue
        covered = (np.abs(marks[:, 1] - y) < _HEIGHT / 2) & (marks[:, 0] > x + _GAP) & (marks[:, 0] < box[2])
        if k >= leading and covered.any():
            continue
        if all(box[0] > b[2] or b[0] > box[2] or box[1] > b[3] or b[1] > box[3] for b in boxes):
            boxes.append(box)
            shown.append(k)
    return shown


class Steps:
    """A player for layers or blocks; ``moved`` gets the event of every step, ``interval`` are its milliseconds."""

    def __init__(self, name: str, moved: Callable[[Any], Any], interval: int = 600) -> None:
        self.player = Player(label=name, interval=interval, margin=(4, 0))
        self.player.param.watch(moved, "value")
        self.box = pn.Column(self.player, sizing_mode="stretch_width", margin=0)

    def show(self, last: int, now: int, titles: Sequence[str] = ()) -> None:
        """Let the player run from 0 to ``last``, now at ``now``; ``titles`` name the moments."""
        self.player.param.update(end=last, value=now, titles=list(titles))
