r"""Forecasts of small counts by whole counts.

Models forecast means. The forecast of a count with the smallest expected absolute error is its median, which is a whole
number. That of a Poisson distribution with mean :math:`\lambda` lies between :math:`\lambda - \log 2` and
:math:`\lambda + \tfrac13` (Choi, 1994), and is nearly always
:math:`\lfloor \lambda + \tfrac13 - \tfrac{1}{50 \lambda} \rfloor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..protocol import FloatArray
from ..rollout import PathModel

_ZEROS = 0.05
"""Share of zeros from which on counts are small."""
_LARGEST = 20.0
"""Median of the positive counts up to which they are small: rounding makes no difference to larger ones."""
_SMALLEST = 0.01
"""Mean of a count, the median of which is zero, as that of all smaller means."""
_ROUNDING = 1e-6
"""Distance from a whole number that is rounding of units."""
_FILLED = 0.1
"""Share of the positive samples that may be no whole numbers, as gaps that were filled are."""


@dataclass(frozen=True)
class Counts(PathModel):
    """Medians of Poisson distributions whose means another model forecasts.

    Attributes
    ----------
    outputs
        Number of channels.
    zero
        What normalised samples lack, per channel, to be proportional to the data, shape (outputs,).
    unit
        Size of one count in normalised units, shape (outputs,); 0 for a channel that holds no small counts, which is
        forecast as by the other model.
    inner
        The other model.
    """

    outputs: int
    zero: FloatArray
    unit: FloatArray
    inner: PathModel

    @property
    def window(self) -> int:
        return self.inner.window

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        return medians(self.inner.paths(windows, steps, future), self.zero, self.unit)


def medians(means: FloatArray, zero: FloatArray, unit: FloatArray) -> FloatArray:
    """Medians of Poisson distributions with means (starts, steps, outputs); see :class:`Counts`."""
    whole = unit > 0
    size = np.where(whole, unit, 1.0)
    expected = np.maximum((means + zero) / size, _SMALLEST)
    counts = np.maximum(0.0, np.floor(expected + 1.0 / 3.0 - 0.02 / expected))
    return np.asarray(np.where(whole, counts * size - zero, means))


def small_counts(trajectories: Sequence[FloatArray]) -> npt.NDArray[np.bool_]:
    """Whether each channel of the data, arrays (samples, channels), holds small counts, shape (channels,).

    Small counts are whole numbers from zero on, but for one positive sample in ten, which may be filled gaps; at least
    one sample in twenty is zero, and the median of the others is at most 20.
    """
    data = np.concatenate(list(trajectories))
    return np.array([_are_small_counts(channel) for channel in data.T], dtype=bool)


def _are_small_counts(channel: FloatArray) -> bool:
    positive = channel[channel > 0]
    if not len(positive) or channel.min() < 0 or (channel == 0).mean() < _ZEROS:
        return False
    broken = np.abs(positive - np.round(positive)) > _ROUNDING
    return bool(broken.mean() <= _FILLED and np.median(positive) <= _LARGEST)
