"""Feed-forward layers, applied to each token by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..errors import InputError
from ..inputs import as_number, as_tensor
from ..scalars import as_choice
from ..shapes import ArrayLike, Matrix, PerToken, Tokens, Values
from .base import AbstractLayer
from .heads import as_vector, in_blocks
from .norms import AbstractNorm

_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu-tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
    "tanh": torch.tanh,
    "identity": lambda x: x,
}


@dataclass(frozen=True, eq=False, init=False)
class FeedForwardLayer(AbstractLayer):
    r"""Feed-forward layer: :math:`z' = \eta z + W\,\sigma(U z + b) + c`, applied to each token.

    With a ``gate`` G the hidden units are :math:`\sigma(G z) \odot (U z + b)`. Normalisations are placed as in
    :class:`hardmax.AttentionLayer`.

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
    c
        Output biases of shape (d,); zero when left out.
    activation
        ``"relu"``, ``"gelu"``, ``"gelu-tanh"``, ``"silu"``, ``"tanh"`` or ``"identity"``.
    gate
        Weights of a gate, shape (h, d); none when left out.
    pre_norm, update_norm, post_norm
        Normalisation of the tokens before the layer, of the update, and of the result.
    """

    U: Matrix
    b: Values
    W: Matrix
    eta: float
    c: Values | None
    activation: str
    gate: Matrix | None
    pre_norm: AbstractNorm | None
    update_norm: AbstractNorm | None
    post_norm: AbstractNorm | None

    def __init__(
        self,
        U: ArrayLike,
        b: ArrayLike,
        W: ArrayLike,
        eta: float = 1.0,
        *,
        c: ArrayLike | None = None,
        activation: str = "relu",
        gate: ArrayLike | None = None,
        pre_norm: AbstractNorm | None = None,
        update_norm: AbstractNorm | None = None,
        post_norm: AbstractNorm | None = None,
    ) -> None:
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
        gating = None if gate is None else as_tensor("gate", gate)[0]
        if gating is not None and gating.shape != inner.shape:
            raise InputError("gate", f"shape {tuple(gating.shape)}", "must have the shape of U", "pass (h, d) weights")
        for name, tensor in (("U", inner), ("b", bias), ("W", outer), ("gate", gating)):
            if tensor is not None and not bool(torch.isfinite(tensor).all()):
                raise InputError(name, "NaN or infinity", "must be finite", "remove the entries that are not finite")
            object.__setattr__(self, name, None if tensor is None else tensor.to(torch.float64))
        object.__setattr__(self, "eta", as_number("eta", eta, lambda x: True, "must be finite", "pass a finite eta"))
        object.__setattr__(self, "c", as_vector("c", c, inner.shape[1]))
        as_choice("activation", activation, tuple(_ACTIVATIONS))
        object.__setattr__(self, "activation", activation)
        for name, norm in (("pre_norm", pre_norm), ("update_norm", update_norm), ("post_norm", post_norm)):
            if norm is not None and not isinstance(norm, AbstractNorm):
                raise InputError(name, repr(norm), "must be a normalisation", "pass for example LayerNorm()")
            object.__setattr__(self, name, norm)

    @property
    def dimension(self) -> int | None:
        return int(self.U.shape[1])

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        if tokens.shape[1] != self.U.shape[1]:
            raise InputError(
                "tokens",
                f"{tokens.shape[1]} coordinates",
                f"must have {self.U.shape[1]} coordinates to match U",
                "tokens are (token, coordinate); transpose them if the axes are swapped",
            )
        return in_blocks(self._moved, tokens)

    def _moved(self, tokens: Tokens) -> Tokens:
        device, activation = tokens.device, _ACTIVATIONS[self.activation]
        inputs = tokens if self.pre_norm is None else self.pre_norm(tokens)
        hidden = inputs @ self.U.to(device).T + self.b.to(device)
        gated = activation(hidden) if self.gate is None else activation(inputs @ self.gate.to(device).T) * hidden
        update = gated @ self.W.to(device).T
        update = update if self.c is None else update + self.c.to(device)
        update = update if self.update_norm is None else self.update_norm(update)
        moved = self.eta * tokens + update
        return moved if self.post_norm is None else self.post_norm(moved)

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step(tokens[rows], weights[rows])

    def __str__(self) -> str:
        kind = "" if self.activation == "relu" else f"{self.activation}, "
        gated = "" if self.gate is None else "gated, "
        return f"feed-forward, {kind}{gated}{self.U.shape[0]} units, eta = {self.eta}"
