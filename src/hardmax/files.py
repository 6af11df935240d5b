"""Files and folders written whole or not at all, and checks of output paths before the work."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FileError, HardmaxError

PathLike = str | os.PathLike[str]


@contextmanager
def replacing(path: PathLike, *, folder_with: str | None = None) -> Iterator[Path]:
    """Temporary path beside ``path``; the file written there replaces ``path`` when the block succeeds.

    The temporary lies in the same folder, so the last step is one rename: a reader sees the old file or the new one,
    never half of either. When the block fails, the temporary is removed and ``path`` stays as it was.

    Parameters
    ----------
    folder_with
        The block makes a folder, and this is the name of a file in it. An existing folder is replaced only
        when it holds that file too, so that a mistaken path cannot delete something else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "note.txt")) as draft:
    ...         _ = draft.write_text("whole")
    ...     print(Path(folder, "note.txt").read_text(), len(os.listdir(folder)))
    whole 1
    """
    target = require_writable(path, folder_with=folder_with)
    # The suffix stays last: writers such as ffmpeg choose the format by it.
    draft = target.with_name(f".{target.stem[:60]}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield draft
        _put_in_place(draft, target)
    except HardmaxError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        _remove(draft)


def require_writable(path: PathLike, *, folder_with: str | None = None) -> Path:
    """Resolved location of ``path``, after a check that a file can be written there.

    Call it before a long computation, so that the error does not come at its end.
    """
    try:
        target = Path(path).expanduser().resolve()  # a link keeps pointing at the file that is replaced
        _refuse_unwritable(path, target, folder_with)
    except FileError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error
    except (ValueError, RuntimeError) as error:  # a NUL byte in the name, a home folder that is not known
        raise FileError(repr(path), f"is no name for a file ({error})", "choose another name") from error
    return target


def write_text(path: PathLike, text: str) -> Path:
    """Write ``text`` in UTF-8, whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def write_bytes(path: PathLike, data: bytes) -> Path:
    """Write ``data``, whole or not at all."""
    with replacing(path) as draft:
        draft.write_bytes(data)
    return Path(path)


def make_folder(path: PathLike) -> Path:
    """The folder ``path``, created with its parents where it does not exist."""
    folder = Path(path).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = error.strerror or str(error)
        raise FileError(path, f"cannot be made a folder ({problem})", "choose another output folder") from error
    return folder


def require_folder(path: PathLike) -> None:
    """Raise a FileError for a folder that cannot be created or written into; the check creates nothing."""
    folder = Path(path).expanduser()
    there = next((parent for parent in (folder, *folder.absolute().parents) if parent.exists()), None)
    if there is None or not there.is_dir():
        raise FileError(path, f"cannot be made a folder ({there} is a file)", "choose another output folder")
    require_writable(there / secrets.token_hex(8))


def _unwritable(path: PathLike, error: OSError) -> FileError:
    problem = f"cannot be written ({error.strerror or error})"
    return FileError(path, problem, "choose a folder with space and permission")


def _refuse_unwritable(path: PathLike, target: Path, folder_with: str | None) -> None:
    if not target.parent.is_dir():
        raise FileError(path, f"the folder {target.parent} does not exist", f"create it: mkdir -p {target.parent}")
    if target.is_dir():
        replaceable = folder_with is not None and ((target / folder_with).is_file() or not any(target.iterdir()))
        if not replaceable:
            raise FileError(path, "is a folder and would be lost", "give the name of a file, or remove it first")
    elif target.exists() and not target.is_file():
        raise FileError(path, "is not a plain file", "give the name of a file")
    # Permissions are tested by writing: access bits are wrong on network disks and for administrators.
    # The probe has no suffix of its own: left behind by a killed process, it is not taken for an output.
    probe = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    probe.unlink()


def _put_in_place(draft: Path, target: Path) -> None:
    """Rename over the target; an old folder is first renamed, and restored if this fails."""
    if not target.is_dir():
        os.replace(draft, target)
        return
    backup = target.with_name(f".{secrets.token_hex(4)}.old.{target.name}")
    os.replace(target, backup)
    try:
        os.replace(draft, target)
    except BaseException:
        os.replace(backup, target)
        raise
    _remove(backup)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
