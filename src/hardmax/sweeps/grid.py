"""Sweeps: a function on every point of a grid, by joblib, with one small file per run.

Each finished row is a small JSON file that appears whole or not at all, written by the worker that ran it. A sweep that
is killed therefore loses only unfinished rows, every joblib backend can be used (also one on several machines with a
common folder), and a table can be read while the sweep is running. When a sweep ends, all rows are written to one
Parquet table beside them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import FileError, InputError, MissingExtraError
from ..files import make_folder, replacing, write_text
from ..outcomes import Outcome
from ..progress import Ticker
from ..tables.files import import_pyarrow

if TYPE_CHECKING:
    import pandas as pd


SUFFIX = ".row.json"
TABLE = "rows.parquet"
OWN = ("seed", "outcome", "seconds", "error")
Row = dict[str, Any]


def plain(value: object) -> Any:
    """The value as numbers, strings, lists and dictionaries, for JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Outcome):
        return value.ending.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) or hasattr(value, "tolist"):
        return np.asarray(value).tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, Iterable):
        return [plain(entry) for entry in value]
    raise InputError(
        "grid",
        f"a {type(value).__name__}",
        "must hold numbers, words, arrays or lists of them",
        "build other objects inside the function from such values",
    )


def key_of(function: str, point: Row) -> str:
    """The name of a point's row: the same for the same function and values, in every process."""
    words = json.dumps([function, point], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:24]


def finished(folder: Path) -> dict[str, Row]:
    """The rows that are in a folder, by their keys; hidden files are drafts of processes that were killed."""
    rows = {}
    for file in folder.glob("[!.]*" + SUFFIX):
        try:
            row = json.loads(file.read_text(encoding="utf-8"))
            _ = row["parameters"], row["outcome"], row["results"]
        except (ValueError, TypeError, KeyError) as error:
            raise FileError(
                file, f"is no row of a sweep ({error})", "remove this file and run the sweep again"
            ) from None
        rows[file.name.removesuffix(SUFFIX)] = row
    return rows


def run_one(function: Callable[..., object], point: Row, file: str) -> None:
    """Run one point and write its row: its results, outcome and seconds; a failure is a row too."""
    arguments = {("random_state" if name == "seed" else name): value for name, value in point.items()}
    began = time.perf_counter()
    row: Row = {"parameters": point, "results": {}, "outcome": "finished", "error": None}
    try:
        found = function(**arguments)
        if not isinstance(found, Mapping):
            problem = "must return a mapping of numbers and words"
            raise InputError("function", type(found).__name__, problem, 'return for example {"distance": 0.1}')
        results = {str(name): plain(value) for name, value in found.items()}
        row["outcome"] = results.pop("outcome", "finished")
        row["results"] = results
    except Exception as error:
        row["outcome"] = "failed"
        row["error"] = "".join(traceback.format_exception_only(error)).strip()
    row["seconds"] = round(time.perf_counter() - began, 6)
    write_row(file, row)


def write_row(file: str, row: Row) -> None:
    """Write a row, whole or not at all."""
    write_text(file, json.dumps(row, indent=1) + "\n")


def as_table(rows: list[Row]) -> pd.DataFrame:
    """Rows as a table: parameters, results, outcome, seconds, error."""
    import pandas as pd

    flat = [
        {
            **row["parameters"],
            **row["results"],
            "outcome": row["outcome"],
            "seconds": row.get("seconds", math.nan),
            "error": row.get("error"),
        }
        for row in rows
    ]
    return pd.DataFrame(flat)


def write_table(folder: Path, rows: dict[str, Row]) -> None:
    """All rows as one Parquet table, if pyarrow is there to write it; the row files remain the record."""
    try:
        pyarrow, parquet = import_pyarrow("writing the table of a sweep")
    except MissingExtraError:
        return
    table = as_table([row for _, row in sorted(rows.items())])
    columns = {}
    for name in table.columns:
        values = [None if value is None or value != value else value for value in table[name].tolist()]
        try:
            columns[str(name)] = pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # values of several kinds: their JSON
            columns[str(name)] = pyarrow.array([None if value is None else json.dumps(value) for value in values])
    with replacing(folder / TABLE) as draft:
        parquet.write_table(pyarrow.table(columns), draft)


_STARTED = ".started"
# Backends with workers on other machines, which set the number of workers themselves.
_OF_CLUSTERS = ("dask", "ray")
# What the backends raise when a worker is gone: those of loky, of concurrent.futures, of dask and of ray.
_DEATHS = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "WorkerCrashedError")


class Task(NamedTuple):
    """One run and the file of its row."""

    function: Callable[..., object]
    point: Row
    file: str

    def perform(self) -> None:
        """Run the point. A marker file exists meanwhile: where a worker dies, it names the run that was in it."""
        mark = Path(self.file + _STARTED)
        mark.touch()
        run_one(self.function, self.point, self.file)
        mark.unlink(missing_ok=True)

    @property
    def was_started(self) -> bool:
        """Whether this run was begun and not finished."""
        return Path(self.file + _STARTED).exists()


def run_all(tasks: list[Task], jobs: int, backend: str | None, ticker: Ticker) -> None:
    """Run all tasks; each writes its row to its file."""
    for task in tasks:  # rows that failed are tried again; marks are those of a sweep that was killed
        Path(task.file).unlink(missing_ok=True)
        Path(task.file + _STARTED).unlink(missing_ok=True)
    if jobs == 1 and backend is None and not _inside_parallel_config():
        for task in tasks:
            run_one(*task)
            ticker.advance()
        return
    while tasks:
        try:
            _in_parallel(tasks, jobs, backend, ticker)
            return
        except Exception as error:
            if type(error).__name__ not in _DEATHS:
                raise
            left = [task for task in tasks if not Path(task.file).exists()]
            suspects = [task for task in left if task.was_started]
            # Without a marker the backend itself is broken, and retrying would not end.
            if not suspects:
                raise
            for task in suspects:
                _alone(task)
                ticker.advance()
            tasks = [task for task in left if not task.was_started and not Path(task.file).exists()]


def _inside_parallel_config() -> bool:
    """Whether the caller has chosen a backend by ``joblib.parallel_config``."""
    try:
        from joblib.parallel import LokyBackend, get_active_backend
    except ImportError:
        return False
    backend, jobs = get_active_backend()
    return not isinstance(backend, LokyBackend) or jobs not in (None, 1)


def _in_parallel(tasks: list[Task], jobs: int, backend: str | None, ticker: Ticker) -> None:
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("joblib", "meanfield", "running several jobs at a time") from None
    many: int | None = -1 if backend in _OF_CLUSTERS and jobs == 1 else jobs
    if backend is None and _inside_parallel_config():
        many = None
    with _configured(joblib, backend) if backend else nullcontext():
        calls = (joblib.delayed(task.perform)() for task in tasks)
        for _ in _parallel(joblib, many)(calls):
            ticker.advance()


def _configured(joblib: Any, backend: str) -> Any:
    """The backend of that name, or an error that says why it cannot be used."""
    try:
        if backend == "ray":
            from ray.util.joblib import register_ray  # type: ignore[import-not-found]

            register_ray()
        return joblib.parallel_config(backend=backend)
    except (ImportError, ValueError) as error:
        problem = f"cannot be used ({str(error).strip().splitlines()[0][:200]})"
        remedy = 'install it and start its client first, or pass "loky" or "threading"'
        raise InputError("backend", repr(backend), problem, remedy) from error


def _parallel(joblib: Any, jobs: int | None) -> Any:
    try:
        return joblib.Parallel(n_jobs=jobs, return_as="generator")
    except ValueError:  # this backend gives results back all at once; rows are written by the workers anyway
        return joblib.Parallel(n_jobs=jobs)


def _alone(task: Task) -> None:
    """Run a point in a process of its own; where that dies too, the row holds the error."""
    from joblib.externals.loky import ProcessPoolExecutor

    try:
        with ProcessPoolExecutor(max_workers=1) as executor:
            executor.submit(task.perform).result()
    except Exception as error:
        if type(error).__name__ not in _DEATHS:
            raise
        reason = f"the worker died ({str(error).strip().splitlines()[0][:200]})"
        row = {"parameters": task.point, "results": {}, "outcome": "failed", "error": reason, "seconds": None}
        write_row(task.file, row)
        Path(task.file + _STARTED).unlink(missing_ok=True)


def sweep(
    function: Callable[..., object],
    grid: Mapping[str, Iterable[object]] | Sequence[Mapping[str, object]],
    *,
    path: str | os.PathLike[str] | None = None,
    seeds: Iterable[int] | None = None,
    jobs: int = 1,
    backend: str | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Table of the results of ``function`` on every point of a grid, one row per run.

    Parameters
    ----------
    function
        Called with the parameters of a point as keywords, and ``random_state=seed`` where seeds are given. It returns a
        mapping of numbers and words, which become columns; an ``outcome`` among them is stored in words.
    grid
        Values for each parameter, of which every combination is run; or a list of points.
    path
        A folder for the finished rows, and ``rows.parquet`` with all of them at the end (needs the extra ``store``). A
        sweep of the same function into the same folder runs only what is missing; rows that failed are run again.
    seeds
        Every point is run once for each seed.
    jobs
        Number of runs at a time.
    backend
        The joblib backend (``"loky"``, ``"threading"``, ``"dask"``, ``"ray"``, …). Dask and ray use all their workers
        by default; those on other machines need a ``path`` that all machines see. With one job and no backend nothing
        is started, unless the call is inside ``joblib.parallel_config(…)``, which then decides.
    progress
        Whether a bar is shown: True, False, or None for long sweeps on a terminal.

    Returns
    -------
    pandas.DataFrame
        One row per run: the seed, the parameters, the results, the outcome, the seconds, and the error of a failed run.

    Examples
    --------
    >>> table = sweep(lambda n, beta: {"product": n * beta}, {"n": [1, 2], "beta": [0.5, 3.0]})
    >>> table[["n", "beta", "product", "outcome"]].values.tolist()[-1]
    [2, 3.0, 6.0, 'finished']
    """
    points = _points(grid, seeds)
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    keys = [key_of(name, point) for point in points]
    with ExitStack() as stack:
        folder = make_folder(stack.enter_context(TemporaryDirectory()) if path is None else path)
        known = finished(folder)
        done = {key for key, row in known.items() if row["outcome"] != "failed"}
        missing = {key: point for key, point in zip(keys, points, strict=True) if key not in done}
        tasks = [Task(function, point, str(folder / (key + SUFFIX))) for key, point in missing.items()]
        with Ticker("runs", len(tasks), progress=progress) as ticker:
            try:
                run_all(tasks, jobs, backend, ticker)
            finally:
                known = finished(folder)
                if path is not None:
                    write_table(folder, known)
        return as_table([known[key] for key in keys])


def read_sweep(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Finished rows of a sweep, also of one that is still running or was stopped.

    Parameters
    ----------
    path
        The folder of the sweep.

    Returns
    -------
    pandas.DataFrame
        One row per run.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise FileError(path, "is not a folder", f"give the folder that sweep(path=…) wrote to, not {TABLE} in it")
    return as_table([row for _, row in sorted(finished(folder).items())])


def _points(
    grid: Mapping[str, Iterable[object]] | Sequence[Mapping[str, object]], seeds: Iterable[int] | None
) -> list[Row]:
    if isinstance(grid, Mapping):
        values = {name: list(choices) for name, choices in grid.items()}
        points = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    else:
        points = [dict(point) for point in grid]
    for name in OWN:
        if any(name in point for point in points):
            raise InputError("grid", repr(name), "must not use this name", "a sweep has a column of its own for it")
    if not points:
        raise InputError("grid", "no points", "must have at least one point", 'pass for example {"beta": [10, 100]}')
    checked = [{name: plain(value) for name, value in point.items()} for point in points]
    if seeds is None:
        return checked
    numbers = [int(seed) for seed in seeds]
    return [{**point, "seed": seed} for point in checked for seed in numbers]
