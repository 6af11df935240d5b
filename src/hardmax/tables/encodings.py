"""Text of files in any common encoding, and the separator and comments of tables."""

from __future__ import annotations

import codecs
from pathlib import Path

from ..errors import FileError
from ..files import PathLike

SEPARATORS = (";", "\t", ",", "|")
"""What may stand between two cells of a line, by precedence: a comma beside a semicolon is a decimal sign."""

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SPREADSHEET = "cp1252"
"""The Windows code page of western Europe, in which spreadsheets save CSV."""


def file_text(path: PathLike) -> str:
    """A file's text, in whatever encoding of these; see :func:`decoded`."""
    return decoded(Path(path).read_bytes(), path)


def decoded(raw: bytes, path: PathLike) -> str:
    """UTF-8, UTF-16, or the code page of spreadsheets; ``path`` is named where it is none of them.

    >>> decoded("café".encode("cp1252"), "menu.csv")
    'café'
    """
    try:
        return raw.decode(_encoding(raw))
    except UnicodeDecodeError as error:
        if b"\0" not in raw:
            try:
                return raw.decode(SPREADSHEET)
            except UnicodeDecodeError:
                pass
        problem = f"is not text in UTF-8 (byte {error.start} is 0x{raw[error.start]:02x})"
        raise FileError(path, problem, "save it as text in UTF-8") from error


def separator_of(line: str) -> str | None:
    """The separator that the first line of a table shows; None stands for blanks."""
    return next((mark for mark in SEPARATORS if mark in line), None)


def is_comment(line: str) -> bool:
    """Whether a line of a table is a remark, as NumPy and instruments write them above the numbers."""
    return line.lstrip().startswith("#")


def _encoding(raw: bytes) -> str:
    if raw.startswith(UTF16_MARKS):
        return "utf-16"
    # Without its mark, UTF-16 still shows: every other byte of digits and separators is zero.
    if len(raw) % 2 == 0 and raw[:2].count(0) == 1:
        return "utf-16-be" if raw[0] == 0 else "utf-16-le"
    return "utf-8-sig"
