"""Runs one after the other or several at a time, by joblib; a worker that dies costs its own run and no other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, MissingExtraError
from ..progress import Ticker
from .rows import Row, run_one, write_row

_STARTED = ".started"
# Backends whose workers are elsewhere: how many there are is their own affair.
_OF_CLUSTERS = ("dask", "ray")
# What the backends raise when a worker is gone: those of loky, of concurrent.futures, of dask and of ray.
_DEATHS = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "WorkerCrashedError")


class Task(NamedTuple):
    """One run and the file of its row."""

    function: Callable[..., object]
    point: Row
    file: str

    def perform(self) -> None:
        """Make the run. While it is under way a mark says so: if the worker dies, the mark tells who did it."""
        mark = Path(self.file + _STARTED)
        mark.touch()
        run_one(self.function, self.point, self.file)
        mark.unlink(missing_ok=True)

    @property
    def was_started(self) -> bool:
        """Whether somebody began with this run and did not finish it."""
        return Path(self.file + _STARTED).exists()


def run_all(tasks: list[Task], jobs: int, backend: str | None, ticker: Ticker) -> None:
    """Make all runs; their rows are in their files afterwards."""
    for task in tasks:  # rows that failed are tried again; marks are those of a sweep that was killed
        Path(task.file).unlink(missing_ok=True)
        Path(task.file + _STARTED).unlink(missing_ok=True)
    if jobs == 1 and backend is None and not _told_otherwise():
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
            # Where nobody is to blame the backend itself is broken, and trying again would not end.
            if not suspects:
                raise
            for task in suspects:
                _alone(task)
                ticker.advance()
            tasks = [task for task in left if not task.was_started and not Path(task.file).exists()]


def _told_otherwise() -> bool:
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
    if backend is None and _told_otherwise():
        many = None
    with _configured(joblib, backend) if backend else nullcontext():
        calls = (joblib.delayed(task.perform)() for task in tasks)
        for _ in _parallel(joblib, many)(calls):
            ticker.advance()


def _configured(joblib: Any, backend: str) -> Any:
    """The backend of that name, or an error that says what is in its way."""
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
    """Make a run in a process of its own; if that dies too, the row says so."""
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
