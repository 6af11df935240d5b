"""Time series from CSV, NPY, NetCDF and Parquet files."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError, MissingExtraError
from ..tables.dates import MONTH, Months, are_in_utc, months_of, stamps_of, steps_of
from ..tables.delimited import numbered, read_numbers, shown
from ..tables.files import PARQUET, TEXT, file_text, read_npy, read_parquet, require_readable
from .series import Series

if TYPE_CHECKING:
    import pandas as pd

READABLE = (*TEXT, ".dat", ".npy", ".nc", *PARQUET)
"""The suffixes of files that hold a series."""
NO_TIME = "none"
"""The name of the time column that says that there is none."""
_REMEDY = "save at least two rows of one number"
_TIME_WORDS = frozenset(
    {"t", "time", "times", "date", "datetime", "timestamp", "seconds", "sec", "zeit", "datum", "temps"}
)
_COUNTED = frozenset({"year", "jahr", "année", "annee", "month", "day", "hour", "minute", "second"})
"""Names of columns that are time where they grow from row to row, and part of a date where they begin again."""
_DATE_WORDS = frozenset(
    {"date", "datetime", "datum", "day", "tag", "month", "monat", "mois", "period", "yyyymmdd", "yyyymm", "yearmonth"}
)
"""Names of columns whose numbers are dates where all of them can be."""
_CLOCK_WORDS = frozenset({"time", "times", "timestamp", "zeit", "temps", "week"})
"""Names of columns that may count as well: of eight digits they are dates by their name, of six by their steps only."""
_FIRST_YEAR, _LAST_YEAR = 1800, 2199
"""Years of dates that are written as one number."""
_EVEN = 1e-6
"""Spread of the steps, relative to their mean, that still counts as even."""


@dataclass(frozen=True, eq=False)
class _Samples:
    """A table with one row per moment, and the place of its rows in the file for error messages."""

    cells: pd.DataFrame
    named: bool
    path: Path
    line_of: Callable[[int], int] | None = None

    def row(self, number: int) -> str:
        """Place of a row in the file, in words."""
        return f"row {number + 1}" if self.line_of is None else f"line {self.line_of(number)}"


def read_series(
    path: str | os.PathLike[str], *, time: str | None = None, columns: Sequence[str] | None = None
) -> Series:
    """Series of a file with one row per moment and one column per channel; empty cells become NaN.

    Parameters
    ----------
    path
        CSV or other text (cells separated by semicolons, tabs, commas, ``|`` or blanks, decimal points or commas, with
        or without a header, comments after ``#``, in UTF-8, UTF-16 or Windows-1252), NPY, NetCDF or Parquet.
    time
        The time column, or ``"none"``. By default it is the column named like a time (``t``, ``time``, ``date``,
        ``time [s]`` …) or holding dates; in a file without names, a first column that grows evenly. Dates (ISO,
        ``31.12.2024 23:59``, ``31/12/2024`` or ``12/31/2024``; in a time column also ``20241231`` or the month
        ``202412``) become seconds since the first; dates a month, a quarter or a year apart count as evenly spaced.
    columns
        The channels to read; by default all but the time.

    Returns
    -------
    Series
        Values of shape (samples, channels), and times of shape (samples,).
    """
    file, suffix = require_readable(path, READABLE, "series")
    if suffix == ".npy":
        samples = _from_npy(file)
    elif suffix == ".nc":
        samples = _from_netcdf(file)
    elif suffix in PARQUET:
        samples = _Samples(read_parquet(file), True, file)
    else:
        table = read_numbers(file_text(file), file, remedy=_REMEDY)
        samples = _Samples(table.cells, table.named, file, table.line_of)
    if samples.cells.shape[0] == 0 or samples.cells.shape[1] == 0:
        raise FileError(path, "is empty", _REMEDY)
    return _series_of(samples, time, columns)


def _series_of(samples: _Samples, time: str | None, columns: Sequence[str] | None) -> Series:
    samples = _without_row_numbers(samples)
    table, path = samples.cells, samples.path
    time_name = _time_column(samples, time, columns)
    wanted = [name for name in table.columns if name != time_name] if columns is None else list(columns)
    for name in wanted:
        if name not in table.columns:
            there = ", ".join(map(str, table.columns))
            raise FileError(path, f"has no column {name!r}", f"choose among {there}")
    if not wanted:
        raise FileError(path, "has a time column and no channels", "add at least one column of numbers")
    values = np.column_stack([_numbers(samples, name) for name in wanted])
    for k, name in enumerate(wanted):
        if np.isnan(values[:, k]).all():
            raise FileError(path, f"column {name!r} is empty", "leave it out: choose the columns to use with columns=…")
    if np.isinf(values).any():
        row, column = (int(k) for k in np.argwhere(np.isinf(values))[0])
        problem = f"{samples.row(row)}, column {wanted[column]!r} is infinite"
        raise FileError(path, problem, "remove or correct it")
    times, began, months = np.arange(len(values), dtype=np.float64), "", None
    if time_name is not None:
        times, began, months = _times(samples, time_name)
    if len(values) < 2:
        raise FileError(path, f"holds {len(values)} samples", "a series needs at least two")
    if values.shape[1] > len(values):
        raise FileError(
            path,
            f"has {len(values)} samples of {values.shape[1]} channels",
            "one row is one moment; transpose the table if the axes are swapped",
        )
    in_utc = bool(began) and _is_in_utc(table[time_name])
    return Series(
        values,
        times,
        tuple(map(str, wanted)),
        os.fspath(path),
        time_name=str(time_name or ""),
        began=began,
        months=months,
        in_utc=in_utc,
        offset=_offset_of(table[time_name], in_utc) if began else "",
    )


def _without_row_numbers(samples: _Samples) -> _Samples:
    """Without a first column of row numbers, which pandas writes without a name."""
    table = samples.cells
    first = table.columns[0]
    if str(first).startswith("Unnamed:") and len(table.columns) > 1:
        numbers = table[first].to_numpy()
        if numbers.dtype.kind in "iu" and np.array_equal(numbers - numbers[0], np.arange(len(numbers))):
            return _Samples(table.drop(columns=first), samples.named, samples.path, samples.line_of)
    return samples


def _time_column(samples: _Samples, asked: str | None, columns: Sequence[str] | None) -> str | None:
    table = samples.cells
    if asked is not None:
        if asked == NO_TIME:
            return None
        if asked not in table.columns:
            there = ", ".join(map(str, table.columns))
            problem = f"has no column {asked!r} to take the time from"
            raise FileError(samples.path, problem, f"choose among {there} or {NO_TIME}")
        return asked
    free = [name for name in table.columns if columns is None or name not in columns]
    for name in free:
        if table[name].dtype.kind in "Mm" or _first_word(name) in _TIME_WORDS:
            return str(name)
    for name in free:
        if stamps_of(table[name]) is not None or _is_time_by_its_name(table, name):
            return str(name)
    for name in free:
        if str(name).strip().lower() in _COUNTED and len(table.columns) > 1 and _is_growing(table[name]):
            return str(name)
    first = table.columns[0]
    is_time = _is_even(table[first]) or _has_compact_dates(table, first)
    if not samples.named and len(table.columns) > 1 and first in free and is_time:
        return str(first)
    return None


def _first_word(name: object) -> str:
    return re.split(r"[\s_\[(]", str(name).strip().lower())[0]


def _stamps_of(table: pd.DataFrame, name: str) -> pd.Series | None:
    """Dates of the time column, also where they are written as numbers."""
    stamps = stamps_of(table[name])
    return _compact_dates(table[name], _first_word(name)) if stamps is None else stamps


def _is_time_by_its_name(table: pd.DataFrame, name: str) -> bool:
    """Whether a column named like a date holds dates as numbers, or dates and cells that an error is to tell of."""
    known = table[name].dropna()
    # Months that repeat in most rows are part of a date.
    if _first_word(name) not in _DATE_WORDS | _CLOCK_WORDS or 2 * known.nunique() <= len(known):
        return False
    if known.dtype.kind in "iuf":
        return _has_compact_dates(table, name)
    return bool(2 * _dates_among(known.astype(str).str.strip()).sum() > len(known))


def _has_compact_dates(table: pd.DataFrame, name: str) -> bool:
    return _compact_dates(table[name], _first_word(name)) is not None


def _compact_dates(column: pd.Series, word: str) -> pd.Series | None:
    """Dates of numbers such as 20241231, or 202412 for a month; None where they may as well be counts.

    ``word`` is the first word of the name of the column.
    """
    import pandas as pd

    known = column.dropna()
    if column.dtype.kind not in "iuf" or len(known) == 0 or not np.isfinite(known).all() or (known % 1 != 0).any():
        return None
    for form, one in (("%Y%m%d", 10_000), ("%Y%m", 100)):
        if known.min() < _FIRST_YEAR * one or known.max() >= (_LAST_YEAR + 1) * one:
            continue
        if not (known // (one // 100) % 100).between(1, 12).all():  # long counts end here, which is quick
            continue
        stamps = pd.to_datetime(column.astype("Int64").astype("string"), format=form, errors="coerce")
        by_name = word in _DATE_WORDS or (word in _CLOCK_WORDS and form == "%Y%m%d")
        if stamps[known.index].notna().all() and (by_name or _are_even_as_dates_only(known, stamps[known.index])):
            return stamps
    return None


def _are_even_as_dates_only(numbers: pd.Series, stamps: pd.Series) -> bool:
    """Whether steps that are equal on the calendar, and the most of all, differ as numbers."""
    months = months_of(stamps)
    steps = np.diff(stamps.to_numpy()).astype(np.float64) if months is None else np.diff(steps_of(stamps, months))
    if len(steps) == 0:
        return False
    usual = steps == np.median(steps)
    return bool(2 * usual.sum() > len(steps) and np.ptp(np.diff(numbers.to_numpy())[usual]) > 0)


def _is_even(column: pd.Series) -> bool:
    if column.dtype.kind not in "iuf":
        return False
    steps = np.diff(column.to_numpy(dtype=np.float64))
    return len(steps) > 1 and bool(steps.min() > 0 and np.ptp(steps) <= _EVEN * steps.mean())


def _is_growing(column: pd.Series) -> bool:
    return (
        column.dtype.kind in "iuf" and len(column) > 1 and bool((np.diff(column.to_numpy(dtype=np.float64)) > 0).all())
    )


def _times(samples: _Samples, name: str) -> tuple[np.ndarray, str, Months | None]:
    """Times, shape (samples,); where they came from dates (then in seconds) the first date and the months between."""
    column = samples.cells[name]
    stamps = _stamps_of(samples.cells, name)
    began, months = "", None
    if stamps is not None:
        months = months_of(stamps)
        began = stamps.iloc[0].isoformat() if stamps.notna().iloc[0] else ""
        times = (stamps - stamps.iloc[0]).dt.total_seconds().to_numpy(dtype=np.float64)
        if months is not None:
            times = MONTH * months.apart * steps_of(stamps, months).astype(np.float64)
    elif column.dtype.kind == "m":
        times = column.dt.total_seconds().to_numpy(dtype=np.float64)
    else:
        times = _numbers(samples, name)
    if np.isnan(times).any():
        row = 0 if stamps is not None and not began else int(np.flatnonzero(np.isnan(times))[0])
        problem = f"{samples.row(row)} of the time column {name!r} is empty"
        raise FileError(samples.path, problem, "give every row its time")
    steps = np.diff(times)
    if len(steps) and steps.min() <= 0:
        row = int(np.flatnonzero(steps <= 0)[0])
        raise FileError(
            samples.path,
            f"time does not increase at {samples.row(row + 1)} of column {name!r} ({column.iloc[row]}, then "
            f"{column.iloc[row + 1]})",
            f'{_remedy_for(steps)}, or pass time="{NO_TIME}" if this column is no time',
        )
    return times, began, months


def _is_in_utc(column: pd.Series) -> bool:
    """Whether dates of the ISO form with several offsets were brought to UTC; other forms have no offsets."""
    import pandas as pd

    if column.dtype.kind in "iuf":
        return False
    iso = column.dtype.kind == "M" or not pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce").hasnans
    return iso and are_in_utc(column)


def _offset_of(column: pd.Series, in_utc: bool) -> str:
    """Offset from UTC of the clock that dates are told by; empty where they have none."""
    import pandas as pd

    if in_utc or isinstance(column.dtype, pd.DatetimeTZDtype):
        return "Z"
    found = re.search(r"[T ]\d.*?(Z|([+-]\d\d):?(\d\d)?)$", str(column.iloc[0]).strip())
    if found is None:
        return ""
    offset = f"{found[2]}:{found[3] or '00'}"
    return "Z" if found[1] == "Z" or offset[1:] == "00:00" else offset


def _remedy_for(steps: np.ndarray) -> str:
    """What to do with times whose steps do not all increase: sorting helps where no time is repeated."""
    if (steps < 0).all():
        return "reverse the order of the rows"
    if steps.min() < 0:
        return "sort the rows"
    return "keep one row per time, or their mean"


def _numbers(samples: _Samples, name: str) -> np.ndarray:
    """A column as float64, shape (samples,), NaN where it is empty."""
    import pandas as pd

    column = samples.cells[name]
    if column.dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64)
    read = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(np.isnan(read) & column.notna().to_numpy())
    if len(wrong):
        raise _wrong_cell(samples, name, wrong)
    return read


def _wrong_cell(samples: _Samples, name: str, wrong: np.ndarray) -> FileError:
    """Error of a column of which some rows are no numbers: about the first that is also no date, where most are."""
    column = samples.cells[name]
    cells = column.iloc[wrong].astype(str).str.strip()
    row, cell, most = int(wrong[0]), cells.iloc[0], 2 * len(wrong) > column.notna().sum()
    problem, remedy = "not a number", "correct it, or choose the columns to use with columns=…"
    dates = wrong[_dates_among(cells)] if most else wrong[:0]
    others = np.setdiff1d(np.flatnonzero(column.notna()), dates)
    if 2 * len(dates) > column.notna().sum() and len(others):
        row, like = int(others[0]), int(dates[0])
        problem = f"not a date such as {shown(column.iloc[like])} in {samples.row(like)}"
        remedy = "correct the row, or remove it if it is a total or a remark"
    elif len(wrong) < len(column) and wrong[-1] == len(wrong) - 1:  # the first rows alone: units, or a heading
        remedy = "put # before lines that are no data, or choose the columns to use with columns=…"
    elif _THOUSANDS.fullmatch(cell):
        remedy = f"write it without a thousands separator: {cell.replace(',', '')}"
        if cell.count(",") == 1 and "." not in cell:
            remedy += f", or as {cell.replace(',', '.')} where the comma is a decimal one"
    elif most and not len(dates) and (_looks_like_a_date(cell) or _is_named_like_a_date(name, cell)):
        problem = "a date in a format that is not known"
        remedy = (
            "write dates as 2024-12-31 23:59, 31.12.2024 23:59, 31/12/2024 or 12/31/2024 and months as 2024-12, or "
            "choose the columns to use with columns=…"
        )
    return FileError(
        samples.path, f"{samples.row(row)}, column {name!r} is {shown(column.iloc[row])}, {problem}", remedy
    )


_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
"""Numbers with commas between thousands."""
_DATE_FORMS = (
    "ISO8601",
    *(
        order + clock
        for order in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
        for clock in ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")
    ),
)
"""Forms of dates that are read."""


def _dates_among(cells: pd.Series) -> np.ndarray:
    """Whether each cell is a date in the form that most of them have, shape (cells,)."""
    import pandas as pd

    found = (
        pd.to_datetime(cells, format=form, errors="coerce", utc=True).notna().to_numpy(dtype=bool)
        for form in _DATE_FORMS
    )
    return max(found, key=np.count_nonzero)


def _is_named_like_a_date(name: str, cell: str) -> bool:
    return _first_word(name) in _DATE_WORDS and any(sign.isdecimal() for sign in cell)


def _looks_like_a_date(cell: str) -> bool:
    """Whether a cell can be taken for a date with a year that it shows."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a form that is guessed is warned of
        stamp = pd.to_datetime(cell, errors="coerce")
    return stamp is not pd.NaT and _FIRST_YEAR <= stamp.year <= _LAST_YEAR and f"{stamp.year % 100:02d}" in cell


def _from_npy(path: Path) -> _Samples:
    import pandas as pd

    values = read_npy(path)
    if values.dtype.names:
        return _Samples(pd.DataFrame({name: np.array(values[name]) for name in values.dtype.names}), True, path)
    if values.ndim not in (1, 2):
        problem = f"the array has shape {values.shape}, not (samples, channels)"
        raise FileError(path, problem, "save one row per moment, or one series")
    table = np.array(values[:, None] if values.ndim == 1 else values, dtype=np.float64)
    return _Samples(pd.DataFrame(table, columns=numbered(table.shape[1])), False, path)


def _from_netcdf(path: Path) -> _Samples:
    """The variables along the time dimension, one column per value; the coordinate of that dimension first."""
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
    return _Samples(pd.DataFrame(columns), True, path)
