"""Number of threads: one for most work, several for many independent blocks of rows.

The threads of OpenMP (torch) and of OpenBLAS (NumPy, SciPy) wait for each other by spinning. Small or memory-bound work
gains nothing from them, and where other programs use the processors too, every operation waits for a thread that is not
running (measured by ``python -m benchmarks threads``). Work of this library therefore stays on the calling thread
(:func:`one_thread`). Many independent blocks of large products are passed to threads that sleep while they wait
(:func:`in_order`), as many as torch may use.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH_SHARING = 0.1
"""Seconds of work from which several threads pay: starting them and switching between them takes milliseconds."""


_Limits = Sequence[tuple[Any, int]]
"""BLAS libraries, each with the number of threads that it could use before."""


class _Block(threading.local):
    """Limits of the calling thread when it entered its outermost block."""

    depth = 0
    torch_threads: int | None = None
    """Number of threads that torch could use; None where torch had not been imported."""
    blas: _Limits = ()
    """BLAS libraries whose limit is set per thread."""
    shares = False
    """Whether this thread is a worker of :func:`in_order`."""


class _Process:
    """State of the whole process, changed only by the first thread to enter a block and the last to leave one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        """Number of threads inside a block."""
        self.blas: _Limits = ()
        """BLAS libraries with one pool of threads for the process."""
        self.torch_threads: int | None = None
        """Number of threads that torch could use in the thread that entered first."""


_block, _process = _Block(), _Process()


@contextmanager
def one_thread() -> Iterator[None]:
    """Context in which torch, NumPy and SciPy use the calling thread alone; also a decorator: ``@one_thread()``."""
    with _process.lock:
        if _block.depth == 0:
            _enter()
        _block.depth += 1
        _limit_torch()  # which may have been imported since the outermost block began
    try:
        yield
    finally:
        with _process.lock:
            _block.depth -= 1
            if _block.depth == 0:
                _leave()


def allowed_threads() -> int:
    """Number of threads that may share work: those that torch may use outside of :func:`one_thread`."""
    if _block.shares:
        return 1
    if _block.torch_threads is not None:
        return _block.torch_threads
    return sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 1


def in_order(work: Callable[[Item], Result], items: Sequence[Item], *, seconds: float) -> Iterator[Result]:
    """Results of ``work`` for all items, in their order.

    Parameters
    ----------
    work
        Called with one item. Calls must not depend on each other: several run at the same time, each in a thread with
        the caller's context (``numpy.errstate``, ``torch.no_grad``) and :func:`one_thread`.
    items
        Arguments, in pieces large enough that the overhead of Python is negligible.
    seconds
        Estimated duration of all calls on one thread; below a tenth of a second the calling thread does them all.

    Yields
    ------
    object
        ``work(item)`` for each item.

    Examples
    --------
    >>> list(in_order(abs, [1, -2, 3], seconds=0.0))
    [1, 2, 3]
    """
    threads = min(allowed_threads(), len(items)) if seconds >= _WORTH_SHARING else 1
    if threads <= 1:
        yield from map(work, items)
        return
    import torch

    gradients = torch.is_grad_enabled()

    def alone(item: Item) -> Result:
        with one_thread(), torch.set_grad_enabled(gradients):
            _block.shares = True
            return work(item)

    pool = ThreadPoolExecutor(threads, thread_name_prefix="hardmax-block")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            # Few results wait at a time, so memory does not grow with the number of items.
            if len(waiting) == 2 * threads:
                yield waiting.popleft().result()
            waiting.append(pool.submit(contextvars.copy_context().run, alone, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _enter() -> None:
    shared, own = _blas_libraries(len(sys.modules))
    _block.blas = _limited(own)
    if _process.inside == 0:
        _process.blas = _limited(shared)
    _process.inside += 1


def _leave() -> None:
    _restore_torch()
    _restore(_block.blas)
    _process.inside -= 1
    if _process.inside == 0:
        _restore(_process.blas)
        _process.torch_threads = None


@lru_cache(maxsize=1)
def _blas_libraries(modules: int) -> tuple[list[Any], list[Any]]:
    """Libraries with one pool of threads for the process, and those whose limit belongs to a thread (OpenMP).

    Packages bring BLAS libraries of their own, so the search is repeated whenever the number of imported ``modules``
    has changed. Nothing is imported for it: a forecast from a file, for example, does not need SciPy.
    """
    from threadpoolctl import ThreadpoolController

    every = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [library for library in every if getattr(library, "threading_layer", None) == "openmp"]
    return [library for library in every if library not in own], own


def _limited(libraries: list[Any]) -> _Limits:
    found = [(library, library.get_num_threads()) for library in libraries]
    _restore([(library, 1) for library in libraries])
    return found


def _restore(limits: _Limits) -> None:
    for library, threads in limits:
        # Recent versions of threadpoolctl ignore all threads but the first to set a limit, unless it lets go.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(threads)
        release(force=True)


def _limit_torch() -> None:
    torch = sys.modules.get("torch")
    if torch is None or _block.torch_threads is not None:
        return
    found = torch.get_num_threads()
    # The number belongs to the thread, but a thread that is new to torch begins with what was set last, by any thread:
    # with one if another is in a block.
    if found == 1 and _process.torch_threads is not None:
        found = _process.torch_threads
    elif _process.torch_threads is None:
        _process.torch_threads = found
    _block.torch_threads = found
    torch.set_num_threads(1)


def _restore_torch() -> None:
    if _block.torch_threads is not None:
        sys.modules["torch"].set_num_threads(_block.torch_threads)
        _block.torch_threads = None
