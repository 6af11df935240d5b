"""The time-delayed transformer as an estimator: fit a record, forecast from its end or from any window."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from ..errors import HardmaxError, InputError
from ..progress import Progress
from ..scalars import as_count
from ..threads import one_thread
from .data.exogenous_inputs import Forcing, inputs_over, read_new_data, read_window
from .data.labels import Labels, labels_of
from .data.pod import Pod
from .data.series import Gaps, Irregular, as_array, drop_short
from .data.units import Scaling, Units
from .diagnostics.ablation import Ablation, ablate, ablate_published
from .diagnostics.backtest import Backtest, backtest
from .diagnostics.report import Report
from .diagnostics.spectrum import (
    ComplexArray,
    LagAttention,
    Spectrum,
    lag_attention,
    local_eigenvalues,
    lyapunov_exponent,
    spectrum,
)
from .fitting import FittedForecaster, fit_forecaster, normalised_rows
from .forecast import ErrorDistribution, Forecast, outcome_of
from .model_files import read_fitted, save_fitted
from .online import UPDATE_BLOCK, Drift, Online, extend, read_samples, start_online
from .protocol import FloatArray
from .rollout import Predictor, normalised, roll_ahead
from .search.model_search import SearchResult
from .settings import Parameters, Settings, check_settings


class NotFittedError(HardmaxError, ValueError, AttributeError):
    """Error of methods that need a fitted model."""


class TimeDelayedTransformer(Parameters):
    r"""Forecaster of a dynamical system from delay windows, with an explicit linear path and nonlinear features.

    In normalised units, with features :math:`\phi` of the last samples,

    .. math:: z_{k+1} = z_k + B\,[1;\ z_k, \ldots, z_{k-p};\ \phi(z_k, \ldots, z_{k-p})].

    The default recipe searches a family that contains time-delayed DMD (lags only), next-generation reservoirs
    (polynomials), the echo state network, and attention with a feed-forward layer whose inner weights are trained by
    variable projection; every readout :math:`B` is solved exactly. The model with the lowest validation rollout error
    whose long rollouts stay bounded is selected and refitted on all data; TD-DMD is always among the candidates.

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
        Budget of processor time for the search, for comparisons at equal cost; None for no such limit.
    budget
        Wall seconds that a fit may take, and a backtest again; None for no limit. It is checked between units of
        work, so small budgets are exceeded by a second or two. A search that was ended by it says so in ``report_``;
        one that was not gives the same model for the same ``random_state`` every time.
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

    def _store(self, fitted: FittedForecaster) -> Self:
        """The estimator with its learned attributes set."""
        self.seed_ = fitted.seed
        self.dt_ = fitted.dt
        self.last_time_ = fitted.last_time
        self.units_: Units = fitted.units
        self.channels_ = len(fitted.units.mean)
        self.forcing_: Forcing | None = fitted.forcing
        self.pod_: Pod | None = fitted.pod
        self.predictor_: Predictor | None = fitted.predictor
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
            self.predictor_,
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

    # updates

    @one_thread()
    def update(self, samples: object, *, u: object = None) -> Self:
        """Continue the record with new samples: learn them, and forecast from the newest one.

        The readouts become those of a fit of the readouts to all data, up to rounding; features, units, window noise
        and ridge stay those of the fit. Each sample is predicted before it is learned (in blocks of 256 samples
        where more are given at once); where these errors have grown, ``drift_`` raises an alarm.

        A NaN is a missing value: the other channels of that sample are learned, windows that contain it are not.
        Forecasts fill it by the model's own prediction.

        Parameters
        ----------
        samples
            Samples after the end of the record, at the same time step, shape (samples, channels), or (channels,) for
            one sample; fields with ``pod``. NaN where a value is missing.
        u
            Inputs of these samples, for a model fitted with inputs.

        Returns
        -------
        TimeDelayedTransformer
            The estimator itself, updated.
        """
        predictor = self._require_predictor()
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
        self._online, self.predictor_, self.drift_ = online, predictor, online.drift
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

    @property
    def window(self) -> int:
        """Number of samples that a forecast starts from."""
        self._require_fit()
        return 1 if self.predictor_ is None else self.predictor_.window

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
            and the steps together.

        Returns
        -------
        Forecast
            Values (steps, channels), or (starts, steps, channels) for many starts, with spread, times and outcome.
        """
        self._require_fit()
        steps = as_count("steps", steps, 1)
        single, states, inputs = self._start(window, u, steps)
        ahead = roll_ahead(self.predictor_, self.units_, self.forcing_, states, steps, inputs)
        start = self.last_time_ if window is None else 0.0
        labels = self.labels_ if window is None else labels_of(window, 0.0, states.shape[1])
        if not labels.names:
            labels = replace(labels, names=self.labels_.names)
        times = np.asarray(start + self.dt_ * np.arange(1, steps + 1), dtype=np.float64)
        fades = self.predictor_ is not None and self.predictor_.fade.fallback is not None
        outcome = outcome_of(ahead.left, steps, ahead.far, fades)
        growth = None if self.predictor_ is None else self.predictor_.errors
        known = self.predictor_ is None or growth is not None
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

    def reconstruct(self, values: object) -> FloatArray:
        """Fields of POD coefficients, for a model fitted with ``pod``.

        Parameters
        ----------
        values
            Coefficients, shape (..., rank), or a forecast.

        Returns
        -------
        ndarray
            Fields, shape (..., \\*shape of a field).
        """
        return self._require_pod().reconstruct(self._coefficients("values", np.asarray(values)))

    def reconstruct_spread(self, spread: object) -> FloatArray:
        """Spread at every point of a field, for a model fitted with ``pod``.

        The errors of different coefficients, and of what the modes leave out, are taken as uncorrelated.

        Parameters
        ----------
        spread
            A forecast, or the spread of one, shape (..., rank).

        Returns
        -------
        ndarray
            Spread, shape (..., \\*shape of a field).
        """
        given = spread.spread if isinstance(spread, Forecast) else spread
        return self._require_pod().reconstruct_spread(self._coefficients("spread", given))

    # evaluation

    @one_thread()
    def backtest(
        self, horizon: int | None = None, starts: int = 20, *, series: object = None, u: object = None
    ) -> Backtest:
        """Forecasts of the last quarter of the data by models fitted to the first three quarters.

        The first row is the selected model, with its coefficients and its held-out errors from the first three quarters
        (or trajectories) alone. Where a search without the last quarter selects another kind of model, that one has a
        row too. Beside them are persistence, the mean, seasonal naive, analogues, TD-DMD and NG-RC. It takes about as
        long as a fit and has a ``budget`` as large.

        Parameters
        ----------
        horizon
            Number of steps of each forecast; None chooses it.
        starts
            Number of starts.
        series
            Data sampled every ``dt_``; None takes those of the fit. A model from a file needs them.
        u
            Inputs of ``series``, for a model fitted with inputs.

        Returns
        -------
        Backtest
            Errors of the model and of the baselines.
        """
        rows, settings = self._data_for("backtest", series, u), self._settings_again()
        if horizon is not None:
            horizon = as_count("horizon", horizon, 2)
        starts = as_count("starts", starts, 1)
        return backtest(
            rows,
            len(self.units_.keep),
            settings,
            self.dt_,
            horizon,
            starts,
            recipe=self.recipe,
            kept=self._kept,
            units=self.units_,
        )

    @one_thread()
    def ablate(self, *, series: object = None, u: object = None) -> Ablation:
        """Validation errors with each part of the attention features changed or removed.

        Parameters
        ----------
        series
            Data sampled every ``dt_``; None takes those of the fit. A model from a file needs them.
        u
            Inputs of ``series``, for a model fitted with inputs.

        Returns
        -------
        Ablation
            One row per variant.
        """
        rows, settings = self._data_for("ablate", series, u), self._settings_again()
        return (ablate_published if self.recipe == "paper" else ablate)(rows, len(self.units_.keep), settings)

    # spectra and attention

    def eigenvalues(self) -> ComplexArray:
        """Eigenvalues of the linear path (TD-DMD) per time step.

        Returns
        -------
        ndarray
            Complex eigenvalues, shape (window * channels,), largest modulus first.
        """
        return self._spectrum().eigenvalues

    def frequencies(self) -> FloatArray:
        """Frequencies of the eigenvalues, in cycles per unit of time.

        Returns
        -------
        ndarray
            Frequencies, shape (eigenvalues,), in the order of :meth:`eigenvalues`.
        """
        return np.asarray(np.angle(self.eigenvalues()) / (2 * np.pi * self.dt_))

    def growth_rates(self) -> FloatArray:
        """Growth rates of the eigenvalues, per unit of time; negative ones decay.

        Returns
        -------
        ndarray
            Rates, shape (eigenvalues,), in the order of :meth:`eigenvalues`.
        """
        return np.asarray(np.log(np.maximum(np.abs(self.eigenvalues()), 1e-300)) / self.dt_)

    def modes(self) -> ComplexArray:
        """DMD modes of unit length as columns; as fields where the model has a POD.

        Returns
        -------
        ndarray
            Modes, shape (channels, eigenvalues), or (points, eigenvalues) with a POD.
        """
        modes = self._spectrum().modes
        if self.pod_ is None:
            return modes
        return np.asarray((modes.T @ self.pod_.modes[self.units_.keep]).T)

    @one_thread()
    def local_eigenvalues(self, window: object = None, *, u: object = None) -> ComplexArray:
        """Eigenvalues of the derivative of the learned map at one window.

        Parameters
        ----------
        window
            Samples (samples, channels), oldest first; None takes the end of the record.
        u
            Inputs of the window and of the next sample, for a model fitted with inputs; without ``window`` those of
            the next sample.

        Returns
        -------
        ndarray
            Complex eigenvalues, largest modulus first.
        """
        predictor = self._require_predictor()
        _, states, inputs = self._start(window, u, 1)
        rows, future = normalised(self.units_, self.forcing_, states, inputs)
        return local_eigenvalues(predictor, rows[0], None if future is None else future[0])

    @one_thread()
    def lyapunov_exponent(self, steps: int = 4000) -> float:
        """Largest Lyapunov exponent of the learned map, per unit of time, from the end of the record onwards.

        Parameters
        ----------
        steps
            Number of steps over which growth is averaged.

        Returns
        -------
        float
            The exponent.
        """
        predictor = self._require_predictor()
        if self.forcing_ is not None:
            raise InputError("u", "a model with inputs", "has no exponent of its own", "fit without inputs")
        windows = self.units_.normalise(self.last_window_)[None]
        return lyapunov_exponent(predictor, windows, self.dt_, as_count("steps", steps, 100), self.seed_)

    @one_thread()
    def attention(self, window: object = None) -> LagAttention:
        """Attention weights of the latest sample over the lags.

        Parameters
        ----------
        window
            Samples (samples, channels), or (starts, samples, channels); None takes the end of the record.

        Returns
        -------
        LagAttention
            Weights, shape (starts, lags), averaged over the networks.
        """
        predictor = self._require_predictor()
        _, states = self._states(window)
        rows = self.units_.normalise(states)
        if self.forcing_ is not None:
            rows = np.concatenate([rows, np.zeros((*rows.shape[:2], len(self.forcing_.units.keep)))], axis=2)
        found = lag_attention(predictor, rows, self.dt_)
        if found is None:
            raise InputError(
                "attention", None, "was not trained for this model", "fit with more samples or more seconds"
            )
        return found

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
            self._require_predictor()
            self._online = self._start_online()
        return save_fitted(self._state(), self.get_params(), folder)

    @one_thread()
    def _spectrum(self) -> Spectrum:
        predictor = self._require_predictor()
        return spectrum(predictor.linear, predictor.outputs, self.units_.scale[self.units_.keep])

    def _require_pod(self) -> Pod:
        self._require_fit()
        if self.pod_ is None:
            raise InputError("pod", None, "was not used", "fit with pod=8 to reduce fields and reconstruct them")
        return self.pod_

    def _coefficients(self, argument: str, value: object) -> FloatArray:
        array, rank = as_array(argument, value), self._require_pod().rank
        if array.shape[-1:] != (rank,):
            problem = f"must end in {rank} coefficients"
            raise InputError(argument, f"shape {array.shape}", problem, f"pass the {argument} of a forecast")
        return array

    def _require_predictor(self) -> Predictor:
        self._require_fit()
        if self.predictor_ is None:
            raise InputError("series", "constant channels only", "has no dynamics to analyse", "fit data that vary")
        return self.predictor_

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
        record, inputs = read_new_data(series, u, self.dt_, self.channels_, self.pod_, self.forcing_)
        return normalised_rows(*drop_short(record, inputs, self.delays)[:2], self.units_, self.forcing_)

    def _settings_again(self) -> Settings:
        """Settings with the seed of the fit, which differs from that of ``random_state`` where that is not a number."""
        return replace(self._settings(), seed=self.seed_)

    def _states(self, window: object) -> tuple[bool, FloatArray]:
        if window is None:
            return True, self.last_window_[None]
        return read_window(window, self.channels_, self.window, self.pod_)

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
