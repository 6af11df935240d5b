"""The time-delayed transformer as an estimator: fit a record, forecast from its end or from any window."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from ..errors import HardmaxError, InputError
from ..progress import Progress
from ..threads import one_thread
from .data.exogenous_inputs import Forcing, inputs_over, read_inputs, read_like_the_fit, read_window
from .data.pod import Pod, fit_pod, read_fields
from .data.series import Gaps, Irregular, Record, Units, as_array, as_list, check_choices, long_enough, read_series
from .data.timestamps import own_times
from .diagnostics.ablation import Ablation, ablate, ablate_published
from .diagnostics.backtest import Backtest, backtest
from .diagnostics.report import Report, report_on
from .diagnostics.spectrum import (
    ComplexArray,
    LagAttention,
    Spectrum,
    lag_attention,
    local_eigenvalues,
    lyapunov_exponent,
    spectrum,
)
from .forecast import Forecast, outcome_of
from .model_files import save_forecaster
from .protocol import FloatArray
from .rollout import Predictor, normalised, roll_ahead
from .search.model_search import Fitted, fit_family
from .settings import Parameters, Settings, settings_of, whole


class NotFittedError(HardmaxError, ValueError, AttributeError):
    """The model has seen no data yet."""


class TimeDelayedTransformer(Parameters):
    r"""Forecast a dynamical system from delay windows, with an explicit linear path and nonlinear features.

    In normalised units, with features :math:`\phi` of the last samples,

    .. math:: z_{k+1} = z_k + B\,[1;\ z_k, \ldots, z_{k-p};\ \phi(z_k, \ldots, z_{k-p})].

    The default recipe searches a family that contains time-delayed DMD (lags only), next-generation reservoirs
    (polynomials), the echo state network, and attention with a feed-forward layer whose inner weights are trained by
    variable projection; every readout :math:`B` is solved exactly. The model with the lowest held-out rollout error
    whose long rollouts stay bounded is kept and refitted on all data; TD-DMD is always among the candidates.

    Parameters
    ----------
    delays
        The longest window looks at this many samples before the latest; None chooses.
    recipe
        ``"family"``, or ``"paper"`` for the published model trained by AdamW on increments.
    ablation
        What stands in place of attention: None (attention), ``"uniform"`` or ``"mlp"``.
    pod
        Reduce fields to so many modes, or to modes that hold this share of the energy, before fitting.
    horizon
        The number of steps over which models are compared; None takes twenty times the lag spacing.
    restarts
        How many sets of inner weights are trained.
    seconds
        A budget of processor time for the search, for comparisons at equal cost; None for no such limit.
    budget
        Wall seconds that a fit may take, and a backtest again; None for no limit. It is asked between pieces of work,
        so small budgets are exceeded by a second or two. A search that ends by it says so in ``report_``; one that
        does not gives the same model for the same ``random_state`` every time.
    random_state
        A whole number, a generator or None.
    progress
        The stages of a fit or a backtest with an estimate of the time left, as a bar on a terminal and else as a line
        a stage on the error stream: True from the start, None once it has taken a second, False never. Or a function
        that is told ``(stage, done, total)``, and whose errors end the work.
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
        """Learn from one record ``(samples, channels)`` or from a list of them, of any lengths.

        ``dt`` is the time between samples, or ``times`` gives the time of each; dates and durations count in seconds.
        Where neither is given and the data bring times (a pandas index of dates, an xarray coordinate, a series of
        :mod:`hardmax.datasets`), those count; else samples are 1 apart. ``u`` are inputs, one row for each sample.
        Missing values are refused unless ``gaps="interpolate"``, uneven times unless ``irregular="resample"``. Channels
        are normalised, so units may differ by any factor; constant channels are forecast as constant.
        """
        settings = settings_of(self)
        self.seed_ = settings.seed
        check_choices(gaps, irregular)
        self.pod_: Pod | None = None
        filled: tuple[str, ...] = ()
        if self.pod is not None:
            if dt is None and times is None:
                times = own_times(as_list(series))
            fields, filled = read_fields(series, gaps)
            self.pod_, coefficients = fit_pod(fields, self.pod)
            series = coefficients
        record = read_series(series, dt=dt, times=times, gaps=gaps, irregular=irregular)
        inputs = None if u is None else read_inputs(u, record.trajectories)
        record, inputs, notes = long_enough(record, inputs, self.delays)
        self.dt_ = record.dt
        self.last_time_ = record.last_time
        self.units_ = Units.of(record.trajectories)
        self.channels_ = len(self.units_.mean)
        self.forcing_ = None if inputs is None else Forcing(Units.of(inputs))
        self.predictor_: Predictor | None = None
        self.fitted_: Fitted | None = None
        self.explained_beyond_linear_ = 0.0
        self.budget_ended_ = False
        self._rows: list[FloatArray] = self._normalised(record, inputs)
        outputs = len(self.units_.keep)
        if outputs:
            self._learn(self._rows, outputs, settings)
        needed = self.window
        self.last_window_ = record.trajectories[-1][-needed:]
        self.last_inputs_ = None if inputs is None else inputs[-1][-needed:]
        self.report_: Report = report_on(self, (*filled, *record.notes, *notes))
        return self

    def _learn(self, rows: Sequence[FloatArray], outputs: int, settings: Settings) -> None:
        if self.recipe == "paper":
            from .models.published import fit_paper  # needs torch

            self.predictor_, self.budget_ended_ = fit_paper(rows, outputs, settings)
            return
        self.fitted_ = fit_family(rows, outputs, settings)
        self.predictor_, self.budget_ended_ = self.fitted_.predictor, self.fitted_.cut
        self.explained_beyond_linear_ = self.fitted_.beyond_linear

    # forecasting

    @property
    def window(self) -> int:
        """How many samples a forecast starts from."""
        self._require_fit()
        return 1 if self.predictor_ is None else self.predictor_.window

    @one_thread()
    def forecast(self, steps: int, *, window: object = None, u: object = None) -> Forecast:
        """Go on for ``steps`` samples from the end of the record, or from ``window``.

        ``window`` is ``(samples, channels)``, or ``(starts, samples, channels)`` for many starts at once, oldest
        first, at least :attr:`window` samples of it. A model fitted with inputs needs ``u``: the inputs of the
        ``steps`` ahead, or with ``window`` those of the window and the steps together.
        """
        self._require_fit()
        steps = whole("steps", steps, 1)
        single, states, inputs = self._start(window, u, steps)
        values, spread, left, far = roll_ahead(self.predictor_, self.units_, self.forcing_, states, steps, inputs)
        start = self.last_time_ if window is None else 0.0
        times = np.asarray(start + self.dt_ * np.arange(1, steps + 1), dtype=np.float64)
        fades = self.predictor_ is not None and self.predictor_.fade.fallback is not None
        outcome = outcome_of(left, steps, far, fades)
        if single:
            return Forecast(values[0], spread[0], times, outcome, int(left[0]))
        return Forecast(values, spread, times, outcome, left)

    def predict(self, window: object, *, u: object = None) -> FloatArray:
        """The next sample after ``window``: ``(channels,)``, or ``(starts, channels)`` for many windows.

        ``u`` holds the inputs of the window and of the next sample.
        """
        return np.asarray(self.forecast(1, window=window, u=u).values[..., 0, :])

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """Forecasts ``(starts, steps, channels)`` as a plain array."""
        values = self.forecast(steps, window=np.asarray(windows)).values
        return values if values.ndim == 3 else values[None]

    def reconstruct(self, values: object) -> FloatArray:
        """Fields ``(..., *shape)`` of POD coefficients ``(..., rank)``, for a model fitted with ``pod``."""
        return self._require_pod().reconstruct(self._coefficients("values", np.asarray(values)))

    def reconstruct_spread(self, spread: object) -> FloatArray:
        """Spread at every point of a field, ``(..., *shape)``, of a forecast or of the spread of one, ``(..., rank)``.

        For a model fitted with ``pod``. The errors of different coefficients, and of what the modes leave out, are
        taken as uncorrelated.
        """
        given = spread.spread if isinstance(spread, Forecast) else spread
        return self._require_pod().reconstruct_spread(self._coefficients("spread", given))

    # looking back

    @one_thread()
    def backtest(
        self, horizon: int | None = None, starts: int = 20, *, series: object = None, u: object = None
    ) -> Backtest:
        """Forecast the last quarter of the data by a model that has not seen it, from ``starts`` places.

        Everything is learned and chosen anew on the first three quarters (or trajectories); persistence, TD-DMD and
        NG-RC, tuned there too, stand beside it. Takes about as long as a fit, and has a ``budget`` as large. The data
        are those of the fit, or ``series`` with its inputs ``u``, sampled every ``dt_``: a model from a file needs
        them.
        """
        rows, settings = self._data_for("backtest", series, u), self._settings_again()
        if horizon is not None:
            horizon = whole("horizon", horizon, 2)
        starts = whole("starts", starts, 1)
        return backtest(rows, len(self.units_.keep), settings, self.dt_, horizon, starts, recipe=self.recipe)

    @one_thread()
    def ablate(self, *, series: object = None, u: object = None) -> Ablation:
        """What each part of the attention features is worth: held-out errors with it changed or removed.

        The data are those of the fit, or ``series`` with its inputs ``u``: a model from a file needs them.
        """
        rows, settings = self._data_for("ablate", series, u), self._settings_again()
        return (ablate_published if self.recipe == "paper" else ablate)(rows, len(self.units_.keep), settings)

    # reading the model

    def eigenvalues(self) -> ComplexArray:
        """Eigenvalues of the linear path (TD-DMD) per time step, largest modulus first."""
        return self._spectrum().eigenvalues

    def frequencies(self) -> FloatArray:
        """Frequencies of the eigenvalues, in cycles per unit of time."""
        return np.asarray(np.angle(self.eigenvalues()) / (2 * np.pi * self.dt_))

    def growth_rates(self) -> FloatArray:
        """Growth rates of the eigenvalues, per unit of time; negative ones decay."""
        return np.asarray(np.log(np.maximum(np.abs(self.eigenvalues()), 1e-300)) / self.dt_)

    def modes(self) -> ComplexArray:
        """Unit-length DMD modes as columns ``(channels, eigenvalues)``; fields where the model has a POD."""
        modes = self._spectrum().modes
        if self.pod_ is None:
            return modes
        return np.asarray((modes.T @ self.pod_.modes[self.units_.keep]).T)

    @one_thread()
    def local_eigenvalues(self, window: object = None, *, u: object = None) -> ComplexArray:
        """Eigenvalues of the learned map's derivative at the end of the record, or at ``window``."""
        predictor = self._require_predictor()
        _, states, inputs = self._start(window, u, 1)
        rows, future = normalised(self.units_, self.forcing_, states, inputs)
        return local_eigenvalues(predictor, rows[0], None if future is None else future[0])

    @one_thread()
    def lyapunov_exponent(self, steps: int = 4000) -> float:
        """The largest Lyapunov exponent of the learned map, per unit of time, from training windows onwards."""
        predictor = self._require_predictor()
        if self.forcing_ is not None:
            raise InputError("u", "a model with inputs", "has no exponent of its own", "fit without inputs")
        windows = self.units_.normalise(self.last_window_)[None]
        return lyapunov_exponent(predictor, windows, self.dt_, whole("steps", steps, 100), self.seed_)

    @one_thread()
    def attention(self, window: object = None) -> LagAttention:
        """How much the latest sample listens to each lag; see
        :class:`~hardmax.forecasting.diagnostics.spectrum.LagAttention`.
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

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the model into a folder, see :func:`hardmax.load_forecaster`."""
        self._require_fit()
        return save_forecaster(self, folder)

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
            raise InputError("series", "constant channels only", "has no dynamics to read", "fit data that vary")
        return self.predictor_

    def _data_for(self, purpose: str, series: object, u: object) -> list[FloatArray]:
        """Normalised rows to look back on: those of the fit, or of data given."""
        self._require_predictor()
        if series is None:
            if u is not None:
                raise InputError("u", f"a {type(u).__name__}", "needs the series it belongs to", "pass series= too")
            if not hasattr(self, "_rows"):
                raise InputError(
                    "series",
                    None,
                    f"is needed to {purpose} a model from a file, which does not hold its data",
                    f"pass the data it was fitted to: {purpose}(series=…)",
                )
            return self._rows
        record, inputs = read_like_the_fit(series, u, self.dt_, self.channels_, self.pod_, self.forcing_)
        return self._normalised(*long_enough(record, inputs, self.delays)[:2])

    def _normalised(self, record: Record, inputs: list[FloatArray] | None) -> list[FloatArray]:
        rows = [self.units_.normalise(z) for z in record.trajectories]
        if self.forcing_ is None or inputs is None:
            return rows
        return [self.forcing_.attach(z, v) for z, v in zip(rows, inputs, strict=True)]

    def _settings_again(self) -> Settings:
        return replace(settings_of(self), seed=self.seed_)

    def _states(self, window: object) -> tuple[bool, FloatArray]:
        if window is None:
            return True, self.last_window_[None]
        return read_window(window, self.channels_, self.window, self.pod_)

    def _start(self, window: object, u: object, steps: int) -> tuple[bool, FloatArray, FloatArray | None]:
        """Whether there is a single start, all of them, and the inputs over them and the steps ahead."""
        single, states = self._states(window)
        before = self.last_inputs_ if window is None else None
        return single, states, inputs_over(u, self.forcing_, states, steps, before)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "units_")

    def _require_fit(self) -> None:
        if not hasattr(self, "units_"):
            raise NotFittedError("this TimeDelayedTransformer has no data yet: call fit(series, dt=…) first")
