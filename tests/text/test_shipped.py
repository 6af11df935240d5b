"""The shipped model on what a visitor types."""

import pytest

from hardmax import LeaderClassifier
from hardmax.text.pretrained import shipped_model
from visitor_sentences import NEGATIVE, POSITIVE, WORDS


@pytest.fixture(scope="module")
def model() -> LeaderClassifier:
    return shipped_model()


def test_most_sentences_of_a_visitor_come_right(model: LeaderClassifier) -> None:
    sentences, truth = [*POSITIVE, *NEGATIVE], ["positive"] * len(POSITIVE) + ["negative"] * len(NEGATIVE)
    wrong = [s for s, told, true in zip(sentences, model.predict(sentences), truth, strict=True) if told != true]
    assert len(wrong) <= 0.15 * len(sentences), wrong


def test_plain_words_are_known_and_lean_to_the_right_side(model: LeaderClassifier) -> None:
    assert set(WORDS) <= set(model.words())
    assert dict(zip(WORDS, model.predict(list(WORDS)), strict=True)) == WORDS


@pytest.mark.parametrize("text", ["A dull plot, saved by a wonderful cast.", "A dull plot, a wonderful cast"])
def test_the_example_of_the_documentation_is_not_called_negative(model: LeaderClassifier, text: str) -> None:
    assert model.predict([text])[0] == "positive"
    # Two opposite halves: a model that is sure of either has not read the other.
    assert model.predict_proba([text]).max() < 0.8


def test_faint_words_alone_leave_it_open(model: LeaderClassifier) -> None:
    assert model.predict_proba(["the", "a film", "it was on tuesday"]).max() < 0.7
