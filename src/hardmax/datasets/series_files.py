"""Time series from CSV, NPY, NetCDF and Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FileError, MissingExtraError
from .series import Series
from .series_columns import series_of
from .series_text import numbered, read_text_table

if TYPE_CHECKING:
    import pandas as pd

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
