"""Choose the settings of a baseline by validation rollouts, within a budget of processor time.

Every rival gets the held-out part, the horizon and the score that our own model is chosen by. What differs is in
``_trials``: settings in the order in which a person would try them, so that a short search has tried the sensible ones.
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
    """The module by this name, or an error that says what it is for and how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError:
        raise MissingExtraError(name.partition(".")[0], "rivals", purpose) from None


_CONTEXT = 200
_CEILING = 1e3
SMALLEST_SCALE = 1e-12


class Trial(Protocol):
    """One setting of a model, in normalised units; it may stand for several readouts that are solved at once."""

    @property
    def window(self) -> int:
        """How many samples it looks at."""
        ...

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Learn from trajectories."""
        ...

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """Forecasts of every readout, ``(readouts, starts, steps, channels)``."""
        ...

    def only(self, readout: int) -> Self:
        """The same setting with one of its readouts; to be fitted again."""
        ...


class OneReadout:
    """A setting that stands for one readout alone."""

    def only(self, readout: int) -> Self:
        """Itself: there is no other."""
        return self


@dataclass
class LagTrial(OneReadout):
    """A setting that looks at ``count`` samples, ``spacing`` apart."""

    count: int
    spacing: int

    @property
    def window(self) -> int:
        """From the earliest of them to the latest."""
        return (self.count - 1) * self.spacing + 1


class TunedBaseline(ABC):
    """A rival that searches its settings for ``seconds`` of processor time and refits the best on all data."""

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
        """Settings to try, best guesses first."""

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Search settings on held-out rollouts, then fit the best one to everything."""
        time_budget = TimeBudget(self.seconds)
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
        """Go on from each window; NaN after a divergence."""
        seen = as_windows(windows, self._units)
        with np.errstate(all="ignore"):
            ahead = self._chosen.roll(seen, steps)[0]
        gone = ~(np.abs(ahead).max(axis=-1, initial=0.0) < _CEILING)
        ahead = np.where(np.maximum.accumulate(gone, axis=1)[..., None], np.nan, ahead)
        return self._units.restore(ahead)

    @staticmethod
    def _scores(trial: Trial, fold: Fold, dt: float) -> FloatArray:
        with np.errstate(all="ignore"):
            ahead = trial.fit(fold.training, dt).roll(fold.windows, fold.horizon)
        return fold.score(np.nan_to_num(ahead, nan=_CEILING, posinf=_CEILING, neginf=-_CEILING))
