"""Time series from CSV, NPY, NetCDF and Parquet files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError, MissingExtraError
from ..tables.dates import MONTH, Months, months_of, stamps_of
from ..tables.numeric_text import numbered, read_text_table
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


_TEXT = (".csv", ".tsv", ".txt", ".dat")
READABLE = (*_TEXT, ".npy", ".nc", ".parquet", ".pq")
"""The suffixes of files that hold a series."""
Table = tuple["pd.DataFrame", bool]


def read_series(
    path: str | os.PathLike[str], *, time: str | None = None, columns: Sequence[str] | None = None
) -> Series:
    """A series from a file: one row a moment, one column a channel; empty cells become NaN.

    Parameters
    ----------
    path
        CSV or other text (separated by commas, semicolons, tabs, bars or blanks, decimal points or commas, with or
        without a header, in UTF-8, UTF-16 or Windows-1252), NPY, NetCDF or Parquet.
    time
        The time column, or ``"none"``. Left out, it is the column named like a time (``t``, ``time``, ``date``,
        ``time [s]`` …) or holding dates; in a file without names, a first column that grows evenly. Dates (ISO,
        ``31.12.2024 23:59``, ``31/12/2024`` or ``12/31/2024``) become seconds since the first; dates a month, a
        quarter or a year apart count as evenly spaced.
    columns
        The channels to keep; all but the time when left out.
    """
    target = Path(path).expanduser()
    suffix = target.suffix.lower()
    if suffix not in READABLE:
        raise FileError(
            path, f"series of the kind {suffix or '(no suffix)'} cannot be read", f"use {', '.join(READABLE)}"
        )
    if not target.exists():
        raise FileError(path, "there is no such file", "check the name and the folder")
    if not target.is_file():
        raise FileError(path, "is not a file", f"give the name of a file ({', '.join(READABLE)})")
    reader: Callable[[Path], Table] = (
        _read_npy
        if suffix == ".npy"
        else _read_netcdf
        if suffix == ".nc"
        else _read_parquet
        if suffix in (".parquet", ".pq")
        else read_text_table
    )
    try:
        table, named = reader(target)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(path, f"cannot be read ({error.strerror or error})", "check the file and its rights") from error
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise FileError(path, "is empty", "save at least two rows of one number")
    return series_of(table, target, named=named, time=time, columns=columns)


def _read_npy(path: Path) -> Table:
    import pandas as pd

    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, TypeError, SyntaxError) as error:
        problem = f"is no NPY file of numbers ({error})"
        raise FileError(path, problem, "save it with numpy.save(path, array) as float64") from error
    if not isinstance(values, np.ndarray):
        raise FileError(path, "holds several arrays", "save one array with numpy.save(path, array)")
    if values.dtype.names:
        return pd.DataFrame({name: values[name] for name in values.dtype.names}), True
    if values.ndim not in (1, 2):
        raise FileError(
            path, f"the array has shape {values.shape}, not (samples, channels)", "save one row a moment, or one series"
        )
    if values.dtype.kind not in "iuf":
        raise FileError(path, f"holds {values.dtype}, not real numbers", "save it as float64")
    table = values[:, None] if values.ndim == 1 else values
    return pd.DataFrame(np.asarray(table, dtype=np.float64), columns=numbered(table.shape[1])), False


def _read_parquet(path: Path) -> Table:
    import pandas as pd

    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("pyarrow", "store", "reading Parquet files") from None
    try:
        table = pd.read_parquet(path)
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        problem = f"is no whole Parquet file ({str(error).splitlines()[0]})"
        raise FileError(path, problem, "write it again; it may be half-written") from error
    if not isinstance(table.index, pd.RangeIndex):
        table = table.reset_index()
    table.columns = [str(name) for name in table.columns]
    return table, True


def _read_netcdf(path: Path) -> Table:
    import pandas as pd
    import xarray as xr

    try:
        with xr.open_dataset(path, decode_timedelta=True) as file:
            data = file.load()
    except ImportError:
        raise MissingExtraError("h5netcdf", "store", "reading NetCDF files") from None
    except (ValueError, OSError, KeyError, TypeError) as error:
        lines = str(error).strip().splitlines()
        problem = f"is no whole NetCDF file ({lines[0] if lines else type(error).__name__})"
        raise FileError(path, problem, "write it again with xarray.Dataset.to_netcdf") from error
    along = [str(name) for name in data.dims if str(name).lower() in ("time", "t")] or [str(d) for d in data.dims][:1]
    columns: dict[str, np.ndarray] = {}
    for axis in along[:1]:
        if axis in data.coords:
            columns[axis] = data[axis].to_numpy()
        for name, variable in data.data_vars.items():
            if axis in variable.dims:
                values = variable.transpose(axis, ...).to_numpy().reshape(data.sizes[axis], -1)
                wide = values.shape[1] > 1
                columns |= {f"{name}[{k}]" if wide else str(name): values[:, k] for k in range(values.shape[1])}
    if not any(name not in along for name in columns):
        raise FileError(path, "has no variable along a time dimension", "give the dimension the name 'time'")
    return pd.DataFrame(columns), True
