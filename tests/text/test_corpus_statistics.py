"""Statistics over many documents, against explanations of single ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hardmax.errors import InputError
from hardmax.text import LeaderClassifier
from hardmax.text.evaluation import calibration_error, quality
from hardmax.text.explaining.corpus_statistics import survey
from made_up_texts import opinions, topics


@pytest.mark.parametrize("source", [opinions, topics])
def test_a_survey_agrees_with_explanations(source) -> None:
    texts, labels = source(120)
    model = LeaderClassifier(random_state=0, epochs=20).fit(texts, labels)
    seen = survey(model, texts)
    told = [model.explain(text) for text in texts]
    np.testing.assert_array_equal(seen.leaders, [len(one.leaders) for one in told])
    np.testing.assert_array_equal(model.classes_[seen.predicted], model.predict(texts))
    np.testing.assert_allclose(seen.confidence, model.predict_proba(texts).max(axis=1), atol=1e-12)
    assert dict(seen.most_frequent_leaders(10**6)) == Counter(leader.word for one in told for leader in one.leaders)
    totals: Counter[str] = Counter()
    for one in told:
        for word, worth in zip(one.words, one.contributions[:, 0], strict=True):
            totals[word] += worth
    for word, worth in seen.most_influential(30):
        assert worth == pytest.approx(totals[word], abs=1e-9)
    rows = seen.statistics()
    assert rows[0]["documents"] == 120 == sum(row["documents"] for row in rows[1:])
    assert rows[0]["mean"] == pytest.approx(seen.leaders.mean())
    early = sum(leader.emerged_at == 0 for one in told for leader in one.leaders)
    assert rows[0]["from layer 0"] == pytest.approx(early / seen.leaders.sum())


def test_quality_agrees_with_the_predictions() -> None:
    texts, labels = opinions(200)
    model = LeaderClassifier(random_state=0, epochs=10).fit(texts, labels)
    found = quality(model, texts, labels)
    assert found.accuracy == pytest.approx(model.score(texts, labels))
    assert found.documents == 200
    assert f"accuracy {found.accuracy:.4f}" in str(found)
    with pytest.raises(InputError, match="classes that the model knows"):
        quality(model, texts, np.full(200, 7))
    with pytest.raises(InputError, match="must match"):
        quality(model, texts, labels[:3])


def test_calibration_error_of_a_calibrated_and_of_an_overconfident_model() -> None:
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 200_000)
    assert calibration_error(sure, rng.random(200_000) < sure) < 0.01
    assert calibration_error(np.ones(1000), np.arange(1000) % 2 == 0) == pytest.approx(0.5)
