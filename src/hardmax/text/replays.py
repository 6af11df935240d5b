"""Steps that are recorded once and played again: a GPU then runs hundreds of small operations at one call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable

import torch

from ..attention.kernels import usable

_EAGER_STEPS = 2


class Replays:
    """Runs steps; on a GPU with kernels all but the first few of a kind are replays of a recording (a CUDA graph).

    A step must find what differs between one time and the next in tensors that stay where they are, must not ask the
    device for an answer, and may allocate nothing that outlives it.
    """

    def __init__(self, device: torch.device, *, wanted: bool = True) -> None:
        self.records = wanted and usable(device)
        self._done: dict[Hashable, int] = defaultdict(int)
        self._recorded: dict[Hashable, torch.cuda.CUDAGraph] = {}

    def run(self, kind: Hashable, step: Callable[[], None]) -> None:
        """Do one step; those of the same ``kind`` must be the same function of the same tensors."""
        if not self.records:
            step()
        elif self._done[kind] < _EAGER_STEPS:
            # The first steps load libraries and compile kernels, which cannot be recorded.
            self._aside(step)
        else:
            if kind not in self._recorded:
                self._recorded[kind] = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._recorded[kind], capture_error_mode="thread_local"):
                    step()
            self._recorded[kind].replay()
        self._done[kind] += 1

    @staticmethod
    def _aside(step: Callable[[], None]) -> None:
        """On a stream of its own, as a recording will be made."""
        main, own = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        own.wait_stream(main)
        with torch.cuda.stream(own):
            step()
        main.wait_stream(own)
