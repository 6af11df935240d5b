r"""Validation folds, the score of a rollout on them, and the comparison of two candidates by the same forecasts.

Models are selected by rollouts over the horizon of use on validation data, never by their one-step error. With
:math:`e_k` the error at step :math:`k` in standard deviations and :math:`E_k = \max_{j \le k} e_j`, the score is the
mean over starts and steps of

.. math:: \log_{10}\min(\max(E_k, 0.03), 1) + 0.1\,\log_{10}\min(\max(E_k, 10^{-13}), 1).

The first term measures how long a forecast is accurate; because of the running maximum, a model that has failed gains
nothing by staying near the mean afterwards. The second term decides between models that are accurate throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..protocol import FloatArray

_SHARE = 0.2
"""Share of the data in each validation part."""
_ENOUGH, _PIECE = 20_000, 2000
"""Samples that a search is fitted to at most, and the length of the pieces that they are taken in."""
# Relative errors: of rounding; below which differences hardly count; of a forecast that has failed.
_SMALLEST, _GOOD, _FAILED = 1e-13, 0.03, 1.0
_FINE = 0.1
"""Limits and weight in the score above."""


@dataclass(frozen=True)
class Fold:
    """Training pieces, and validation starts: windows, the true samples after them, and the inputs ahead (or None)."""

    training: list[FloatArray]
    windows: FloatArray
    truth: FloatArray
    future: FloatArray | None

    @property
    def horizon(self) -> int:
        """Number of steps of the validation rollouts."""
        return int(self.truth.shape[1])

    def every(self, stride: int) -> Fold:
        """The fold with every ``stride``-th start."""
        future = None if self.future is None else self.future[::stride]
        return Fold(self.training, self.windows[::stride], self.truth[::stride], future)

    def score(self, rollouts: FloatArray, horizon: int | None = None) -> FloatArray:
        """Score per readout, shape (readouts,), of rollouts (readouts, starts, steps, outputs); lower is better."""
        truth = self.truth[:, :horizon]
        error = np.sqrt(((rollouts[:, :, : truth.shape[1]] - truth) ** 2).mean(axis=-1))
        worst = np.log10(np.clip(np.maximum.accumulate(error, axis=2), _SMALLEST, _FAILED))
        return np.asarray((np.maximum(worst, np.log10(_GOOD)) + _FINE * worst).mean(axis=(1, 2)))

    def typical_error(self, rollouts: FloatArray) -> float:
        """Geometric mean of the errors of rollouts (starts, steps, outputs), in standard deviations."""
        error = np.sqrt(((rollouts - self.truth) ** 2).mean(axis=-1))
        return float(np.exp(np.log(np.maximum(error, 1e-16)).mean()))


@dataclass(frozen=True)
class _Segment:
    """A trajectory with the first and the last sample at which validation rollouts may start."""

    trajectory: FloatArray
    first: int
    last: int


def make_folds(
    trajectories: Sequence[FloatArray], outputs: int, context: int, horizon: int, starts: int = 16
) -> list[Fold]:
    """One or two folds, whose validation parts are the end and the beginning of each record, or whole trajectories.

    With three or more trajectories whole ones are used for validation, because forecasts are then made for new
    trajectories.
    """
    if len(trajectories) >= 3:
        return _whole_trajectories(trajectories, outputs, context, horizon, starts)
    late_training, late, early_training, early = [], [], [], []
    shortest = min(len(z) for z in trajectories)
    validation = max(4, int(_SHARE * shortest))
    ahead = max(2, min(horizon, validation // 2))
    reach = context + ahead + max(ahead // 2, 2)
    for z in trajectories:
        cut = len(z) - max(4, int(_SHARE * len(z)))
        late_training.append(z[:cut])
        late.append(_Segment(z, max(cut, context), len(z) - ahead))
        lead = max(int(_SHARE * len(z)), reach)
        early_training.append(z[lead:])
        early.append(_Segment(z, context, lead - ahead))
    folds = [_fold(late_training, late, outputs, context, ahead, starts)]
    if reach <= 0.4 * shortest:
        folds.append(_fold(early_training, early, outputs, context, ahead, starts))
    return folds


def _whole_trajectories(
    trajectories: Sequence[FloatArray], outputs: int, context: int, horizon: int, starts: int
) -> list[Fold]:
    total = len(trajectories)
    count = max(1, round(_SHARE * total))
    folds = []
    for shift in (0, 1):
        # Spread over the list, because lists are often sorted by the parameter that varies.
        chosen = {(int((i + 0.5) * total / count) + shift) % total for i in range(count)}
        validation = [trajectories[i] for i in sorted(chosen)]
        ahead = max(2, min(horizon, int(0.75 * (min(len(z) for z in validation) - context))))
        segments = [_Segment(z, context, len(z) - ahead) for z in validation]
        training = [z for i, z in enumerate(trajectories) if i not in chosen]
        folds.append(_fold(training, segments, outputs, context, ahead, starts))
    return folds


def _fold(
    training: list[FloatArray], segments: list[_Segment], outputs: int, context: int, horizon: int, starts: int
) -> Fold:
    windows, truth, future = [], [], []
    share = max(2, -(-starts // len(segments)))
    for segment in segments:
        for start in np.unique(np.linspace(segment.first, max(segment.first, segment.last), share).astype(int)):
            after = segment.trajectory[start : start + horizon]
            if start < context or len(after) < horizon:
                continue
            windows.append(segment.trajectory[start - context : start])
            truth.append(after[:, :outputs])
            future.append(after[:, outputs:])
    known = np.stack(future) if segments[0].trajectory.shape[1] > outputs else None
    return Fold(subsampled(training, context), np.stack(windows), np.stack(truth), known)


def subsampled(pieces: list[FloatArray], context: int) -> list[FloatArray]:
    """Pieces spread over a long record, enough to compare models; shorter records as they are."""
    total = sum(len(z) for z in pieces)
    if total <= _ENOUGH:
        return pieces
    length = max(_PIECE, 4 * context)
    selected = []
    for z in pieces:
        count = max(1, round(_ENOUGH / length * len(z) / total))
        for start in np.unique(np.linspace(0, max(0, len(z) - length), count).astype(int)):
            selected.append(z[start : start + length])
    return selected


def outside_validation(trajectories: Sequence[FloatArray]) -> list[FloatArray]:
    """Data in no validation part, on which inner weights are trained."""
    if len(trajectories) >= 3:
        total = len(trajectories)
        count = max(1, round(_SHARE * total))
        seen = {(int((i + 0.5) * total / count) + shift) % total for i in range(count) for shift in (0, 1)}
        return subsampled([z for i, z in enumerate(trajectories) if i not in seen], 0)
    return subsampled([z[int(_SHARE * len(z)) : len(z) - max(4, int(_SHARE * len(z)))] for z in trajectories], 0)


_NEGLIGIBLE = 1e-3
"""Error, as a share of the mean error, that is added to both: without it the logarithm of an exact forecast decides."""
_USUAL_SPREAD = 0.8
"""Standard deviation of the logarithms from horizon to horizon that is assumed with the weight of one horizon: a few
forecasts that overlap agree by chance. Chosen on the development part of ``benchmarks/series.py``."""


def log_ratio(
    first: Sequence[FloatArray], second: Sequence[FloatArray], weights: FloatArray, horizons: float
) -> tuple[float, float]:
    r"""Mean logarithm of the ratio of two candidates' errors over the same forecasts, and its standard error.

    With :math:`a_{ci}` and :math:`b_{ci}` the mean errors of the forecasts from start :math:`i` after cut :math:`c`, it
    is the mean of :math:`\log(a_{ci}/b_{ci})`, in which all starts after a cut share its weight. Starts lie close
    together and their forecasts overlap, so that the number :math:`n` of independent ones is that of the horizons side
    by side, divided by what unequal weights cost. The variance is :math:`(n s^2 + 0.8^2)/(n + 1)` for one of standard
    deviation :math:`s` in the sample.

    Parameters
    ----------
    first, second
        Mean errors of the forecasts from each start, one array (starts,) per cut.
    weights
        Weight of each cut, shape (cuts,); they sum to one.
    horizons
        Number of horizons that lie side by side after the first cut.

    Returns
    -------
    tuple of float
        The mean, negative where the first errs less, and its standard error.
    """
    small = _NEGLIGIBLE * float(np.concatenate(list(second)).mean()) + 1e-12
    logs = [np.log((a + small) / (b + small)) for a, b in zip(first, second, strict=True)]
    shares = [np.full(len(part), weight / len(part)) for part, weight in zip(logs, weights, strict=True)]
    share, values = np.concatenate(shares), np.concatenate(logs)
    mean = float(share @ values)
    spread = float(np.sqrt(share @ (values - mean) ** 2))
    equal = 1.0 / (len(weights) * float((weights**2).sum()))
    independent = max(1.0, min(horizons, len(values)) * equal)
    variance = (independent * spread**2 + _USUAL_SPREAD**2) / (independent + 1.0)
    return mean, float(np.sqrt(variance / independent))
