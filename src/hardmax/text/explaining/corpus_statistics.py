"""Statistics over many documents: leading words, number of leaders, and the most influential words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..classifier import LeaderClassifier
from ..model.prediction import class_probabilities
from ..words.counts import batch

# Documents per batch: small enough that a batch stays in the cache.
_DOCUMENTS_AT_ONCE = 256


@dataclass(frozen=True)
class Survey:
    """Leaders and contributions of a model on a set of documents."""

    words: tuple[str, ...]
    """Names of the words, in the order of the columns of all arrays."""
    classes: np.ndarray
    """Labels of the classes, shape (classes,)."""
    positions: np.ndarray
    """Initial position of each word, shape (words, coordinates)."""
    decoder: np.ndarray
    """Weights of the decoder, shape (logits, coordinates)."""
    bias: np.ndarray
    """Bias of the decoder, shape (logits,)."""
    collapse: float
    """Fraction of the distance to their leaders that words have moved after all layers."""
    predicted: np.ndarray
    """Index of the predicted class of each document, shape (documents,)."""
    confidence: np.ndarray
    """Probability of the predicted class, shape (documents,)."""
    leaders: np.ndarray
    """Number of leaders of each document, shape (documents,)."""
    from_start: np.ndarray
    """Number of leaders of each document that lead from layer 0 on, shape (documents,)."""
    leading: np.ndarray
    """Number of documents of each predicted class in which each word leads, shape (classes, words)."""
    present: np.ndarray
    """Number of documents in which each word occurs, shape (words,)."""
    contribution: np.ndarray
    """Contribution of each word to the logits, summed over all documents, shape (words, logits)."""

    def most_frequent_leaders(self, top: int = 40) -> list[tuple[str, int]]:
        """Words that lead in most documents.

        Parameters
        ----------
        top
            Largest number of words.

        Returns
        -------
        list of tuple
            Word and number of documents, most frequent first.
        """
        total = self.leading.sum(axis=0)
        order = np.argsort(-total, kind="stable")[:top]
        return [(self.words[k], int(total[k])) for k in order if total[k] > 0]

    def most_influential(self, top: int = 20, output: int = 0) -> list[tuple[str, float]]:
        """Words with the largest absolute contribution to a logit, summed over the documents.

        Parameters
        ----------
        top
            Largest number of words.
        output
            Index of the logit.

        Returns
        -------
        list of tuple
            Word and contribution, largest absolute value first.
        """
        sums = self.contribution[:, output]
        order = np.argsort(-np.abs(sums), kind="stable")[:top]
        return [(self.words[k], float(sums[k])) for k in order if sums[k] != 0]

    def statistics(self) -> list[dict[str, Any]]:
        """Statistics of the number of leaders per document, over all documents and for each predicted class.

        Returns
        -------
        list of dict
            One dictionary per group, with mean, standard deviation, extremes and the share that leads from layer 0 on.
        """
        rows = []
        for name, chosen in [
            ("all", np.ones(len(self.predicted), dtype=bool)),
            *((str(label), self.predicted == k) for k, label in enumerate(self.classes)),
        ]:
            some = self.leaders[chosen]
            if len(some):
                rows.append(
                    {
                        "class": name,
                        "documents": len(some),
                        "mean": float(some.mean()),
                        "deviation": float(some.std()),
                        "least": int(some.min()),
                        "most": int(some.max()),
                        "from layer 0": float(self.from_start[chosen].sum() / max(some.sum(), 1)),
                    }
                )
        return rows


@torch.no_grad()
def survey(model: LeaderClassifier, documents: Any) -> Survey:
    """Statistics of a model over a set of documents.

    Parameters
    ----------
    model
        Fitted model.
    documents
        Texts or a table, of the kind that the model was fitted on.

    Returns
    -------
    Survey
        Leading words, number of leaders and contributions.
    """
    table = model._table(documents)
    network = model.network_
    words, count = model.words(), table.shape[0]
    predicted, confidence = np.zeros(count, dtype=np.int64), np.zeros(count)
    leaders, from_start = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    leading = np.zeros((len(model.classes_), len(words)), dtype=np.int64)
    contribution = np.zeros((len(words), len(network.bias)))
    for begin in range(0, count, _DOCUMENTS_AT_ONCE):
        part = batch(table[begin : begin + _DOCUMENTS_AT_ONCE])
        some = slice(begin, begin + part.size)
        logits, shares, values, path = network.shares_and_values(part)
        logits[np.diff(part.starts) == 0] = torch.from_numpy(model._prior_logits())
        chances = class_probabilities(logits.numpy())
        predicted[some], confidence[some] = chances.argmax(axis=1), chances.max(axis=1)
        lead = path.leaders
        leaders[some] = np.bincount(part.document[lead], minlength=part.size)
        first = lead & (path.choices[0] == np.arange(len(lead)))
        from_start[some] = np.bincount(part.document[first], minlength=part.size)
        np.add.at(leading, (predicted[some][part.document[lead]], part.columns[lead]), 1)
        np.add.at(contribution, part.columns, (shares[:, None] * values).numpy())
    return Survey(
        words=tuple(words),
        classes=model.classes_,
        positions=network.embedding.numpy(),
        decoder=network.decoder.numpy(),
        bias=network.bias.numpy(),
        collapse=model.collapse_,
        predicted=predicted,
        confidence=confidence,
        leaders=leaders,
        from_start=from_start,
        leading=leading,
        present=np.bincount(table.indices, minlength=len(words)),
        contribution=contribution,
    )
