"""Uploads that links keep: bounded files in a cache folder of this machine, named by a hash of their contents.

A name in an address is a hash and nothing else, so that no address reaches another file; what is read must have that
hash. Files expire, and the oldest are removed when there are too many or too large ones.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import time
from pathlib import Path

import numpy as np

from ..errors import FileError
from ..files import make_folder, write_bytes

MOST_DAYS = 30
"""Days after its last use at which a file expires."""
MOST_FILES = 300
"""Files kept at once."""
MOST_BYTES = 200 * 2**20
"""Bytes kept at once: forty of the largest uploads."""
LARGEST = 8 * 2**20
"""Bytes of one file: an upload of 5 MB of short numbers is at most 8 MB of binary ones."""
WORDS = f"The link keeps your tokens: they are stored on this machine for {MOST_DAYS} days after their last use."
_NAME = re.compile(r"[0-9a-f]{40}")


def cache_folder() -> Path:
    """The folder of the explorer in the user's cache, which may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "hardmax" / "explorer"


class Kept:
    """Arrays kept under hashes of their contents, in ``folder`` (that of the user when left out)."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = cache_folder() if folder is None else folder

    def keep(self, array: np.ndarray) -> str | None:
        """The name under which the array is kept; None where it is too large or the folder cannot be written."""
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False)
        data = buffer.getvalue()
        if len(data) > LARGEST:
            return None
        name = _hash(data)
        path = self._folder / f"{name}.npy"
        try:
            make_folder(self._folder)
            if path.is_file():
                os.utime(path)
            else:
                write_bytes(path, data)
            self._tidy(spare=name)
        except (FileError, OSError):
            return None
        return name

    def read(self, name: str) -> np.ndarray | None:
        """The array kept under a name, shape as it was; None if there is none, or it has expired."""
        if not _NAME.fullmatch(name):
            return None
        path = self._folder / f"{name}.npy"
        try:
            if path.is_symlink() or path.stat().st_size > LARGEST or _age(path) > MOST_DAYS:
                return None
            data = path.read_bytes()
            if _hash(data) != name:
                return None
            os.utime(path)
            array: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
        except (OSError, ValueError):
            return None
        return array

    def _tidy(self, spare: str) -> None:
        """Remove what has expired, and the oldest files beyond the bounds, never ``spare``."""
        files = [path for path in self._folder.glob("*.npy") if _NAME.fullmatch(path.stem) and path.stem != spare]
        files.sort(key=_age)
        room = MOST_BYTES - LARGEST
        for rank, path in enumerate(files):
            room -= path.stat().st_size
            if rank >= MOST_FILES - 1 or room < 0 or _age(path) > MOST_DAYS:
                path.unlink(missing_ok=True)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


def _age(path: Path) -> float:
    """Days since the last use of a file; no age for one that another process has just removed."""
    try:
        return (time.time() - path.stat().st_mtime) / 86_400
    except FileNotFoundError:
        return 0.0
