"""The files that a command is asked to write: refused before the work, where they cannot be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import FileError
from ..files import require_writable


def require_target(option: str, path: Path | None, known: Sequence[str], *, folder_with: str | None = None) -> None:
    """Refuse a name whose suffix the option does not know, or that cannot be written; None asks for nothing.

    A folder may be replaced if it has the file ``folder_with``.
    """
    if path is None:
        return
    if path.suffix.lower() not in known:
        problem = f"{option} cannot write {path.suffix or 'a file without suffix'}"
        raise FileError(path, problem, f"use {', '.join(known)}")
    require_writable(path, folder_with=folder_with)
