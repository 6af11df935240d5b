"""Files and folders that appear whole or not at all, and refusals that come before the work."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import FileError
from ..files import replacing

PathLike = str | os.PathLike[str]


@contextmanager
def atomic_path(path: PathLike, *, folder_with: str | None = None) -> Iterator[Path]:
    """Give a temporary name beside ``path``; what is written there takes the place of ``path`` at the end.

    When the body raises, the temporary is removed and what was at ``path`` before is untouched.

    Parameters
    ----------
    folder_with
        The body makes a folder, and this is the name of a file in it. An existing folder is replaced only
        when it holds that file too, so that a mistaken path cannot delete something else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder, "note.txt")) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print(Path(folder, "note.txt").read_text(), len(os.listdir(folder)))
    whole 1
    """
    target = require_writable(path, folder_with=folder_with)
    if folder_with is None:
        with replacing(target) as temporary:
            yield temporary
        return
    temporary = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    try:
        yield temporary
        _put_in_place(temporary, target)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        problem = f"cannot be written ({error.strerror or error})"
        raise FileError(path, problem, "choose a folder with space and permission") from error
    finally:
        _remove(temporary)


def require_writable(path: PathLike, *, folder_with: str | None = None) -> Path:
    """The real location of ``path``, refused at once when nothing could be written there.

    Call it before a long computation: the refusal comes in a moment instead of at the end.
    """
    try:
        target = Path(path).expanduser().resolve()
        _refuse_unwritable(path, target, folder_with)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        problem = f"cannot be written ({error.strerror or error})"
        raise FileError(path, problem, "choose a folder with space and permission") from error
    except (ValueError, RuntimeError) as error:  # a NUL byte in the name, a home folder that is not known
        raise FileError(repr(path), f"is no name for a file ({error})", "choose another name") from error
    return target


def _refuse_unwritable(path: PathLike, target: Path, folder_with: str | None) -> None:
    if not target.parent.is_dir():
        raise FileError(path, f"the folder {target.parent} does not exist", f"create it: mkdir -p {target.parent}")
    if target.is_dir():
        ours = folder_with is not None and ((target / folder_with).is_file() or not any(target.iterdir()))
        if not ours:
            raise FileError(path, "is a folder and would be lost", "give the name of a file, or remove it first")
    elif target.exists() and not target.is_file():
        raise FileError(path, "is not a plain file", "give the name of a file")
    # Rights are found out by trying: access bits lie on network disks and for administrators.
    probe = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    probe.unlink()


def _put_in_place(temporary: Path, target: Path) -> None:
    """Rename over the target; an old folder is first moved aside and comes back if the rename fails."""
    if not target.exists():
        os.replace(temporary, target)
        return
    aside = target.with_name(f".{secrets.token_hex(4)}.old.{target.name}")
    os.replace(target, aside)
    try:
        os.replace(temporary, target)
    except BaseException:
        os.replace(aside, target)
        raise
    _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
