"""Tables of numbers in CSV, NPY and Parquet files: tokens, matrices and weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, MissingExtraError
from ..files import PathLike, replacing
from ..inputs import as_tokens
from ..shapes import ArrayLike
from ..tables.token_text import read_text

_NPY_MAGIC = b"\x93NUMPY"
_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
READABLE = (*_TEXT, ".npy", *_PARQUET)
"""The suffixes of files that hold a table."""


def read_tokens(path: PathLike) -> np.ndarray:
    """Tokens from a table: one row a token, one column a coordinate; float64.

    CSV files may have a header and remarks that begin with ``#``, and use commas, semicolons, tabs, ``|`` (with all but
    the first also decimal commas) or blanks, in UTF-8, UTF-16 or the Windows code page of western Europe.
    """
    values = _read(path)
    if values.ndim != 2:
        raise FileError(
            path,
            f"the array has shape {values.shape}, not (token, coordinate)",
            "save one row per token; n points on a line are (n, 1)",
        )
    return values


def read_matrix(path: PathLike) -> np.ndarray:
    """A square matrix from a table: d rows of d numbers; float64."""
    values = _read(path)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise FileError(path, f"the table has shape {values.shape}, not square", "save d rows of d numbers")
    return values


def read_weights(path: PathLike) -> np.ndarray:
    """One weight per token from a table of one column, one row, or a one-dimensional NPY array; float64."""
    values = _read(path)
    if values.ndim > 1 and max(values.shape) != values.size:
        raise FileError(path, f"the table has shape {values.shape}, not one column", "save one weight per line")
    return values.reshape(-1)


def write_tokens(tokens: ArrayLike, path: PathLike) -> None:
    """Tokens as a table, by suffix: CSV (with a header, every digit kept), NPY or Parquet."""
    values = as_tokens(tokens)[0].detach().cpu().numpy()
    suffix = _suffix(path, "written")
    names = [f"x{k + 1}" for k in range(values.shape[1])]
    with replacing(path) as temporary:
        if suffix == ".npy":
            np.save(temporary, values)
        elif suffix in _PARQUET:
            pyarrow, parquet = import_pyarrow("writing Parquet files")
            parquet.write_table(pyarrow.table(dict(zip(names, values.T, strict=True))), temporary)
        else:
            import pandas

            separator = "\t" if suffix == ".tsv" else ","
            pandas.DataFrame(values, columns=names).to_csv(temporary, sep=separator, index=False)


def _read(path: PathLike) -> np.ndarray:
    suffix = _suffix(path, "read")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileError(path, "there is no such file", "check the name and the folder")
    if not path.is_file():
        raise FileError(path, "is not a file", f"give the name of a file ({', '.join(READABLE)})")
    reader: Callable[[PathLike], np.ndarray] = (
        _read_npy if suffix == ".npy" else _read_parquet if suffix in _PARQUET else read_text
    )
    try:
        values = reader(path)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(path, f"cannot be read ({error.strerror or error})", "check the rights of the file") from error
    if values.size == 0:
        raise FileError(path, f"is empty, shape {values.shape}", "save at least one row of one number")
    if not np.isfinite(values).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        where = ", ".join(f"{axis} {k + 1}" for axis, k in zip(("row", "column", "axis"), place, strict=False))
        raise FileError(path, f"{where} is {values[place]}, not a finite number", "remove or impute that row")
    return values


def _suffix(path: PathLike, verb: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in READABLE:
        raise FileError(
            path,
            f"tables of the kind {suffix or '(no suffix)'} cannot be {verb}",
            f"use {', '.join(READABLE)}",
        )
    return suffix


def _read_npy(path: PathLike) -> np.ndarray:
    with open(path, "rb") as file:
        if file.read(len(_NPY_MAGIC)) != _NPY_MAGIC:
            raise FileError(path, "is not an NPY file", "save it with numpy.save(path, array)")
    try:
        # A memory map compares the announced size with the file before anything is allocated.
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OverflowError, TypeError, MemoryError, SyntaxError) as error:
        problem = f"the array is damaged, half-written, empty or made of objects ({error})"
        raise FileError(path, problem, "save it again with numpy.save(path, array) as float64") from error
    if values.dtype.kind not in "iuf":
        raise FileError(path, f"holds {values.dtype}, not real numbers", "save it as float64")
    return np.array(values, dtype=np.float64)


def import_pyarrow(purpose: str) -> tuple[Any, Any]:
    """pyarrow and its Parquet module, or an error that says how to get them."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("pyarrow", "store", purpose) from None
    return pyarrow, pyarrow.parquet


def _read_parquet(path: PathLike) -> np.ndarray:
    pyarrow, parquet = import_pyarrow("reading Parquet files")
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        problem = f"is no whole Parquet file ({str(error).splitlines()[0]})"
        raise FileError(path, problem, "write it again; it may be half-written") from error
    columns = []
    for name in table.column_names:
        if name.startswith("__index_level_"):  # pandas' row labels, not coordinates
            continue
        column = table.column(name)
        if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)):
            raise FileError(path, f"column {name!r} holds {column.type}, not numbers", "drop or convert that column")
        if column.null_count:
            raise FileError(path, f"column {name!r} has {column.null_count} missing values", "fill or drop them")
        columns.append(column.to_numpy().astype(np.float64))
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))
