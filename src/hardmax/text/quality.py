"""How good a classifier is: accuracy, log loss, and whether its probabilities can be believed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .classifier import LeaderClassifier


@dataclass(frozen=True)
class Quality:
    """Figures on documents with known labels."""

    documents: int
    accuracy: float
    log_loss: float
    calibration_error: float
    """The mean gap between how sure the model is and how often it is right (expected calibration error)."""
    leaders: float
    """Leaders per document."""
    collapse: float

    def data(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.documents:,} documents: accuracy {self.accuracy:.4f}, log loss {self.log_loss:.4f}, "
            f"calibration error {self.calibration_error:.4f}, {self.leaders:.2f} leaders a document, "
            f"collapse {self.collapse:.4f}"
        )


def calibration_error(sure: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """The expected calibration error over bins of equal width.

    >>> round(calibration_error(np.array([0.9, 0.9, 0.6]), np.array([True, False, True])), 3)
    0.4
    """
    which = np.minimum((sure * bins).astype(int), bins - 1)
    total = np.bincount(which, minlength=bins)
    gap = np.bincount(which, weights=right, minlength=bins) - np.bincount(which, weights=sure, minlength=bins)
    return float(np.abs(gap)[total > 0].sum() / len(sure))


def quality(model: LeaderClassifier, documents: Any, labels: Any) -> Quality:
    """Judge ``model`` on documents with known labels."""
    labels = np.asarray(labels)
    chances = model.predict_proba(documents)
    if len(labels) != len(chances):
        raise InputError(
            "labels", f"{len(labels)} labels", f"must match the {len(chances)} documents", "pass one for each"
        )
    strange = sorted(set(labels.tolist()) - set(model.classes_.tolist()), key=str)
    if strange:
        raise InputError(
            "labels",
            repr(strange[:5]),
            "must be classes that the model knows",
            f"it knows {', '.join(map(repr, model.classes_.tolist()))}",
        )
    numbers = np.searchsorted(model.classes_, labels)
    right = chances.argmax(axis=1) == numbers
    truth = np.maximum(chances[np.arange(len(labels)), numbers], np.finfo(float).tiny)
    return Quality(
        documents=len(labels),
        accuracy=float(right.mean()),
        log_loss=float(-np.log(truth).mean()),
        calibration_error=calibration_error(chances.max(axis=1), right),
        leaders=float(model.count_leaders(documents).mean()),
        collapse=model.collapse_,
    )
