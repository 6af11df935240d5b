"""The classifier on texts and on tables: training, invalid input, saved files."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score

import hardmax as hm
from hardmax.errors import FileError, InputError
from hardmax.text import LeaderClassifier
from hardmax.text.training import loop
from hardmax.text.words.documents import NoKnownWordWarning
from interrupted_training import interrupt_at
from made_up_texts import opinions, topics

TEXTS, LABELS = opinions(300)
FRESH, TRUTH = opinions(200, seed=1)


@pytest.fixture(scope="module")
def model() -> LeaderClassifier:
    return LeaderClassifier(random_state=0).fit(TEXTS, LABELS)


def test_learns_opinions_with_few_leaders(model: LeaderClassifier) -> None:
    assert model.score(FRESH, TRUTH) > 0.97
    assert model.count_leaders(FRESH).mean() < 4
    assert model.collapse_ >= 0.99
    assert {"wonderful", "not a word"} & set(model.words()) == {"wonderful"}


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_learns_topics_in_any_dimension(dim: int) -> None:
    texts, names = topics(120)
    fitted = LeaderClassifier(dim=dim, batch_size=32, epochs=60, random_state=1).fit(texts, names)
    fresh, truth = topics(90, seed=2)
    assert fitted.score(fresh, truth) > (0.9 if dim > 1 else 0.5)
    assert fitted.predict_proba(fresh).sum(axis=1) == pytest.approx(1)
    assert set(fitted.classes_) == {"sea", "sky", "wood"}


def test_texts_and_their_counts_give_the_same_model() -> None:
    # Without pairs: linear models of texts scale their features down, and the columns of a table have no length.
    model = LeaderClassifier(random_state=0, ngrams=1).fit(TEXTS, LABELS)
    counter = CountVectorizer(tokenizer=model.tokeniser_, token_pattern=None, lowercase=False, vocabulary=model.words())
    on_counts = LeaderClassifier(random_state=0).fit(counter.transform(TEXTS), LABELS)
    np.testing.assert_allclose(
        on_counts.decision_function(counter.transform(FRESH)), model.decision_function(FRESH), atol=1e-9
    )
    named = on_counts.explain(counter.transform(FRESH[:1]), names=counter.get_feature_names_out())
    assert named.leaders[0].word == model.explain(FRESH[0]).leaders[0].word


def test_names_of_data_frame_columns() -> None:
    frame = pd.DataFrame({"good": [2, 3, 0, 0] * 5, "bad": [0, 0, 1, 4] * 5})
    fitted = LeaderClassifier(random_state=0, epochs=30).fit(frame, [1, 1, 0, 0] * 5)
    assert fitted.explain(frame.iloc[:1]).leaders[0].word == "good"
    with pytest.raises(InputError, match="names"):
        fitted.words(names=["only one"])


def test_the_same_seed_gives_the_same_model() -> None:
    model = LeaderClassifier(random_state=0, epochs=8).fit(TEXTS, LABELS)
    again = LeaderClassifier(random_state=0, epochs=8).fit(TEXTS, LABELS)
    other = LeaderClassifier(random_state=np.random.default_rng(0), epochs=8).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(again.decision_function(FRESH), model.decision_function(FRESH))
    assert not np.array_equal(other.decision_function(FRESH), model.decision_function(FRESH))
    repeated = LeaderClassifier(random_state=other.seed_, epochs=8).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(repeated.decision_function(FRESH), other.decision_function(FRESH))


def test_works_in_cross_validation() -> None:
    assert cross_val_score(LeaderClassifier(random_state=0, epochs=30), TEXTS, LABELS, cv=2).mean() > 0.9


def test_weights_move_the_balance() -> None:
    texts, labels = ["same words", "same words"] * 10, [0, 1] * 10
    table = CountVectorizer().fit_transform(texts)
    heavy = np.where(np.array(labels) == 1, 9.0, 1.0)
    settings = {"random_state": 0, "epochs": 150, "learning_rate": 0.1}
    weighted = LeaderClassifier(**settings).fit(table, labels, sample_weight=heavy)
    by_class = LeaderClassifier(**settings, class_weight={0: 1, 1: 9}).fit(table, labels)
    balanced = LeaderClassifier(**settings, class_weight="balanced").fit(table, labels)
    for fitted in (weighted, by_class):
        assert fitted.predict_proba(table)[0, 1] == pytest.approx(0.9, abs=0.03)
    assert balanced.predict_proba(table)[0, 1] == pytest.approx(0.5, abs=0.03)


def test_logits_and_probabilities_agree_on_counts() -> None:
    rng = np.random.default_rng(0)
    table = rng.poisson(1.0, size=(60, 6))
    labels = (table[:, 0] > table[:, 1]).astype(int)
    fitted = LeaderClassifier(random_state=0, epochs=30).fit(table, labels)
    probability, logit = fitted.predict_proba(table)[:, 1], fitted.decision_function(table)
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-logit)), rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(table), (logit > 0).astype(int))


def test_calibration_on_validation_rows() -> None:
    texts, labels = opinions(1400)
    flipped = np.where(np.random.default_rng(0).random(1400) < 0.2, 1 - labels, labels)
    fitted = LeaderClassifier(random_state=0, validation_fraction=0.2, epochs=6).fit(texts, flipped)
    fresh, truth = opinions(600, seed=5)
    truth = np.where(np.random.default_rng(1).random(600) < 0.2, 1 - truth, truth)
    sure = fitted.predict_proba(fresh).max(axis=1)
    assert fitted.temperature_ > 0
    assert abs(sure.mean() - (fitted.predict(fresh) == truth).mean()) < 0.06
    assert {"held_out_loss", "held_out_accuracy", "held_out_leaders"} <= set(fitted.history_[-1])


def test_max_words_selects_by_chi2() -> None:
    fitted = LeaderClassifier(random_state=0, max_words=16, ngrams=1).fit(TEXTS, LABELS)
    from made_up_texts import BAD, GOOD

    assert set(fitted.words()) == {*GOOD, *BAD}
    assert fitted.score(FRESH, TRUTH) > 0.97


def test_lemmas_reach_the_model() -> None:
    texts = ["a dull plot", "dull plots", "a lovely scene", "lovely scenes"] * 6
    fitted = LeaderClassifier(random_state=0, lemmas="en", ngrams=1).fit(texts, [0, 0, 1, 1] * 6)
    assert set(fitted.words()) == {"a", "dull", "plot", "lovely", "scene"}
    assert fitted.predict(["scenes", "plots"]).tolist() == [1, 0]


def test_resting_mass_is_a_share_of_the_mean_mass() -> None:
    few, many = ((opinions(count)) for count in (300, 2400))
    for texts, labels in (few, many):
        fitted = LeaderClassifier(random_state=0, epochs=1, validation_fraction=0).fit(texts, labels)
        weights = fitted._table(texts)
        started = LeaderClassifier(random_state=0, epochs=1, learning_rate=1e-12, validation_fraction=0)
        mass = started.fit(texts, labels).network_.mean_mass(weights, np.ones(len(labels)))
        assert fitted.network_.resting_mass == pytest.approx(
            fitted.recipe_.resting_share * mass, rel=1e-2
        )  # the cone takes the noise of a few words


def test_alpha_stays_positive_and_the_collapse_is_reached() -> None:
    learned = LeaderClassifier(random_state=0, learn_alpha=True, learning_rate=0.5, epochs=10).fit(TEXTS, LABELS)
    assert learned.alpha_ > 0
    assert learned.alpha_ != 1.0
    assert learned.collapse_ >= 0.99
    with pytest.raises(InputError, match="alpha"):
        LeaderClassifier(alpha=0.1).fit(TEXTS, LABELS)


def test_the_published_recipe_trains_as_softmax() -> None:
    long = [" ".join([text] * 12) for text in TEXTS]  # short texts drown in the published model's padding
    fitted = LeaderClassifier(recipe="paper", epochs=40, learning_rate=0.02, random_state=0).fit(long, LABELS)
    assert fitted.recipe_.temperature == 1e-3
    # One vote a word loses how strong it is: three seeds reach 0.71 to 0.78 on the short texts.
    assert fitted.score(long, LABELS) > 0.7
    assert fitted.words()[-1] == "‹padding›"
    assert fitted.explain(long[0]).logits[0] == pytest.approx(fitted.decision_function(long[:1])[0], abs=1e-12)


def test_an_interrupted_training_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "training.safetensors"
    settings: dict[str, Any] = {"random_state": 0, "epochs": 5, "validation_fraction": 0, "checkpoint": path}
    whole = LeaderClassifier(random_state=0, epochs=5, validation_fraction=0).fit(TEXTS, LABELS)
    calls = interrupt_at(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        LeaderClassifier(**settings).fit(TEXTS, LABELS)
    resumed = LeaderClassifier(**settings).fit(TEXTS, LABELS)
    assert len(calls) == 3 + 3
    np.testing.assert_array_equal(resumed.decision_function(FRESH), whole.decision_function(FRESH))
    assert resumed.history_ == whole.history_
    with pytest.raises(FileError, match="other documents, labels or settings"):
        LeaderClassifier(**settings).fit(FRESH, TRUTH)


def test_a_saved_model_predicts_the_same(model: LeaderClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = LeaderClassifier.load(path)
    np.testing.assert_array_equal(again.decision_function(FRESH), model.decision_function(FRESH))
    assert again.predict(FRESH).dtype == model.predict(FRESH).dtype
    assert again.words() == model.words()
    texts, names = topics(60)
    on_table = LeaderClassifier(random_state=0, epochs=5, max_words=9).fit(
        CountVectorizer().fit_transform(texts), names
    )
    on_table.save(path)
    table = CountVectorizer().fit_transform(texts)
    np.testing.assert_array_equal(LeaderClassifier.load(path).predict(table), on_table.predict(table))


def _changed(path: Path, header: dict[str, Any] | None = None, **tensors: np.ndarray) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        recipe = json.loads(file.metadata()["hardmax"])
    save_file({**load_file(path), **tensors}, path, metadata={"hardmax": json.dumps(recipe | (header or {}))})


@pytest.mark.parametrize(
    ("header", "tensors", "message"),
    [
        ({"format": 99}, {}, "format 99"),
        ({"kind": "something else"}, {}, "something else"),
        ({}, {"decoder": np.zeros((1, 7), dtype=np.float32)}, "'decoder' has shape"),
        ({}, {"embedding": np.zeros((3, 2), dtype=np.float32)}, "vocabulary"),
        ({}, {"bias": np.array([np.nan], dtype=np.float32)}, "not finite"),
        ({}, {"grams2.last": np.zeros(2, dtype=np.int32)}, "'grams2.last' has shape"),
        ({"classes": [0]}, {}, "classes"),
        ({"prior": [1.0]}, {}, "priors"),
        ({"recipe": {"unheard": 1}}, {}, "recipe cannot be used"),
        ({"tokeniser": {"pattern": "["}}, {}, "tokeniser"),
    ],
)
def test_damaged_models_are_refused(
    model: LeaderClassifier, tmp_path: Path, header: dict[str, Any], tensors: dict[str, Any], message: str
) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    _changed(path, header, **tensors)
    with pytest.raises(FileError, match=message):
        LeaderClassifier.load(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        LeaderClassifier.load(tmp_path / "missing.safetensors")
    for name, data in (("text", b"hello"), ("empty", b""), ("pickle", b"\x80\x04.")):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(FileError, match="was not written by hardmax"):
            LeaderClassifier.load(path)
    save_file({"a": np.zeros(2)}, tmp_path / "foreign.safetensors")
    with pytest.raises(FileError, match="was not written by hardmax"):
        LeaderClassifier.load(tmp_path / "foreign.safetensors")


def test_texts_without_a_known_word_get_the_prior() -> None:
    texts, labels = [*TEXTS[:60], *(["wonderful lovely"] * 30)], [*LABELS[:60], *([1] * 30)]
    prior = [1 - np.mean(labels), np.mean(labels)]
    fitted = LeaderClassifier(random_state=0, epochs=5).fit(texts, labels)
    with pytest.warns(NoKnownWordWarning, match="2 of 3 texts") as told_of:
        answer = fitted.predict_proba(["", "дом", "wonderful"])
    assert told_of[0].filename == __file__
    np.testing.assert_allclose(answer[0], prior)
    np.testing.assert_allclose(answer[1], prior)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = fitted.explain("дом")
    assert not told.known
    assert "no known word" in str(told)
    np.testing.assert_allclose(told.probabilities, prior)


def test_empty_texts_among_others_are_harmless() -> None:
    fitted = LeaderClassifier(random_state=0, epochs=5).fit(["", *TEXTS, "   "], [1, *LABELS, 0])
    assert fitted.score(FRESH, TRUTH) > 0.9


def test_a_ten_megabyte_text(model: LeaderClassifier) -> None:
    long = "wonderful film and " * 550_000
    assert len(long) > 10_000_000
    assert model.predict([long])[0] == 1


def test_a_text_of_very_many_words() -> None:
    rng = np.random.default_rng(0)
    words = ["w" + "".join(rng.choice(list("abcdefgh"), 6)) for _ in range(8000)]
    texts = [" ".join(words[:4000]) + " good", " ".join(words[4000:]) + " bad"] * 2
    fitted = LeaderClassifier(random_state=0, epochs=3).fit(texts, [1, 0] * 2)
    assert fitted.predict([" ".join(words) + " good"]).shape == (1,)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("one text", [1], "sequence of texts"),
        ([], [], "no documents"),
        (["a", None], [0, 1], r"X\[1\]"),
        (["a", b"b"], [0, 1], "decode"),
        (["a", float("nan")], [0, 1], r"X\[1\]"),
        (["a b", "c d"], [1], "must match the 2 texts"),
        (["a b", "c d"], [1, 1], "two classes"),
        (["a b", "c d"], None, "label for each text"),
        (["", " \t"], [0, 1], "must hold a word"),
        (pd.DataFrame({"text": ["a", "b"]}), [0, 1], r"pass the column: table\['text'\]"),
        (pd.DataFrame({"stars": [1, 2], "text": ["a", "b"]}), [0, 1], r"pass the column: table\['text'\]"),
        (np.array([["a"], ["b"]]), [0, 1], r"shape \(2, 1\)"),
        (iter(["a", "b"]), [0, 1], r"pass list\(…\)"),
        ({"a", "b"}, [0, 1], r"pass list\(…\)"),
        (["a", "b", "c"], ["x", "y", None], r"y\[2\]"),
        (["a", "b", "c"], pd.Series(["x", np.nan, "y"]), r"y\[1\]"),
        (["a", "b", "c"], [0.0, 1.0, np.nan], r"y\[2\]"),
        (["a", "b", "c"], [0.5, 1.25, 2.75], "must be classes, not continuous"),
    ],
)
def test_invalid_texts_are_refused(texts: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LeaderClassifier().fit(texts, labels)


@pytest.mark.parametrize(
    "setting",
    [
        {"dim": 0},
        {"depth": 2.5},
        {"alpha": -1.0},
        {"collapse": 1.0},
        {"masses": "heavy"},
        {"epochs": 0},
        {"dropout": 1.0},
        {"learning_rate": float("nan")},
        {"ngrams": 0},
        {"recipe": "secret"},
        {"validation_fraction": 2.0},
        {"temperature": -1.0},
    ],
)
def test_invalid_settings_are_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        LeaderClassifier(**setting).fit(TEXTS, LABELS)


def test_texts_and_tables_are_not_mixed(model: LeaderClassifier) -> None:
    with pytest.raises(InputError, match="must be texts"):
        model.predict(sparse.csr_matrix(np.ones((1, 3))))
    on_table = LeaderClassifier(random_state=0, epochs=2).fit(np.eye(2), [0, 1])
    with pytest.raises(InputError, match="table of counts"):
        on_table.predict(["a text"])


def test_public_name_and_citation(model: LeaderClassifier) -> None:
    assert hm.LeaderClassifier is LeaderClassifier
    assert "2407.01602" in hm.citation(model)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"recipe": "accurate"},
        {"recipe": "paper", "epochs": 2},
        {"dim": 3, "ngrams": 1, "lowercase": False, "stop_words": ["the"], "token_pattern": "[A-Za-z]+"},
    ],
)
def test_a_model_from_a_file_is_fitted_again_as_before(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_LEAST_STEPS", 40)  # enough to tell models apart
    fitted = LeaderClassifier(**settings, random_state=0).fit(TEXTS[:40], LABELS[:40])
    fitted.save(tmp_path / "model.safetensors")
    again = clone(LeaderClassifier.load(tmp_path / "model.safetensors")).set_params(random_state=0)
    if "epochs" not in settings and "dim" not in settings:
        assert again.recipe == settings.get("recipe", "default")
    again.fit(TEXTS[:40], LABELS[:40])
    np.testing.assert_array_equal(again.decision_function(FRESH), fitted.decision_function(FRESH))


@pytest.mark.parametrize(
    ("validation", "message"),
    [(TEXTS[:5], r"pass validation=\(texts, labels\)"), ((["zzz", "qqq"], [0, 1]), "must hold a known word")],
)
def test_invalid_validation_is_refused(validation: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LeaderClassifier(random_state=0).fit(TEXTS, LABELS, validation=validation)
