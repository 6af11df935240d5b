"""Tables from the standard input: ``-`` in the place of a file, and ``hardmax simulate < points.csv``."""

from __future__ import annotations

import os
import select
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import FileError, InputError

NAME = "standard input"
MARK = "-"
"""The name of a file that stands for the standard input."""

# Kinds of files by their first bytes; everything else is text.
_BEGINNINGS = ((b"\x93NUMPY", ".npy"), (b"PAR1", ".parquet"), (b"\x89HDF", ".nc"), (b"CDF", ".nc"))
# An open pipe may never be written to (a service, ssh): without ``-`` the wait for it is short.
_PATIENCE = 0.5
_saved: set[Path] = set()


def read_all() -> bytes:
    """Everything on the standard input, to its end."""
    if int(os.environ.get("WORLD_SIZE", "1") or 1) > 1:
        remedy = "save the table to a file and give its name"
        raise InputError(MARK, NAME, "cannot be shared by several processes", remedy)
    if sys.stdin is None or sys.stdin.closed:
        raise FileError(NAME, "is closed", "pipe a table into the command, or give the name of a file")
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise FileError(NAME, "is empty", "pipe a table into the command, or give the name of a file")
    return data


def offered() -> tuple[bool, str]:
    """Whether there is a table on the standard input that no argument names, and a remark for the user, if any."""
    if sys.stdin is None or sys.stdin.closed or int(os.environ.get("WORLD_SIZE", "1") or 1) > 1:
        return False, ""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor)
    except (OSError, ValueError):  # a stream in memory, as programs that call the command have it
        return _has_more(), ""
    if stat.S_ISREG(kind.st_mode):
        return _has_more(), ""
    if not (stat.S_ISFIFO(kind.st_mode) or stat.S_ISSOCK(kind.st_mode)):
        return False, ""  # a terminal, or /dev/null as in cron
    try:
        ready = bool(select.select([descriptor], [], [], _PATIENCE)[0])
    except OSError:  # Windows has no select for pipes
        return False, ""
    if ready:
        return _has_more(), ""
    return False, f"nothing arrived on the {NAME} within {_PATIENCE:g} s, so it is not read; give {MARK} to wait for it"


def _has_more() -> bool:
    peek = getattr(sys.stdin.buffer, "peek", None)
    if peek is not None:
        return bool(peek(1))
    place = sys.stdin.buffer.tell()
    found = bool(sys.stdin.buffer.read(1))
    sys.stdin.buffer.seek(place)
    return found


@contextmanager
def as_file(data: bytes) -> Iterator[Path]:
    """``data`` in a temporary file that readers of files can open; errors about it name the standard input."""
    with tempfile.TemporaryDirectory(prefix="hardmax-") as folder:
        path = Path(folder) / f"standard-input{_suffix(data)}"
        path.write_bytes(data)
        _saved.add(path)
        try:
            yield path
        except FileError as error:
            if Path(str(error.path)) != path:
                raise
            raise FileError(NAME, error.problem, error.remedy) from error
        finally:
            _saved.discard(path)


def name_of(path: str | os.PathLike[str]) -> str:
    """The name of a file to show: that of the standard input for what was read from there."""
    return NAME if Path(path) in _saved else str(path)


def _suffix(data: bytes) -> str:
    for beginning, suffix in _BEGINNINGS:
        if data.startswith(beginning):
            return suffix
    lines = data.lstrip(b"\xef\xbb\xbf \t\r\n").splitlines()
    if lines and lines[0].startswith((b"{", b"[")):
        return ".jsonl" if len(lines) > 1 and all(line.startswith(b"{") for line in lines[:2]) else ".json"
    return ".csv"
