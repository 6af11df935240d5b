r"""Training of the published layer by variable projection: start, projected loss, and centred ridge readouts.

The start holds TD-DMD (:mod:`.td_dmd_layer`) and random feed-forward units that act on the samples of the window: the
state of the layer holds the samples times a small number :math:`\delta`, so units with weights of size
:math:`1/\delta` are those of an MLP on the window. The inner weights :math:`\theta` are then trained by L-BFGS on

.. math:: \log\min_C \bigl(\|D - \Phi(\theta)\,C\|^2 + \lambda\|C\|^2\bigr)

with the readout :math:`C` solved exactly at every step; its derivative does not enter, because it is optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from ..data.delay_windows import flat_windows, lags
from ..features.feature_map import FeatureMap
from ..features.lag_network import NAMES, LagNetwork
from ..protocol import FloatArray
from ..search.readout_search import Learner
from .published import published_features
from .td_dmd_layer import layer_network

DELTA, _ORDER = 1e-4, 2
"""Size of the scores and order of the start: TD-DMD is in it up to 1e-8, and rounding is 1e-12."""
_ROWS = 1500
"""Windows that the inner weights are trained on at most: the cost of an iteration is linear in them."""
_HISTORY = 50
"""Pairs that L-BFGS stores: many, because an evaluation costs much more than the update."""
_RIDGE = 1e-12
"""Ridge in training, relative to the rows: smaller ones make the gradient inexact on smooth records."""
_PROBES = 8
"""Random vectors from which the size of the derivative in each weight is estimated."""
RANGE = 0.5
"""Standard deviation of the weights of random units per coordinate of variance one: tanh is then clearly nonlinear."""
_WEAKEST = 1e-3
"""Smallest singular value of the windows, relative to the largest, whose direction the random units see."""


def with_random_units(
    directions: FloatArray, channels: int, delta: float, hidden: int, generator: np.random.Generator
) -> LagNetwork:
    """The start with the units that TD-DMD needs, and ``hidden`` random units on the samples of the window.

    ``directions`` (coordinates, window, channels) map windows to coordinates of variance one.
    """
    window = directions.shape[1]
    block = window + 1
    eps = delta * float(np.sqrt(block))
    network = layer_network(channels, window, eps, _ORDER)
    to_hidden, bias = np.zeros((channels * block, hidden)), 0.5 * generator.standard_normal(hidden)
    mixed = np.einsum("kh,kpc->pch", RANGE * generator.standard_normal((len(directions), hidden)), directions)
    for j in range(channels):
        first = j * block
        # As log(1 + x_i) = delta (z_i - L) and the first axis of the block is eps (z_p + m), to first order in delta
        # sum_i w_i z_i = sum_i w_i x_i / delta + W L with L = (H - x_p / delta) / 2 and W the sum of the weights.
        total = mixed[:, j].sum(axis=0)
        steep = mixed[:, j] / delta
        steep[-1] -= total / (2.0 * delta)
        to_hidden[first] = total / (2.0 * eps)
        to_hidden[first + 1 : first + block] = window * steep
        # x_i = window * share_i - 1; the axis of the latest position of the first block holds one more.
        bias = bias - steep.sum(axis=0) - (window * steep[-1] if j == 0 else 0.0)
    weights = network.weights | {
        "hidden": np.concatenate([to_hidden, network.weights["hidden"]], axis=1),
        "bias": np.concatenate([bias, network.weights["bias"]]),
    }
    return replace(network, weights=weights)


def principal_directions(pieces: Sequence[FloatArray], window: int) -> FloatArray:
    """Principal directions of windows, scaled to coordinates of variance one, (coordinates, window, channels).

    Samples of a smooth record are nearly collinear; units on single samples would see differences of rounding size.
    """
    rows = np.concatenate([flat_windows(z, window) for z in pieces if len(z) > window])
    centred = rows[:: max(1, len(rows) // _ROWS)] - rows.mean(axis=0)
    _, singular, right = np.linalg.svd(centred, full_matrices=False)
    kept = int((singular > _WEAKEST * singular[0]).sum())
    scaled = right[:kept] / (singular[:kept, None] / np.sqrt(len(centred)))
    return np.asarray(scaled.reshape(kept, window, -1))


class ProjectedLoss:
    """Logarithm of the projected loss and its gradient, in scaled inner weights."""

    def __init__(
        self, features: FeatureMap, rows: FloatArray, targets: FloatArray, frozen: tuple[str, ...], seed: int
    ) -> None:
        (self._network,) = features.networks
        self._names = [name for name in NAMES[self._network.kind] if name not in frozen]
        assert features.tokens is not None  # noqa: S101 (a layer has tokens)
        self._tokens = torch.from_numpy(np.ascontiguousarray(features.tokens(rows)))
        base = np.empty((len(rows), 0)) if features.linear is None else features.linear(rows)
        self._base = base - base.mean(axis=0)
        linear = rows - rows.mean(axis=0)
        residual = targets - targets.mean(axis=0)
        residual = residual - linear @ np.linalg.lstsq(linear, residual, rcond=1e-12)[0]
        self._targets = targets - targets.mean(axis=0)
        # Each channel counts in units of what a linear model of the same window leaves.
        self._targets = self._targets / np.maximum(residual.std(axis=0), 1e-9 * targets.std(axis=0) + 1e-300)
        self.start = self._vector(self._network.weights)
        self._draw = torch.Generator().manual_seed(seed)
        self.rescale(self.start)

    def rescale(self, vector: FloatArray) -> None:
        """Set the units of features and of inner weights by their sizes at ``vector``."""
        features, part = self._features(vector)
        values = features.detach().numpy()
        self._sizes = np.concatenate([self._base.std(axis=0), values.std(axis=0)]) + 1e-300
        readout, _ = self._solve(values)
        squares = np.zeros_like(vector)
        for _ in range(_PROBES):
            signs = torch.randint(0, 2, (len(values), readout.shape[1]), generator=self._draw, dtype=torch.float64)
            probe = (2 * signs - 1) @ torch.from_numpy(readout[self._base.shape[1] :].T.copy())
            found = torch.autograd.grad(features, part, probe, retain_graph=True)
            squares += np.concatenate([g.numpy().reshape(-1) for g in found]) ** 2 / _PROBES
        typical = float(np.sqrt(squares.mean())) + 1e-300
        # Weights without influence get the units of those with little.
        self.unit = 1.0 / (np.sqrt(squares) + 1e-3 * typical)
        self.origin = vector.copy()

    def __call__(self, scaled: FloatArray) -> tuple[float, FloatArray]:
        """Loss and gradient at ``origin + unit * scaled``."""
        features, part = self._features(self.origin + self.unit * scaled)
        values = features.detach().numpy()
        if not np.isfinite(values).all():
            return 1e10, np.zeros_like(scaled)
        readout, error = self._solve(values)
        penalty = _RIDGE * len(error) * float(((readout * self._sizes[:, None]) ** 2).sum())
        square = float((error**2).sum()) + penalty
        pull = torch.from_numpy((-2.0 / square) * (error @ readout[self._base.shape[1] :].T))
        found = torch.autograd.grad(features, part, pull)
        gradient = np.concatenate([g.numpy().reshape(-1) for g in found]) * self.unit
        return float(np.log(square / error.size)), gradient

    def network(self, vector: FloatArray) -> LagNetwork:
        """Network with the weights of a vector."""
        weights, at = dict(self._network.weights), 0
        for name in self._names:
            like = weights[name]
            weights[name] = vector[at : at + like.size].reshape(like.shape).copy()
            at += like.size
        return replace(self._network, weights=weights)

    def _vector(self, weights: dict[str, FloatArray]) -> FloatArray:
        return np.concatenate([weights[name].reshape(-1) for name in self._names])

    def _features(self, vector: FloatArray) -> tuple[torch.Tensor, list[torch.Tensor]]:
        network = self.network(vector)
        part = {name: torch.tensor(value, requires_grad=name in self._names) for name, value in network.weights.items()}
        return published_features(network, part, self._tokens), [part[name] for name in self._names]

    def _solve(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Readout on base and network features, in their own units, and the errors that it leaves."""
        centred = np.concatenate([self._base, values - values.mean(axis=0)], axis=1)
        factor_q, factor = np.linalg.qr(centred / self._sizes)
        left, singular, right = np.linalg.svd(factor, full_matrices=False)  # fewer rows than features in short records
        shrunk = singular / (singular**2 + _RIDGE * len(values))
        scaled = right.T @ (shrunk[:, None] * (left.T @ (factor_q.T @ self._targets)))
        return scaled / self._sizes[:, None], self._targets - (centred / self._sizes) @ scaled


def train_layer(
    features: FeatureMap,
    pieces: Sequence[FloatArray],
    outputs: int,
    *,
    noise: float,
    frozen: tuple[str, ...],
    steps: int,
    generator: np.random.Generator,
    may_continue: Callable[[], bool],
) -> FeatureMap:
    """The features with inner weights trained on windows of the pieces; the start where training finds nothing."""
    from scipy.optimize import minimize  # not imported to forecast from a file

    plain = FeatureMap(features.channels, lags(features.channels, features.window))
    rows, targets = Learner(pieces, outputs, 0).design(plain, noise)
    chosen = np.sort(generator.permutation(len(rows))[:_ROWS])
    loss = ProjectedLoss(features, rows[chosen][:, 1:], targets[chosen], frozen, int(generator.integers(2**31)))
    best = [(np.inf, loss.start)]

    def evaluate(scaled: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(all="ignore"):
            try:
                value, gradient = loss(scaled)
            except np.linalg.LinAlgError:
                return 1e10, np.zeros_like(scaled)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return 1e10, np.zeros_like(scaled)
        if value < best[0][0]:
            best[0] = (value, loss.origin + loss.unit * scaled)
        return value, gradient

    def check_time(_: FloatArray) -> None:
        if not may_continue():
            raise StopIteration

    # Two rounds: the sizes of the derivatives change as the weights move away from the start.
    for share in (steps - steps // 2, steps // 2):
        options = {"maxiter": share, "maxcor": _HISTORY, "ftol": 1e-9, "gtol": 1e-12}
        if share and may_continue():
            zero = np.zeros_like(loss.start)
            minimize(evaluate, zero, jac=True, method="L-BFGS-B", callback=check_time, options=options)  # type: ignore[call-overload]
            loss.rescale(best[0][1])
    return replace(features, networks=(loss.network(best[0][1]),))


def centred_readouts(features: FeatureMap, learner: Learner, noise: float, ridges: FloatArray) -> FloatArray:
    """Readouts, shape (ridges, features, outputs), with features centred and scaled and a constant without ridge.

    The state of the layer varies little about a mean, so a ridge on the constant would act as a strong one.
    """
    rows, targets = learner.design(features, noise)
    inner = rows[:, 1:]
    middle, sizes = inner.mean(axis=0), inner.std(axis=0)
    # Features without variation, up to rounding, have no weight.
    usable = sizes > 1e-14 * np.abs(middle) + 1e-300
    sizes = np.where(usable, sizes, 1.0)
    factor_q, factor = np.linalg.qr((inner - middle) * (usable / sizes))
    left, singular, right = np.linalg.svd(factor, full_matrices=False)  # fewer rows than features in short records
    mean = targets.mean(axis=0)
    rotated = left.T @ (factor_q.T @ (targets - mean))
    cut = singular > singular[0] * 1e-15
    shrunk = np.where(cut, singular / np.where(cut, singular**2 + ridges[:, None] * len(rows), 1.0), 0.0)
    weights = (right.T @ (shrunk[:, :, None] * rotated)) * (usable / sizes)[:, None]
    constant = mean - middle @ weights
    return np.concatenate([constant[:, None], weights], axis=1)
