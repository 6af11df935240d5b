"""The time-delayed transformer as an estimator: fit a record, forecast from its end or from any window."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, final

import numpy as np

from ..errors import InputError
from ..progress import Progress
from ..scalars import as_count
from ..threads import one_thread
from .analysis import ModelAnalysis
from .data.continued import check_continues, follows_the_rule, in_fit_order
from .data.exogenous_inputs import inputs_over
from .data.labels import labels_of
from .data.series import Gaps, Irregular, as_array
from .data.units import Scaling
from .fitting import fit_forecaster
from .forecast import ErrorDistribution, Forecast, outcome_of
from .model_files import read_fitted, save_fitted
from .online import UPDATE_BLOCK, Online, extend, move_of_constant, read_samples, start_online
from .protocol import FloatArray
from .rollout import roll_ahead


@final
class TimeDelayedTransformer(ModelAnalysis):
    r"""Forecaster of a dynamical system from delay windows, with an explicit linear path and nonlinear features.

    In normalised units, with features :math:`\phi` of the last samples,

    .. math:: z_{k+1} = z_k + B\,[1;\ z_k, \ldots, z_{k-p};\ \phi(z_k, \ldots, z_{k-p})].

    The default recipe searches a family that contains time-delayed DMD (lags only), next-generation reservoirs
    (polynomials), the echo state network, and attention with a feed-forward layer whose inner weights are trained by
    variable projection; every readout :math:`B` is solved exactly. The model with the lowest validation rollout error
    whose long rollouts stay bounded is selected. Unless it is far more accurate than the simplest rules, it is compared
    with seasonal naive, drift, medians, exponential smoothing, seasonal ARIMA, seasonal-trend decomposition, seasonal
    differences, analogues, and a mean of the best, by forecasts from rolling origins. What is selected is refitted on
    all data.

    Parameters
    ----------
    delays
        Number of samples before the latest that the longest window holds; None chooses it from the data.
    recipe
        ``"family"``, or ``"paper"`` for the published model trained by AdamW on increments.
    ablation
        Replacement for attention: None (attention), ``"uniform"`` or ``"mlp"``.
    pod
        Number of modes to which fields are reduced before fitting, or the share of the energy that the modes hold.
        None for series.
    horizon
        Number of steps over which models are compared; None takes twenty times the lag spacing.
    restarts
        Number of sets of inner weights that are trained.
    seconds
        Budget of processor time of a fit, for comparisons at equal cost; None for no such limit. It is checked
        between units of work; simple models have 15 % of it in any case.
    budget
        Wall seconds that a fit may take, and a backtest again; None for no limit. It is checked between units of
        work, and every kind of simple model is tried once, so small budgets are exceeded by some seconds. A search that
        was ended by it says so in ``report_``; one that was not gives the same model for the same ``random_state``
        every time.
    model
        Model to fit: ``"auto"`` selects among all, and forecasts small counts by whole counts; ``"family"`` among
        TD-DMD, NG-RC, reservoirs and attention, as earlier versions did; or one kind: ``"td-dmd"``, ``"ng-rc"``,
        ``"reservoir"``, ``"attention"``, ``"persistence"``, ``"seasonal-naive"``, ``"drift"``, ``"median"``,
        ``"smoothing"``, ``"arima"``, ``"seasonal-trend"``, ``"seasonal-difference"`` or ``"analogue"``.
    season
        Length of the season in samples, or a list of several; None finds seasons from the data, ``[]`` uses none.
    random_state
        A whole number, a generator or None.
    progress
        Whether the stages of a fit or a backtest are reported, with an estimate of the time left, as a bar on a
        terminal and otherwise as one line per stage on the error stream: True from the start, None after one second,
        False never. A function is called with ``(stage, done, total)``; its errors end the work.
    transform
        ``"log"`` fits the logarithms of the data (of data plus one for counts with zeros), ``"auto"`` those of channels
        whose spread grows with their level, None the data themselves.
    lower, upper
        Bounds of the data, such as 0 for a power: one number, or one per channel. Forecasts and intervals stay within.
    """

    name = "TD-TF"

    def __init__(
        self,
        delays: int | None = None,
        *,
        recipe: str = "family",
        ablation: str | None = None,
        pod: int | float | None = None,
        horizon: int | None = None,
        restarts: int = 3,
        seconds: float | None = None,
        budget: float | None = 300.0,
        model: str = "auto",
        season: int | Sequence[int] | None = None,
        random_state: int | np.random.Generator | None = None,
        progress: Progress = None,
        transform: str | None = None,
        lower: object = None,
        upper: object = None,
    ) -> None:
        self.delays = delays
        self.recipe = recipe
        self.ablation = ablation
        self.pod = pod
        self.horizon = horizon
        self.restarts = restarts
        self.seconds = seconds
        self.budget = budget
        self.model = model
        self.season = season
        self.random_state = random_state
        self.progress = progress
        self.transform = transform
        self.lower = lower
        self.upper = upper

    # fitting

    @one_thread()
    def fit(
        self,
        series: object,
        dt: float | None = None,
        *,
        times: object = None,
        u: object = None,
        gaps: Gaps = "refuse",
        irregular: Irregular = "refuse",
    ) -> Self:
        """Fit the model to one record or to several.

        Channels are normalised, so units may differ by any factor; constant channels are forecast as constant.

        Parameters
        ----------
        series
            One record (samples, channels), or a list of records of any lengths; fields (samples, ...) with ``pod``.
        dt
            Time between samples; durations count in seconds. Where neither ``dt`` nor ``times`` is given and the data
            have times of their own (a pandas index of dates, an xarray coordinate, a series of
            :mod:`hardmax.datasets`), these are used; otherwise samples are 1 apart.
        times
            Time of each sample, in place of ``dt``; dates and durations count in seconds.
        u
            Exogenous inputs, one row per sample.
        gaps
            ``"refuse"`` missing values, or ``"interpolate"`` them linearly.
        irregular
            ``"refuse"`` uneven times, or ``"resample"`` to the median step.

        Returns
        -------
        TimeDelayedTransformer
            The fitted estimator itself.
        """
        return self._store(
            fit_forecaster(
                series,
                self._settings(),
                recipe=self.recipe,
                pod=self.pod,
                dt=dt,
                times=times,
                u=u,
                gaps=gaps,
                irregular=irregular,
                scaling=Scaling(self.transform, self.lower, self.upper),
            )
        )

    # updates

    @one_thread()
    def update(self, samples: object, *, u: object = None) -> Self:
        """Continue the record with new samples: learn them, and forecast from the newest one.

        The next forecast is that of a fit of the readouts to all data, up to rounding; features, units, window noise
        and ridge stay those of the fit. Each sample is predicted before it is learned, with readouts that hold all but
        the newest samples (1 % of the record, or those of a block of 256 where more are given at once); where these
        errors have grown, ``drift_`` raises an alarm.

        A NaN is a missing value: the other channels of that sample are learned, windows that contain it are not.
        Forecasts fill it by the model's own prediction.

        Parameters
        ----------
        samples
            Samples after the end of the record, at the same time step, shape (samples, channels), or (channels,) for
            one sample; fields with ``pod``. NaN where a value is missing. Dates of a table must follow those of the
            record, and its columns are brought into the order of the fit.
        u
            Inputs of these samples, for a model fitted with inputs.

        Returns
        -------
        TimeDelayedTransformer
            The estimator itself, updated.
        """
        predictor = self._last_solved()
        samples = in_fit_order("samples", samples, self.labels_.names)
        u = in_fit_order("u", u, self.labels_.inputs)
        for argument, table in (("samples", samples), ("u", u)):
            check_continues(argument, table, self.labels_, self.last_time_, self.dt_)
        new = self._new_samples(samples)
        if self._online is None:
            self._online = self._start_online()
        ahead = inputs_over(u, self.forcing_, self.last_window_[None], len(new), self.last_inputs_)
        inputs = None if ahead is None or self.forcing_ is None else self.forcing_.units.normalise(ahead[0])
        length = len(self.last_window_)
        scaled, window = self.units_.normalise(new), self.units_.normalise(self.last_window_)
        online = self._online
        for first in range(0, len(new), UPDATE_BLOCK):
            some = scaled[first : first + UPDATE_BLOCK]
            over = None if inputs is None else inputs[first : first + length + len(some)]
            found = extend(online, predictor, window, some, over)
            online, predictor, window = found.online, found.predictor, found.window
        moved, before = move_of_constant(new, self.units_), self._online.drift
        if moved and not before.constant_until:
            online = replace(online, drift=replace(online.drift, constant_until=before.samples + moved))
        self._online, self._predictor, self._newest, self.drift_ = online, predictor, None, online.drift
        # Observed values as given, without the rounding of units there and back.
        kept = np.concatenate([self.last_window_, new])[-length:]
        self.last_window_ = np.where(np.isnan(kept), self.units_.restore(window), kept)
        self.last_inputs_ = None if ahead is None else ahead[0][-length:]
        self.last_time_ += self.dt_ * len(new)
        return self

    def _new_samples(self, samples: object) -> FloatArray:
        array = as_array("samples", samples)
        if self.pod_ is not None and array.shape[-len(self.pod_.shape) :] == self.pod_.shape:
            array = self.pod_.reduce(array)
        return read_samples(array, self.channels_)

    def _start_online(self) -> Online:
        if self.recipe == "paper":
            raise InputError(
                "recipe", "'paper'", "has a readout trained by AdamW, which cannot be updated", "fit the default recipe"
            )
        if self.fitted_ is None or self._rows is None:
            raise InputError(
                "update",
                "a model from a file",
                "needs the sums of the fit, which this file does not hold",
                "save the fitted model with updatable=True",
            )
        return start_online(self.fitted_, self._rows, self.seed_)

    # forecasting

    @one_thread()
    def forecast(self, steps: int, *, window: object = None, u: object = None) -> Forecast:
        """Forecast from the end of the record, or from given windows.

        Parameters
        ----------
        steps
            Number of samples ahead.
        window
            Samples to start from, oldest first and at least :attr:`window` of them: (samples, channels), or
            (starts, samples, channels) for many starts at once. None starts from the end of the record.
        u
            Inputs, for a model fitted with inputs: those of the steps ahead, or with ``window`` those of the window
            and the steps together. The columns of a table are brought into the order of the fit.

        Returns
        -------
        Forecast
            Values (steps, channels), or (starts, steps, channels) for many starts, with spread, times and outcome.
        """
        self._require_fit()
        steps = as_count("steps", steps, 1)
        window = in_fit_order("window", window, self.labels_.names)
        u = in_fit_order("u", u, self.labels_.inputs)
        if window is None:
            check_continues("u", u, self.labels_, self.last_time_, self.dt_)
        single, states, inputs = self._start(window, u, steps)
        predictor = self.predictor_
        ahead = roll_ahead(predictor, self.units_, self.forcing_, states, steps, inputs)
        start = self.last_time_ if window is None else 0.0
        labels = self.labels_ if window is None else labels_of(window, 0.0, states.shape[1])
        if window is not None and follows_the_rule(window, self.labels_):
            labels = replace(labels, rule=self.labels_.rule)  # few dates may show none, or another one
        if not labels.names:
            labels = replace(labels, names=self.labels_.names)
        times = np.asarray(start + self.dt_ * np.arange(1, steps + 1), dtype=np.float64)
        outcome = outcome_of(ahead, steps, predictor is not None and predictor.fades)
        growth = None if predictor is None else predictor.errors
        known = predictor is None or growth is not None
        # One start is the forecast itself, without an axis of starts.
        pick = 0 if single else slice(None)
        left = int(ahead.left[0]) if single else ahead.left
        distribution = ErrorDistribution(ahead.normalised[pick], growth, self.units_) if known else None
        return Forecast(ahead.values[pick], ahead.spread[pick], times, outcome, left, distribution, labels)

    def predict(self, window: object, *, u: object = None) -> FloatArray:
        """Next sample after each window.

        Parameters
        ----------
        window
            Samples, oldest first: (samples, channels), or (starts, samples, channels).
        u
            Inputs of the window and of the next sample, for a model fitted with inputs.

        Returns
        -------
        ndarray
            The next sample, shape (channels,), or (starts, channels) for many windows.
        """
        return np.asarray(self.forecast(1, window=window, u=u).values[..., 0, :])

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """Forecasts as a plain array, the interface shared by all forecasters.

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
        values = self.forecast(steps, window=np.asarray(windows)).values
        return values if values.ndim == 3 else values[None]

    # files

    @one_thread()
    def save(self, folder: str | os.PathLike[str], *, updatable: bool = False) -> Path:
        """Write the model into a folder, from which :func:`hardmax.load_forecaster` reads it.

        Parameters
        ----------
        folder
            Folder, created where it does not exist.
        updatable
            Whether the file holds what :meth:`update` needs: a square matrix for each readout, some megabytes for
            hundreds of features. After the first update it is always held.

        Returns
        -------
        Path
            The folder.
        """
        self._require_fit()
        if updatable and self._online is None:
            self._last_solved()
            self._online = self._start_online()
        return save_fitted(self._state(), self.get_params(), folder)

    @classmethod
    def _from_file(cls, folder: str | os.PathLike[str]) -> Self:
        parameters, fitted = read_fitted(folder)
        return cls(**parameters)._store(fitted)


def load_forecaster(folder: str | os.PathLike[str]) -> TimeDelayedTransformer:
    """Forecaster from a folder; it needs NumPy only and forecasts exactly as before it was saved.

    Parameters
    ----------
    folder
        Folder into which :meth:`TimeDelayedTransformer.save <hardmax.TimeDelayedTransformer.save>` wrote the model.

    Returns
    -------
    TimeDelayedTransformer
        The fitted model, without its training data.
    """
    return TimeDelayedTransformer._from_file(folder)
