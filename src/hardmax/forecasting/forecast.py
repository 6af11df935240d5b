"""Forecasts: values, spread, intervals, times and outcome, also as tables of pandas and xarray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..outcomes import Ending, Outcome
from ..randomness import seeded
from ..scalars import as_count
from .data.labels import NO_LABELS, Labels
from .data.units import Units
from .error_growth import ErrorGrowth
from .protocol import FloatArray
from .rollout import Ahead

if TYPE_CHECKING:
    import pandas
    import xarray


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML of a table; every cell is escaped."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


_ROWS, _COLUMNS = 4, 6
"""First and last steps, and channels, that a notebook shows: a table that fits on a screen."""


class Band(NamedTuple):
    """Lower and upper end of an interval at every step."""

    lower: FloatArray
    """Lower end, of the shape of the forecast."""
    upper: FloatArray
    """Upper end, of the shape of the forecast."""


_BAND_DRAWS = 4000
"""Error paths from which the width of a band for whole paths is found: its level is then right to 1 %."""


@dataclass(frozen=True)
class ErrorDistribution:
    """Distribution of the errors of a forecast, by the held-out rollouts of its model.

    Attributes
    ----------
    centre
        Forecast in normalised units, shape (..., steps, outputs).
    growth
        Errors of the held-out rollouts; None where nothing varies.
    units
        Units of the data.
    """

    centre: FloatArray
    growth: ErrorGrowth | None
    units: Units

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Quantiles of the true samples.

        Parameters
        ----------
        levels
            Probabilities between 0 and 1, shape (levels,).

        Returns
        -------
        ndarray
            Quantiles, shape (levels, ..., steps, channels).
        """
        if self.growth is None:
            return np.stack([self.units.restore(self.centre)] * len(levels))
        central = np.abs(2 * levels - 1)
        widths = self.growth.half_widths(central, self.centre.shape[-2]) * np.sign(levels - 0.5)[:, None, None]
        return np.stack([self.units.restore(self.centre + width) for width in widths])

    def band(self, level: float) -> Band:
        """Band that holds the whole path of each channel.

        Parameters
        ----------
        level
            Probability between 0 and 1.

        Returns
        -------
        Band
            Lower and upper end, each of shape (..., steps, channels).
        """
        if self.growth is None:
            return Band(*self.quantiles(np.array([0.5, 0.5])))
        steps = self.centre.shape[-2]
        width = self.growth.half_widths(np.array([level]), steps)[0]
        # The seed is fixed, so that the same forecast has the same band every time.
        paths = self.growth.paths(_BAND_DRAWS, steps, np.random.default_rng(0))
        factor = np.maximum(np.quantile((np.abs(paths) / width).max(axis=1), level, axis=0), 1.0)
        return Band(*(self.units.restore(self.centre + sign * factor * width) for sign in (-1, 1)))

    def samples(self, count: int, generator: np.random.Generator) -> FloatArray:
        """Possible paths of the true samples.

        Parameters
        ----------
        count
            Number of paths.
        generator
            Source of random numbers.

        Returns
        -------
        ndarray
            Paths, shape (count, ..., steps, channels).
        """
        if self.growth is None:
            return np.stack([self.units.restore(self.centre)] * count)
        starts = self.centre.reshape(-1, *self.centre.shape[-2:])
        paths = self.growth.paths(count * len(starts), self.centre.shape[-2], generator)
        return self.units.restore(self.centre + paths.reshape(count, *self.centre.shape))


@dataclass(frozen=True, repr=False)
class Forecast:
    """A forecast from one window or from several; ``numpy.asarray(forecast)`` is its values.

    Attributes
    ----------
    values
        Predicted samples, shape (steps, channels), or (starts, steps, channels) for several windows.
    spread
        Expected errors, of the same shape: the root mean square error that many steps ahead of the same model fitted
        without the data that it forecast. NaN for a model from a file that does not hold such errors.
    times
        Times of the steps, shape (steps,).
    outcome
        Whether the forecast stayed within the range of the training data, in words.
    left_range_at
        Step, counted from 1, at which the forecast left the range of the training data; 0 where it did not, or by no
        more than 5 % of half the range. One number per start.
    distribution
        Distribution of the errors, for :meth:`interval`, :meth:`quantiles` and :meth:`samples`; None where it is not
        known.
    labels
        Names of the channels and dates of the record, as far as the data had them.
    """

    values: FloatArray
    spread: FloatArray
    times: FloatArray
    outcome: Outcome
    left_range_at: int | npt.NDArray[np.int64]
    distribution: ErrorDistribution | None = field(default=None, compare=False)
    labels: Labels = field(default=NO_LABELS, compare=False)

    def interval(self, level: float = 0.9, *, simultaneous: bool = False) -> Band:
        """Interval around the forecast that holds the true sample with a given probability.

        Its width at a step is the quantile of the errors of held-out rollouts that many steps ahead, widened because
        few of these are independent. It never shrinks with the steps (where logarithms are taken: in their units).

        Parameters
        ----------
        level
            Probability, between 0 and 1.
        simultaneous
            Whether the whole path of a channel, all steps at once, is to lie inside with this probability; else each
            sample is.

        Returns
        -------
        Band
            ``lower`` and ``upper``, each of the shape of ``values``.
        """
        chance = _probability("level", level)
        if simultaneous:
            return self._known().band(chance)
        return Band(*self._known().quantiles(np.array([(1 - chance) / 2, (1 + chance) / 2])))

    def quantiles(self, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> FloatArray:
        """Quantiles of the true samples; that at 0.5 is the forecast.

        Parameters
        ----------
        levels
            Probabilities, between 0 and 1.

        Returns
        -------
        ndarray
            Quantiles, shape (levels, \\*shape of the values).
        """
        given = np.array([_probability("levels", level) for level in np.atleast_1d(np.asarray(levels, dtype=object))])
        if not len(given):
            raise InputError("levels", "none", "must hold a probability", "pass levels=[0.05, 0.95]")
        return self._known().quantiles(given)

    def samples(self, count: int = 1000, random_state: int | np.random.Generator | None = None) -> FloatArray:
        """Possible paths: the forecast plus the course of the errors of held-out rollouts.

        Errors at different steps are related as they were in these rollouts, so that sums, means and maxima over the
        steps can be taken of each path.

        Parameters
        ----------
        count
            Number of paths.
        random_state
            A whole number, a generator or None.

        Returns
        -------
        ndarray
            Paths, shape (count, \\*shape of the values).
        """
        return self._known().samples(as_count("count", count, 1), seeded(random_state).generator)

    def _known(self) -> ErrorDistribution:
        if self.distribution is None:
            raise InputError(
                "forecast", "without held-out errors", "has no intervals", "fit the model again with this version"
            )
        return self.distribution

    def to_pandas(self, interval: float | None = None) -> pandas.DataFrame:
        """Forecast as a table with the names and the dates of the data.

        Parameters
        ----------
        interval
            Probability of intervals that are added, between 0 and 1; None for the forecast alone.

        Returns
        -------
        pandas.DataFrame
            One row per step, one column per channel; with ``interval`` also columns ``"… lower"`` and ``"… upper"``.
            The rows of several starts have the start as the first level of their index. The index holds dates where
            the data had them, else times.
        """
        import pandas as pd

        names = self.labels.channels(self.values.shape[-1])
        columns, parts = list(names), [self.values]
        if interval is not None:
            band = self.interval(interval)
            # Lower and upper ends of a channel stand side by side.
            columns += [f"{name} {end}" for name in names for end in ("lower", "upper")]
            parts.append(np.stack([band.lower, band.upper], axis=-1).reshape(*self.values.shape[:-1], -1))
        rows = np.concatenate(parts, axis=-1)
        index = self.labels.index(self.times)
        if self.values.ndim == 3:
            pairs = [(start, label) for start in range(len(self.values)) for label in index]
            index = pd.MultiIndex.from_tuples(pairs, names=["start", index.name or "time"])
        return pd.DataFrame(rows.reshape(-1, len(columns)), index=index, columns=columns)

    def to_xarray(self, interval: float | None = None) -> xarray.Dataset:
        """Forecast as a data set with the names and the dates of the data.

        Parameters
        ----------
        interval
            Probability of intervals that are added, between 0 and 1; None for none.

        Returns
        -------
        xarray.Dataset
            ``forecast`` and ``spread``, with ``lower`` and ``upper`` where asked for, of dimensions ``time`` and
            ``channel``, and ``start`` before them for several starts.
        """
        import pandas as pd
        import xarray as xr

        dims = (*(["start"] if self.values.ndim == 3 else []), "time", "channel")
        parts = {"forecast": self.values, "spread": self.spread}
        if interval is not None:
            parts |= self.interval(interval)._asdict()
        index = self.labels.index(self.times)
        # xarray has no coordinate of periods or of time zones; both become plain dates.
        if isinstance(index, pd.PeriodIndex):
            index = index.to_timestamp()
        elif isinstance(index, pd.DatetimeIndex) and index.tz is not None:
            index = index.tz_convert("UTC").tz_localize(None)
        coords = {"time": np.asarray(index), "channel": list(self.labels.channels(self.values.shape[-1]))}
        return xr.Dataset({name: (dims, part) for name, part in parts.items()}, coords=coords)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)

    def __repr__(self) -> str:
        return f"Forecast({self._about()})"

    def _repr_html_(self) -> str:
        if self.values.ndim != 2:
            return f"<p>{escape(repr(self))}</p>"
        steps, channels = self.values.shape
        shown = range(steps) if steps <= 2 * _ROWS else (*range(_ROWS), None, *range(steps - _ROWS, steps))
        columns = range(min(channels, _COLUMNS))
        names = self.labels.channels(channels)
        moments = self.labels.moments(self.times)
        head = ["time", *(names[k] for k in columns), *(["…"] if channels > _COLUMNS else [])]
        rows = [
            ["…"] * len(head)
            if step is None
            else [
                moments[step],
                *(f"{self.values[step, k]:.4g} ± {self.spread[step, k]:.2g}" for k in columns),
                *(["…"] if channels > _COLUMNS else []),
            ]
            for step in shown
        ]
        return html_table(self._about(), head, rows)

    def _about(self) -> str:
        *starts, steps, channels = self.values.shape
        many = f"{starts[0]} starts, " if starts else ""
        moments = self.labels.moments(self.times)
        return (
            f"{many}{steps} steps of {channels} channel{'s' if channels != 1 else ''}, "
            f"times {moments[0]} to {moments[-1]}: {self.outcome}"
        )

    def __len__(self) -> int:
        return len(self.values)

    def data(self) -> dict[str, Any]:
        """Everything as plain values for JSON.

        Returns
        -------
        dict
            ``"values"``, ``"spread"`` (None where not known), ``"times"``, ``"outcome"`` and ``"left_range_at"``.
        """
        left = self.left_range_at
        return {
            "values": self.values.tolist(),
            # JSON has no NaN.
            "spread": np.where(np.isfinite(self.spread), self.spread.astype(object), np.array(None)).tolist(),
            "times": self.times.tolist(),
            "outcome": str(self.outcome),
            "left_range_at": int(left) if np.ndim(left) == 0 else np.asarray(left).tolist(),
        }


def _probability(argument: str, value: object) -> float:
    """A number between 0 and 1, both excluded."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < float(value) < 1.0:
        raise InputError(argument, repr(value), "must be a number between 0 and 1", "pass 0.9 for nine times in ten")
    return float(value)


def outcome_of(ahead: Ahead, steps: int, fades: bool) -> Outcome:
    """Outcome of a forecast: within the training range, outside it, or diverged.

    ``fades`` says whether the nonlinear part of the model fades out outside the range.
    """
    left = ahead.left > 0
    if ahead.diverged.any():
        first = _first(ahead.left[ahead.diverged], len(left))
        trust = "" if first.endswith(" step 1") else "trust the steps before; "
        return Outcome(
            Ending.DIVERGED,
            f"{_which(ahead.diverged)} left the training range for good{first}",
            f"{trust}train on data that cover the range of the forecast",
        )
    if left.any():
        far = f", and {'it' if len(left) == 1 else _which(ahead.far)} ended far outside" if ahead.far.any() else ""
        return Outcome(
            Ending.TIME_REACHED,
            f"{steps} steps; {_which(left)} left the training range{_first(ahead.left[left], len(left))}{far}"
            f"{', where the nonlinear part fades out' if fades else ''}",
            "treat it as extrapolation" if (ahead.left == 1).all() else "treat the steps after as extrapolation",
        )
    where = "within or close to" if ahead.close.any() else "within"
    return Outcome(Ending.TIME_REACHED, f"{steps} steps {where} the range of the training data")


def _which(among: npt.NDArray[np.bool_]) -> str:
    return "the forecast" if len(among) == 1 else f"{int(among.sum())} of {len(among)} forecasts"


def _first(left: npt.NDArray[np.int64], starts: int) -> str:
    """Step at which the first of the forecasts that left the range did so, ``left``, out of ``starts`` in all."""
    return f" at step {left.min()}" if starts == 1 else f", the first at step {left.min()}"
