r"""Adam, for whole tensors and for a table of which each step has gradients for a few rows.

.. math:: m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
          p \leftarrow p - \eta\, \frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}

:class:`Adam` is written out because ``torch.optim.adam.adam`` took 15 to 30 % more time per step when measured, and
rounds differently, so that models trained with one seed would change.

With :math:`\beta_1 = 0` a row without a gradient does not move, and the decay of its v since its last gradient is a
power of :math:`\beta_2`. So the cost of a step is that of its own rows, for a table of any size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ...distributed import ALONE, Processes

# The published values of Adam, which are also the defaults of torch.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
# Fraction of the learning rate below which it does not decay, so that the last steps still move.
_LEAST_RATE = 0.02


def learning_rate_at(step: int, last: int, rate: float, decay: bool) -> float:
    """Learning rate at a step: constant, or with linear decay to nearly zero at the ``last`` step."""
    return rate * (max(_LEAST_RATE, 1 - step / last) if decay else 1.0)


def sqrt_into(square: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Square root of every entry, written into ``out``.

    Uses NumPy on the CPU: most words of a large vocabulary have had no gradient yet, and torch takes five times as long
    for the root of 0.
    """
    if square.device.type == "cpu":
        np.sqrt(square.numpy(), out=out.numpy())
        return out
    return torch.sqrt(square, out=out)


class Adam:
    """Adam for whole tensors; the caller owns the moments and may save them.

    Gradients are summed over ``processes``, so that the parameters of all processes stay equal.
    """

    def __init__(
        self,
        parameters: dict[str, torch.Tensor],
        moments: dict[str, torch.Tensor],
        steps: int,
        processes: Processes = ALONE,
    ) -> None:
        self._parameters = parameters
        self._moments = moments
        self._steps = steps
        self._processes = processes

    @staticmethod
    def zero_moments(parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Moments before the first step, by name."""
        return {f"{kind}.{name}": torch.zeros_like(p) for name, p in parameters.items() for kind in ("mean", "square")}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update every parameter by its gradient, and clear the gradient."""
        self._steps += 1
        scale = (1 - BETA_2**self._steps) ** 0.5
        for name, parameter in self._parameters.items():
            gradient = parameter.grad
            if gradient is None:
                if self._processes.count == 1:
                    continue
                gradient = torch.zeros_like(parameter)  # another process may have a gradient
            self._processes.add(gradient)
            mean, square = self._moments[f"mean.{name}"], self._moments[f"square.{name}"]
            mean.lerp_(gradient, 1 - BETA_1)
            square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
            # The gradient is not needed any more, so its memory is reused for the denominator.
            sqrt_into(square, gradient).add_(EPSILON * scale)
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
    def zero_moments(table: torch.Tensor) -> dict[str, torch.Tensor]:
        """Moments before the first step: mean squared gradient of each entry, and last step of each row."""
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
        projection: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Update the table's ``rows``, which may repeat, by the sums of their gradients.

        ``projection`` maps the updated rows to where rows are allowed to be.
        """
        self._steps += 1
        total = self._gradient.index_add_(0, rows, gradient).index_select(0, rows)
        since = (self._steps - self._last.index_select(0, rows)).to(self._square.dtype)
        square = self._square.index_select(0, rows).mul_((BETA_2**since)[:, None])
        square.addcmul_(total, total, value=1 - BETA_2)
        scale = (1 - BETA_2**self._steps) ** 0.5
        size = square.sqrt().add_(EPSILON * scale)
        moved = self._table.index_select(0, rows).addcdiv_(total, size, value=-rate * scale)
        if projection is not None:
            moved = projection(moved)
        # A repeated row is written several times with the same numbers.
        self._table.index_copy_(0, rows, moved)
        self._square.index_copy_(0, rows, square)
        self._last.index_fill_(0, rows, self._steps)
        self._gradient.index_fill_(0, rows, 0.0)
