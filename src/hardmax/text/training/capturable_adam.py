r"""Adam without host synchronisation, and the CUDA graphs that replay its steps.

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
from .adam import BETA_1, BETA_2, EPSILON, sqrt_into


@dataclass(frozen=True)
class StepNumbers:
    """Learning rate, bias corrections and step count of one step, each a tensor with one entry."""

    rate: torch.Tensor
    scale: torch.Tensor
    r""":math:`\sqrt{1-\beta_2^t}`, the correction of the second moment."""
    warm: torch.Tensor
    r""":math:`1-\beta_1^t`, the correction of the first moment."""
    step: torch.Tensor
    """t itself, from one."""


@dataclass(frozen=True)
class Schedule:
    """The numbers of several consecutive steps."""

    numbers: torch.Tensor
    """Learning rate and the two corrections, shape (steps, 3)."""
    steps: torch.Tensor
    """Step counts, shape (steps,)."""

    @staticmethod
    def of(rates: list[float], first: int, like: torch.Tensor) -> Schedule:
        """Numbers of the steps after ``first`` steps, one per rate, on the device and in the type of ``like``."""
        t = first + 1 + np.arange(len(rates))
        rows = np.stack([rates, np.sqrt(1 - BETA_2**t), 1 - BETA_1**t], axis=1)
        return Schedule(
            torch.from_numpy(rows).to(like.device, like.dtype),
            torch.from_numpy(t.astype(np.int32)).to(like.device),
        )

    def copy_(self, other: Schedule) -> None:
        """Copy the numbers of as many other steps in place."""
        self.numbers.copy_(other.numbers)
        self.steps.copy_(other.steps)

    def at(self, step: torch.Tensor) -> StepNumbers:
        """The numbers of one step, whose index is a tensor with one entry."""
        rate, scale, warm = self.numbers.index_select(0, step)[0].unbind()
        return StepNumbers(rate, scale, warm, self.steps.index_select(0, step))


class CapturableAdam:
    """Adam for whole tensors; the caller owns the moments and may save them."""

    def __init__(self, parameters: dict[str, torch.Tensor], moments: dict[str, torch.Tensor]) -> None:
        self._parameters = parameters
        self._moments = moments

    @torch.no_grad()
    def step(self, gradients: dict[str, torch.Tensor], numbers: StepNumbers) -> None:
        """Update every parameter by its gradient, whose memory is reused."""
        for name, gradient in gradients.items():
            mean, square = self._moments[f"mean.{name}"], self._moments[f"square.{name}"]
            mean.lerp_(gradient, 1 - BETA_1)
            square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
            size = sqrt_into(square, gradient).add_(EPSILON * numbers.scale)
            torch.div(mean, size, out=size).mul_(numbers.rate * numbers.scale / numbers.warm)
            self._parameters[name].sub_(size)


class CapturableRowAdam:
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
        numbers: StepNumbers,
        projection: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Update the table's ``rows``, which may repeat, as :meth:`hardmax.text.training.adam.RowAdam.step`."""
        total = self._gradient.index_add_(0, rows, gradient).index_select(0, rows)
        since = (numbers.step - self._last.index_select(0, rows)).to(total.dtype)
        square = self._square.index_select(0, rows).mul_((BETA_2**since)[:, None])
        square.addcmul_(total, total, value=1 - BETA_2)
        size = square.sqrt().add_(EPSILON * numbers.scale)
        moved = self._table.index_select(0, rows) - (numbers.rate * numbers.scale) * total / size
        if projection is not None:
            moved = projection(moved)
        # A repeated row is written several times with the same numbers.
        self._table.index_copy_(0, rows, moved)
        self._square.index_copy_(0, rows, square)
        self._last.index_copy_(0, rows, numbers.step.expand(len(rows)))
        self._gradient.index_fill_(0, rows, 0.0)


# Steps of each kind before the capture: the first ones load libraries and compile kernels, which cannot be captured.
_EAGER_STEPS = 2


class CapturedSteps:
    """Runs steps; on a GPU with kernels all but the first few of a kind are replays of a CUDA graph.

    A step must read everything that changes from tensors that stay in place, must not synchronise with the device, and
    must not allocate anything that outlives it.
    """

    def __init__(self, device: torch.device, *, wanted: bool = True) -> None:
        self.captures = wanted and usable(device)
        self._done: dict[Hashable, int] = defaultdict(int)
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}

    def run(self, kind: Hashable, step: Callable[[], None]) -> None:
        """Run one step; steps of the same ``kind`` must be the same function of the same tensors."""
        if not self.captures:
            step()
        elif self._done[kind] < _EAGER_STEPS:
            self._on_side_stream(step)
        else:
            if kind not in self._graphs:
                self._graphs[kind] = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graphs[kind], capture_error_mode="thread_local"):
                    step()
            self._graphs[kind].replay()
        self._done[kind] += 1

    @staticmethod
    def _on_side_stream(step: Callable[[], None]) -> None:
        """Run a step on a stream of its own, as a capture does."""
        main, own = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        own.wait_stream(main)
        with torch.cuda.stream(own):
            step()
        main.wait_stream(own)
