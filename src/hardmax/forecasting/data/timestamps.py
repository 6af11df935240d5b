"""Times of the data: dates and durations in seconds, the index of a table.

Objects of pandas and xarray are recognised by their attributes, so that neither package is imported.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

_SECOND = np.timedelta64(1, "s")


def in_seconds(duration: object) -> object:
    """Seconds of a duration; any other value unchanged.

    >>> in_seconds(datetime.timedelta(hours=1))
    3600.0
    """
    if isinstance(duration, datetime.timedelta):
        return duration.total_seconds()
    return float(duration / _SECOND) if isinstance(duration, np.timedelta64) else duration


_UNITS = (("year", 365.2425 * 86400.0), ("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))


def in_words(seconds: float) -> str:
    """A duration in the largest unit that it holds once.

    >>> [in_words(step) for step in (86400.0, 1800.0, 2678400.0, 0.25)]
    ['1 day', '30 minutes', '31 days', '0.25 seconds']
    """
    name, size = next(((name, size) for name, size in _UNITS if abs(seconds) >= 0.9999 * size), _UNITS[-1])
    count = f"{seconds / size:.4g}"
    return f"{count} {name}" if count in ("1", "-1") else f"{count} {name}s"


def times_in_seconds(times: object) -> tuple[object, str]:
    """Seconds since the first date, or seconds of durations, with a note; numbers unchanged.

    Dates of an index with a calendar rule (months, business days) count as evenly spaced, also where some are missing.

    >>> times_in_seconds(np.array(["2024-02-28T23:59", "2024-02-29T00:00"], dtype="datetime64[m]"))
    (array([ 0., 60.]), 'Times are seconds since 2024-02-28T23:59.')
    """
    index: Any = times.to_timestamp() if hasattr(times, "to_timestamp") and hasattr(times, "freq") else times
    column = _as_datetime64(np.asarray(index))
    if column.dtype.kind == "m":
        return np.asarray(column / _SECOND, dtype=np.float64), "Times are in seconds."
    if column.dtype.kind != "M" or column.ndim != 1 or len(column) == 0:
        return times, ""
    seconds = np.asarray((column - column[0]) / _SECOND, dtype=np.float64)
    since = f"Times are seconds since {str(column[0]).removesuffix('.000000000').removesuffix('.000000')}"
    if getattr(index, "tz", None) is not None:
        since += " by the clock of UTC"
    steps = np.diff(column)  # whole numbers, without the rounding of seconds
    rule = None if len(steps) == 0 or (steps == steps[0]).all() else calendar_rule(index)
    if rule is None and len(seconds) > 2 and (months := same_day_of_months(index)):
        rule = "one month apart" if months == 1 else f"{months} months apart"
    places = np.arange(len(seconds))
    if rule is None and (whole := without_holes(index)) is not None:
        rule, places = str(whole.freqstr), whole.get_indexer(_dates(index))
    if rule is None:
        return seconds, f"{since}."
    step = seconds[-1] / places[-1]
    return step * places, f"{since}; dates by the calendar ({rule}) count as evenly spaced, {in_words(step)} apart."


def calendar_rule(index: object) -> str | None:
    """Name of the rule of a pandas index (``"MS"``, ``"B"``), or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases announce another name for it
        rule = getattr(index, "inferred_freq", None)
    return None if rule is None else str(getattr(rule, "freqstr", rule))


def same_day_of_months(index: object) -> int:
    """Number of months from each date to the next, where all are on the same day of the month; else 0."""
    column = _as_datetime64(np.asarray(index))
    if column.dtype.kind != "M" or column.ndim != 1 or len(column) < 3 or np.isnat(column).any():
        return 0
    months = column.astype("datetime64[M]")
    within = column - months.astype(column.dtype)
    steps = np.diff(months.astype(np.int64))
    return int(steps[0]) if (within == within[0]).all() and (steps == steps[0]).all() and steps[0] > 0 else 0


def without_holes(index: Any) -> Any:
    """Index of pandas with all dates by the rule of months or business days that ``index`` lacks some of, or None.

    More than half of the dates follow each other: others are uneven, rather than incomplete.

    >>> import pandas as pd
    >>> march_is_missing = pd.DatetimeIndex(["2024-01-01", "2024-02-01", "2024-04-01", "2024-05-01", "2024-06-01"])
    >>> without_holes(march_is_missing).freqstr, len(without_holes(march_is_missing))
    ('MS', 6)
    """
    column = _as_datetime64(np.asarray(index))
    if column.dtype.kind != "M" or column.ndim != 1 or len(column) < _FEWEST_DATES or np.isnat(column).any():
        return None
    import pandas as pd

    dates = _dates(index)
    months = np.diff(12 * dates.year + dates.month)
    rules: list[Any]
    if months.min() >= 1 and not (months % months.min()).any():
        apart = int(months.min())
        rules = [f"{apart}MS", f"{apart}ME", pd.DateOffset(months=apart)]
    elif (dates.day_of_week < 5).all() and not months.max() > 1:
        rules = ["B"]
    else:
        return None
    for rule in rules:
        whole = pd.date_range(dates[0], dates[-1], freq=rule)
        places = whole.get_indexer(dates)
        if len(whole) > len(dates) and places.min() >= 0 and 2 * (np.diff(places) == 1).sum() > len(places):
            return whole
    return None


def _dates(index: Any) -> Any:
    """Index of pandas, in the time zone of the dates where they have one."""
    import pandas as pd

    return pd.DatetimeIndex(index)


_FEWEST_DATES = 5
"""Dates from which on a rule that some of them break is looked for."""


def times_of(parts: Sequence[object]) -> list[object] | None:
    """Times that the parts have of their own, or None where one of them has none."""
    found = [_times_of(part) for part in parts]
    return found if parts and all(times is not None for times in found) else None


def values_of(value: Any) -> Any:
    """Values of a :class:`hardmax.datasets.Series`; any other value unchanged."""
    return value.values if hasattr(value, "times") and hasattr(value, "began") else value


def _times_of(part: Any) -> object | None:
    if values_of(part) is not part:
        return part.times if part.time_name else None
    index: object = table_index(part)
    if type(index).__name__ in ("DatetimeIndex", "TimedeltaIndex", "PeriodIndex"):
        return index
    dims = dims_of(part)
    column = np.asarray(part.coords[dims[0]]) if dims and dims[0] in part.coords else None
    return None if column is None or column.dtype.kind not in "Mmiuf" else column


def table_index(part: Any) -> Any:
    """Index of a pandas object, with dates of Python as an index of dates; None for anything else."""
    index = getattr(part, "index", None)
    if index is None or callable(index):
        return None
    column = np.asarray(index)
    if column.dtype.kind == "O" and column.size and all(type(day) is datetime.date for day in column.flat):
        import pandas as pd

        return pd.DatetimeIndex(index)
    return index


def dims_of(part: Any) -> tuple[Any, ...]:
    """Dimensions of an xarray array; none of other values, nor of a data set, where they have no order."""
    dims = getattr(part, "dims", ())
    return dims if isinstance(dims, tuple) and hasattr(part, "coords") else ()


def _as_datetime64(column: np.ndarray) -> np.ndarray:
    """Python datetimes as ``datetime64``, in UTC where they have a time zone; other columns unchanged."""
    if column.dtype.kind != "O" or column.size == 0 or not isinstance(column.flat[0], datetime.datetime):
        return column
    return np.array([_moment(day) for day in column.ravel().tolist()], dtype="datetime64[us]")


def _moment(day: Any) -> np.datetime64:
    if not isinstance(day, datetime.datetime) or day != day:
        return np.datetime64("NaT")
    return np.datetime64(day if day.tzinfo is None else day.astimezone(datetime.UTC).replace(tzinfo=None), "us")


def with_same_columns(parts: Sequence[Any]) -> list[Any] | None:
    """Tables with their columns in the order of the first; None where one has other columns."""
    if len(parts) < 2 or not all(hasattr(part, "columns") for part in parts):
        return list(parts)
    names = list(parts[0].columns)
    if any(sorted(map(str, part.columns)) != sorted(map(str, names)) for part in parts):
        return None
    return [part if list(part.columns) == names else part[names] for part in parts]


def non_numeric_column(table: Any) -> tuple[str, bool] | None:
    """Name of the first column of a table that does not hold numbers, and whether it holds dates; or None."""
    if not hasattr(table, "columns"):
        return None
    for name in table.columns:
        column = table[name]
        kind = np.asarray(column).dtype.kind
        if kind in "Mm":
            return str(name), True
        try:
            if hasattr(column, "iloc"):
                column.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):
            return str(name), False
    return None
