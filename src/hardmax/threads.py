"""How many threads torch may use: sharing little work among several costs many times the work itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

_FEW = 512
"""Tokens whose scores one thread has done before others are awake (``python -m benchmarks threads``)."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Work of torch in this block stays on the calling thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads_for(tokens: torch.Tensor) -> AbstractContextManager[None]:
    """One thread for few tokens on a CPU, and as many as there are for others."""
    return one_thread() if tokens.device.type == "cpu" and tokens.shape[0] <= _FEW else nullcontext()
