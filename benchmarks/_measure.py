"""Seconds and megabytes."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache

import numpy as np


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The least time that ``work`` took; the machine may be busy with something else at any one time."""
    return min(_once(work) for _ in range(repeat))


def _once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The least time that the processor spent on ``work``, which says more than the clock on a busy machine."""
    took = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def growth(small: float, large: float, factor: float) -> float:
    """The exponent e with ``large = small * factor ** e``."""
    return math.log(large / small) / math.log(factor)


@lru_cache
def sort_seconds() -> float:
    """The yardstick: ``numpy.sort`` of a million random floats."""
    numbers = np.random.default_rng(0).random(10**6)
    return seconds(lambda: np.sort(numbers), repeat=5)


_PEAK = """
import sys
import numpy as np
import torch
import hardmax as hm

def peak():
    # The high-water mark of this process alone; what getrusage tells includes its parent's.
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

def search(tokens):
    from hardmax.attention.search import attended
    tokens = torch.from_numpy(tokens)
    attended(tokens, tokens, tolerance=1e-14)

def equilibrium(tokens):
    hm.equilibrium(tokens, hm.HardmaxLayer(alpha=0.5))

work, n, d = {"search": search, "equilibrium": equilibrium}[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
work(np.random.default_rng(1).normal(size=(3000, d)))
tokens = np.random.default_rng(0).normal(size=(n, d))
before = peak()
work(tokens)
print(peak() - before)
"""


def peak_megabytes(work: str, n: int, d: int) -> float:
    """How much memory ``"search"`` or ``"equilibrium"`` takes at its peak beyond its input (Linux only)."""
    command = [sys.executable, "-c", _PEAK, work, str(n), str(d)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)
