r"""Attention over lags followed by a feed-forward layer, as features of a window (NumPy only).

For tokens :math:`z_{k-i}` (the lags) with :math:`e_i = W_e z_{k-i} + p_i`,

.. math::
    a = \mathrm{softmax}\bigl((W_q e_0)\cdot(W_k e_i)/\sqrt d\bigr), \qquad
    h = e_0 + m \sum_i a_i V_i z_{k-i}, \qquad
    \phi = [\tanh(W_1 h + b_1);\ h],

one query, the latest sample, so the cost is linear in the number :math:`m` of lags. ``"uniform"`` fixes
:math:`a_i = 1/m`; ``"mlp"`` puts one hidden layer on the same lags in place of attention. ``"shared"`` is the
published layer: one value matrix for all lags, on the embedded samples, :math:`h = e_0 + \sum_i a_i V e_i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from .protocol import FloatArray

Kind = Literal["attention", "uniform", "mlp", "shared"]
NAMES: dict[str, tuple[str, ...]] = {
    "attention": ("embed", "positions", "queries", "keys", "values", "hidden", "bias"),
    "uniform": ("embed", "positions", "values", "hidden", "bias"),
    "mlp": ("hidden", "bias"),
    "shared": ("embed", "positions", "queries", "keys", "values", "hidden", "bias"),
}


@dataclass(frozen=True)
class LagNetwork:
    """The inner weights of one attention (or ablated) feature map on ``lags`` samples of ``channels`` numbers."""

    kind: Kind
    lags: int
    channels: int
    weights: dict[str, FloatArray]
    feed_forward: bool = True

    @property
    def size(self) -> int:
        """The number of features."""
        hidden = int(self.weights["bias"].size)
        if self.kind == "mlp":
            return hidden
        width = int(self.weights["embed"].shape[1])
        return width + (hidden if self.feed_forward else 0)

    @property
    def parameters(self) -> int:
        """The number of inner weights in use."""
        unused = () if self.feed_forward else ("hidden", "bias")
        return sum(part.size for name, part in self.weights.items() if name not in unused)

    def attention(self, tokens: FloatArray) -> FloatArray:
        """How much the latest sample listens to each lag, oldest first; rows add up to one."""
        rows = len(tokens)
        if self.kind not in ("attention", "shared"):
            return np.full((rows, self.lags), 1.0 / self.lags)
        part = self.weights
        embedded = tokens.reshape(rows, self.lags, self.channels) @ part["embed"] + part["positions"]
        asked = (embedded[:, -1] @ part["queries"]) @ part["keys"].T
        scores = np.einsum("rld,rd->rl", embedded, asked) / sqrt(part["embed"].shape[1])
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def __call__(self, tokens: FloatArray) -> FloatArray:
        """The features of each row of flattened lags."""
        part = self.weights
        if self.kind == "mlp":
            return np.tanh(tokens @ part["hidden"] + part["bias"])
        heard = tokens
        if self.kind == "attention":
            shares = self.attention(tokens) * self.lags
            heard = tokens * np.repeat(shares, self.channels, axis=1)
        if self.kind == "shared":
            embedded = tokens.reshape(len(tokens), self.lags, self.channels) @ part["embed"] + part["positions"]
            heard = np.einsum("rl,rld->rd", self.attention(tokens), embedded)
        latest = tokens[:, -self.channels :] @ part["embed"] + part["positions"][-1]
        state = latest + heard @ part["values"]
        if not self.feed_forward:
            return np.asarray(state)
        return np.concatenate([np.tanh(state @ part["hidden"] + part["bias"]), state], axis=1)


def new_network(
    kind: Kind,
    lags: int,
    channels: int,
    generator: np.random.Generator,
    *,
    width: int = 8,
    hidden: int = 32,
    start: float = 0.2,
    feed_forward: bool = True,
) -> LagNetwork:
    """Small random weights; ``start`` is the size of the feed-forward ones. The MLP gets as many features."""
    draw = generator.standard_normal
    size = lags * channels
    if kind == "mlp":
        weights = {"hidden": start * draw((size, hidden + width)), "bias": 0.5 * draw(hidden + width)}
        return LagNetwork(kind, lags, channels, weights)
    weights = {
        "embed": draw((channels, width)) / sqrt(channels),
        "positions": 0.3 * draw((lags, width)),
        "queries": 0.3 * draw((width, width)) / sqrt(width),
        "keys": 0.3 * draw((width, width)) / sqrt(width),
        "values": draw((width, width)) / sqrt(width) if kind == "shared" else draw((size, width)) / sqrt(size),
        "hidden": start * draw((width, hidden)),
        "bias": 0.5 * draw(hidden),
    }
    return LagNetwork(kind, lags, channels, {name: weights[name] for name in NAMES[kind]}, feed_forward)
