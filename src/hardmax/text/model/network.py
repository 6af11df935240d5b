r"""The network of the classifier: its parameters, their initial values and the forward pass on the CPU.

.. math::
    z^K = \text{hardmax layers}(z^0), \qquad
    \text{logits} = b + W \frac{\sum_i \mu_i z_i^K}{m + \sum_i \mu_i}, \qquad \mu_i = |z_i^0|^q\,(1 + \log c_i).

With these masses the strength of a word survives the collapse onto its leader, as a part of the mass that the leader
gathers. The power q is 1 unless few documents are better served by a larger one: if a word of the weight w in a linear
classifier starts at the distance :math:`|w|^{1/(1+q)}`, then its mass is :math:`|w|^{q/(1+q)}`. As q grows, masses
become the weights and positions differ in direction only, so that the logits become those of the linear classifier,
divided by the mass of the document, at full collapse. The small mass m rests at the origin, so that the logits of a
document with little mass are near the bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import embedding

from ..recipes import Recipe
from ..words.counts import Batch, evidence
from .hardmax_forward import AttentionPath, attention_path, final_positions
from .score_matrix_gradient import batch_surrogate, factor_of

# Avoids division by zero and the infinite gradient of a root at zero; far below any mass in use.
TINY = 1e-12
# Documents added to each class for smoothing, by default: for two classes, and for more, where each class is smaller.
_SMOOTHING, _SMOOTHING_OF_MANY = 10.0, 2.0


@dataclass
class Network:
    """Parameters of the network as tensors, and its constants."""

    embedding: torch.Tensor
    """Initial position of each word, shape (words, coordinates)."""
    decoder: torch.Tensor
    """Shape (outputs, coordinates), with one output for two classes and one per class for more."""
    bias: torch.Tensor
    """Shape (outputs,)."""
    raw_alpha: torch.Tensor
    """alpha = least_alpha + exp(raw_alpha), which is positive for every value."""
    least_alpha: float
    depth: int
    norm_masses: bool
    """Whether the mass of a word includes the length of its initial position."""
    resting_mass: float = 0.0
    mass_power: float = 1.0
    """Power of the length of a word's initial position in its mass, with ``norm_masses``."""
    raw_factor: torch.Tensor | None = None
    """A = R Rᵀ with R = ``factor_of(raw_factor)`` if A is learned; None for the identity."""

    @property
    def alpha(self) -> torch.Tensor:
        """Step size towards the attended word; always positive."""
        return self.least_alpha + torch.exp(self.raw_alpha)

    @property
    def collapse(self) -> float:
        """Fraction of the distance to their leaders that words have moved after all layers, between 0 and 1."""
        return 1 - (1 + float(self.alpha.detach())) ** -self.depth

    def parameters(self) -> dict[str, torch.Tensor]:
        """All tensors by name."""
        parts = {
            "embedding": self.embedding,
            "decoder": self.decoder,
            "bias": self.bias,
            "raw_alpha": self.raw_alpha,
        }
        return parts if self.raw_factor is None else {**parts, "raw_factor": self.raw_factor}

    def to(self, target: torch.dtype | torch.device) -> Network:
        """A copy in another precision or on another device, without gradients."""
        parts: dict[str, Any] = {name: part.detach().to(target, copy=True) for name, part in self.parameters().items()}
        return replace(self, **parts)

    def initial_positions(self, documents: Batch) -> torch.Tensor:
        """Initial positions of the words of the documents, shape (words, coordinates)."""
        return embedding(torch.from_numpy(documents.columns), self.embedding)

    def document_masses(self, table: sparse.csr_matrix) -> np.ndarray:
        """Total mass of each document in a table of weighted counts, without the resting mass, shape (documents,)."""
        points = self.embedding.detach()
        each = mass_of_position(points, self.mass_power).numpy() if self.norm_masses else np.ones(table.shape[1])
        return np.asarray(table @ each)

    def mean_mass(self, table: sparse.csr_matrix, weights: np.ndarray) -> float:
        """Weighted mean of the total mass of each document in a table of weighted counts."""
        return float(np.average(self.document_masses(table), weights=weights))

    def forward(self, documents: Batch, start: torch.Tensor | None = None) -> tuple[torch.Tensor, AttentionPath]:
        """Logits of each document, shape (documents, outputs), and the attended words.

        ``start`` may be passed if :meth:`initial_positions` has been computed before.
        """
        if start is None:
            start = self.initial_positions(documents)
        path = self.attention_path(start.detach().numpy(), documents.starts)
        final = final_positions(start, path, self.alpha, self.depth)
        factor = None if self.raw_factor is None else factor_of(self.raw_factor)
        if factor is not None and factor.requires_grad:
            final = final + batch_surrogate(start, factor, documents, path)
        return self.bias + self._pooled(final, self.masses(start, documents), documents) @ self.decoder.T, path

    def shares_and_values(self, documents: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, AttentionPath]:
        """Logits of each document, split over its words.

        Returns logits, shape (documents, outputs); the share of each word in the mass of its document, shape (words,);
        the decoder at its final position, shape (words, outputs); and the attended words.
        """
        start = self.initial_positions(documents)
        path = self.attention_path(start.numpy(), documents.starts)
        values = final_positions(start, path, self.alpha, self.depth) @ self.decoder.T
        mass, document = self.masses(start, documents), torch.from_numpy(documents.document)
        total = mass.new_full((documents.size,), self.resting_mass).index_add(0, document, mass)
        shares = mass / total[document].clamp_min(TINY)
        logits = self.bias.expand(documents.size, -1).index_add(0, document, shares[:, None] * values)
        return logits, shares, values, path

    def attention_path(self, start: np.ndarray, starts: np.ndarray) -> AttentionPath:
        """Attended words at each layer, for words at the initial positions ``start``."""
        if self.raw_factor is not None:
            start = start @ factor_of(self.raw_factor.detach()).numpy()
        return attention_path(start, starts, alpha=float(self.alpha.detach()), depth=self.depth)

    def masses(self, start: torch.Tensor, documents: Batch) -> torch.Tensor:
        """Mass of each word in the mean, shape (words,)."""
        mass = torch.from_numpy(documents.term_weights).to(start.dtype)
        return mass * mass_of_position(start, self.mass_power) if self.norm_masses else mass

    def _pooled(self, final: torch.Tensor, mass: torch.Tensor, documents: Batch) -> torch.Tensor:
        """Mean final position of each document by mass, shape (documents, coordinates); zero without words."""
        document = torch.from_numpy(documents.document)
        total = final.new_full((documents.size,), self.resting_mass).index_add(0, document, mass)
        moment = final.new_zeros(documents.size, final.shape[1]).index_add(0, document, mass[:, None] * final)
        return moment / total.clamp_min(TINY)[:, None]


def mass_of_position(start: torch.Tensor, power: float) -> torch.Tensor:
    """Length of each initial position, shape (..., coordinates), to a power; shape (...)."""
    length = (start.square().sum(dim=-1) + TINY).sqrt()
    return length if power == 1 else length.pow(power)


def initial_network(
    presence: np.ndarray, sizes: np.ndarray, groups: np.ndarray, recipe: Recipe, rng: np.random.Generator
) -> Network:
    """Untrained network, in double precision and without a resting mass.

    ``presence``, shape (classes, words), and ``sizes``, shape (classes,), are those of :func:`class_presence`;
    ``groups`` holds the group of each word, numbered from one.
    """
    classes = len(presence)
    if recipe.cut is not None:  # the padding word, which is evidence for no class
        presence, groups = np.hstack([presence, np.zeros((classes, 1))]), np.append(groups, 1)
    dim = _coordinates(recipe, classes)
    if recipe.start != "random":
        smoothing = recipe.smoothing or (_SMOOTHING if classes == 2 else _SMOOTHING_OF_MANY)
        found = evidence(presence, sizes, smoothing)
        if recipe.cut is not None:
            found[:, -1] = 0
        points, decoder = _naive_bayes_start(found, dim, rng, recipe)
    else:
        points = recipe.noise * rng.normal(size=(presence.shape[1], dim))
        decoder = rng.uniform(-1, 1, size=(1 if classes == 2 else classes, dim)) / np.sqrt(dim)
    return _network(points, decoder, np.zeros(len(decoder)), groups, recipe)


def network_from_weights(
    weights: np.ndarray,
    bias: np.ndarray,
    groups: np.ndarray,
    recipe: Recipe,
    rng: np.random.Generator,
    mass_power: float = 1.0,
) -> Network:
    r"""Network that starts from a linear classifier, in double precision and without a resting mass.

    A word with the weights w, shape (words, outputs), less their mean over the classes, starts in the direction of w at
    the distance :math:`|w|^{1/(1+q)}`, relative to the root mean square of these distances, where q is ``mass_power``.
    A word that leads alone then contributes in proportion to w, because its mass is its length to the power q.
    """
    power = 1 / (1 + mass_power)
    outputs = weights.shape[1]
    if recipe.cut is not None:  # the padding word, which is evidence for no class
        weights, groups = np.vstack([weights[: len(groups)], np.zeros((1, outputs))]), np.append(groups, 1)
    if outputs > 1:
        weights, bias = weights - weights.mean(axis=1, keepdims=True), bias - bias.mean()
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    points = weights * np.maximum(lengths, TINY) ** (power - 1)
    points = points / max(float(np.sqrt(np.square(points).sum(axis=1).mean())), TINY)
    dim = _coordinates(recipe, 2 if outputs == 1 else outputs)
    rows = _class_directions(outputs, dim, rng)
    points = points @ rows
    # In proportion to the length, so that words of little weight keep their side.
    points = points + recipe.noise * np.linalg.norm(points, axis=1, keepdims=True) * rng.normal(size=points.shape)
    network = _network(points, rows.copy(), bias if recipe.learn_bias else np.zeros(outputs), groups, recipe)
    return replace(network, mass_power=mass_power)


def _coordinates(recipe: Recipe, classes: int) -> int:
    """Number of coordinates of a word, per group."""
    return recipe.dim or (classes if classes > 2 else 1 if recipe.by_length else 2)


def _network(points: np.ndarray, decoder: np.ndarray, bias: np.ndarray, groups: np.ndarray, recipe: Recipe) -> Network:
    if recipe.by_length:
        points, decoder = separate_groups(points, decoder, groups)
    return Network(
        embedding=torch.from_numpy(points),
        decoder=torch.from_numpy(decoder),
        bias=torch.from_numpy(np.array(bias, dtype=np.float64)),
        raw_alpha=torch.tensor(recipe.alpha - recipe.least_alpha, dtype=torch.float64).log(),
        least_alpha=recipe.least_alpha,
        depth=recipe.depth,
        norm_masses=recipe.masses == "norm",
        raw_factor=torch.zeros(points.shape[1], points.shape[1], dtype=torch.float64) if recipe.learn_matrix else None,
    )


def separate_groups(points: np.ndarray, decoder: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points with separate coordinates for each group, and the decoder repeated for each group.

    >>> separate_groups(np.array([[1.0], [2.0]]), np.array([[6.0]]), np.array([1, 2]))[0].tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    blocks = int(groups.max())
    spread = np.zeros((len(points), blocks, points.shape[1]))
    spread[np.arange(len(points)), groups - 1] = points
    return spread.reshape(len(points), -1), np.tile(decoder, (1, blocks))


def _naive_bayes_start(
    evidence: np.ndarray, dim: int, rng: np.random.Generator, recipe: Recipe
) -> tuple[np.ndarray, np.ndarray]:
    """Embedding and decoder whose logits are those of a naive Bayes classifier, up to noise and scale.

    For two classes the evidence for the second lies along one random direction; for more, each class has its own
    direction, orthogonal to the others if there are enough coordinates.
    """
    one_output = len(evidence) == 2
    rows = _class_directions(1 if one_output else len(evidence), dim, rng)
    start = evidence[1:].T @ rows if one_output else evidence.T @ rows
    return start + recipe.noise * rng.normal(size=start.shape), recipe.decoder_scale * rows


def _class_directions(outputs: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vector of each output, shape (outputs, coordinates); orthogonal if there are enough coordinates."""
    directions = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    if outputs == 1:
        return np.abs(directions) if dim == 1 else directions[:1]
    rows = directions[np.arange(outputs) % dim]
    if outputs > dim:
        rows = rng.normal(size=(outputs, dim))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows)
