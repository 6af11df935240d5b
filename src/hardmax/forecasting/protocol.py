"""The interface of every forecaster: fit to trajectories, roll out from windows.

Axes have one order everywhere. A trajectory is ``(samples, channels)``; data are a list of trajectories. Windows are
``(starts, length, channels)``, oldest sample first. Forecasts are ``(starts, steps, channels)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]


class AbstractForecaster(Protocol):
    """A model that predicts the next sample from the last few, and its rollouts."""

    @property
    def name(self) -> str:
        """Name in tables."""
        ...

    @property
    def window(self) -> int:
        """Number of samples that a forecast starts from; known after :meth:`fit`."""
        ...

    def fit(self, trajectories: Sequence[FloatArray], dt: float, /) -> Self:
        """Fit the model.

        Parameters
        ----------
        trajectories
            Arrays (samples, channels) of any lengths.
        dt
            Time between samples.

        Returns
        -------
        Self
            The fitted model itself.
        """
        ...

    def roll(self, windows: FloatArray, steps: int, /) -> FloatArray:
        """Roll out from each window, with predictions fed back.

        Parameters
        ----------
        windows
            Samples to start from, shape (starts, length, channels), oldest first.
        steps
            Number of samples ahead.

        Returns
        -------
        ndarray
            Forecasts, shape (starts, steps, channels); NaN after a divergence is allowed.
        """
        ...
