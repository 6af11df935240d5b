"""A grid of runs: one row a run, written as it finishes, resumed where it stopped.

Each finished row is a small JSON file that appears whole or not at all, written by the worker that ran it. So a sweep
that is killed loses only the rows under way, any joblib backend will do (also one on several machines with a common
folder), and a table can be read while the sweep goes on.
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
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import FileError, InputError, MissingExtraError
from .files import make_folder, write_text
from .outcomes import Outcome
from .progress import Ticker

if TYPE_CHECKING:
    import pandas as pd

_SUFFIX = ".row.json"
_OWN = ("seed", "outcome", "seconds", "error")
Row = dict[str, Any]


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
    """Run ``function`` on every point of a grid and give back one row a run.

    Parameters
    ----------
    function
        Called with the parameters of a point as keywords, and ``random_state=seed`` where seeds are given. It gives
        back a mapping of numbers and words, which become columns; an ``outcome`` among them is kept in words.
    grid
        Values for each parameter, of which every combination is run; or a list of points.
    path
        A folder for the finished rows. A sweep of the same function into the same folder runs only what is missing;
        rows that failed are run again.
    seeds
        Run every point once for each seed.
    jobs, backend
        How many runs at a time, and the joblib backend (``"loky"``, ``"threading"``, ``"dask"``, ``"ray"``, …). With
        one job and no backend nothing is started.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    >>> table = sweep(lambda n, beta: {"product": n * beta}, {"n": [1, 2], "beta": [0.5, 3.0]})
    >>> table[["n", "beta", "product", "outcome"]].values.tolist()[-1]
    [2, 3.0, 6.0, 'finished']
    """
    points = _points(grid, seeds)
    folder = None if path is None else make_folder(path)
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    keys = [_key(name, point) for point in points]
    known = {} if folder is None else _finished(folder)
    missing = [k for k, key in enumerate(keys) if key not in known or known[key]["outcome"] == "failed"]
    with Ticker("runs", len(missing), progress=progress) as ticker:
        tasks = [(function, points[k], None if folder is None else str(folder / (keys[k] + _SUFFIX))) for k in missing]
        for k, row in zip(missing, _run(tasks, jobs, backend, ticker), strict=True):
            known[keys[k]] = row
    return _table([known[key] for key in keys])


def read_sweep(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The finished rows of a sweep, also of one that is still running or was stopped."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise FileError(path, "is not a folder", "give the folder that sweep(path=…) wrote to")
    return _table([row for _, row in sorted(_finished(folder).items())])


def _points(
    grid: Mapping[str, Iterable[object]] | Sequence[Mapping[str, object]], seeds: Iterable[int] | None
) -> list[Row]:
    if isinstance(grid, Mapping):
        values = {name: list(choices) for name, choices in grid.items()}
        points = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    else:
        points = [dict(point) for point in grid]
    for name in _OWN:
        if any(name in point for point in points):
            raise InputError("grid", repr(name), "must not use this name", "a sweep has a column of its own for it")
    if not points:
        raise InputError("grid", "no points", "must have at least one point", 'pass for example {"beta": [10, 100]}')
    plain = [{name: _plain(value) for name, value in point.items()} for point in points]
    if seeds is None:
        return plain
    numbers = [int(seed) for seed in seeds]
    return [{**point, "seed": seed} for point in plain for seed in numbers]


def _plain(value: object) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Outcome):
        return value.ending.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) or hasattr(value, "tolist"):
        return np.asarray(value).tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, Iterable):
        return [_plain(entry) for entry in value]
    raise InputError(
        "grid",
        f"a {type(value).__name__}",
        "must hold numbers, words, arrays or lists of them",
        "build other objects inside the function from such values",
    )


def _key(function: str, point: Row) -> str:
    """The name of a point's row: the same for the same function and values, in every process."""
    words = json.dumps([function, point], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:24]


def _finished(folder: Path) -> dict[str, Row]:
    rows = {}
    for file in folder.glob("*" + _SUFFIX):
        try:
            row = json.loads(file.read_text(encoding="utf-8"))
            _ = row["parameters"], row["outcome"], row["results"]
        except (ValueError, TypeError, KeyError) as error:
            raise FileError(
                file, f"is no row of a sweep ({error})", "remove this file and run the sweep again"
            ) from None
        rows[file.name.removesuffix(_SUFFIX)] = row
    return rows


def _run(tasks: list[Any], jobs: int, backend: str | None, ticker: Ticker) -> Iterable[Row]:
    if not tasks:
        return
    if jobs == 1 and backend is None:
        for task in tasks:
            yield _one(*task)
            ticker.advance()
        return
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("joblib", "meanfield", "running several jobs at a time") from None
    with joblib.parallel_config(backend=backend) if backend else nullcontext():
        parallel = joblib.Parallel(n_jobs=jobs)
        # Workers write their rows themselves, so a backend need not give results back one by one.
        for row in parallel(joblib.delayed(_one)(*task) for task in tasks):
            yield row
            ticker.advance()


def _one(function: Callable[..., object], point: Row, file: str | None) -> Row:
    """One run as a row: what it gave back, how it ended, how long it took; a failure is a row too."""
    arguments = {("random_state" if name == "seed" else name): value for name, value in point.items()}
    began = time.perf_counter()
    row: Row = {"parameters": point, "results": {}, "outcome": "finished", "error": None}
    try:
        found = function(**arguments)
        if not isinstance(found, Mapping):
            problem = "must give back a mapping of numbers and words"
            raise InputError("function", type(found).__name__, problem, 'give back for example {"distance": 0.1}')
        results = {str(name): _plain(value) for name, value in found.items()}
        row["outcome"] = results.pop("outcome", "finished")
        row["results"] = results
    except Exception as error:
        row["outcome"] = "failed"
        row["error"] = "".join(traceback.format_exception_only(error)).strip()
    row["seconds"] = round(time.perf_counter() - began, 6)
    if file is not None:
        write_text(file, json.dumps(row, indent=1) + "\n")
    return row


def _table(rows: list[Row]) -> pd.DataFrame:
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
