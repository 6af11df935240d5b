"""Choice of the start and calibration of few documents, by folds of the training rows.

Every row is predicted by a network that was trained without it. These predictions determine the temperature of the
probabilities and are compared with those of the linear models, the best of which is the start of the final network. No
row is lost: the final network is trained on all of them.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
import torch

from ..model.network import Network
from ..model.prediction import cpu_logits, predict_logits
from ..words.counts import LabelledDocuments
from .linear_models import KINDS, LinearKind, LinearModel
from .loop import calibration_temperature
from .optimiser_step import predicted

FOLDS = 3
"""Two thirds of the rows train each fold: more folds would be closer to the final network, and slower."""
_FEWEST = 100
"""With fewer rows the standard error of an accuracy is above 5 %, and nothing can be chosen by it."""
_BEHIND = 0.01
"""Difference in accuracy from which on the simpler model is recommended."""


@dataclass(frozen=True)
class Start:
    """A linear model, and how the lengths of words depend on its weights."""

    kind: LinearKind
    power: float
    """Power of the length of a word's weights that is the length of its initial position."""


# With the square root words differ less in length, and more of them lead: better for short texts and many classes. The
# first power ignores words of little weight: better if most words are noise.
STARTS = (
    Start(KINDS[0], 0.5),
    Start(KINDS[1], 0.5),
    Start(KINDS[2], 0.5),
    Start(KINDS[0], 1.0),
    Start(KINDS[3], 1.0),
)
"""Starts among which folds of the training rows choose; the first without folds."""


class Networks(Protocol):
    """Interface: networks that start from linear models, and their training."""

    def start(self, rows: LabelledDocuments, model: LinearModel, power: float) -> Network:
        """Network before training, whose logits are scaled like those of the model on these rows."""

    def train(self, network: Network, rows: LabelledDocuments) -> None:
        """Train the network on these rows in place."""


class BaselineWarning(UserWarning):
    """A linear model without explanation is more than a point more accurate on folds of the training rows."""


@dataclass(frozen=True)
class CrossValidation:
    """Accuracy on folds of the training rows, of the classifier and of the best linear baseline."""

    folds: int
    """Number of folds."""
    accuracy: float
    """Weighted accuracy of the classifier on rows that it was not trained on."""
    start: str
    """The linear model from which the classifier starts: that whose network is most accurate before training."""
    baseline: str
    """The most accurate linear model."""
    baseline_accuracy: float
    """Weighted accuracy of the baseline on the same rows."""
    standard_error: float
    """Standard error of the difference of the two."""

    @property
    def behind(self) -> bool:
        """Whether the baseline is more accurate by more than one point."""
        return self.baseline_accuracy - self.accuracy > _BEHIND

    def data(self) -> dict[str, float | int | str]:
        """The fields by name.

        Returns
        -------
        dict
            Can be written as JSON.
        """
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"In {self.folds} folds of the training rows the classifier is right on {self.accuracy:.1%}, "
            f"{self.baseline} on {self.baseline_accuracy:.1%} "
            f"(standard error of the difference {self.standard_error:.1%})"
        )
        return text + ("; the baseline serves these data better if no explanation is needed" if self.behind else "")


@dataclass(frozen=True)
class Choice:
    """Start, temperature and report that the folds determine."""

    start: Start = STARTS[0]
    temperature: float = 1.0
    report: CrossValidation | None = None


def cross_fit(
    rows: LabelledDocuments,
    classes: int,
    networks: Networks,
    *,
    intercept: bool,
    weight: float,
    device: str | None,
    seed: int,
) -> Choice:
    """Start and temperature that are best on folds of the rows; the defaults if there are too few rows."""
    members = np.bincount(rows.labels, minlength=classes)
    if len(rows.labels) < _FEWEST or members[members > 0].min() < 2:
        return Choice()
    fold = fold_of_rows(rows.labels, np.random.default_rng([seed, 2**22]))
    inside = [rows.take(np.flatnonzero(fold != k)) for k in range(FOLDS)]
    outside = [rows.table[np.flatnonzero(fold == k)] for k in range(FOLDS)]

    def right(parts: list[np.ndarray]) -> np.ndarray:
        return _right(_in_order(parts, fold), rows.labels)

    linear = [
        [LinearModel.fit(part, classes, kind, intercept=intercept, weight=weight) for part in inside] for kind in KINDS
    ]
    baselines = [
        right([model.logits(table) for model, table in zip(models, outside, strict=True)]) for models in linear
    ]
    best = max(range(len(KINDS)), key=lambda k: float(np.average(baselines[k], weights=rows.weights)))
    # All but one fold choose the start, which costs less and leaves one to which the choice has not been adapted.
    some = np.flatnonzero(fold < FOLDS - 1)
    chosen, highest = STARTS[0], -1.0
    for start in STARTS:
        models = linear[KINDS.index(start.kind)]
        found = np.zeros(len(fold), dtype=bool)
        for k in range(FOLDS - 1):
            network = networks.start(inside[k], models[k], start.power)
            found[fold == k] = _right(cpu_logits(network, outside[k])[0], rows.labels[fold == k])
        accuracy = float(np.average(found[some], weights=rows.weights[some]))
        if accuracy > highest:
            chosen, highest = start, accuracy
    networks_of_folds = [
        networks.start(part, model, chosen.power)
        for part, model in zip(inside, linear[KINDS.index(chosen.kind)], strict=True)
    ]
    for network, part in zip(networks_of_folds, inside, strict=True):
        networks.train(network, part)
    logits = _in_order(
        [
            predict_logits(network.to(torch.float64), table, device)[0]
            for network, table in zip(networks_of_folds, outside, strict=True)
        ],
        fold,
    )
    report = _report(_right(logits, rows.labels), baselines[best], rows.weights, chosen, str(KINDS[best]))
    if report.behind:
        warnings.warn(str(report), BaselineWarning, stacklevel=5)  # the caller of fit
    return Choice(chosen, calibration_temperature(logits, rows.labels, rows.weights), report)


def fold_of_rows(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fold of each row, shape (rows,), at random; the rows of a class are spread evenly over all folds."""
    order = rng.permutation(len(labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % FOLDS
    return fold


def _in_order(parts: list[np.ndarray], fold: np.ndarray) -> np.ndarray:
    """Rows of the parts, one part per fold, in the order of the rows; shape (rows, outputs)."""
    ordered = np.empty((len(fold), parts[0].shape[1]))
    for k, part in enumerate(parts):
        ordered[fold == k] = part
    return ordered


def _right(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whether each row is classified correctly, shape (rows,)."""
    return np.asarray(predicted(torch.from_numpy(logits)).numpy() == labels)


def _report(own: np.ndarray, other: np.ndarray, weights: np.ndarray, start: Start, baseline: str) -> CrossValidation:
    """Comparison of two classifiers that are right on these rows."""
    gap = other.astype(float) - own
    mean = float(np.average(gap, weights=weights))
    # Both are evaluated on the same rows, so that only those on which they differ contribute.
    error = float(np.sqrt(np.average((gap - mean) ** 2, weights=weights) / len(gap)))
    return CrossValidation(
        folds=FOLDS,
        accuracy=float(np.average(own, weights=weights)),
        start=str(start.kind),
        baseline=baseline,
        baseline_accuracy=float(np.average(other, weights=weights)),
        standard_error=error,
    )
