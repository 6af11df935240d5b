"""The network's features together with the way back: from gradients in the features to gradients in the weights."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from .attention import LagNetwork
from .protocol import FloatArray

PullBack = Callable[[FloatArray], dict[str, FloatArray]]


def features_and_gradient(network: LagNetwork, tokens: FloatArray) -> tuple[FloatArray, PullBack]:
    """What ``network(tokens)`` gives, and a function that pulls a gradient in it back to the weights."""
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
    listens = network.kind == "attention"
    shaped = tokens.reshape(rows, count, channels)
    newest = shaped[:, -1]
    latest = newest @ part["embed"] + part["positions"][-1]
    if listens:
        query = latest @ part["queries"]
        asked = query @ part["keys"].T
        # (e_i, asked) without forming the embeddings e_i.
        scores = np.einsum("rlc,rc->rl", shaped, asked @ part["embed"].T) + asked @ part["positions"].T
        scores = scores / root
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        heard = (shaped * (count * shares)[:, :, None]).reshape(rows, -1)
    else:
        heard = tokens
    state = latest + heard @ part["values"]
    hidden = np.tanh(state @ part["hidden"] + part["bias"])
    out = np.concatenate([hidden, state], axis=1) if network.feed_forward else state

    def pull_back(gradient: FloatArray) -> dict[str, FloatArray]:
        if network.feed_forward:
            width = hidden.shape[1]
            inner = gradient[:, :width] * (1.0 - hidden**2)
            to_state = gradient[:, width:] + inner @ part["hidden"].T
        else:
            inner, to_state = np.zeros_like(hidden), gradient
        found = {"hidden": state.T @ inner, "bias": inner.sum(axis=0), "values": heard.T @ to_state}
        found["embed"] = np.zeros_like(part["embed"])
        found["positions"] = np.zeros_like(part["positions"])
        to_latest = to_state
        if listens:
            weighed = count * ((to_state @ part["values"].T).reshape(shaped.shape) * shaped).sum(axis=2)
            to_scores = shares * (weighed - (shares * weighed).sum(axis=1, keepdims=True)) / root
            gathered = np.einsum("rl,rlc->rc", to_scores, shaped)
            to_asked = gathered @ part["embed"] + to_scores @ part["positions"]
            to_query = to_asked @ part["keys"]
            found["embed"] += gathered.T @ asked
            found["positions"] += to_scores.T @ asked
            found["keys"] = to_asked.T @ query
            found["queries"] = latest.T @ to_query
            to_latest = to_latest + to_query @ part["queries"].T
        found["embed"] += newest.T @ to_latest
        found["positions"][-1] += to_latest.sum(axis=0)
        return found

    return out, pull_back
