r"""Inner weights by variable projection: the readout is eliminated, L-BFGS sees the inner weights only.

Let :math:`Q` span the features already there and :math:`R` be what they leave of the increments, each channel scaled
by its own deviation. For features :math:`\Phi(\theta)` of the network, projected off :math:`Q`, the best readout
:math:`C(\theta)` is a small linear solve, and

.. math:: \ell(\theta) = \log \tfrac1N \|R - \Phi(\theta)\,C(\theta)\|^2

is minimised over :math:`\theta`. Gradients pass through the solve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import torch

from .attention import LagNetwork
from .protocol import FloatArray

_HISTORY = 50
_CHUNK = 10
_JITTER = 1e-12
_STALLED = 1e-4


@dataclass(frozen=True)
class Trained:
    """The network with its best weights, and the share of the residual variance it explains."""

    network: LagNetwork
    explained: float


def torch_features(network: LagNetwork, part: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """The network's features with gradients; NumPy's are in :mod:`.attention`."""
    if network.kind == "mlp":
        return torch.tanh(tokens @ part["hidden"] + part["bias"])
    rows = len(tokens)
    latest = tokens[:, -network.channels :] @ part["embed"] + part["positions"][-1]
    heard = tokens
    if network.kind == "attention":
        shaped = tokens.reshape(rows, network.lags, network.channels)
        asked = (latest @ part["queries"]) @ part["keys"].T
        # The scores (e_i, asked) without forming every embedding e_i.
        scores = (shaped @ (part["embed"] @ asked.T).T[:, :, None])[:, :, 0] + asked @ part["positions"].T
        shares = torch.softmax(scores / sqrt(part["embed"].shape[1]), dim=1) * network.lags
        heard = (shaped * shares[:, :, None]).reshape(rows, -1)
    state = latest + heard @ part["values"]
    if not network.feed_forward:
        return state
    return torch.cat([torch.tanh(state @ part["hidden"] + part["bias"]), state], dim=1)


def train(
    network: LagNetwork,
    tokens: FloatArray,
    base: FloatArray,
    targets: FloatArray,
    *,
    iterations: int,
    go_on: Callable[[], bool] = lambda: True,
) -> Trained:
    """Fit the inner weights to what ``base`` leaves of ``targets``; ``go_on`` is asked every few iterations."""
    left, singular, _ = np.linalg.svd(base, full_matrices=False)
    span = torch.from_numpy(np.ascontiguousarray(left[:, singular > singular[0] * 1e-12]))
    residual = torch.from_numpy(targets)
    residual = residual - span @ (span.T @ residual)
    deviation = residual.std(dim=0)
    scale = torch.from_numpy(np.maximum(targets.std(axis=0), 1e-300))
    if bool((deviation < 1e-11 * scale).all()):
        return Trained(network, 0.0)
    residual = residual / torch.clamp(deviation, min=1e-300)
    inputs = torch.from_numpy(np.ascontiguousarray(tokens))
    part = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in network.weights.items()}

    def loss() -> torch.Tensor:
        features = torch_features(network, part, inputs)
        features = features - span @ (span.T @ features)
        return torch.log(_unexplained(features, residual))

    best, weights = _minimise(list(part.values()), loss, iterations, go_on)
    if weights is None:
        return Trained(network, 0.0)
    trained = {name: value.numpy().copy() for name, value in zip(part, weights, strict=True)}
    return Trained(replace(network, weights=trained), float(1.0 - np.exp(min(best, 0.0))))


def _unexplained(features: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """The mean square that the best readout leaves."""
    rows = len(features)
    gram = features.T @ features / rows
    identity = torch.eye(len(gram), dtype=gram.dtype)
    level = torch.diagonal(gram).mean().detach()
    jitter = _JITTER
    for _ in range(8):
        factor, failed = torch.linalg.cholesky_ex(gram + identity * (jitter * level))
        if not bool(failed):
            break
        jitter *= 30
    readout = torch.cholesky_solve(features.T @ residual / rows, factor)
    return ((residual - features @ readout) ** 2).mean()


def _minimise(
    weights: list[torch.Tensor], loss: Callable[[], torch.Tensor], iterations: int, go_on: Callable[[], bool]
) -> tuple[float, list[torch.Tensor] | None]:
    def restarted() -> torch.optim.LBFGS:
        return torch.optim.LBFGS(
            weights,
            max_iter=_CHUNK,
            history_size=_HISTORY,
            line_search_fn="strong_wolfe",
            tolerance_grad=1e-14,
            tolerance_change=1e-16,
        )

    optimiser = restarted()

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach()

    best, kept, stalled = float("inf"), None, 0
    for _ in range(max(1, iterations // _CHUNK)):
        before = [part.detach().clone() for part in weights]
        try:
            value = float(optimiser.step(closure))  # type: ignore[arg-type]
        except RuntimeError:  # a factorisation failed far from any sensible weights
            break
        if not np.isfinite(value):
            break
        # The value is that of the weights before the step.
        stalled = stalled + 1 if best - value < _STALLED else 0
        if value < best:
            best, kept = value, before
        if stalled > 2 or not go_on():
            break
        if stalled:
            optimiser = restarted()
    final = [part.detach().clone() for part in weights]
    with torch.no_grad():
        try:
            value = float(loss())
        except RuntimeError:
            value = float("inf")
    if np.isfinite(value) and value < best and all(bool(torch.isfinite(part).all()) for part in final):
        best, kept = value, final
    return best, kept
