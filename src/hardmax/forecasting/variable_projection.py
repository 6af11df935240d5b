r"""Inner weights by variable projection: the readout is eliminated, L-BFGS sees the inner weights only.

Let :math:`Q` span the features already there and :math:`R` be what they leave of the increments, each channel scaled
by its own deviation. For features :math:`\Phi(\theta)` of the network, projected off :math:`Q`, the best readout
:math:`C(\theta)` is a small linear solve, and

.. math:: \ell(\theta) = \log \tfrac1N \|E\|^2, \qquad E = R - \Phi(\theta)\,C(\theta)

is minimised over :math:`\theta`. Because :math:`C` is optimal, it does not move to first order: the gradient in
:math:`\Phi` is :math:`-2\,E\,C^\top/\|E\|^2`, and :math:`E` is orthogonal to :math:`Q` already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from .attention import NAMES, LagNetwork
from .backward import features_and_gradient
from .protocol import FloatArray

_HISTORY = 50
_JITTER = 1e-12


@dataclass(frozen=True)
class Trained:
    """The network with its best weights, and the share of the residual variance it explains."""

    network: LagNetwork
    explained: float


class Projection:
    """The loss and its gradient in the inner weights, for given data."""

    def __init__(self, network: LagNetwork, tokens: FloatArray, base: FloatArray, targets: FloatArray) -> None:
        self._network = network
        self._tokens = np.ascontiguousarray(tokens)
        left, singular, _ = np.linalg.svd(base, full_matrices=False)
        self._span = np.ascontiguousarray(left[:, singular > singular[0] * 1e-12])
        residual = targets - self._span @ (self._span.T @ targets)
        deviation = residual.std(axis=0)
        self.exact = bool((deviation < 1e-11 * np.maximum(targets.std(axis=0), 1e-300)).all())
        self._residual = residual / np.maximum(deviation, 1e-300)

    @property
    def start(self) -> FloatArray:
        """The weights to begin with, in one vector."""
        return np.concatenate([self._network.weights[name].reshape(-1) for name in NAMES[self._network.kind]])

    def network(self, vector: FloatArray) -> LagNetwork:
        """The network with these weights."""
        weights, at = {}, 0
        for name in NAMES[self._network.kind]:
            like = self._network.weights[name]
            weights[name] = vector[at : at + like.size].reshape(like.shape).copy()
            at += like.size
        return replace(self._network, weights=weights)

    def __call__(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """The logarithm of the unexplained share, and its gradient."""
        network = self.network(vector)
        features, pull_back = features_and_gradient(network, self._tokens)
        apart = features - self._span @ (self._span.T @ features)
        rows = len(apart)
        readout = _solve(apart.T @ apart / rows, apart.T @ self._residual / rows)
        error = self._residual - apart @ readout
        square = float((error**2).sum())
        gradients = pull_back((-2.0 / square) * (error @ readout.T))
        flat = np.concatenate([gradients[name].reshape(-1) for name in NAMES[network.kind]])
        return float(np.log(square / error.size)), flat


def _solve(gram: FloatArray, right: FloatArray) -> FloatArray:
    """A small positive definite solve with as little jitter as it takes."""
    level = float(np.trace(gram)) / len(gram)
    jitter = _JITTER
    for _ in range(8):
        try:
            return np.asarray(cho_solve(cho_factor(gram + np.eye(len(gram)) * (jitter * level)), right))
        except LinAlgError:
            jitter *= 30
    return np.zeros_like(right)


def train(
    network: LagNetwork,
    tokens: FloatArray,
    base: FloatArray,
    targets: FloatArray,
    *,
    iterations: int,
    go_on: Callable[[], bool] = lambda: True,
) -> Trained:
    """Fit the inner weights to what ``base`` leaves of ``targets``; ``go_on`` is asked after every iteration."""
    loss = Projection(network, tokens, base, targets)
    if loss.exact:
        return Trained(network, 0.0)
    best: list[tuple[float, FloatArray]] = []

    def watched(vector: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(all="ignore"):
            value, gradient = loss(vector)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return 1e10, np.zeros_like(vector)
        if not best or value < best[0][0]:
            best[:] = [(value, vector.copy())]
        return value, gradient

    def enough(_: FloatArray) -> None:
        if not go_on():
            raise StopIteration

    options = {"maxiter": iterations, "maxcor": _HISTORY, "ftol": 1e-6, "gtol": 1e-12}
    minimize(watched, loss.start, jac=True, method="L-BFGS-B", callback=enough, options=options)  # type: ignore[call-overload]
    if not best:
        return Trained(network, 0.0)
    value, vector = best[0]
    return Trained(loss.network(vector), float(1.0 - np.exp(min(value, 0.0))))
