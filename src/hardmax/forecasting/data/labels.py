"""Labels of the data: names of the channels, and dates that continue by the rule of the record.

Months, quarters and business days are not evenly spaced, so the dates of a forecast are counted by the rule of the
index (``"MS"``, ``"QE-DEC"``, ``"B"``), not in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..protocol import FloatArray
from .timestamps import calendar_rule, dims_of, same_day_of_months, table_index, without_holes

if TYPE_CHECKING:
    import pandas

KINDS = ("", "date", "period", "duration")
"""What the index of the data held: nothing of its own, dates, periods or durations."""


@dataclass(frozen=True)
class Labels:
    """Names of the channels and the end of the index of a record, as far as the data had them.

    Attributes
    ----------
    names
        Names of the channels; empty where the data had none.
    kind
        ``"date"``, ``"period"`` or ``"duration"``, or empty for data without an index of these.
    last
        Last date of the record in ISO 8601, or its last duration in seconds.
    rule
        Frequency of the index, as pandas writes it; empty where dates are evenly spaced in seconds.
    months
        Months between dates on the same day of each month, where there is no other rule; 0 otherwise.
    zone
        Time zone of the dates; empty without one.
    index_name
        Name of the index; empty without one.
    origin
        Time of the last sample, as in the times of a forecast.
    step
        Time between samples; 0 where the first step of a forecast follows ``last``.
    inputs
        Names of the exogenous inputs; empty where they had none.
    """

    names: tuple[str, ...] = ()
    kind: str = ""
    last: str = ""
    rule: str = ""
    months: int = 0
    zone: str = ""
    index_name: str = ""
    origin: float = 0.0
    step: float = 0.0
    inputs: tuple[str, ...] = ()

    def channels(self, count: int) -> tuple[str, ...]:
        """Names of ``count`` channels; ``"channel 1"`` and so on where the data had none."""
        return self.names if len(self.names) == count else tuple(f"channel {k + 1}" for k in range(count))

    def moments(self, times: FloatArray) -> list[str]:
        """Times as text: dates where the data had them, else numbers."""
        if not self.kind:
            return [f"{time:.6g}" for time in times]
        return [str(label).removesuffix(" 00:00:00") for label in self.index(times)]

    def index(self, times: FloatArray) -> pandas.Index:
        """Index of the steps of a forecast with these ``times``, evenly spaced after the record."""
        import pandas as pd

        name = self.index_name or None
        # After an update with new samples, forecasts start later than at the last date of the fit.
        first = max(1, round((float(times[0]) - self.origin) / self.step)) if self.step else 1
        steps = len(times) + first - 1
        if self.kind == "period":
            return pd.period_range(pd.Period(self.last, freq=self.rule), periods=steps + 1, name=name)[first:]
        if self.kind == "date" and self.rule:
            start = pd.Timestamp(self.last, tz=self.zone or None)
            return pd.date_range(start, periods=steps + 1, freq=self.rule, name=name)[first:]
        if self.kind == "date" and self.months:
            start = pd.Timestamp(self.last, tz=self.zone or None)
            dates = [start + pd.DateOffset(months=self.months * k) for k in range(first, steps + 1)]
            return pd.DatetimeIndex(dates, name=name)
        if self.kind == "date":
            ahead = pd.to_timedelta(np.asarray(times) - self.origin, unit="s").round("ms")
            return pd.DatetimeIndex(pd.Timestamp(self.last, tz=self.zone or None) + ahead, name=name)
        if self.kind == "duration":
            seconds = float(self.last) + np.asarray(times) - self.origin
            return pd.TimedeltaIndex(pd.to_timedelta(seconds, unit="s").round("ms"), name=name)
        return pd.Index(np.asarray(times), name=name or "time")


NO_LABELS = Labels()
"""Labels of data without names and dates."""


def labels_of(part: Any, last_time: float, samples: int) -> Labels:
    """Labels of one record; without dates where it has none or was resampled to another number of samples."""
    names = names_of(part)
    index = index_of(part)
    kind = {"DatetimeIndex": "date", "PeriodIndex": "period", "TimedeltaIndex": "duration"}.get(
        type(index).__name__, ""
    )
    if not kind or index is None or not len(index):
        return Labels(names)
    title = "" if index.name is None else str(index.name)
    if kind == "date" and len(index) < samples and (whole := without_holes(index)) is not None:
        index = whole.rename(index.name)
    same = len(index) == samples
    if kind == "period":
        same = same or index[-1].ordinal - index[0].ordinal + 1 == samples
        if not same:
            return Labels(names)
        return Labels(names, kind, str(index[-1]), str(index.freqstr), index_name=title, origin=last_time)
    if kind == "duration":
        last = index[-1] if same else index[0]
        seconds = float(last.total_seconds())
        return Labels(names, kind, repr(seconds), index_name=title, origin=last_time if same else 0.0)
    zone = "" if index.tz is None else str(index.tz)
    last = index[-1] if same else index[0]
    moment = last.tz_localize(None).isoformat()
    if not same:
        # Resampled to even steps: dates are counted in seconds from the first.
        return Labels(names, kind, moment, zone=zone, index_name=title)
    rule = calendar_rule(index) or ""
    months = 0 if rule else same_day_of_months(index)
    return Labels(names, kind, moment, rule, months, zone, title, last_time)


def index_of(part: Any) -> Any:
    """Index of a pandas object, or one made of the first coordinate of an xarray array; None without either."""
    dims = dims_of(part)
    if dims and dims[0] in part.coords:
        import pandas as pd

        column = np.asarray(part.coords[dims[0]])
        return pd.DatetimeIndex(column, name=str(dims[0])) if column.dtype.kind == "M" else None
    return table_index(part)


def names_of(part: Any) -> tuple[str, ...]:
    """Names of the channels of a table or a series, or nothing."""
    columns = getattr(part, "columns", None)
    if columns is not None and not callable(columns):
        return tuple(" ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in columns)
    if dims := dims_of(part):
        known = len(dims) == 2 and dims[1] in part.coords
        if len(dims) == 1 and part.name is not None:
            return (str(part.name),)
        return tuple(str(name) for name in np.asarray(part.coords[dims[1]])) if known else ()
    given = getattr(part, "names", None)  # hardmax.datasets.Series
    if isinstance(given, tuple) and all(isinstance(name, str) for name in given):
        return given
    if getattr(part, "index", None) is not None and getattr(part, "name", None) is not None:  # pandas.Series
        return (str(part.name),)
    return ()


def last_labels(parts: Sequence[Any], inputs: Sequence[Any], last_time: float, samples: int, step: float) -> Labels:
    """Labels of the last of several records, after which a forecast continues; ``step`` is the time between samples.

    Names are those of the first record and of the first inputs, in whose order the columns of all are read.
    """
    if not parts:
        return NO_LABELS
    named = names_of(inputs[0]) if inputs else ()
    return replace(labels_of(parts[-1], last_time, samples), names=names_of(parts[0]), step=step, inputs=named)
