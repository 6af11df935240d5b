"""Uploads that links keep: bounded files in a cache folder of this machine, named by a hash of their contents.

A name in an address is a hash and nothing else, so that no address reaches another file; what is read must have that
hash, and passes the checks of a new upload. Files expire, and the oldest are removed when there are too many or too
large ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary

from ..errors import FileError
from ..files import make_folder, write_bytes
from .uploads import MOST_BYTES, Upload, checked

MOST_DAYS = 30
"""Days after its last use at which a file expires."""
MOST_FILES = 300
"""Files stored at once."""
MOST_STORED = 200 * 2**20
"""Bytes stored at once: forty of the largest uploads."""
LARGEST = 8 * 2**20
"""Bytes of one file: an upload has at most 5 MB, and 100,000 tokens in space written to the last digit have 6 MB."""
_NAME = re.compile(r"[0-9a-f]{40}")
_SUFFIX = ".upload"
_OURS = re.compile(r"[0-9a-f]{40}\.(upload|npy)|\.[0-9a-f]{40}\.[0-9a-f]{8}\.upload")
"""Names of all files that expire: uploads, those of development versions, and those that a killed server left half."""
_LONGEST_HEAD = 1_000
"""Bytes of the line that holds the name of the file; names are shortened to 60 characters."""

UPLOADS = f"The link keeps what you upload: it is stored on this machine for {MOST_DAYS} days after its last use."
"""Shown beside a button that takes files."""


@dataclass(frozen=True)
class Item:
    """What a link keeps, by the noun that sentences on the page use."""

    noun: str
    several: bool = False
    """Whether the noun is a plural."""
    remedy: str = "upload it again"
    """What to do when it is no longer stored."""

    @property
    def kept(self) -> str:
        """The sentence that says where it is stored and for how long."""
        stored = "they are stored" if self.several else "it is stored"
        last = "their" if self.several else "its"
        return f"The link keeps your {self.noun}: {stored} on this machine for {MOST_DAYS} days after {last} last use."

    @property
    def not_kept(self) -> str:
        """The sentence for what could not be stored."""
        they, stay = ("they", "stay") if self.several else ("it", "stays")
        return (
            f"The link does not keep your {self.noun}, because storing on this machine was not possible: "
            f"{they} {stay} with this visit."
        )

    @property
    def gone(self) -> str:
        """The sentence for what is not stored, or no longer."""
        is_not = "are not" if self.several else "is not"
        return (
            f"The {self.noun} of this link {is_not} stored on this machine, or no longer: uploads are removed "
            f"{MOST_DAYS} days after their last use. To go on, {self.remedy}."
        )


class Kept:
    """Uploads stored under hashes of their names and contents, in ``folder`` (that of the user when left out)."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = _cache_folder() if folder is None else folder
        self._names: WeakKeyDictionary[Upload, str | None] = WeakKeyDictionary()

    def keep(self, upload: Upload) -> str | None:
        """The name under which the upload is stored; None where it is too large or the folder cannot be written."""
        if upload not in self._names:
            self._names[upload] = self._store(upload)
        return self._names[upload]

    def read(self, name: str, accept: tuple[str, ...], most_bytes: int = MOST_BYTES) -> Upload | None:
        """The upload stored under a name, checked as when it came; None if there is none, or it has expired."""
        data = self._contents(name)
        if data is None:
            return None
        head, _, body = data.partition(b"\n")
        try:
            upload = checked(unquote(head[:_LONGEST_HEAD].decode("ascii")), body, accept, most_bytes)
        except (ValueError, FileError):
            return None
        self._names[upload] = name
        return upload

    def _store(self, upload: Upload) -> str | None:
        data = quote(upload.name, errors="replace").encode() + b"\n" + upload.data  # quoted, a name is one line
        if len(data) > LARGEST:
            return None
        name = _hash(data)
        try:
            if self._contents(name) is None:  # also where a file of this name was changed
                make_folder(self._folder)
                self._folder.chmod(stat.S_IRWXU)  # uploads are for the eyes of this user
                if self._path(name).is_symlink():  # or its target would be written
                    self._path(name).unlink()
                write_bytes(self._path(name), data)
                self.tidy(spare=name)
        except (FileError, OSError):
            return None
        return name

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"

    def _contents(self, name: str) -> bytes | None:
        """Contents of a file that has not expired and has the hash of its name; its age begins anew."""
        if not _NAME.fullmatch(name):
            return None
        path = self._path(name)
        try:
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST or _age(found) > MOST_DAYS:
                return None
            data = path.read_bytes()
            if _hash(data) != name:
                return None
            os.utime(path)
        except OSError:
            return None
        return data

    def tidy(self, spare: str = "") -> None:
        """Remove what has expired, and the oldest files beyond the bounds, never ``spare``."""
        files = []
        for path in self._folder.glob("*"):
            if _OURS.fullmatch(path.name) and path.stem != spare:
                with contextlib.suppress(FileNotFoundError):  # another process has just removed it
                    files.append((path, path.lstat()))
        files.sort(key=lambda file: _age(file[1]))
        room = MOST_STORED - LARGEST
        for rank, (path, found) in enumerate(files):
            room -= found.st_size
            if rank >= MOST_FILES - 1 or room < 0 or _age(found) > MOST_DAYS:
                with contextlib.suppress(OSError):  # of another user, or a folder: it stays, and the others go
                    path.unlink()


def _cache_folder() -> Path:
    """The folder of the explorer in the user's cache, which may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "hardmax" / "explorer"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


def _age(found: os.stat_result) -> float:
    """Days since the last use of a file."""
    return (time.time() - found.st_mtime) / 86_400
