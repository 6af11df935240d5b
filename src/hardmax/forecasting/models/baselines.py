"""Baselines from other packages: persistence, a multilayer perceptron, HODMD and SINDy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Self

import numpy as np

from ..data.delay_windows import lag_spacing
from ..protocol import FloatArray
from .tuning import SMALLEST_SCALE, LagTrial, OneReadout, Trial, TunedBaseline, baseline_package


class Persistence:
    """Baseline that repeats the last sample."""

    name = "persistence"
    window = 1

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Do nothing, as there is nothing to learn.

        Parameters
        ----------
        trajectories
            Not used.
        dt
            Not used.

        Returns
        -------
        Persistence
            The model itself.
        """
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """Repeat the last sample of each window.

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
        return np.repeat(windows[:, -1:], steps, axis=1)


_MOST_ROWS = 4000
"""Windows that one perceptron is trained on at most, so that several settings fit into the time budget."""


class Perceptron(TunedBaseline):
    """Multilayer perceptron: ``sklearn.neural_network.MLPRegressor`` from a few lags to the next increment.

    The lags, the width, the weight decay and the noise added to the windows are tuned.

    Parameters
    ----------
    seconds
        Budget of processor time for tuning; the setting in progress is finished.
    horizon
        Number of steps of the validation rollouts; None takes that of the time-delayed transformer.
    random_state
        Seed of the random numbers.
    """

    name = "MLP"

    def _trials(self, trajectories: Sequence[FloatArray], dt: float, rng: np.random.Generator) -> Iterator[Trial]:
        channels, apart = trajectories[0].shape[1], lag_spacing(trajectories)
        counts = (4, 6, 3, 8) if channels == 1 else (2, 1, 3, 4)
        for noise in (1e-3, 0.0, 1e-2):
            for width, decay in ((32, 1e-6), (64, 1e-4), (16, 1e-8)):
                for count in counts:
                    for spacing in sorted({max(1, apart // 2), apart, 1}, reverse=True):
                        yield _Network(count, spacing, width, decay, noise, self.random_state)


@dataclass
class _Network(LagTrial):
    width: int
    decay: float
    noise: float
    seed: int

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        from sklearn.neural_network import MLPRegressor

        seen, next_ones = [], []
        for z in trajectories:
            rows = len(z) - self.window
            lags = [z[k * self.spacing : k * self.spacing + rows] for k in range(self.count)]
            seen.append(np.hstack(lags))
            next_ones.append(z[self.window :])
        x, y = np.concatenate(seen), np.concatenate(next_ones)
        rng = np.random.default_rng(self.seed)
        if len(x) > _MOST_ROWS:
            chosen = rng.permutation(len(x))[:_MOST_ROWS]
            x, y = x[chosen], y[chosen]
        x = x + self.noise * rng.standard_normal(x.shape)
        increments = y - x[:, -y.shape[1] :]
        self._scale = increments.std(axis=0) + SMALLEST_SCALE
        model = MLPRegressor(
            hidden_layer_sizes=(self.width,),
            activation="tanh",
            solver="lbfgs",
            alpha=self.decay,
            max_iter=300,
            tol=1e-9,
            random_state=self.seed,
        )
        target = increments / self._scale
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the limit on iterations is reached on purpose
            model.fit(x, target[:, 0] if target.shape[1] == 1 else target)
        self._weights, self._biases = model.coefs_, model.intercepts_
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        starts, _, channels = windows.shape
        path = np.empty((starts, self.window + steps, channels))
        path[:, : self.window] = windows[:, -self.window :]
        for k in range(steps):
            seen = path[:, k : k + self.window : self.spacing].reshape(starts, -1)
            hidden = np.tanh(seen @ self._weights[0] + self._biases[0])
            step = (hidden @ self._weights[1] + self._biases[1]) * self._scale
            path[:, self.window + k] = np.clip(path[:, self.window + k - 1] + step, -1e4, 1e4)
        return path[None, :, self.window :]


_PURPOSE = "higher-order DMD"
_WIDEST = 600
"""Rows of the delay matrix beyond which its decomposition takes too long for the time budget."""


class HigherOrderDMD(TunedBaseline):
    """Higher-order DMD: PyDMD's ``HODMD`` with the number of delays and the rank tuned.

    PyDMD fits one trajectory; of several it gets the longest. Its default ``svd_rank_extra=0`` drops coordinates
    silently, so -1 is passed.

    Parameters
    ----------
    seconds
        Budget of processor time for tuning; the setting in progress is finished.
    horizon
        Number of steps of the validation rollouts; None takes that of the time-delayed transformer.
    random_state
        Seed of the random numbers.
    """

    name = "HODMD (PyDMD)"

    def _trials(self, trajectories: Sequence[FloatArray], dt: float, rng: np.random.Generator) -> Iterator[Trial]:
        package = _pydmd()
        channels = trajectories[0].shape[1]
        for rank in (0, -1, 0.999999, 0.9999, 8, 0.99, 4, 12):
            for delays in (20, 60, 8, 120, 40, 180, 3):
                if delays * channels <= _WIDEST:
                    yield _Hodmd(package, delays, rank)


def _pydmd() -> ModuleType:
    baseline_package("pydmd.utils", _PURPOSE)
    return baseline_package("pydmd", _PURPOSE)


@dataclass
class _Hodmd(OneReadout):
    package: ModuleType
    window: int
    rank: float

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        record = max(trajectories, key=len)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # condition numbers, and settings that it does not use
            model = self.package.HODMD(svd_rank=self.rank, d=self.window, svd_rank_extra=-1)
            model.fit(record.T)
            # PyDMD's modes are in coordinates rotated by the left singular vectors of the snapshots.
            self._rotation = np.asarray(self.package.utils.compute_svd(record.T, -1)[0])
        self._modes, self._eigenvalues = np.asarray(model.modes), np.asarray(model.eigs)
        self._amplitudes = np.linalg.pinv(self._modes)
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        starts, _, channels = windows.shape
        seen = (windows[:, -self.window :] @ self._rotation).reshape(starts, -1)
        amplitudes = seen @ self._amplitudes.T
        latest = self._modes[-channels:]
        ahead = np.empty((1, starts, steps, channels))
        for k in range(steps):
            amplitudes = amplitudes * self._eigenvalues
            ahead[0, :, k] = (amplitudes @ latest.T).real @ self._rotation.T
        return ahead


_SUBSTEPS = 2
"""Runge–Kutta steps per sample."""
_MOST_TERMS = 300
"""Terms of the polynomial library beyond which a fit takes too long for the time budget."""


class Sindy(TunedBaseline):
    """Sparse identification of dynamics: PySINDy's ``SINDy`` with a polynomial library and STLSQ.

    Degree, threshold, differentiation and the number of delay coordinates are tuned. The equations that it finds are
    integrated by Runge–Kutta of order 4.

    Parameters
    ----------
    seconds
        Budget of processor time for tuning; the setting in progress is finished.
    horizon
        Number of steps of the validation rollouts; None takes that of the time-delayed transformer.
    random_state
        Seed of the random numbers.
    """

    name = "SINDy (PySINDy)"

    def _trials(self, trajectories: Sequence[FloatArray], dt: float, rng: np.random.Generator) -> Iterator[Trial]:
        package = _pysindy()
        channels, apart = trajectories[0].shape[1], lag_spacing(trajectories)
        delays = ((3, apart), (4, max(1, apart // 2)), (5, apart), (6, max(1, apart // 2)))
        if channels > 1:
            delays = ((1, 1), (2, apart), (3, apart), (2, max(1, apart // 2)))
        for threshold in (0.02, 0.0, 0.1, 0.005):
            for smooth in (False, True):
                for count, spacing in delays:
                    for degree in (2, 3):
                        if _terms(count * channels, degree) <= _MOST_TERMS:
                            yield _Sindy(count, spacing, package, degree, threshold, smooth)


def _terms(variables: int, degree: int) -> int:
    from math import comb

    return comb(variables + degree, degree)


def _pysindy() -> ModuleType:
    return baseline_package("pysindy", "sparse identification")


@dataclass
class _Sindy(LagTrial):
    package: ModuleType
    degree: int
    threshold: float
    smooth: bool

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        ps = self.package
        difference = ps.SmoothedFiniteDifference() if self.smooth else ps.FiniteDifference(order=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ill-conditioned libraries, thresholds that leave nothing
            model = ps.SINDy(
                optimizer=ps.STLSQ(threshold=self.threshold, alpha=1e-6),
                feature_library=ps.PolynomialLibrary(degree=self.degree),
                differentiation_method=difference,
            )
            # Time is scaled so that speeds are of size one: thresholds then have the same meaning for every system.
            self._step = float(np.mean([np.diff(z, axis=0).std() for z in trajectories]))
            model.fit([self._states(z) for z in trajectories], t=self._step)
        self._coefficients = np.asarray(model.coefficients())
        self._powers = np.asarray(model.feature_library.powers_)
        return self

    def _states(self, z: FloatArray) -> FloatArray:
        """Delay coordinates, the latest sample first."""
        rows = len(z) - self.window + 1
        return np.hstack(
            [
                z[self.window - 1 - k * self.spacing : self.window - 1 - k * self.spacing + rows]
                for k in range(self.count)
            ]
        )

    def _speed(self, states: FloatArray) -> FloatArray:
        terms = np.ones((len(states), len(self._powers)))
        for j in range(states.shape[1]):
            table = np.stack([states[:, j] ** p for p in range(self.degree + 1)])
            terms *= table[self._powers[:, j]].T
        return np.asarray(terms @ self._coefficients.T)

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        starts, _, channels = windows.shape
        seen = windows[:, -self.window :]
        x = np.hstack([seen[:, -1 - k * self.spacing] for k in range(self.count)])
        ahead = np.empty((1, starts, steps, channels))
        h = self._step / _SUBSTEPS
        for k in range(steps):
            for _ in range(_SUBSTEPS):
                k1 = self._speed(x)
                k2 = self._speed(x + h / 2 * k1)
                k3 = self._speed(x + h / 2 * k2)
                k4 = self._speed(x + h * k3)
                x = np.clip(np.nan_to_num(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), nan=1e4), -1e4, 1e4)
            ahead[0, :, k] = x[:, :channels]
        return ahead
