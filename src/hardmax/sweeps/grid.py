"""The one verb of sweeps: a function on every point of a grid.

Each finished row is a small JSON file that appears whole or not at all, written by the worker that ran it. So a sweep
that is killed loses only the rows under way, any joblib backend will do (also one on several machines with a common
folder), and a table can be read while the sweep goes on. When a sweep ends, all rows are written to one Parquet
table beside them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ..errors import FileError, InputError
from ..files import make_folder
from ..progress import Ticker
from .rows import OWN, SUFFIX, TABLE, Row, as_table, finished, key_of, plain, write_table
from .workers import Task, run_all

if TYPE_CHECKING:
    import pandas as pd


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
        A folder for the finished rows, and ``rows.parquet`` with all of them at the end (needs the extra ``store``). A
        sweep of the same function into the same folder runs only what is missing; rows that failed are run again.
    seeds
        Run every point once for each seed.
    jobs, backend
        How many runs at a time, and the joblib backend (``"loky"``, ``"threading"``, ``"dask"``, ``"ray"``, …; dask and
        ray use all their workers unless told otherwise; those on other machines need a ``path`` that all machines
        see). With one job and no backend nothing is started, unless the call stands inside
        ``joblib.parallel_config(…)``, which then decides.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

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
    """The finished rows of a sweep, also of one that is still running or was stopped."""
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
