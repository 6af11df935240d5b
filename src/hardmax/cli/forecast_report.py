"""Input of ``hardmax forecast``, and its results in words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from ..datasets.series import Series
from ..datasets.series_files import read_series
from ..errors import FileError, HardmaxError, InputError
from ..figures.forecast_page import number_format
from ..figures.forecasting import interval_of
from ..files import write_text
from ..forecasting.data.series import Gaps
from ..forecasting.data.series import read_series as made_even
from ..forecasting.diagnostics.backtest import ANEW, Backtest
from ..forecasting.forecast import Forecast
from ..forecasting.forecaster import TimeDelayedTransformer
from ..tables.dates import MONTH

_COLUMNS = "columns.json"
_LATE = 0.1
"""Share of a step by which dates of inputs may differ from those of the steps: both files may round."""


@dataclass(frozen=True)
class Columns:
    """Columns of a file that are channels, and those that are inputs; None for all others."""

    channels: list[str] | None
    inputs: list[str]

    @classmethod
    def saved_in(cls, folder: Path) -> Columns | None:
        """The columns that a model in a folder was fitted to, where they are known."""
        file = folder / _COLUMNS
        if not file.is_file():
            return None
        try:
            saved = json.loads(file.read_text(encoding="utf-8"))
            lists = [saved["channels"], saved["inputs"]]
            if not all(isinstance(name, str) for names in lists for name in names):
                raise TypeError("a name is no text")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(
                file, f"does not name columns ({error})", "save the model again, or remove the file"
            ) from error
        return cls(*lists)

    def save(self, folder: Path) -> None:
        """Save the names beside a model, so that a later file may have its columns in another order."""
        write_text(folder / _COLUMNS, json.dumps({"channels": self.channels, "inputs": self.inputs}) + "\n")


@dataclass(frozen=True)
class Measured:
    """A series at even times, the inputs of its samples and of the steps ahead, and what was done to get there."""

    series: Series
    rows: int
    """Rows of the file."""
    inputs: np.ndarray | None = None
    ahead: np.ndarray | None = None
    input_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_measured(
    file: Path, columns: Columns, *, time: str | None, gaps: str, resample: bool, ahead: Path | None, steps: int
) -> Measured:
    """The channels of a file, and its inputs with those to come; both are made even together."""
    wanted = None if columns.channels is None else [*columns.channels, *columns.inputs]
    whole = read_series(file, time=time, columns=wanted)
    missing = [name for name in columns.inputs if name not in whole.names]
    if missing:
        raise FileError(file, f"has no column {missing[0]!r} for --inputs", f"choose among {', '.join(whole.names)}")
    if not columns.inputs:
        if ahead is not None:
            raise InputError("--ahead", str(ahead), "holds inputs to come", "name their columns too: --inputs u")
        return Measured(whole, len(whole))
    if ahead is None:
        raise InputError(
            "--inputs",
            ",".join(columns.inputs),
            "must be known for the steps ahead",
            f"pass a file with {steps} rows of them: --ahead FILE",
        )
    rows, notes = _even(whole, gaps, resample)
    given = [rows.names.index(name) for name in columns.inputs]
    channels = [k for k in range(rows.channels) if k not in given]
    if not channels:
        raise InputError("--inputs", ",".join(columns.inputs), "leave no channel to forecast", "name fewer columns")
    future = read_series(ahead, time=time, columns=columns.inputs)
    if len(future) < steps:
        raise FileError(
            ahead, f"has the inputs of {len(future)} steps", f"give {steps} rows, or pass --steps {len(future)}"
        )
    _check_continues(ahead, future, rows, steps)
    if not np.isfinite(future.values[:steps]).all():
        raise FileError(ahead, "has gaps", "give every input of every step")
    return Measured(
        rows.observing(*channels),
        len(whole),
        rows.values[:, given],
        future.values[:steps],
        tuple(columns.inputs),
        tuple(notes),
    )


def _check_continues(file: Path, future: Series, record: Series, steps: int) -> None:
    """Refuse inputs to come whose dates are not those that follow the record."""
    if not (record.began and future.began):
        return
    known = bool(record.offset and future.offset)
    # A file without offsets has the clock of its place, which is not that of another file in UTC.
    if not known and (record.in_utc or future.in_utc):
        return
    expected = np.asarray(record.dates(record.times[-1] + record.dt * np.arange(1, steps + 1)), dtype="datetime64[s]")
    given = np.asarray(future.dates(future.times[:steps]), dtype="datetime64[s]")
    if known:
        given = given - _seconds_of(future.offset) + _seconds_of(record.offset)
    wrong = np.flatnonzero(np.abs(given - expected) > np.timedelta64(round(_LATE * record.dt), "s"))
    if len(wrong):
        there, here = short_dates(np.array([given[wrong[0]], expected[wrong[0]]]))
        raise FileError(
            file,
            f"has the inputs of {there} in row {wrong[0] + 1}, where {here} follows the record",
            "give one row for each step after the record, in order",
        )


def _seconds_of(offset: str) -> np.timedelta64:
    """Offset of a clock from UTC, such as ``"-03:30"`` or ``"Z"``."""
    if offset == "Z":
        return np.timedelta64(0, "s")
    hours, minutes = offset[1:].split(":")
    seconds = 3600 * int(hours) + 60 * int(minutes)
    return np.timedelta64(-seconds if offset[0] == "-" else seconds, "s")


def even_series(measured: Measured, gaps: str, resample: bool) -> Series:
    """The series without gaps at even times, as a model that was fitted before needs it."""
    return _even(measured.series, gaps, resample)[0]


def _even(series: Series, gaps: str, resample: bool) -> tuple[Series, tuple[str, ...]]:
    with naming_columns(series):
        record = made_even(
            series.values,
            times=series.times,
            gaps=cast(Gaps, gaps),
            irregular="resample" if resample else "refuse",
        )
    values = record.trajectories[0].copy()
    times = series.times[0] + record.dt * np.arange(len(values)) if len(values) != len(series) else series.times
    return replace(series, values=values, times=times), record.notes


@contextmanager
def naming_columns(series: Series) -> Iterator[None]:
    """Errors about the series with its columns and dates in place of channels, numbers of samples and seconds."""

    def named(words: object) -> str:
        return re.sub(
            r"\bchannel (\d+)",
            lambda found: f"column {series.names[int(found[1])]!r}" if int(found[1]) < series.channels else found[0],
            str(words),
        )

    try:
        yield
    except InputError as error:
        value, remedy = named(error.value), error.marked_remedy.replace(*_AS_FILES)
        if error.argument == "times" and series.began:
            value = _dated(value, series)
            if _skips_weekends(series):
                remedy = f"{_BUSINESS_DAYS}, or {remedy}"
        raise InputError(error.argument, value, named(error.problem), remedy) from error


_AS_FILES = ("split the series there and pass a list", "split the file there and pass the parts")
_BUSINESS_DAYS = 'pass time="none", and the channels as columns=…, to count business days as even'


def _dated(words: str, series: Series) -> str:
    """A sentence on uneven times with its steps in units of the clock and its samples as dates."""

    def date(found: re.Match[str]) -> str:
        return short_dates(series.dates(series.times[int(found[1]) : int(found[1]) + 1]))[0]

    with_steps = re.sub(
        r"\b(of|median) (\d[\d.]*(?:e[+-]?\d+)?)(?=[ ,])",
        lambda found: f"{found[1]} {_apart(float(found[2]), series)}",
        words,
    )
    return re.sub(r"\bsample (\d+)", date, with_steps)


def notes_in_words(notes: Iterable[str], series: Series) -> list[str]:
    """Notes of the library with the step of resampled dates in units of the clock."""
    return [_dated(note, series) if series.began and note.startswith(_RESAMPLED) else note for note in notes]


_RESAMPLED = "Samples were resampled to an even step of "
"""Beginning of the note that has a step."""


def _skips_weekends(series: Series) -> bool:
    """Whether dates are days of the week from Monday to Friday only."""
    dates = np.asarray(series.dates(series.times), dtype="datetime64[D]")
    daily = np.isclose(np.median(np.diff(series.times)), 86400.0)
    return bool(daily and len(dates) > _WEEK and np.is_busday(dates).all())


_WEEK = 7
"""Days of which some are a weekend."""
_LASTING = 0.02
"""A mode that decays by less than this share in a cycle is reported as lasting, one that grows by more as growing."""
_MOST_MODES = 3
"""Cycles that fit in a sentence."""
_STRONG = 0.02
"""Share of the strongest cycle below which a cycle is not reported."""
_EXACT = 1e-3
"""An error, in standard deviations, below which models no longer differ for any purpose."""


_SPAN = 6.5
"""Samples within which the unit of spans fits: ten minutes are told in hours, and four hours in days."""
_CLOCK = (("years", 365.2425 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def sentences(
    model: TimeDelayedTransformer,
    measured: Measured,
    backtest: Backtest | None,
    ahead: Forecast,
    *,
    even: int,
    level: float = 0.9,
) -> Iterator[str]:
    """Lines of the report: the data, of which ``even`` samples are used, the model, its backtest and the forecast."""
    series, (unit, size) = measured.series, unit_of(measured.series)
    called = ", ".join(series.names[:6]) + (f" and {series.channels - 6} more" if series.channels > 6 else "")
    clock = f" (dates by the clock of UTC{series.offset.replace('Z', '')})" if series.offset else ""
    when = (
        f"time from column {series.time_name!r}, {_apart(model.dt_, series)} apart{clock}"
        if series.time_name
        else f"no time column, so samples are {model.dt_:g} apart"
    )
    used = "" if even == measured.rows else f", resampled to {even:,} even ones"
    yield f"{series.source}: {measured.rows:,} samples of {series.channels} ({called}){used}; {when}."
    if measured.input_names:
        yield f"Inputs from outside: {', '.join(measured.input_names)}."
    yield ""
    yield from notes_in_words([*measured.notes, *model.report_.sentences], series)
    yield from _modes(model, series)
    yield from _chaos(model, series)
    if backtest is not None:
        yield ""
        yield "Backtest on the last quarter, learned from the rest:"
        yield backtest.text(unit, size)
        yield _verdict(backtest, unit, size)
    yield ""
    yield f"Forecast: {ahead.outcome}."
    yield from _ends(series, ahead, level)


def _modes(model: TimeDelayedTransformer, series: Series) -> Iterator[str]:
    """Cycles of the linear path that last, those that are strongest in the data first."""
    try:
        frequencies, rates = model.frequencies(), model.growth_rates()
    except HardmaxError:
        return  # nothing varies
    # A simple model has no linear part; the best TD-DMD was fitted beside it.
    simple = model.predictor_ is not None and model.predictor_.path is not None
    whose = "the best TD-DMD of the record" if simple else "its linear part"
    turning = frequencies > 0
    frequencies, rates = frequencies[turning], rates[turning]
    # Growing cycles last as well: only those that decay are left out.
    lasting = rates > -_LASTING * frequencies
    if not lasting.any():
        yield f"{whose[0].upper()}{whose[1:]} has no lasting cycle."
        return
    frequencies, rates, (unit, size) = frequencies[lasting], rates[lasting], unit_of(series)
    signal = np.nan_to_num(series.values - np.nanmean(series.values, axis=0))
    signal = signal / (signal.std(axis=0) + 1e-300)
    waves = np.exp(-2j * np.pi * np.outer(frequencies, model.dt_ * np.arange(len(signal))))
    strength = np.abs(waves @ signal).max(axis=1)
    best = np.argsort(-strength)
    best = best[strength[best] > _STRONG * strength.max()]
    shown = ", ".join(
        f"{1 / frequencies[k] / size:.4g}{' (growing)' if rates[k] > _LASTING * frequencies[k] else ''}"
        for k in best[:_MOST_MODES]
    )
    more = f" and {len(best) - _MOST_MODES} more" if len(best) > _MOST_MODES else ""
    yield f"Lasting cycles of {whose}, the strongest first, have periods {shown}{more} ({unit})."


def _chaos(model: TimeDelayedTransformer, series: Series) -> Iterator[str]:
    # A model with inputs has no exponent of its own: it depends on the inputs.
    if model.report_.numbers.get("kept") != "nonlinear" or model.forcing_ is not None:
        return
    unit, size = unit_of(series)
    exponent = model.lyapunov_exponent(1200)
    if np.isnan(exponent):
        yield "Whether the model is chaotic cannot be measured: its large weights amplify rounding errors."
        return
    if not np.isfinite(exponent) or exponent * model.dt_ < 1e-4:
        yield f"Nearby starts stay together (Lyapunov exponent {exponent * size:.2g}): the model is not chaotic."
        return
    yield (
        f"The model is chaotic: nearby starts separate by a factor of e every {1 / exponent / size:.3g} {unit}, "
        f"{1 / exponent / model.dt_:.0f} samples (Lyapunov exponent {exponent * size:.3g})."
    )


_OPTIONS = {
    "TD-DMD": "td-dmd",
    "NG-RC": "ng-rc",
    "seasonal naive": "seasonal-naive",
    "persistence": "persistence",
    "analogue": "analogue",
}
"""Names of the baselines as values of ``--kind``, which the estimator selects."""
_LABELS = {
    "TD-DMD": "TD-DMD, window",
    "NG-RC": "polynomials of",
    "seasonal naive": "the last season of",
    "persistence": "the last sample, repeated",
    "analogue": "analogues of",
}
"""Beginnings of the labels of selected models that are of the same kind as a baseline."""


def _verdict(backtest: Backtest, unit: str, size: float) -> str:
    """Comparison of the model with the best baseline by the mean absolute scaled error, as a sentence."""
    rows = [replace(row, mase=float(f"{row.mase:.3g}")) for row in backtest.rows]  # as the table shows them
    own = [row for row in rows if row.model in ("TD-TF", ANEW)]
    rivals = [row for row in rows if row not in own]
    # The kind of the model was selected with all data; a search without the last quarter is the harder test.
    fitted, best = max(own, key=lambda row: row.mase), min(rivals, key=lambda row: row.mase)
    span = float(backtest.times[-1])
    anew = fitted.model == ANEW
    who = f'the model that a search without the last quarter selects ("{ANEW}")' if anew else "the selected model"
    if fitted.error < _EXACT and best.error < _EXACT:
        return f"Backtest: {who} and {best.model} both forecast this to a thousandth of a standard deviation."
    if fitted.mase > best.mase * 1.02:
        against = f"Backtest: {best.model} forecasts better than {who}, MASE {best.mase:.3g} against {fitted.mase:.3g}"
        if anew and own[0].mase <= best.mase * 1.02:
            same = "as well" if best.mase <= own[0].mase * 1.02 else "better"
            return f"{against}; the selected model itself does {same}, MASE {own[0].mase:.3g}."
        if backtest.label.startswith(_LABELS.get(best.model, best.model)):
            return f"{against}: the selected model is of that kind too, with other parameters."
        if _OPTIONS.get(best.model) in kinds():
            return f"{against}: pass --kind {_OPTIONS[best.model]} to select it."
        return f"{against}: the selected model is not to be preferred to it on this series."
    stays = (
        "to the end" if fitted.valid_time >= span * 0.999 else f"for {fitted.valid_time / size:.3g} {unit} on average"
    )
    if best.mase <= fitted.mase * 1.02:
        return f"Backtest: {who} does as well as {best.model}, the best baseline; its forecasts are valid {stays}."
    factor = best.mase / max(fitted.mase, 1e-300)
    return (
        f"Backtest: the error of {who} is {factor:.3g} times smaller than that of {best.model}, the best baseline; "
        f"its forecasts are valid {stays}."
    )


def kinds() -> tuple[str, ...]:
    """Kinds of models that the estimator can be told to select; empty where it selects by itself only."""
    return tuple(_OPTIONS.values()) if "model" in TimeDelayedTransformer().get_params() else ()


def _apart(dt: float, series: Series) -> str:
    if not series.began:
        return f"{dt:.6g}"
    unit, size = _unit(series, 1.0)
    count = dt / size
    return f"one {unit.removesuffix('s')}" if abs(count - 1) < 1e-4 else f"{count:.6g} {unit}"


def moments_of(series: Series, ahead: Forecast) -> list[str]:
    """Times of the steps as text; dates without a clock where all are at midnight, and without seconds of zero.

    A clock has its offset from UTC, where that is known.
    """
    if not series.began:
        return [_exact_enough(time, series.dt) for time in ahead.times]
    texts = short_dates(series.dates(ahead.times))
    return [text + series.offset if " " in text else text for text in texts]


def _exact_enough(time: float, step: float) -> str:
    """A time with six digits where they tell it from its neighbours, otherwise with more, such as seconds since 1970.

    >>> _exact_enough(1709814600.0, 3600.0), _exact_enough(1598.0, 2.0), _exact_enough(1.5e-07, 1e-8)
    ('1709814600', '1598', '1.5e-07')
    """
    short = f"{time:.6g}"
    large = "e+" in short or abs(float(short) - time) > _RESOLVED * step
    return f"{time:.15g}" if large else short


_RESOLVED = 1e-3
"""Share of a step to which times are told."""


def short_dates(dates: Iterable[str] | np.ndarray) -> list[str]:
    """Dates in ISO 8601 with a blank before the clock, which is left out where all are at midnight.

    >>> short_dates(["2024-04-16T00:00:00", "2024-04-16T00:30:00"])
    ['2024-04-16 00:00', '2024-04-16 00:30']
    """
    texts = [str(date) for date in dates]
    for zeros in ("T00:00:00", ":00"):
        if all(text.endswith(zeros) for text in texts):
            texts = [text.removesuffix(zeros) for text in texts]
            break
    return [text.replace("T", " ") for text in texts]


def unit_of(series: Series) -> tuple[str, float]:
    """Unit of the clock for spans of many samples, and its length: half-hourly data are told in hours."""
    return _unit(series, _SPAN)


def _unit(series: Series, samples: float) -> tuple[str, float]:
    """Largest unit of the clock that fits into a number of samples."""
    if not series.began:
        return "units of time", 1.0
    if series.months is not None and series.months.apart < 12:
        return "months", MONTH
    return next((unit for unit in _CLOCK if unit[1] <= 1.000001 * samples * series.dt), _CLOCK[-1])


def _ends(series: Series, ahead: Forecast, level: float) -> Iterator[str]:
    last = len(ahead) - 1
    band = interval_of(ahead, level)
    parts = []
    for k, name in enumerate(series.names[:4]):
        value, spread = float(ahead.values[last, k]), float(ahead.spread[last, k])
        write = number_format(np.array([value]), np.array([spread]))
        ends = "" if band is None else _between(level, write(band.lower[last, k]), write(band.upper[last, k]))
        parts.append(f"{name} {write(value)}{_give_or_take(spread, write)}{ends}")
    when = f"{'On' if series.began else 'At time'} {moments_of(series, ahead)[last]}"
    yield f"{when}: {'; '.join(parts)}{'; …' if series.channels > 4 else ''}."


def _between(level: float, lower: str, upper: str) -> str:
    """Interval in brackets; nothing where both ends print alike."""
    return "" if lower == upper else f" ({100 * level:g} %: {lower} to {upper})"


def _give_or_take(spread: float, write: Callable[[float], str]) -> str:
    if not np.isfinite(spread):
        return " (spread not known: fit again with this version)"
    text = write(spread)
    return f" ± {text if float(text) else f'{spread:.2g}'}"
