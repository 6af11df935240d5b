r"""Adam, written out: building one of torch's own loads its compiler, which takes longer than training a small model.

.. math:: m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
          p \leftarrow p - \eta\, \frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}

With :math:`\beta_1 = 0` a row without a gradient does not move, and what its v has lost since it last had one is a
power of :math:`\beta_2`. So a table of hundreds of thousands of words costs no more than the words of the step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ...distributed import ALONE, Processes

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
_LEAST_RATE = 0.02


def rate_at(step: int, last: int, rate: float, decay: bool) -> float:
    """The step size: falling to nearly nothing at the ``last`` step, or ``rate`` all the time."""
    return rate * (max(_LEAST_RATE, 1 - step / last) if decay else 1.0)


def root(square: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The root of every entry, written into ``out``.

    By NumPy where it can be: most words of a large vocabulary have had no gradient yet, and torch takes five times as
    long for the root of 0.
    """
    if square.device.type == "cpu":
        np.sqrt(square.numpy(), out=out.numpy())
        return out
    return torch.sqrt(square, out=out)


class Adam:
    """One step at a time, for all of a tensor; the moments belong to the caller, who may keep them in a file.

    Gradients are summed over the processes ``ranks``, so all of them move alike.
    """

    def __init__(
        self,
        parameters: dict[str, torch.Tensor],
        moments: dict[str, torch.Tensor],
        steps: int,
        ranks: Processes = ALONE,
    ) -> None:
        self._parameters = parameters
        self._moments = moments
        self._steps = steps
        self._ranks = ranks

    @staticmethod
    def moments_for(parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Moments before the first step."""
        return {f"{kind}.{name}": torch.zeros_like(p) for name, p in parameters.items() for kind in ("mean", "square")}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move every parameter by its gradient, and forget the gradient."""
        self._steps += 1
        scale = (1 - BETA_2**self._steps) ** 0.5
        for name, parameter in self._parameters.items():
            gradient = parameter.grad
            if gradient is None:
                if self._ranks.count == 1:
                    continue
                gradient = torch.zeros_like(parameter)  # another process may have one
            self._ranks.add(gradient)
            mean, square = self._moments[f"mean.{name}"], self._moments[f"square.{name}"]
            mean.lerp_(gradient, 1 - BETA_1)
            square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
            # The gradient is of no use any more, so its memory takes the denominator.
            root(square, gradient).add_(EPSILON * scale)
            parameter.addcdiv_(mean, gradient, value=-rate * scale / (1 - BETA_1**self._steps))
            parameter.grad = None


class RowAdam:
    """Adam without momentum for a table of which each step has gradients for a few rows."""

    def __init__(self, table: torch.Tensor, moments: dict[str, torch.Tensor], steps: int) -> None:
        self._table = table
        self._square, self._last = moments["rows.square"], moments["rows.last"]
        self._steps = steps
        self._gradient = torch.zeros_like(table)

    @staticmethod
    def moments_for(table: torch.Tensor) -> dict[str, torch.Tensor]:
        """The mean square of each entry's gradients, and the step at which each row had its last."""
        return {
            "rows.square": torch.zeros_like(table),
            "rows.last": torch.zeros(len(table), dtype=torch.int32, device=table.device),
        }

    @torch.no_grad()
    def step(
        self,
        rate: float,
        rows: torch.Tensor,
        gradient: torch.Tensor,
        within: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Move the table's ``rows`` (any of them may be there several times) by the sums of their gradients.

        ``within`` takes them back to where rows are allowed to be.
        """
        self._steps += 1
        total = self._gradient.index_add_(0, rows, gradient).index_select(0, rows)
        since = (self._steps - self._last.index_select(0, rows)).to(self._square.dtype)
        square = self._square.index_select(0, rows).mul_((BETA_2**since)[:, None])
        square.addcmul_(total, total, value=1 - BETA_2)
        scale = (1 - BETA_2**self._steps) ** 0.5
        size = square.sqrt().add_(EPSILON * scale)
        moved = self._table.index_select(0, rows).addcdiv_(total, size, value=-rate * scale)
        if within is not None:
            moved = within(moved)
        # A row that is there several times is written several times with the same numbers.
        self._table.index_copy_(0, rows, moved)
        self._square.index_copy_(0, rows, square)
        self._last.index_fill_(0, rows, self._steps)
        self._gradient.index_fill_(0, rows, 0.0)
