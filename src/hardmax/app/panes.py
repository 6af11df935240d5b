"""Panes that several pages use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import panel as pn
from bokeh.core.properties import value

from .look import FONT

if TYPE_CHECKING:
    from .session import Session


def wide_html(*classes: str) -> Any:
    """An empty piece of HTML, as wide as there is room."""
    return pn.pane.HTML("", css_classes=list(classes), sizing_mode="stretch_width", margin=0)


def plot_pane(plot: Any) -> Any:
    """A Bokeh figure, as wide as there is room."""
    return pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0)


def beside_bars(session: Session, plot: Any, source: Any, *, x: str, text: str) -> None:
    """The numbers of horizontal bars, written at their ends in the ink of the page."""
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


class Steps:
    """Buttons and a slider to go through layers or blocks; ``moved`` gets the event of every step."""

    def __init__(self, name: str, moved: Callable[[Any], Any]) -> None:
        self._name, self._moved = name, moved
        self.box = pn.Column(sizing_mode="stretch_width", margin=0)
        self._make(1, 0)

    @property
    def player(self) -> Any:
        """The widget as it is now."""
        return self.box[0]

    def show(self, last: int, now: int) -> None:
        """Go from 0 to ``last``, and stand at ``now``."""
        if last == self.player.end:
            self.player.value = now
        else:  # the browser's slider does not follow when its end alone changes, so it gets a new one
            self._make(last, now)

    def _make(self, last: int, now: int) -> None:
        made = pn.widgets.Player(
            label=self._name,
            start=0,
            end=last,
            value=now,
            interval=600,
            loop_policy="once",
            show_value=True,
            show_loop_controls=False,
            sizing_mode="stretch_width",
            margin=(4, 0),
            visible_buttons=["first", "previous", "play", "pause", "next", "last"],
        )
        made.param.watch(self._moved, "value")
        self.box[:] = [made]
