"""Forecasts, phase portraits, errors, eigenvalues and lag attention, drawn with Bokeh."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np
from bokeh.models import (
    BasicTicker,
    BasicTickFormatter,
    ColumnDataSource,
    DatetimeTicker,
    DatetimeTickFormatter,
    HoverTool,
    NoOverlap,
    PlainText,
    Range1d,
    Span,
)

from ...errors import InputError
from ...figures.forecasting import LEVELS, MOST_ROOM
from ...forecasting.diagnostics.backtest import ANEW, Backtest
from ...forecasting.diagnostics.spectrum import LagAttention
from ...forecasting.forecast import Band, Forecast
from ...forecasting.forecaster import TimeDelayedTransformer
from ..layout import beside, card, note, noted, plot_pane
from ..look import PALETTE, Light, around_zero
from .state import Data, Fit

if TYPE_CHECKING:
    from ..session import Session


AHEAD, TRUTH = PALETTE[0], PALETTE[4]
_SHOWN_BEFORE = 1.2
"""Length of the past that is shown, as a multiple of the forecast."""
_GREY = "#8a96a0"
_MODELS: dict[str, tuple[str, list[int], str]] = {
    "TD-TF": (PALETTE[0], [], "TD-TF (this model)"),
    "persistence": (_GREY, [2, 4], "persistence"),
    "seasonal naive": (_GREY, [6, 6], "seasonal naive"),
    "analogue": (PALETTE[3], [2, 4, 6, 4], "analogue"),
    "TD-DMD": (PALETTE[4], [6, 6], "TD-DMD (linear)"),
    "NG-RC": (PALETTE[2], [2, 4, 6, 4], "NG-RC (polynomial)"),
}
"""Colour, dash pattern and name in the key of each model of a backtest."""


class Fan:
    """One channel by time: known samples, the forecast with its intervals, and the true future."""

    def __init__(self, session: Session) -> None:
        self._seen, self._ahead, self._truth = (ColumnDataSource({"t": [], "y": []}) for _ in range(3))
        self._bands = {
            level: ColumnDataSource({"t": [], "low": [], "high": []}, name=f"{100 * level:g} %") for level in LEVELS
        }
        self.plot = session.figure(height=320, x_range=Range1d(0, 1), x_axis_label="time", name="fan")
        self.plot.xaxis.major_label_policy = NoOverlap(min_distance=8)  # dates run into each other on a phone
        for level, alpha in zip(sorted(LEVELS, reverse=True), (0.14, 0.22), strict=True):
            source = self._bands[level]
            self.plot.varea(x="t", y1="low", y2="high", source=source, color=AHEAD, alpha=alpha)
        seen = self.plot.line("t", "y", source=self._seen, line_width=1.6)
        self.plot.line("t", "y", source=self._ahead, color=AHEAD, line_width=3)
        self.plot.line("t", "y", source=self._truth, color=TRUTH, line_width=1.6, line_dash=[5, 5])
        self._now = Span(dimension="height", line_width=1, line_dash="dotted", visible=False)
        self.plot.add_layout(self._now)

        def repaint(light: Light) -> None:
            seen.glyph.line_color, self._now.line_color = light.ink, light.soft

        session.lighting.follow(repaint)

    def show(self, data: Data, fit: Fit | None, channel: int) -> None:
        """Draw one channel, with the forecast where there is one."""
        forecast = None if fit is None else fit.forecast
        times, values = data.series.on_an_axis(data.times), data.values[:, channel]
        ends = data.future[0] if data.future is not None else times
        ahead = np.empty(0) if forecast is None else data.series.on_an_axis(forecast.times)
        length = max(len(ahead), len(ends) if data.future is not None else 0, 100)
        first = 0 if forecast is None else max(0, len(times) - int(_SHOWN_BEFORE * length))
        self._seen.data = {"t": times[first:], "y": values[first:]}
        known = forecast is not None and data.future is not None
        self._truth.data = (
            {"t": data.future[0], "y": data.future[1][:, channel]} if known and data.future else {"t": [], "y": []}
        )
        middle = np.empty(0) if forecast is None else forecast.values[:, channel]
        # From the last sample on, so that the lines connect.
        self._ahead.data = (
            {"t": [], "y": []}
            if forecast is None
            else {"t": np.append(times[-1:], ahead), "y": np.append(values[-1:], middle)}
        )
        for level, source in self._bands.items():
            band = None if fit is None else fit.intervals.get(level)
            source.data = _drawn(band, ahead, channel, values, middle)
        last = float(ahead[-1]) if len(ahead) else float(times[-1])
        self.plot.x_range.update(start=float(times[first]), end=last)
        self._now.update(location=float(times[-1]), visible=forecast is not None)
        # Names are plain text, not formulas.
        self.plot.yaxis.axis_label = PlainText(text=data.series.names[channel])
        self.plot.xaxis.axis_label = PlainText(text=data.series.time_name or "sample")
        dated = bool(data.series.began)
        self.plot.xaxis[0].update(
            ticker=DatetimeTicker() if dated else BasicTicker(),
            formatter=DatetimeTickFormatter() if dated else BasicTickFormatter(),
        )


def _drawn(
    band: Band | None, times: np.ndarray, channel: int, known: np.ndarray, middle: np.ndarray
) -> dict[str, np.ndarray]:
    """The columns of one interval of a channel; what is far beyond the data is cut off, or it would flatten them."""
    if band is None:
        nothing = np.empty(0)
        return {"t": nothing, "low": nothing, "high": nothing}
    both = np.append(known, middle)
    least, most = float(np.nanmin(both)), float(np.nanmax(both))
    room = MOST_ROOM * float(np.nanmax(known) - np.nanmin(known)) or 1.0
    low, high = (np.clip(end[:, channel], least - room, most + room) for end in band)
    return {"t": times, "low": low, "high": high}


class PhasePortrait:
    """Phase portrait of two channels, or of one channel against itself some samples earlier."""

    def __init__(self, session: Session) -> None:
        self._seen, self._ahead, self._truth = (ColumnDataSource({"x": [], "y": []}) for _ in range(3))
        self.plot = session.figure(height=340)
        seen = self.plot.line("x", "y", source=self._seen, line_width=1, alpha=0.7)
        self.plot.line("x", "y", source=self._ahead, color=AHEAD, line_width=2.2)
        self.plot.line("x", "y", source=self._truth, color=TRUTH, line_width=1.2, line_dash=[5, 5])
        session.lighting.follow(lambda light: setattr(seen.glyph, "line_color", light.grey))

    def show(self, data: Data, forecast: Forecast | None, channel: int, lag: int) -> None:
        """Draw the channel against the next one, or against itself ``lag`` samples earlier."""
        names, alone = data.series.names, data.series.channels == 1
        other = (channel + 1) % data.series.channels

        def pairs(values: np.ndarray) -> dict[str, np.ndarray]:
            if alone:
                return {"x": values[:-lag, 0], "y": values[lag:, 0]}
            return {"x": values[:, channel], "y": values[:, other]}

        nothing: dict[str, np.ndarray] = {"x": np.empty(0), "y": np.empty(0)}
        before = data.values[-lag:] if alone else data.values[-1:]
        self._seen.data = pairs(data.values)
        self._ahead.data = nothing if forecast is None else pairs(np.concatenate([before, forecast.values]))
        shown = forecast is not None and data.future is not None
        self._truth.data = pairs(np.concatenate([before, data.future[1]])) if shown and data.future else nothing
        across = f"{names[0]}, {lag} samples before" if alone else names[channel]
        self.plot.xaxis.axis_label = PlainText(text=across)
        self.plot.yaxis.axis_label = PlainText(text=names[0] if alone else names[other])


class ErrorCurves:
    """Error of each model by step, in standard deviations, on a logarithmic scale."""

    def __init__(self, session: Session) -> None:
        self._sources = {name: ColumnDataSource({"t": [], "error": []}) for name in _MODELS}
        self.plot = session.figure(
            height=280,
            y_axis_type="log",
            y_range=Range1d(0.1, 10),
            x_axis_label="time ahead",
            y_axis_label="error, standard deviations",
        )
        for name, (colour, dash, _) in _MODELS.items():
            self.plot.line("t", "error", source=self._sources[name], color=colour, line_width=2, line_dash=dash)

    def show(self, found: Backtest, unit: str = "", size: float = 1.0) -> None:
        """Draw another backtest; times in units of ``size``."""
        drawn = []
        self.plot.xaxis.axis_label = f"time ahead{f', {unit}' if unit else ''}"
        for name, source in self._sources.items():
            curve = found.curves.get(name, np.empty(0))
            # Zero and infinity cannot be drawn on a logarithmic scale.
            finite = np.isfinite(curve) & (curve > 0)
            source.data = {"t": found.times[: len(curve)][finite] / size, "error": curve[finite]}
            drawn.append(curve[finite])
        every = np.concatenate([*drawn, [0.1]])
        self.plot.y_range.update(start=0.5 * float(every.min()), end=3 * float(every.max()))


class UnitCircle:
    """Eigenvalues per time step: modes inside the unit circle decay, on it they persist, outside they grow."""

    def __init__(self, session: Session) -> None:
        self._source = ColumnDataSource({name: [] for name in ("x", "y", "frequency", "rate", "colour")})
        self.plot = session.figure(
            height=320,
            x_range=Range1d(-1, 1),
            y_range=Range1d(-1, 1),
            x_axis_label="real part",
            y_axis_label="imaginary part",
            name="eigenvalues",
        )
        around_zero(self.plot)
        angle = np.linspace(0, 2 * np.pi, 181)
        circle = self.plot.line(np.cos(angle), np.sin(angle), line_width=1.4)
        dots = self.plot.scatter("x", "y", size=9, color="colour", alpha=0.85, source=self._source)
        self._hover = HoverTool(renderers=[dots], tooltips=[])
        self.plot.add_tools(self._hover)
        session.lighting.follow(lambda light: setattr(circle.glyph, "line_color", light.soft))

    def show(self, model: TimeDelayedTransformer, unit: str = "", size: float = 1.0) -> int:
        """Draw the eigenvalues of another model; the number outside the circle is returned."""
        found, rates = model.eigenvalues(), model.growth_rates() * size
        per = f" per {unit.removesuffix('s')}" if unit else ""
        self._hover.tooltips = [(f"cycles{per}", "@frequency{0.0000}"), (f"growth{per}", "@rate{0.0000}")]
        outside = np.abs(found) > 1 + 1e-9
        self.plot.tags = [1.1 * max(1.0, float(np.abs(found).max(initial=0.0)))]
        self._source.data = {
            "x": found.real,
            "y": found.imag,
            "frequency": model.frequencies() * size,
            "rate": rates,
            "colour": [PALETTE[4] if out else PALETTE[0] for out in outside],
        }
        return int(outside.sum())


class LagBars:
    """Attention of the latest sample to each lag."""

    def __init__(self, session: Session) -> None:
        self._source = ColumnDataSource({"lag": [], "share": []})
        self.plot = session.figure(
            height=320,
            y_range=Range1d(0, 1),
            x_axis_label="samples before the latest",
            y_axis_label="share of attention",
        )
        self.plot.xgrid.grid_line_color = None
        self.plot.xaxis.ticker = BasicTicker(min_interval=1)  # lags are whole numbers
        bars = self.plot.vbar(x="lag", top="share", width=0.7, color=PALETTE[2], alpha=0.9, source=self._source)
        self.plot.add_tools(HoverTool(renderers=[bars], tooltips=[("lag", "@lag"), ("share", "@share{0.0%}")]))

    def show(self, found: LagAttention) -> None:
        """Draw the attention of the last window."""
        self._source.data = {"lag": found.lags, "share": found.shares[0]}
        self.plot.y_range.end = 1.15 * float(found.shares[0].max())


class ModelCards:
    """Eigenvalues and attention of a fitted model, each with a sentence on what they show."""

    def __init__(self, session: Session) -> None:
        self._circle, self._lags = UnitCircle(session), LagBars(session)
        self._spectrum_words, self._attention_words = note(""), note("")
        self.cards = beside(
            card(plot_pane(self._circle.plot), self._spectrum_words, title="Eigenvalues of the linear path"),
            card(plot_pane(self._lags.plot), self._attention_words, title="Attention over the lags"),
        )

    def show(self, model: TimeDelayedTransformer, unit: str = "", size: float = 1.0) -> None:
        """Show another model, with times in units of ``size``; a part that it lacks is replaced by a sentence."""
        # The figures are hidden, not their panes: a Bokeh pane that is on a page refuses to change (Panel 1.9).
        self._circle.plot.visible = self._lags.plot.visible = False
        try:
            outside = self._circle.show(model, unit, size)
        except InputError as error:
            self._spectrum_words.object = self._attention_words.object = noted(str(error))
            return
        self._circle.plot.visible = True
        some = "1 lies" if outside == 1 else f"{outside} lie"
        self._spectrum_words.object = noted(
            f"{some} outside the unit circle: the linear path alone would grow."
            if outside
            else "All lie inside or on the unit circle: the linear path alone stays bounded."
        )
        try:
            found = model.attention()
        except InputError as error:
            self._attention_words.object = noted(f"Attention {error.problem}: {error.remedy}.")
            return
        self._lags.plot.visible = True
        self._lags.show(found)
        part = "part of the selected model" if found.used else "not part of the selected model"
        self._attention_words.object = noted(f"Attention of the latest sample to each lag. Attention is {part}.")


def key_of(fit: Fit) -> str:
    """What the lines and the shaded areas of the plot of a forecast are."""
    levels = " and ".join(f"{100 * level:g} %" for level in fit.intervals)
    shaded = (
        f"shaded: intervals that hold {levels} of the samples (from the errors of forecasts of samples that the model "
        "had not seen)"
        if levels
        else "no intervals: the file of the model holds no held-out errors (fit the model again for intervals)"
    )
    known = " · dashed orange: true future" if fit.data.future is not None else ""
    return f"Thin: known samples · blue: forecast · {shaded}{known}"


def _held(found: Backtest) -> str:
    """How many samples the intervals of the model held."""
    held = [f"{100 * share:.0f} % (nominal {100 * level:.0f} %)" for level, share in found.coverage.items()]
    return f" The intervals of TD-TF held {' and '.join(held)} of the samples." if held else ""


def _anew(found: Backtest) -> str:
    """What the row of a search without the last quarter is, where there is one."""
    if all(row.model != ANEW for row in found.rows):
        return ""
    which = html.escape(found.anew)
    return f" The search was repeated without the last quarter; what it selects is the row “{ANEW}” ({which})."


def backtest_key(found: Backtest) -> str:
    """The lines of the models whose errors are drawn, with their names, as HTML."""
    lines = "".join(
        f"<span style='white-space:nowrap;margin-right:16px'><svg width='28' height='10' aria-hidden='true'>"
        f"<line x1='0' x2='28' y1='6' y2='6' stroke='{colour}' stroke-width='2' "
        f"stroke-dasharray='{' '.join(map(str, dash)) or 'none'}'/></svg> {html.escape(called)}</span> "
        for name, (colour, dash, called) in _MODELS.items()
        if len(found.curves.get(name, ()))
    )
    return f"<p class='soft'>{lines}</p>"


def backtest_table(found: Backtest, data: Data) -> str:
    """The rows of a backtest as HTML, durations in the unit of the data."""
    rows = "".join(
        f"<tr><td><b>{html.escape(row.model)}</b></td><td>{row.error:.3g}</td><td>{row.median_error:.3g}</td>"
        f"<td>{data.told(row.valid_time)}</td><td>{row.diverged}</td></tr>"
        for row in found.rows
    )
    head = "<tr><th>model</th><th>mean error</th><th>median</th><th>valid for</th><th>diverged</th></tr>"
    return (
        f"<table style='width:100%'><thead>{head}</thead><tbody>{rows}</tbody></table><p class='soft'>"
        f"{found.starts} starts in the held-out last quarter, {len(found.times)} steps each. Errors in "
        "standard deviations of the data (about their trend, where there is one); valid while below 0.4. TD-TF is the "
        "model on this page (time-delayed transformer); persistence repeats the last sample, mean the mean of the "
        "past, seasonal naive the last season; analogue follows the most similar stretches of the past; TD-DMD is "
        "linear in the last samples (time-delayed dynamic mode decomposition); NG-RC is polynomial in them "
        "(next-generation reservoir computing). Diverged are starts whose forecast goes beyond ten times the largest "
        "known value."
        f"{_anew(found)}{_held(found)}</p>"
    )
