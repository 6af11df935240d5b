r"""Time-delayed DMD: the next sample as a linear function of the last ones, by least squares.

.. math:: z_{k+1} = a_0 + \sum_{i=0}^{p} A_i\,z_{k-i}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ...errors import InputError
from ...scalars import as_count
from ..data.delay_windows import flat_windows, lags
from ..data.series import Units, as_windows, read_for_tuning, read_series
from ..features.candidates import NOISES, Embeddings, linear_groups, truncated_groups
from ..features.feature_map import FeatureMap
from ..protocol import FloatArray
from ..rollout import Member, roll
from ..search.model_search import TRUNCATED_RIDGES, tuned_member
from ..search.readout_search import RIDGES
from ..settings import Settings

_CEILING = 1e6
"""Forecasts are clipped at this many standard deviations, so that a divergence does not overflow."""


class TimeDelayedDMD:
    """Time-delayed DMD: the next sample as a linear function of the last ones.

    Parameters
    ----------
    window
        Number of samples, for a fit by plain least squares. None tunes window, truncation, ridge and noise on
        validation rollouts.
    seconds
        Budget of processor time for tuning; None for no limit.
    random_state
        Seed of the noise on windows.
    """

    name = "TD-DMD"

    def __init__(self, window: int | None = None, *, seconds: float | None = None, random_state: int = 0) -> None:
        self.window = 1 if window is None else as_count("window", window, 1)
        self._given = window
        self._settings = Settings(None, None, 1, None, seconds, random_state, False)
        self._units: Units | None = None
        self._member: Member | None = None

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Fit the operator.

        Parameters
        ----------
        trajectories
            Arrays (samples, channels) of any lengths.
        dt
            Time between samples.

        Returns
        -------
        TimeDelayedDMD
            The fitted model itself.
        """
        if self._given is None:
            checked, units = read_for_tuning(trajectories, dt)
        else:
            checked = read_series(trajectories, dt=dt, argument="trajectories").trajectories
            units = Units.of(checked)
        rows, self._units = [units.normalise(z) for z in checked], units
        self._member = self._tuned(rows) if self._given is None else least_squares(rows, self._given)
        self.window = self._member.features.window
        return self

    def _tuned(self, rows: Sequence[FloatArray]) -> Member:
        channels = rows[0].shape[1]
        return tuned_member(
            rows,
            self._settings,
            lambda plan, training: [
                (linear_groups(channels, plan.longest), NOISES, RIDGES),
                (truncated_groups(channels, plan.longest, Embeddings(training)), (0.0,), TRUNCATED_RIDGES),
            ],
        )

    def fitted(self) -> tuple[Units, Member]:
        """Units of the data, and the linear member in these units, of a fitted model.

        Returns
        -------
        units : Units
            Mean and standard deviation per channel.
        member : Member
            Features and readout.
        """
        if self._units is None or self._member is None:
            raise InputError("model", "TimeDelayedDMD", "has no data yet", "call fit(trajectories, dt) first")
        return self._units, self._member

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
        units, member = self.fitted()
        return units.restore(roll([member], as_windows(windows, units), steps, ceiling=_CEILING)[0])


def least_squares(trajectories: Sequence[FloatArray], window: int) -> Member:
    """Linear member for the increments, by least squares."""
    return least_squares_with_inputs(trajectories, window, trajectories[0].shape[1])


def least_squares_with_inputs(trajectories: Sequence[FloatArray], window: int, outputs: int) -> Member:
    """Linear member for the increments of the first ``outputs`` channels; the other channels are inputs."""
    channels = trajectories[0].shape[1]
    usable = [z for z in trajectories if len(z) > window]
    if not usable:
        longest = max(len(z) for z in trajectories)
        raise InputError("window", window, f"must be below the {longest} samples of the longest trajectory", "lower it")
    rows = np.concatenate([flat_windows(z, window) for z in usable])
    targets = np.concatenate([(z[window:] - z[window - 1 : -1])[:, :outputs] for z in usable])
    features = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    operator = np.linalg.lstsq(features, targets, rcond=None)[0]
    return Member(FeatureMap(channels, lags(channels, window)), operator[None])
