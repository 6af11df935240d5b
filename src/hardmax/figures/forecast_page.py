"""The page that ``hardmax forecast --report`` writes: figure, backtest and forecast, in one file of HTML."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import NormalDist

import numpy as np
from matplotlib.figure import Figure

from ..files import write_text
from ..forecasting.diagnostics.backtest import Backtest
from ..forecasting.forecast import Band, Forecast, html_table
from .save import figure_bytes

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2733; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
img { width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #5a6673; padding-bottom: .5rem; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #d9dee4; }
th:first-child, td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
p { margin: .4rem 0; }
"""
_MOST_STEPS, _MOST_CHANNELS = 60, 6
"""Steps and channels in the table of the page; the rest is in the file that ``--output`` writes."""
_LEVELS = (0.68, 0.95)
"""Levels of the intervals in the table."""


def write_page(
    path: Path,
    title: str,
    lines: list[str],
    backtest: Backtest | None,
    ahead: Forecast,
    figure: Figure,
    *,
    names: Sequence[str],
    moments: Sequence[str],
    unit: tuple[str, float],
) -> Path:
    """Path of the page after it was written.

    ``lines`` are those that the command prints, ``names`` those of the channels, ``moments`` the times of the steps as
    text, and ``unit`` is the name and the length of the unit of time.
    """
    picture = base64.b64encode(figure_bytes(figure, "png", dpi=150)).decode("ascii")
    before, after = _split(lines)
    parts = [
        f"<h1>Forecast of {escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in after),
        f'<img alt="The end of the record and the forecast after it" src="data:image/png;base64,{picture}">',
        "<h2>The model</h2>",
        *(f"<p>{escape(line)}</p>" for line in before),
    ]
    if backtest is not None:
        parts += [
            "<h2>Backtest on the last quarter, learned from the rest</h2>",
            _scroll(backtest.html(*unit)),
        ]
    parts += ["<h2>Forecast</h2>", _scroll(_forecast_table(names, moments, ahead))]
    head = f'<head><meta charset="utf-8"><title>Forecast</title><style>{_STYLE}</style></head>'
    write_text(path, f'<!doctype html>\n<html lang="en">{head}<body>{"".join(parts)}</body></html>\n')
    return path


def interval_of(ahead: Forecast, level: float) -> Band | None:
    """Interval of the forecast; of columns that were reduced to modes from their spread; None where it is not known."""
    if ahead.distribution is not None:
        return ahead.interval(level)
    if not np.isfinite(ahead.spread).all():
        return None
    width = NormalDist().inv_cdf((1 + level) / 2) * ahead.spread
    return Band(ahead.values - width, ahead.values + width)


def _scroll(table: str) -> str:
    return f'<div class="scroll">{table}</div>'


def _split(lines: list[str]) -> tuple[list[str], list[str]]:
    """Lines on data and model, and lines on the forecast; those of the backtest are a table on the page."""
    backtest = next((k for k, line in enumerate(lines) if line.startswith("Backtest on")), len(lines))
    forecast = next((k for k, line in enumerate(lines) if line.startswith("Forecast:")), len(lines))
    # The verdict is the last line of the backtest.
    verdict = [lines[forecast - 2]] if backtest < forecast - 2 else []
    before = [line for line in lines[: min(backtest, forecast)] if line]
    return before, [*(line for line in lines[forecast:] if line), *verdict]


def _forecast_table(names: Sequence[str], moments: Sequence[str], ahead: Forecast) -> str:
    steps, channels = ahead.values.shape
    shown = np.arange(steps) if steps <= _MOST_STEPS else np.unique(np.linspace(0, steps - 1, _MOST_STEPS).astype(int))
    names = names[:_MOST_CHANNELS]
    bands = [interval_of(ahead, level) for level in _LEVELS]
    head = ["time"]
    for name in names:
        head += [
            name,
            *(f"{100 * level:.0f} %" for level, band in zip(_LEVELS, bands, strict=True) if band is not None),
        ]
    rows = []
    for k in shown:
        row = [moments[int(k)]]
        for j in range(len(names)):
            row.append(f"{ahead.values[k, j]:.4g}")
            row += [f"{b.lower[k, j]:.4g} to {b.upper[k, j]:.4g}" for b in bands if b is not None]
        rows.append(row)
    left_out = "" if len(shown) == steps else f"{len(shown)} of {steps} steps. "
    more = "" if channels <= _MOST_CHANNELS else f"{_MOST_CHANNELS} of {channels} channels. "
    return html_table(
        f"{left_out}{more}Intervals hold the true sample with the probability in the heading.", head, rows
    )
