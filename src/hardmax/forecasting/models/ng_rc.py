"""The next-generation reservoir (NG-RC): polynomials of a few lags, a ridge readout, tuned on held-out rollouts."""

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


class NextGenerationReservoir:
    """NG-RC with its lags, their spacing, degree, ridge and window noise chosen by held-out rollouts."""

    name = "NG-RC"

    def __init__(self, *, seconds: float | None = None, random_state: int = 0) -> None:
        self.window = 1
        self._settings = Settings(None, None, 1, None, seconds, random_state, False)

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Search and refit."""
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
        """Forecasts ``(starts, steps, channels)``."""
        paths = roll([self._member], as_windows(windows, self._units), steps, ceiling=_CEILING)[0]
        return self._units.restore(paths)
