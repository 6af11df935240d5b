"""Sweeps: every point once, failures kept, resumed without repeating, readable at any time."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hardmax.errors import FileError, InputError
from hardmax.outcomes import Ending, Outcome
from hardmax.sweeps import read_sweep, sweep


def product(n: int, beta: float, random_state: int = 0) -> dict[str, object]:
    return {"value": n * beta + random_state, "outcome": Outcome(Ending.TIME_REACHED, "there")}


def fragile(n: int) -> dict[str, float]:
    if n == 2:
        raise ZeroDivisionError("two is not allowed")
    return {"value": float(n)}


def recorded(n: int, folder: str) -> dict[str, int]:
    with open(Path(folder) / "calls.txt", "a", encoding="utf-8") as file:
        file.write(f"{n}\n")
    return {"value": n}


@pytest.mark.parametrize(("jobs", "backend"), [(1, None), (2, "threading"), (2, "loky"), (1, "sequential")])
def test_every_point_is_a_row(jobs: int, backend: str | None, tmp_path: Path) -> None:
    grid = {"n": [1, 2, 3], "beta": np.array([0.5, 2.0])}
    table = sweep(product, grid, seeds=[0, 1], jobs=jobs, backend=backend, path=tmp_path)
    assert len(table) == 12
    assert (table["value"] == table["n"] * table["beta"] + table["seed"]).all()
    assert set(table["outcome"]) == {"time reached"}
    assert (table["seconds"] >= 0).all()
    assert len(read_sweep(tmp_path)) == 12


def test_failures_are_rows_and_are_tried_again(tmp_path: Path) -> None:
    table = sweep(fragile, {"n": [1, 2, 3]}, path=tmp_path)
    assert table["outcome"].tolist() == ["finished", "failed", "finished"]
    assert table["error"][1] == "ZeroDivisionError: two is not allowed"
    again = sweep(fragile, {"n": [1, 2, 3]}, path=tmp_path)
    assert again["outcome"].tolist() == ["finished", "failed", "finished"]


def test_finished_rows_are_not_run_again(tmp_path: Path) -> None:
    first = sweep(recorded, {"n": [1, 2], "folder": [str(tmp_path)]}, path=tmp_path / "rows")
    second = sweep(recorded, {"n": [1, 2, 3], "folder": [str(tmp_path)]}, path=tmp_path / "rows")
    assert (tmp_path / "calls.txt").read_text().split() == ["1", "2", "3"]
    assert len(first) == 2
    assert second["value"].tolist() == [1, 2, 3]


_SLOW = """
import sys, time
from hardmax.sweeps import sweep

def slow(n):
    print(n, flush=True)
    time.sleep(0.2)
    return {"value": n}

slow.__module__ = "slow"
sweep(slow, {"n": range(40)}, path=sys.argv[1])
"""


def test_a_killed_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    work = subprocess.Popen([sys.executable, "-c", _SLOW, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("*.row.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(work.pid, signal.SIGKILL)
    work.communicate()
    done = read_sweep(tmp_path)
    assert 3 <= len(done) < 40

    calls = []

    def slow(n: int) -> dict[str, int]:
        calls.append(n)
        return {"value": n}

    slow.__module__, slow.__qualname__ = "slow", "slow"
    table = sweep(slow, {"n": range(40)}, path=tmp_path)
    assert table["value"].tolist() == list(range(40))
    assert set(calls).isdisjoint(done["n"])
    assert len(calls) == 40 - len(done)


def test_a_list_of_points() -> None:
    table = sweep(product, [{"n": 1, "beta": 2.0}, {"n": 5, "beta": 1.0}])
    assert table["value"].tolist() == [2.0, 5.0]


def test_bad_sweeps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must have at least one point"):
        sweep(product, {"n": []})
    with pytest.raises(InputError, match="must not use this name"):
        sweep(product, {"seed": [1]})
    with pytest.raises(InputError, match="must hold numbers"):
        sweep(product, {"n": [object()]})
    assert "must give back a mapping" in sweep(lambda n: n, {"n": [1]})["error"][0]
    with pytest.raises(FileError, match="is not a folder"):
        read_sweep(tmp_path / "nothing")
    (tmp_path / "x.row.json").write_text(json.dumps([1, 2]))
    with pytest.raises(FileError, match="is no row of a sweep"):
        read_sweep(tmp_path)
