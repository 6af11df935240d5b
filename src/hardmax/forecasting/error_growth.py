"""Growth of the forecast error with the steps ahead, measured on validation data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .protocol import FloatArray

_SLOWEST = 0.5
"""Power of a random walk: slower growth beyond the validation steps has not been observed, so it is not assumed."""
_SMALLEST = 1e-15
"""Rounding, in standard deviations of the data: a lower bound on every error."""


@dataclass(frozen=True)
class ErrorGrowth:
    r"""Expected error of a forecast as a function of the steps ahead, in standard deviations of the data.

    With :math:`r_{kj}` the root mean square error of validation rollouts at step :math:`k` in channel :math:`j`, the
    expected error is the running maximum :math:`s_{kj} = \max_{i \le k} r_{ij}`. Beyond the longest validation rollout
    of :math:`H` steps it is extrapolated as :math:`s_{Hj}\,(k/H)^p` or :math:`s_{Hj}\,e^{q(k-H)}`, whichever fits
    :math:`\log s` better between :math:`H/4` and :math:`H` by least squares, with :math:`p \ge 1/2`, up to the error of
    a forecast without skill, :math:`\sqrt{1 + m_j}`. Here :math:`m_j` is the mean square of the forecast itself late in
    the rollouts: 0 for a forecast at the mean of the data, 1 for one that varies like the data.

    Attributes
    ----------
    per_step
        Errors :math:`s_{kj}` of the validation rollouts, shape (steps, outputs), never decreasing; row ``k - 1``
        belongs to ``k`` steps ahead.
    limit
        Errors of a forecast without skill, shape (outputs,).
    """

    per_step: FloatArray
    limit: FloatArray

    def ahead(self, steps: int) -> FloatArray:
        """Expected errors of a forecast: measured as far as known, extrapolated beyond.

        Parameters
        ----------
        steps
            Number of steps ahead.

        Returns
        -------
        ndarray
            Errors, shape (steps, outputs).
        """
        known = len(self.per_step)
        if steps <= known:
            return self.per_step[:steps].copy()
        last, beyond = self.per_step[-1], np.arange(known + 1, steps + 1, dtype=np.float64)
        # A measured error above the limit is not reduced.
        highest = np.maximum(self.limit, last)
        factors = np.stack([_factors(self.per_step[:, j], beyond) for j in range(self.per_step.shape[1])], axis=1)
        return np.concatenate([self.per_step, np.minimum(last * factors, highest)])


def _factors(errors: FloatArray, beyond: FloatArray) -> FloatArray:
    """Ratios of the errors at the steps ``beyond`` to the last of ``errors``."""
    known = len(errors)
    slowest = np.asarray((beyond / known) ** _SLOWEST)
    counted = np.arange(1, known + 1, dtype=np.float64)
    late = counted >= known / 4
    if late.sum() < 3:
        return slowest
    logs, steps = np.log(np.maximum(errors[late], _SMALLEST)), counted[late]
    fits = [_line(x, logs) for x in (np.log(steps), steps)]
    by_power = fits[0][1] <= fits[1][1]
    power = fits[0][0] * np.log(beyond / known) if by_power else fits[1][0] * (beyond - known)
    # 700 is near the largest exponent of a float64; the limit is reached long before.
    return np.maximum(slowest, np.exp(np.minimum(power, 700.0)))


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope of the least-squares line, and the sum of its squared residuals."""
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y) / float(x @ x)
    return slope, float(((y - slope * x) ** 2).sum())


def measure_growth(rollouts: Sequence[FloatArray], truths: Sequence[FloatArray]) -> ErrorGrowth:
    """Error growth over rollouts (starts, steps, outputs), with the true samples, of one fold or several."""
    longest = max(truth.shape[1] for truth in truths)
    outputs = truths[0].shape[2]
    squares, counts = np.zeros((longest, outputs)), np.zeros((longest, 1))
    late, late_count = np.zeros(outputs), 0
    for path, truth in zip(rollouts, truths, strict=True):
        starts, steps, _ = truth.shape
        squares[:steps] += ((path - truth) ** 2).sum(axis=0)
        counts[:steps] += starts
        end = path[:, -max(1, steps // 4) :]
        late += (end**2).sum(axis=(0, 1))
        late_count += end.shape[0] * end.shape[1]
    errors = np.sqrt(squares / counts)
    per_step = np.maximum(np.maximum.accumulate(errors, axis=0), _SMALLEST)
    return ErrorGrowth(per_step, np.sqrt(1.0 + late / late_count))
