"""Uploads as files, for readers that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import FileError


@contextmanager
def as_file(path: Path, data: bytes, name: str) -> Iterator[Path]:
    """``data`` lies at ``path`` while the block lasts; what is wrong with it is said of ``name``."""
    path.write_bytes(data)
    try:
        yield path
    except FileError as error:
        raise FileError(name, error.problem, error.remedy) from None
    finally:
        path.unlink(missing_ok=True)
