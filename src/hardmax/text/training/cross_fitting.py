"""Choice of the start, the training and the calibration of few documents, by folds of the training rows.

Every row is predicted by models that were fitted without it. The log loss of these predictions chooses the linear model
from which the network starts, the resting mass, and whether the network is trained. They determine temperature and
shift of the logits, and they are compared with those of the linear models. No row is lost: the final network is fitted
to all of them.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse

from ..model.network import TINY, Network
from ..model.prediction import predict_logits
from ..words.counts import LabelledDocuments
from .calibration import Calibration, calibration, calibration_for_rare_classes
from .linear_models import KINDS, MEANS, NAIVE_BAYES, TF_IDF, LinearKind, LinearModel
from .optimiser_step import losses, predicted

FOLDS = 3
"""Two thirds of the rows train each fold: more folds would be closer to the final network, and slower."""
_FEWEST = 100
"""With fewer rows the standard error of an accuracy is above 5 %, and nothing can be chosen by it."""
_BEHIND = 0.01
"""Difference in accuracy from which on the simpler model is recommended."""
# Power of lengths in the masses: large enough that networks are as accurate as their linear models, small enough that
# the strongest words are longest.
_POWER = 4.0
# Multiples of the recipe's resting mass that are tried. With none logits do not depend on the length of a document, as
# with TF-IDF; with a large one they are sums over its words, as with naive Bayes features.
_RESTING = (1.0, 5.0, 25.0)


@dataclass(frozen=True)
class Start:
    """A linear model from which a network starts, and the masses of the network."""

    kind: LinearKind
    mass_power: float
    """Power of the length of a word in its mass."""
    resting: float = 1.0
    """Resting mass, as a multiple of that of the recipe."""


class Networks(Protocol):
    """Interface: networks that start from linear models, and their training."""

    def start(
        self, rows: LabelledDocuments, model: LinearModel, mass_power: float, resting: tuple[float, ...]
    ) -> list[Network]:
        """Networks before training, one for each multiple of the resting mass, that differ in it and in scale only.

        Their logits are scaled like those of the model on these rows.
        """

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
    """The linear model from which the classifier starts."""
    baseline: str
    """The most accurate linear model."""
    baseline_accuracy: float
    """Weighted accuracy of the baseline on the same rows."""
    standard_error: float
    """Standard error of the difference of the two."""
    mass_power: float = 1.0
    """Power of the length of a word in its mass."""
    resting: float = 1.0
    """Resting mass, as a multiple of that of the recipe."""
    trained: bool = True
    """Whether training moves the words from their initial positions."""

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
    """Start, training, calibration and report that the folds determine."""

    start: Start = Start(TF_IDF, 1.0)
    trained: bool = True
    """Whether the network is trained."""
    calibration: Calibration | None = None
    report: CrossValidation | None = None


@dataclass(frozen=True)
class _Folds:
    """The rows, their folds, and the rows inside and outside each."""

    rows: LabelledDocuments
    fold: np.ndarray
    inside: list[LabelledDocuments]
    outside: list[sparse.csr_matrix]

    @staticmethod
    def of(rows: LabelledDocuments, seed: int) -> _Folds:
        fold = fold_of_rows(rows.labels, np.random.default_rng([seed, 2**22]))
        inside = [rows.take(np.flatnonzero(fold != k)) for k in range(FOLDS)]
        outside = [rows.table[np.flatnonzero(fold == k)] for k in range(FOLDS)]
        return _Folds(rows, fold, inside, outside)

    def in_order(self, parts: list[np.ndarray]) -> np.ndarray:
        """Rows of the parts, one part per fold, in the order of the rows; shape (rows, outputs)."""
        ordered = np.empty((len(self.fold), parts[0].shape[1]))
        for k, part in enumerate(parts):
            ordered[self.fold == k] = part
        return ordered

    def right(self, logits: np.ndarray) -> np.ndarray:
        """Whether each row is classified correctly, shape (rows,)."""
        return np.asarray(predicted(torch.from_numpy(logits)).numpy() == self.rows.labels)

    def accuracy(self, logits: np.ndarray) -> float:
        """Weighted share of the rows that are classified correctly."""
        return float(np.average(self.right(logits), weights=self.rows.weights))

    def losses(self, parts: list[np.ndarray], *, shift: bool) -> np.ndarray:
        """Log loss of each row of the first folds, shape (rows,), for predictions that are calibrated on these rows.

        Losses distinguish models better than accuracies do, because every row counts and not only those on which the
        predicted classes differ.
        """
        some = np.concatenate([np.flatnonzero(self.fold == k) for k in range(len(parts))])
        logits, labels, weights = np.concatenate(parts), self.rows.labels[some], self.rows.weights[some]
        calibrated = calibration(logits, labels, weights, shift=shift).of(logits)
        found = losses(torch.from_numpy(calibrated), torch.from_numpy(labels)).numpy()
        return np.asarray(found * weights / weights.mean())

    def loss(self, parts: list[np.ndarray], *, shift: bool) -> float:
        """Mean of :meth:`losses`."""
        return float(self.losses(parts, shift=shift).mean())


def cross_fit(
    rows: LabelledDocuments,
    classes: int,
    networks: Networks,
    *,
    deviations: np.ndarray | None,
    intercept: bool,
    weight: float,
    always_train: bool,
    balanced: bool,
    device: str | None,
    seed: int,
) -> Choice:
    """Start, training and calibration that are best on folds of the rows; defaults if there are too few.

    With ``always_train`` the network is trained in any case. ``balanced`` says that the weights make all
    classes equally heavy.
    """
    members = np.bincount(rows.labels, minlength=classes)
    if len(rows.labels) < _FEWEST or members[members > 0].min() < 2:
        return Choice()
    folds = _Folds.of(rows, seed)
    options: dict[str, Any] = {"deviations": deviations, "intercept": intercept, "weight": weight}
    parts = [
        [LinearModel.fit(part, classes, kind, **options) for kind in (TF_IDF, NAIVE_BAYES)] for part in folds.inside
    ]
    linear = _linear_logits(folds, parts)
    kind = min(linear, key=lambda kind: folds.loss(linear[kind], shift=intercept))
    candidates = {}
    # With one output networks rank like their linear models. With several, masses divide the evidence of each class by
    # different numbers, and TF-IDF, which is divided by a norm itself, can be the better start although the mean is
    # the better linear model.
    for tried in dict.fromkeys([kind] if classes == 2 else [kind, TF_IDF]):
        models = [_of_kind(tried, part, both) for part, both in zip(folds.inside, parts, strict=True)]
        started = [networks.start(part, one, _POWER, _RESTING) for part, one in zip(folds.inside, models, strict=True)]
        for k, predicted_parts in enumerate(_start_logits(started, folds, device)):
            candidates[Start(tried, _POWER, _RESTING[k])] = [some[k] for some in started], predicted_parts
    start = min(candidates, key=lambda start: folds.loss(candidates[start][1], shift=intercept))
    chosen, before = candidates[start]
    trained, logits = _trained(folds, networks, chosen, before, always=always_train, shift=intercept, device=device)
    if balanced:
        found = calibration_for_rare_classes(logits, rows.labels, rows.weights, rows.counted, shift=intercept)
    else:
        found = calibration(logits, rows.labels, rows.weights, shift=intercept)
    # A mean of both is chosen for the start and is no model that is in use elsewhere.
    best = max((TF_IDF, NAIVE_BAYES), key=lambda kind: folds.accuracy(folds.in_order(linear[kind])))
    own, other = folds.right(found.of(logits)), folds.right(folds.in_order(linear[best]))
    report = replace(
        _report(own, other, rows.weights, str(start.kind), str(best)),
        mass_power=start.mass_power,
        resting=start.resting,
        trained=trained,
    )
    if report.behind:
        warnings.warn(str(report), BaselineWarning, stacklevel=5)  # the caller of fit
    return Choice(start, trained, found, report)


def _of_kind(kind: LinearKind, rows: LabelledDocuments, both: list[LinearModel]) -> LinearModel:
    """The linear model of a kind, from those of TF-IDF and naive Bayes features."""
    first, second = both
    return (
        first if kind == first.kind else second if kind == second.kind else LinearModel.mean(rows, first, second, kind)
    )


def _linear_logits(folds: _Folds, parts: list[list[LinearModel]]) -> dict[LinearKind, list[np.ndarray]]:
    """Logits of the rows of each fold by the linear models of every kind that were fitted to the other folds."""
    found: dict[LinearKind, list[np.ndarray]] = {kind: [] for kind in KINDS}
    for rows, table, both in zip(folds.inside, folds.outside, parts, strict=True):
        own = [one.logits(table) for one in both]
        ratio = LinearModel.ratio(rows, *both)
        for kind, logits in found.items():
            if kind in MEANS:
                logits.append(kind.share * own[0] + (1 - kind.share) * ratio * own[1])
            else:
                logits.append(own[(TF_IDF, NAIVE_BAYES).index(kind)])
    return found


def _start_logits(started: list[list[Network]], folds: _Folds, device: str | None) -> list[list[np.ndarray]]:
    """Logits of the rows of each fold, one list for each resting mass.

    Networks of one fold attend to the same words, so that their logits follow from those of the first.
    """
    found: list[list[np.ndarray]] = [[] for _ in started[0]]
    for some, table in zip(started, folds.outside, strict=True):
        first, bias = some[0], some[0].bias.numpy()
        logits = predict_logits(first, table, device)[0] - bias
        mass = first.document_masses(table)
        for network, own in zip(some, found, strict=True):
            scale = float(network.decoder.norm() / first.decoder.norm().clamp_min(TINY))
            share = np.maximum(first.resting_mass + mass, TINY) / np.maximum(network.resting_mass + mass, TINY)
            own.append(scale * share[:, None] * logits + bias)
    return found


def _trained(
    folds: _Folds,
    networks: Networks,
    started: list[Network],
    before: list[np.ndarray],
    *,
    always: bool,
    shift: bool,
    device: str | None,
) -> tuple[bool, np.ndarray]:
    """Whether training reduces the loss, or is wanted always, and the logits with or without it.

    One fold decides whether the others are trained as well, which costs most of the time of a fit: training has to gain
    more than a standard error there.
    """
    after: list[np.ndarray] = []
    for k, network in enumerate(started):
        networks.train(network, folds.inside[k])
        after.append(predict_logits(network, folds.outside[k], device)[0])
        if k == 0 and not always:
            gain = folds.losses(before[:1], shift=shift) - folds.losses(after, shift=shift)
            if gain.mean() <= gain.std() / np.sqrt(len(gain)):
                return False, folds.in_order(before)
    trained = always or folds.loss(after, shift=shift) < folds.loss(before, shift=shift)
    return trained, folds.in_order(after if trained else before)


def fold_of_rows(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fold of each row, shape (rows,), at random; the rows of a class are spread evenly over all folds."""
    order = rng.permutation(len(labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % FOLDS
    return fold


def _difference(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Difference in weighted accuracy of two classifiers that are right on these rows, and its standard error."""
    gap = first.astype(float) - second
    mean = float(np.average(gap, weights=weights))
    # Both are evaluated on the same rows, so that only those on which they differ contribute.
    return mean, float(np.sqrt(np.average((gap - mean) ** 2, weights=weights) / len(gap)))


def _report(own: np.ndarray, other: np.ndarray, weights: np.ndarray, start: str, baseline: str) -> CrossValidation:
    """Comparison of two classifiers that are right on these rows."""
    return CrossValidation(
        folds=FOLDS,
        accuracy=float(np.average(own, weights=weights)),
        start=start,
        baseline=baseline,
        baseline_accuracy=float(np.average(other, weights=weights)),
        standard_error=_difference(other, own, weights)[1],
    )
