"""Files and folders appear whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from hardmax.errors import FileError
from hardmax.storage.atomic import atomic_path, require_writable


def _write_folder(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "zarr.json").write_text(text)


def test_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with atomic_path(target) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
        assert not target.exists()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_new_file_has_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("")
    with atomic_path(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    usual = stat.S_IMODE((tmp_path / "plain.txt").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == usual


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def interrupted() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_folder_replaces_folder(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    for text in ("first", "second"):
        with atomic_path(target, folder_with="zarr.json") as temporary:
            _write_folder(temporary, text)
        assert (target / "zarr.json").read_text() == text
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_failure_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    _write_folder(target, "old")

    def interrupted() -> None:
        with atomic_path(target, folder_with="zarr.json") as temporary:
            _write_folder(temporary, "half")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        interrupted()
    assert (target / "zarr.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_failing_rename_brings_the_old_folder_back(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    _write_folder(target, "old")
    with pytest.raises(FileError, match="cannot be written"), atomic_path(target, folder_with="zarr.json"):
        pass  # nothing was made, so there is nothing to rename
    assert (target / "zarr.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    target = tmp_path / "thesis.zarr"
    target.mkdir()
    (target / "chapter.tex").write_text("years of work")
    with pytest.raises(FileError, match=r"thesis\.zarr: is a folder and would be lost: .*remove it first"):
        require_writable(target, folder_with="zarr.json")
    with pytest.raises(FileError, match="is a folder"):
        require_writable(target)
    assert (target / "chapter.tex").exists()


def test_link_keeps_pointing(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    with atomic_path(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("folder_with", [None, "zarr.json"])
def test_full_disk_is_a_file_error(tmp_path: Path, folder_with: str | None) -> None:
    def fill_the_disk() -> None:
        with atomic_path(tmp_path / "a.zarr", folder_with=folder_with):
            raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match=r"a\.zarr: cannot be written \(No space left.*space and permission"):
        fill_the_disk()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing/a.txt", r"the folder .*missing does not exist: create it: mkdir -p .*missing"),
        ("file/a.txt", r"the folder .*file does not exist"),
        ("pipe", r"is not a plain file"),
        ("x" * 300, r"cannot be written \(File name too long"),
        ("a\0b", r"is no name for a file"),
    ],
)
def test_hopeless_paths_are_refused_beforehand(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(FileError, match=problem):
        require_writable(f"{tmp_path}/{name}")
    assert sorted(os.listdir(tmp_path)) == before
