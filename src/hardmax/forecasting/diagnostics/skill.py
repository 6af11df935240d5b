r"""How good forecasts are: error curves, valid prediction time, climate, and what the differences are worth.

Errors are in standard deviations of the data: :math:`e_k = \sqrt{\tfrac1c \sum_j ((\hat z_{kj} - z_{kj})/s_j)^2}`.
A forecast that is not finite has an infinite error, so a divergence is never averaged away.
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
"""The error, in standard deviations, up to which a forecast counts as valid."""


@dataclass(frozen=True)
class Interval:
    """A mean and the ends of its confidence interval.

    >>> print(Interval(1.5, 1.2, 1.9))
    1.5 [1.2, 1.9]
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def error_curves(forecasts: FloatArray, truth: FloatArray, scale: FloatArray) -> FloatArray:
    """The error of every start at every step, ``(starts, steps)``; infinite where a forecast is not finite."""
    if forecasts.shape != truth.shape:
        raise InputError(
            "forecasts", f"shape {forecasts.shape}", f"must have the shape of the truth, {truth.shape}", "align them"
        )
    with np.errstate(all="ignore"):
        errors = np.sqrt((((forecasts - truth) / scale) ** 2).mean(axis=-1))
    return np.where(np.isfinite(errors), errors, np.inf)


def valid_times(curves: FloatArray, dt: float, *, threshold: float = THRESHOLD, unit: float = 1.0) -> FloatArray:
    """How long each start stays below ``threshold``, in units of ``unit`` (such as a Lyapunov time).

    A start that stays below it to the end counts with the whole horizon, so compare models over the same one.

    >>> valid_times(np.array([[0.1, 0.2, 0.9], [0.1, 0.1, 0.1]]), dt=0.5).tolist()
    [1.0, 1.5]
    """
    above = curves > threshold
    steps = np.where(above.any(axis=1), above.argmax(axis=1), curves.shape[1])
    return np.asarray(steps * dt / unit, dtype=np.float64)


def histogram_distance(forecast: FloatArray, truth: FloatArray, bins: int = 60) -> float:
    """The mean over channels of the total variation between histograms, from 0 (alike) to 1 (nothing in common).

    What leaves the range of the truth by more than a tenth falls into the outermost bins.
    """
    distances = []
    for ours, theirs in zip(forecast.T, truth.T, strict=True):
        low, high = float(theirs.min()), float(theirs.max())
        margin = 0.1 * (high - low) or 1.0
        edges = np.linspace(low - margin, high + margin, bins + 1)
        held = np.clip(np.nan_to_num(ours, nan=edges[-1]), edges[0], edges[-1])
        p, q = np.histogram(held, edges)[0], np.histogram(theirs, edges)[0]
        distances.append(0.5 * np.abs(p / p.sum() - q / q.sum()).sum())
    return float(np.mean(distances))


def spectrum_distance(forecast: FloatArray, truth: FloatArray) -> float:
    """The root mean square difference of log10 power over the frequencies that matter in the truth, mean of channels.

    1 means that powers are off by a factor of ten.
    """
    from scipy.signal import welch

    distances = []
    length = min(1024, len(truth) // 2, len(forecast) // 2)
    for ours, theirs in zip(forecast.T, truth.T, strict=True):
        scale = float(theirs.std()) or 1.0
        # Held far outside the data: a forecast that blew up has all the power in the world, not an overflow.
        held = np.clip(np.nan_to_num((ours - theirs.mean()) / scale, nan=1e3), -1e3, 1e3)
        p = welch(held, nperseg=length)[1]
        q = welch((theirs - theirs.mean()) / scale, nperseg=length)[1]
        counts = q > 1e-5 * q.max()
        gap = np.log10(p[counts] + 1e-12) - np.log10(q[counts] + 1e-12)
        distances.append(float(np.sqrt(np.mean(gap**2))) if counts.any() else 0.0)
    return float(np.mean(distances))


def confidence(
    values: FloatArray, *, level: float = 0.95, draws: int = 2000, random_state: int | np.random.Generator | None = 0
) -> Interval:
    """The mean with a bootstrap interval: over starts, or over seeds and starts within them for ``(seeds, starts)``."""
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
    """Wins, losses and ties of one model against another over cases, and how likely chance alone is.

    Two-sided p-values: ``sign`` looks at who won only, ``wilcoxon`` at by how much too. Without a difference both are
    1.
    """

    wins: int
    losses: int
    ties: int
    sign: float
    wilcoxon: float

    def __str__(self) -> str:
        return f"{self.wins} : {self.losses}, p = {self.sign:.2g} (sign), {self.wilcoxon:.2g} (Wilcoxon)"


def compare(ours: Sequence[float] | FloatArray, theirs: Sequence[float] | FloatArray) -> Comparison:
    """Case by case, larger is better.

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
    # Ranks of equal size have no exact null distribution in closed form; the normal one is used then.
    exact = len(moved) <= 25 and len(np.unique(np.abs(moved))) == len(moved)
    method: Literal["exact", "approx"] = "exact" if exact else "approx"
    size = float(wilcoxon(moved, method=method).pvalue)
    return Comparison(wins, losses, len(gaps) - wins - losses, sign, size)


def mean_ranks(scores: FloatArray) -> FloatArray:
    """The mean over cases of each model's rank, 1 the best; larger scores are better and equal ones share a rank.

    ``scores`` is ``(cases, models)``.

    >>> mean_ranks(np.array([[5.0, 1.0, 3.0], [2.0, 2.0, 0.0]])).tolist()
    [1.25, 2.25, 2.5]
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(-np.asarray(scores), axis=1).mean(axis=0))
