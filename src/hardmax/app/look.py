"""Colours and fonts of the explorer in its light and dark themes, and Python code with a colour per kind of token."""

from __future__ import annotations

import html
import io
import keyword
import token
import tokenize
import weakref
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from bokeh.models import CustomJS
from bokeh.plotting import figure as bokeh_figure
from panel.theme.base import Design, Inherit
from panel.viewable import Viewable

from ..drawing.style import PALETTE as PALETTE
from ..drawing.style import colour_of

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"
STATIC = Path(__file__).parent / "static"
COLOURS = 3 * len(PALETTE)
"""Colours repeat after this many leaders: the palette in three shades."""


@dataclass(frozen=True)
class Light:
    """The greys of one theme; the palette of :mod:`hardmax.figures` is the same in both, but for its darkest shades."""

    ink: str
    soft: str
    line: str
    shade: str
    card: str
    grey: str


DAY = Light(ink="#1d2730", soft="#5b6873", line="#c9d0d6", shade="#e6ebef", card="#ffffff", grey="#a9b1b8")
NIGHT = Light(ink="#e8edf1", soft="#a3b0bb", line="#3a4651", shade="#2a353f", card="#1a2229", grey="#6d7984")


@cache
def static(name: str) -> str:
    """Contents of a file in ``static``."""
    return (STATIC / name).read_text(encoding="utf-8")


def hexadecimal(colour: tuple[float, float, float]) -> str:
    """A colour in hexadecimal notation."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


_LEAST_CONTRAST = 3.0
"""Contrast with the card that WCAG 2.2 asks of the parts of a picture."""


def _contrast(one: str, other: str) -> float:
    """Contrast of two colours in hexadecimal notation, from 1 to 21, as WCAG 2.2 defines it."""
    parts = np.array([[int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)] for colour in (one, other)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    dark, bright = np.sort(linear @ [0.2126, 0.7152, 0.0722])
    return float((bright + 0.05) / (dark + 0.05))


@cache
def leader_colours(light: Light = DAY) -> tuple[str, ...]:
    """The colours of leaders by rank; at night the darkest are mixed with white until they can be seen on a card."""
    colours = [hexadecimal(colour_of(rank)) for rank in range(COLOURS)]
    return tuple(map(_seen_at_night, colours)) if light == NIGHT else tuple(colours)


def _seen_at_night(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    whites = (k / 100 for k in range(101))
    mixed = (hexadecimal((red + w - red * w, green + w - green * w, blue + w - blue * w)) for w in whites)
    return next(one for one in mixed if _contrast(one, NIGHT.card) >= _LEAST_CONTRAST)


def rank_colours(ranks: np.ndarray, light: Light = DAY) -> list[str]:
    """One colour per rank; negative ranks are grey."""
    table = [*leader_colours(light), light.grey]
    return [table[k] for k in np.where(ranks < 0, COLOURS, ranks % COLOURS).tolist()]


class ExplorerDesign(Design):  # type: ignore[misc]
    """Style of all widgets: the fonts of the system and the CSS variables of the explorer."""

    modifiers: ClassVar[dict[Any, Any]] = {Viewable: {"stylesheets": [Inherit, static("widgets.css")]}}


_FIRST_SCREEN = """
const room = Math.max(lowest, Math.min(tallest, window.innerHeight - around, 1.1 * plot.outer_width));
if (plot.outer_width > 0 && Math.abs(plot.height - room) > 1) { plot.height = Math.round(room); }
"""
_LOWEST = 280
"""Pixels below which a picture is too low to read."""


def on_first_screen(plot: Any, around: int) -> None:
    """Keep a plot so low that it and its player fit into the window; on a phone it is about square.

    ``around`` are the pixels that everything else on the first screen takes.
    """
    sizes = {"tallest": plot.height, "around": around, "lowest": _LOWEST}
    plot.js_on_change("outer_width", CustomJS(args={"plot": plot, **sizes}, code=_FIRST_SCREEN))


SIZE = """
const size = (name) => plot.properties[name].is_unset ? 0 : plot[name];
const [width, height] = [size("inner_width"), size("inner_height")];
"""
"""The size of the frame of a plot for a CustomJS, 0 before the browser has laid it out: to read it then is an error,
which would stop the rest of the message that caused it."""

_SAME_SCALE = (
    SIZE
    + """
const {x_range, y_range} = plot;
if (width > 0 && height > 0) {
  const reach = 0.5 * (y_range.end - y_range.start) * width / height;
  x_range.setv({start: -reach, end: reach});
}
"""
)


def equal_scales(plot: Any) -> None:
    """Give both axes the same scale at any width: the range of the first axis, around zero, follows the second."""
    alike = CustomJS(args={"plot": plot}, code=_SAME_SCALE)
    plot.js_on_change("inner_width", alike)
    plot.js_on_change("inner_height", alike)
    plot.y_range.js_on_change("end", alike)


_AROUND_ZERO = (
    SIZE
    + """
const {x_range, y_range, tags} = plot;
if (width > 0 && height > 0 && tags.length > 0) {
  const scale = tags[0] / Math.min(width, height);
  x_range.setv({start: -scale * width, end: scale * width});
  y_range.setv({start: -scale * height, end: scale * height});
}
"""
)


def around_zero(plot: Any) -> None:
    """Give both axes the same scale at any size; what is at most ``plot.tags[0]`` from zero is in the frame."""
    fit = CustomJS(args={"plot": plot}, code=_AROUND_ZERO)
    for changed in ("inner_width", "inner_height", "tags"):
        plot.js_on_change(changed, fit)


class Lighting:
    """The theme of one session, and the plots that are redrawn when it changes."""

    def __init__(self) -> None:
        self.light = DAY
        self._plots: weakref.WeakSet[Any] = weakref.WeakSet()
        self._others: list[Any] = []

    def figure(self, **options: Any) -> Any:
        """A Bokeh figure in the style of the explorer; options as for :func:`bokeh.plotting.figure`."""
        options = {
            "sizing_mode": "stretch_width",
            "height": 420,
            "toolbar_location": None,
            "tools": "",
            "output_backend": "canvas",
            **options,
        }
        plot = bokeh_figure(**options)
        plot.min_border = 8
        plot.outline_line_color = None
        plot.background_fill_color = None
        plot.border_fill_color = None
        plot.title.text_font_size = "13px"
        plot.title.text_font_style = "normal"
        for axis in plot.axis:
            axis.axis_label_text_font_style = "normal"
            axis.axis_label_text_font_size = "12px"
            axis.major_label_text_font_size = "11px"
            axis.minor_tick_line_color = None
        self._plots.add(plot)
        self._paint(plot)
        return plot

    def follow(self, repaint: Any) -> None:
        """Call ``repaint(light)`` now and whenever the theme changes."""
        self._others.append(repaint)
        repaint(self.light)

    def switch(self, dark: bool) -> None:
        """Switch to the dark or the light theme."""
        self.light = NIGHT if dark else DAY
        for plot in list(self._plots):
            self._paint(plot)
        for repaint in self._others:
            repaint(self.light)

    def _paint(self, plot: Any) -> None:
        light = self.light
        plot.title.text_font = FONT
        plot.title.text_color = light.ink
        for axis in plot.axis:
            axis.axis_label_text_font = axis.major_label_text_font = FONT
            axis.axis_label_text_color = axis.major_label_text_color = light.soft
            axis.axis_line_color = axis.major_tick_line_color = light.line
        for grid in plot.grid:
            grid.grid_line_color = light.shade
        for legend in plot.legend:
            legend.label_text_font = FONT
            legend.label_text_font_size = "11px"
            legend.label_text_color = light.ink
            legend.background_fill_color = light.card
            legend.background_fill_alpha = 0.8
            legend.border_line_color = None


_KINDS = {"STRING": "string", "NUMBER": "number", "COMMENT": "comment"}


def code_box(text: str) -> str:
    """The code in a box that can be scrolled, with a button for the clipboard (static/page.html)."""
    return (
        '<div class="code-box"><button type="button" class="copy" data-copy="yes">Copy code</button>'
        f'<pre class="code" tabindex="0" role="region" aria-label="Python code">{highlighted(text)}</pre></div>'
    )


def highlighted(text: str) -> str:
    """The code as HTML with a class per kind of token; as it is where it cannot be read.

    >>> highlighted("import re  # note")
    '<span class="keyword">import</span> re  <span class="comment"># note</span>'
    """
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    pieces, last = [], 0
    try:
        for found in tokenize.generate_tokens(io.StringIO(text).readline):
            # Parts of formatted strings have names of their own from Python 3.12 on.
            kind = _KINDS.get(token.tok_name[found.type].removeprefix("F").partition("_")[0])
            if found.type == token.NAME and keyword.iskeyword(found.string):
                kind = "keyword"
            if kind is None:
                continue
            start, end = (starts[row - 1] + column for row, column in (found.start, found.end))
            pieces += [html.escape(text[last:start]), f'<span class="{kind}">{html.escape(text[start:end])}</span>']
            last = end
    except (tokenize.TokenError, SyntaxError):  # a page may show a fragment
        return html.escape(text)
    return "".join([*pieces, html.escape(text[last:])])
