"""Next-generation reservoir computing (NG-RC): polynomials of a few lags with a ridge readout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..data.series import as_windows, read_for_tuning
from ..features.candidates import NOISES, lag_polynomial_groups
from ..protocol import FloatArray
from ..rollout import roll
from ..search.model_search import tuned_member
from ..search.readout_search import RIDGES
from ..settings import Settings

_CEILING = 1e6
"""Forecasts are clipped at so many standard deviations, so that a divergence does not overflow."""


class NextGenerationReservoir:
    """NG-RC with its lags, their spacing, degree, ridge and window noise tuned on validation rollouts.

    Parameters
    ----------
    seconds
        Budget of processor time for tuning; None for no limit.
    random_state
        Seed of the noise on windows.
    """

    name = "NG-RC"

    def __init__(self, *, seconds: float | None = None, random_state: int = 0) -> None:
        self.window = 1
        self._settings = Settings(None, None, 1, None, seconds, random_state, False)

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Tune on a part of the data, and refit on all.

        Parameters
        ----------
        trajectories
            Arrays (samples, channels) of any lengths.
        dt
            Time between samples.

        Returns
        -------
        NextGenerationReservoir
            The fitted model itself.
        """
        checked, self._units = read_for_tuning(trajectories, dt)
        rows = [self._units.normalise(z) for z in checked]
        channels = rows[0].shape[1]
        self._member = tuned_member(
            rows,
            self._settings,
            lambda plan, training: [(lag_polynomial_groups(channels, plan.spacing, plan.longest), NOISES, RIDGES)],
        )
        self.window = self._member.features.window
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """Roll out from each window.

        Parameters
        ----------
        windows
            Samples to start from, shape (starts, samples, channels), oldest first.
        steps
            Number of samples ahead.

        Returns
        -------
        ndarray
            Forecasts, shape (starts, steps, channels).
        """
        paths = roll([self._member], as_windows(windows, self._units), steps, ceiling=_CEILING)[0]
        return self._units.restore(paths)
