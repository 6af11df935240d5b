"""LIME (the package ``lime``) on the words that the classifier reads.

A document's words are switched off at random, the classifier answers, and a linear model is fitted to its answers; the
words with the largest weights are named as reasons. Sampling, distances and kernel are those of LIME for texts; the
linear model is fitted by the package itself.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hardmax.text.classifier import LeaderClassifier

_KERNEL_WIDTH = 25.0


def masks(words: int, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of zeros and ones: the whole document first, then copies with a random number of words switched off."""
    shown = np.ones((samples, words))
    for row in range(1, samples):
        off = rng.choice(words, rng.integers(1, words + 1), replace=False)
        shown[row, off] = 0
    return shown


def most_important(
    model: LeaderClassifier, row: sparse.csr_matrix, top: int, *, samples: int, rng: np.random.Generator
) -> np.ndarray:
    """The places in the row of the ``top`` words that LIME names."""
    from lime.lime_base import LimeBase

    shown = masks(row.nnz, samples, rng)
    kept = shown.astype(bool)
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    data, indices = np.tile(row.data, samples)[kept.ravel()], np.tile(row.indices, samples)[kept.ravel()]
    logits, _ = model._logits(sparse.csr_matrix((data, indices, starts), shape=(samples, row.shape[1])))
    chances = 1 / (1 + np.exp(-logits[:, :1]))
    # The cosine distance of a row of zeros and ones to the row of ones, times 100, as LIME for texts takes it.
    distances = 100 * (1 - np.sqrt(shown.mean(axis=1)))
    base = LimeBase(lambda far: np.sqrt(np.exp(-(far**2) / _KERNEL_WIDTH**2)), random_state=np.random.RandomState(0))
    found = base.explain_instance_with_data(
        shown, chances, distances, label=0, num_features=top, feature_selection="highest_weights"
    )
    return np.array([place for place, _ in found[1]], dtype=np.int64)
