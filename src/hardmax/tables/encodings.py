"""Bytes to text: UTF-8, UTF-16 with or without its mark, and Windows-1252.

Charset detectors are not used: on a table of a few lines they name Big5 or a Cyrillic code page for Windows-1252, and
take a single zero byte for UTF-16.
"""

from __future__ import annotations

import codecs

from ..errors import FileError
from ..files import PathLike

SPREADSHEET = "cp1252"
"""The Windows code page of western Europe, in which spreadsheets save CSV."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAMPLE = 2**16
"""Bytes in which zero bytes are counted: enough for any header, and the cost does not grow with the file."""
_ZEROS = 1 / 8
"""Share of zero bytes above which text is UTF-16: ASCII has one half, a Cyrillic header with digits a fifth."""


def encoding_of(raw: bytes) -> str:
    """Name of the encoding of ``raw``; Windows-1252 where it is neither UTF-16 nor UTF-8.

    >>> encoding_of("x;y".encode("utf-16-le")), encoding_of("café".encode("cp1252"))
    ('utf-16-le', 'cp1252')
    """
    if raw.startswith(_UTF16_MARKS):
        return "utf-16"
    unmarked = _unmarked_utf16(raw)
    if unmarked is not None:
        return unmarked
    try:
        raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return SPREADSHEET if b"\0" not in raw else "utf-8-sig"
    return "utf-8-sig"


def decoded(raw: bytes, path: PathLike, encoding: str | None = None, remedy: str = "save it as text in UTF-8") -> str:
    """Text of ``raw`` in ``encoding``, or in the one that :func:`encoding_of` finds; ``path`` is named in errors.

    >>> decoded("café".encode("cp1252"), "menu.csv")
    'café'
    """
    found = encoding or encoding_of(raw)
    try:
        return raw.decode(found).removeprefix("\ufeff")
    except LookupError as error:
        raise FileError(path, f"cannot be read ({error})", 'pass an encoding such as encoding="latin-1"') from error
    except UnicodeError as error:
        name = "UTF-8" if encoding is None else encoding
        raise FileError(path, f"is not text in {name}{_first_bad_byte(raw, error)}", remedy) from error


def _unmarked_utf16(raw: bytes) -> str | None:
    """Byte order of UTF-16 without a mark, which has zero bytes in every other place only; None for other bytes."""
    if len(raw) % 2:
        return None
    sample = raw[:_SAMPLE]
    high, low = sample[::2].count(0), sample[1::2].count(0)
    if not high and low > _ZEROS * len(sample):
        return "utf-16-le"
    if not low and high > _ZEROS * len(sample):
        return "utf-16-be"
    return None


def _first_bad_byte(raw: bytes, error: UnicodeError) -> str:
    """The first byte that is not UTF-8, in brackets, which can be looked up in an editor."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as first:
        return f" (byte {first.start} is 0x{raw[first.start]:02x})"
    return f" ({error})"
