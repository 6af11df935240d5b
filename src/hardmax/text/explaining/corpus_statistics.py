"""Many documents at once: which words lead, how many leaders there are, and which words weigh most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..classifier import LeaderClassifier
from ..words.counts import batch

_DOCUMENTS_AT_ONCE = 256


@dataclass(frozen=True)
class Survey:
    """What a model does on a set of documents. Columns are those of ``words``."""

    words: tuple[str, ...]
    classes: np.ndarray
    positions: np.ndarray
    """Where every word starts, shape (words, coordinates)."""
    decoder: np.ndarray
    bias: np.ndarray
    collapse: float
    predicted: np.ndarray
    """The number of the class given to each document."""
    confidence: np.ndarray
    """The probability of that class."""
    leaders: np.ndarray
    """How many leaders each document has."""
    from_start: np.ndarray
    """How many of them lead from layer 0 on."""
    leading: np.ndarray
    """How many documents of each predicted class each word leads, shape (classes, words)."""
    present: np.ndarray
    """In how many documents each word occurs."""
    contribution: np.ndarray
    """What each word contributes to the logits over all documents, shape (words, logits)."""

    def most_frequent_leaders(self, top: int = 40) -> list[tuple[str, int]]:
        """The words that lead most documents, and how many."""
        total = self.leading.sum(axis=0)
        order = np.argsort(-total, kind="stable")[:top]
        return [(self.words[k], int(total[k])) for k in order if total[k] > 0]

    def most_influential(self, top: int = 20, output: int = 0) -> list[tuple[str, float]]:
        """The words with the largest contributions to a logit, summed over the documents, by size."""
        sums = self.contribution[:, output]
        order = np.argsort(-np.abs(sums), kind="stable")[:top]
        return [(self.words[k], float(sums[k])) for k in order if sums[k] != 0]

    def statistics(self) -> list[dict[str, Any]]:
        """Leaders per document, for all and by predicted class: mean, deviation, extremes, and share from layer 0."""
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
    """Look at what ``model`` does on ``documents`` (texts or a table, as it was fitted on)."""
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
        chances = _probabilities(logits.numpy())
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


def _probabilities(logits: np.ndarray) -> np.ndarray:
    both = np.column_stack([np.zeros(len(logits)), logits[:, 0]]) if logits.shape[1] == 1 else logits
    powers = np.exp(both - both.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
