"""Tuning of baselines by validation rollouts, within a budget of processor time.

Every baseline gets the validation part, the horizon and the score by which the time-delayed transformer is selected.
Baselines differ in ``_trials``: their settings, the usual ones first, so that a short search has tried those.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Protocol, Self

import numpy as np

from ...errors import InputError, MissingExtraError
from ..data.series import as_windows, read_for_tuning
from ..protocol import FloatArray
from ..search.model_search import plan_for
from ..search.time_budget import TimeBudget
from ..search.validation import Fold, make_folds
from ..settings import Settings


def baseline_package(name: str, purpose: str) -> ModuleType:
    """The module by this name, or an error with its purpose and how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError:
        raise MissingExtraError(name.partition(".")[0], "rivals", purpose) from None


_CONTEXT = 200
"""Samples before each validation start: an upper limit on the window of a setting."""
_CEILING = 1e3
"""Standard deviations beyond which a rollout counts as diverged."""
SMALLEST_SCALE = 1e-12
"""Added to standard deviations, so that a constant increment does not divide by zero."""


class Trial(Protocol):
    """One setting of a model, in normalised units, with one readout or several that are solved at once."""

    @property
    def window(self) -> int:
        """Number of samples that a forecast starts from."""
        ...

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Itself, fitted to trajectories (samples, channels)."""
        ...

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """Forecasts of every readout, shape (readouts, starts, steps, channels)."""
        ...

    def only(self, readout: int) -> Self:
        """The same setting with one of its readouts, not fitted."""
        ...


class OneReadout:
    """A setting with one readout."""

    def only(self, readout: int) -> Self:
        """Itself, because there is one readout."""
        return self


@dataclass
class LagTrial(OneReadout):
    """A setting on ``count`` lags, ``spacing`` samples apart."""

    count: int
    spacing: int

    @property
    def window(self) -> int:
        """Number of samples from the earliest lag to the latest."""
        return (self.count - 1) * self.spacing + 1


class TunedBaseline(ABC):
    """A baseline that tunes its settings for some processor time and refits the best on all data.

    Parameters
    ----------
    seconds
        Budget of processor time for tuning; the setting in progress is finished.
    horizon
        Number of steps of the validation rollouts; None takes that of the time-delayed transformer.
    random_state
        Seed of the random numbers.
    """

    name: str
    window: int

    def __init__(self, *, seconds: float = 10.0, horizon: int | None = None, random_state: int = 0) -> None:
        self.seconds = seconds
        self.horizon = horizon
        self.random_state = random_state
        self.tried_ = 0
        self.score_ = np.inf

    @abstractmethod
    def _trials(self, trajectories: Sequence[FloatArray], dt: float, rng: np.random.Generator) -> Iterator[Trial]:
        """Settings to try, the usual ones first."""

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Tune the settings on validation rollouts, and refit the best on all data.

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
        time_budget = TimeBudget(self.seconds, for_the_search=1.0)
        checked, self._units = read_for_tuning(trajectories, dt)
        data = [self._units.normalise(z) for z in checked]
        context = min(_CONTEXT, max(2, min(len(z) for z in data) // 4))
        settings = Settings(None, self.horizon, 1, None, None, self.random_state, False)
        fold = make_folds(data, data[0].shape[1], context, plan_for(data, settings).horizon)[0]
        best: Trial | None = None
        rng = np.random.default_rng(self.random_state)
        for trial in self._trials(data, dt, rng):
            if trial.window > context:
                continue
            scores = self._scores(trial, fold, dt)
            self.tried_ += len(scores)
            k = int(np.argmin(scores))
            if best is None or scores[k] < self.score_:
                self.score_, best = float(scores[k]), trial.only(k)
            if not time_budget.within():
                break
        if best is None:
            raise InputError(
                "trajectories",
                f"{min(len(z) for z in data)} samples",
                "are too short for this model",
                "pass longer ones",
            )
        self._chosen = best.fit(data, dt)
        self.window = best.window
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
            Forecasts, shape (starts, steps, channels); NaN after a divergence.
        """
        seen = as_windows(windows, self._units)
        with np.errstate(all="ignore"):
            ahead = self._chosen.roll(seen, steps)[0]
        diverged = ~(np.abs(ahead).max(axis=-1, initial=0.0) < _CEILING)
        ahead = np.where(np.maximum.accumulate(diverged, axis=1)[..., None], np.nan, ahead)
        return self._units.restore(ahead)

    @staticmethod
    def _scores(trial: Trial, fold: Fold, dt: float) -> FloatArray:
        with np.errstate(all="ignore"):
            ahead = trial.fit(fold.training, dt).roll(fold.windows, fold.horizon)
        return fold.score(np.nan_to_num(ahead, nan=_CEILING, posinf=_CEILING, neginf=-_CEILING))
