"""Attention (or ablated) features trained on what the best polynomial base leaves over, as candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .attention import Kind, LagNetwork, new_network
from .candidates import Group
from .delays import Embedding, flat_windows, lags
from .features import FeatureMap
from .protocol import FloatArray
from .search import Candidate, Learner

ITERATIONS = 150
_ROWS = 1200
_FEWEST_ROWS = 60
_STARTS = (0.1, 0.3, 0.2)
_LEVELS = (0.0, 1e-3, 1e-2)


@dataclass(frozen=True)
class Networks:
    """Groups to screen, and for each restart the share of the base's residual that it explained in training."""

    groups: list[Group]
    explained: list[float]


def smoothed_lags(base: Embedding, channels: int, count: int, spacing: int) -> Embedding:
    """Lags after projection onto principal coordinates: the same noise-averaging as the base has."""
    assert base.matrix is not None  # noqa: S101 (asked for principal coordinates only)
    unit = base.matrix / np.linalg.norm(base.matrix, axis=0)
    chosen = lags(channels, count, spacing).columns
    matrix = unit @ unit[chosen].T
    return Embedding(base.window, base.columns, np.ascontiguousarray(matrix))


def tokens_for(base: FeatureMap, spacing: int, longest: int) -> tuple[Embedding, tuple[int, ...]]:
    """What attention looks at, and the lags (oldest first): those of the base, or a few of its window."""
    channels, polynomial = base.channels, base.polynomial
    if polynomial is not None and polynomial.matrix is None and polynomial.size >= 3 * channels:
        return polynomial, tuple(int(-column // channels) - 1 for column in polynomial.columns[::channels])
    if polynomial is not None and polynomial.matrix is not None and polynomial.window >= 4:
        count = min(6, polynomial.window)
        gap = (polynomial.window - 1) // (count - 1)
        return smoothed_lags(polynomial, channels, count, gap), _lags(count, gap)
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
    go_on: Callable[[], bool],
    feed_forward: bool = True,
    iterations: int = ITERATIONS,
) -> Networks:
    """Train ``restarts`` networks on ``pieces``; each alone, and all side by side, join the base in one readout.

    The last of three restarts is trained with the neighbouring level of window noise.
    """
    from .variable_projection import train  # scipy is needed for training only

    tokens, token_lags = tokens_for(base.features, spacing, longest)
    count = len(token_lags)
    features = replace(base.features, tokens=tokens, token_lags=token_lags)
    learner = Learner(pieces, outputs, seed)
    networks: list[LagNetwork] = []
    scales: list[FloatArray] = []
    explained: list[float] = []
    for restart in range(restarts):
        if restart and not go_on():
            break
        noise = base.noise if restart % 3 < 2 else _neighbour(base.noise)
        rows, targets = learner.design(features, noise)
        if len(rows) < _FEWEST_ROWS:
            break
        heard = _tokens_along(learner.noisy(noise), features)
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
        found = train(network, heard[chosen], rows[chosen], targets[chosen], iterations=iterations, go_on=go_on)
        networks.append(found.network)
        scales.append(1.0 / (found.network(heard).std(axis=0) + 1e-12))
        explained.append(found.explained)
    return Networks(_groups(base, features, networks, scales, kind), explained)


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
    """A level of noise beside this one."""
    return _LEVELS[1] if noise in (_LEVELS[0], _LEVELS[2]) else _LEVELS[2]
