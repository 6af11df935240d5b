"""Tokens on the circle and the sphere, and their distance to the limit law."""

from __future__ import annotations

import math

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource, Label, Range1d, Span
from matplotlib.colors import to_hex

import hardmax as hm

from ...figures.sphere import CYCLIC_COLOURS
from ..look import FONT, PALETTE, Light, equal_scales, on_first_screen
from ..session import Session
from ..stage import camera_source, register_stage, turn_by_hand

PHASES = ("concentration", "metastable", "terminal")


def phase_spans(found: hm.Phases) -> tuple[tuple[float, float], ...]:
    """Begin and end of each of the three phases."""
    begin, end = found.window
    last = float(found.times[-1]) if found.escape_time is not None else end
    return (0.0, begin), (begin, end), (end, last)


class DistancesView:
    """Plot of the distance to the limit by time, with the three phases and their expected times."""

    def __init__(self, session: Session) -> None:
        self.figure = session.figure(
            height=360, y_axis_type="log", y_range=Range1d(start=0.1, end=3.0), name="distances"
        )
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = "time", "W₂ to the predicted limit"
        self.curve = ColumnDataSource({"t": [], "w": []})
        self._dots = ColumnDataSource({"t": [], "w": []})
        self._bands = [BoxAnnotation(fill_alpha=0.12, fill_color=colour, line_color=None) for colour in PALETTE[:3]]
        self._labels = [
            Label(
                x=0,
                y=3,
                text="",
                text_font=FONT,
                text_font_size="12px",
                text_align="center",
                text_baseline="top",
                background_fill_alpha=0.75,
            )
            for _ in PHASES
        ]
        self._labels[1].y_offset = -16  # in a line of its own: on a phone neighbours have no room in one
        self._expected = [Span(dimension="height", line_dash=[4, 4], line_width=1.2) for _ in range(2)]
        self.here = Span(dimension="height", line_width=1.5)
        for piece in (*self._bands, *self._expected, self.here, *self._labels):
            piece.visible = False
            self.figure.add_layout(piece)
        self.figure.line("t", "w", source=self.curve, line_width=2.2, line_color=PALETTE[0])
        self.figure.scatter("t", "w", source=self._dots, size=10, fill_color=PALETTE[4], line_color="white")
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        for label in self._labels:
            label.update(text_color=light.ink, background_fill_color=light.card)
        for span in self._expected:
            span.line_color = light.soft
        self.here.line_color = light.ink

    def at(self, time: float) -> None:
        """Mark the time of the tokens that are shown."""
        self.here.update(location=time, visible=True)

    def show(self, found: hm.Phases | None) -> None:
        """Draw the phases; an empty plot for None."""
        if found is None:
            self.curve.data = self._dots.data = {"t": [], "w": []}
            for piece in (*self._bands, *self._labels, *self._expected):
                piece.visible = False
            return
        self.figure.yaxis.axis_label = f"{subscripted(found.distance_name)} to the predicted limit"
        heights = np.maximum(found.distances, 1e-12)
        top = 2.6 * float(heights.max())  # room for the names of the phases
        self.figure.y_range.update(start=0.6 * float(heights.min()), end=top)
        self.curve.data = {"t": found.times, "w": heights}
        self._dots.data = {"t": [found.approach_time], "w": [max(found.approach_distance, 1e-12)]}
        last = float(found.times[-1])
        for (start, stop), name, band, label in zip(phase_spans(found), PHASES, self._bands, self._labels, strict=True):
            wide = stop - start > 0.02 * last
            band.update(left=start, right=stop, visible=wide)
            label.update(x=0.5 * (start + stop), y=0.93 * top, text=name, visible=wide and stop - start > 0.12 * last)
        expected = (found.expected_approach_time, found.expected_escape_time)
        for span, time in zip(self._expected, expected, strict=True):
            span.visible = time is not None and time <= last
            if time is not None:
                span.location = time


# Dots that a browser draws without delay.
MOST_DOTS = 1_500
MOST_NUMBERS = 800_000
"""Coordinates of all moments that are sent to the browser, 3 MB; longer runs are drawn with fewer dots."""


def subscripted(name: str) -> str:
    """The name of a distance of the library as the page writes it."""
    return name.replace("W2", "W₂")


def round_colours(start: np.ndarray) -> list[str]:
    """One colour per token, by the angle of its first two coordinates."""
    turns = (np.arctan2(start[:, 1], start[:, 0]) / (2 * math.pi)) % 1.0
    return [to_hex(colour) for colour in CYCLIC_COLOURS(turns)]


def some_dots(states: np.ndarray) -> np.ndarray:
    """Indices of the tokens that are drawn, evenly chosen."""
    moments, count, d = states.shape
    most = min(count, MOST_DOTS, max(50, MOST_NUMBERS // (moments * d)))
    return np.unique(np.linspace(0, count - 1, most).astype(np.int64))


class RoundView:
    """Plot of tokens on the circle, or on the sphere, which a drag turns; the browser draws the motion."""

    def __init__(self, session: Session, here: Span, *, sphere: bool) -> None:
        plot = session.figure(
            height=430,
            x_range=Range1d(start=-1.3, end=1.3),
            y_range=Range1d(start=-1.2, end=1.2),
            name="sphere" if sphere else "circle",
        )
        plot.axis.visible = plot.grid.visible = False
        equal_scales(plot)
        on_first_screen(plot, around=420)
        self.figure, self._sphere = plot, sphere
        names = ("x", "y", "colour", *(("alpha", "size") if sphere else ()))
        self.tokens = ColumnDataSource({name: [] for name in names})
        self._ghost = ColumnDataSource({name: [] for name in ("x", "y", "alpha")})
        self.frames = ColumnDataSource({"at": [], "positions": [], "shape": []}, name=f"{plot.name}-frames")
        self.camera = camera_source()
        rings = ColumnDataSource({"xs": [], "ys": [], "alpha": []})
        turn = np.linspace(0, 2 * math.pi, 200)
        self._rim = plot.patch(np.cos(turn), np.sin(turn), line_width=1.2, fill_alpha=0.5 if sphere else 0.0)
        self._rings = plot.multi_line("xs", "ys", source=rings, line_alpha="alpha", line_width=0.8)
        self._shade = plot.scatter(
            "x",
            "y",
            source=self._ghost,
            size=24,
            fill_color=None,
            line_alpha="alpha",
            line_width=2,
            line_dash="dashed",
        )
        look = {"fill_alpha": "alpha", "size": "size"} if sphere else {"fill_alpha": 0.8, "size": 9}
        plot.scatter("x", "y", source=self.tokens, fill_color="colour", line_color=None, **look)
        models = {"plot": plot, "frames": self.frames, "tokens": self.tokens, "here": here}
        if sphere:
            turn_by_hand(plot, self.camera)
            models |= {"ghost": self._ghost, "rings": rings, "camera": self.camera}
        register_stage(plot, plot.name, models)
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        self._rim.glyph.line_color, self._rim.glyph.fill_color = light.line, light.shade
        self._rings.glyph.line_color = light.line
        self._shade.glyph.line_color = light.soft

    def clear(self) -> None:
        """Draw no motion here while another view is shown."""
        self.frames.data = {"at": [], "positions": [], "shape": []}

    def show(self, states: np.ndarray, times: np.ndarray, ghost: np.ndarray, moment: int) -> None:
        """Send all states, shape (moment, token, coordinate), with their times and the predicted limits."""
        some = some_dots(states)
        colours = round_colours(states[0][some])
        places = np.unique(ghost.round(3 if self._sphere else 6), axis=0)[:MOST_DOTS]
        shown = states[:, some]
        if not self._sphere:
            now = shown[moment]
            self.tokens.data = {"x": now[:, 0], "y": now[:, 1], "colour": colours}
            self._ghost.data = {"x": places[:, 0], "y": places[:, 1], "alpha": np.ones(len(places))}
        self.frames.data = {
            "at": [moment],
            "positions": [np.ascontiguousarray(shown, dtype=np.float32).ravel()],
            "shape": [list(shown.shape)],
            "eased": [0],
            "playable": [1],
            "fill": [colours],
            "ghost": [np.ascontiguousarray(places, dtype=np.float64).ravel()],
            "times": [np.asarray(times, dtype=np.float64)],
        }
