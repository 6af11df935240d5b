"""Files and folders appear whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from hardmax.errors import FileError
from hardmax.files import make_folder, replacing, require_writable, write_bytes, write_text


def test_text_and_bytes_arrive(tmp_path):
    write_text(tmp_path / "a.txt", "größer\n")
    write_bytes(tmp_path / "b.bin", b"\x00\x01")
    assert (tmp_path / "a.txt").read_bytes() == "größer\n".encode()
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\x01"


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted():
        with replacing(path) as draft:
            draft.write_text("half")
            assert path.read_text() == "old"
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_draft_keeps_the_suffix_by_which_writers_choose_the_format(tmp_path):
    with replacing(tmp_path / "film.mp4") as draft:
        assert draft.suffix == ".mp4"
        assert draft.parent == tmp_path
        draft.write_bytes(b"x")


def test_a_link_keeps_pointing_at_the_file_that_is_replaced(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_files_get_the_usual_permissions(tmp_path):
    write_text(tmp_path / "ours.txt", "x")
    (tmp_path / "plain.txt").write_text("x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours.txt", "plain.txt")}
    assert len(modes) == 1


@pytest.mark.parametrize("place", ["absent/a.txt", "folder", "file/a.txt"])
def test_places_that_cannot_be_written(tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match=place):
        write_text(tmp_path / place, "x")


def test_a_writer_that_fails_is_reported_with_the_path(tmp_path):
    with (
        pytest.raises(FileError, match=r"a\.txt: cannot be written \(No space left"),
        replacing(tmp_path / "a.txt"),
    ):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_make_folder(tmp_path):
    assert make_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="cannot be made a folder"):
        make_folder(tmp_path / "file")


def _write_folder(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "zarr.json").write_text(text)


def test_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
        assert not target.exists()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def interrupted() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_folder_replaces_folder(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    for text in ("first", "second"):
        with replacing(target, folder_with="zarr.json") as temporary:
            _write_folder(temporary, text)
        assert (target / "zarr.json").read_text() == text
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_failure_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    _write_folder(target, "old")

    def interrupted() -> None:
        with replacing(target, folder_with="zarr.json") as temporary:
            _write_folder(temporary, "half")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        interrupted()
    assert (target / "zarr.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_failing_rename_brings_the_old_folder_back(tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    _write_folder(target, "old")
    with pytest.raises(FileError, match="cannot be written"), replacing(target, folder_with="zarr.json"):
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


@pytest.mark.parametrize("folder_with", [None, "zarr.json"])
def test_full_disk_is_a_file_error(tmp_path: Path, folder_with: str | None) -> None:
    def fill_the_disk() -> None:
        with replacing(tmp_path / "a.zarr", folder_with=folder_with):
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
