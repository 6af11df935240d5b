"""What a fit and a forecast found, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..datasets.dates import MONTH
from ..datasets.series import Series
from ..errors import HardmaxError
from ..forecasting.backtest import Backtest
from ..forecasting.forecast import Forecast
from ..forecasting.forecaster import TimeDelayedTransformer
from .forecast_data import Measured

_LASTING = 0.02
"""A mode that keeps all but this share of itself in a cycle is told."""
_MOST_MODES = 3
_STRONG = 0.02
_EXACT = 1e-3
"""An error, in standard deviations, below which models no longer differ for any purpose."""


_CLOCK = (("years", 365.2425 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def sentences(
    model: TimeDelayedTransformer, measured: Measured, backtest: Backtest | None, ahead: Forecast
) -> Iterator[str]:
    """The data, the model, its past record, and the forecast, a line each."""
    series, (unit, size) = measured.series, _unit(measured.series)
    called = ", ".join(series.names[:6]) + (f" and {series.channels - 6} more" if series.channels > 6 else "")
    when = (
        f"time from column {series.time_name!r}, {_apart(model.dt_ / size, unit, series)} apart"
        if series.time_name
        else f"no time column, so samples are {model.dt_:g} apart"
    )
    yield f"{series.source}: {len(series):,} samples of {series.channels} ({called}); {when}."
    if measured.input_names:
        yield f"Inputs from outside: {', '.join(measured.input_names)}."
    yield ""
    yield from measured.notes
    yield from model.report_.sentences
    yield from _modes(model, series)
    yield from _chaos(model, series)
    if backtest is not None:
        yield ""
        yield "Backtest on the last quarter, learned from the rest:"
        yield backtest.text(unit, size)
        yield _verdict(backtest, unit, size)
    yield ""
    yield f"Forecast: {ahead.outcome}."
    yield from _ends(series, ahead)


def _modes(model: TimeDelayedTransformer, series: Series) -> Iterator[str]:
    """Cycles of the linear path that last, those that are strongest in the data first."""
    try:
        frequencies, rates = model.frequencies(), model.growth_rates()
    except HardmaxError:
        return  # nothing varies
    turning = frequencies > 0
    frequencies, rates = frequencies[turning], rates[turning]
    lasting = np.abs(rates) < _LASTING * frequencies
    if not lasting.any():
        yield "Its linear part has no lasting cycle."
        return
    frequencies, (unit, size) = frequencies[lasting], _unit(series)
    signal = np.nan_to_num(series.values - np.nanmean(series.values, axis=0))
    signal = signal / (signal.std(axis=0) + 1e-300)
    waves = np.exp(-2j * np.pi * np.outer(frequencies, model.dt_ * np.arange(len(signal))))
    strength = np.abs(waves @ signal).max(axis=1)
    best = np.argsort(-strength)
    best = best[strength[best] > _STRONG * strength.max()]
    shown = ", ".join(f"{1 / frequencies[k] / size:.4g}" for k in best[:_MOST_MODES])
    more = f" and {len(best) - _MOST_MODES} more" if len(best) > _MOST_MODES else ""
    yield f"Lasting cycles of its linear part, the strongest first, have periods {shown}{more} ({unit})."


def _chaos(model: TimeDelayedTransformer, series: Series) -> Iterator[str]:
    if model.report_.numbers.get("kept") != "nonlinear":
        return
    unit, size = _unit(series)
    exponent = model.lyapunov_exponent(1200)
    if not np.isfinite(exponent) or exponent * model.dt_ < 1e-4:
        yield f"Nearby starts stay together (Lyapunov exponent {exponent * size:.2g}): the model is not chaotic."
        return
    yield (
        f"The model is chaotic: nearby starts part by a factor of e every {1 / exponent / size:.3g} {unit}, "
        f"{1 / exponent / model.dt_:.0f} samples (Lyapunov exponent {exponent * size:.3g})."
    )


def _verdict(backtest: Backtest, unit: str, size: float) -> str:
    ours, rivals = backtest.rows[0], backtest.rows[1:]
    best = min(rivals, key=lambda row: row.error)
    span = float(backtest.times[-1])
    if ours.error < _EXACT and best.error < _EXACT:
        return f"It and {best.model} both forecast this to a thousandth of a standard deviation."
    if ours.error > best.error * 1.02:
        return f"Here {best.model} forecasts better (error {best.error:.3g} against {ours.error:.3g}): prefer it."
    stays = "to the end" if ours.valid_time >= span * 0.999 else f"for {ours.valid_time / size:.4g} {unit} on average"
    if best.error <= ours.error * 1.02:
        return f"It does as well as {best.model}, the best of the simple ones; forecasts are valid {stays}."
    factor = best.error / max(ours.error, 1e-300)
    return f"Its error is {factor:.3g} times smaller than that of {best.model}, the next best; it is valid {stays}."


def _apart(count: float, unit: str, series: Series) -> str:
    if not series.began:
        return f"{count:.6g}"
    return f"one {unit.removesuffix('s')}" if abs(count - 1) < 1e-6 else f"{count:.6g} {unit}"


def _unit(series: Series) -> tuple[str, float]:
    """What to count time in: the largest unit of the clock that fits between samples, where times are dates."""
    if not series.began:
        return "units of time", 1.0
    if series.months is not None and series.months.apart < 12:
        return "months", MONTH
    return next((unit for unit in _CLOCK if unit[1] <= 1.000001 * series.dt), _CLOCK[-1])


def _ends(series: Series, ahead: Forecast) -> Iterator[str]:
    last = len(ahead) - 1
    parts = [
        f"{name} {ahead.values[last, k]:.4g}{_give_or_take(float(ahead.spread[last, k]))}"
        for k, name in enumerate(series.names[:4])
    ]
    when = f"On {series.dates(ahead.times)[last]}" if series.began else f"At time {ahead.times[last]:.6g}"
    yield f"{when}: {'; '.join(parts)}{'; …' if series.channels > 4 else ''}."


def _give_or_take(spread: float) -> str:
    return f" ± {spread:.2g}" if np.isfinite(spread) else " (spread not known: fit again with this version)"
