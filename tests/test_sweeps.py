"""Sweeps: every point once, failures recorded, resumed without repeating, readable at any time."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
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


_MANY = """
import sys
from pathlib import Path
from hardmax.sweeps import sweep

folder, count, backend = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def counted(n):
    # Appending so little is one indivisible write, whoever else does the same.
    with open(folder / "calls.txt", "a", encoding="utf-8") as file:
        file.write(f"{n}\\n")
    return {"value": n}

if __name__ == "__main__":
    if backend == "dask":
        from distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster):
            sweep(counted, {"n": range(count)}, path=folder / "rows", backend="dask")
    else:
        sweep(counted, {"n": range(count)}, path=folder / "rows")
"""


@pytest.mark.parametrize(
    ("count", "backend"), [(400, "none"), *(pytest.param(n, "dask", marks=pytest.mark.slow) for n in (60, 1000))]
)
def test_a_killed_sweep_goes_on_where_it_stopped(count: int, backend: str, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(_MANY, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path), str(count), backend]
    # In a session of its own, so that the workers of a cluster are killed with it.
    work = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("rows/[!.]*.row.json"))) < count // 3 and time.monotonic() < deadline:
        time.sleep(0.002)
    os.killpg(work.pid, signal.SIGKILL)
    work.wait()
    done = read_sweep(tmp_path / "rows")
    assert count // 3 <= len(done) < count

    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    table = read_sweep(tmp_path / "rows")
    assert sorted(table["n"]) == list(range(count))
    assert sorted(table["value"]) == list(range(count))
    calls = [int(n) for n in (tmp_path / "calls.txt").read_text().split()]
    assert all(calls.count(n) == 1 for n in done["n"]), "a finished row was run again"
    assert pd.read_parquet(tmp_path / "rows" / "rows.parquet")["n"].nunique() == count


def test_workers_of_dask_make_the_rows(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    # Workers in threads of this process: real ones are killed with a sweep in `make slow`.
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
        table = sweep(where, {"n": [1, 2, 3]}, backend="dask", path=tmp_path)
    assert table["n"].tolist() == [1, 2, 3]
    assert table["in_a_thread"].all()
    assert len(read_sweep(tmp_path)) == 3


def test_what_a_killed_process_left_is_no_row(tmp_path: Path) -> None:
    sweep(fragile, {"n": [1, 3]}, path=tmp_path)
    (tmp_path / ".0123abcd.row.json").touch()
    assert sorted(read_sweep(tmp_path)["n"]) == [1, 3]
    assert len(sweep(fragile, {"n": [1, 3, 4]}, path=tmp_path)) == 3


def deadly(n: int) -> dict[str, int]:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": n}


def test_a_worker_that_dies_costs_only_its_own_run(tmp_path: Path) -> None:
    table = sweep(deadly, {"n": range(8)}, jobs=2, path=tmp_path)
    assert table["outcome"].tolist() == ["finished"] * 3 + ["failed"] + ["finished"] * 4
    assert table["error"][3].startswith("the worker died (")
    assert not list(tmp_path.glob("*.started"))


def where(n: int) -> dict[str, object]:
    return {"in_a_thread": threading.current_thread() is not threading.main_thread()}


def test_an_outer_configuration_of_joblib_decides() -> None:
    assert not sweep(where, {"n": [1, 2]})["in_a_thread"].any()
    with joblib.parallel_config("threading", n_jobs=2):
        assert sweep(where, {"n": [1, 2]})["in_a_thread"].all()


@pytest.mark.parametrize("backend", ["dask", "ray", "nothing"])
def test_a_backend_that_is_not_there(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=f"backend cannot be used .*, got '{backend}': install it and start"):
        sweep(where, {"n": [1, 2]}, backend=backend)


def mixed(n: int) -> dict[str, object]:
    return {"word": "one" if n == 1 else 2.5, "list": [n, n], "maybe": None if n == 1 else n}


def test_the_table_is_parquet(tmp_path: Path) -> None:
    sweep(mixed, {"n": [1, 2]}, path=tmp_path)
    table = pd.read_parquet(tmp_path / "rows.parquet").sort_values("n")
    assert table["n"].tolist() == [1, 2]
    assert table["word"].tolist() == ['"one"', "2.5"]
    assert [list(row) for row in table["list"]] == [[1, 1], [2, 2]]
    assert table["maybe"].isna().tolist() == [True, False]
    assert table["outcome"].tolist() == ["finished"] * 2
    assert (table["seconds"] >= 0).all()


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
    assert "must return a mapping" in sweep(lambda n: n, {"n": [1]})["error"][0]
    with pytest.raises(FileError, match="is not a folder"):
        read_sweep(tmp_path / "nothing")
    (tmp_path / "x.row.json").write_text(json.dumps([1, 2]))
    with pytest.raises(FileError, match="is no row of a sweep"):
        read_sweep(tmp_path)
