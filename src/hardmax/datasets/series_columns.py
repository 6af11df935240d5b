"""Which column of a table is time, and which are channels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError
from .dates import MONTH, Months, months_of, stamps_of
from .series import Series

if TYPE_CHECKING:
    import pandas as pd

NO_TIME = "none"
"""What to pass as the time column to say that there is none."""
_TIME_WORDS = frozenset(
    {"t", "time", "times", "date", "datetime", "timestamp", "seconds", "sec", "zeit", "datum", "temps"}
)
_COUNTED = frozenset({"year", "jahr", "année", "annee", "month", "day", "hour", "minute", "second"})
"""Names of columns that are time where they grow from row to row, and part of a date where they begin again."""
_EVEN = 1e-6


def series_of(
    table: pd.DataFrame, path: str | os.PathLike[str], *, named: bool, time: str | None, columns: Sequence[str] | None
) -> Series:
    """The series in a table; ``named`` is false where the file had no names and columns were numbered from 1."""
    table = _without_row_numbers(table)
    time_name = _time_column(table, path, named, time, columns)
    wanted = [name for name in table.columns if name != time_name] if columns is None else list(columns)
    for name in wanted:
        if name not in table.columns:
            there = ", ".join(map(str, table.columns))
            raise FileError(path, f"has no column {name!r}", f"choose among {there}")
    if not wanted:
        raise FileError(path, "has a time column and no channels", "add at least one column of numbers")
    values = np.column_stack([_numbers(table[name], path) for name in wanted])
    for k, name in enumerate(wanted):
        if np.isnan(values[:, k]).all():
            raise FileError(path, f"column {name!r} is empty", "leave it out: choose the columns to use")
    if np.isinf(values).any():
        row, column = (int(k) for k in np.argwhere(np.isinf(values))[0])
        raise FileError(path, f"row {row + 1} of column {wanted[column]!r} is infinite", "remove or correct it")
    times, began, months = np.arange(len(values), dtype=np.float64), "", None
    if time_name is not None:
        times, began, months = _times(table[time_name], path)
    if len(values) < 2:
        raise FileError(path, f"holds {len(values)} samples", "a series needs at least two")
    if values.shape[1] > len(values):
        raise FileError(
            path,
            f"has {len(values)} samples of {values.shape[1]} channels",
            "one row is one moment; transpose the table if the axes are swapped",
        )
    return Series(
        values,
        times,
        tuple(map(str, wanted)),
        os.fspath(path),
        time_name=str(time_name or ""),
        began=began,
        months=months,
    )


def _without_row_numbers(table: pd.DataFrame) -> pd.DataFrame:
    first = table.columns[0] if len(table.columns) else None
    if first is not None and str(first).startswith("Unnamed:") and len(table.columns) > 1:
        numbers = table[first].to_numpy()
        if numbers.dtype.kind in "iu" and np.array_equal(numbers - numbers[0], np.arange(len(numbers))):
            return table.drop(columns=first)
    return table


def _time_column(
    table: pd.DataFrame,
    path: str | os.PathLike[str],
    named: bool,
    asked: str | None,
    columns: Sequence[str] | None,
) -> str | None:
    if asked is not None:
        if asked == NO_TIME:
            return None
        if asked not in table.columns:
            there = ", ".join(map(str, table.columns))
            raise FileError(
                path, f"has no column {asked!r} to take the time from", f"choose among {there} or {NO_TIME}"
            )
        return asked
    free = [name for name in table.columns if columns is None or name not in columns]
    for name in free:
        if table[name].dtype.kind in "Mm" or re.split(r"[\s_\[(]", str(name).strip().lower())[0] in _TIME_WORDS:
            return str(name)
    for name in free:
        if stamps_of(table[name]) is not None:
            return str(name)
    for name in free:
        if str(name).strip().lower() in _COUNTED and len(free) > 1 and _is_growing(table[name]):
            return str(name)
    if not named and len(table.columns) > 1 and table.columns[0] in free and _is_even(table[table.columns[0]]):
        return str(table.columns[0])
    return None


def _is_even(column: pd.Series) -> bool:
    if column.dtype.kind not in "iuf":
        return False
    steps = np.diff(column.to_numpy(dtype=np.float64))
    return len(steps) > 1 and bool(steps.min() > 0 and np.ptp(steps) <= _EVEN * steps.mean())


def _is_growing(column: pd.Series) -> bool:
    return (
        column.dtype.kind in "iuf" and len(column) > 1 and bool((np.diff(column.to_numpy(dtype=np.float64)) > 0).all())
    )


def _times(column: pd.Series, path: str | os.PathLike[str]) -> tuple[np.ndarray, str, Months | None]:
    """Times, and where they came from dates (then in seconds) the first date and the months between two."""
    stamps = stamps_of(column)
    began, months = "", None
    if stamps is not None:
        months = months_of(stamps)
        began = stamps.iloc[0].isoformat() if stamps.notna().iloc[0] else ""
        times = (stamps - stamps.iloc[0]).dt.total_seconds().to_numpy(dtype=np.float64)
        if months is not None:
            times = MONTH * months.apart * np.arange(len(stamps), dtype=np.float64)
    elif column.dtype.kind == "m":
        times = column.dt.total_seconds().to_numpy(dtype=np.float64)
    else:
        times = _numbers(column, path)
    if np.isnan(times).any():
        row = 0 if stamps is not None and not began else int(np.flatnonzero(np.isnan(times))[0])
        raise FileError(path, f"row {row + 1} of the time column {column.name!r} is empty", "give every row its time")
    steps = np.diff(times)
    if len(steps) and steps.min() <= 0:
        row = int(np.flatnonzero(steps <= 0)[0])
        raise FileError(
            path,
            f"time does not go on at row {row + 2} of column {column.name!r} ({column.iloc[row]}, then "
            f"{column.iloc[row + 1]})",
            f"sort the rows, or say time column {NO_TIME!r} if this column is no time",
        )
    return times, began, months


def _numbers(column: pd.Series, path: str | os.PathLike[str]) -> np.ndarray:
    import pandas as pd

    if column.dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64)
    read = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(np.isnan(read) & column.notna().to_numpy())
    if len(wrong):
        shown = repr(column.iloc[int(wrong[0])])
        remedy = "correct it, or choose the columns to use"
        if len(wrong) < len(column) and wrong[-1] == len(wrong) - 1:  # the first rows alone: units, or a heading
            remedy = "put # before lines that are no data, or choose the columns to use"
        raise FileError(path, f"column {column.name!r} holds {shown} at row {wrong[0] + 1}, not a number", remedy)
    return read
