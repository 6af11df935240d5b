"""What a fitted forecaster is made of: eigenvalues of its linear path, and attention over the lags."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Range1d

from ...forecasting.backtest import Backtest
from ...forecasting.forecaster import TimeDelayedTransformer
from ...forecasting.reading import LagAttention
from ..look import PALETTE

if TYPE_CHECKING:
    from ..session import Session


class UnitCircle:
    """Eigenvalues per time step: inside the unit circle they decay, on it they go on, outside they grow."""

    def __init__(self, session: Session) -> None:
        self._source = ColumnDataSource({name: [] for name in ("x", "y", "frequency", "rate", "colour")})
        self.plot = session.figure(
            height=320, match_aspect=True, x_axis_label="real part", y_axis_label="imaginary part"
        )
        angle = np.linspace(0, 2 * np.pi, 181)
        circle = self.plot.line(np.cos(angle), np.sin(angle), line_width=1.4)
        dots = self.plot.scatter("x", "y", size=9, color="colour", alpha=0.85, source=self._source)
        self.plot.add_tools(
            HoverTool(renderers=[dots], tooltips=[("frequency", "@frequency{0.0000}"), ("growth", "@rate{0.0000}")])
        )
        session.lighting.follow(lambda light: setattr(circle.glyph, "line_color", light.soft))

    def show(self, model: TimeDelayedTransformer) -> int:
        """Draw the eigenvalues of another model; how many lie outside the circle."""
        found, rates = model.eigenvalues(), model.growth_rates()
        outside = np.abs(found) > 1 + 1e-9
        self._source.data = {
            "x": found.real,
            "y": found.imag,
            "frequency": model.frequencies(),
            "rate": rates,
            "colour": [PALETTE[4] if out else PALETTE[0] for out in outside],
        }
        return int(outside.sum())


class LagBars:
    """How much the latest sample listens to each lag."""

    def __init__(self, session: Session) -> None:
        self._source = ColumnDataSource({"lag": [], "share": []})
        self.plot = session.figure(
            height=320,
            y_range=Range1d(0, 1),
            x_axis_label="samples before the latest",
            y_axis_label="share of attention",
        )
        self.plot.xgrid.grid_line_color = None
        bars = self.plot.vbar(x="lag", top="share", width=0.7, color=PALETTE[2], alpha=0.9, source=self._source)
        self.plot.add_tools(HoverTool(renderers=[bars], tooltips=[("lag", "@lag"), ("share", "@share{0.0%}")]))

    def show(self, found: LagAttention) -> None:
        """Draw the attention of the last window."""
        self._source.data = {"lag": found.lags, "share": found.shares[0]}
        self.plot.y_range.end = 1.15 * float(found.shares[0].max())


def backtest_table(found: Backtest) -> str:
    """The rows of a backtest; ours first."""
    rows = "".join(
        f"<tr><td><b>{html.escape(row.model)}</b></td><td>{row.error:.3g}</td><td>{row.median_error:.3g}</td>"
        f"<td>{row.valid_time:.4g}</td><td>{row.diverged}</td></tr>"
        for row in found.rows
    )
    head = "<tr><th>model</th><th>mean error</th><th>median</th><th>valid for</th><th>diverged</th></tr>"
    return (
        f"<table style='width:100%'><thead>{head}</thead><tbody>{rows}</tbody></table><p class='soft'>"
        f"{found.starts} starts in the last quarter, which no model has seen; {len(found.times)} steps each. Errors in "
        "standard deviations of the data; valid while below 0.4. TD-TF is the model on this page (time-delayed "
        "transformer); persistence repeats the last sample; TD-DMD is linear in the last samples (time-delayed dynamic "
        "mode decomposition); NG-RC is polynomial in them (next-generation reservoir computing).</p>"
    )
