"""The text in a file whose encoding nobody has named."""

from __future__ import annotations

import codecs

from .errors import FileError
from .files import PathLike

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SPREADSHEET = "cp1252"
"""The Windows code page of western Europe, in which spreadsheets save CSV."""


def decoded(raw: bytes, path: PathLike) -> str:
    """UTF-8, UTF-16 with its mark, or the code page of spreadsheets; ``path`` is named where it is none of them.

    >>> decoded("café".encode("cp1252"), "menu.csv")
    'café'
    """
    try:
        return raw.decode("utf-16" if raw.startswith(UTF16_MARKS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" not in raw:
            try:
                return raw.decode(SPREADSHEET)
            except UnicodeDecodeError:
                pass
        problem = f"is not text in UTF-8 (byte {error.start} is 0x{raw[error.start]:02x})"
        raise FileError(path, problem, "save it as text in UTF-8") from error
