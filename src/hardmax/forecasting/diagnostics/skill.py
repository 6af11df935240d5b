r"""Skill of forecasts: error curves, valid prediction time, distances of climate, and tests of differences.

Errors are in standard deviations of the data: :math:`e_k = \sqrt{\tfrac1c \sum_j ((\hat z_{kj} - z_{kj})/s_j)^2}`.
A forecast that is not finite has an infinite error, so that a divergence dominates every mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...errors import InputError
from ...randomness import seeded
from ..protocol import FloatArray

THRESHOLD = 0.4
"""Error, in standard deviations, up to which a forecast counts as valid: a usual choice in studies of chaos."""


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    Attributes
    ----------
    mean
        The mean.
    low
        Lower end of the interval.
    high
        Upper end of the interval.

    Examples
    --------
    >>> print(Interval(1.5, 1.2, 1.9))
    1.5 [1.2, 1.9]
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def error_curves(forecasts: FloatArray, truth: FloatArray, scale: FloatArray) -> FloatArray:
    """Error of every start at every step.

    Parameters
    ----------
    forecasts
        Predicted samples, shape (starts, steps, channels).
    truth
        True samples, of the same shape.
    scale
        Standard deviation per channel, shape (channels,).

    Returns
    -------
    ndarray
        Root mean square over channels in standard deviations, shape (starts, steps); infinite where a forecast is not
        finite.
    """
    if forecasts.shape != truth.shape:
        raise InputError(
            "forecasts", f"shape {forecasts.shape}", f"must have the shape of the truth, {truth.shape}", "align them"
        )
    with np.errstate(all="ignore"):
        errors = np.sqrt((((forecasts - truth) / scale) ** 2).mean(axis=-1))
    return np.where(np.isfinite(errors), errors, np.inf)


def valid_times(curves: FloatArray, dt: float, *, threshold: float = THRESHOLD, unit: float = 1.0) -> FloatArray:
    """Time during which the error of each start stays below a threshold.

    A start that stays below it to the end counts with the whole horizon, so models are to be compared over the same
    horizon.

    Parameters
    ----------
    curves
        Errors, shape (starts, steps).
    dt
        Time between steps.
    threshold
        Error up to which a forecast counts as valid.
    unit
        Length of the unit of time in the result, such as a Lyapunov time.

    Returns
    -------
    ndarray
        Valid time per start, shape (starts,).

    Examples
    --------
    >>> valid_times(np.array([[0.1, 0.2, 0.9], [0.1, 0.1, 0.1]]), dt=0.5).tolist()
    [1.0, 1.5]
    """
    above = curves > threshold
    steps = np.where(above.any(axis=1), above.argmax(axis=1), curves.shape[1])
    return np.asarray(steps * dt / unit, dtype=np.float64)


def histogram_distance(forecast: FloatArray, truth: FloatArray, bins: int = 60) -> float:
    """Total variation distance between the histograms of a forecast and of the truth, averaged over channels.

    Values more than a tenth of the range outside the range of the truth fall into the outermost bins.

    Parameters
    ----------
    forecast
        Predicted samples, shape (steps, channels).
    truth
        True samples, shape (samples, channels).
    bins
        Number of bins per channel.

    Returns
    -------
    float
        Distance from 0 (equal histograms) to 1 (disjoint histograms).
    """
    distances = []
    for predicted, actual in zip(forecast.T, truth.T, strict=True):
        low, high = float(actual.min()), float(actual.max())
        margin = 0.1 * (high - low) or 1.0
        edges = np.linspace(low - margin, high + margin, bins + 1)
        clipped = np.clip(np.nan_to_num(predicted, nan=edges[-1]), edges[0], edges[-1])
        p, q = np.histogram(clipped, edges)[0], np.histogram(actual, edges)[0]
        distances.append(0.5 * np.abs(p / p.sum() - q / q.sum()).sum())
    return float(np.mean(distances))


def spectrum_distance(forecast: FloatArray, truth: FloatArray) -> float:
    """Root mean square difference of log10 power between a forecast and the truth, averaged over channels.

    Frequencies count where the truth has more than 1e-5 of its largest power.

    Parameters
    ----------
    forecast
        Predicted samples, shape (steps, channels).
    truth
        True samples, shape (samples, channels).

    Returns
    -------
    float
        Distance; 1 means that powers differ by a factor of ten.
    """
    from scipy.signal import welch

    distances = []
    length = min(1024, len(truth) // 2, len(forecast) // 2)
    for predicted, actual in zip(forecast.T, truth.T, strict=True):
        scale = float(actual.std()) or 1.0
        # Clipped far outside the data, so that a diverged forecast has a large power instead of an overflow.
        clipped = np.clip(np.nan_to_num((predicted - actual.mean()) / scale, nan=1e3), -1e3, 1e3)
        p = welch(clipped, nperseg=length)[1]
        q = welch((actual - actual.mean()) / scale, nperseg=length)[1]
        counts = q > 1e-5 * q.max()
        gap = np.log10(p[counts] + 1e-12) - np.log10(q[counts] + 1e-12)
        distances.append(float(np.sqrt(np.mean(gap**2))) if counts.any() else 0.0)
    return float(np.mean(distances))


def confidence(
    values: FloatArray, *, level: float = 0.95, draws: int = 2000, random_state: int | np.random.Generator | None = 0
) -> Interval:
    """Mean with a bootstrap confidence interval.

    Parameters
    ----------
    values
        Values, shape (starts,), resampled over starts; or (seeds, starts), resampled over seeds and over starts within
        each seed.
    level
        Confidence level.
    draws
        Number of bootstrap samples.
    random_state
        Seed or generator of the resampling.

    Returns
    -------
    Interval
        The mean and its interval.
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if table.size == 0:
        raise InputError("values", "no values", "must not be empty", "run at least one start")
    rng = seeded(random_state).generator
    seeds, starts = table.shape
    rows = rng.integers(0, seeds, (draws, seeds, 1))
    columns = rng.integers(0, starts, (draws, seeds, starts))
    means = table[rows, columns].mean(axis=(1, 2))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(table.mean()), float(low), float(high))


@dataclass(frozen=True)
class Comparison:
    """Wins, losses and ties of one model against another over cases, with two-sided p-values.

    Attributes
    ----------
    wins
        Cases in which the first model is better.
    losses
        Cases in which the second model is better.
    ties
        Cases in which both are equal.
    sign
        p-value of the sign test, which counts wins and losses; 1 without a difference.
    wilcoxon
        p-value of Wilcoxon's signed-rank test, which also ranks their sizes; 1 without a difference.
    """

    wins: int
    losses: int
    ties: int
    sign: float
    wilcoxon: float

    def __str__(self) -> str:
        return f"{self.wins} : {self.losses}, p = {self.sign:.2g} (sign), {self.wilcoxon:.2g} (Wilcoxon)"


def compare(ours: Sequence[float] | FloatArray, theirs: Sequence[float] | FloatArray) -> Comparison:
    """Paired comparison of two models over cases; larger values are better.

    Parameters
    ----------
    ours
        Values of the first model, one per case.
    theirs
        Values of the second model in the same cases.

    Returns
    -------
    Comparison
        Wins, losses and ties of the first model, with p-values.

    Examples
    --------
    >>> compare([3, 4, 5, 6, 7, 8], [1, 1, 1, 1, 1, 1]).sign
    0.03125
    """
    from scipy.stats import binomtest, wilcoxon

    gaps = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    wins, losses = int((gaps > 0).sum()), int((gaps < 0).sum())
    if wins + losses == 0:
        return Comparison(0, 0, len(gaps), 1.0, 1.0)
    sign = float(binomtest(wins, wins + losses).pvalue)
    moved = gaps[gaps != 0]
    # Tied ranks have no exact null distribution in closed form; the normal approximation is used for them.
    exact = len(moved) <= 25 and len(np.unique(np.abs(moved))) == len(moved)
    method: Literal["exact", "approx"] = "exact" if exact else "approx"
    size = float(wilcoxon(moved, method=method).pvalue)
    return Comparison(wins, losses, len(gaps) - wins - losses, sign, size)


def mean_ranks(scores: FloatArray) -> FloatArray:
    """Mean rank of each model over cases; larger scores are better and equal scores share a rank.

    Parameters
    ----------
    scores
        Scores, shape (cases, models).

    Returns
    -------
    ndarray
        Mean ranks, shape (models,); 1 is the best.

    Examples
    --------
    >>> mean_ranks(np.array([[5.0, 1.0, 3.0], [2.0, 2.0, 0.0]])).tolist()
    [1.25, 2.25, 2.5]
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(-np.asarray(scores), axis=1).mean(axis=0))
