"""ZIP archives of a few known files, written for downloads and read in memory."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from ..errors import FileError
from .uploads import Upload

MOST_UNPACKED = 40 * 2**20
"""Bytes after unpacking, eight times the largest upload; bounds the memory that an archive can take."""
_MOST_ENTRIES = 64
"""Files in an archive; those written here have two or three."""
_DATE = (2020, 1, 1, 0, 0, 0)
"""A fixed date, so that the same files give the same bytes."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """Bytes of a ZIP archive of these files; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpack(upload: Upload, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """Contents of the files of an archive that end in one of ``suffixes``, by name without folder.

    Folders, other files and paths inside the archive are ignored, and nothing is written to disk.
    """
    found: dict[str, bytes] = {}
    left = MOST_UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(upload.data)) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_ENTRIES:
                raise _refused(upload, f"holds {len(entries):,} files and at most {_MOST_ENTRIES} are read here")
            for entry in entries:
                name = PurePosixPath(entry.filename.replace("\\", "/")).name
                if entry.is_dir() or PurePosixPath(name).suffix.lower() not in suffixes:
                    continue
                with archive.open(entry) as stream:
                    data = stream.read(left + 1)  # the size that the entry claims may be wrong
                if len(data) > left:
                    most = f"{MOST_UNPACKED / 2**20:.0f} MB"
                    raise _refused(upload, f"unpacks to more than {most}")
                left -= len(data)
                found[name] = data
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, ValueError) as error:
        raise _refused(upload, f"is no ZIP archive that can be read ({error})") from None
    if not found:
        raise _refused(upload, f"holds no file that ends in {' or '.join(suffixes)}")
    return found


def _refused(upload: Upload, problem: str) -> FileError:
    return FileError(upload.name, problem, "upload an archive that was downloaded from here, or one of its files")
