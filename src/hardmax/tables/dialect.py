"""Dialect of a table in text: comments, separator, header and decimal sign."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import PathLike

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (";", "\t", ",", "|")
"""Separators of cells by precedence: a comma beside a semicolon is a decimal sign."""

_QUOTED_OR_COMMENT = re.compile(r'(?m)((?:^|[;\t,| ])[ \t]*"(?:[^"]|"")*")|#[^\r\n]*')
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_LINE_ENDS = re.compile("\r\n|\r|\n")
_BLANK_LINE = re.compile(r"(?m)^[^\S\n]+$")

_COMMA = r"[-+]?(?:\d+,\d*|,\d+)(?:[eE][-+]?\d+)?"
_GROUPED = r"[-+]?\d{1,3}(?:\.\d{3})+"
_COMMA_NUMBER = re.compile(rf"\s*(?:{_COMMA}|{_GROUPED},\d+)\s*")
"""A decimal comma, with points between thousands or without: 0,5 or 1.234,5."""
_UNPOINTED = re.compile(rf"\s*(?:[-+]?\d+(?:[eE][-+]?\d+)?|{_COMMA}|{_GROUPED}(?:,\d+)?)\s*")
"""A number that can be read with a decimal comma: 12 or 0,5 or 1.234 or 1.234,5."""
_MAYBE_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2},\d{3}\s*")
"""12,345 may be 12345 or 12.345; 0,345 and 12,3456 have a decimal comma for certain."""


@dataclass(frozen=True)
class Dialect:
    """Separator, header and first line of a table in text."""

    separator: str | None
    """One of :data:`SEPARATORS`; None for blanks."""
    first: list[str]
    """Cells of the first line."""
    first_line: int
    """Number of the first line that is neither blank nor a comment, counted from 1."""

    @property
    def has_names(self) -> bool:
        """Whether the first line is a header: it holds no number. A name beside a number is a mistake."""
        return not any(is_number(cell) for cell in self.first)

    @property
    def has_decimal_commas(self) -> bool:
        """Whether a comma inside a cell can only be a decimal sign."""
        return self.separator not in (",", None)


def dialect_of(text: str, path: PathLike = "") -> Dialect | None:
    """Dialect of a table by its first line, None for an empty text; in a ``.tsv`` file a tab has precedence.

    >>> dialect_of("x;y\\n1,5;2")
    Dialect(separator=';', first=['x', 'y'], first_line=1)
    """
    lines = enumerate(io.StringIO(text, newline=None), start=1)
    number, line = next(((number, line) for number, line in lines if line.strip()), (0, ""))
    if not number:
        return None
    line = line.rstrip("\n")
    ordered = ("\t", *SEPARATORS) if prefers_tabs(path) else SEPARATORS
    unquoted = _QUOTED.sub("", line)
    present: list[str | None] = [mark for mark in ordered if mark in unquoted]
    # A comma is a decimal sign where it alone would leave cells that are no numbers: 1,5|2,5 and 1,5 2,5.
    splits = ((mark, cells_of(line, mark)) for mark in (*present, None))
    separator = next((mark for mark, cells in splits if _all_numbers(cells)), (*present, None)[0])
    return Dialect(separator, cells_of(line, separator), number)


def prefers_tabs(path: PathLike) -> bool:
    """Whether the name of a file says that tabs separate its cells, compressed or not."""
    return ".tsv" in [suffix.lower() for suffix in Path(path).suffixes[-2:]]


def without_comments(text: str) -> str:
    """The text without what follows a ``#`` outside quotes; lines stay, so that they can be counted.

    >>> without_comments('# measured in May\\n1;2 # first\\n')
    '\\n1;2 \\n'
    """
    return _QUOTED_OR_COMMENT.sub(lambda found: found[1] or "", text) if "#" in text else text


def without_leading_comments(text: str) -> str:
    """The text with comment lines above the header blank, for tables whose cells hold texts: there ``#`` is a word."""
    lines = text.splitlines(keepends=True)
    for k, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        lines[k] = "\n"
    return "".join(lines)


def with_plain_lines(text: str) -> str:
    """The text with lines ended by a line feed alone, and nothing on lines of blanks."""
    return _BLANK_LINE.sub("", _LINE_ENDS.sub("\n", text) if "\r" in text else text)


def lines_of(text: str) -> list[str]:
    """Lines of a text, ended as any system ends them."""
    return _LINE_ENDS.split(text)


def cells_of(line: str, separator: str | None) -> list[str]:
    """Cells of one line, without blanks around them."""
    if separator is None:
        line, separator = " ".join(line.split()), " "
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
    except csv.Error:
        return line.split(separator)


def _all_numbers(cells: list[str]) -> bool:
    return any(cells) and all(cell == "" or is_number(cell) for cell in cells)


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or comma."""
    try:
        float(cell)
    except ValueError:
        return _COMMA_NUMBER.fullmatch(cell) is not None
    return "_" not in cell  # Python reads 1_000 as a number, tables do not


def with_points(column: pd.Series, *, certain: bool) -> pd.Series:
    """The cells of a column of text with decimal points in the place of decimal commas, and no thousands points.

    Parameters
    ----------
    column
        Cells; missing ones stay missing.
    certain
        Whether a comma can only be a decimal sign (the separator is another mark). Otherwise commas are replaced only
        where every cell can be read so, and not where all of them could be thousands, as ``12,345``.
    """
    cells = column.dropna().astype(str)
    commas = cells.str.fullmatch(_COMMA_NUMBER)
    if not commas.any():
        return column
    unpointed = bool(cells.str.fullmatch(_UNPOINTED).all())
    if not certain and (not unpointed or cells[commas].str.fullmatch(_MAYBE_THOUSANDS).all()):
        return column
    changed = cells if unpointed else cells[commas]
    column = column.astype(object)
    column[changed.index] = changed.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return column
