"""The accurate recipe: separate coordinates and leaders for words, pairs, triples and endings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from hardmax.text import LeaderClassifier
from hardmax.text.recipes import RECIPES, Recipe
from hardmax.text.words.document_endings import AT_THE_END
from made_up_texts import opinions, topics

TEXTS, LABELS = opinions(300)
FRESH, TRUTH = opinions(200, seed=1)


@pytest.fixture(scope="module")
def model() -> LeaderClassifier:
    return LeaderClassifier(recipe="accurate", random_state=0).fit(TEXTS, LABELS)


def test_each_kind_has_an_axis_and_at_most_two_leaders(model: LeaderClassifier) -> None:
    points, groups = model.network_.embedding.numpy(), model.vocabulary_.groups()
    assert points.shape[1] == 4
    assert set(groups) == {1, 2, 3, 4}
    np.testing.assert_array_equal(points != 0, np.arange(4) == groups[:, None] - 1)
    assert [name.endswith(AT_THE_END) for name in model.words()] == (groups == 4).tolist()
    assert model.score(FRESH, TRUTH) > 0.97
    assert model.count_leaders(FRESH).max() <= 8
    assert model.collapse_ >= 0.99


def test_no_gram_follows_one_of_another_kind_or_side(model: LeaderClassifier) -> None:
    value = dict(zip(model.words(), model.network_.embedding.numpy().sum(axis=1), strict=True))
    for text in FRESH[:20]:
        told = model.explain(text)
        for word, place in zip(told.words, told.follows, strict=True):
            head = told.words[place]
            assert word.endswith(AT_THE_END) == head.endswith(AT_THE_END)
            assert word.endswith(AT_THE_END) or word.count(" ") == head.count(" ")
            assert value[word] * value[head] > 0
            assert abs(value[word]) <= abs(value[head])


def test_contributions_add_up(model: LeaderClassifier) -> None:
    logits = model.decision_function(FRESH[:40])
    for text, logit in zip(FRESH[:40], logits, strict=True):
        told = model.explain(text)
        total = told.bias[0] + sum(leader.contribution[0] for leader in told.leaders)
        assert total == pytest.approx(logit, abs=1e-10)


def test_punctuation_counts(model: LeaderClassifier) -> None:
    assert model.tokeniser_("Dull. Very dull, 2/10") == ["dull", ".", "very", "dull", ",", "2/10"]


def test_a_saved_model_predicts_the_same(model: LeaderClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = LeaderClassifier.load(path)
    np.testing.assert_array_equal(again.decision_function(FRESH), model.decision_function(FRESH))
    assert again.recipe_ == RECIPES["accurate"]
    assert again.words() == model.words()
    assert str(again.explain(FRESH[0])) == str(model.explain(FRESH[0]))


def test_several_classes_have_coordinates_for_each_length() -> None:
    texts, names = topics(120)
    recipe = Recipe(by_length=True, ngrams=2, epochs=60)
    fitted = LeaderClassifier(recipe=recipe, batch_size=32, random_state=1).fit(texts, names)
    points, lengths = fitted.network_.embedding.numpy(), fitted.vocabulary_.groups()
    assert points.shape[1] == 2 * 3
    assert (points[lengths == 1, 3:] == 0).all()
    assert (points[lengths == 2, :3] == 0).all()
    fresh, truth = topics(90, seed=2)
    assert fitted.score(fresh, truth) > 0.9


def test_columns_of_a_table_have_one_length() -> None:
    counter = CountVectorizer()
    table = counter.fit_transform(TEXTS)
    fitted = LeaderClassifier(recipe="accurate", random_state=0).fit(table, LABELS)
    assert fitted.network_.embedding.shape == (len(counter.get_feature_names_out()), 1)
    assert fitted.score(counter.transform(FRESH), TRUTH) > 0.95


def test_a_vocabulary_of_single_words() -> None:
    fitted = LeaderClassifier(recipe="accurate", random_state=0).fit(["good", "bad", "good", "bad"], [1, 0, 1, 0])
    assert fitted.predict(["good", "bad"]).tolist() == [1, 0]
