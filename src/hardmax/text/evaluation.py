"""Quality of a classifier (accuracy, log loss, calibration) and faithfulness of its explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..randomness import seeded
from .classifier import LeaderClassifier
from .words.counts import batch


@dataclass(frozen=True)
class Quality:
    """Figures on documents with known labels."""

    documents: int
    accuracy: float
    log_loss: float
    calibration_error: float
    """The mean gap between how sure the model is and how often it is right (expected calibration error)."""
    leaders: float
    """Leaders per document."""
    collapse: float

    def data(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.documents:,} documents: accuracy {self.accuracy:.4f}, log loss {self.log_loss:.4f}, "
            f"calibration error {self.calibration_error:.4f}, {self.leaders:.2f} leaders a document, "
            f"collapse {self.collapse:.4f}"
        )


def calibration_error(sure: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """The expected calibration error over bins of equal width.

    >>> round(calibration_error(np.array([0.9, 0.9, 0.6]), np.array([True, False, True])), 3)
    0.4
    """
    which = np.minimum((sure * bins).astype(int), bins - 1)
    total = np.bincount(which, minlength=bins)
    gap = np.bincount(which, weights=right, minlength=bins) - np.bincount(which, weights=sure, minlength=bins)
    return float(np.abs(gap)[total > 0].sum() / len(sure))


def quality(model: LeaderClassifier, documents: Any, labels: Any) -> Quality:
    """Judge ``model`` on documents with known labels."""
    labels = np.asarray(labels)
    chances = model.predict_proba(documents)
    if len(labels) != len(chances):
        raise InputError(
            "labels", f"{len(labels)} labels", f"must match the {len(chances)} documents", "pass one for each"
        )
    strange = sorted(set(labels.tolist()) - set(model.classes_.tolist()), key=str)
    if strange:
        raise InputError(
            "labels",
            repr(strange[:5]),
            "must be classes that the model knows",
            f"it knows {', '.join(map(repr, model.classes_.tolist()))}",
        )
    numbers = np.searchsorted(model.classes_, labels)
    right = chances.argmax(axis=1) == numbers
    truth = np.maximum(chances[np.arange(len(labels)), numbers], np.finfo(float).tiny)
    return Quality(
        documents=len(labels),
        accuracy=float(right.mean()),
        log_loss=float(-np.log(truth).mean()),
        calibration_error=calibration_error(chances.max(axis=1), right),
        leaders=float(model.count_leaders(documents).mean()),
        collapse=model.collapse_,
    )


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
