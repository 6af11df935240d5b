"""W_2 to the limit law against time, with the phases marked as far as they are found."""

from __future__ import annotations

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource, Label, Range1d, Span

import hardmax as hm

from ..look import FONT, PALETTE, Light
from ..session import Session

_NAMES = ("concentration", "metastable", "terminal")


class DistancesView:
    """The curve, three shaded phases with their names, and lines where the theory expects them."""

    def __init__(self, session: Session) -> None:
        self.figure = session.figure(
            height=360, y_axis_type="log", y_range=Range1d(start=0.1, end=3.0), name="distances"
        )
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = "time", "W₂ to the predicted limit"
        self.curve = ColumnDataSource({"t": [], "w": []})
        self._dots = ColumnDataSource({"t": [], "w": []})
        self._bands = [BoxAnnotation(fill_alpha=0.12, fill_color=colour, line_color=None) for colour in PALETTE[:3]]
        self._labels = [
            Label(x=0, y=3, text="", text_font=FONT, text_font_size="12px", text_align="center", text_baseline="top")
            for _ in _NAMES
        ]
        self._expected = [Span(dimension="height", line_dash=[4, 4], line_width=1.2) for _ in range(2)]
        self._here = Span(dimension="height", line_width=1.5)
        for piece in (*self._bands, *self._labels, *self._expected, self._here):
            piece.visible = False
            self.figure.add_layout(piece)
        self.figure.line("t", "w", source=self.curve, line_width=2.2, line_color=PALETTE[0])
        self.figure.scatter("t", "w", source=self._dots, size=10, fill_color=PALETTE[4], line_color="white")
        session.lighting.follow(self._repaint)

    def _repaint(self, light: Light) -> None:
        for label in self._labels:
            label.text_color = light.ink
        for span in self._expected:
            span.line_color = light.soft
        self._here.line_color = light.ink

    def at(self, time: float) -> None:
        """Mark the time that is shown elsewhere."""
        self._here.update(location=time, visible=True)

    def show(self, found: hm.Phases | None) -> None:
        """Draw what was found, or nothing."""
        if found is None:
            self.curve.data = self._dots.data = {"t": [], "w": []}
            for piece in (*self._bands, *self._labels, *self._expected):
                piece.visible = False
            return
        heights = np.maximum(found.distances, 1e-12)
        top = 2.6 * float(heights.max())  # room for the names of the phases
        self.figure.y_range.update(start=0.6 * float(heights.min()), end=top)
        self.curve.data = {"t": found.times, "w": heights}
        self._dots.data = {"t": [found.approach_time], "w": [max(found.approach_distance, 1e-12)]}
        begin, end = found.window
        last = float(found.times[-1])
        left_again = found.escape_time is not None
        spans = ((0.0, begin), (begin, end), (end, last if left_again else end))
        for (start, stop), name, band, label in zip(spans, _NAMES, self._bands, self._labels, strict=True):
            wide = stop - start > 0.02 * last
            band.update(left=start, right=stop, visible=wide)
            label.update(x=0.5 * (start + stop), y=0.93 * top, text=name, visible=wide and stop - start > 0.12 * last)
        expected = (found.expected_approach_time, found.expected_escape_time)
        for span, time in zip(self._expected, expected, strict=True):
            span.visible = time is not None and time <= last
            if time is not None:
                span.location = time
