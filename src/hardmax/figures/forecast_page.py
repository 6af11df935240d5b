"""The page that ``hardmax forecast --report`` writes: figure, backtest and forecast, in one file of HTML."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..files import write_text
from ..forecasting.diagnostics.backtest import Backtest
from ..forecasting.forecast import Forecast, html_table
from .forecasting import LEVELS, interval_of
from .save import figure_bytes

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2733; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
img { width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #5a6673; padding-bottom: .5rem; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #d9dee4; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
p { margin: .4rem 0; }
"""
_MOST_STEPS, _MOST_CHANNELS = 60, 6
"""Steps and channels in the table of the page; the rest is in the file that ``--output`` writes."""
_LEAST_POWER, _MOST_POWER = -4, 6
"""Powers of ten of the values that are written without an exponent."""


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
    levels: Sequence[float] = LEVELS,
) -> Path:
    """Path of the page after it was written.

    ``lines`` are those that the command prints, ``names`` those of the channels, ``moments`` the times of the steps as
    text, ``unit`` is the name and the length of the unit of time, and ``levels`` are the probabilities of the intervals
    in the table.
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
    parts += ["<h2>Forecast</h2>", _scroll(_forecast_table(names, moments, ahead, levels))]
    head = f'<head><meta charset="utf-8"><title>Forecast of {escape(title)}</title><style>{_STYLE}</style></head>'
    write_text(path, f'<!doctype html>\n<html lang="en">{head}<body>{"".join(parts)}</body></html>\n')
    return path


def number_format(values: np.ndarray, widths: np.ndarray) -> Callable[[float], str]:
    """Function that writes numbers like ``values`` with two digits of their smallest width, and without an exponent.

    At least three and at most six digits of the largest number are shown; very large and very small values have an
    exponent.

    >>> write = number_format(np.array([31467.97, 27310.2]), np.array([367.6, 1203.0]))
    >>> write(31467.97), write(0.0)
    ('31468', '0')
    """
    known = widths[np.isfinite(widths) & (widths > 0)]
    largest = float(np.abs(np.concatenate([values, known])).max(initial=0.0))
    top = int(np.floor(np.log10(largest))) if np.isfinite(largest) and largest > 0 else 0
    if not _LEAST_POWER <= top <= _MOST_POWER:
        return lambda value: f"{value:.4g}"
    if not len(known):
        return lambda value: f"{value:.{_MOST_POWER + 1}g}"
    digits = 1 - int(np.floor(np.log10(known.min())))
    decimals = max(min(max(digits, 2 - top), 5 - top), 0)
    # Zero is added so that rounded negative numbers have no sign: -0.0 + 0.0 is 0.0.
    return lambda value: f"{round(value, decimals) + 0.0:.{decimals}f}"


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


def _forecast_table(names: Sequence[str], moments: Sequence[str], ahead: Forecast, levels: Sequence[float]) -> str:
    steps, channels = ahead.values.shape
    shown = np.arange(steps) if steps <= _MOST_STEPS else np.unique(np.linspace(0, steps - 1, _MOST_STEPS).astype(int))
    names = names[:_MOST_CHANNELS]
    bands = [(level, band) for level in sorted(levels) if (band := interval_of(ahead, level)) is not None]
    formats = []
    for j in range(len(names)):
        # By the widest interval: with bounds, or many equal samples, narrower ones have almost no width.
        width = (bands[-1][1].upper - bands[-1][1].lower)[:, j] / 2 if bands else np.zeros(0)
        formats.append(number_format(ahead.values[:, j], width))
    head = ["time"]
    for name in names:
        head += [name, *(f"{100 * level:g} %" for level, _ in bands)]
    rows = []
    for k in shown:
        row = [moments[int(k)]]
        for j, write in enumerate(formats):
            row.append(write(ahead.values[k, j]))
            row += [f"{write(band.lower[k, j])} to {write(band.upper[k, j])}" for _, band in bands]
        rows.append(row)
    left_out = "" if len(shown) == steps else f"{len(shown)} of {steps} steps. "
    more = "" if channels <= _MOST_CHANNELS else f"{_MOST_CHANNELS} of {channels} channels. "
    return html_table(
        f"{left_out}{more}Intervals hold the true sample with the probability in the heading.", head, rows
    )
