"""A sweep in a file: which run, on which grid, with which seeds, into which folder. Data only, nothing is executed."""

from __future__ import annotations

import inspect
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FileError, HardmaxError
from .experiments import RUNS
from .grid import sweep
from .rows import OWN

EXAMPLE = """\
# A sweep: every combination of the values under [grid], once for each seed.
# Run it:                      hardmax sweep leaders.toml
# Killed? Run it again:        finished rows are not repeated.
# Look at it at any time:      hardmax sweep leaders.toml --status

run = "equilibrium"        # equilibrium, simulate, meanfield or forecast
folder = "leaders"         # beside this file: a small file for each row, and rows.parquet at the end
seeds = 5                  # 0 to 4; or a list such as [1, 7, 42]
jobs = 2                   # runs at a time

[grid]
law = ["gaussian", "ball", "heavy-tails"]
n = [100, 1000, 10000]
d = [2, 3]

[fixed]                    # the same in every run
alpha = 0.5
matrix = "random-spd"
"""

_KEYS = ("run", "folder", "seeds", "jobs", "backend", "grid", "fixed")
_NEEDED = ("run", "folder", "grid")


@dataclass(frozen=True)
class Spec:
    """A sweep as a file describes it, checked.

    Attributes
    ----------
    run
        Name of the experiment.
    folder
        Folder of the rows.
    points
        Values for each parameter.
    seeds
        Seeds of every point.
    jobs
        Number of runs at a time.
    backend
        The joblib backend, or None.
    """

    run: str
    folder: Path
    points: dict[str, list[Any]]
    seeds: list[int]
    jobs: int
    backend: str | None

    @property
    def rows(self) -> int:
        """How many runs that makes."""
        count = len(self.seeds)
        for values in self.points.values():
            count *= len(values)
        return count

    def perform(self, *, jobs: int | None = None, progress: bool | None = None) -> Any:
        """Table of all rows, after the runs that are missing.

        Parameters
        ----------
        jobs
            Number of runs at a time; by default that of the file.
        progress
            Whether a bar is shown: True, False, or None for long sweeps on a terminal.

        Returns
        -------
        pandas.DataFrame
            One row per run.
        """
        return sweep(
            RUNS[self.run],
            self.points,
            path=self.folder,
            seeds=self.seeds,
            jobs=self.jobs if jobs is None else jobs,
            backend=self.backend,
            progress=progress,
        )


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Sweep that a TOML file describes, checked; errors name the file and the entry.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Spec
        The sweep.
    """
    file = Path(path).expanduser()
    try:
        with file.open("rb") as stream:
            data = tomllib.load(stream)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})", "hardmax sweep --example prints one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"is not TOML ({error})", "hardmax sweep --example prints one") from None

    def refuse(entry: str, problem: str, remedy: str) -> HardmaxError:
        return FileError(path, f"{entry} {problem}", remedy)

    for key in data:
        if key not in _KEYS:
            raise refuse(repr(key), "is not known", f"use {', '.join(_KEYS)}")
    for key in _NEEDED:
        if key not in data:
            raise refuse(repr(key), "is missing", "hardmax sweep --example shows where it goes")
    if data["run"] not in RUNS:
        raise refuse(f"run = {data['run']!r}", "is no run", f"use {', '.join(RUNS)}")
    if not isinstance(data["folder"], str) or not data["folder"]:
        raise refuse("folder", "must be a name", 'write for example folder = "leaders"')
    points = _points(data, refuse)
    jobs, backend = data.get("jobs", 1), data.get("backend")
    if not _is_whole(jobs) or (jobs < 1 and jobs != -1):
        raise refuse(f"jobs = {jobs!r}", "must be a positive whole number, or -1 for all cores", "write jobs = 2")
    if backend is not None and not isinstance(backend, str):
        raise refuse(f"backend = {backend!r}", "must be a word", 'write for example backend = "dask"')
    return Spec(data["run"], file.parent / data["folder"], points, _seeds(data, refuse), jobs, backend)


def _points(data: dict[str, Any], refuse: Any) -> dict[str, list[Any]]:
    known = [name for name in inspect.signature(RUNS[data["run"]]).parameters if name != "random_state"]
    grid, fixed = data["grid"], data.get("fixed", {})
    for name, table in (("grid", grid), ("fixed", fixed)):
        if not isinstance(table, dict):
            raise refuse(name, "must be a table", f"write [{name}] and one line for each parameter")
        for parameter in table:
            if parameter in OWN or parameter not in known:
                raise refuse(f"{name}.{parameter}", f"is no parameter of {data['run']}", f"use {', '.join(known)}")
    both = sorted(set(grid) & set(fixed))
    if both:
        raise refuse(both[0], "is in [grid] and in [fixed]", "keep one of the two")
    for parameter, values in grid.items():
        if not isinstance(values, list) or not values:
            raise refuse(f"grid.{parameter}", "must be a list of values", f"write {parameter} = [{values!r}]")
    return {**grid, **{parameter: [value] for parameter, value in fixed.items()}}


def _seeds(data: dict[str, Any], refuse: Any) -> list[int]:
    seeds = data.get("seeds", 1)
    if _is_whole(seeds) and seeds > 0:
        return list(range(seeds))
    if isinstance(seeds, list) and seeds and all(_is_whole(seed) and seed >= 0 for seed in seeds):
        return list(dict.fromkeys(seeds))
    raise refuse(f"seeds = {seeds!r}", "must be how many, or a list of whole numbers", "write seeds = 5")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
