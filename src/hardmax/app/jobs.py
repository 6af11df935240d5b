"""Background jobs in threads, with progress and cancellation, at most one per session.

Only progress and results reach the event loop. Functions of the library are called with ``progress=job.tell``: they
report through the job, and stop at their next tick once it is cancelled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ..errors import HardmaxError
from ..threads import one_thread

T = TypeVar("T")
Schedule = Callable[[Callable[[], None]], None]
"""Runs a function soon on the session's event loop; may be called from any thread."""

_WORKERS = 4
"""Threads for all sessions; each uses one core."""
_MOST_WAITING = 12
"""Jobs in the queue; bounds the wait for a free thread."""
_SECONDS_BETWEEN_REPORTS = 0.1
"""A progress bar that moves ten times per second looks smooth."""
_log = logging.getLogger(__name__)


class BusyError(HardmaxError):
    """The queue of jobs is full."""


class Cancelled(BaseException):
    """Raised inside a cancelled job; no Exception, so that no ``except Exception`` catches it."""


class JobPool:
    """The thread pool of all sessions, with a bounded queue."""

    def __init__(self, workers: int = _WORKERS, waiting: int = _MOST_WAITING) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="hardmax-job")
        self._room = threading.BoundedSemaphore(workers + waiting)
        self._waiting = waiting

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` when a thread is free; :class:`BusyError` if the queue is full."""
        if not self._room.acquire(blocking=False):
            raise BusyError(f"{self._waiting} other jobs are waiting for a free processor: try again in a moment")

        def run() -> None:
            try:
                with one_thread():  # several jobs share the cores
                    work()
            finally:
                self._room.release()

        self._pool.submit(run)

    def close(self) -> None:
        """Accept no more jobs."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Job:
    """A background job; its function gets it as argument, to report progress."""

    def __init__(self, name: str, notify: Callable[[Job], None]) -> None:
        self.name = name
        self.fraction: float | None = None
        """Progress from 0 to 1; None while unknown."""
        self.note = ""
        self._notify = notify
        self._stop = threading.Event()
        self._reported = 0.0

    @property
    def cancelled(self) -> bool:
        """Whether the job was cancelled."""
        return self._stop.is_set()

    def cancel(self) -> None:
        """Stop the job at its next report."""
        self._stop.set()

    def report(self, fraction: float | None, note: str = "") -> None:
        """Report progress; a cancelled job ends here."""
        if self.cancelled:
            raise Cancelled
        self.fraction = None if fraction is None else min(1.0, max(0.0, fraction))
        self.note = note
        now = time.monotonic()
        if now - self._reported >= _SECONDS_BETWEEN_REPORTS:
            self._reported = now
            self._notify(self)

    def tell(self, stage: str, done: float, total: float | None) -> None:
        """Report as the functions of the library do: pass ``progress=job.tell``."""
        self.report(done / total if total else None, stage)


class Jobs:
    """The current job of one session; a new job cancels the previous one."""

    def __init__(self, pool: JobPool, schedule: Schedule, shown: Callable[[Job | None], None]) -> None:
        self._job_pool, self._schedule, self._shown = pool, schedule, shown
        self._current: Job | None = None

    @property
    def current(self) -> Job | None:
        """The running or queued job, if there is one."""
        return self._current

    def start(
        self,
        name: str,
        work: Callable[[Job], T],
        then: Callable[[T], None],
        failed: Callable[[BaseException], None],
    ) -> Job:
        """Run ``work`` in the background; ``then`` gets the result or ``failed`` the error, on the event loop."""
        self.cancel()
        job = Job(name, self._tell)

        def run() -> None:
            try:
                job.report(None)
                result = work(job)
            except Cancelled:
                return
            except BaseException as error:
                self._schedule(lambda error=error: self._finish(job, failed, error))  # type: ignore[misc]
                if not isinstance(error, HardmaxError):
                    _log.exception("the job %r failed", name)
                return
            self._schedule(lambda: self._finish(job, then, result))

        self._job_pool.submit(run)
        self._current = job
        self._shown(job)
        return job

    def cancel(self) -> None:
        """Cancel the current job; its thread is free again at its next report."""
        if self._current is not None:
            self._current.cancel()
            self._current = None
            self._shown(None)

    def _tell(self, job: Job) -> None:
        self._schedule(lambda: self._shown(job) if job is self._current else None)

    def _finish(self, job: Job, take: Callable[[Any], None], value: Any) -> None:
        if job is not self._current:
            return
        self._current = None
        self._shown(None)
        take(value)
