"""Which column of a table is time, and which are channels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError
from .series import Series

if TYPE_CHECKING:
    import pandas as pd

NO_TIME = "none"
"""What to pass as the time column to say that there is none."""
_TIME_WORDS = frozenset({"t", "time", "times", "date", "datetime", "timestamp", "seconds", "sec", "zeit", "temps"})
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
    times = np.arange(len(values), dtype=np.float64) if time_name is None else _times(table[time_name], path)
    if len(values) < 2:
        raise FileError(path, f"holds {len(values)} samples", "a series needs at least two")
    if values.shape[1] > len(values):
        raise FileError(
            path,
            f"has {len(values)} samples of {values.shape[1]} channels",
            "one row is one moment; transpose the table if the axes are swapped",
        )
    began = "" if time_name is None else _first_date(table[time_name])
    return Series(values, times, tuple(map(str, wanted)), os.fspath(path), time_name=str(time_name or ""), began=began)


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
        if table[name].dtype.kind not in "iufb" and _dates(table[name]) is not None:
            return str(name)
    if not named and len(table.columns) > 1 and table.columns[0] in free and _is_even(table[table.columns[0]]):
        return str(table.columns[0])
    return None


def _is_even(column: pd.Series) -> bool:
    if column.dtype.kind not in "iuf":
        return False
    steps = np.diff(column.to_numpy(dtype=np.float64))
    return len(steps) > 1 and bool(steps.min() > 0 and np.ptp(steps) <= _EVEN * steps.mean())


def _dates(column: pd.Series) -> np.ndarray | None:
    """Seconds since the first entry, where the column holds dates."""
    import pandas as pd

    try:
        stamps = pd.to_datetime(column, format="ISO8601")
    except (ValueError, TypeError):
        return None
    since = (stamps - stamps.iloc[0]).dt.total_seconds()
    return np.asarray(since.to_numpy(dtype=np.float64))


def _first_date(column: pd.Series) -> str:
    import pandas as pd

    if column.dtype.kind in "iufbm":
        return ""
    return str(pd.to_datetime(column.iloc[:1], format="ISO8601").iloc[0].isoformat())


def _times(column: pd.Series, path: str | os.PathLike[str]) -> np.ndarray:
    kind = column.dtype.kind
    found = _dates(column) if kind == "M" or kind not in "iufbm" else None
    if kind == "m":
        found = column.dt.total_seconds().to_numpy(dtype=np.float64)
    times = _numbers(column, path) if found is None else found
    if np.isnan(times).any():
        row = int(np.flatnonzero(np.isnan(times))[0])
        raise FileError(path, f"row {row + 1} of the time column {column.name!r} is empty", "give every row its time")
    steps = np.diff(times)
    if len(steps) and steps.min() <= 0:
        row = int(np.flatnonzero(steps <= 0)[0])
        raise FileError(
            path,
            f"time does not go on at row {row + 2} of column {column.name!r} ({times[row]:g}, then {times[row + 1]:g})",
            f"sort the rows, or say time column {NO_TIME!r} if this column is no time",
        )
    return times


def _numbers(column: pd.Series, path: str | os.PathLike[str]) -> np.ndarray:
    import pandas as pd

    if column.dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64)
    read = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(np.isnan(read) & column.notna().to_numpy())
    if len(wrong):
        shown = repr(column.iloc[int(wrong[0])])
        raise FileError(
            path,
            f"column {column.name!r} holds {shown} at row {wrong[0] + 1}, not a number",
            "correct it, or choose the columns to use",
        )
    return read
