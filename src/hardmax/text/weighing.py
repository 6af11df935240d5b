"""From documents to the table that a network reads: what the counts of the model's words weigh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_non_negative, validate_data

from ..errors import InputError
from .counts import damped
from .recipes import Recipe
from .texts import as_texts

if TYPE_CHECKING:
    from .classifier import LeaderClassifier


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
