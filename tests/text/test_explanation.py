"""Explanations: contributions add up, paths agree with the simulator, HTML is escaped."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hardmax as hm
from hardmax.errors import InputError
from hardmax.text import LeaderClassifier
from made_up_texts import BAD, GOOD, opinions, topics

TEXTS, LABELS = opinions(300)


@pytest.fixture(scope="module")
def model() -> LeaderClassifier:
    return LeaderClassifier(random_state=0).fit(TEXTS, LABELS)


def _adds_up(model: LeaderClassifier, texts: list[str]) -> None:
    logits = np.atleast_2d(model.decision_function(texts).T).T
    for text, logit in zip(texts, logits, strict=True):
        told = model.explain(text)
        by_leaders = told.bias + sum(leader.contribution for leader in told.leaders)
        by_parts = told.bias + sum(leader.own + leader.offset for leader in told.leaders)
        by_words = told.bias + told.contributions.sum(axis=0)
        for total in (by_leaders, by_parts, by_words, told.logits):
            np.testing.assert_allclose(total, logit, rtol=0, atol=1e-10)


def test_contributions_add_up_to_the_logit(model: LeaderClassifier) -> None:
    _adds_up(model, TEXTS)


@pytest.mark.parametrize("dim", [1, 3])
def test_contributions_add_up_for_several_classes(dim: int) -> None:
    texts, names = topics(150)
    fitted = LeaderClassifier(dim=dim, random_state=0, epochs=20).fit(texts, names)
    _adds_up(fitted, texts)
    told = fitted.explain(texts[0])
    assert told.prediction == fitted.predict(texts[:1])[0]
    np.testing.assert_allclose(told.probabilities, fitted.predict_proba(texts[:1])[0], atol=1e-12)


def test_contributions_add_up_for_undecided_words() -> None:
    shallow = LeaderClassifier(random_state=0, depth=1, alpha=0.3, collapse=0.0, epochs=5, dim=3).fit(TEXTS, LABELS)
    _adds_up(shallow, TEXTS[:80])


def test_the_path_is_that_of_the_simulator(model: LeaderClassifier) -> None:
    told = model.explain(TEXTS[0])
    run = hm.simulate(told.path[0], hm.HardmaxLayer(alpha=model.alpha_), depth=model.network_.depth)
    np.testing.assert_allclose(told.path, run.tokens, atol=1e-10)
    limit = hm.equilibrium(told.path[0], hm.HardmaxLayer(alpha=model.alpha_))
    assert {leader.word for leader in told.leaders} == {told.words[k] for k in np.asarray(limit.leaders)}
    np.testing.assert_array_equal(told.follows, limit.follows)
    assert sum(len(leader.followers) + 1 for leader in told.leaders) == len(told.words)


def test_leaders_are_the_words_that_matter(model: LeaderClassifier) -> None:
    for strong, label in ((GOOD, 1), (BAD, 0)):
        told = model.explain(" and ".join(["film", *strong[:4]]))
        assert told.prediction == label
        assert (told.leaders[0].contribution[0] > 0) == bool(label)
        assert set(told.leaders[0].word.split()) & set(strong)


def test_data_is_plain(model: LeaderClassifier) -> None:
    told = json.loads(json.dumps(model.explain(TEXTS[0]).data()))
    total = told["bias"][0] + sum(leader["contribution"][0] for leader in told["leaders"])
    assert total == pytest.approx(told["logits"][0], abs=1e-10)
    assert told["prediction"] in (0, 1)


def test_html_is_escaped_and_marks_the_words(model: LeaderClassifier) -> None:
    page = model.explain('<script>alert("x")</script> a Wonderful film & a <b>dull</b> plot').to_html()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "&amp;" in page
    assert 'title="' in page
    assert ">Wonderful</span>" in page
    for leader in model.explain("a Wonderful film").leaders:
        assert leader.word in page or leader.word == "wonderful film"


def test_names_of_classes_are_escaped() -> None:
    fitted = LeaderClassifier(random_state=0, epochs=3).fit(["good", "bad"] * 5, ["<i>good</i>", "<i>bad</i>"] * 5)
    assert "<i>" not in fitted.explain("good").to_html()


def test_word_weights_add_up_to_the_logit(model: LeaderClassifier) -> None:
    told = model.explain(TEXTS[3])
    assert sum(weight for _, _, weight, _ in told.word_weights()) == pytest.approx(
        told.logits[0] - told.bias[0], abs=1e-10
    )


def test_terminal_rendering(model: LeaderClassifier) -> None:
    told = model.explain(TEXTS[0])
    lines = str(told).splitlines()
    assert len(lines) == len(told.leaders) + 4
    assert lines[-1].split() == ["logit", f"{told.logits[0]:+.4f}"]


def test_one_document_at_a_time(model: LeaderClassifier) -> None:
    with pytest.raises(InputError, match="one document"):
        model.explain(np.array(TEXTS[:2]))


def test_colours_and_numbers_are_explained(model: LeaderClassifier) -> None:
    """With two classes all numbers are about the second, whichever was chosen."""
    for text in (" ".join(GOOD[:3]), " ".join(BAD[:3])):
        told = model.explain(text)
        assert "positive numbers speak for 1, orange" in told.to_html()
        assert str(told).splitlines()[1].split() == ["leader", "gives", "share", "heaviest", "followers"]
