"""Adam without host synchronisation, and the CUDA graphs that replay its steps.

The update rule is that of ``adam``. There the learning rate and the step count are Python numbers; here they are
tensors on the device, so that a step can be captured in a CUDA graph once and replayed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import torch

from ...attention.kernels import usable
from .adam import BETA_1, BETA_2, EPSILON, root


@dataclass(frozen=True)
class Pace:
    """The numbers of one step, each a tensor of one entry."""

    rate: torch.Tensor
    scale: torch.Tensor
    """The root of :math:`1-\\beta_2^t`, by which the second moment is corrected."""
    warm: torch.Tensor
    """:math:`1-\\beta_1^t`, by which the first is."""
    step: torch.Tensor
    """t itself, counted from one."""


@dataclass(frozen=True)
class Paces:
    """The numbers of some steps, one row each: floating ones and the count."""

    numbers: torch.Tensor
    steps: torch.Tensor

    @staticmethod
    def of(rates: list[float], first: int, like: torch.Tensor) -> Paces:
        """For steps that follow one another, of which ``first`` have gone before."""
        t = first + 1 + np.arange(len(rates))
        rows = np.stack([rates, np.sqrt(1 - BETA_2**t), 1 - BETA_1**t], axis=1)
        return Paces(
            torch.from_numpy(rows).to(like.device, like.dtype),
            torch.from_numpy(t.astype(np.int32)).to(like.device),
        )

    def copy_(self, other: Paces) -> None:
        """Take over the numbers of as many other steps."""
        self.numbers.copy_(other.numbers)
        self.steps.copy_(other.steps)

    def at(self, now: torch.Tensor) -> Pace:
        """The step of this number, a tensor of one entry."""
        rate, scale, warm = self.numbers.index_select(0, now)[0].unbind()
        return Pace(rate, scale, warm, self.steps.index_select(0, now))


class PacedAdam:
    """One step at a time, for all of a tensor; the moments belong to the caller."""

    def __init__(self, parameters: dict[str, torch.Tensor], moments: dict[str, torch.Tensor]) -> None:
        self._parameters = parameters
        self._moments = moments

    @torch.no_grad()
    def step(self, gradients: dict[str, torch.Tensor], pace: Pace) -> None:
        """Move every parameter by its gradient, which is used up."""
        for name, gradient in gradients.items():
            mean, square = self._moments[f"mean.{name}"], self._moments[f"square.{name}"]
            mean.lerp_(gradient, 1 - BETA_1)
            square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
            size = root(square, gradient).add_(EPSILON * pace.scale)
            torch.div(mean, size, out=size).mul_(pace.rate * pace.scale / pace.warm)
            self._parameters[name].sub_(size)


class PacedRowAdam:
    """Adam without momentum for a table of which each step has gradients for a few rows."""

    def __init__(self, table: torch.Tensor, moments: dict[str, torch.Tensor]) -> None:
        self._table = table
        self._square, self._last = moments["rows.square"], moments["rows.last"]
        self._gradient = torch.zeros_like(table)

    @torch.no_grad()
    def step(
        self,
        rows: torch.Tensor,
        gradient: torch.Tensor,
        pace: Pace,
        within: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """As :meth:`hardmax.text.training.adam.RowAdam.step`."""
        total = self._gradient.index_add_(0, rows, gradient).index_select(0, rows)
        since = (pace.step - self._last.index_select(0, rows)).to(total.dtype)
        square = self._square.index_select(0, rows).mul_((BETA_2**since)[:, None])
        square.addcmul_(total, total, value=1 - BETA_2)
        size = square.sqrt().add_(EPSILON * pace.scale)
        moved = self._table.index_select(0, rows) - (pace.rate * pace.scale) * total / size
        if within is not None:
            moved = within(moved)
        # A row that is there several times is written several times with the same numbers.
        self._table.index_copy_(0, rows, moved)
        self._square.index_copy_(0, rows, square)
        self._last.index_copy_(0, rows, pace.step.expand(len(rows)))
        self._gradient.index_fill_(0, rows, 0.0)


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
