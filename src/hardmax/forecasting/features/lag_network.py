r"""Attention over lags followed by a feed-forward layer, with its gradient, in NumPy.

For tokens :math:`z_{k-i}` (the lags) with :math:`e_i = W_e z_{k-i} + p_i`,

.. math::
    a = \mathrm{softmax}\bigl((W_q e_0)\cdot(W_k e_i)/\sqrt d\bigr), \qquad
    h = e_0 + m \sum_i a_i V_i z_{k-i}, \qquad
    \phi = [\tanh(W_1 h + b_1);\ h],

with the latest sample as the only query, so that the cost is linear in the number :math:`m` of lags. ``"uniform"``
fixes :math:`a_i = 1/m`; ``"mlp"`` replaces attention by one hidden layer on the same lags. ``"shared"`` is the
published layer, with one value matrix for all lags applied to the embedded samples, :math:`h = e_0 + \sum_i a_i V e_i`.
It may have several heads: the columns of :math:`W_q` and :math:`W_k` are divided among them, each head has attention
weights :math:`a^{(m)}` and a value matrix of its own (a row block of ``values``), and their outputs are added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from ..protocol import FloatArray

Kind = Literal["attention", "uniform", "mlp", "shared"]
NAMES: dict[str, tuple[str, ...]] = {
    "attention": ("embed", "positions", "queries", "keys", "values", "hidden", "bias"),
    "uniform": ("embed", "positions", "values", "hidden", "bias"),
    "mlp": ("hidden", "bias"),
    "shared": ("embed", "positions", "queries", "keys", "values", "hidden", "bias"),
}


@dataclass(frozen=True)
class LagNetwork:
    """Inner weights of one attention (or ablated) network on ``lags`` samples of ``channels`` numbers."""

    kind: Kind
    lags: int
    channels: int
    weights: dict[str, FloatArray]
    feed_forward: bool = True
    heads: int = 1
    """Attention heads; more than one for ``"shared"`` only."""

    @property
    def size(self) -> int:
        """Number of features."""
        hidden = int(self.weights["bias"].size)
        if self.kind == "mlp":
            return hidden
        width = int(self.weights["embed"].shape[1])
        return width + (hidden if self.feed_forward else 0)

    @property
    def parameters(self) -> int:
        """Number of inner weights in use."""
        unused = () if self.feed_forward else ("hidden", "bias")
        return sum(part.size for name, part in self.weights.items() if name not in unused)

    def attention(self, tokens: FloatArray) -> FloatArray:
        """Attention weights of the latest sample, shape (rows, lags), oldest first; each row sums to one.

        With several heads their mean.
        """
        if self.heads > 1:
            return np.asarray(self._by_head(self._embedded(tokens)).mean(axis=1))
        rows = len(tokens)
        if self.kind not in ("attention", "shared"):
            return np.full((rows, self.lags), 1.0 / self.lags)
        part = self.weights
        embedded = tokens.reshape(rows, self.lags, self.channels) @ part["embed"] + part["positions"]
        key_query = (embedded[:, -1] @ part["queries"]) @ part["keys"].T
        scores = np.einsum("rld,rd->rl", embedded, key_query) / sqrt(part["embed"].shape[1])
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _embedded(self, tokens: FloatArray) -> FloatArray:
        """Embedded samples with their positions, shape (rows, lags, width)."""
        shaped = tokens.reshape(len(tokens), self.lags, self.channels)
        return np.asarray(shaped @ self.weights["embed"] + self.weights["positions"])

    def _by_head(self, embedded: FloatArray) -> FloatArray:
        """Attention weights of the latest sample per head, shape (rows, heads, lags)."""
        rows, _, width = embedded.shape
        query = (embedded[:, -1] @ self.weights["queries"]).reshape(rows, self.heads, -1)
        keys = self.weights["keys"].reshape(width, self.heads, -1)
        key_query = np.einsum("rhk,dhk->rhd", query, keys)
        scores = np.einsum("rld,rhd->rhl", embedded, key_query) / sqrt(width // self.heads)
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        return np.asarray(shares / shares.sum(axis=2, keepdims=True))

    def __call__(self, tokens: FloatArray) -> FloatArray:
        """Features of each row of flattened lags, shape (rows, size)."""
        part = self.weights
        if self.kind == "mlp":
            return np.tanh(tokens @ part["hidden"] + part["bias"])
        weighted = tokens
        if self.kind == "attention":
            shares = self.attention(tokens) * self.lags
            weighted = tokens * np.repeat(shares, self.channels, axis=1)
        if self.kind == "shared" and self.heads == 1:
            weighted = np.einsum("rl,rld->rd", self.attention(tokens), self._embedded(tokens))
        elif self.kind == "shared":
            embedded = self._embedded(tokens)
            weighted = np.einsum("rhl,rld->rhd", self._by_head(embedded), embedded).reshape(len(tokens), -1)
        latest = tokens[:, -self.channels :] @ part["embed"] + part["positions"][-1]
        state = latest + weighted @ part["values"]
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
    heads: int = 1,
) -> LagNetwork:
    """Network with small random weights; ``start`` scales the feed-forward ones. The MLP has as many features.

    ``heads`` divides ``width`` and is one unless the kind is ``"shared"``.
    """
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
        "values": draw((heads * width, width)) / sqrt(heads * width)
        if kind == "shared"
        else draw((size, width)) / sqrt(size),
        "hidden": start * draw((width, hidden)),
        "bias": 0.5 * draw(hidden),
    }
    return LagNetwork(kind, lags, channels, {name: weights[name] for name in NAMES[kind]}, feed_forward, heads)


PullBack = Callable[[FloatArray], dict[str, FloatArray]]


def features_and_gradient(network: LagNetwork, tokens: FloatArray) -> tuple[FloatArray, PullBack]:
    """``network(tokens)``, and a function from a gradient in these features to the gradients in the weights."""
    if network.kind == "mlp":
        return _perceptron(network, tokens)
    return _attention(network, tokens)


def _perceptron(network: LagNetwork, tokens: FloatArray) -> tuple[FloatArray, PullBack]:
    out = np.tanh(tokens @ network.weights["hidden"] + network.weights["bias"])

    def pull_back(gradient: FloatArray) -> dict[str, FloatArray]:
        inner = gradient * (1.0 - out**2)
        return {"hidden": tokens.T @ inner, "bias": inner.sum(axis=0)}

    return out, pull_back


def _attention(network: LagNetwork, tokens: FloatArray) -> tuple[FloatArray, PullBack]:
    part = network.weights
    rows, count, channels = len(tokens), network.lags, network.channels
    root = sqrt(part["embed"].shape[1])
    attends = network.kind == "attention"
    shaped = tokens.reshape(rows, count, channels)
    newest = shaped[:, -1]
    latest = newest @ part["embed"] + part["positions"][-1]
    if attends:
        query = latest @ part["queries"]
        key_query = query @ part["keys"].T
        # (e_i, key_query) without forming the embeddings e_i.
        scores = np.einsum("rlc,rc->rl", shaped, key_query @ part["embed"].T) + key_query @ part["positions"].T
        scores = scores / root
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        weighted = (shaped * (count * shares)[:, :, None]).reshape(rows, -1)
    else:
        weighted = tokens
    state = latest + weighted @ part["values"]
    hidden = np.tanh(state @ part["hidden"] + part["bias"])
    out = np.concatenate([hidden, state], axis=1) if network.feed_forward else state

    def pull_back(gradient: FloatArray) -> dict[str, FloatArray]:
        if network.feed_forward:
            width = hidden.shape[1]
            inner = gradient[:, :width] * (1.0 - hidden**2)
            to_state = gradient[:, width:] + inner @ part["hidden"].T
        else:
            inner, to_state = np.zeros_like(hidden), gradient
        found = {"hidden": state.T @ inner, "bias": inner.sum(axis=0), "values": weighted.T @ to_state}
        found["embed"] = np.zeros_like(part["embed"])
        found["positions"] = np.zeros_like(part["positions"])
        to_latest = to_state
        if attends:
            weighed = count * ((to_state @ part["values"].T).reshape(shaped.shape) * shaped).sum(axis=2)
            to_scores = shares * (weighed - (shares * weighed).sum(axis=1, keepdims=True)) / root
            gathered = np.einsum("rl,rlc->rc", to_scores, shaped)
            to_key_query = gathered @ part["embed"] + to_scores @ part["positions"]
            to_query = to_key_query @ part["keys"]
            found["embed"] += gathered.T @ key_query
            found["positions"] += to_scores.T @ key_query
            found["keys"] = to_key_query.T @ query
            found["queries"] = latest.T @ to_query
            to_latest = to_latest + to_query @ part["queries"].T
        found["embed"] += newest.T @ to_latest
        found["positions"][-1] += to_latest.sum(axis=0)
        return found

    return out, pull_back
