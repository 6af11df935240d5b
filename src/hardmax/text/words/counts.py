"""Documents as sparse rows of weighted word counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_non_negative, validate_data

from ...errors import InputError
from ..recipes import Recipe
from .documents import as_texts

if TYPE_CHECKING:
    from ..classifier import LeaderClassifier


_LEAST_EXPECTED = 1e-9
_RARE = 0.05
"""The share of documents below which a word counts as rare, where there are several classes."""
_EVEN = 1.1
"""Two classes of which the larger is at most so many times the smaller are smoothed as if they were equally large."""


@dataclass(frozen=True)
class Batch:
    """Some documents, word after word: columns, damped counts, where each document starts, each word's document."""

    columns: np.ndarray
    damped: np.ndarray
    starts: np.ndarray
    document: np.ndarray

    @property
    def size(self) -> int:
        """How many documents there are."""
        return len(self.starts) - 1

    def take(self, some: slice) -> Batch:
        """Only these documents, which follow one another."""
        if some.stop - some.start == self.size:
            return self
        words = slice(self.starts[some.start], self.starts[some.stop])
        starts = self.starts[some.start : some.stop + 1] - words.start
        return Batch(self.columns[words], self.damped[words], starts, self.document[words] - some.start)


def damped(counts: np.ndarray) -> np.ndarray:
    """What a count weighs: 1 + log c from one occurrence on, c itself below, so that fractions are allowed.

    >>> damped(np.array([0.25, 1.0, np.e])).tolist()
    [0.25, 1.0, 2.0]
    """
    weights = np.array(counts, dtype=np.result_type(counts, np.float32))
    several = np.flatnonzero(weights > 1)  # few, so the logarithm is taken of these alone
    weights.flat[several] = 1 + np.log(weights.flat[several])
    return weights


def batch(table: sparse.csr_matrix, rows: np.ndarray | None = None, keep: np.ndarray | None = None) -> Batch:
    """The documents at ``rows`` (all when left out); ``table`` holds what the counts weigh.

    ``keep`` says for each entry of those rows, in order, whether it stays.
    """
    part = table if rows is None else table[rows]
    columns, weights, starts = part.indices, part.data, part.indptr.astype(np.int64)
    if keep is not None:
        kept = np.flatnonzero(keep)
        columns, weights, starts = columns[kept], weights[kept], np.searchsorted(kept, starts)
    document = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return Batch(columns.astype(np.int64), weights, starts, document)


def class_presence(
    table: sparse.csr_matrix, labels: np.ndarray, classes: int, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How much of each column there is in each class, shape (classes, columns), and the weight of each class."""
    member = sparse.csr_matrix((weights, (labels, np.arange(len(labels)))), shape=(classes, len(labels)))
    return (member @ table).toarray(), np.bincount(labels, weights=weights, minlength=classes)


def chi2(presence: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How far each column's presence in the classes is from what the sizes of the classes alone would give."""
    expected = presence.sum(axis=0) * (sizes / sizes.sum())[:, None]
    return np.asarray(((presence - expected) ** 2 / np.maximum(expected, _LEAST_EXPECTED)).sum(axis=0))


def evidence(presence: np.ndarray, sizes: np.ndarray, smoothing: float) -> np.ndarray:
    r"""What each column says for each class, shape (classes, columns), from smoothed frequencies.

    .. math:: p_c = \frac{d_c + a_c}{n_c + 2a_c} \quad\text{(two classes)}, \qquad
              p_c = \frac{d_c + a q}{n_c + a} \quad\text{(more)}

    For two classes the log odds :math:`\log p_1 - \log p_0`, for the second class and, negated, for the first; where
    one is clearly larger, :math:`a_c` is the smoothing in proportion to :math:`n_c`, so that a word that is as frequent
    in both says nothing (the same for both would make every rare word speak for the smaller one).
    For more, how far :math:`\log(p_c + \epsilon)` lies above :math:`\log(q + \epsilon)`, where q is the frequency in
    all classes, and nothing where it lies below: a word points only at the classes that it speaks for, so that each
    class has leaders of its own. Smoothing towards q keeps small classes from laying claim to every word that they were
    never seen with, and :math:`\epsilon` keeps rare words from shouting.

    >>> evidence(np.array([[8.0, 1.0], [2.0, 1.0]]), np.array([10.0, 10.0]), 1.0).round(2).tolist()
    [[1.1, 0.0], [-1.1, 0.0]]
    """
    if len(sizes) == 2:
        uneven = sizes.max() > _EVEN * sizes.min()
        added = smoothing * (sizes / sizes.mean() if uneven else np.ones(2))
        logs = np.log((presence + added[:, None]) / (sizes + 2 * added)[:, None])
        return np.asarray(np.stack([logs[0] - logs[1], logs[1] - logs[0]]))
    everywhere = presence.sum(axis=0) / sizes.sum()
    frequency = (presence + smoothing * everywhere) / (sizes + smoothing)[:, None]
    return np.asarray(np.maximum(np.log((frequency + _RARE) / (everywhere + _RARE)), 0.0))


def own_counts(X: Any) -> sparse.csr_matrix:
    """A table of our own, each entry once."""
    table = sparse.csr_matrix(X, copy=True)
    table.sum_duplicates()
    return table


def weighed(counts: sparse.csr_matrix, recipe: Recipe, *, texts: bool) -> sparse.csr_matrix:
    """What the counts weigh, for texts with a padding word where the recipe has one; ``counts`` itself is used up."""
    table = counts
    if recipe.cut is not None and texts:
        missing = np.maximum(recipe.cut - np.asarray(table.sum(axis=1)).ravel(), 0)
        missing[np.diff(table.indptr) == 0] = 0  # a text without a word stays without one
        table = sparse.hstack([table, sparse.csr_matrix(missing[:, None])], format="csr")
    table.eliminate_zeros()
    if recipe.masses == "norm":
        table.data = damped(table.data)
    return table


def weighed_table(model: LeaderClassifier, X: Any, recipe: Recipe) -> sparse.csr_matrix:
    """Documents of the kind that the model was fitted on, by the words that it knows."""
    texts = as_texts(X)
    if (texts is None) == hasattr(model, "vocabulary_"):
        learned, got = ("texts", "a table") if texts is None else ("a table of counts", "texts")
        raise InputError("X", got, f"must be {learned}, like what the model was fitted on", f"pass {learned}")
    if texts is None:
        X = validate_data(model, X, accept_sparse="csr", dtype=np.float64, reset=False)
        check_non_negative(X, type(model).__name__)
        return weighed(own_counts(X)[:, model.columns_], recipe, texts=False)
    return weighed(model.vocabulary_.count(texts, model.tokeniser_).astype(np.float64), recipe, texts=True)
