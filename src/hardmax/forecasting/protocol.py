"""What every forecaster can do, ours and its rivals: be fitted to trajectories and rolled out from windows.

One order of axes everywhere. A trajectory is ``(samples, channels)``; data are a list of trajectories. Windows are
``(starts, length, channels)``, oldest sample first. Forecasts are ``(starts, steps, channels)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]


class AbstractForecaster(Protocol):
    """A model of the next sample, given the last few."""

    @property
    def name(self) -> str:
        """What to call it in tables."""
        ...

    @property
    def window(self) -> int:
        """How many samples a forecast starts from; known after :meth:`fit`."""
        ...

    def fit(self, trajectories: Sequence[FloatArray], dt: float, /) -> Self:
        """Learn from trajectories sampled every ``dt``."""
        ...

    def roll(self, windows: FloatArray, steps: int, /) -> FloatArray:
        """Go on from each window, feeding predictions back; NaN after a divergence is allowed here only."""
        ...
