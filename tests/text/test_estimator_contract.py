"""Checks of scikit-learn for every classifier, on document-term matrices."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hardmax.text import LeaderClassifier

_EXPECTED = {
    # These two pass negative numbers to every estimator, also to those that say they take none; below they are
    # made on counts.
    "check_class_weight_classifiers": "passes negative counts",
    "check_decision_proba_consistency": "passes negative counts",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([LeaderClassifier(random_state=0, epochs=20)], expected_failed_checks=lambda _: _EXPECTED)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)
