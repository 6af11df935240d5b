"""Explainable boosting machine (EBM, the package ``interpret-core``) on few words: deletion, sufficiency and stability.

An EBM takes dense tables only, so that the words are a few hundred that are selected by the chi2 statistic. It is a sum
of one function per word, hence the exact effect of deleting a word is the difference of two values of its function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import chi2

from hardmax.text.evaluation import Faithfulness

WORDS, ROWS = 300, 5_000


@dataclass(frozen=True)
class AdditiveReasons:
    """What the machine names, and what deleting it does."""

    faithfulness: Faithfulness
    names: list[set[str]]
    """Words named for each review."""
    accuracy: float


def dense_gigabytes(rows: int, columns: int) -> float:
    """Size of a dense table in double precision."""
    return 8e-9 * rows * columns


def additive_reasons(
    texts: list[str],
    labels: np.ndarray,
    judged: list[str],
    truth: np.ndarray,
    numbers: list[int],
    *,
    seed: int,
    draws: int,
) -> AdditiveReasons:
    """Words with the largest effect on the logit of each judged review, as many as ``numbers`` says."""
    from interpret.glassbox import ExplainableBoostingClassifier

    words = CountVectorizer(binary=True)
    table = words.fit_transform(texts[:ROWS])
    columns = np.sort(np.argsort(-chi2(table, labels[:ROWS])[0], kind="stable")[:WORDS])
    names = words.get_feature_names_out()[columns]
    # Two bags instead of fourteen and no interactions: a tenth of the time, for an additive model of single words.
    machine: Any = ExplainableBoostingClassifier(
        interactions=0, outer_bags=2, max_rounds=2000, n_jobs=1, random_state=seed
    )
    machine.fit(table[:, columns].toarray().astype(float), labels[:ROWS])
    present = words.transform(judged)[:, columns].toarray().astype(bool)
    accuracy = float((machine.predict(present.astype(float)) == truth).mean())
    whole = machine.decision_function(present.astype(float))
    value = np.zeros(len(columns))
    empty = machine.decision_function(np.zeros((1, len(columns))))[0]
    value[:] = machine.decision_function(np.eye(len(columns))) - empty
    rng = np.random.default_rng(0)
    named, random, alone, chosen = [], [], [], []
    for row, logit, count in zip(present, whole, numbers, strict=True):
        here = np.flatnonzero(row)
        best = here[np.argsort(-np.abs(value[here]), kind="stable")[:count]]
        chosen.append({str(names[k]) for k in best})
        if 0 < len(best) < len(here):
            named.append(abs(value[best].sum()))
            alone.append(abs(empty + value[best].sum() - logit))
            draw = [rng.choice(here, len(best), replace=False) for _ in range(draws)]
            random.append(np.mean([abs(value[some].sum()) for some in draw]))
    found = Faithfulness(
        named=float(np.mean(named)),
        random=float(np.mean(random)),
        deleted=float(np.mean([len(some) for some in chosen])),
        documents=len(named),
        sufficiency=float(np.mean(alone)),
    )
    return AdditiveReasons(found, chosen, accuracy)
