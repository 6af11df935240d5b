"""Tokens of a model in the plane, a measure over time, and equations as pictures."""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource, HoverTool, Range1d, Span
from matplotlib.colors import to_hex

from ...figures.sphere import CYCLIC_COLOURS
from ..look import FONT, PALETTE, Light, around_zero, on_first_screen
from ..session import Session
from ..stage import empty_frames, path_frames, register_stage
from .computed import Computed
from .state import on_sphere

# Tokens with a trail; more hide the tokens.
_MOST_TRAILS = 150
# Points of a trail, so that an update stays a small message.
_TRAIL_POINTS = 60
# Share of the run in a trail under noise, whose whole paths would fill the picture.
_NOISY_SHARE = 0.03
# Curves whose values differ by more than this factor have a logarithmic axis.
_WIDE = 1e4


class PlaneView:
    """Tokens in the plane, with trails and the unit circle of models on the sphere; lines ``here`` mark their time."""

    def __init__(self, session: Session, here: Sequence[Span] = ()) -> None:
        plot = session.figure(
            height=460, x_range=Range1d(start=-1.2, end=1.2), y_range=Range1d(start=-1.2, end=1.2), name="models"
        )
        around_zero(plot)
        on_first_screen(plot, around=400)
        self.figure = plot
        self.tokens = ColumnDataSource({name: [] for name in ("x", "y", "token", "colour", "size", "shape")})
        self.trails = ColumnDataSource({"xs": [], "ys": [], "colour": []})
        turn = np.linspace(0, 2 * math.pi, 200)
        self.rim = plot.line(np.cos(turn), np.sin(turn), line_width=1.2)
        plot.multi_line("xs", "ys", source=self.trails, line_color="colour", line_alpha=0.35, line_width=1.2)
        dots = plot.scatter(
            "x", "y", source=self.tokens, size="size", marker="shape", fill_color="colour", line_width=0.6
        )
        self._dots = dots
        self.frames = empty_frames("model-frames")
        parts = {"plot": plot, "frames": self.frames, "trails": self.trails, "parts": [self.tokens]}
        parts |= {"here": list(here)}
        register_stage(plot, "points", parts)
        plot.add_tools(HoverTool(renderers=[dots], tooltips=[("token", "@token"), ("at", "(@x{0.0000}, @y{0.0000})")]))
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        self.rim.glyph.line_color = light.line
        self._dots.glyph.line_color = light.card

    def show(self, computed: Computed, *, moving: bool = True) -> None:
        """Draw the frame of the state; without ``moving`` the browser has the motion already."""
        state = computed.state
        k = computed.shown
        points, colours = computed.points, colours_of(computed)
        centre = points[k].mean(axis=0) if state.zoom else np.zeros(2)
        here = points[k] - centre
        causal = state.name == "causal_sphere"
        dot = 11 if len(here) <= 80 else 8 if len(here) <= 400 else 5
        first = causal & (np.arange(len(here)) == 0)
        # Last drawn is on top: the first token of a causal model.
        order = np.arange(len(here))[:: -1 if causal else 1]
        self.tokens.data = {
            "x": here[order, 0],
            "y": here[order, 1],
            "token": order,
            "colour": [colours[i] for i in order],
            "size": np.where(first, 2 * dot, dot)[order],
            "shape": np.where(first, "star", "circle")[order].tolist(),
        }
        self._show_trails(computed, colours)
        self.rim.visible = on_sphere(computed.model) and not state.zoom
        shown = here if state.zoom else points
        reach = float(np.abs(shown[np.isfinite(shown)]).max(initial=0.0))
        self.figure.tags = [1.15 * reach if reach > 0 else 1.0]
        labels = computed.axes()
        if moving:
            self._let_play(computed, colours)
        suffix = ", from the mean token" if state.zoom else ""
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = (label + suffix for label in labels)

    def _let_play(self, computed: Computed, colours: list[str]) -> None:
        """Send all frames, so that the browser moves the tokens; around the mean token, the server draws each frame."""
        if computed.state.zoom:
            self.frames.data = {"at": [], "positions": [], "shape": []}
            return
        trails = computed.state.trails and computed.state.name != "noisy"
        some = _trailed(computed.points.shape[1]) if trails else np.zeros(0, dtype=np.int64)
        tints = [colours[i] for i in some]
        # Frames are close together in time; layers are separate steps.
        eased = computed.run.times is None and len(computed.frames) == len(computed.run)
        self.frames.data = path_frames(
            computed.points, computed.shown, chosen=some, tints=tints, times=computed.moments, eased=eased
        )

    def _show_trails(self, computed: Computed, colours: list[str]) -> None:
        state, tokens = computed.state, np.asarray(computed.flat.tokens)
        last = int(computed.frames[computed.shown])
        if not state.trails or state.zoom or last == 0:
            self.trails.data = {"xs": [], "ys": [], "colour": []}
            return
        n = tokens.shape[1]
        some = _trailed(n)
        begin = max(0, last - math.ceil(_NOISY_SHARE * len(tokens))) if state.name == "noisy" else 0
        steps = np.unique(np.linspace(begin, last, _TRAIL_POINTS).astype(np.int64))
        paths = tokens[np.ix_(steps, some)]
        self.trails.data = {
            "xs": list(paths[..., 0].T),
            "ys": list(paths[..., 1].T),
            "colour": [colours[i] for i in some],
        }


def _trailed(n: int) -> np.ndarray:
    """Tokens that have a trail, evenly among all."""
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_TRAILS)).astype(np.int64))


def colours_of(computed: Computed) -> list[str]:
    """One colour per token: by its first angle, or by the order of the tokens of a causal model."""
    first = computed.points[0]
    if computed.state.name == "causal_sphere":
        turns = 0.8 * np.arange(len(first)) / len(first)  # the colours of a whole turn are the same at both ends
    else:
        turns = (np.arctan2(first[:, 1], first[:, 0]) / (2 * math.pi)) % 1.0
    return [to_hex(colour) for colour in CYCLIC_COLOURS(turns)]


class CurveView:
    """Plot of a measure over the frames of a run, beside its prediction."""

    def __init__(self, session: Session) -> None:
        self.data = ColumnDataSource({"t": [], "measured": [], "theory": []})
        self.spans = []
        self._panes: dict[str, Any] = {}
        for scale in ("linear", "log"):
            plot = session.figure(height=260, y_axis_type=scale, name=f"curve-{scale}")
            theory = {"legend_label": "theory", "line_color": PALETTE[1], "line_dash": [7, 4], "line_width": 4}
            plot.line("t", "theory", source=self.data, **theory, line_alpha=0.8)
            measured = {"legend_label": "measured", "color": PALETTE[0]}
            plot.line("t", "measured", source=self.data, line_width=2, **measured)
            plot.scatter("t", "measured", source=self.data, size=4, **measured)
            plot.legend.location, plot.legend.orientation = "top_right", "horizontal"
            plot.add_layout(plot.legend[0], "above")
            span = Span(dimension="height", line_width=1.5, location=0)
            plot.add_layout(span)
            self.spans.append(span)
            self._panes[scale] = pn.pane.Bokeh(plot, sizing_mode="stretch_width", margin=0)
        self.box = pn.Column(self._panes["linear"], sizing_mode="stretch_width", margin=0)
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        for span in self.spans:
            span.line_color = light.soft
        for pane in self._panes.values():
            for legend in pane.object.legend:
                legend.label_text_color, legend.background_fill_alpha = light.ink, 0.0
                legend.label_text_font, legend.label_text_font_size = FONT, "11px"
                legend.border_line_color, legend.padding, legend.margin = None, 0, 4

    def show(self, computed: Computed) -> None:
        """Draw the measure of the state."""
        curve = computed.curve
        theory = np.full(len(curve.measured), np.nan) if curve.theory is None else curve.theory
        self.data.data = {"t": computed.moments, "measured": curve.measured, "theory": theory}
        seen = np.concatenate([curve.measured, theory])
        seen = seen[np.isfinite(seen) & (seen != 0)]  # zeros are left out of a logarithmic axis
        wide = seen.size > 0 and seen.min() > 0 and seen.max() > _WIDE * seen.min()
        pane = self._panes["log" if wide else "linear"]
        plot = pane.object
        plot.xaxis.axis_label = "layer" if computed.run.times is None else "time"
        plot.yaxis.axis_label = spoken(curve.measure)
        for item in plot.legend[0].items:
            item.visible = item.label.value == "measured" or curve.theory is not None
        if list(self.box) != [pane]:
            self.box[:] = [pane]

    def at(self, moment: float) -> None:
        """Mark the moment of the tokens that are shown."""
        for span in self.spans:
            span.location = moment


def spoken(name: str) -> str:
    """The name of a measure or parameter in words."""
    return name.replace("_", " ")


@cache
def equation_html(latex: str) -> str:
    """An equation as SVG in the colour of the text, one picture per part, with its LaTeX as alternative text."""
    parts = [part.strip(" ,") for part in re.split(r",\\quad", latex)]
    return "".join(f'<div style="overflow-x:auto;padding:6px 2px">{_picture(part)}</div>' for part in parts)


def _picture(latex: str) -> str:
    from matplotlib.font_manager import FontProperties
    from matplotlib.mathtext import math_to_image

    # Matplotlib knows \leq, and fractions with braces only; fractions in display style, a thin space after sums.
    plain = re.sub(r"\\le(?![a-z])", r"\\leq", re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", latex))
    plain = re.sub(r"(\\sum_(?:\w|\{[^}]*\}))", r"\1\\,", plain.replace(r"\frac", r"\dfrac"))
    written = io.BytesIO()
    try:
        math_to_image(f"${plain}$", written, prop=FontProperties(size=14, math_fontfamily="cm"), format="svg")
    except ValueError:
        return f"<code>{html.escape(latex)}</code>"
    svg = written.getvalue().decode()
    svg = svg[svg.index("<svg") :]
    # Without metadata, style sheet and white background.
    svg = re.sub(r'<metadata>.*?</metadata>|<style.*?</style>|<g id="patch_1">.*?</g>', "", svg, flags=re.DOTALL)
    label = html.escape(latex, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" fill="currentColor" overflow="visible" ', 1)
