"""The pretrained model on short sentences."""

import pytest

from hardmax import LeaderClassifier
from hardmax.text.pretrained import shipped_model
from visitor_sentences import NEGATIVE, POSITIVE, WORDS


@pytest.fixture(scope="module")
def model() -> LeaderClassifier:
    return shipped_model()


def test_most_sentences_are_classified_correctly(model: LeaderClassifier) -> None:
    sentences, truth = [*POSITIVE, *NEGATIVE], ["positive"] * len(POSITIVE) + ["negative"] * len(NEGATIVE)
    wrong = [s for s, told, true in zip(sentences, model.predict(sentences), truth, strict=True) if told != true]
    assert len(wrong) <= 0.15 * len(sentences), wrong


def test_common_words_are_known_and_have_the_right_sign(model: LeaderClassifier) -> None:
    assert set(WORDS) <= set(model.words())
    assert dict(zip(WORDS, model.predict(list(WORDS)), strict=True)) == WORDS


@pytest.mark.parametrize("text", ["A dull plot, saved by a wonderful cast.", "A dull plot, a wonderful cast"])
def test_the_example_of_the_documentation_is_not_called_negative(model: LeaderClassifier, text: str) -> None:
    assert model.predict([text])[0] == "positive"
    # Two opposite halves: a model that is sure of either has not read the other.
    assert model.predict_proba([text]).max() < 0.8


def test_weak_words_have_about_even_odds(model: LeaderClassifier) -> None:
    assert model.predict_proba(["the", "a film", "it was on tuesday"]).max() < 0.7
