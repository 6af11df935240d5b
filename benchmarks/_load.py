"""Other work beside the measured one: processes that keep the processors busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Ends by itself when the benchmark is gone, or after an hour.
_SPIN = """
import os, time
parent, end = os.getppid(), time.monotonic() + 3600
while os.getppid() == parent and time.monotonic() < end:
    sum(range(100_000))
"""


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def busy_machine(count: int | None = None) -> Iterator[None]:
    """As many busy processes as there are processors, or ``count``; they are stopped when the block ends."""
    others = []
    try:
        for _ in range(processors() if count is None else count):
            others.append(subprocess.Popen([sys.executable, "-c", _SPIN]))
        yield
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()
