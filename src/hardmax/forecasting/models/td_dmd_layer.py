r"""Weights of the published layer that carry a given TD-DMD model, to any order in a small number.

One channel and :math:`p` lags :math:`z_1, \ldots, z_p` (the latest last). Take width :math:`p + 1` with axes
:math:`u_0, \ldots, u_p`, the embedding :math:`e_i = \varepsilon z_i u_0 + u_i` (one-hot positions), queries that map
:math:`u_p` to :math:`u_0`, keys and values equal to the identity. The scores are :math:`\delta z_i` with
:math:`\delta = \varepsilon/\sqrt{p+1}`, so that with :math:`x_i = p a_i - 1` and
:math:`L = \delta^{-1}\log\tfrac1p\sum_i e^{\delta z_i}`

.. math::
    \log(1 + x_i) = \delta\,(z_i - L), \qquad
    \sum_i a_i z_i = L + \frac{1}{p\delta}\sum_i (1 + x_i)\log(1 + x_i),

while the layer's state holds every :math:`a_i` and :math:`\varepsilon(z_p + \sum_i a_i z_i)`. Both identities are exact
and determine all :math:`z_i`. They need two functions of one number :math:`x_i = O(\delta)`, which are replaced by
combinations of :math:`x` and of :math:`r - 1` units :math:`\tanh(b + x)` with the same Taylor coefficients up to order
:math:`r`; order 1 needs no units. The prediction of the layer then differs from that of TD-DMD by
:math:`O(\delta^r)`; the proof is in the developers' notes on the published layer.

:math:`c` channels take :math:`c` heads of this kind side by side, with width :math:`c\,(p + 1)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ...errors import InputError
from ..data.delay_windows import lags
from ..features.feature_map import FeatureMap
from ..features.lag_network import LagNetwork
from ..protocol import FloatArray
from ..rollout import Member

_ROUNDING = float(np.finfo(np.float64).eps)
MOST_ORDER = 5
"""Highest order: beyond it the Taylor coefficients of the units are nearly dependent, and rounding dominates."""


@dataclass(frozen=True)
class _Units:
    """Biases of the units, and their weights in the logarithm and in (1 + x) log(1 + x), with those of x."""

    biases: FloatArray
    logarithm: FloatArray
    entropy: FloatArray
    """Weights, shape (1 + units,): that of x first."""

    def constant(self, weights: FloatArray) -> float:
        """Value of the units at x = 0 with these weights."""
        return float(np.tanh(self.biases) @ weights[1:])


def smallest_error_scale(order: int) -> float:
    """The number delta at which the errors O(delta ** order) and O(rounding / delta) are about equal."""
    return float(_ROUNDING ** (1.0 / (order + 1)))


def layer_network(channels: int, window: int, eps: float, order: int, hidden: int | None = None) -> LagNetwork:
    """Inner weights of the layer, for ``channels * window * (order - 1)`` hidden units, or more with zero weights."""
    block = window + 1
    width, units = channels * block, _units(order)
    per_lag = len(units.biases)
    hidden = channels * window * per_lag if hidden is None else hidden
    if hidden < channels * window * per_lag:
        raise InputError(
            "hidden",
            hidden,
            f"must be at least {channels * window * per_lag} for order {order}, {window} lags and {channels} channels",
            "lower `order`, or raise `hidden`",
        )
    embed, positions = np.zeros((channels, width)), np.zeros((window, width))
    queries, values = np.zeros((width, width)), np.zeros((channels * width, width))
    to_hidden, bias = np.zeros((width, hidden)), np.zeros(hidden)
    at = 0
    for j in range(channels):
        first = j * block
        embed[j, first] = eps
        queries[window, first] = 1.0  # axis `window` of the first block is the position of the latest sample
        values[j * width + first, first] = 1.0
        for i in range(window):
            values[j * width + 1 + i, first + 1 + i] = 1.0
            for b in units.biases:
                to_hidden[first + 1 + i, at] = window
                bias[at] = b - 1.0 - window * _own_position(j, i, window)
                at += 1
    positions[np.arange(window), 1 + np.arange(window)] = 1.0
    # A layer without hidden units keeps one of weight zero, because networks have at least one.
    if hidden == 0:
        to_hidden, bias = np.zeros((width, 1)), np.zeros(1)
    weights = {
        "embed": embed,
        "positions": positions,
        "queries": queries,
        "keys": np.eye(width),
        "values": values,
        "hidden": to_hidden,
        "bias": bias,
    }
    return LagNetwork("shared", window, channels, weights, heads=channels)


def layer_readout(network: LagNetwork, operator: FloatArray, offset: FloatArray, eps: float, order: int) -> FloatArray:
    """Readout on ``[1, hidden units, state]``, shape (features, outputs), that predicts ``offset + operator z``.

    ``operator`` has the shape (outputs, window, channels), the latest sample last.
    """
    outputs, window, channels = operator.shape
    block, units = window + 1, _units(order)
    per_lag, hidden = len(units.biases), len(network.weights["bias"])
    delta = eps / sqrt(block)
    readout = np.zeros((1 + network.size, outputs))
    readout[0] = offset
    state = readout[1 + hidden :]
    for j in range(channels):
        total = operator[:, :, j].sum(axis=1)
        # L = (H - log(1 + x_p) / delta - sum of (1 + x) log(1 + x) / (p delta)) / 2 with H = state_0 / eps
        state[j * block] += total / (2.0 * eps)
        for i in range(window):
            logarithm = operator[:, i, j] / delta - (total / (2.0 * delta) if i == window - 1 else 0.0)
            entropy = -total / (2.0 * window * delta)
            weights = np.outer(units.logarithm, logarithm) + np.outer(units.entropy, entropy)
            axis = j * block + 1 + i
            state[axis] += window * weights[0]
            # x = p * (state - own position) - 1
            readout[0] -= (1.0 + window * _own_position(j, i, window)) * weights[0]
            readout[0] -= units.constant(units.logarithm) * logarithm + units.constant(units.entropy) * entropy
            first = 1 + (j * window + i) * per_lag
            readout[first : first + per_lag] += weights[1:]
    return readout


def carried_td_dmd(operator: FloatArray, offset: FloatArray, eps: float, order: int) -> Member:
    """The layer with the readout that carries ``z_{k+1} = z_k + offset + operator z``, as a member of rollouts."""
    _, window, channels = operator.shape
    network = layer_network(channels, window, eps, order)
    return Member(layer_features(network), layer_readout(network, operator, offset, eps, order)[None])


def layer_features(network: LagNetwork) -> FeatureMap:
    """Feature map of a network that attends to all samples of its window."""
    return FeatureMap(
        network.channels,
        tokens=lags(network.channels, network.lags),
        networks=(network,),
        scales=(np.ones(network.size),),
        token_lags=tuple(range(network.lags))[::-1],
    )


def linear_operator(member: Member) -> tuple[FloatArray, FloatArray]:
    """Operator (outputs, window, channels) and offset (outputs,) of the increments of a linear member."""
    features, readout = member.features, member.readouts[0]
    size = features.window * features.channels
    # The features are affine in the window, so zero and the unit vectors determine them.
    probes = features(np.concatenate([np.zeros((1, size)), np.eye(size)])) @ readout
    operator = (probes[1:] - probes[0]).T
    return operator.reshape(-1, features.window, features.channels), probes[0]


def _own_position(channel: int, lag: int, window: int) -> float:
    """One for the axis that also holds the position of the latest sample from the residual connection, else zero."""
    return 1.0 if channel == 0 and lag == window - 1 else 0.0


def _units(order: int) -> _Units:
    """Units and weights that reproduce both functions up to ``order``."""
    if order == 1:
        return _Units(np.empty(0), np.ones(1), np.ones(1))
    # Spread around 0.66, where the second derivative of tanh is largest; the powers are then well separated.
    biases = np.array([0.66]) if order == 2 else np.linspace(0.15, 1.2, order - 1)
    series = np.stack([tanh_series(b, order) for b in biases], axis=1)
    powers = np.arange(2, order + 1)
    signs = (-1.0) ** powers
    found = []
    for target in (-signs / powers, signs / (powers * (powers - 1))):
        weights = np.linalg.solve(series[2:], target)
        found.append(np.concatenate([[1.0 - series[1] @ weights], weights]))
    return _Units(biases, *found)


def tanh_series(at: float, order: int) -> FloatArray:
    """Taylor coefficients of tanh at ``at``, shape (order + 1,), by the recursion of y' = 1 - y²."""
    y = np.zeros(order + 1)
    y[0] = np.tanh(at)
    for n in range(order):
        y[n + 1] = ((1.0 if n == 0 else 0.0) - y[: n + 1] @ y[n::-1]) / (n + 1)
    return y
