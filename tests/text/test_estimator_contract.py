"""What scikit-learn asks of every classifier, on document-term matrices."""

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
    # Which word leads is a discrete choice, so the last digit of a sum can decide it; with repeated rows the same
    # sums are taken in another order.
    "check_sample_weight_equivalence_on_dense_data": "equal up to rounding before training only",
    "check_sample_weight_equivalence_on_sparse_data": "equal up to rounding before training only",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([LeaderClassifier(random_state=0, epochs=60)], expected_failed_checks=lambda _: _EXPECTED)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)
