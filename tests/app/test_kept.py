"""Uploads that links keep: bounded, expiring, and reached by hash alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from hardmax.app import kept
from hardmax.app.history import MOST_STATES, History
from hardmax.app.kept import MOST_DAYS, Kept


def test_what_is_kept_comes_back_and_nothing_else(tmp_path: Path) -> None:
    store = Kept(tmp_path / "cache")
    array = np.random.default_rng(0).normal(size=(50, 3))
    name = store.keep(array)
    assert name is not None
    assert np.array_equal(store.read(name), array)
    assert store.keep(array) == name
    (tmp_path / "secret.npy").write_bytes((tmp_path / "cache" / f"{name}.npy").read_bytes())
    for other in ("", "../secret", "0" * 40, f"{name}.npy", f"{name}\n", "../" + name):
        assert store.read(other) is None
    (tmp_path / "cache" / f"{name}.npy").write_bytes(b"forged")
    assert store.read(name) is None
    link = tmp_path / "cache" / ("1" * 40 + ".npy")
    link.symlink_to(tmp_path / "secret.npy")
    assert store.read("1" * 40) is None


def test_what_is_old_or_too_much_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_FILES", 3)
    store = Kept(tmp_path)
    names = []
    for k in range(5):
        names.append(store.keep(np.full((2, 2), float(k))))
        moment = time.time() - 1_000 + 10 * k
        os.utime(tmp_path / f"{names[-1]}.npy", (moment, moment))
    assert [store.read(name) is not None for name in names] == [False, False, True, True, True]
    long_ago = time.time() - (MOST_DAYS + 1) * 86_400
    os.utime(tmp_path / f"{names[-1]}.npy", (long_ago, long_ago))
    assert store.read(names[-1]) is None
    monkeypatch.setattr(kept, "LARGEST", 100)
    assert store.keep(np.zeros((100, 2))) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert Kept(tmp_path / "file").keep(np.zeros((2, 2))) is None


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
