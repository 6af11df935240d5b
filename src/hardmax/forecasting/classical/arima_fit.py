r"""Orders and coefficients of a seasonal ARIMA, as in Hyndman and Khandakar (2008).

A strong season is taken away by seasonal differences, a wandering level by differences (KPSS test). The orders of the
stationary rest are found by a stepwise search with the corrected information criterion AICc. The likelihood is exact
for short records; for longer ones it is conditional on the first samples, which the search shares between all orders,
and only the selected orders are fitted exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from ..protocol import FloatArray
from .arima import Arima, Arma, covariances, difference, differencing, expanded, transformed, window_length


def fit_arima(pieces: Sequence[FloatArray], outputs: int, season: int, length: int) -> Arima | None:
    """ARIMA fitted to the end of the longest piece; None where it, or a window of ``length``, is too short."""
    record = max(pieces, key=len)[-window_length(season) :, :outputs]
    if len(record) < max(_FEWEST, 2 * season + 2):
        return None
    models = tuple(fit_channel(record[:, place], season) for place in range(outputs))
    return Arima(outputs, length, models) if all(model.shortest <= length for model in models) else None


_FEWEST = 10
"""Samples of a record at least."""


def fit_channel(values: FloatArray, season: int = 1) -> Arma:
    """ARIMA of a record (samples,) with orders of the smallest AICc."""
    seasonal = int(season > 1 and seasonal_strength(values, season) > _STRONG)
    changes = difference(values, differencing(0, seasonal, season))
    plain = 0
    while plain + seasonal < _MOST_DIFFERENCES and not is_stationary(changes):
        changes = np.diff(changes)
        plain += 1
    has_mean = plain + seasonal < _MOST_DIFFERENCES
    spread = float(changes.std())
    if spread <= _NOTHING * max(float(np.abs(values).max()), 1e-300):
        mean = float(changes.mean()) if has_mean else 0.0
        return Arma(np.zeros(0), np.zeros(0), plain, seasonal, season, mean)
    found = _Search(changes / spread, season, has_mean).best()
    return Arma(*_polynomials(found, season), plain, seasonal, season, found.mean * spread)


_STRONG = 0.64
"""Seasonal strength from which on seasonal differences are taken, as in the R package forecast."""
_MOST_DIFFERENCES = 2
"""Differences of both kinds at most; with so many, the mean of the differences is zero: a parabola goes astray."""
_NOTHING = 1e-9
"""Spread of differences, relative to the largest value, that is no more than rounding."""


def seasonal_strength(values: FloatArray, season: int) -> float:
    """Share of the variance around the trend that the mean season explains, 0 to 1 (Wang, Smith and Hyndman, 2006)."""
    if len(values) < 2 * season + 1:
        return 0.0
    # A moving mean over one season; of an even season the two ends count half.
    kernel = np.ones(season) if season % 2 else np.concatenate([[0.5], np.ones(season - 1), [0.5]])
    trend = np.convolve(values, kernel / season, mode="valid")
    lost = len(kernel) // 2
    rest = values[lost : lost + len(trend)] - trend
    phases = np.arange(lost, lost + len(trend)) % season
    counts = np.bincount(phases, minlength=season)
    cycle = np.bincount(phases, rest, minlength=season) / np.maximum(counts, 1)
    total = float(rest.var())
    if total <= (_NOTHING * float(np.abs(values).max())) ** 2:
        return 0.0
    return max(0.0, 1.0 - float((rest - cycle[phases]).var()) / total)


def is_stationary(values: FloatArray) -> bool:
    """Whether the KPSS test of a constant level does not reject it at 5 %."""
    centred = values - values.mean()
    if float(np.abs(centred).max()) <= _NOTHING * max(float(np.abs(values).max()), 1e-300):
        return True
    n = len(values)
    lags = int(3 * np.sqrt(n) / 13)
    variance = float(centred @ centred) / n
    for lag in range(1, lags + 1):
        variance += 2 * (1 - lag / (lags + 1)) * float(centred[lag:] @ centred[:-lag]) / n
    return float((np.cumsum(centred) ** 2).sum()) <= _CRITICAL * variance * n**2


_CRITICAL = 0.463
"""Critical value of the KPSS statistic at 5 %."""


# likelihood


@dataclass(frozen=True)
class Likelihood:
    """Minus twice the logarithm of the largest likelihood, with the mean and the variance that reach it."""

    deviance: float
    mean: float
    variance: float


def exact_likelihood(changes: FloatArray, ar: FloatArray, ma: FloatArray, *, has_mean: bool) -> Likelihood:
    """Likelihood of all differences (samples,), by the Cholesky factor of their banded covariance."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    factor = cholesky_banded(_banded(ar, ma, len(changes)), lower=True, check_finite=False)
    sides = transformed(np.stack([changes, np.ones_like(changes)]), ar)
    solved = cho_solve_banded((factor, True), sides.T, check_finite=False).T
    logarithm = 2 * float(np.log(factor[0]).sum())
    return _profile(sides @ solved.T, len(changes), logarithm, has_mean=has_mean)


def _banded(ar: FloatArray, ma: FloatArray, samples: int) -> FloatArray:
    """Lower bands of the covariance of transformed differences, shape (bands, samples)."""
    own, mixed, noise = covariances(ar, ma)
    p, q = len(ar), len(ma)
    bands = np.zeros((min(max(p, q + 1), samples), samples))
    for lag in range(len(bands)):
        # Column t holds the covariance of samples t and t + lag.
        if lag <= q:
            bands[lag] = noise[lag]
            bands[lag, max(0, p - lag) : p] = mixed[lag]
        bands[lag, : max(0, p - lag)] = own[lag] if lag <= p else 0.0
    return bands


def conditional_likelihood(
    changes: FloatArray, ar: FloatArray, ma: FloatArray, skipped: int, *, has_mean: bool
) -> Likelihood:
    """Likelihood of the differences after the first ``skipped``, with no innovations before the record."""
    from scipy.signal import lfilter

    sides = np.stack([changes, np.ones_like(changes)])
    rest = lfilter(np.concatenate([[1.0], -ar]), np.concatenate([[1.0], ma]), sides, axis=1)[:, skipped:]
    return _profile(rest @ rest.T, rest.shape[1], 0.0, has_mean=has_mean)


def _profile(products: FloatArray, samples: int, logarithm: float, *, has_mean: bool) -> Likelihood:
    """Likelihood at the best mean and variance, from products of the differences and of ones, shape (2, 2)."""
    mean = float(products[0, 1] / products[1, 1]) if has_mean and products[1, 1] > 0 else 0.0
    squares = float(products[0, 0] - 2 * mean * products[0, 1] + mean**2 * products[1, 1])
    variance = max(squares, 1e-300) / samples
    return Likelihood(samples * (np.log(2 * np.pi * variance) + 1) + logarithm, mean, variance)


# search


@dataclass(frozen=True)
class Orders:
    """Numbers of coefficients: plain and seasonal, of past differences and of past innovations."""

    p: int
    q: int
    seasonal_p: int = 0
    seasonal_q: int = 0

    @property
    def total(self) -> int:
        """Number of coefficients."""
        return self.p + self.q + self.seasonal_p + self.seasonal_q


@dataclass(frozen=True)
class _Model:
    """Orders with free numbers, which :func:`stationary` takes to coefficients, their mean and their AICc."""

    orders: Orders
    free: FloatArray
    has_mean: bool
    mean: float
    criterion: float


def _parts(orders: Orders, free: FloatArray) -> list[FloatArray]:
    """Coefficients of the plain and seasonal AR part, and of the plain and seasonal MA part."""
    sizes = np.cumsum([orders.p, orders.seasonal_p, orders.q])
    return [stationary(_LARGEST * np.tanh(part)) for part in np.split(free, sizes)]


def _polynomials(model: _Model, season: int) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the past differences and innovations, with the seasonal ones multiplied out."""
    plain, seasonal, plain_ma, seasonal_ma = _parts(model.orders, model.free)
    return -expanded(-plain, -seasonal, season), expanded(-plain_ma, -seasonal_ma, season)


_LARGEST = 0.9995
"""Largest partial autocorrelation: at one, a process is no longer stationary."""


def stationary(partial: FloatArray) -> FloatArray:
    """Coefficients of the AR process with these partial autocorrelations, each below one in size (Durbin-Levinson)."""
    found = np.zeros(0)
    for last in partial:
        found = np.concatenate([found - last * found[::-1], [last]])
    return found


class _Search:
    """Stepwise search for the orders: from four starts, to the best neighbour until none is better."""

    def __init__(self, changes: FloatArray, season: int, has_mean: bool) -> None:
        self._changes = changes
        self._season = season
        self._may_have_mean = has_mean
        n = len(changes)
        most = 0 if season == 1 or n < 3 * season else _MOST_SEASONAL if season <= _SHORT_SEASON else 1
        plain = min(_MOST_PLAIN, n // 3)
        self._most = Orders(plain, plain, most, most)
        self._exact = n <= _SHORT and season <= _SHORT_SEASON
        self._skipped = min(_MOST_PLAIN + most * season, n // 4)
        self._seen: dict[tuple[int, int, int, int, bool], _Model | None] = {}

    def best(self) -> _Model:
        """The model of the smallest AICc whose polynomials stay away from the unit circle."""
        starts = (Orders(2, 2, 1, 1), Orders(0, 0), Orders(1, 0, 1, 0), Orders(0, 1, 0, 1))
        tried = [self._fitted(self._limited(start), self._may_have_mean, None) for start in starts]
        if self._may_have_mean:
            tried.append(self._fitted(Orders(0, 0), False, None))
        best = min((model for model in tried if model is not None), key=lambda model: model.criterion)
        while (better := self._better(best)) is not None:
            best = better
        return best if self._exact else self._refitted(best)

    def _limited(self, orders: Orders) -> Orders:
        return Orders(*np.minimum(astuple(orders), astuple(self._most)).tolist())

    def _better(self, best: _Model) -> _Model | None:
        """The first neighbour with a smaller AICc; None where there is none or enough models were fitted."""
        for orders, has_mean in self._neighbours(best):
            if len(self._seen) >= _MOST_MODELS:
                return None
            if (*astuple(orders), has_mean) in self._seen:
                continue
            found = self._fitted(orders, has_mean, best)
            if found is not None and found.criterion < best.criterion:
                return found
        return None

    def _neighbours(self, best: _Model) -> Iterator[tuple[Orders, bool]]:
        """Orders one apart, the seasonal ones first, and those with both orders of a kind one up or down."""
        for first, second in (("seasonal_p", "seasonal_q"), ("p", "q")):
            for change in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1)):
                wanted = [getattr(best.orders, name) + step for name, step in zip((first, second), change, strict=True)]
                most = [getattr(self._most, first), getattr(self._most, second)]
                if all(0 <= some <= top for some, top in zip(wanted, most, strict=True)):
                    yield replace(best.orders, **{first: wanted[0], second: wanted[1]}), best.has_mean
        if self._may_have_mean:
            yield best.orders, not best.has_mean

    def _fitted(self, orders: Orders, has_mean: bool, near: _Model | None) -> _Model | None:
        """Model of the largest likelihood; None where it is not usable."""
        key = (*astuple(orders), has_mean)
        if key not in self._seen:
            free = self._optimum(orders, has_mean, self._guess(orders, has_mean, near), exact=self._exact)
            self._seen[key] = self._model(orders, has_mean, free)
        return self._seen[key]

    def _guess(self, orders: Orders, has_mean: bool, near: _Model | None) -> FloatArray:
        """Coefficients of a model nearby; a small number for each new one, of the sign of the larger likelihood."""
        sizes = (orders.p, orders.seasonal_p, orders.q, orders.seasonal_q)
        guesses = []
        for sign in (1.0, -1.0):
            if near is None:
                guesses.append(sign * np.concatenate([np.where(np.arange(k) < 1, 0.3, 0.1) for k in sizes]))
                continue
            old = near.orders
            cuts = np.cumsum([old.p, old.seasonal_p, old.q])
            parts = np.split(near.free, cuts)
            guesses.append(
                np.concatenate(
                    [
                        np.concatenate([part[:k], np.full(k - min(k, len(part)), 0.1 * sign)])
                        for part, k in zip(parts, sizes, strict=True)
                    ]
                )
            )
        deviances = [self._deviance(orders, has_mean, guess, exact=self._exact) for guess in guesses]
        return guesses[int(np.argmin(deviances))]

    def _optimum(self, orders: Orders, has_mean: bool, guess: FloatArray, *, exact: bool) -> FloatArray:
        if orders.total == 0:
            return guess
        from scipy.optimize import minimize

        def deviance(free: FloatArray) -> float:
            return self._deviance(orders, has_mean, free, exact=exact)

        found = minimize(deviance, guess, method="BFGS", options={"gtol": 3e-2, "maxiter": 30, "eps": 1e-5})
        return np.asarray(found.x if np.isfinite(found.fun) and found.fun <= deviance(guess) else guess)

    def _likelihood(self, orders: Orders, has_mean: bool, free: FloatArray, *, exact: bool) -> Likelihood | None:
        plain, seasonal, plain_ma, seasonal_ma = _parts(orders, free)
        ar = -expanded(-plain, -seasonal, self._season)
        ma = expanded(-plain_ma, -seasonal_ma, self._season)
        with np.errstate(all="ignore"):
            try:
                if exact:
                    found = exact_likelihood(self._changes, ar, ma, has_mean=has_mean)
                else:
                    found = conditional_likelihood(self._changes, ar, ma, self._skipped, has_mean=has_mean)
            except np.linalg.LinAlgError:
                return None
        return found if np.isfinite(found.deviance) else None

    def _deviance(self, orders: Orders, has_mean: bool, free: FloatArray, *, exact: bool) -> float:
        found = self._likelihood(orders, has_mean, free, exact=exact)
        return _IMPOSSIBLE if found is None else found.deviance

    def _model(self, orders: Orders, has_mean: bool, free: FloatArray) -> _Model | None:
        found = self._likelihood(orders, has_mean, free, exact=self._exact)
        parts = _parts(orders, free)
        if found is None or (orders.total > 0 and _near_unit(parts)):
            return None
        samples = len(self._changes) - (0 if self._exact else self._skipped)
        count = orders.total + has_mean + 1
        if samples - count - 1 <= 0:
            return None
        criterion = found.deviance + 2 * count * samples / (samples - count - 1)
        return _Model(orders, free, has_mean, found.mean, float(criterion))

    def _refitted(self, model: _Model) -> _Model:
        """The model of the largest exact likelihood; the given one where that is not usable."""
        free = self._optimum(model.orders, model.has_mean, model.free, exact=True)
        found = self._likelihood(model.orders, model.has_mean, free, exact=True)
        if found is None or _near_unit(_parts(model.orders, free)):
            return model
        return replace(model, free=free, mean=found.mean)


def _near_unit(parts: Sequence[FloatArray]) -> bool:
    """Whether the reciprocal of a root of a polynomial is near the unit circle."""
    limits = (_NEAR_UNIT, _NEAR_SEASONAL_UNIT, _NEAR_UNIT, 1.0)
    return any(_largest_root(part) > limit for part, limit in zip(parts, limits, strict=True))


def _largest_root(coefficients: FloatArray) -> float:
    """Largest size of the roots of ``x^k - c_1 x^(k-1) - … - c_k``; zero where there are none."""
    if not coefficients.any():
        return 0.0
    return float(np.abs(np.roots(np.concatenate([[1.0], -coefficients]))).max(initial=0.0))


_MOST_PLAIN, _MOST_SEASONAL = 4, 2
"""Plain and seasonal coefficients of each kind at most."""
_SHORT, _SHORT_SEASON = 150, 12
"""Samples, and a season, up to which the search takes the exact likelihood, as R does; and up to this season a model
may have two seasonal coefficients of each kind."""
_MOST_MODELS = 40
"""Models that a search fits at most."""
_NEAR_UNIT = 0.99
"""Largest reciprocal of a root: a model with a larger one is a model of one more, or one less, difference."""
_NEAR_SEASONAL_UNIT = 0.9
"""The same for seasonal polynomials of past differences: few seasons tell little about slow changes of a season."""
_IMPOSSIBLE = 1e12
"""Minus twice the log likelihood of coefficients that have none, for the optimiser."""
