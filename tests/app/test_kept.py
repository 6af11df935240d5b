"""Uploads and texts that links keep: bounded, expiring, and reached by hash alone."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

from hardmax.app import kept
from hardmax.app.address_texts import AddressTexts
from hardmax.app.history import MOST_STATES, History
from hardmax.app.kept import MOST_DAYS, Item, Kept
from hardmax.app.uploads import Upload

_TABLES = (".csv",)


def _file(folder: Path, name: str | None) -> Path:
    return folder / f"{name}.upload"


def test_what_is_kept_comes_back_and_nothing_else(tmp_path: Path) -> None:
    store = Kept(tmp_path / "cache")
    upload = Upload("wei\nrd “name”.csv", bytes(range(256)) + b"\n\r\n")
    name = store.keep(upload)
    assert name is not None
    assert Kept(tmp_path / "cache").read(name, _TABLES) == upload
    assert Kept(tmp_path / "cache").keep(upload) == name
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0
    (tmp_path / "secret.upload").write_bytes(_file(tmp_path / "cache", name).read_bytes())
    for other in ("", "../secret", "0" * 40, f"{name}.upload", f"{name}\n", "../" + name, name.upper(), name[:39]):
        assert store.read(other, _TABLES) is None


def test_a_stored_file_passes_the_checks_of_a_new_upload(tmp_path: Path) -> None:
    store = Kept(tmp_path)
    name = store.keep(Upload("table.csv", b"1,2"))
    assert name is not None
    assert store.read(name, (".zip",)) is None
    assert store.read(name, _TABLES, most_bytes=2) is None
    for forged in (b"", b"no head", b"\xff.csv\n1,2", b"../../table.exe\n1,2", b"table.csv\n", b"%" * 10**6 + b"\n1"):
        right = hashlib.sha256(forged).hexdigest()[:40]  # of a file that was put there by hand
        _file(tmp_path, right).write_bytes(forged)
        assert store.read(right, _TABLES) is None
    hidden = b"/etc/../table.csv\n1,2"
    right = hashlib.sha256(hidden).hexdigest()[:40]
    _file(tmp_path, right).write_bytes(hidden)
    assert store.read(right, _TABLES) == Upload("table.csv", b"1,2")


def test_a_file_that_was_changed_is_not_read_and_stored_again(tmp_path: Path) -> None:
    upload = Upload("table.csv", b"1,2")
    name = Kept(tmp_path).keep(upload)
    path = _file(tmp_path, name)
    whole = path.read_bytes()
    path.write_bytes(b"forged")
    assert Kept(tmp_path).read(str(name), _TABLES) is None
    assert Kept(tmp_path).keep(upload) == name
    assert path.read_bytes() == whole


def test_links_and_folders_are_not_followed(tmp_path: Path) -> None:
    upload = Upload("table.csv", b"1,2")
    name = Kept(tmp_path / "cache").keep(upload)
    path = _file(tmp_path / "cache", name)
    secret = path.rename(tmp_path / "secret")  # of the right contents, and still not read
    path.symlink_to(secret)
    assert Kept(tmp_path / "cache").read(str(name), _TABLES) is None
    assert Kept(tmp_path / "cache").keep(upload) == name
    assert not path.is_symlink()
    folder = _file(tmp_path / "cache", "1" * 40)
    folder.mkdir()
    assert Kept(tmp_path / "cache").read("1" * 40, _TABLES) is None


def test_what_is_old_or_too_much_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_FILES", 3)
    store = Kept(tmp_path)
    other = tmp_path / "notes.upload"
    other.write_text("not ours")
    names = []
    for k in range(5):
        names.append(str(store.keep(Upload("table.csv", f"{k}".encode()))))
        moment = time.time() - 1_000 + 10 * k
        os.utime(_file(tmp_path, names[-1]), (moment, moment))
    assert [store.read(name, _TABLES) is not None for name in names] == [False, False, True, True, True]
    assert time.time() - _file(tmp_path, names[-1]).stat().st_mtime < 100  # it was just used
    long_ago = time.time() - (MOST_DAYS + 1) * 86_400
    os.utime(_file(tmp_path, names[-1]), (long_ago, long_ago))
    assert store.read(names[-1], _TABLES) is None
    assert store.keep(Upload("table.csv", b"new")) is not None
    assert not _file(tmp_path, names[-1]).exists()
    assert other.exists()


def test_old_forms_and_halves_of_files_expire_too(tmp_path: Path) -> None:
    ours = ["1" * 40 + ".npy", "." + "2" * 40 + ".0123abcd.upload", "3" * 40 + ".upload"]
    others = ["notes.npy", "4" * 40 + ".txt"]
    for days in (MOST_DAYS - 1, MOST_DAYS + 1):
        for name in (*ours, *others):
            (tmp_path / name).write_bytes(b"1")
            os.utime(tmp_path / name, (time.time() - days * 86_400,) * 2)
        (tmp_path / ("5" * 40 + ".npy")).mkdir(exist_ok=True)  # cannot be removed as a file is
        os.utime(tmp_path / ("5" * 40 + ".npy"), (time.time() - days * 86_400,) * 2)
        Kept(tmp_path).tidy()
        kept_files = {path.name for path in tmp_path.iterdir() if path.is_file()}
        assert kept_files == {*others, *(ours if days < MOST_DAYS else [])}


def test_what_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LARGEST", 100)
    monkeypatch.setattr(kept, "MOST_STORED", 250)
    store = Kept(tmp_path)
    assert store.keep(Upload("table.csv", bytes(100))) is None
    uploads = [Upload("table.csv", f"{k}".encode() * 60) for k in range(4)]
    for k, upload in enumerate(uploads):
        path = _file(tmp_path, store.keep(upload))
        os.utime(path, (time.time() - 100 + k,) * 2)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 250
    assert [_file(tmp_path, store.keep(upload)).exists() for upload in uploads] == [False, True, True, True]
    grown = _file(tmp_path, "2" * 40)
    grown.write_bytes(bytes(101))
    assert store.read("2" * 40, _TABLES) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert Kept(tmp_path / "file").keep(Upload("table.csv", b"1,2")) is None


_EXAMPLES = {"one": ("One", "an example")}
_RANDOM = "".join(map(chr, np.random.default_rng(0).integers(0x4E00, 0x9000, size=9_000)))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("an example", {"example"}),
        ("short & sweet", {"text"}),
        ("", {"text"}),
        ("very long " * 1_000, {"text-packed"}),
        (_RANDOM, {"text-kept"}),
        (f"line\r\nline\n{_RANDOM}", {"text-kept"}),
    ],
)
def test_texts_come_back_from_an_address(text: str, keys: set[str], tmp_path: Path) -> None:
    texts = AddressTexts(_EXAMPLES, 20_000, Kept(tmp_path))
    query = texts.query(text, "text")
    assert set(query) == keys
    assert texts.read(query, "text") == text
    assert not texts.missing(query, "text")
    assert len(urlencode(query)) <= 5_600
    said = texts.said(text, "text", Item("text"))
    assert said == (Item("text").kept if keys == {"text-kept"} else "")


@pytest.mark.parametrize("begin", ["MZ", "%PDF", "\0", "\ufeff"])
def test_a_text_that_would_be_read_otherwise_is_not_kept(begin: str, tmp_path: Path) -> None:
    texts = AddressTexts(_EXAMPLES, 20_000, Kept(tmp_path))
    assert texts.query(begin + _RANDOM, "text") == {"text": ""}
    assert texts.said(begin + _RANDOM, "text", Item("text")) == Item("text").not_kept


def test_a_text_that_is_not_stored_is_missing(tmp_path: Path) -> None:
    texts = AddressTexts(_EXAMPLES, 20_000, Kept(tmp_path))
    query = texts.query(_RANDOM, "text")
    for path in tmp_path.iterdir():
        path.unlink()
    assert texts.missing(query, "text")
    assert texts.read(query, "text") is None
    table = Kept(tmp_path).keep(Upload("table.csv", b"1,2"))
    assert texts.missing({"text-kept": str(table)}, "text")  # stored, and no text


def test_history_is_bounded() -> None:
    shown: list[int] = []
    history = History(0, shown.append, reset=0, weigh=lambda k: {k: 10}, most_bytes=100)
    for k in range(1, 2 * MOST_STATES):
        history.record(k)
    assert len(history._states) == 10
    history.step(-100)
    assert shown == [2 * MOST_STATES - 10]
    assert history.undo.disabled
    history.record(1)
    assert history.redo.disabled


def test_an_object_of_several_states_is_weighed_once_and_a_player_makes_no_step() -> None:
    shown: list[int] = []
    history = History(0, shown.append, reset=0, weigh=lambda _: {7: 90}, most_bytes=100)
    for k in range(1, 20):
        history.record(k)
    history.amend(100)
    assert history.current == 100
    history.step(-1)
    history.step(1)
    assert shown == [18, 100]


def test_a_change_that_is_taken_back_at_once_is_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    now = [10.0]
    monkeypatch.setattr("hardmax.app.history.time.monotonic", lambda: now[0])
    history = History(0, shown.append, reset=0, same=lambda one, other: one % 100 == other % 100)
    history.record(1, "slider")
    now[0] += 5
    for k in (2, 3, 101):  # 101 shows the same as 1
        history.record(k, "slider")
    assert history._states == [0, 1]
    history.record(4, "slider")  # a step of its own, though it follows at once
    assert history._states == [0, 1, 4]
    history.step(-1)
    assert shown == [1]
    history.step(-1)
    assert history.undo.disabled
    for k in (5, 0):  # another control would be two steps
        history.record(k, str(k))
    assert history._states == [0, 5, 0]
