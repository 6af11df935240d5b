"""A forecast: values, how sure they are, when, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..outcomes import Ending, Outcome
from .protocol import FloatArray


@dataclass(frozen=True)
class Forecast:
    """``values`` are ``(steps, channels)``, or ``(starts, steps, channels)`` for several windows.

    ``spread`` has the same shape: the root mean square error so many steps ahead of the same model fitted without the
    data that it forecast, see :mod:`hardmax.forecasting.error_growth`; NaN for a model from a file that does not hold
    such errors. ``times`` are those of the steps; ``left_range_at`` is the step (from 1) at which the forecast left
    the range of the training data, 0 where it did not, one number for each start. ``numpy.asarray(forecast)`` is its
    values.
    """

    values: FloatArray
    spread: FloatArray
    times: FloatArray
    outcome: Outcome
    left_range_at: int | npt.NDArray[np.int64]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)

    def __len__(self) -> int:
        return len(self.values)

    def data(self) -> dict[str, Any]:
        """Everything as plain values."""
        left = self.left_range_at
        return {
            "values": self.values.tolist(),
            # JSON has no NaN.
            "spread": np.where(np.isfinite(self.spread), self.spread, None).tolist(),
            "times": self.times.tolist(),
            "outcome": str(self.outcome),
            "left_range_at": int(left) if np.ndim(left) == 0 else np.asarray(left).tolist(),
        }


def outcome_of(left: npt.NDArray[np.int64], steps: int, far: npt.NDArray[np.bool_], fades: bool) -> Outcome:
    """What to say: within the range, out of it, or far out of it; ``fades`` where a nonlinear part does out there."""
    if far.any():
        return Outcome(
            Ending.DIVERGED,
            f"{int(far.sum())} of {len(left)} forecasts left the training range for good, "
            f"the first at step {int(left[left > 0].min())}",
            "trust the steps before; train on data that reach as far as you forecast",
        )
    if (left > 0).any():
        return Outcome(
            Ending.TIME_REACHED,
            f"{steps} steps; {int((left > 0).sum())} of {len(left)} forecasts left the training range, the first at "
            f"step {int(left[left > 0].min())}{', where the nonlinear part fades out' if fades else ''}",
            "treat the steps after as extrapolation",
        )
    return Outcome(Ending.TIME_REACHED, f"{steps} steps within the range of the training data")
