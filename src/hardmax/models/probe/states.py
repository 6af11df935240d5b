r"""Tokens at one depth: how far they have collapsed, clusters by cosine, and tied models run beyond their depth."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ...dynamics.keep_and_stop_rules import Keep
from ...dynamics.simulate import simulate
from ...dynamics.trajectory import Trajectory
from ...errors import InputError
from ...inputs import as_number, as_tokens
from ...progress import Progress
from ...scalars import as_count, shown
from ...shapes import ArrayLike
from ..transformer import TextOrIds, Transformer

# Cosines that are held at once: 2^22 numbers are 32 MB in float64.
_MOST_COSINES = 2**22

STATE_FIGURES = (
    "tokens",
    "mean_cosine",
    "mean_cosine_rest",
    "effective_rank",
    "stable_rank",
    "clusters",
    "norm_ratio",
)
"""Names of the figures of the tokens at one depth."""


def cosine_clusters(tokens: ArrayLike, threshold: float = 0.9) -> np.ndarray:
    """Cluster of each token, numbered from 0 in the order of their first tokens, shape (tokens,).

    Two tokens are in one cluster where a chain of tokens joins them in which neighbours have a cosine above the
    threshold. A token of length zero is alone.

    Parameters
    ----------
    tokens
        Shape (tokens, d).
    threshold
        Cosine above which tokens are joined, from -1 to 1.

    Returns
    -------
    ndarray
        Whole numbers.

    Examples
    --------
    >>> cosine_clusters([[1.0, 0.0], [0.0, 2.0], [3.0, 0.1]]).tolist()
    [0, 1, 0]
    """
    least = as_number("threshold", threshold, lambda x: -1 <= x <= 1, "must lie between -1 and 1", "pass 0.9")
    return _joined(unit_tokens(as_tokens(tokens)[0]), least)


def unit_tokens(state: torch.Tensor) -> torch.Tensor:
    """Tokens divided by their lengths, float64, shape (tokens, d); zero where a token is zero."""
    state = state.to(torch.float64)
    # Division by the largest coordinate first: squares of very large or small coordinates leave float64.
    state = state / state.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    return torch.nn.functional.normalize(state, dim=1, eps=1e-300)


def _joined(unit: torch.Tensor, threshold: float) -> np.ndarray:
    """Connected components, numbered in the order of their first tokens, shape (tokens,)."""
    if len(unit) ** 2 > _MOST_COSINES:
        return _searched(unit, threshold)
    near = csr_array(((unit @ unit.T) > threshold).cpu().numpy())
    labels = connected_components(near, directed=False)[1]
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.argsort(np.argsort(first))
    return np.asarray(numbers[inverse], dtype=np.int64)


def _searched(unit: torch.Tensor, threshold: float) -> np.ndarray:
    """Connected components by breadth-first search, shape (tokens,), in memory that grows with the tokens only."""
    count = len(unit)
    labels = torch.full((count,), -1, dtype=torch.int64, device=unit.device)
    size = max(1, _MOST_COSINES // count)
    clusters = 0
    for seed in range(count):
        if labels[seed] >= 0:
            continue
        labels[seed] = clusters
        waiting = torch.tensor([seed], device=unit.device)
        while len(waiting):
            now, waiting = waiting[:size], waiting[size:]
            near = ((unit[now] @ unit.T) > threshold).any(dim=0) & (labels < 0)
            labels[near] = clusters
            waiting = torch.cat([waiting, near.nonzero()[:, 0]])
        clusters += 1
    return labels.cpu().numpy()


def state_figures(state: torch.Tensor) -> tuple[dict[str, float], np.ndarray]:
    """Figures of the tokens at one depth by name, and the cluster of each token, shape (tokens,)."""
    points = state.to(torch.float64)
    count = len(points)
    if not bool(torch.isfinite(points).all()):
        problem, remedy = "gives tokens that are not finite", "use dtype float64, or check the weights"
        raise InputError("model", "infinite or undefined tokens", problem, remedy)
    unit = unit_tokens(points)
    norms = points.norm(dim=1)
    gram = points.T @ points if points.shape[1] < count else points @ points.T
    squares = torch.linalg.eigvalsh(gram).clamp_min(0)
    singular = squares.sqrt()
    shares = singular / singular.sum().clamp_min(1e-300)
    labels = _joined(unit, 0.9)
    median = float(np.median(norms.cpu().numpy()))
    return {
        "tokens": float(count),
        "mean_cosine": mean_cosine(unit),
        "mean_cosine_rest": mean_cosine(unit[1:]),
        "effective_rank": float(torch.special.entr(shares).sum().exp()),
        "stable_rank": float(squares.sum() / squares.amax().clamp_min(1e-300)),
        "clusters": float(labels.max() + 1),
        "norm_ratio": float(norms.amax()) / median if median > 0 else np.nan,
    }, labels


def mean_cosine(unit: torch.Tensor) -> float:
    """Mean cosine of two different tokens of unit length; NaN for fewer than two."""
    count = len(unit)
    if count < 2:
        return float("nan")
    pairs = float(unit.sum(dim=0).square().sum() - unit.square().sum())
    return pairs / (count * (count - 1))


def pulls(moves: torch.Tensor, tokens: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Cosine between the move of each token and its direction to another one, shape (rows,).

    Parameters
    ----------
    moves
        Displacements, shape (rows, d).
    tokens, others
        Where tokens are and where the other ones are, each of shape (rows, d).

    Returns
    -------
    Tensor
        Zero where one of the two has no length.
    """
    return torch.nn.functional.cosine_similarity(moves, others - tokens, dim=1, eps=1e-300)


def continue_depth(
    model: Transformer,
    text: TextOrIds,
    depth: int,
    *,
    feed_forward: bool = True,
    keep: Keep = "all",
    progress: Progress = None,
) -> Trajectory:
    """Trajectory of the tokens of a text through ``depth`` layers of a model whose layers all have the same weights.

    Parameters
    ----------
    model
        A tied model, such as those of the family ALBERT.
    text
        A text, or the numbers of its tokens.
    depth
        Number of layers, also more than the model has.
    feed_forward
        False leaves out the feed-forward network, so that attention acts alone.
    keep
        Layers that are stored, as in :func:`hardmax.simulate`.
    progress
        True, False, None (shown where the work takes long), or a function called with ``(stage, done, total)``.

    Returns
    -------
    Trajectory
        In float64; :func:`hardmax.models.cosine_clusters` counts the clusters of a state.
    """
    if not isinstance(model, Transformer):
        raise InputError("model", shown(model), "must be a transformer", "load one with hm.load_transformer(folder)")
    if not model.tied:
        problem = "has different weights in its layers, so that it ends at its own depth"
        raise InputError("model", model.name, problem, "use a tied model, such as ALBERT")
    layers = as_count("depth", depth, 1)
    exact = model.to("float64")
    layer = exact.layers[0] if feed_forward else exact.layers[0].without_feed_forward()
    return simulate(exact.tokens(text), layer, depth=layers, keep=keep, progress=progress)
