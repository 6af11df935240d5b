r"""Linear classifiers of few documents: the start of the network, and the baselines that it is compared with.

Each class has a logistic regression against all others, on TF-IDF weights or on word counts that are scaled by naive
Bayes log odds (Wang and Manning 2012, "NB-SVM"), or a weighted mean of the two, which is more accurate than either on
most corpora. All are linear in the weighted counts of a document, so that a word has one weight per class, from which
its initial position is computed.

Features may be scaled column by column. In a regression with a normal prior that is a prior of another deviation: pairs
of words at half the scale get a weight only if single words do not explain the labels as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from ..words.counts import LabelledDocuments

# Keeps the norm of a document without words from dividing by zero.
_TINY = 1e-12
# The weights start another training, so a loose tolerance suffices; it is also what makes the fit fast. For very few
# documents it is tight, so that a document of weight two and two equal documents lead to the same model.
_TOLERANCE, _TIGHT, _VERY_FEW = 1e-2, 1e-12, 100


@dataclass(frozen=True)
class LinearKind:
    """A kind of linear classifier: its features and the inverse strength of its regularisation."""

    features: str
    """``"tf-idf"``, ``"naive Bayes"``, or ``"mean"`` for the weighted mean of both regressions."""
    strength: float
    """Inverse strength of the regularisation; for the mean, 1, because it is that of its parts."""
    share: float = 0.5
    """Weight of TF-IDF in the mean."""

    def __str__(self) -> str:
        if self.features == "mean":
            return f"the mean of logistic regressions on TF-IDF ({self.share:.0%}) and naive Bayes features"
        name = "TF-IDF" if self.features == "tf-idf" else "naive Bayes features"
        return f"{name} with logistic regression, C = {self.strength:g}"


# Strengths with the best mean over 32 development sets of 150 to 1,000 documents; see docs/devdocs/text.rst.
TF_IDF, NAIVE_BAYES = LinearKind("tf-idf", 40.0), LinearKind("naive Bayes", 1.0)
MEANS = tuple(LinearKind("mean", 1.0, share) for share in (0.25, 0.5, 0.75))
KINDS = (TF_IDF, NAIVE_BAYES, *MEANS)
"""Kinds among which folds of the training rows choose."""


@dataclass(frozen=True)
class LinearModel:
    """Fitted linear classifier; its logits are linear in the weighted counts of a document, up to their norm."""

    kind: LinearKind
    scale: np.ndarray
    """Factor of each column before the norm of a document is computed, shape (columns,)."""
    weights: np.ndarray
    """Weight of each column for each output, scale included, shape (columns, outputs)."""
    bias: np.ndarray
    """Shape (outputs,)."""
    parts: tuple[LinearModel, ...] = ()
    """The models whose logits are averaged, each multiplied by its factor; none if this is no mean."""
    factors: tuple[float, ...] = ()

    @staticmethod
    def fit(
        rows: LabelledDocuments,
        classes: int,
        kind: LinearKind,
        *,
        deviations: np.ndarray | None = None,
        intercept: bool = True,
        weight: float = 1.0,
    ) -> LinearModel:
        """The classifier of this kind; two classes have one output, more have one each.

        ``deviations``, shape (columns,), multiplies the features; one by default. The weights of the rows, whose mean
        is one, are multiplied by ``weight`` where their size matters.
        """
        if kind.features == "mean":
            options: dict[str, Any] = {"deviations": deviations, "intercept": intercept, "weight": weight}
            first, second = (LinearModel.fit(rows, classes, part, **options) for part in (TF_IDF, NAIVE_BAYES))
            return LinearModel.mean(rows, first, second, kind)
        outputs = range(classes) if classes > 2 else (1,)
        wide = np.ones(rows.table.shape[1]) if deviations is None else deviations
        if kind.features == "tf-idf":
            scale = wide * _inverse_frequency(rows)
            features = _unit_rows(sparse.csr_matrix(rows.table @ sparse.diags_array(scale)))
            found = [_regression(features, rows, k, weight * kind.strength, intercept) for k in outputs]
            weights = [scale * weight for weight, _ in found]
        else:
            scale = np.ones(rows.table.shape[1])
            present = _present(rows.table)
            odds = [wide * _log_odds(present, rows, k) for k in outputs]
            found = [
                _regression(
                    sparse.csr_matrix(present @ sparse.diags_array(r)), rows, k, weight * kind.strength, intercept
                )
                for r, k in zip(odds, outputs, strict=True)
            ]
            weights = [r * weight for r, (weight, _) in zip(odds, found, strict=True)]
        return LinearModel(kind, scale, np.stack(weights, axis=1), np.array([bias for _, bias in found]))

    @staticmethod
    def mean(rows: LabelledDocuments, tf_idf: LinearModel, naive_bayes: LinearModel, kind: LinearKind) -> LinearModel:
        """Weighted mean of two models, the second scaled so that the logits of both are equally large on these rows.

        Its weights hold for a document whose TF-IDF norm is the harmonic mean of those of the rows.
        """
        factors = (kind.share, (1 - kind.share) * LinearModel.ratio(rows, tf_idf, naive_bayes))
        inverse = float(np.mean(1 / _lengths(rows.table @ sparse.diags_array(tf_idf.scale))))
        return LinearModel(
            kind,
            tf_idf.scale,
            factors[0] * inverse * tf_idf.weights + factors[1] * naive_bayes.weights,
            factors[0] * tf_idf.bias + factors[1] * naive_bayes.bias,
            parts=(tf_idf, naive_bayes),
            factors=factors,
        )

    @staticmethod
    def ratio(rows: LabelledDocuments, first: LinearModel, second: LinearModel) -> float:
        """Root mean square of the logits of the first model on these rows, divided by that of the second."""
        sizes = [float(np.sqrt(np.square(one.logits(rows.table)).mean())) for one in (first, second)]
        return sizes[0] / max(sizes[1], _TINY)

    def logits(self, table: sparse.csr_matrix) -> np.ndarray:
        """Logits of documents with these weighted counts, shape (documents, outputs)."""
        if self.parts:
            found = [factor * part.logits(table) for factor, part in zip(self.factors, self.parts, strict=True)]
            return np.asarray(sum(found))
        if self.kind.features == "tf-idf":
            lengths = _lengths(table @ sparse.diags_array(self.scale))
            return np.asarray((table @ self.weights) / lengths[:, None] + self.bias)
        return np.asarray(_present(table) @ self.weights + self.bias)


def _inverse_frequency(rows: LabelledDocuments) -> np.ndarray:
    """Smoothed inverse document frequency of each column, as scikit-learn defines it, shape (columns,)."""
    entries = np.repeat(rows.counted, np.diff(rows.table.indptr))
    frequency = np.bincount(rows.table.indices, weights=entries, minlength=rows.table.shape[1])
    return np.asarray(np.log((1 + rows.counted.sum()) / (1 + frequency)) + 1)


def _lengths(table: sparse.csr_matrix) -> np.ndarray:
    return np.asarray(np.maximum(np.sqrt(table.multiply(table).sum(axis=1)), _TINY)).ravel()


def _unit_rows(table: sparse.csr_matrix) -> sparse.csr_matrix:
    return sparse.csr_matrix(sparse.diags_array(1 / _lengths(table)) @ table)


def _present(table: sparse.csr_matrix) -> sparse.csr_matrix:
    """One for each entry that is at least one, fractions as they are."""
    return sparse.csr_matrix(
        (np.minimum(table.data, 1.0).astype(np.float64), table.indices, table.indptr), shape=table.shape
    )


def _log_odds(present: sparse.csr_matrix, rows: LabelledDocuments, number: int) -> np.ndarray:
    """Log odds of each column in the class against the others, with one occurrence added; shape (columns,)."""
    member = rows.labels == number
    inside = present.T @ (rows.counted * member) + 1
    outside = present.T @ (rows.counted * ~member) + 1
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
