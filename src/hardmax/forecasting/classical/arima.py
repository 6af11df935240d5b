r"""Seasonal ARIMA: forecasts of differences by the exact linear prediction of a stationary process.

The differences :math:`w = (1-B)^d (1-B^s)^D y - \mu` of a series follow

.. math:: w_t = \sum_{i=1}^p \phi_i w_{t-i} + \varepsilon_t + \sum_{j=1}^q \theta_j \varepsilon_{t-j},

with both polynomials the product of one in the lag and one in the season. A window is a sample of finite length, so
that its forecast is the conditional mean of what follows given these samples alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..protocol import FloatArray
from ..rollout import PathModel

LONGEST_SEASON = 60
"""Longest season of an ARIMA, in samples: the cost of a fit grows with it."""


def window_length(season: int) -> int:
    """Samples at the end of a record that an ARIMA is fitted to, and forecasts from."""
    return max(300, 20 * season)


@dataclass(frozen=True)
class Arma:
    """An ARIMA of one channel: the polynomials multiplied out, the differences, and their mean.

    Attributes
    ----------
    ar
        Coefficients of the last p differences, shape (p,).
    ma
        Coefficients of the last q innovations, shape (q,).
    differences
        Number of differences between neighbours.
    seasonal_differences
        Number of differences over a season.
    season
        Season in samples.
    mean
        Mean of the differences.
    """

    ar: FloatArray
    ma: FloatArray
    differences: int
    seasonal_differences: int
    season: int
    mean: float

    @property
    def shortest(self) -> int:
        """Samples in a window at least."""
        return self.differences + self.season * self.seasonal_differences + max(1, len(self.ar))

    @property
    def differencing(self) -> FloatArray:
        """Coefficients of the polynomial that takes the differences, that of the newest sample first."""
        return differencing(self.differences, self.seasonal_differences, self.season)

    def forecast(self, windows: FloatArray, steps: int) -> FloatArray:
        """Conditional means, shape (starts, steps), given windows (starts, samples)."""
        polynomial = self.differencing
        changes = difference(windows, polynomial) - self.mean
        ahead = self._changes_ahead(changes, steps)
        lost = len(polynomial) - 1
        found = np.concatenate([windows[:, windows.shape[1] - lost :], np.zeros((len(windows), steps))], axis=1)
        for step in range(steps):
            known = found[:, step : step + lost]
            found[:, lost + step] = ahead[:, step] + self.mean - known @ polynomial[:0:-1]
        return found[:, lost:]

    def _changes_ahead(self, changes: FloatArray, steps: int) -> FloatArray:
        """Conditional means of the differences ahead, (starts, steps), given those in the window."""
        starts, samples = changes.shape
        own = len(self.ar)
        gain = _gain(self.ar.tobytes(), self.ma.tobytes(), samples)
        noise = transformed(changes, self.ar) @ gain.T
        found = np.concatenate([changes[:, samples - own :], np.zeros((starts, steps))], axis=1)
        for step in range(steps):
            new = found[:, step : step + own] @ self.ar[::-1]
            if step < len(self.ma):
                new = new + noise[:, step]
            found[:, own + step] = new
        return found[:, own:]


def differencing(differences: int, seasonal: int, season: int) -> FloatArray:
    """Coefficients of ``(1 - B)^differences (1 - B^season)^seasonal``, that of the newest sample first."""
    polynomial = np.ones(1)
    over_a_season = np.zeros(season + 1)
    over_a_season[0], over_a_season[-1] = 1.0, -1.0
    for factor in [np.array([1.0, -1.0])] * differences + [over_a_season] * seasonal:
        polynomial = np.convolve(polynomial, factor)
    return polynomial


def difference(values: FloatArray, polynomial: FloatArray) -> FloatArray:
    """Values (…, samples) under a polynomial of the lag; the first samples, which have no past, are left out."""
    length = values.shape[-1] - len(polynomial) + 1
    found = np.zeros((*values.shape[:-1], length))
    for lag in np.flatnonzero(polynomial):
        first = len(polynomial) - 1 - int(lag)
        found += polynomial[lag] * values[..., first : first + length]
    return found


def expanded(plain: FloatArray, seasonal: FloatArray, season: int) -> FloatArray:
    """Coefficients of the product of ``1 + plain B + …`` and ``1 + seasonal B^season + …``, without the leading one."""
    sparse = np.zeros(len(seasonal) * season + 1)
    sparse[0] = 1.0
    sparse[season::season] = seasonal
    return np.asarray(np.convolve(np.concatenate([[1.0], plain]), sparse)[1:])


def transformed(changes: FloatArray, ar: FloatArray) -> FloatArray:
    """Differences (…, samples) with a banded covariance (Ansley, 1979): after the first p, what the AR part leaves."""
    found = np.array(changes, dtype=np.float64)
    own = len(ar)
    samples = changes.shape[-1]
    for lag in range(1, own + 1):
        found[..., own:] -= ar[lag - 1] * changes[..., own - lag : samples - lag]
    return found


def covariances(ar: FloatArray, ma: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Covariances in units of the variance of an innovation, at lags from 0 on.

    Returns
    -------
    tuple
        Those of the differences up to lag p; those of a difference with the moving average
        :math:`u_t = \varepsilon_t + \sum_j \theta_j \varepsilon_{t-j}` that many steps later, up to lag q; and those of
        the moving average itself, up to lag q.
    """
    own, other = len(ar), len(ma)
    b = np.concatenate([[1.0], ma])
    response = np.zeros(other + 1)
    for k in range(other + 1):
        response[k] = b[k] + sum(ar[i] * response[k - 1 - i] for i in range(min(k, own)))
    mixed = np.convolve(b, response[::-1])[other:]
    noise = np.convolve(b, b[::-1])[other:]
    # Yule-Walker: with a = (1, -ar), the sum of a_i times the covariance at lag |k - i| is the mixed one at lag k.
    a = np.concatenate([[1.0], -ar])
    padded = np.zeros(3 * own + 1)
    padded[own : 2 * own + 1] = a
    lags = np.arange(own + 1)
    # Column j collects a_i with |k - i| = j: i = k - j, and i = k + j for j > 0.
    system = padded[own + lags[:, None] - lags] + np.where(lags > 0, padded[own + lags[:, None] + lags], 0.0)
    right = np.zeros(own + 1)
    right[: min(own, other) + 1] = mixed[: own + 1]
    return np.linalg.solve(system, right), mixed, noise


def dense_covariance(ar: FloatArray, ma: FloatArray, samples: int) -> FloatArray:
    """Covariance of ``samples`` transformed differences, in units of the variance of an innovation."""
    own, mixed, noise = covariances(ar, ma)
    places = np.arange(samples)
    apart = np.abs(places[:, None] - places)
    early = places < len(ar)
    both, neither = early[:, None] & early, ~early[:, None] & ~early
    return np.where(both, _at(own, apart), np.where(neither, _at(noise, apart), _at(mixed, apart)))


def _at(values: FloatArray, lags: np.ndarray) -> FloatArray:
    """Values at lags, zero beyond the last."""
    return np.asarray(np.append(values, 0.0)[np.minimum(lags, len(values))])


@lru_cache(maxsize=64)
def _gain(ar_bytes: bytes, ma_bytes: bytes, samples: int) -> FloatArray:
    """Matrix (q, samples) that takes transformed differences to the conditional means of the moving average ahead."""
    ar, ma = np.frombuffer(ar_bytes), np.frombuffer(ma_bytes)
    if len(ma) == 0:
        return np.zeros((0, samples))
    whole = dense_covariance(ar, ma, samples + len(ma))
    return np.asarray(np.linalg.solve(whole[:samples, :samples], whole[:samples, samples:]).T)


@dataclass(frozen=True)
class Arima(PathModel):
    """Seasonal ARIMA models, one for each channel, run through the window."""

    outputs: int
    length: int
    models: tuple[Arma, ...]

    @property
    def window(self) -> int:
        return self.length

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        seen = windows[:, -self.length :]
        found = [model.forecast(seen[:, :, place], steps) for place, model in enumerate(self.models)]
        return np.stack(found, axis=2)
