"""Deleting the leaders changes the logit more than deleting random words."""

from __future__ import annotations

import numpy as np

from hardmax.text import LeaderClassifier
from hardmax.text.evaluation import faithfulness
from made_up_texts import BAD, GOOD, PLAIN

_RNG = np.random.default_rng(0)
LABELS = np.arange(300) % 2
TEXTS = [" ".join([*_RNG.choice(PLAIN, 12), _RNG.choice(GOOD if label else BAD)]) for label in LABELS]
"""Texts with one decisive word, so that the right explanation is known."""


def test_leaders_matter_more_than_random_words() -> None:
    model = LeaderClassifier(random_state=0, ngrams=1).fit(TEXTS, LABELS)
    found = faithfulness(model, TEXTS)
    assert found.ratio > 1.5  # as many random words hit the telling one nearly half the time
    assert found.documents == 300
    assert found.deleted == model.count_leaders(TEXTS).mean()


def test_the_change_is_that_of_texts_without_the_words() -> None:
    model = LeaderClassifier(random_state=0, ngrams=1).fit(TEXTS, LABELS)
    text = TEXTS[0]
    leaders = {leader.word for leader in model.explain(text).leaders}
    shorter = " ".join(word for word in text.split() if word not in leaders)
    moved = abs(model.decision_function([shorter])[0] - model.decision_function([text])[0])
    assert np.isclose(faithfulness(model, [text]).named, moved, atol=1e-12)


def test_other_explanations_can_be_evaluated() -> None:
    model = LeaderClassifier(random_state=0, ngrams=1).fit(TEXTS, LABELS)
    first = faithfulness(model, TEXTS, reasons=lambda k: np.array([0]))
    assert first.deleted == 1
    assert first.ratio < faithfulness(model, TEXTS).ratio
