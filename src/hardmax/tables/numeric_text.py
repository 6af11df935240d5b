"""Tables of numbers from text with any separator, decimal sign and header."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FileError
from .encodings import file_text, separator_of

if TYPE_CHECKING:
    import pandas as pd

_PLAIN = r"[-+]?\d+(?:,\d+)?(?:[eE][-+]?\d+)?"
_GROUPED = r"[-+]?\d{1,3}(?:\.\d{3})+(?:,\d+)?"
_COMMA_NUMBER = rf"^\s*(?:{_PLAIN}|{_GROUPED})\s*$"
_MAYBE_GROUPED = r"^\s*[-+]?[1-9]\d{0,2},\d{3}\s*$"
"""12,345 may be twelve thousand or twelve and a bit; 0,345 and 12,3456 cannot."""


def read_text_table(path: Path) -> tuple[pd.DataFrame, bool]:
    """The table in a text file, and whether its columns have names; the first line shows the separator."""
    import pandas as pd

    text = file_text(path)
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), None)
    if first is None:
        raise FileError(path, "is empty", "save at least two rows of one number")
    mark = separator_of(first)
    fields = first.split() if mark is None else next(csv.reader([first], delimiter=mark))
    named = not any(_is_number(field) for field in fields)
    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=r"\s+" if mark is None else mark,
            header=0 if named else None,
            comment="#",
            skipinitialspace=True,
            **_every_digit(pd.__version__),
            low_memory=False,  # the kind of a column is that of all its cells, not of some part
        )
    except (ValueError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise FileError(path, f"is not a table ({str(error).strip()})", "give every line as many cells") from error
    if not isinstance(table.index, pd.RangeIndex):
        raise FileError(
            path, "has lines with more cells than the header has names", "give every column one name, or none a name"
        )
    table = _without_empty_ends(table)
    table.columns = [str(name).strip() for name in table.columns] if named else numbered(table.shape[1])
    for name in table.columns:
        table[name] = _with_points(table[name], sure=mark not in (",", None))
    return table, named


def _every_digit(pandas_version: str) -> dict[str, Any]:
    """Options with which pandas reads every digit: it does so of its own since 3.1, and warns if it is told to."""
    from packaging.version import Version

    return {} if Version(pandas_version) >= Version("3.1") else {"float_precision": "round_trip"}


def numbered(count: int) -> list[str]:
    """Names for the columns of a file that has none."""
    return [f"column {k + 1}" for k in range(count)]


def _is_number(field: str) -> bool:
    try:
        float(field.strip().replace(",", "."))
    except ValueError:
        return False
    return "_" not in field


def _without_empty_ends(table: pd.DataFrame) -> pd.DataFrame:
    """Without the columns that a separator at the end of every line makes: no name and nothing in them."""
    while table.shape[1] > 1:
        last = table.columns[-1]
        nameless = str(last).isdecimal() or str(last).startswith("Unnamed:")
        if not (nameless and table[last].isna().all()):
            break
        table = table.iloc[:, :-1]
    return table


def _with_points(column: pd.Series, *, sure: bool) -> pd.Series:
    """Decimal commas as points, with points between thousands left out, where every cell can be read so.

    Unless ``sure`` (the separator is no comma itself), cells such as ``12,345`` alone do not make decimal commas.
    """
    import pandas as pd

    if column.dtype.kind in "iufbMm":
        return column
    cells = column.dropna().astype(str)
    if not cells.str.contains(",").any() or not cells.str.match(_COMMA_NUMBER).all():
        return column
    if not sure and cells[cells.str.contains(",")].str.match(_MAYBE_GROUPED).all():
        return column
    points = column.astype(str).where(column.notna()).str.replace(".", "").str.replace(",", ".")
    return pd.to_numeric(points)
