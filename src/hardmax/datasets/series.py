"""A time series as a value: samples, times and names of the channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..randomness import seeded
from ..tables.dates import MONTH, Months


@dataclass(frozen=True, eq=False)
class Series:
    """Samples of a few channels in time; the arrays cannot be written to.

    >>> two = Series(np.array([[0.0], [1.0], [4.0]]), np.array([0.0, 0.5, 1.0]), ("x",), "squares")
    >>> two.dt, len(two), two.channels
    (0.5, 3, 1)
    """

    values: np.ndarray
    """Shape (samples, channels), float64; NaN where a file had nothing."""
    times: np.ndarray
    """Shape (samples,)."""
    names: tuple[str, ...]
    """The channels."""
    source: str
    """Source of the series: a file, or the system that generated it."""
    lyapunov_exponent: float | None = None
    """The largest one, in the units of ``times``, where it is known."""
    time_name: str = "time"
    """The column the times came from; empty where there was none and samples are numbered."""
    began: str = ""
    """The date of time zero, where the times came from dates; times are then in seconds."""
    months: Months | None = None
    """Step of dates that are whole months apart, otherwise None; a month counts as a twelfth of a mean year."""
    in_utc: bool = False
    """Whether dates are told by the clock of UTC, because those of the file had several offsets from it."""
    offset: str = ""
    """Offset from UTC of the clock of the dates, such as ``"+01:00"``, or ``"Z"``; empty where it is not known."""

    def __post_init__(self) -> None:
        for array in (self.values, self.times):
            array.setflags(write=False)

    @property
    def dt(self) -> float:
        """Mean time between samples."""
        return float((self.times[-1] - self.times[0]) / (len(self.times) - 1))

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.times)

    def observing(self, *columns: int) -> Series:
        """The same series with some of its channels only.

        Parameters
        ----------
        *columns
            Numbers of the channels, counted from 0.

        Returns
        -------
        Series
            The series of these channels.
        """
        names = tuple(self.names[k] for k in columns)
        return replace(self, values=self.values[:, list(columns)].copy(), names=names)

    def dates(self, times: np.ndarray) -> np.ndarray:
        """Times in seconds as dates, for a series whose time column held dates.

        Parameters
        ----------
        times
            Times as in :attr:`times`, shape (n,).

        Returns
        -------
        numpy.ndarray
            Dates in ISO 8601, as text, shape (n,).

        Examples
        --------
        >>> day = Series(np.zeros((2, 1)), np.array([0.0, 60.0]), ("x",), "made up", began="2024-02-28T23:59:00")
        >>> day.dates(np.array([60.0])).tolist()
        ['2024-02-29T00:00:00']
        """
        if self.months is not None:
            steps = np.round(np.asarray(times) / (MONTH * self.months.apart)).astype(np.int64)
            return np.asarray(np.datetime_as_string(self.months.after(self.began, steps), unit="s"))
        ahead = np.round(np.asarray(times) * 1e3).astype("timedelta64[ms]")
        return np.asarray(np.datetime_as_string(np.datetime64(self.began, "ms") + ahead, unit="s"))

    def dates_with_offset(self, times: np.ndarray) -> np.ndarray:
        """Times in seconds as dates with their offset from UTC, where it is known.

        Parameters
        ----------
        times
            Times as in :attr:`times`, shape (n,).

        Returns
        -------
        numpy.ndarray
            Dates in ISO 8601, as text, shape (n,).

        Examples
        --------
        >>> hour = Series(np.zeros((2, 1)), np.array([0.0, 60.0]), ("x",), "made up", began="2024-02-28", offset="Z")
        >>> hour.dates_with_offset(np.array([60.0])).tolist()
        ['2024-02-28T00:01:00Z']
        """
        return np.char.add(self.dates(times), self.offset)

    def on_an_axis(self, times: np.ndarray) -> np.ndarray:
        """Times as numbers on an axis: milliseconds since 1970 where they came from dates, as browsers count.

        Parameters
        ----------
        times
            Times as in :attr:`times`, shape (n,).

        Returns
        -------
        numpy.ndarray
            Places on the axis, shape (n,).
        """
        if not self.began:
            return np.asarray(times)
        if self.months is not None:
            return np.asarray(self.dates(times), dtype="datetime64[ms]").astype(np.float64)
        return np.asarray(np.datetime64(self.began, "ms").astype(np.float64) + 1e3 * np.asarray(times))

    def stepping(self, dt: float) -> Series:
        """The same samples at times ``dt`` apart from zero on.

        Parameters
        ----------
        dt
            Time between samples.

        Returns
        -------
        Series
            The series without its own times.
        """
        return replace(
            self, times=dt * np.arange(len(self), dtype=np.float64), time_name="", began="", months=None, offset=""
        )

    def every(self, stride: int) -> Series:
        """Every ``stride``-th sample: the same system, sampled more coarsely.

        Parameters
        ----------
        stride
            Samples from one to the next that is selected.

        Returns
        -------
        Series
            The shorter series.
        """
        return replace(self, values=self.values[::stride].copy(), times=self.times[::stride].copy())

    def with_noise(self, share: float, random_state: int | np.random.Generator | None) -> Series:
        """The series with independent normal noise.

        Parameters
        ----------
        share
            Standard deviation of the noise, in standard deviations of each channel.
        random_state
            A seed or a NumPy generator; None draws a seed.

        Returns
        -------
        Series
            The noisy series.
        """
        noise = seeded(random_state).generator.standard_normal(self.values.shape)
        return replace(self, values=self.values + share * self.values.std(axis=0) * noise)
