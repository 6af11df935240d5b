r"""Adam, written out: building one of torch's own loads its compiler, which takes longer than training a small model.

.. math:: m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
          p \leftarrow p - \eta\, \frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}
"""

from __future__ import annotations

import numpy as np
import torch

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """One step at a time; the moments belong to the caller, who may keep them in a file."""

    def __init__(self, parameters: dict[str, torch.Tensor], moments: dict[str, torch.Tensor], steps: int) -> None:
        self._parameters = parameters
        self._moments = moments
        self._steps = steps

    @staticmethod
    def moments_for(parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Moments before the first step."""
        return {f"{kind}.{name}": torch.zeros_like(p) for name, p in parameters.items() for kind in ("mean", "square")}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move every parameter by its gradient, and forget the gradient."""
        self._steps += 1
        scale = (1 - _BETA_2**self._steps) ** 0.5
        for name, parameter in self._parameters.items():
            gradient = parameter.grad
            if gradient is None:
                continue
            mean, square = self._moments[f"mean.{name}"], self._moments[f"square.{name}"]
            mean.lerp_(gradient, 1 - _BETA_1)
            square.mul_(_BETA_2).addcmul_(gradient, gradient, value=1 - _BETA_2)
            # The gradient is of no use any more, so its memory takes the denominator. By NumPy, because most words
            # of a large vocabulary have had no gradient yet, and torch takes five times as long for the root of 0.
            if square.device.type == "cpu":
                np.sqrt(square.numpy(), out=gradient.numpy())
            else:
                torch.sqrt(square, out=gradient)
            gradient.add_(_EPSILON * scale)
            parameter.addcdiv_(mean, gradient, value=-rate * scale / (1 - _BETA_1**self._steps))
            parameter.grad = None
