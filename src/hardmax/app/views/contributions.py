"""Contributions as a staircase: each bar starts where the one before it ends, and the last is the logit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bokeh.models import ColumnDataSource, FactorRange, HoverTool, Range1d, Span

from ...text.explanation import Explanation
from .class_colours import colours_of_contributions
from .panes import beside_bars

if TYPE_CHECKING:
    from ..session import Session

_BARS = 10


class Staircase:
    """The leaders' contributions and the bias, adding up to the logit."""

    def __init__(self, session: Session) -> None:
        self._source = ColumnDataSource(
            {"bar": [], "left": [], "right": [], "colour": [], "label": [], "at": []}, name="contributions"
        )
        self._bars = FactorRange()
        self.plot = session.figure(
            height=300, y_range=self._bars, x_range=Range1d(-1, 1), x_axis_label="contribution to the logit"
        )
        self.plot.ygrid.grid_line_color = None
        self.plot.add_layout(Span(location=0, dimension="height", line_color="#8a96a0", line_width=1))
        bars = self.plot.hbar(
            y="bar", left="left", right="right", height=0.62, color="colour", alpha=0.85, source=self._source
        )
        beside_bars(session, self.plot, self._source, x="at", text="label")
        self.plot.add_tools(HoverTool(renderers=[bars], tooltips=[("", "@bar"), ("contributes", "@label")]))

    def show(self, explanation: Explanation) -> None:
        """Draw the explanation of another text."""
        rows = staircase(explanation)
        self._bars.factors = [row[0] for row in reversed(rows)]
        self.plot.height = 96 + 26 * len(rows)
        ends = [end for _, start, stop in rows for end in (start, stop)]
        span = (max(ends) - min(ends)) or 1.0
        # There must be room for the number to the right of the longest bar.
        self.plot.x_range.update(start=min(ends) - 0.04 * span, end=max(ends) + 0.14 * span)
        self._source.data = {
            "bar": [name for name, _, _ in rows],
            "left": [min(start, end) for _, start, end in rows],
            "right": [max(start, end) for _, start, end in rows],
            "at": [max(start, end) for _, start, end in rows],
            "colour": colours_of_contributions(explanation, [end - start for _, start, end in rows]),
            "label": [f"{end - start:+.2f}".replace("-", "−") for _, start, end in rows],
        }


def staircase(explanation: Explanation) -> list[tuple[str, float, float]]:
    """Name, start and end of every bar; leaders beyond the first few share one bar."""
    out = explanation.output
    steps = [(f"★ {leader.word}", float(leader.contribution[out])) for leader in explanation.leaders]
    if len(steps) > _BARS:
        rest = steps[_BARS - 1 :]
        steps = [*steps[: _BARS - 1], (f"{len(rest)} more leaders", sum(step for _, step in rest))]
    steps.append(("bias", float(explanation.bias[out])))
    rows, reached = [], 0.0
    for name, step in steps:
        rows.append((name, reached, reached + step))
        reached += step
    return [*rows, ("logit (the sum)", 0.0, float(explanation.logits[out]))]
