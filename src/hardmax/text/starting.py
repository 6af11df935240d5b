"""The model before training: where words and decoder start."""

from __future__ import annotations

import numpy as np
import torch

from .counts import evidence
from .network import Network
from .recipes import Recipe

_SMOOTHING, _SMOOTHING_OF_MANY = 10.0, 2.0


def start_network(
    presence: np.ndarray, sizes: np.ndarray, groups: np.ndarray, recipe: Recipe, rng: np.random.Generator
) -> Network:
    """A network for words with this ``presence`` in the classes; ``groups`` numbers their groups from one on."""
    classes = len(presence)
    if recipe.cut is not None:  # the padding word, which says nothing
        presence, groups = np.hstack([presence, np.zeros((classes, 1))]), np.append(groups, 1)
    dim = recipe.dim or (classes if classes > 2 else 1 if recipe.by_length else 2)
    if recipe.start == "evidence":
        smoothing = recipe.smoothing or (_SMOOTHING if classes == 2 else _SMOOTHING_OF_MANY)
        found = evidence(presence, sizes, smoothing)
        if recipe.cut is not None:
            found[:, -1] = 0
        points, decoder = start_from_evidence(found, dim, rng, noise=recipe.noise, decoder_scale=recipe.decoder_scale)
    else:
        points = recipe.noise * rng.normal(size=(presence.shape[1], dim))
        decoder = rng.uniform(-1, 1, size=(1 if classes == 2 else classes, dim)) / np.sqrt(dim)
    if recipe.by_length:
        points, decoder = apart(points, decoder, groups)
    return Network(
        embedding=torch.from_numpy(points),
        decoder=torch.from_numpy(decoder),
        bias=torch.zeros(len(decoder), dtype=torch.float64),
        raw_alpha=torch.tensor(recipe.alpha - recipe.least_alpha, dtype=torch.float64).log(),
        least_alpha=recipe.least_alpha,
        depth=recipe.depth,
        norm_masses=recipe.masses == "norm",
        raw_factor=torch.zeros(points.shape[1], points.shape[1], dtype=torch.float64) if recipe.learn_matrix else None,
    )


def apart(points: np.ndarray, decoder: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same points with coordinates of their own for each group, and a decoder that reads all of these alike.

    >>> apart(np.array([[1.0], [2.0]]), np.array([[6.0]]), np.array([1, 2]))[0].tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    blocks = int(groups.max())
    spread = np.zeros((len(points), blocks, points.shape[1]))
    spread[np.arange(len(points)), groups - 1] = points
    return spread.reshape(len(points), -1), np.tile(decoder, (1, blocks))


def start_from_evidence(
    evidence: np.ndarray, dim: int, rng: np.random.Generator, *, noise: float, decoder_scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Embedding and decoder that start as a naive Bayes classifier.

    For two classes the evidence for the second lies along one random direction; for more classes each has its own,
    orthogonal while there is room.
    """
    directions = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    if len(evidence) == 2:
        u = np.abs(directions[:1]) if dim == 1 else directions[:1]
        start, decoder = evidence[1][:, None] * u, decoder_scale * u
    else:
        rows = directions[np.arange(len(evidence)) % dim]
        if len(evidence) > dim:
            rows = rng.normal(size=(len(evidence), dim))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        start, decoder = evidence.T @ rows, decoder_scale * rows
    return start + noise * rng.normal(size=start.shape), decoder
