"""Numbers from text: CSV with or without a header, and a word on the very line that is wrong."""

from __future__ import annotations

import csv
import re
import warnings

import numpy as np

from ..errors import FileError
from ..files import PathLike
from .encodings import file_text, is_comment, separator_of

_REMEDY = "save one line of numbers per token"


def read_text(path: PathLike) -> np.ndarray:
    """A table from text; the first line shows the separator (``;``, tab, ``,``, ``|`` or blank)."""
    # A remark becomes a blank line, so that refusals keep the numbers of the lines.
    lines = ["" if is_comment(line) else line for line in re.split("\r\n|\r|\n", file_text(path))]
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise FileError(path, "is empty", _REMEDY)
    separator = separator_of(lines[first])
    if separator not in (",", None):  # then commas are decimal points
        lines = [line.replace(",", ".") for line in lines]
    lines = _without_empty_ends(lines, separator)
    header = _fields(lines[first], separator)
    if any(_is_number(field) for field in header):  # a name beside a number is a mistake, not a header
        header = []
    elif header[0] == "" and all(header[1:]):
        problem = "the first column has no name and looks like row numbers"
        raise FileError(path, problem, "write the file without them (pandas: to_csv(path, index=False))")
    start = first + bool(header)
    numbers = [line for line in lines[start:] if line and not line.isspace()]
    if not numbers:
        raise FileError(path, f"line {first + 1} is a header and no numbers follow", _REMEDY)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = np.loadtxt(numbers, delimiter=separator, quotechar='"', comments=None, ndmin=2)
    except (ValueError, OverflowError, UserWarning) as error:
        problem = _what_is_wrong(lines, start, separator) or f"is not a table of numbers ({error})"
        raise FileError(path, problem, _REMEDY) from error
    if header and separator and len(header) != values.shape[1]:
        problem = f"the header on line {first + 1} names {len(header)} columns and the lines have {values.shape[1]}"
        raise FileError(path, problem, "give every column one name, or leave the header out")
    return values


def _without_empty_ends(lines: list[str], separator: str | None) -> list[str]:
    """Without the separator that some instruments write at the end of every line."""
    full = [line.rstrip(" ") for line in lines if line.strip()]
    if separator is None or not all(len(line) > 1 and line.endswith(separator) for line in full):
        return lines
    return [line.rstrip(" ").removesuffix(separator) for line in lines]


def _fields(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except (csv.Error, StopIteration):
        return line.split(separator)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field  # Python reads 1_000 as a number, tables do not


def _what_is_wrong(lines: list[str], start: int, separator: str | None) -> str | None:
    """The first line that is not as it should be; slow, so only called when something is wrong."""
    width = None
    last = max(number for number, line in enumerate(lines) if line.strip())
    for number in range(start, last + 1):
        if not lines[number].strip():
            continue
        fields = _fields(lines[number], separator)
        maybe_cut = " (the last line: the file may be half-written)" if number == last else ""
        for column, field in enumerate(fields, start=1):
            if not _is_number(field):
                shown = repr(field if len(field) <= 30 else field[:27] + "...") if field else "empty"
                return f"line {number + 1}, column {column} is {shown}, not a number{maybe_cut}"
        width = width or len(fields)
        if len(fields) != width:
            return f"line {number + 1} has {len(fields)} numbers where line {start + 1} has {width}{maybe_cut}"
    return None
