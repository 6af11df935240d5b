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

_WORTH_SHARING = 1 << 28
"""Multiplications from which several threads gain more than their start costs: tens of milliseconds of one thread."""


class _Block(threading.local):
    """What the calling thread found when it entered its outermost block."""

    depth = 0
    torch_threads: int | None = None
    """How many threads torch could use; None where torch had not been imported."""
    shares = False
    """Whether the thread is one of several that share work already."""


class _Process:
    """What belongs to the whole process: the threads of BLAS. The first to enter and the last to leave change them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.torch_threads: int | None = None
        """How many threads torch could use in the thread that entered first."""
        self._limits: Any = None

    def enter(self) -> None:
        if self.inside == 0:
            self._limits = _blas_libraries().limit(limits=1)
        self.inside += 1

    def leave(self) -> None:
        self.inside -= 1
        if self.inside == 0:
            self._limits.restore_original_limits()
            self.torch_threads = None


_block, _process = _Block(), _Process()


@contextmanager
def one_thread() -> Iterator[None]:
    """Work of torch, NumPy and SciPy in this block stays on the calling thread; also a decorator: ``@one_thread()``."""
    with _process.lock:
        if _block.depth == 0:
            _process.enter()
        _block.depth += 1
        _limit_torch()
    try:
        yield
    finally:
        with _process.lock:
            _block.depth -= 1
            if _block.depth == 0:
                _restore_torch()
                _process.leave()


def allowed_threads() -> int:
    """How many threads may share work: what torch may use outside of :func:`one_thread`."""
    if _block.shares:
        return 1
    if _block.torch_threads is not None:
        return _block.torch_threads
    return sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 1


def in_order(work: Callable[[Item], Result], items: Sequence[Item], *, multiplications: float) -> Iterator[Result]:
    """The results of ``work`` for all items, in their order.

    Parameters
    ----------
    work
        Called with one item. Calls must not depend on each other: several run at the same time, each in a thread with
        the caller's context (``numpy.errstate``, ``torch.no_grad``) and :func:`one_thread`.
    items
        What to call it with, in pieces large enough that Python's own time does not count.
    multiplications
        About how many there are in all; little work is done by the calling thread.

    >>> list(in_order(abs, [1, -2, 3], multiplications=3))
    [1, 2, 3]
    """
    threads = min(allowed_threads(), len(items)) if multiplications >= _WORTH_SHARING else 1
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


@lru_cache
def _blas_libraries() -> Any:
    import scipy.linalg  # noqa: F401 (brings a BLAS library of its own, which must be loaded to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


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
