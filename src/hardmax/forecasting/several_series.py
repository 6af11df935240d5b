"""Many series of different kinds in one call: a model each, or one model of all of them in their own units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..scalars import as_count
from .data.labels import Labels, labels_of
from .data.series import Gaps, Irregular, read_series
from .data.units import Units
from .forecast import ErrorDistribution, Forecast
from .forecaster import TimeDelayedTransformer
from .protocol import FloatArray

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class _Shared:
    """Where a series stands in a model of many: its units, its last samples, and its labels and time."""

    units: Units
    window: FloatArray
    labels: Labels
    last_time: float
    dt: float


@dataclass(frozen=True, repr=False)
class FittedSeries:
    """Models of many series, by name.

    Attributes
    ----------
    models
        Fitted model of each series. With one model of all series it is the same for each.
    """

    models: dict[str, TimeDelayedTransformer]
    _shared: dict[str, _Shared] | None = None

    def __repr__(self) -> str:
        how = "one model of all" if self._shared is not None else "one model each"
        return f"FittedSeries({len(self.models)} series, {how}: {', '.join(list(self.models)[:6])})"

    def __len__(self) -> int:
        return len(self.models)

    def forecast(self, steps: int) -> dict[str, Forecast]:
        """Forecasts from the end of each series.

        Parameters
        ----------
        steps
            Number of samples ahead.

        Returns
        -------
        dict
            One forecast per series, by name.
        """
        steps = as_count("steps", steps, 1)
        if self._shared is None:
            return {name: model.forecast(steps) for name, model in self.models.items()}
        return {name: _in_own_units(self.models[name], place, steps) for name, place in self._shared.items()}

    def to_pandas(self, steps: int, interval: float | None = None) -> pandas.DataFrame:
        """Forecasts of all series as one table.

        Parameters
        ----------
        steps
            Number of samples ahead.
        interval
            Probability of intervals that are added, between 0 and 1; None for the forecasts alone.

        Returns
        -------
        pandas.DataFrame
            One row per series and step, with the series as the first level of the index and the date or time as the
            second. Series of one channel have the columns ``"forecast"``, ``"lower"`` and ``"upper"``.
        """
        import pandas as pd

        tables = {}
        for name, ahead in self.forecast(steps).items():
            table = ahead.to_pandas(interval)
            if ahead.values.shape[-1] == 1:
                table.columns = ["forecast", "lower", "upper"][: len(table.columns)]
            tables[name] = table
        return pd.concat(tables, names=["series"])


def fit_each(
    series: object,
    model: TimeDelayedTransformer | None = None,
    *,
    together: bool = False,
    dt: float | None = None,
    gaps: Gaps = "refuse",
    irregular: Irregular = "refuse",
) -> FittedSeries:
    """Models of many series, which may differ in length, channels, units, dates and frequency.

    Parameters
    ----------
    series
        A dictionary of series by name, a list of series, or a table with one series per column (missing values before
        its first and after its last sample are left out).
    model
        Estimator with the settings; None takes those of ``TimeDelayedTransformer()``. It is not changed.
    together
        Whether one model is fitted to all series, each in its own standard deviations: for many short series of one
        kind. They need the same channels.
    dt
        Time between samples, for series without times of their own.
    gaps
        ``"refuse"`` missing values, or ``"interpolate"`` them linearly.
    irregular
        ``"refuse"`` uneven times, or ``"resample"`` to the median step.

    Returns
    -------
    FittedSeries
        The fitted models by name.

    Examples
    --------
    >>> waves = {"fast": np.sin(np.arange(60)), "slow": np.cos(0.1 * np.arange(90))}
    >>> fitted = fit_each(waves, TimeDelayedTransformer(4, restarts=1, random_state=0, progress=False))
    >>> {name: ahead.values.shape for name, ahead in fitted.forecast(5).items()}
    {'fast': (5, 1), 'slow': (5, 1)}
    """
    chosen = TimeDelayedTransformer() if model is None else model
    if not isinstance(chosen, TimeDelayedTransformer):
        raise InputError("model", type(model).__name__, "must be a TimeDelayedTransformer", "pass an estimator or None")
    parts = _named(series)
    settings = chosen.get_params()
    if together:
        return _fit_together(parts, settings, dt, gaps, irregular)
    fitted = {}
    for name, part in parts.items():
        try:
            one = TimeDelayedTransformer(**settings)
            fitted[name] = one.fit(part, dt=_own_dt(part, dt), gaps=gaps, irregular=irregular)
        except InputError as error:
            raise _named_error(name, error) from None
    return FittedSeries(fitted)


def _named_error(name: str, error: InputError) -> InputError:
    return InputError(f"{error.argument} {name!r}", error.value, error.problem, error.remedy)


def _own_dt(part: object, dt: float | None) -> float | None:
    """The time step, for a series without times of its own."""
    return None if labels_of(part, 0.0, 0).kind else dt


def _named(series: Any) -> dict[str, Any]:
    """Series by name."""
    if isinstance(series, Mapping):
        parts = {str(name): part for name, part in series.items()}
    elif hasattr(series, "columns") and hasattr(series, "index"):
        # A column ends where its own samples end.
        parts = {str(name): series[name].loc[_first_and_last(series[name])] for name in series.columns}
    elif isinstance(series, (list, tuple)) and len(series) and np.ndim(series[0]) >= 1:
        names = [getattr(part, "name", None) for part in series]
        usable = len({str(name) for name in names}) == len(names) and all(name is not None for name in names)
        parts = {str(names[k]) if usable else str(k + 1): part for k, part in enumerate(series)}
    else:
        problem = "must be several series: a dictionary, a list or a table"
        raise InputError("series", type(series).__name__, problem, "call TimeDelayedTransformer().fit for one series")
    if not parts:
        raise InputError("series", "none", "must hold a series", "pass a dictionary of series by name")
    return parts


def _first_and_last(column: Any) -> slice:
    return slice(column.first_valid_index(), column.last_valid_index())


def _fit_together(
    parts: dict[str, Any], settings: dict[str, Any], dt: float | None, gaps: Gaps, irregular: Irregular
) -> FittedSeries:
    for name in ("pod", "transform", "lower", "upper"):
        if settings[name] is not None:
            raise InputError(name, repr(settings[name]), "cannot be used with together=True", "fit a model each")
    rows, places = [], {}
    for name, part in parts.items():
        try:
            record = read_series(part, dt=_own_dt(part, dt), gaps=gaps, irregular=irregular)
        except InputError as error:
            raise _named_error(name, error) from None
        z = record.trajectories[0]
        units = Units.of([z])
        labels = labels_of(part, record.last_time, len(z))
        places[name] = _Shared(units, z, labels, record.last_time, record.dt)
        # Constant channels stay, so that all series have the same.
        rows.append((z - units.mean) / units.scale)
    model = TimeDelayedTransformer(**settings).fit(rows, dt=1.0)
    for name, place in places.items():
        if len(place.window) < model.window:
            problem = f"has {len(place.window)} samples, and the model of all series starts from {model.window}"
            raise InputError("series", name, problem, "leave it out, or fit with fewer delays")
    kept = {name: replace(place, window=place.window[-model.window :]) for name, place in places.items()}
    return FittedSeries(dict.fromkeys(parts, model), kept)


def _in_own_units(model: TimeDelayedTransformer, place: _Shared, steps: int) -> Forecast:
    """Forecast of one series by a model of all, in the units and at the times of the series."""
    own, shared = place.units, model.units_
    ahead = model.forecast(steps, window=(place.window - own.mean) / own.scale)
    times = np.asarray(place.last_time + place.dt * np.arange(1, steps + 1), dtype=np.float64)
    units = Units(own.mean + own.scale * shared.mean, own.scale * shared.scale, shared.varying)
    distribution = ahead.distribution
    if distribution is not None:
        distribution = ErrorDistribution(distribution.centre, distribution.growth, units)
    return Forecast(
        ahead.values * own.scale + own.mean,
        ahead.spread * own.scale,
        times,
        ahead.outcome,
        ahead.left_range_at,
        distribution,
        place.labels,
    )


def sktime_forecaster(estimator: TimeDelayedTransformer | None = None) -> Any:
    """The forecaster with the interface of sktime, which must be installed.

    It takes and gives pandas tables, forecasts given steps (``fh``), and has intervals and quantiles.

    Parameters
    ----------
    estimator
        Estimator with the settings; None takes those of ``TimeDelayedTransformer()``.

    Returns
    -------
    sktime.forecasting.base.BaseForecaster
        The forecaster, not fitted.
    """
    from .sktime_adapter import SktimeForecaster

    return SktimeForecaster(estimator)
