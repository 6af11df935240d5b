"""How many threads work: one for most, and several for many independent blocks of rows.

The threads of OpenMP (torch) and of OpenBLAS (NumPy, SciPy) wait for each other by spinning. Small or memory-bound work
gains nothing from them, and where other programs use the processors too, every operation waits for a thread that is not
running: ``python -m benchmarks threads`` measures it. So the work of hardmax stays on the calling thread
(:func:`one_thread`). Where there are many independent blocks of large products, they are handed to threads that sleep
while they wait (:func:`in_order`), as many as torch may use.
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
"""Seconds of one thread from which several gain: their start and Python's turns between them take milliseconds."""


_Limits = Sequence[tuple[Any, int]]
"""BLAS libraries, and how many threads each could use."""


class _Block(threading.local):
    """What the calling thread found when it entered its outermost block."""

    depth = 0
    torch_threads: int | None = None
    """How many threads torch could use; None where torch had not been imported."""
    blas: _Limits = ()
    """BLAS libraries that are limited thread by thread."""
    shares = False
    """Whether the thread is one of several that share work already."""


class _Process:
    """What belongs to the whole process, and which only the first to enter and the last to leave may change."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        """How many threads are in a block."""
        self.blas: _Limits = ()
        """BLAS libraries with one pool of threads for all."""
        self.torch_threads: int | None = None
        """How many threads torch could use in the thread that entered first."""


_block, _process = _Block(), _Process()


@contextmanager
def one_thread() -> Iterator[None]:
    """Work of torch, NumPy and SciPy in this block stays on the calling thread; also a decorator: ``@one_thread()``."""
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
    """How many threads may share work: what torch may use outside of :func:`one_thread`."""
    if _block.shares:
        return 1
    if _block.torch_threads is not None:
        return _block.torch_threads
    return sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 1


def in_order(work: Callable[[Item], Result], items: Sequence[Item], *, seconds: float) -> Iterator[Result]:
    """The results of ``work`` for all items, in their order.

    Parameters
    ----------
    work
        Called with one item. Calls must not depend on each other: several run at the same time, each in a thread with
        the caller's context (``numpy.errstate``, ``torch.no_grad``) and :func:`one_thread`.
    items
        What to call it with, in pieces large enough that Python's own time does not count.
    seconds
        About how long all of it takes on one thread; less than a tenth of a second is left to the calling thread.

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

    Packages bring BLAS libraries of their own, so they are looked for again whenever the number of imported ``modules``
    has changed. Nothing is imported to be found: a forecast from a file, for one, does without SciPy.
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
