"""What a fitted forecaster tells about its data: backtest, ablation, spectra, attention, and fields of POD modes."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..scalars import as_count
from ..threads import one_thread
from .data.pod import Pod
from .data.series import as_array
from .diagnostics.ablation import Ablation, ablate, ablate_published
from .diagnostics.backtest import Backtest, backtest
from .diagnostics.spectrum import (
    ComplexArray,
    LagAttention,
    Spectrum,
    lag_attention,
    local_eigenvalues,
    lyapunov_exponent,
    spectrum,
)
from .forecast import Forecast
from .learned import LearnedModel
from .protocol import FloatArray
from .rollout import normalised


class ModelAnalysis(LearnedModel):
    """Base of the estimator: evaluation and analysis of a fitted model."""

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
        rows = self._data_for("backtest", series, u)
        settings = self._settings_again(rows)
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
            seasons=self.report_.numbers.get("seasons", ()),
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
        rows = self._data_for("ablate", series, u)
        settings = self._settings_again(rows)
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
            The exponent; NaN where rounding, amplified by large weights of the model, leaves it unresolved.
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

    # fields

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
