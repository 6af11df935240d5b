"""Writing files whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FileError, HardmaxError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``path``; what is written there takes its place when the block succeeds.

    The temporary file lies in the same folder, so the last step is one rename: a reader sees the old file or
    the new one, never half of either. When the block fails, the temporary file is removed and ``path`` stays
    as it was.
    """
    target = Path(path).expanduser()
    folder = target.parent
    if not folder.is_dir():
        raise FileError(path, f"the folder {folder} does not exist", "create it or choose another path")
    if target.exists() and not target.is_file():
        raise FileError(path, "is not a plain file", "choose the path of a file")
    target = target.resolve()  # a link keeps pointing at the file that is replaced
    # The suffix stays last: writers such as ffmpeg choose the format by it.
    draft = target.with_name(f".{target.stem[:60]}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield draft
        os.replace(draft, target)
    except HardmaxError:
        raise
    except OSError as error:
        problem = error.strerror or str(error)
        raise FileError(path, f"cannot be written ({problem})", "choose a folder with space and permission") from error
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write ``text`` in UTF-8, whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write ``data``, whole or not at all."""
    with replacing(path) as draft:
        draft.write_bytes(data)
    return Path(path)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder ``path``, made with its parents when it is not there yet."""
    folder = Path(path).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = error.strerror or str(error)
        raise FileError(path, f"cannot be made a folder ({problem})", "choose another output folder") from error
    return folder
