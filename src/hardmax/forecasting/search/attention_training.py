r"""Training of attention features by variable projection on the residuals of the best polynomial model.

Let :math:`Q` span the features of that model and :math:`R` be the residuals of the increments, each channel scaled
by its own standard deviation. For features :math:`\Phi(\theta)` of the network, projected off :math:`Q`, the best
readout :math:`C(\theta)` is a small linear solve, and

.. math:: \ell(\theta) = \log \tfrac1N \|E\|^2, \qquad E = R - \Phi(\theta)\,C(\theta)

is minimised over :math:`\theta`. Because :math:`C` is optimal, its derivative does not enter: the gradient in
:math:`\Phi` is :math:`-2\,E\,C^\top/\|E\|^2`, and :math:`E` is orthogonal to :math:`Q` already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.delay_windows import Embedding, flat_windows, lags
from ..features.candidates import Group
from ..features.feature_map import FeatureMap
from ..features.lag_network import NAMES, Kind, LagNetwork, features_and_gradient, new_network
from ..protocol import FloatArray
from .readout_search import Candidate, Learner

_HISTORY = 50
"""Pairs that L-BFGS stores: many, because an evaluation costs much more than the update."""
_JITTER = 1e-12
"""First shift of the diagonal, relative to its mean: near rounding, and raised where that is not check_time."""


@dataclass(frozen=True)
class Trained:
    """A network with its best weights, and the share of the residual variance that it explains."""

    network: LagNetwork
    explained: float


class Projection:
    """Loss of the inner weights and its gradient, for given data."""

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
        """Initial weights as one vector."""
        return np.concatenate([self._network.weights[name].reshape(-1) for name in NAMES[self._network.kind]])

    def network(self, vector: FloatArray) -> LagNetwork:
        """Network with the weights of a vector."""
        weights, at = {}, 0
        for name in NAMES[self._network.kind]:
            like = self._network.weights[name]
            weights[name] = vector[at : at + like.size].reshape(like.shape).copy()
            at += like.size
        return replace(self._network, weights=weights)

    def __call__(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """Logarithm of the unexplained share of variance, and its gradient."""
        network = self.network(vector)
        features, pull_back = features_and_gradient(network, self._tokens)
        projected = features - self._span @ (self._span.T @ features)
        rows = len(projected)
        readout = _solve(projected.T @ projected / rows, projected.T @ self._residual / rows)
        error = self._residual - projected @ readout
        square = float((error**2).sum())
        gradients = pull_back((-2.0 / square) * (error @ readout.T))
        flat = np.concatenate([gradients[name].reshape(-1) for name in NAMES[network.kind]])
        return float(np.log(square / error.size)), flat


def _solve(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solution of a small positive definite system, with the least jitter that makes it solvable."""
    from scipy.linalg import cho_factor, cho_solve  # not imported to forecast from a file

    level = float(np.trace(gram)) / len(gram)
    jitter = _JITTER
    for _ in range(8):
        try:
            return np.asarray(cho_solve(cho_factor(gram + np.eye(len(gram)) * (jitter * level)), right))
        except np.linalg.LinAlgError:
            jitter *= 30
    return np.zeros_like(right)


def train(
    network: LagNetwork,
    tokens: FloatArray,
    base: FloatArray,
    targets: FloatArray,
    *,
    iterations: int,
    may_continue: Callable[[], bool] = lambda: True,
) -> Trained:
    """Network trained on the residuals of ``targets`` after ``base``; stops when ``may_continue`` returns False."""
    from scipy.optimize import minimize  # not imported to forecast from a file

    loss = Projection(network, tokens, base, targets)
    if loss.exact:
        return Trained(network, 0.0)
    best: list[tuple[float, FloatArray]] = []

    def evaluate(vector: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(all="ignore"):
            value, gradient = loss(vector)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return 1e10, np.zeros_like(vector)
        if not best or value < best[0][0]:
            best[:] = [(value, vector.copy())]
        return value, gradient

    def check_time(_: FloatArray) -> None:
        if not may_continue():
            raise StopIteration

    options = {"maxiter": iterations, "maxcor": _HISTORY, "ftol": 1e-6, "gtol": 1e-12}
    minimize(evaluate, loss.start, jac=True, method="L-BFGS-B", callback=check_time, options=options)  # type: ignore[call-overload]
    if not best:
        return Trained(network, 0.0)
    value, vector = best[0]
    return Trained(loss.network(vector), float(1.0 - np.exp(min(value, 0.0))))


ITERATIONS = 150
"""Iterations of L-BFGS at most."""
_ROWS = 1200
"""Windows that one network is trained on at most: the cost of an iteration is linear in them."""
_FEWEST_ROWS = 60
"""Windows below which no network is trained."""
_STARTS = (0.1, 0.3, 0.2)
"""Sizes of the initial feed-forward weights of the first three restarts, then again."""
_LEVELS = (0.0, 1e-3, 1e-2)
"""Levels of window noise, those of :data:`~hardmax.forecasting.features.candidates.NOISES`."""


@dataclass(frozen=True)
class TrainedNetworks:
    """Candidate groups with the networks, and the share of residual variance explained in training per restart."""

    groups: list[Group]
    explained: list[float]


def projected_lags(base: Embedding, channels: int, count: int, spacing: int) -> Embedding:
    """Lags after projection onto the principal coordinates of the base, which average noise."""
    assert base.matrix is not None  # noqa: S101 (called for principal coordinates only)
    unit = base.matrix / np.linalg.norm(base.matrix, axis=0)
    chosen = lags(channels, count, spacing).columns
    matrix = unit @ unit[chosen].T
    return Embedding(base.window, base.columns, np.ascontiguousarray(matrix))


def tokens_for(base: FeatureMap, spacing: int, longest: int) -> tuple[Embedding, tuple[int, ...]]:
    """Embedding of the tokens, and their lags, oldest first: those of the base, or a few within its window."""
    channels, polynomial = base.channels, base.polynomial
    if polynomial is not None and polynomial.matrix is None and polynomial.size >= 3 * channels:
        return polynomial, tuple(int(-column // channels) - 1 for column in polynomial.columns[::channels])
    if polynomial is not None and polynomial.matrix is not None and polynomial.window >= 4:
        count = min(6, polynomial.window)
        gap = (polynomial.window - 1) // (count - 1)
        return projected_lags(polynomial, channels, count, gap), _lags(count, gap)
    count = 4 if channels > 1 else 6
    gap = max(1, spacing // (4 if channels > 1 else 2))
    while count > 1 and (count - 1) * gap + 1 > longest:
        gap, count = (gap - 1, count) if gap > 1 else (gap, count - 1)
    return lags(channels, count, gap), _lags(count, gap)


def _lags(count: int, gap: int) -> tuple[int, ...]:
    return tuple(gap * i for i in range(count))[::-1]


def train_networks(
    base: Candidate,
    pieces: Sequence[FloatArray],
    outputs: int,
    *,
    kind: Kind,
    restarts: int,
    spacing: int,
    longest: int,
    seed: int,
    may_continue: Callable[[], bool],
    feed_forward: bool = True,
    iterations: int = ITERATIONS,
) -> TrainedNetworks:
    """Networks trained on ``pieces``: each of them, and all together, with the features of the base in one readout.

    The last of three restarts is trained with another level of window noise.
    """
    tokens, token_lags = tokens_for(base.features, spacing, longest)
    count = len(token_lags)
    features = replace(base.features, tokens=tokens, token_lags=token_lags)
    learner = Learner(pieces, outputs, seed)
    networks: list[LagNetwork] = []
    scales: list[FloatArray] = []
    explained: list[float] = []
    for restart in range(restarts):
        if restart and not may_continue():
            break
        noise = base.noise if restart % 3 < 2 else _neighbour(base.noise)
        rows, targets = learner.design(features, noise)
        if len(rows) < _FEWEST_ROWS:
            break
        token_rows = _tokens_along(learner.noisy(noise), features)
        generator = np.random.default_rng([seed, 17, restart])
        chosen = generator.permutation(len(rows))[:_ROWS]
        network = new_network(
            kind,
            count,
            features.channels,
            generator,
            start=_STARTS[restart % 3],
            feed_forward=feed_forward,
        )
        found = train(
            network, token_rows[chosen], rows[chosen], targets[chosen], iterations=iterations, may_continue=may_continue
        )
        networks.append(found.network)
        scales.append(1.0 / (found.network(token_rows).std(axis=0) + 1e-12))
        explained.append(found.explained)
    return TrainedNetworks(_groups(base, features, networks, scales, kind), explained)


def _groups(
    base: Candidate, features: FeatureMap, networks: list[LagNetwork], scales: list[FloatArray], kind: str
) -> list[Group]:
    name = {"attention": "attention", "uniform": "uniform attention", "mlp": "an MLP"}[kind]
    groups = [
        Group(kind, f"{name} {i + 1} on {base.label}", (replace(features, networks=(net,), scales=(scale,)),))
        for i, (net, scale) in enumerate(zip(networks, scales, strict=True))
    ]
    if len(networks) > 1:
        every = replace(features, networks=tuple(networks), scales=tuple(scales))
        groups.append(Group(kind, f"{len(networks)} × {name} on {base.label}", (every,)))
    return groups


def _tokens_along(trajectories: Sequence[FloatArray], features: FeatureMap) -> FloatArray:
    assert features.tokens is not None  # noqa: S101 (set by the caller above)
    parts = [features.tokens(flat_windows(z, features.window)) for z in trajectories if len(z) > features.window]
    return np.concatenate(parts)


def _neighbour(noise: float) -> float:
    """The neighbouring level of noise."""
    return _LEVELS[1] if noise in (_LEVELS[0], _LEVELS[2]) else _LEVELS[2]
