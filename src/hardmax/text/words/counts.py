"""Documents as sparse rows of weighted word counts, and the statistics of words per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..recipes import Recipe
from .document_endings import EndingVocabulary
from .tokenisation import Tokeniser
from .vocabulary import Vocabulary

# Keeps chi2 finite for a column that occurs in no document.
_LEAST_EXPECTED = 1e-9
_RARE = 0.05
"""Document frequency below which the evidence of a word is damped, for three classes or more."""
_EVEN = 1.1
"""Ratio of class sizes up to which two classes are smoothed as if they were equally large."""


@dataclass(frozen=True)
class Batch:
    """Some documents on the CPU, their distinct words one after another in flat arrays."""

    columns: np.ndarray
    """Column of each word in the embedding, shape (words,)."""
    term_weights: np.ndarray
    """Weighted count of each word, shape (words,)."""
    starts: np.ndarray
    """Index of the first word of each document, and the number of words, shape (documents + 1,)."""
    document: np.ndarray
    """Document of each word, shape (words,)."""

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def take(self, some: slice) -> Batch:
        """The documents of a slice of consecutive documents."""
        if some.stop - some.start == self.size:
            return self
        words = slice(self.starts[some.start], self.starts[some.stop])
        starts = self.starts[some.start : some.stop + 1] - words.start
        return Batch(self.columns[words], self.term_weights[words], starts, self.document[words] - some.start)


@dataclass(frozen=True)
class LabelledDocuments:
    """Documents with their labels and sample weights."""

    table: sparse.csr_matrix
    """Counts or weighted counts, shape (documents, columns)."""
    labels: np.ndarray
    """Index of the class of each document, shape (documents,)."""
    weights: np.ndarray
    """Weight of each document in losses and accuracies, class weight included, shape (documents,)."""
    multiplicity: np.ndarray | None = None
    """Number of documents that each row counts as in statistics of words, without the class weight, shape (documents,);
    the weights if None."""

    @property
    def counted(self) -> np.ndarray:
        """Number of documents that each row counts as in statistics of words, shape (documents,).

        Class weights are left out: with them a word in a single document of a rare class would count like a word in
        many, and smoothing could not reduce its evidence.
        """
        return self.weights if self.multiplicity is None else self.multiplicity

    def take(self, rows: np.ndarray) -> LabelledDocuments:
        """The documents with these indices."""
        counted = None if self.multiplicity is None else self.multiplicity[rows]
        return LabelledDocuments(self.table[rows], self.labels[rows], self.weights[rows], counted)


def sublinear(counts: np.ndarray) -> np.ndarray:
    """Term weight of each count: 1 + log c for c > 1 and c itself below, so that fractions are allowed.

    >>> sublinear(np.array([0.25, 1.0, np.e])).tolist()
    [0.25, 1.0, 2.0]
    """
    weights = np.array(counts, dtype=np.result_type(counts, np.float32))
    several = np.flatnonzero(weights > 1)  # few, so the logarithm is computed for these alone
    weights.flat[several] = 1 + np.log(weights.flat[several])
    return weights


def batch(table: sparse.csr_matrix, keep: np.ndarray | None = None) -> Batch:
    """Batch of all documents of a table of weighted counts.

    ``keep`` is a mask over the entries of the table, in order, that drops some words.
    """
    columns, weights, starts = table.indices, table.data, table.indptr.astype(np.int64)
    if keep is not None:
        selected = np.flatnonzero(keep)
        columns, weights, starts = columns[selected], weights[selected], np.searchsorted(selected, starts)
    document = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return Batch(columns.astype(np.int64), weights, starts, document)


def class_presence(
    table: sparse.csr_matrix, labels: np.ndarray, classes: int, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sum of each column over each class, shape (classes, columns), and the total weight of each class."""
    member = sparse.csr_matrix((weights, (labels, np.arange(len(labels)))), shape=(classes, len(labels)))
    return (member @ table).toarray(), np.bincount(labels, weights=weights, minlength=classes)


def chi2(presence: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Chi-squared statistic of each column against the sizes of the classes, shape (columns,)."""
    expected = presence.sum(axis=0) * (sizes / sizes.sum())[:, None]
    return np.asarray(((presence - expected) ** 2 / np.maximum(expected, _LEAST_EXPECTED)).sum(axis=0))


def evidence(presence: np.ndarray, sizes: np.ndarray, smoothing: float) -> np.ndarray:
    r"""Evidence of each column for each class from smoothed frequencies, shape (classes, columns).

    .. math:: p_c = \frac{d_c + a_c}{n_c + 2a_c} \quad\text{(two classes)}, \qquad
              p_c = \frac{d_c + a q}{n_c + a} \quad\text{(more)}

    For two classes it is the log odds :math:`\log p_1 - \log p_0` for the second class and its negative for the first.
    If one class is clearly larger, :math:`a_c` is the smoothing in proportion to :math:`n_c`, so that the evidence of a
    word that is equally frequent in both is zero; equal smoothing would turn every rare word into evidence for the
    smaller class.

    For more classes it is the positive part of :math:`\log(p_c + \epsilon) - \log(q + \epsilon)`, where q is the
    frequency over all classes: a word points only at the classes that it is evidence for, so that each class has
    leaders of its own. Smoothing towards q avoids evidence for a small class from words that it never contains, and
    :math:`\epsilon` bounds the evidence of rare words.

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


def copied_counts(counts: Any) -> sparse.csr_matrix:
    """A copy of a dense or sparse table in CSR format, without duplicate entries."""
    table = sparse.csr_matrix(counts, copy=True)
    table.sum_duplicates()
    return table


def weighted_counts(counts: sparse.csr_matrix, recipe: Recipe, *, texts: bool) -> sparse.csr_matrix:
    """Weighted counts by the recipe; ``counts`` may be modified in place.

    For texts, a recipe with ``cut`` adds a column for the padding word.
    """
    table = counts
    if recipe.cut is not None and texts:
        missing = np.maximum(recipe.cut - np.asarray(table.sum(axis=1)).ravel(), 0)
        missing[np.diff(table.indptr) == 0] = 0  # a text without a known word is not padded
        table = sparse.hstack([table, sparse.csr_matrix(missing[:, None])], format="csr")
    table.eliminate_zeros()
    if recipe.masses == "norm":
        table.data = sublinear(table.data)
    return table


def document_table(
    documents: Sequence[str] | sparse.csr_matrix | np.ndarray,
    recipe: Recipe,
    columns: np.ndarray,
    vocabulary: Vocabulary | EndingVocabulary | None,
    tokeniser: Tokeniser | None,
) -> sparse.csr_matrix:
    """Weighted counts of documents by the words of a fitted model, shape (documents, words).

    ``documents`` are texts if there is a vocabulary, else a table of counts of which ``columns`` are selected.
    """
    if vocabulary is None or tokeniser is None:
        return weighted_counts(copied_counts(documents)[:, columns], recipe, texts=False)
    counts = vocabulary.count(documents, tokeniser).astype(np.float64)  # type: ignore[arg-type]
    return weighted_counts(counts, recipe, texts=True)
