"""Text and tables of text as spreadsheets and instruments write them: encodings, separators, comments."""

from __future__ import annotations

import codecs
from pathlib import Path

from .errors import FileError
from .files import PathLike

SEPARATORS = (";", "\t", ",", "|")
"""What may stand between two cells of a line, by precedence: a comma beside a semicolon is a decimal sign."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decoded(path: PathLike) -> str:
    """A file's text: UTF-8, UTF-16, or the Windows code page of western Europe, in which spreadsheets save CSV."""
    raw = Path(path).read_bytes()
    try:
        return raw.decode(_encoding(raw))
    except UnicodeDecodeError as error:
        if b"\0" not in raw:
            try:
                return raw.decode("cp1252")
            except UnicodeDecodeError:
                pass
        problem = f"is not text in UTF-8 (byte {error.start} is 0x{raw[error.start]:02x})"
        raise FileError(path, problem, "save it as CSV in UTF-8, or as .npy") from error


def separator_of(line: str) -> str | None:
    """The separator that the first line of a table shows; None stands for blanks."""
    return next((mark for mark in SEPARATORS if mark in line), None)


def is_comment(line: str) -> bool:
    """Whether a line of a table is a remark, as NumPy and instruments write them above the numbers."""
    return line.lstrip().startswith("#")


def _encoding(raw: bytes) -> str:
    if raw.startswith(_UTF16):
        return "utf-16"
    # Without its mark, UTF-16 still shows: every other byte of digits and separators is zero.
    if len(raw) % 2 == 0 and raw[:2].count(0) == 1:
        return "utf-16-be" if raw[0] == 0 else "utf-16-le"
    return "utf-8-sig"
