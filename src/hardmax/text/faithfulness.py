"""Are the reasons the reasons? Delete them, and see how far the answer moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..randomness import seeded
from .classifier import LeaderClassifier
from .counts import batch

Chooser = Callable[[int], np.ndarray]
"""From the number of a document to the words named as its reasons, as places in its row."""


@dataclass(frozen=True)
class Faithfulness:
    """How far the logit moves when the named words are deleted, and when as many random ones are."""

    named: float
    random: float
    deleted: float
    """Words deleted per document."""
    documents: int

    @property
    def ratio(self) -> float:
        """How many times farther the named words move the logit."""
        return self.named / self.random if self.random > 0 else float("inf")


def faithfulness(
    model: LeaderClassifier, documents: Any, *, reasons: Chooser | None = None, draws: int = 5, random_state: Any = 0
) -> Faithfulness:
    """Mean movement of the logits over the documents.

    ``reasons`` names other words than the leaders, to hold another way of explaining against this one.
    """
    table = model._table(documents)
    logits, _ = model._logits(table)
    rng = seeded(random_state).generator
    leading = _leaders(model, table)
    chosen = [leading[k] if reasons is None else reasons(k) for k in range(table.shape[0])]
    sizes = np.diff(table.indptr)
    named = np.abs(model._logits(_without(table, chosen))[0] - logits).mean(axis=1)
    moved = np.zeros(table.shape[0])
    for _ in range(draws):
        some = [rng.choice(size, len(words), replace=False) for size, words in zip(sizes, chosen, strict=True)]
        moved += np.abs(model._logits(_without(table, some))[0] - logits).mean(axis=1) / draws
    counted = np.array([0 < len(words) < size for size, words in zip(sizes, chosen, strict=True)])
    return Faithfulness(
        named=float(named[counted].mean()) if counted.any() else 0.0,
        random=float(moved[counted].mean()) if counted.any() else 0.0,
        deleted=float(np.mean([len(words) for words in chosen])),
        documents=int(counted.sum()),
    )


def _leaders(model: LeaderClassifier, table: sparse.csr_matrix) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for k in range(table.shape[0]):
        documents = batch(table[k])
        path = model.network_.course(model.network_.embedding.numpy()[documents.columns], documents.starts)
        found.append(np.flatnonzero(path.leaders))
    return found


def _without(table: sparse.csr_matrix, places: list[np.ndarray]) -> sparse.csr_matrix:
    """The documents without some of their words."""
    keep = np.ones(table.nnz, dtype=bool)
    for start, some in zip(table.indptr, places, strict=False):
        keep[start + some] = False
    starts = np.concatenate([[0], np.cumsum(keep)])[table.indptr]
    return sparse.csr_matrix((table.data[keep], table.indices[keep], starts), shape=table.shape)
