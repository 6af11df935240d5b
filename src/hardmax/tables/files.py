"""Files that hold a table: text, NPY and Parquet, refused with one wording where they cannot be read.

Text is UTF-8, UTF-16 with or without its mark, or Windows-1252. Charset detectors are not used: on a table of a few
lines they name Big5 or a Cyrillic code page for Windows-1252, and take a single zero byte for UTF-16.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FileError, MissingExtraError
from ..files import PathLike

if TYPE_CHECKING:
    import pandas as pd


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


TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
PACKED = (".gz", ".xz", ".bz2", ".zip")
"""Suffixes of compressed files, behind that of the table."""
_NPY_MAGIC = b"\x93NUMPY"


def require_readable(path: PathLike, readable: Sequence[str], what: str, *, packed: bool = False) -> tuple[Path, str]:
    """The file and its suffix in lower case, refused where ``readable`` does not hold it or the file is not there.

    Parameters
    ----------
    path
        The file.
    readable
        Suffixes that can be read.
    what
        What the file holds, in the plural, for error messages.
    packed
        Whether the file may be compressed; its suffix is then the one before ``.gz``.
    """
    suffix = suffix_of(path, readable, f"{what} of the kind {{}} cannot be read", packed=packed)
    file = Path(path).expanduser()
    if not file.exists():
        raise FileError(path, "there is no such file", "check the name and the folder")
    if not file.is_file():
        raise FileError(path, "is not a file", f"give the name of a file ({', '.join(readable)})")
    return file, suffix


def suffix_of(path: PathLike, known: Sequence[str], problem: str, *, packed: bool = False) -> str:
    """Suffix of a file in lower case; raises a FileError with ``problem`` where it is not among ``known``."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes] or [""]
    suffix = suffixes[-2] if packed and len(suffixes) > 1 and suffixes[-1] in PACKED else suffixes[-1]
    if suffix not in known:
        raise FileError(path, problem.format(suffix or "(no suffix)"), f"use {', '.join(known)}")
    return suffix


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Context in which an OSError becomes a FileError that names the file and a remedy."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise FileError(path, problem, "check the file and its permissions") from error


def file_text(path: PathLike) -> str:
    """Text of a file, in UTF-8, UTF-16 or Windows-1252."""
    with reading(path):
        return decoded(Path(path).read_bytes(), path)


def file_bytes(path: Path) -> bytes:
    """Contents of a file, decompressed where its suffix says so."""
    import bz2
    import gzip
    import lzma
    import zipfile
    import zlib

    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress, ".zip": _only_member}
    with reading(path):
        raw = path.read_bytes()
    try:
        return unpack.get(path.suffix.lower(), bytes)(raw)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        if isinstance(error, FileError):
            raise
        problem = f"is no whole {path.suffix.lower()} file ({error})"
        raise FileError(path, problem, "pack it again; it may be half-written") from error


def read_npy(path: Path) -> np.ndarray:
    """The array in an NPY file, as a memory map of the kind that was saved; objects are refused."""
    with reading(path), open(path, "rb") as file:
        if file.read(len(_NPY_MAGIC)) != _NPY_MAGIC:
            raise FileError(path, "is not an NPY file", "save it with numpy.save(path, array)")
    try:
        # A memory map compares the announced size with the file before anything is allocated.
        values: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OverflowError, TypeError, MemoryError, SyntaxError) as error:
        problem = f"the array is damaged, half-written, empty or made of objects ({error})"
        raise FileError(path, problem, "save it again with numpy.save(path, array) as float64") from error
    if values.dtype.names is None and values.dtype.kind not in "iuf":
        raise FileError(path, f"holds {values.dtype}, not real numbers", "save it as float64")
    return values


def read_parquet(path: Path, *, row_labels: bool = True) -> pd.DataFrame:
    """The table in a Parquet file, its index as first columns; ``row_labels=False`` leaves out an index without name.

    Parameters
    ----------
    path
        The file.
    row_labels
        Whether an index without a name is a column too; it may hold the dates of a series.
    """
    import pandas as pd

    pyarrow, _ = import_pyarrow("reading Parquet files")
    try:
        table = pd.read_parquet(path)
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        problem = f"is no whole Parquet file ({str(error).splitlines()[0]})"
        raise FileError(path, problem, "write it again; it may be half-written") from error
    if not isinstance(table.index, pd.RangeIndex):
        table = table.reset_index(drop=not row_labels and table.index.names == [None])
    table.columns = [str(name) for name in table.columns]
    return table


def import_pyarrow(purpose: str) -> tuple[Any, Any]:
    """pyarrow and its Parquet module, or an error that says how to install them."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("pyarrow", "store", purpose) from None
    return pyarrow, pyarrow.parquet


def _only_member(raw: bytes) -> bytes:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = archive.namelist()
        if len(names) != 1:
            raise ValueError(f"it holds {len(names)} files")
        return archive.read(names[0])
