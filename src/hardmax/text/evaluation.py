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
    """Metrics of a model on documents with known labels."""

    documents: int
    """Number of documents."""
    accuracy: float
    """Fraction of the documents that are classified correctly."""
    log_loss: float
    """Mean negative log probability of the true class."""
    calibration_error: float
    """Expected calibration error: mean gap between confidence and accuracy."""
    leaders: float
    """Mean number of leaders per document."""
    collapse: float
    """Fraction of the distance to their leaders that words have moved after all layers."""

    def data(self) -> dict[str, Any]:
        """The metrics by name.

        Returns
        -------
        dict
            From the name of each field to its value.
        """
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.documents:,} documents: accuracy {self.accuracy:.4f}, log loss {self.log_loss:.4f}, "
            f"calibration error {self.calibration_error:.4f}, {self.leaders:.2f} leaders per document, "
            f"collapse {self.collapse:.4f}"
        )


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error over bins of equal width.

    ``confidence`` is the probability of the predicted class and ``right`` whether it is the true one, both of shape
    (documents,).

    >>> round(calibration_error(np.array([0.9, 0.9, 0.6]), np.array([True, False, True])), 3)
    0.4
    """
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    total = np.bincount(which, minlength=bins)
    gap = np.bincount(which, weights=right, minlength=bins) - np.bincount(which, weights=confidence, minlength=bins)
    return float(np.abs(gap)[total > 0].sum() / len(confidence))


def quality(model: LeaderClassifier, documents: Any, labels: Any) -> Quality:
    """Accuracy, log loss and calibration of a model on documents with known labels.

    Parameters
    ----------
    model
        Fitted model.
    documents
        Texts or a table, of the kind that the model was fitted on.
    labels
        True class of each document.

    Returns
    -------
    Quality
        The metrics.
    """
    labels = np.asarray(labels)
    probabilities = model.predict_proba(documents)
    if len(labels) != len(probabilities):
        raise InputError(
            "labels", f"{len(labels)} labels", f"must match the {len(probabilities)} documents", "pass one for each"
        )
    unknown = sorted(set(labels.tolist()) - set(model.classes_.tolist()), key=str)
    if unknown:
        raise InputError(
            "labels",
            repr(unknown[:5]),
            "must be classes that the model knows",
            f"it knows {', '.join(map(repr, model.classes_.tolist()))}",
        )
    numbers = np.searchsorted(model.classes_, labels)
    right = probabilities.argmax(axis=1) == numbers
    truth = np.maximum(probabilities[np.arange(len(labels)), numbers], np.finfo(float).tiny)
    return Quality(
        documents=len(labels),
        accuracy=float(right.mean()),
        log_loss=float(-np.log(truth).mean()),
        calibration_error=calibration_error(probabilities.max(axis=1), right),
        leaders=float(model.count_leaders(documents).mean()),
        collapse=model.collapse_,
    )


Chooser = Callable[[int], np.ndarray]
"""From the index of a document to the indices of the words that explain it, within its row."""


@dataclass(frozen=True)
class Faithfulness:
    """Change of the logits when the explaining words are deleted, and when as many random words are."""

    named: float
    """Mean absolute change of the logits without the words of the explanation."""
    random: float
    """Mean absolute change of the logits without as many random words."""
    deleted: float
    """Mean number of deleted words per document."""
    documents: int
    """Number of documents in which some words, but not all, were deleted."""
    sufficiency: float = float("nan")
    """Mean absolute change of the logits if only the words of the explanation remain; small if they suffice."""

    @property
    def ratio(self) -> float:
        """Ratio of ``named`` to ``random``; infinite if ``random`` is zero."""
        return self.named / self.random if self.random > 0 else float("inf")


def faithfulness(
    model: LeaderClassifier, documents: Any, *, reasons: Chooser | None = None, draws: int = 5, random_state: Any = 0
) -> Faithfulness:
    """Change of the logits when the leaders of each document are deleted, against random deletions.

    Parameters
    ----------
    model
        Fitted model.
    documents
        Texts or a table, of the kind that the model was fitted on.
    reasons
        Function from the index of a document to the indices of the words to delete, within its row, to evaluate another
        method of explanation; the leaders by default.
    draws
        Number of random deletions per document.
    random_state
        Seed or generator of the random deletions.

    Returns
    -------
    Faithfulness
        Means over the documents.
    """
    table = model._table(documents)
    logits, _ = model._logits(table)
    rng = seeded(random_state).generator
    leading = _leaders(model, table)
    chosen = [leading[k] if reasons is None else reasons(k) for k in range(table.shape[0])]
    sizes = np.diff(table.indptr)
    named = np.abs(model._logits(_without(table, chosen))[0] - logits).mean(axis=1)
    others = [np.setdiff1d(np.arange(size), words) for size, words in zip(sizes, chosen, strict=True)]
    alone = np.abs(model._logits(_without(table, others))[0] - logits).mean(axis=1)
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
        sufficiency=float(alone[counted].mean()) if counted.any() else 0.0,
    )


def decisive_words(model: LeaderClassifier, document: Any, count: int) -> np.ndarray:
    """Indices, within the row of the document, of the words whose deletion changes the logit most; shape (words,).

    Parameters
    ----------
    model
        Fitted model.
    document
        A text, or one row of a table.
    count
        Number of words.

    Returns
    -------
    np.ndarray
        The indices of :meth:`hardmax.text.Explanation.reasons`, first the word of the largest effect.
    """
    return np.array([reason.place for reason in model.explain(document).reasons(count)], dtype=np.int64)


def _leaders(model: LeaderClassifier, table: sparse.csr_matrix) -> list[np.ndarray]:
    """Indices of the leaders of each document, within its row."""
    found: list[np.ndarray] = []
    for k in range(table.shape[0]):
        documents = batch(table[k])
        path = model.network_.attention_path(model.network_.embedding.numpy()[documents.columns], documents.starts)
        found.append(np.flatnonzero(path.leaders))
    return found


def _without(table: sparse.csr_matrix, places: list[np.ndarray]) -> sparse.csr_matrix:
    """The table of documents without the words at these indices of each row, same shape."""
    keep = np.ones(table.nnz, dtype=bool)
    for start, some in zip(table.indptr, places, strict=False):
        keep[start + some] = False
    starts = np.concatenate([[0], np.cumsum(keep)])[table.indptr]
    return sparse.csr_matrix((table.data[keep], table.indices[keep], starts), shape=table.shape)
