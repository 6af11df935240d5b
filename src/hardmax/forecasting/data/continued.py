"""Tables that continue a record or start a forecast: their columns and dates compared with those of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from .labels import Labels, index_of, names_of
from .series import as_list
from .timestamps import in_words, times_in_seconds, times_of

_KINDS = {"DatetimeIndex": "date", "PeriodIndex": "period", "TimedeltaIndex": "duration"}
_TOLERANCE = 1e-3
"""Share of a time step by which dates may differ: rounding in files."""
_MONTHS = 0.12
"""Share by which steps of a window may differ from that of the fit: months have 28 to 31 days."""


def in_fit_order(argument: str, value: Any, names: tuple[str, ...]) -> Any:
    """Table with its columns in the order of ``names``; refused where only some of the names are the same.

    A row of a table, as a series over its columns, becomes a table of one row.
    """
    row = hasattr(value, "iloc") and not hasattr(value, "columns") and len(value) == len(names)
    if row and set(names) & set(map(str, value.index)):
        value = value.to_frame().T.infer_objects()
    given = names_of(value) if hasattr(value, "iloc") and hasattr(value, "columns") else ()
    if not given or len(given) != len(names) or given == names:
        return value
    if sorted(given) == sorted(names) and len(set(names)) == len(names):
        return value.iloc[:, [given.index(name) for name in names]]
    if set(given) & set(names):
        raise InputError(
            argument,
            f"columns {', '.join(given)}",
            f"must have the columns {', '.join(names)}",
            "pass those of the fit",
        )
    return value


def all_in_fit_order(argument: str, value: Any, names: tuple[str, ...]) -> Any:
    """Table, or tables of a list, with their columns in the order of ``names``."""
    ordered = [in_fit_order(argument, part, names) for part in as_list(value)]
    return ordered if isinstance(value, (list, tuple)) and len(ordered) > 1 else ordered[0]


def check_continues(argument: str, value: Any, labels: Labels, last_time: float, dt: float) -> None:
    """Refuse new samples, or their inputs, whose dates are not those that follow the record."""
    index = index_of(value)
    if not labels.kind or _KINDS.get(type(index).__name__) != labels.kind or not len(index):
        return
    import pandas as pd

    expected: Any = labels.index(np.asarray(last_time + dt * np.arange(1, len(index) + 1), dtype=np.float64))
    if labels.kind == "period":
        wrong = np.asarray(index != expected)
    else:
        if labels.kind == "date" and (index.tz is None) != (expected.tz is None):
            wanted = "must have no time zone" if expected.tz is None else f"must be in {expected.tz}"
            found = "dates without a time zone" if index.tz is None else f"dates in {index.tz}"
            raise InputError(argument, found, wanted, "convert the dates as in the record")
        late = np.abs(np.asarray((index - expected) / pd.Timedelta(seconds=dt)))
        wrong = ~(late <= _TOLERANCE)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise InputError(
            argument,
            f"{index[place]} at sample {place}",
            f"must follow the record step by step: {expected[place]} comes here",
            "sort the rows and leave out those that were passed before"
            + (", and pass a row of NaN for a missing one" if argument == "samples" else ""),
        )


def check_even(window: Any, labels: Labels, dt: float) -> None:
    """Refuse a window whose own times do not increase by even steps, those of the fit where that had dates."""
    own = times_of([window])
    if own is None or np.ndim(window) > 2 or follows_the_rule(window, labels):
        return
    seconds, note = times_in_seconds(own[0])
    times = np.asarray(seconds)
    if times.dtype.kind != "f" or times.ndim != 1 or len(times) < 2:
        return
    step = dt if labels.kind else float(np.median(np.abs(np.diff(times))))
    wrong = ~(np.abs(np.diff(times) - step) <= _MONTHS * step)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0]) + 1
        steps = [float(times[place] - times[place - 1]), step]
        found, wanted = (in_words(value) if note else f"{value:.6g}" for value in steps)
        raise InputError(
            "window",
            f"a step of {found} before sample {place}",
            f"must have even steps of {wanted}",
            "sort the samples and fill those that are missing",
        )


def follows_the_rule(window: Any, labels: Labels) -> bool:
    """Whether the dates of a window follow each other by the calendar rule of the record, such as business days."""
    index = index_of(window)
    if not labels.rule or _KINDS.get(type(index).__name__) != "date" or not len(index):
        return False
    import pandas as pd

    return bool(index.equals(pd.date_range(index[0], periods=len(index), freq=labels.rule)))


def check_same_dates(parts: Sequence[Any], u: Any) -> None:
    """Refuse inputs of a fit whose dates are not those of the records they belong to."""
    for part, own in zip(parts, as_list(u), strict=False):
        index, other = index_of(part), index_of(own)
        both = type(index).__name__, type(other).__name__
        if both[0] != both[1] or both[0] not in _KINDS or len(index) != len(other) or index.equals(other):
            continue
        place = int(np.flatnonzero(np.asarray(index != other))[0])
        raise InputError(
            "u",
            f"{other[place]} at sample {place}",
            f"must have the dates of the record, there {index[place]}",
            "align both first: u.reindex(series.index)",
        )
