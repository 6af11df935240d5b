"""Few documents: linear models, folds of the training rows, and the warning where a baseline is better."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from hardmax.text import BaselineWarning, LeaderClassifier, Recipe
from hardmax.text.evaluation import calibration_error
from hardmax.text.training.cross_fitting import FOLDS, CrossValidation, fold_of_rows
from hardmax.text.training.linear_models import KINDS, LinearModel
from hardmax.text.training.calibration import calibration_temperature
from hardmax.text.words.counts import LabelledDocuments
from made_up_texts import opinions, topics


def _rows(count: int, classes: int, seed: int = 0) -> LabelledDocuments:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    counts = rng.poisson(0.1, size=(count, 30)).astype(float)
    counts[np.arange(count), labels] += 2
    return LabelledDocuments(sparse.csr_matrix(counts), labels, rng.uniform(0.5, 2, size=count))


def test_tf_idf_regression_is_that_of_scikit_learn() -> None:
    rows = _rows(120, 3)
    rows = replace(rows, weights=np.ones(120))
    ours = LinearModel.fit(rows, 3, KINDS[0])
    features = TfidfTransformer().fit_transform(rows.table)
    for k in range(3):
        model = LogisticRegression(C=10, solver="liblinear", tol=1e-2)
        model.fit(features, rows.labels == k)
        np.testing.assert_allclose(ours.logits(rows.table)[:, k], model.decision_function(features), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_kind_learns(kind: object, classes: int) -> None:
    model = LinearModel.fit(_rows(120, classes), classes, kind)  # type: ignore[arg-type]
    fresh = _rows(120, classes, seed=1)
    logits = model.logits(fresh.table)
    found = (logits[:, 0] > 0).astype(int) if classes == 2 else logits.argmax(axis=1)
    assert (found == fresh.labels).mean() > 0.85


def test_a_class_that_a_fold_lacks_is_never_predicted() -> None:
    rows = _rows(60, 3)
    some = rows.take(np.flatnonzero(rows.labels != 2))
    for kind in KINDS:
        assert (LinearModel.fit(some, 3, kind).logits(rows.table).argmax(axis=1) != 2).all(), kind


def test_folds_share_every_class_evenly() -> None:
    labels = np.repeat([0, 1, 2], [40, 7, 2])
    fold = fold_of_rows(labels, np.random.default_rng(0))
    for k in range(3):
        sizes = np.bincount(fold[labels == k], minlength=FOLDS)
        assert sizes.max() - sizes.min() <= 1
    assert np.bincount(fold).max() - np.bincount(fold).min() <= 1


def test_few_documents_are_calibrated_without_losing_a_row() -> None:
    texts, labels = opinions(400)
    rng = np.random.default_rng(0)
    flipped = np.where(rng.random(400) < 0.25, 1 - labels, labels)  # no model can be right on more than three quarters
    fitted = LeaderClassifier(random_state=0, progress=False).fit(texts[:300], flipped[:300])
    plain = LeaderClassifier(random_state=0, progress=False, validation_fraction=0).fit(texts[:300], flipped[:300])
    assert fitted.temperature_ > 1
    assert plain.temperature_ == 1
    # Both are fitted to all rows.
    assert not any("held_out_loss" in record for record in fitted.history_)
    errors = []
    for model in (fitted, plain):
        chances = model.predict_proba(texts[300:])
        errors.append(calibration_error(chances.max(axis=1), chances.argmax(axis=1) == flipped[300:]))
    assert errors[0] < 0.8 * errors[1]


def test_the_comparison_is_told_saved_and_loaded(tmp_path: Path) -> None:
    texts, names = topics(150)
    fitted = LeaderClassifier(random_state=0, progress=False).fit(texts, names)
    assert fitted.cross_validation_ is not None
    assert fitted.cross_validation_["folds"] == FOLDS
    assert fitted.cross_validation_["accuracy"] > 0.95
    fitted.save(tmp_path / "model.safetensors")
    assert LeaderClassifier.load(tmp_path / "model.safetensors").cross_validation_ == fitted.cross_validation_
    # Too few to compare anything.
    assert LeaderClassifier(random_state=0).fit(texts[:30], names[:30]).cross_validation_ is None


def test_a_better_baseline_is_told_at_fit() -> None:
    # With so much noise in the initial positions and no training the network stays behind.
    texts, labels = opinions(300)
    poor = Recipe(ngrams=1, start="regression", noise=30.0, epochs=1, learning_rate=1e-9)
    with pytest.warns(BaselineWarning, match=r"In 3 folds .* the baseline serves these data better"):
        fitted = LeaderClassifier(recipe=poor, random_state=0, progress=False).fit(texts, labels)
    assert fitted.cross_validation_ is not None
    assert fitted.cross_validation_["accuracy"] < fitted.cross_validation_["baseline_accuracy"] - 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LeaderClassifier(recipe=replace(poor, noise=0.01), random_state=0).fit(*topics(150))


def test_behind_is_more_than_a_point() -> None:
    report = CrossValidation(3, 0.90, "a", "b", 0.92, standard_error=0.005)
    assert report.behind
    assert "b on 92.0% (standard error of the difference 0.5%); the baseline serves" in str(report)
    assert not replace(report, baseline_accuracy=0.909).behind


def test_balanced_classes_raise_macro_f1() -> None:
    texts, labels = opinions(600)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(600) < 0.1, 1 - labels, labels)
    some = np.flatnonzero((noisy == 1) | (rng.random(600) < 0.12))
    train, test = some[: 2 * len(some) // 3], some[2 * len(some) // 3 :]
    scores = []
    for weight in (None, "balanced"):
        model = LeaderClassifier(random_state=0, progress=False, class_weight=weight)
        model.fit([texts[k] for k in train], noisy[train])
        scores.append(f1_score(noisy[test], model.predict([texts[k] for k in test]), average="macro"))
    assert scores[1] > scores[0]


def test_a_temperature_from_few_rows_stays_moderate() -> None:
    logits, labels = np.array([[3.0], [-3.0]] * 10), np.array([1, 0] * 10)
    assert 0.2 < calibration_temperature(logits, labels, np.ones(20)) < 1
    many = np.tile(logits, (500, 1)), np.tile(labels, 500), np.ones(10_000)
    assert calibration_temperature(*many) < 0.3
