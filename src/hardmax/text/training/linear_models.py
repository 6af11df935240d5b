r"""Linear classifiers of few documents: the start of the network, and the baselines that it is compared with.

Each class has a logistic regression against all others, on TF-IDF weights or on word counts that are scaled by naive
Bayes log odds (Wang and Manning 2012, "NB-SVM"). Both are linear in the weighted counts of a document, so that a word
has one weight per class, from which its initial position is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from ..words.counts import LabelledDocuments, class_presence, evidence

# Keeps the norm of a document without words from dividing by zero.
_TINY = 1e-12
# The weights start another training, so a loose tolerance suffices; it is also what makes the fit fast. For very few
# documents it is tight, so that a document of weight two and two equal documents lead to the same model.
_TOLERANCE, _TIGHT, _VERY_FEW = 1e-2, 1e-12, 100


@dataclass(frozen=True)
class LinearKind:
    """A kind of linear classifier: its features and the inverse strength of its regularisation."""

    features: str
    """``"tf-idf"``, ``"naive Bayes"``, or ``"log odds"`` for naive Bayes alone, without a regression."""
    strength: float
    """Inverse strength of the regularisation; for log odds, the number of documents added to each class."""

    def __str__(self) -> str:
        if self.features == "log odds":
            return "smoothed naive Bayes"
        name = "TF-IDF" if self.features == "tf-idf" else "naive Bayes features"
        return f"{name} with logistic regression, C = {self.strength:g}"


KINDS = (
    LinearKind("tf-idf", 10.0),
    LinearKind("tf-idf", 1.0),
    LinearKind("naive Bayes", 1.0),
    LinearKind("log odds", 10.0),
)
"""Kinds among which folds of the training rows choose."""


@dataclass(frozen=True)
class LinearModel:
    """Fitted linear classifier; its logits are linear in the weighted counts of a document."""

    kind: LinearKind
    scale: np.ndarray
    """Factor of each column before the norm of a document is computed, shape (columns,)."""
    weights: np.ndarray
    """Weight of each column for each output, scale included, shape (columns, outputs)."""
    bias: np.ndarray
    """Shape (outputs,)."""

    @staticmethod
    def fit(
        rows: LabelledDocuments, classes: int, kind: LinearKind, *, intercept: bool = True, weight: float = 1.0
    ) -> LinearModel:
        """The classifier of this kind; two classes have one output, more have one each.

        The weights of the rows, whose mean is one, are multiplied by ``weight`` where their size matters.
        """
        outputs = range(classes) if classes > 2 else (1,)
        if kind.features == "log odds":
            return _naive_bayes(rows, classes, kind, intercept, weight)
        if kind.features == "tf-idf":
            scale = _inverse_frequency(rows, weight)
            features = _unit_rows(rows.table @ sparse.diags_array(scale))
            found = [_regression(features, rows, k, weight * kind.strength, intercept) for k in outputs]
            weights = [scale * weight for weight, _ in found]
        else:
            scale = np.ones(rows.table.shape[1])
            present = _present(rows.table)
            odds = [_log_odds(present, rows, k, weight) for k in outputs]
            found = [
                _regression(
                    sparse.csr_matrix(present @ sparse.diags_array(r)), rows, k, weight * kind.strength, intercept
                )
                for r, k in zip(odds, outputs, strict=True)
            ]
            weights = [r * weight for r, (weight, _) in zip(odds, found, strict=True)]
        return LinearModel(kind, scale, np.stack(weights, axis=1), np.array([bias for _, bias in found]))

    def logits(self, table: sparse.csr_matrix) -> np.ndarray:
        """Logits of documents with these weighted counts, shape (documents, outputs)."""
        if self.kind.features == "tf-idf":
            lengths = _lengths(table @ sparse.diags_array(self.scale))
            return np.asarray((table @ self.weights) / lengths[:, None] + self.bias)
        return np.asarray(_present(table) @ self.weights + self.bias)


def _naive_bayes(
    rows: LabelledDocuments, classes: int, kind: LinearKind, intercept: bool, weight: float
) -> LinearModel:
    presence, sizes = class_presence(_present(rows.table), rows.labels, classes, weight * rows.weights)
    found = evidence(presence, sizes, kind.strength)
    prior = np.log(sizes + 1)
    bias = prior[1:] - prior[:1] if classes == 2 else prior
    weights = found[1:] if classes == 2 else found
    return LinearModel(kind, np.ones(rows.table.shape[1]), weights.T, bias if intercept else np.zeros(len(bias)))


def _inverse_frequency(rows: LabelledDocuments, weight: float) -> np.ndarray:
    """Smoothed inverse document frequency of each column, as scikit-learn defines it, shape (columns,)."""
    entries = np.repeat(rows.weights, np.diff(rows.table.indptr))
    frequency = weight * np.bincount(rows.table.indices, weights=entries, minlength=rows.table.shape[1])
    return np.asarray(np.log((1 + weight * rows.weights.sum()) / (1 + frequency)) + 1)


def _lengths(table: sparse.csr_matrix) -> np.ndarray:
    return np.asarray(np.maximum(np.sqrt(table.multiply(table).sum(axis=1)), _TINY)).ravel()


def _unit_rows(table: sparse.csr_matrix) -> sparse.csr_matrix:
    return sparse.csr_matrix(sparse.diags_array(1 / _lengths(table)) @ table)


def _present(table: sparse.csr_matrix) -> sparse.csr_matrix:
    """One for each entry that is at least one, fractions as they are."""
    return sparse.csr_matrix(
        (np.minimum(table.data, 1.0).astype(np.float64), table.indices, table.indptr), shape=table.shape
    )


def _log_odds(present: sparse.csr_matrix, rows: LabelledDocuments, number: int, weight: float) -> np.ndarray:
    """Log odds of each column in the class against the others, with one occurrence added; shape (columns,)."""
    member = rows.labels == number
    inside = weight * (present.T @ (rows.weights * member)) + 1
    outside = weight * (present.T @ (rows.weights * ~member)) + 1
    return np.asarray(np.log(inside / inside.sum()) - np.log(outside / outside.sum()))


def _regression(
    features: sparse.csr_matrix, rows: LabelledDocuments, number: int, strength: float, intercept: bool
) -> tuple[np.ndarray, float]:
    """Weights, shape (columns,), and bias of one class against the others."""
    member = rows.labels == number
    if member.all() or not member.any():  # a fold may lack a rare class
        share = (member.sum() + 0.5) / (len(member) + 1)
        return np.zeros(features.shape[1]), float(np.log(share / (1 - share)))
    tolerance = _TIGHT if len(member) < _VERY_FEW else _TOLERANCE
    model = LogisticRegression(C=strength, solver="liblinear", tol=tolerance, fit_intercept=intercept)
    model.fit(features.astype(np.float64), member, sample_weight=rows.weights)
    return model.coef_[0], float(model.intercept_[0]) if intercept else 0.0
