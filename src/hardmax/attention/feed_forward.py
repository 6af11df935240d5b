"""Feed-forward layers, applied to each token by itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import InputError
from ..inputs import as_number, as_tensor
from ..shapes import ArrayLike, Matrix, PerToken, Tokens, Values
from .base import AbstractLayer


@dataclass(frozen=True, eq=False, init=False)
class FeedForwardLayer(AbstractLayer):
    r"""Feed-forward layer, applied per token: :math:`z' = \eta z + W\,\mathrm{relu}(U z + b)`.

    Parameters
    ----------
    U
        Input weights of shape (h, d), with h hidden units.
    b
        Biases of shape (h,).
    W
        Output weights of shape (d, h).
    eta
        Factor of the residual connection.
    """

    U: Matrix
    b: Values
    W: Matrix
    eta: float

    def __init__(self, U: ArrayLike, b: ArrayLike, W: ArrayLike, eta: float = 1.0) -> None:
        inner, _ = as_tensor("U", U)
        bias, _ = as_tensor("b", b)
        outer, _ = as_tensor("W", W)
        hidden = tuple(inner.shape)[:1]
        if inner.ndim != 2 or tuple(bias.shape) != hidden or tuple(outer.shape) != tuple(inner.shape)[::-1]:
            raise InputError(
                "U, b, W",
                f"shapes {tuple(inner.shape)}, {tuple(bias.shape)}, {tuple(outer.shape)}",
                "must have shapes (h, d), (h,), (d, h)",
                "U reads d coordinates into h units, W writes them back",
            )
        for name, tensor in (("U", inner), ("b", bias), ("W", outer)):
            if not bool(torch.isfinite(tensor).all()):
                raise InputError(name, "NaN or infinity", "must be finite", "remove the entries that are not finite")
            object.__setattr__(self, name, tensor.to(torch.float64))
        object.__setattr__(self, "eta", as_number("eta", eta, lambda x: True, "must be finite", "pass a finite eta"))

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        if tokens.shape[1] != self.U.shape[1]:
            raise InputError(
                "tokens",
                f"{tokens.shape[1]} coordinates",
                f"must have {self.U.shape[1]} coordinates to match U",
                "tokens are (token, coordinate); transpose them if the axes are swapped",
            )
        device = tokens.device
        hidden = torch.relu(tokens @ self.U.to(device).T + self.b.to(device))
        return self.eta * tokens + hidden @ self.W.to(device).T

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step(tokens[rows], weights[rows])

    def __str__(self) -> str:
        return f"feed-forward, {self.U.shape[0]} units, eta = {self.eta}"
