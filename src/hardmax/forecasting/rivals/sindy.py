"""Sparse identification of nonlinear dynamics by PySINDy, in delay coordinates where the state is not all seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Self

import numpy as np

from ..delays import lag_spacing
from ..protocol import FloatArray
from .packages import rival_package
from .tuning import LagTrial, Trial, TunedRival

_SUBSTEPS = 2
_MOST_TERMS = 300


class Sindy(TunedRival):
    """PySINDy's ``SINDy`` with a polynomial library and STLSQ.

    Degree, threshold, differentiation and the number of delay coordinates are searched. The equations it finds are
    integrated by Runge–Kutta of order 4.
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
    return rival_package("pysindy", "sparse identification")


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
            # In a time in which speeds are of size one: thresholds then mean the same for every system.
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
