"""Milliseconds on the device, and what the device can do at best."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import lru_cache

import torch


def milliseconds(work: Callable[[], object], repeat: int = 7) -> float:
    """The median over repeated runs, after warming up."""
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeat):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


@lru_cache
def matrix_rate() -> float:
    """Operations a second of a large product in half precision, the chip's limit for a screen."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    return 2 * 8192**3 / milliseconds(lambda: a @ b) * 1e3


def machine() -> str:
    """Which GPU and which versions."""
    import triton

    return (
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}; "
        f"half-precision products reach {matrix_rate() / 1e12:.0f} TFLOP/s"
    )
