r"""Calibration of probabilities: temperature and shift of the logits that minimise the log loss of held-out documents.

.. math:: \text{calibrated logits} = \text{logits} / T + s

The temperature makes probabilities as sure as they are right; the shift corrects how often each class is predicted,
which regularised regressions on few documents get wrong if the classes differ in size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.metrics import f1_score

# Standard deviation of the prior of each shift: a class with a handful of rows is shifted little.
_SHIFT_DEVIATION = 0.5
# Fractions of the way from the shift of weighted documents to that of their true frequencies.
_SHIFTS_BACK = (0.0, 0.25, 0.5, 0.75, 1.0)
# From 1/20 to 148: wider than any temperature that a useful model needs.
_LOG_TEMPERATURES = (-3.0, 5.0)


@dataclass(frozen=True)
class Calibration:
    """Temperature and shift of logits."""

    temperature: float
    """Number by which logits are divided."""
    shift: np.ndarray
    """Number added to each logit afterwards, shape (outputs,)."""
    loss: float
    """Mean log loss of the documents that determined the two, after calibration."""

    def of(self, logits: np.ndarray) -> np.ndarray:
        """Calibrated logits, same shape (documents, outputs)."""
        return np.asarray(logits / self.temperature + self.shift)


def calibration(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray, *, shift: bool = True) -> Calibration:
    """Temperature, and shift unless it is excluded, that minimise the log loss on these documents.

    The logarithm of the temperature has a normal prior of unit variance and the shifts have one of smaller variance, so
    that a few documents have little influence.
    """
    count, outputs = logits.shape
    share = weights / weights.sum()
    rows = np.arange(count)

    def cost(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        scale = math.exp(-parameters[0])
        moved = logits * scale + parameters[1:]
        if outputs == 1:
            sign = np.where(labels == 1, 1.0, -1.0)
            loss = -log_expit(sign * moved[:, 0])
            slope = ((expit(moved[:, 0]) - (labels == 1)) * share)[:, None]
        else:
            loss = logsumexp(moved, axis=1) - moved[rows, labels]
            slope = softmax(moved, axis=1)
            slope[rows, labels] -= 1
            slope *= share[:, None]
        by_temperature = -float((slope * logits).sum()) * scale
        prior = (parameters[0] ** 2 + float(np.square(parameters[1:]).sum()) / _SHIFT_DEVIATION**2) / (2 * count)
        prior_slope = np.append(parameters[0], parameters[1:] / _SHIFT_DEVIATION**2) / count
        gradient = np.append(by_temperature, slope.sum(axis=0)) + prior_slope
        return float(loss @ share) + prior, gradient

    free = (-2.0, 2.0) if shift else (0.0, 0.0)
    found = minimize(
        cost, np.zeros(1 + outputs), jac=True, method="L-BFGS-B", bounds=[_LOG_TEMPERATURES] + outputs * [free]
    )
    return Calibration(math.exp(float(found.x[0])), np.asarray(found.x[1:]), float(found.fun))


def calibration_for_rare_classes(
    logits: np.ndarray, labels: np.ndarray, weights: np.ndarray, multiplicity: np.ndarray, *, shift: bool
) -> Calibration:
    """Calibration by weighted documents, shifted back towards the frequencies of the classes as far as macro-F1 gains.

    With weights that make all classes equally heavy the least log loss takes every class for equally likely. Documents
    with little evidence are then spread over the rare classes, most of them wrongly: recall rises, but precision falls
    by more.
    """
    weighted = calibration(logits, labels, weights, shift=shift)
    if not shift:
        return weighted
    natural = calibration(logits, labels, multiplicity)
    best, highest = weighted, -1.0
    for back in _SHIFTS_BACK:
        found = replace(weighted, shift=(1 - back) * weighted.shift + back * natural.shift)
        moved = found.of(logits)
        answers = (moved[:, 0] > 0).astype(int) if moved.shape[1] == 1 else moved.argmax(axis=1)
        score = f1_score(labels, answers, average="macro", sample_weight=multiplicity, zero_division=0.0)
        if score > highest:
            best, highest = found, score
    return best


def calibration_temperature(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Temperature by which logits are divided to minimise the log loss on these documents.

    Its logarithm has a normal prior of unit variance, so that a few documents without an error do not make all later
    probabilities zero and one.
    """
    return calibration(logits, labels, weights, shift=False).temperature
