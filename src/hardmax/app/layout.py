"""How pages are laid out: a card of controls beside wide cards, one below the other on a narrow screen."""

from __future__ import annotations

import html
from typing import Any

import panel as pn


def card(*contents: Any, title: str = "", **options: Any) -> Any:
    """Contents on a card as wide as there is room."""
    head = [pn.pane.HTML(f"<h2>{html.escape(title)}</h2>", margin=0)] if title else []
    options = {"sizing_mode": "stretch_width", "margin": 0, **options}
    classes = ["card", *options.pop("css_classes", [])]
    return pn.Column(*head, *contents, css_classes=classes, **options)


def controls(*widgets: Any, title: str = "") -> Any:
    """A card of controls for the side; every widget is as wide as the card."""
    for widget in widgets:
        if isinstance(widget, pn.widgets.Widget):
            widget.sizing_mode = "stretch_width"
            widget.margin = (3, 0)
    return card(*widgets, title=title, css_classes=["controls"])


def split(side: Any, *wide: Any) -> Any:
    """Controls at the side and the pictures beside them."""
    left = pn.Column(*(side if isinstance(side, (list, tuple)) else [side]), css_classes=["side"], margin=0)
    right = pn.Column(*wide, css_classes=["wide"], margin=0, sizing_mode="stretch_width")
    return pn.Row(left, right, css_classes=["split"], sizing_mode="stretch_width", margin=(6, 0))


def beside(*cards: Any) -> Any:
    """Cards side by side while there is room for them."""
    return pn.Row(*cards, css_classes=["beside"], sizing_mode="stretch_width", margin=0)


def empty(title: str, words: str) -> Any:
    """What to do, where there is nothing to see yet."""
    return pn.pane.HTML(
        f'<div class="empty"><b>{html.escape(title)}</b>{html.escape(words)}</div>',
        sizing_mode="stretch_width",
        margin=0,
    )


def note(words: str) -> Any:
    """A small remark, as text; set ``.object`` through :func:`noted`."""
    return pn.pane.HTML(noted(words), sizing_mode="stretch_width", margin=(2, 0))


def noted(words: str) -> str:
    """The same remark as HTML, escaped."""
    return f'<p class="soft" aria-live="polite">{html.escape(words)}</p>'
