"""Files appear whole or not at all."""

import os
import stat

import pytest

from hardmax.errors import FileError
from hardmax.files import make_folder, replacing, write_bytes, write_text


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
