"""Tables of numbers in CSV, NPY and Parquet files: tokens, matrices and weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import FileError
from ..files import PathLike, replacing
from ..inputs import as_tokens
from ..shapes import ArrayLike
from ..tables.delimited import read_numbers
from ..tables.files import (
    PARQUET,
    TEXT,
    file_text,
    import_pyarrow,
    read_npy,
    read_parquet,
    require_readable,
    suffix_of,
)

READABLE = (*TEXT, ".npy", *PARQUET)
"""The suffixes of files that hold a table."""
_REMEDY = "save one line of numbers per token"


def read_tokens(path: PathLike) -> np.ndarray:
    """Tokens of a file, shape (token, coordinate), float64.

    Text may have a header and comments after ``#``, use semicolons, tabs, commas, ``|`` or blanks between cells and
    decimal points or commas, in UTF-8, UTF-16 or Windows-1252.

    Parameters
    ----------
    path
        CSV, TSV or other text (``.csv``, ``.tsv``, ``.txt``), NPY or Parquet, with one row per token and one column
        per coordinate.

    Returns
    -------
    numpy.ndarray
        The tokens, shape (token, coordinate).
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
    """Square matrix of a file, shape (d, d), float64.

    Parameters
    ----------
    path
        A table of d rows of d numbers, in a file such as :func:`read_tokens` reads.

    Returns
    -------
    numpy.ndarray
        The matrix, shape (d, d).
    """
    values = _read(path)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise FileError(path, f"the table has shape {values.shape}, not square", "save d rows of d numbers")
    return values


def read_weights(path: PathLike) -> np.ndarray:
    """Weights of a file, one per token, shape (token,), float64.

    Parameters
    ----------
    path
        A table of one column or one row, or a one-dimensional NPY array, in a file such as :func:`read_tokens` reads.

    Returns
    -------
    numpy.ndarray
        The weights, shape (token,).
    """
    values = _read(path)
    if values.ndim > 1 and max(values.shape) != values.size:
        raise FileError(path, f"the table has shape {values.shape}, not one column", "save one weight per line")
    return values.reshape(-1)


def write_tokens(tokens: ArrayLike, path: PathLike) -> None:
    """Write tokens as a table with every digit, whole or not at all.

    Parameters
    ----------
    tokens
        The tokens, shape (token, coordinate).
    path
        The file; its suffix chooses CSV or other text with a header, NPY or Parquet.
    """
    values = as_tokens(tokens)[0].detach().cpu().numpy()
    suffix = suffix_of(path, READABLE, "tables of the kind {} cannot be written")
    names = [f"x{k + 1}" for k in range(values.shape[1])]
    with replacing(path) as temporary:
        if suffix == ".npy":
            np.save(temporary, values)
        elif suffix in PARQUET:
            pyarrow, parquet = import_pyarrow("writing Parquet files")
            parquet.write_table(pyarrow.table(dict(zip(names, values.T, strict=True))), temporary)
        else:
            import pandas

            separator = "\t" if suffix == ".tsv" else ","
            pandas.DataFrame(values, columns=names).to_csv(temporary, sep=separator, index=False)


def _read(path: PathLike) -> np.ndarray:
    file, suffix = require_readable(path, READABLE, "tables")
    if suffix in TEXT:
        return read_numbers(file_text(file), file, remedy=_REMEDY).numbers(_REMEDY)
    values = _plain(read_npy(file), file) if suffix == ".npy" else _columns(file)
    if values.size == 0:
        raise FileError(file, f"is empty, shape {values.shape}", "save at least one row of one number")
    if not np.isfinite(values).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        where = ", ".join(f"{axis} {k + 1}" for axis, k in zip(("row", "column", "axis"), place, strict=False))
        raise FileError(file, f"{where} is {values[place]}, not a finite number", "remove or impute that row")
    return values


def _plain(values: np.ndarray, path: Path) -> np.ndarray:
    if values.dtype.names is not None:
        raise FileError(path, f"holds records of {values.dtype}, not real numbers", "save it as float64")
    return np.array(values, dtype=np.float64)


def _columns(path: Path) -> np.ndarray:
    table = read_parquet(path, row_labels=False)
    for name, column in table.items():
        if column.dtype.kind not in "iuf":
            raise FileError(path, f"column {name!r} holds {column.dtype}, not numbers", "drop or convert that column")
        if column.isna().any():
            problem = f"column {name!r} has {int(column.isna().sum())} missing values"
            raise FileError(path, problem, "fill or drop them")
    return table.to_numpy(dtype=np.float64)
