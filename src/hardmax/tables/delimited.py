"""Tables in text: numbers or cells of text, with the line of every row for error messages."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FileError
from ..files import PathLike
from .dialect import (
    Dialect,
    cells_of,
    dialect_of,
    is_number,
    lines_of,
    prefers_tabs,
    with_plain_lines,
    with_points,
    without_comments,
    without_leading_comments,
)

if TYPE_CHECKING:
    import pandas as pd

_ONE_NAME_EACH = "give every column one name, or leave the header out"
_SHOWN = 30
"""Characters of a wrong cell that a message shows."""


@dataclass(frozen=True)
class Limits:
    """Largest table that is read, for uploads, whose size must be bounded."""

    columns: int
    rows: int

    def check(self, text: str, path: PathLike) -> None:
        """Refuse a table that is too wide or too long, before it is read."""
        dialect = dialect_of(without_leading_comments(text), path)
        columns = 0 if dialect is None else len(dialect.first)
        if columns > self.columns:
            problem = f"has {columns:,} columns and at most {self.columns} are read here"
            raise FileError(path, problem, "remove the columns that are not needed")
        rows = text.count("\n") + 1
        if rows > self.rows:
            problem = f"has {rows:,} lines and at most {self.rows:,} are read here"
            raise FileError(path, problem, "upload a part of it, or use the library for all of it")


@dataclass(frozen=True, eq=False)
class Table:
    """Cells of a table in text, and the lines that they came from."""

    cells: pd.DataFrame
    """Columns of numbers where every cell is a number, else of text; NaN where a cell is empty."""
    named: bool
    """Whether the file has a header; without one the columns are called ``column 1``, ``column 2`` …"""
    path: PathLike
    text: str
    """The table without comments."""
    dialect: Dialect

    def line_of(self, row: int) -> int:
        """Number of the line that holds a row of :attr:`cells`, counted from 1."""
        return next(line for k, (line, _) in enumerate(self._records()) if k == row + self.named)

    def numbers(self, remedy: str) -> np.ndarray:
        """All cells as float64, shape (row, column); an error names the first cell that is empty or not a number."""
        first = self.dialect.first
        if self.named and first[0] == "" and len(first) > 1 and all(first[1:]):
            problem = "the first column has no name and looks like row numbers"
            raise FileError(self.path, problem, "write the file without them (pandas: to_csv(path, index=False))")
        if len(self.cells) == 0:
            problem = f"line {self.dialect.first_line} is a header and no numbers follow"
            raise FileError(self.path, problem, remedy)
        if not all(dtype.kind in "iuf" for dtype in self.cells.dtypes):
            raise FileError(self.path, self._first_problem() or "is not a table of numbers", remedy)
        values = self.cells.to_numpy(dtype=np.float64)
        wrong = self._first_problem() if np.isnan(values).any() else None
        if wrong is not None:
            raise FileError(self.path, wrong, remedy)
        if not np.isfinite(values).all():
            row, column = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
            problem = f"line {self.line_of(row)}, column {column + 1} is {values[row, column]}, not a finite number"
            raise FileError(self.path, problem, "remove or impute that row")
        return values

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The line and the cells of every record that is not blank, the header included."""
        yield from records_of(self.text, self.dialect.separator)

    def _first_problem(self) -> str | None:
        """Description of the first line that cannot be read; slow, so only called after an error."""
        records = list(self._records())
        width = self.cells.shape[1]
        for number, (line, cells) in enumerate(records):
            if number == 0 and self.named:
                continue
            half_written = " (the last line: the file may be half-written)" if number == len(records) - 1 else ""
            cells = cells[:width] if not any(cells[width:]) else cells
            for column, cell in enumerate(cells, start=1):
                if not is_number(cell):
                    return f"line {line}, column {column} is {shown(cell)}, not a number{half_written}"
            if len(cells) != width:
                return f"line {line} has {_count(cells)} where line {records[0][0]} has {width}{half_written}"
        return None


def read_numbers(text: str, path: PathLike, *, remedy: str = "save one row of numbers per line") -> Table:
    """Table whose columns are numbers wherever they can be, with any separator, decimal sign, header and comments.

    Parameters
    ----------
    text
        The table; its first line shows the separator (``;``, tab, ``,``, ``|`` or blanks) and whether it is a header.
    path
        The file, for error messages.
    remedy
        What the error of an empty table says.

    >>> read_numbers("# in May\\nx;y\\n1.234,5;2 # first\\n", "a.csv").cells.values.tolist()
    [[1234.5, 2.0]]
    """
    import pandas as pd

    if "\0" in text:
        raise FileError(path, "holds zero bytes, so it is no text", "save it as text in UTF-8")
    text = with_plain_lines(without_comments(text))
    dialect = dialect_of(text, path)
    if dialect is None:
        raise FileError(path, "is empty", remedy)
    named = dialect.has_names
    # low_memory=False: the kind of a column is that of all its cells, not of some part.
    options: dict[str, Any] = {**_every_digit(pd.__version__), "low_memory": False}
    if named and dialect.separator is None and _has_blanks_in_names(text, dialect):
        cells = _parsed(text, path, dialect, named=False, skiprows=dialect.first_line, **options)
        cells.columns = [" ".join(dialect.first)] if cells.shape[1] == 1 else numbered(cells.shape[1])
    else:
        cells = _without_empty_ends(_parsed(text, path, dialect, named=named, **options))
        cells.columns = [str(name).strip() for name in cells.columns] if named else numbered(cells.shape[1])
    for k, dtype in enumerate(cells.dtypes):
        if dtype.kind not in "iufbMm":
            column = with_points(cells.iloc[:, k], certain=dialect.has_decimal_commas)
            cells.isetitem(k, as_numbers(column).array)
    return Table(cells, named, path, text, dialect)


def read_cells(text: str, path: PathLike, *, comments: bool) -> Table:
    """Table with a header whose cells stay text, also numbers, so that every digit is preserved; empty cells are "".

    Parameters
    ----------
    text
        The table; its header shows the separator.
    path
        The file, for error messages.
    comments
        Whether ``#`` begins a comment anywhere and blanks may separate cells. Where cells hold texts it does so above
        the header only.
    """
    text = with_plain_lines(without_comments(text)) if comments else without_leading_comments(text)
    dialect = dialect_of(text, path)
    if dialect is None:
        raise FileError(path, "is empty", "save a header and one row per line")
    if dialect.separator is None and not comments:
        separator = "\t" if prefers_tabs(path) else ","
        dialect = Dialect(separator, cells_of(_line(text, dialect), separator), dialect.first_line)
    cells = _parsed(text, path, dialect, named=True, dtype=str, keep_default_na=False, na_values=[""], trim=comments)
    cells = _without_empty_ends(cells)
    cells.columns = [str(name).strip() for name in cells.columns]
    return Table(cells.fillna(""), True, path, text, dialect)


def numbered(count: int) -> list[str]:
    """Names for the columns of a file that has none."""
    return [f"column {k + 1}" for k in range(count)]


def records_of(text: str, separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """The line, counted from 1, and the cells of every record that is not blank."""
    if separator is None:
        yield from ((k, cells_of(line, None)) for k, line in enumerate(lines_of(text), start=1) if line.strip())
        return
    lines = lines_of(text)
    try:
        reader = csv.reader((line + "\n" for line in lines), delimiter=separator, skipinitialspace=True)
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error:  # for example a cell of more than 128 kB
        return


def shown(cell: object) -> str:
    """A cell as a message shows it."""
    text = str(cell)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...") if text.strip() else "empty"


def _parsed(
    text: str, path: PathLike, dialect: Dialect, *, named: bool, trim: bool = True, **options: Any
) -> pd.DataFrame:
    import pandas as pd

    try:
        table: pd.DataFrame = pd.read_csv(
            io.StringIO(text),
            sep=r"\s+" if dialect.separator is None else dialect.separator,
            header=0 if named else None,
            skipinitialspace=trim,
            **options,
        )
    except (ValueError, OverflowError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        problem = _first_ragged(text, dialect) or f"is not a table ({_first_line_of(error)})"
        raise FileError(path, problem, "give every line as many cells") from error
    if not isinstance(table.index, pd.RangeIndex):
        widest = max(len(cells) for _, cells in records_of(text, dialect.separator))
        problem = f"the header on line {dialect.first_line} names {len(dialect.first)} columns and the lines have "
        raise FileError(path, problem + str(widest), _ONE_NAME_EACH)
    return table


def _has_blanks_in_names(text: str, dialect: Dialect) -> bool:
    """Whether no row has as many cells as the header: blanks then separate words of a name."""
    rows = islice(records_of(text, None), 1, None)
    return all(len(cells) != len(dialect.first) for _, cells in rows)


def _first_ragged(text: str, dialect: Dialect) -> str | None:
    """The first line with more cells than the first one: pandas refuses no others."""
    for line, cells in records_of(text, dialect.separator):
        if len(cells) > len(dialect.first):
            return f"line {line} has {_count(cells)} where line {dialect.first_line} has {len(dialect.first)}"
    return None


def _count(cells: list[str]) -> str:
    return f"{len(cells)} cell{'s' if len(cells) != 1 else ''}"


def _first_line_of(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]


def _line(text: str, dialect: Dialect) -> str:
    return lines_of(text)[dialect.first_line - 1]


def _every_digit(pandas_version: str) -> dict[str, Any]:
    """Options with which pandas reads every digit: since 3.1 it does so by default, and warns where it is asked to."""
    from packaging.version import Version

    return {} if Version(pandas_version) >= Version("3.1") else {"float_precision": "round_trip"}


def _without_empty_ends(table: pd.DataFrame) -> pd.DataFrame:
    """The table without the empty, unnamed columns that a separator at the end of every line makes."""
    while table.shape[1] > 1:
        last = table.columns[-1]
        nameless = str(last).isdecimal() or str(last).startswith("Unnamed:")
        if not (nameless and table.iloc[:, -1].isna().all()):
            break
        table = table.iloc[:, :-1]
    return table


def as_numbers(column: pd.Series) -> pd.Series:
    """A column of text as numbers where every cell is one, else as it is."""
    import pandas as pd

    if column.dropna().astype(str).str.contains("_", regex=False).any():  # as Python writes 1_000
        return column
    try:
        return pd.to_numeric(column)
    except (ValueError, TypeError, OverflowError):
        return column
