"""What a fitted forecaster holds, and the checks of its methods: base class of the estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from ..errors import HardmaxError, InputError
from ..progress import Progress
from .data.continued import all_in_fit_order, check_even, in_fit_order
from .data.exogenous_inputs import Forcing, inputs_over, read_new_data, read_window
from .data.labels import Labels
from .data.pod import Pod
from .data.series import drop_short
from .data.units import Units
from .diagnostics.report import Report
from .fitting import FittedForecaster, count_of, normalised_rows, zero_of
from .online import Drift, Online
from .protocol import FloatArray
from .rollout import Predictor
from .search.model_search import SearchResult
from .settings import Parameters, Settings, check_settings


class NotFittedError(HardmaxError, ValueError, AttributeError):
    """Error of methods that need a fitted model."""


class LearnedModel(Parameters, ABC):
    """Base of the estimator: its arguments, the attributes that a fit sets, and checks that they are there."""

    delays: int | None
    recipe: str
    ablation: str | None
    pod: int | float | None
    horizon: int | None
    restarts: int
    seconds: float | None
    budget: float | None
    model: str
    season: int | Sequence[int] | None
    random_state: int | np.random.Generator | None
    progress: Progress
    transform: str | None
    lower: object
    upper: object
    _newest: Predictor | None

    @abstractmethod
    def fit(self, series: object, dt: float | None = None) -> Self:
        """Fit the model to one record or to several."""

    @property
    def window(self) -> int:
        """Number of samples that a forecast starts from."""
        self._require_fit()
        return 1 if self._predictor is None else self._predictor.window

    @property
    def predictor_(self) -> Predictor | None:
        """The fitted model in normalised units, with readouts of all samples so far; None where no channel varies."""
        self._require_fit()
        if self._predictor is None or self._online is None:
            return self._predictor
        if self._newest is None:
            self._newest = self._online.solved(self._predictor)
        return self._newest

    def _store(self, fitted: FittedForecaster) -> Self:
        """The estimator with its learned attributes set."""
        self.seed_ = fitted.seed
        self.dt_ = fitted.dt
        self.last_time_ = fitted.last_time
        self.units_: Units = fitted.units
        self.channels_ = len(fitted.units.mean)
        self.forcing_: Forcing | None = fitted.forcing
        self.pod_: Pod | None = fitted.pod
        self._predictor: Predictor | None = fitted.predictor
        self._newest = None
        self.last_window_ = fitted.last_window
        self.last_inputs_ = fitted.last_inputs
        self.report_: Report = fitted.report
        self.labels_: Labels = fitted.labels
        self._kept = fitted.kept
        self.explained_beyond_linear_ = fitted.explained_beyond_linear
        self.budget_ended_ = fitted.budget_ended
        self.fitted_: SearchResult | None = fitted.search
        self._rows = fitted.rows
        self._online: Online | None = fitted.online
        self.drift_ = Drift() if fitted.online is None else fitted.online.drift
        return self

    def _state(self) -> FittedForecaster:
        """The learned attributes as one value."""
        return FittedForecaster(
            self.seed_,
            self.dt_,
            self.last_time_,
            self.units_,
            self.forcing_,
            self.pod_,
            self._predictor,
            self.last_window_,
            self.last_inputs_,
            self.report_,
            self.explained_beyond_linear_,
            self.budget_ended_,
            self.fitted_,
            self._rows,
            self.labels_,
            self._kept,
            self._online,
        )

    def _settings(self) -> Settings:
        parameters = self.get_params()
        for name in ("pod", "transform", "lower", "upper"):
            del parameters[name]
        return check_settings(**parameters)

    def _require_predictor(self) -> Predictor:
        """The model with readouts of all samples so far."""
        self._last_solved()
        predictor = self.predictor_
        assert predictor is not None  # noqa: S101 (the line above has raised)
        return predictor

    def _last_solved(self) -> Predictor:
        """The model with the readouts that were solved last."""
        self._require_fit()
        if self._predictor is None:
            raise InputError("series", "constant channels only", "has no dynamics to analyse", "fit data that vary")
        return self._predictor

    def _data_for(self, purpose: str, series: object, u: object) -> list[FloatArray]:
        """Normalised rows of the given data, or of the fit where ``series`` is None."""
        self._require_predictor()
        if series is None:
            if u is not None:
                raise InputError("u", f"a {type(u).__name__}", "needs the series it belongs to", "pass series= too")
            if self._rows is None:
                raise InputError(
                    "series",
                    None,
                    f"is needed to {purpose} a model from a file, which does not hold its data",
                    f"pass the data it was fitted to: {purpose}(series=…)",
                )
            return self._rows
        ordered = all_in_fit_order("series", series, self.labels_.names)
        given = all_in_fit_order("u", u, self.labels_.inputs)
        record, inputs = read_new_data(ordered, given, self.dt_, self.channels_, self.pod_, self.forcing_)
        return normalised_rows(*drop_short(record, inputs, self.delays)[:2], self.units_, self.forcing_)

    def _settings_again(self, rows: Sequence[FloatArray]) -> Settings:
        """Settings of a fit to normalised ``rows``, with the seed of the fit: ``random_state`` may be a generator."""
        data = [self.units_.restore(z[:, : len(self.units_.keep)]) for z in rows]
        count = count_of(data, self.units_)
        return replace(self._settings(), seed=self.seed_, zero=zero_of(self.units_), count=count)

    def _states(self, window: object) -> tuple[bool, FloatArray]:
        if window is None:
            if len(self.last_window_) < self.window:
                problem = f"must have {self.window} samples in the last record, from which forecasts start"
                raise InputError(
                    "series", len(self.last_window_), problem, "put a longer record last, or pass window=…"
                )
            return True, self.last_window_[None]
        check_even(window, self.labels_, self.dt_)
        return read_window(in_fit_order("window", window, self.labels_.names), self.channels_, self.window, self.pod_)

    def _start(self, window: object, u: object, steps: int) -> tuple[bool, FloatArray, FloatArray | None]:
        """Whether there is a single start, the windows, and the inputs over them and the steps ahead."""
        single, states = self._states(window)
        before = self.last_inputs_ if window is None else None
        return single, states, inputs_over(u, self.forcing_, states, steps, before)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "units_")

    def _require_fit(self) -> None:
        if not hasattr(self, "units_"):
            raise NotFittedError("this TimeDelayedTransformer has no data yet: call fit(series, dt=…) first")
