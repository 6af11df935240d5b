"""Panes that several pages use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn


def wide_html(*classes: str) -> Any:
    """An empty piece of HTML, as wide as there is room."""
    return pn.pane.HTML("", css_classes=list(classes), sizing_mode="stretch_width", margin=0)


def plot_pane(plot: Any) -> Any:
    """A Bokeh figure, as wide as there is room."""
    return pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0)


def player(name: str, moved: Callable[[Any], Any], interval: int = 600) -> Any:
    """Buttons and a slider to go through layers or blocks; ``moved`` gets the event of every step."""
    found = pn.widgets.Player(
        label=name,
        start=0,
        end=1,
        value=0,
        interval=interval,
        loop_policy="once",
        show_value=True,
        show_loop_controls=False,
        sizing_mode="stretch_width",
        margin=(4, 0),
        visible_buttons=["first", "previous", "play", "pause", "next", "last"],
    )
    found.param.watch(moved, "value")
    return found
