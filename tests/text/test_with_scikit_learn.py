"""The classifier inside scikit-learn's tools: pipelines, several labels per text, and ratings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from hardmax.errors import InputError
from hardmax.text import LeaderClassifier, explain_pipeline, shipped_model
from made_up_texts import opinions, topics
from plain_sentences import PLAIN_SENTENCES


def test_explanations_of_a_pipeline_name_the_words_of_its_vectoriser() -> None:
    texts, labels = opinions(150)
    pipeline = make_pipeline(CountVectorizer(ngram_range=(1, 2)), LeaderClassifier(random_state=0)).fit(texts, labels)
    why = explain_pipeline(pipeline, "a superb film and a dull plot")
    assert {leader.word for leader in why.leaders} <= set(pipeline[0].get_feature_names_out())
    np.testing.assert_allclose(why.logits[0], pipeline.decision_function(["a superb film and a dull plot"])[0])
    alone = make_pipeline(LeaderClassifier(random_state=0)).fit(texts, labels)
    assert explain_pipeline(alone, "a superb film").text == "a superb film"
    with pytest.raises(InputError, match="must be a pipeline that ends in LeaderClassifier"):
        explain_pipeline(make_pipeline(CountVectorizer(), LogisticRegression()), "a film")
    with pytest.raises(InputError, match="pipeline"):
        explain_pipeline(LeaderClassifier(), "a film")


def test_several_labels_per_text() -> None:
    moods, mood = opinions(150)
    places, place = topics(150)
    texts = [f"{a} {b}" for a, b in zip(moods, places, strict=True)]
    labels = np.column_stack([mood, place == "sea"]).astype(int)
    both = MultiOutputClassifier(LeaderClassifier(random_state=0)).fit(texts[:110], labels[:110])
    assert (both.predict(texts[110:]) == labels[110:]).mean() > 0.85
    one = OneVsRestClassifier(LeaderClassifier(random_state=0)).fit(texts[:110], labels[:110])
    assert (one.predict(texts[110:]) == labels[110:]).mean() > 0.85


def test_ratings_are_refused_with_a_remedy() -> None:
    with pytest.raises(InputError, match=r"there is no regression on ratings"):
        LeaderClassifier().fit(["good film", "bad film", "fair film"], [4.5, 1.25, 3.0])


def test_the_shipped_model_knows_plain_sentences() -> None:
    model = shipped_model()
    found = model.predict([text for text, _ in PLAIN_SENTENCES])
    wrong = [text for (text, label), answer in zip(PLAIN_SENTENCES, found, strict=True) if answer != label]
    assert wrong == ["My whole family found it annoying."]


@pytest.mark.parametrize(
    "labels", [np.array([[1, 0], [0, 1]] * 3), [[1, 0], [0, 1]] * 3, [["a"], ["a", "b"]] * 3, [{"a"}, set()] * 3]
)
def test_several_labels_per_text_say_what_to_do(labels: object) -> None:
    with pytest.raises(InputError, match=r"must hold one label per text.*MultiOutputClassifier"):
        LeaderClassifier().fit(["good", "bad"] * 3, labels)
