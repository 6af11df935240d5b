r"""The model itself: where words start, how they are pooled, and the decoder.

.. math::
    z^K = \text{hardmax layers}(z^0), \qquad
    \text{logits} = b + W \frac{\sum_i \mu_i z_i^K}{\sum_i \mu_i}, \qquad \mu_i = |z_i^0|\,(1 + \log c_i).

With these masses the strength of a word survives the collapse onto its leader: it counts as the size of the
leader's following. The small mass m rests at the origin: the less a document says, the nearer its answer is to
the bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import embedding

from ..words.counts import Batch
from .hardmax_forward import Course, after, course
from .score_matrix_gradient import factor_of, stand_in

_TINY = 1e-12


@dataclass
class Network:
    """Parameters as tensors; ``decoder`` is (outputs, d), with one output for two classes."""

    embedding: torch.Tensor
    decoder: torch.Tensor
    bias: torch.Tensor
    raw_alpha: torch.Tensor
    """alpha = least_alpha + exp(raw_alpha): positive whatever training does."""
    least_alpha: float
    depth: int
    norm_masses: bool
    resting_mass: float = 0.0
    raw_factor: torch.Tensor | None = None
    """Where A is learned: A = R Rᵀ with R by ``score_matrix_gradient.factor_of``; None stands for the identity."""

    @property
    def alpha(self) -> torch.Tensor:
        """The step towards the leader; always positive."""
        return self.least_alpha + torch.exp(self.raw_alpha)

    @property
    def collapse(self) -> float:
        """How far words have moved onto their leaders after all layers, between 0 and 1."""
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

    def to(self, dtype: torch.dtype) -> Network:
        """A copy in another precision, without gradients."""
        parts: dict[str, Any] = {name: part.detach().to(dtype, copy=True) for name, part in self.parameters().items()}
        return replace(self, **parts)

    def starts(self, documents: Batch) -> torch.Tensor:
        """Where the words of the documents start."""
        return embedding(torch.from_numpy(documents.columns), self.embedding)

    def mean_mass(self, table: sparse.csr_matrix, weights: np.ndarray) -> float:
        """What documents weigh on average; ``table`` holds what the counts weigh."""
        each = self.embedding.detach().norm(dim=1).numpy() if self.norm_masses else np.ones(table.shape[1])
        return float(np.average(table @ each, weights=weights))

    def forward(self, documents: Batch, start: torch.Tensor | None = None) -> tuple[torch.Tensor, Course]:
        """Logits (documents, outputs), and who followed whom; ``start`` is what :meth:`starts` has said."""
        if start is None:
            start = self.starts(documents)
        path = self.course(start.detach().numpy(), documents.starts)
        final = after(start, path, self.alpha, self.depth)
        factor = None if self.raw_factor is None else factor_of(self.raw_factor)
        if factor is not None and factor.requires_grad:
            final = final + stand_in(start, factor, documents, path)
        return self.bias + self._pooled(final, self.masses(start, documents), documents) @ self.decoder.T, path

    def shares_and_values(self, documents: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Course]:
        """Logits; the share of each word in its document's mass; what its final position says; who followed whom."""
        start = self.starts(documents)
        path = self.course(start.numpy(), documents.starts)
        values = after(start, path, self.alpha, self.depth) @ self.decoder.T
        mass, document = self.masses(start, documents), torch.from_numpy(documents.document)
        total = mass.new_full((documents.size,), self.resting_mass).index_add(0, document, mass)
        shares = mass / total[document].clamp_min(_TINY)
        logits = self.bias.expand(documents.size, -1).index_add(0, document, shares[:, None] * values)
        return logits, shares, values, path

    def course(self, start: np.ndarray, starts: np.ndarray) -> Course:
        """Who follows whom."""
        if self.raw_factor is not None:
            start = start @ factor_of(self.raw_factor.detach()).numpy()
        return course(start, starts, alpha=float(self.alpha.detach()), depth=self.depth)

    def masses(self, start: torch.Tensor, documents: Batch) -> torch.Tensor:
        """What each word weighs in the mean."""
        mass = torch.from_numpy(documents.damped).to(start.dtype)
        return mass * (start.square().sum(dim=1) + _TINY).sqrt() if self.norm_masses else mass

    def _pooled(self, final: torch.Tensor, mass: torch.Tensor, documents: Batch) -> torch.Tensor:
        """The mean final position of each document, weighted by mass; zero for a document without a word."""
        document = torch.from_numpy(documents.document)
        total = final.new_full((documents.size,), self.resting_mass).index_add(0, document, mass)
        moment = final.new_zeros(documents.size, final.shape[1]).index_add(0, document, mass[:, None] * final)
        return moment / total.clamp_min(_TINY)[:, None]
