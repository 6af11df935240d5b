"""Few documents: linear models, folds of the training rows, and the warning where a baseline is better."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize

from hardmax.distributed import ALONE
from hardmax.text import BaselineWarning, LeaderClassifier, Recipe
from hardmax.text.evaluation import calibration_error
from hardmax.text.model.network import network_from_weights
from hardmax.text.model.prediction import class_probabilities, cpu_logits
from hardmax.text.recipes import few_documents
from hardmax.text.training.calibration import (
    calibration,
    calibration_for_rare_classes,
    calibration_temperature,
)
from hardmax.text.training.cross_fitting import (
    FOLDS,
    CrossValidation,
    _Folds,
    _start_logits,
    fold_of_rows,
)
from hardmax.text.training.fitting import _deviations, _Networks
from hardmax.text.training.linear_models import KINDS, MEANS, NAIVE_BAYES, TF_IDF, LinearModel
from hardmax.text.words.counts import LabelledDocuments, weighted_counts
from hardmax.text.words.document_endings import EndingVocabulary
from hardmax.text.words.tokenisation import CHARACTERS, EVERY_SYMBOL, Tokeniser
from hardmax.text.words.vocabulary import Vocabulary
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
        model = LogisticRegression(C=40, solver="liblinear", tol=1e-2)
        model.fit(features, rows.labels == k)
        np.testing.assert_allclose(ours.logits(rows.table)[:, k], model.decision_function(features), atol=1e-9)


def test_scaled_columns_are_those_of_scikit_learn() -> None:
    rows = replace(_rows(120, 2), weights=np.ones(120))
    deviations = np.where(np.arange(30) % 3 == 0, 0.5, 1.0)
    scaled = TfidfTransformer(norm=None).fit_transform(rows.table).toarray() * deviations
    features = normalize(scaled)
    model = LogisticRegression(C=40, solver="liblinear", tol=1e-2).fit(features, rows.labels)
    ours = LinearModel.fit(rows, 2, TF_IDF, deviations=deviations)
    np.testing.assert_allclose(ours.logits(rows.table)[:, 0], model.decision_function(features), atol=1e-9)
    plain, damped = (LinearModel.fit(rows, 2, NAIVE_BAYES, deviations=d) for d in (None, deviations))
    ratio = np.abs(damped.weights[:, 0]) / np.maximum(np.abs(plain.weights[:, 0]), 1e-9)
    assert np.median(ratio[deviations == 0.5]) < 0.6 * np.median(ratio[deviations == 1])


def test_a_mean_has_the_logits_of_its_parts() -> None:
    rows = _rows(90, 3)
    first, second = (LinearModel.fit(rows, 3, kind) for kind in (TF_IDF, NAIVE_BAYES))
    sizes = [np.sqrt(np.square(one.logits(rows.table)).mean()) for one in (first, second)]
    for kind in MEANS:
        mean = LinearModel.fit(rows, 3, kind).logits(rows.table)
        wanted = kind.share * first.logits(rows.table)
        wanted = wanted + (1 - kind.share) * sizes[0] / sizes[1] * second.logits(rows.table)
        np.testing.assert_allclose(mean, wanted, rtol=1e-9)


def test_longer_n_grams_are_scaled_down() -> None:
    texts, tokeniser = ["a b c", "b c d"], Tokeniser()
    grams, _ = Vocabulary.learn(texts, tokeniser, ngrams=3, min_df=1)
    found = dict(zip(grams.names(), _deviations(grams, tokeniser, Recipe()), strict=True))  # type: ignore[arg-type]
    assert (found["b"], found["b c"], found["a b c"]) == (1.0, 0.5, 0.25)
    endings, _ = EndingVocabulary.learn(texts, tokeniser, ngrams=2, min_df=1, last=2)
    found = dict(zip(endings.names(), _deviations(endings, tokeniser, Recipe()), strict=True))  # type: ignore[arg-type]
    assert (found["c d"], found["d (at the end)"], found["c d (at the end)"]) == (0.5, 1.0, 0.5)
    # Pairs of characters are words, and a table of counts has no pairs.
    assert _deviations(grams, Tokeniser(pattern=CHARACTERS[None]), Recipe()) is None
    assert _deviations(None, None, Recipe()) is None


def test_few_texts_are_read_with_all_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"some {word} words" for word in ("plain", "other", "more")] * 40
    labels = np.arange(120) % 2
    marked = [f"#{text}" if label else text for text, label in zip(texts, labels, strict=True)]
    model = LeaderClassifier(random_state=0, progress=False).fit(marked, labels)
    assert model.tokeniser_.pattern == EVERY_SYMBOL
    assert model.predict(["# new", "some words"]).tolist() == [1, 0]
    assert model.explain(marked[1]).reasons(1)[0].word in ("#", "# some")
    assert LeaderClassifier(stop_words="english").fit(texts, labels).tokeniser_.pattern is None
    for name in ("_FEW_OF_MANY", "_FEW_OF_TWO"):
        monkeypatch.setattr(f"hardmax.text.recipes.{name}", 100)
    many = LeaderClassifier(random_state=0, progress=False).fit(texts, labels)
    assert many.tokeniser_.pattern is None
    assert many.cross_validation_ is None


def test_few_depends_on_the_number_of_classes() -> None:
    found = [
        few_documents(np.arange(count) % classes) for count, classes in ((4999, 3), (5000, 3), (9999, 2), (10000, 2))
    ]
    assert found == [True, False, True, False]


def test_the_share_of_the_mean_has_the_least_loss_on_the_folds() -> None:
    # Naive Bayes odds of a single document are large, TF-IDF weights are not: labels follow many weak words here.
    rng = np.random.default_rng(0)
    weights = rng.normal(size=60)
    counts = rng.poisson(0.5, size=(240, 60)).astype(float)
    labels = (counts @ weights + rng.normal(size=240) > np.median(counts @ weights)).astype(int)
    model = LeaderClassifier(random_state=0, progress=False).fit(sparse.csr_matrix(counts), labels)
    rows = LabelledDocuments(weighted_counts(sparse.csr_matrix(counts), Recipe(), texts=False), labels, np.ones(240))
    fold = fold_of_rows(labels, np.random.default_rng([0, 2**22]))
    losses = {}
    for kind in KINDS:
        logits = np.empty((240, 1))
        for k in range(FOLDS):
            fitted = LinearModel.fit(rows.take(np.flatnonzero(fold != k)), 2, kind)
            logits[fold == k] = fitted.logits(rows.table[np.flatnonzero(fold == k)])
        losses[str(kind)] = calibration(logits, labels, np.ones(240)).loss
    assert model.cross_validation_ is not None
    assert model.cross_validation_["start"] == min(losses, key=lambda name: losses[name])


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


def _imbalanced(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Texts of three classes of very different size; each text has random words that say nothing."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=count, p=[0.8, 0.14, 0.06])
    known = [[f"{name}{k}" for k in range(8)] for name in ("common", "seldom", "rare")]
    texts = []
    for label in labels:
        own = rng.choice(known[label], 2) if rng.random() < 0.75 else []
        noise = [f"word{k}" for k in rng.zipf(1.3, 12) % 3000]
        texts.append(" ".join([*own, *noise]))
    return texts, labels


def test_balanced_classes_keep_macro_f1_where_rare_classes_are_found_anyway() -> None:
    # A shift to equal frequencies would spread the quarter of the texts without evidence over the rare classes: 0.73.
    texts, labels = _imbalanced(450, seed=0)
    fresh, truth = _imbalanced(450, seed=1)
    scores = []
    for weight in (None, "balanced"):
        model = LeaderClassifier(random_state=0, progress=False, class_weight=weight, ngrams=1).fit(texts, labels)
        scores.append(f1_score(truth, model.predict(fresh), average="macro"))
    assert scores[1] > scores[0] - 0.05


def test_the_shift_for_rare_classes_gains_macro_f1() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(3000) < 0.05).astype(int)
    logits = (np.log(0.05 / 0.95) + 1.5 * rng.normal(size=3000) + 2 * labels)[:, None]
    balance = np.where(labels == 1, 10.0, 0.5)
    found = calibration_for_rare_classes(logits, labels, balance, np.ones(3000), shift=True)
    shifts = {"weighted": calibration(logits, labels, balance), "natural": calibration(logits, labels, np.ones(3000))}
    assert shifts["natural"].shift[0] < found.shift[0] < shifts["weighted"].shift[0]
    scores = {name: f1_score(labels, one.of(logits)[:, 0] > 0, average="macro") for name, one in shifts.items()}
    assert f1_score(labels, found.of(logits)[:, 0] > 0, average="macro") > max(scores.values())
    fixed = calibration_for_rare_classes(logits, labels, balance, np.ones(3000), shift=False)
    assert fixed.shift.tolist() == [0.0]


def test_class_weights_leave_word_statistics_alone() -> None:
    # With class weights as numbers of documents, the one document of a rare class would outweigh the smoothing.
    counts = sparse.csr_matrix(np.eye(20, 6) + np.ones((20, 6)))
    labels = np.array([0] * 18 + [1] * 2)
    plain = LabelledDocuments(counts, labels, np.ones(20))
    weighted = replace(plain, weights=np.where(labels == 1, 5.0, 5 / 9), multiplicity=np.ones(20))
    for kind in KINDS[:2]:
        first, second = (LinearModel.fit(rows, 2, kind) for rows in (plain, weighted))
        np.testing.assert_array_equal(first.scale, second.scale)
        assert second.bias[0] > first.bias[0]  # the loss does know them
    assert weighted.take(np.array([0, 19])).counted.tolist() == [1, 1]
    assert replace(plain, weights=weighted.weights).counted.tolist() == weighted.weights.tolist()


@pytest.mark.parametrize("classes", [2, 4])
def test_a_large_mass_power_is_the_linear_model_at_full_collapse(classes: int) -> None:
    rng = np.random.default_rng(0)
    outputs = 1 if classes == 2 else classes
    weights = rng.normal(size=(40, outputs))
    table = sparse.csr_matrix(rng.poisson(0.3, size=(60, 40)).astype(float))
    found = {}
    for power in (1.0, 200.0):
        network = network_from_weights(
            weights, np.zeros(outputs), np.ones(40, dtype=int), Recipe(noise=0.0), rng, power
        )
        network.resting_mass = 1e6  # so that all documents are divided by the same number
        assert network.collapse > 0.99
        found[power] = cpu_logits(network, table)[0]
    centred = weights - (weights.mean(axis=1, keepdims=True) if classes > 2 else 0)
    linear = table @ centred
    for power, least in ((1.0, 0.0), (200.0, 0.999)):
        logits = found[power] - (found[power].mean(axis=1, keepdims=True) if classes > 2 else 0)
        assert np.corrcoef(logits.ravel(), linear.ravel())[0, 1] > least
    # Masses and positions of large data are something else.
    assert np.corrcoef(found[1.0].ravel(), linear.ravel())[0, 1] < 0.999


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("masses", ["norm", "count"])
def test_logits_for_other_resting_masses_follow_from_the_first(classes: int, masses: str) -> None:
    rows = replace(_rows(90, classes), weights=np.ones(90))
    table = sparse.vstack([rows.table, sparse.csr_matrix((1, 30))], format="csr")  # the last document has no words
    rows = LabelledDocuments(table, np.append(rows.labels, 0), np.ones(91))
    networks = _Networks(np.ones(30, dtype=int), Recipe(masses=masses), 0, None, ALONE)
    model = LinearModel.fit(rows, classes, TF_IDF)
    started = networks.start(rows, model, 4.0, (1.0, 5.0, 25.0))
    folds = _Folds(rows, np.zeros(91, dtype=int), [rows], [rows.table])
    for network, logits in zip(started, _start_logits([started], folds, None), strict=True):
        np.testing.assert_allclose(logits[0], cpu_logits(network, rows.table)[0], rtol=1e-9, atol=1e-9)
        # Each is scaled like the linear model.
        own, wanted = (part - part.mean(axis=0) for part in (logits[0], model.logits(rows.table)))
        assert 0.5 < np.sqrt(np.square(own).mean() / np.square(wanted).mean()) < 2
    assert started[2].resting_mass == pytest.approx(25 * started[0].resting_mass)
    (alone,) = networks.start(rows, model, 4.0, (5.0,))
    torch.testing.assert_close(alone.decoder, started[1].decoder)
    assert alone.resting_mass == pytest.approx(started[1].resting_mass)


def test_epochs_are_trained_where_they_are_asked_for() -> None:
    texts, labels = opinions(200)
    asked = LeaderClassifier(random_state=0, progress=False, epochs=3).fit(texts, labels)
    assert asked.n_iter_ == 3
    assert asked.cross_validation_ is not None
    assert asked.cross_validation_["trained"]


def test_mass_power_is_saved(tmp_path: Path) -> None:
    texts, labels = opinions(200)
    fitted = LeaderClassifier(random_state=0, progress=False).fit(texts, labels)
    fitted.network_.mass_power = 3.0
    fitted.save(tmp_path / "model.safetensors")
    loaded = LeaderClassifier.load(tmp_path / "model.safetensors")
    assert loaded.network_.mass_power == 3
    np.testing.assert_allclose(loaded.decision_function(texts[:9]), fitted.decision_function(texts[:9]), rtol=1e-6)
    explained = loaded.explain(texts[0])
    total = explained.bias + sum(leader.contribution for leader in explained.leaders)
    np.testing.assert_allclose(total, loaded.decision_function(texts[:1]), atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_calibration_finds_temperature_and_shift(outputs: int) -> None:
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(4000, outputs))
    true = logits / 2 + (np.array([0.7]) if outputs == 1 else np.array([0.5, 0.0, -0.5]))
    chances = class_probabilities(true)
    labels = (rng.random((4000, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    found = calibration(logits, labels, np.ones(4000))
    assert found.temperature == pytest.approx(2, rel=0.1)
    shift = found.shift - (found.shift.mean() if outputs > 1 else 0)
    np.testing.assert_allclose(shift, [0.7] if outputs == 1 else [0.5, 0, -0.5], atol=0.12)
    np.testing.assert_allclose(found.of(logits), logits / found.temperature + found.shift)
    assert calibration(logits, labels, np.ones(4000), shift=False).shift.tolist() == [0.0] * outputs


def test_a_temperature_from_few_rows_stays_moderate() -> None:
    logits, labels = np.array([[3.0], [-3.0]] * 10), np.array([1, 0] * 10)
    assert 0.2 < calibration_temperature(logits, labels, np.ones(20)) < 1
    many = np.tile(logits, (500, 1)), np.tile(labels, 500), np.ones(10_000)
    assert calibration_temperature(*many) < 0.3
