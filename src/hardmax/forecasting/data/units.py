"""Units of the data: logarithms of positive channels, mean and standard deviation, bounds of forecasts.

Models are fitted to normalised channels. Where a channel is transformed, its logarithm is normalised, and forecasts and
their intervals are brought back by the exponential, whatever the model is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...scalars import as_choice
from ..protocol import FloatArray

_LARGEST_LOG = 345.0
"""Logarithm of 1e150, the largest value that data may have."""
_ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Rounding of normalised data that are restored, relative to their mean or their spread."""
_BLOCKS = 8
"""Blocks of a record in which the spread is compared with the level."""
_SLOPE = 0.6
"""Growth of the spread with the level, as a power, from which on logarithms are taken: half way between spreads that do
not depend on the level (0) and spreads in proportion to it (1), and a little more."""
_LEVELS_APART = 2.0
"""Ratio of the highest to the lowest level of the blocks from which on the power can be told."""
_CORRELATION = 0.7
"""Correlation between the logarithms of level and spread below which the power is not trusted."""


@dataclass(frozen=True)
class Units:
    """Mean and standard deviation per channel; normalised data leave out constant channels.

    Attributes
    ----------
    mean
        Mean per channel, of its logarithm where that is taken, shape (channels,).
    scale
        Standard deviation per channel, shape (channels,); 1 for constant channels.
    varying
        1 for channels that vary and 0 for constant ones, shape (channels,).
    shift
        Number that is added before the logarithm is taken, NaN for channels without, shape (channels,); None where no
        channel is transformed.
    lower, upper
        Bounds of the forecasts, each of shape (channels,); None without bounds.
    counts
        1 for channels that are forecast by whole counts, shape (channels,); None without any.
    """

    mean: FloatArray
    scale: FloatArray
    varying: FloatArray
    shift: FloatArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    counts: FloatArray | None = None

    @classmethod
    def of(
        cls,
        trajectories: Sequence[FloatArray],
        *,
        transform: str | None = None,
        lower: FloatArray | None = None,
        upper: FloatArray | None = None,
    ) -> Units:
        """Units of the data; a channel that varies by no more than rounding counts as constant.

        ``transform`` is None, ``"log"`` or ``"auto"`` (logarithms of the channels whose spread grows with their level).
        """
        data = np.concatenate(list(trajectories))
        size = np.abs(data).max(axis=0)
        size = np.where(size > 0, size, 1.0)
        shrunk = data / size
        mean, spread = shrunk.mean(axis=0), shrunk.std(axis=0)
        varying = (spread > 8 * np.finfo(np.float64).eps) & (spread * size > 1e-280)
        mean, scale = mean * size, np.where(varying, spread, 1.0) * np.where(varying, size, 1.0)
        shift = _shifts(trajectories, varying, transform)
        if shift is not None:
            logs = _logarithms(data, shift)
            logged = np.isfinite(shift)
            mean = np.where(logged, logs.mean(axis=0), mean)
            scale = np.where(logged, logs.std(axis=0), scale)
        return cls(mean, scale, varying.astype(float), shift, lower, upper)

    def on_one_scale(self) -> Units:
        """Units in which all channels that vary have the largest of the scales, as coefficients of fields should.

        Errors are then those of the field: a mode that holds little of its energy counts little.
        """
        scale = self.scale.copy()
        scale[self.keep] = self.scale[self.keep].max(initial=0.0)
        return replace(self, scale=scale)

    @property
    def keep(self) -> npt.NDArray[np.int64]:
        """Indices of the channels that vary."""
        return np.flatnonzero(self.varying > 0).astype(np.int64)

    def normalise(self, values: FloatArray) -> FloatArray:
        """Channels that vary, in standard deviations, shape (..., varying channels)."""
        keep = self.keep
        if self.shift is not None:
            lowest = -self.shift
            if (values <= lowest).any():
                raise InputError(
                    "series",
                    f"{float(np.min(values)):.6g}",
                    "is not positive, and the model was fitted to logarithms",
                    "fit with transform=None, or leave out such samples",
                )
            values = _logarithms(values, self.shift)
        return np.asarray((values[..., keep] - self.mean[keep]) / self.scale[keep])

    def restore(self, values: FloatArray) -> FloatArray:
        """All channels in the units of the data and within their bounds, shape (..., channels)."""
        keep = self.keep
        whole = np.broadcast_to(self.mean, (*values.shape[:-1], len(self.mean))).copy()
        found = values * self.scale[keep] + self.mean[keep]
        # What is rounding of the units is zero, as in a forecast of no counts.
        rounding = _ROUNDING * np.fmax(np.abs(self.mean[keep]), self.scale[keep])
        whole[..., keep] = np.where(np.abs(found) <= rounding, 0.0, found)
        if self.shift is not None:
            logged = np.isfinite(self.shift)
            whole[..., logged] = np.exp(np.minimum(whole[..., logged], _LARGEST_LOG)) - self.shift[logged]
        if self.lower is not None:
            whole = np.maximum(whole, self.lower)
        if self.upper is not None:
            whole = np.minimum(whole, self.upper)
        return np.asarray(whole)

    def of_counts(self, outputs: npt.NDArray[np.bool_]) -> Units:
        """Units of data whose marked channels, of those that vary, are counts: forecasts are not below zero."""
        counts = np.zeros(len(self.mean))
        counts[self.keep] = outputs
        lower = np.full(len(self.mean), -np.inf) if self.lower is None else self.lower
        return replace(self, lower=np.where(counts > 0, np.fmax(lower, 0.0), lower), counts=counts)

    def whole(self, values: FloatArray) -> FloatArray:
        """Restored forecasts (..., channels) with counts as whole numbers, without the rounding of units."""
        return values if self.counts is None else np.where(self.counts > 0, np.round(values), values)

    def bounded(self, values: FloatArray) -> FloatArray:
        """Normalised forecasts, shape (..., varying channels), within the bounds of the data."""
        for bound, clip in ((self.lower, np.fmax), (self.upper, np.fmin)):
            if bound is not None:
                values = clip(values, self._normalised_bound(bound))
        return values

    def _normalised_bound(self, bound: FloatArray) -> FloatArray:
        if self.shift is not None:
            with np.errstate(divide="ignore"):
                logs = np.log(np.fmax(bound + self.shift, 0.0))
            bound = np.where(np.isfinite(self.shift), logs, bound)
        return np.asarray(((bound - self.mean) / self.scale)[self.keep])

    def restore_spread(self, spread: FloatArray, values: FloatArray) -> FloatArray:
        """Spread around the normalised ``values`` in the units of the data; zero in constant channels.

        Where logarithms are taken it is half the distance between one spread above and one below. Rounding of the data
        is its lower bound in channels that vary.
        """
        whole = np.zeros((*spread.shape[:-1], len(self.mean)))
        whole[..., self.keep] = spread * self.scale[self.keep]
        free = Units(self.mean, self.scale, self.varying, self.shift)
        if self.shift is not None:
            logged = np.isfinite(self.shift)
            both = free.restore(values + spread) - free.restore(values - spread)
            whole[..., logged] = both[..., logged] / 2
        rounding = np.finfo(np.float64).eps * np.abs(free.restore(values)) * self.varying
        return np.maximum(whole, rounding)


@dataclass(frozen=True)
class Scaling:
    """Transform and bounds of the data as the caller gave them, checked against the data.

    Attributes
    ----------
    transform
        None, ``"log"`` or ``"auto"``.
    lower, upper
        None, one number, or one per channel.
    """

    transform: str | None = None
    lower: object = None
    upper: object = None

    def check(self, fields: bool) -> None:
        """Refuse an unknown transform, and transforms or bounds of the coefficients of fields."""
        as_choice("transform", self.transform, (None, "log", "auto"))
        for name in ("transform", "lower", "upper"):
            if fields and (value := getattr(self, name)) is not None:
                problem = "cannot be used with pod, whose coefficients have any sign"
                raise InputError(name, repr(value), problem, "transform the fields before the fit")

    def units(self, trajectories: Sequence[FloatArray]) -> tuple[Units, list[str]]:
        """Units of the data, and notes on transforms and bounds."""
        data = np.concatenate(list(trajectories))
        lower = _bound("lower", self.lower, data.shape[1], data.min(axis=0), -np.inf)
        upper = _bound("upper", self.upper, data.shape[1], data.max(axis=0), np.inf)
        if lower is not None and upper is not None and (lower >= upper).any():
            raise InputError("upper", repr(self.upper), "must be above lower", "exchange the bounds")
        units = Units.of(trajectories, transform=self.transform, lower=lower, upper=upper)
        if units.shift is None:
            return units, []
        logged = [str(j + 1) for j in np.flatnonzero(np.isfinite(units.shift))]
        which = "" if len(logged) == len(units.mean) else f" of channel {', '.join(logged)}"
        why = "" if self.transform == "log" else ", because their spread grows with their level"
        return units, [f"Logarithms{which} were fitted{why}."]


def _bound(argument: str, value: object, channels: int, extreme: FloatArray, none: float) -> FloatArray | None:
    """Bound per channel; refused where data lie beyond it. ``none`` stands for a channel without a bound."""
    if value is None:
        return None
    try:
        bound = np.array([none if part is None else float(part) for part in np.ravel(np.asarray(value, dtype=object))])
    except (TypeError, ValueError):
        bound = np.array([np.nan])
    if len(bound) not in (1, channels) or np.isnan(bound).any():
        problem = f"must be a number, or one number or None for each of the {channels} channels"
        raise InputError(argument, repr(value), problem, f"pass {argument}=0")
    bound = np.broadcast_to(bound, (channels,)).copy()
    beyond = extreme < bound if none < 0 else extreme > bound
    if beyond.any():
        j = int(np.flatnonzero(beyond)[0])
        problem = f"is passed by the data: channel {j} reaches {extreme[j]:.6g}"
        raise InputError(argument, repr(value), problem, "pass a bound that the data keep, or correct the samples")
    return bound


def _logarithms(values: FloatArray, shift: FloatArray) -> FloatArray:
    """Values with the logarithm of the channels that have a shift."""
    logged, found = np.isfinite(shift), np.array(values, dtype=np.float64)
    found[..., logged] = np.log(found[..., logged] + shift[logged])
    return found


def _shifts(
    trajectories: Sequence[FloatArray], varying: npt.NDArray[np.bool_], transform: str | None
) -> FloatArray | None:
    """Shift per channel, NaN for channels whose logarithm is not taken; None where no channel has one."""
    if transform is None:
        return None
    shift = np.full(len(varying), np.nan)
    for j in np.flatnonzero(varying):
        columns = [z[:, j] for z in trajectories]
        lowest = min(float(column.min()) for column in columns)
        if transform == "log" and lowest < 0:
            raise InputError(
                "transform", "'log'", f"needs values of zero or more, and channel {j} has {lowest:.6g}", "pass None"
            )
        if lowest >= 0 and (transform == "log" or _grows_with_level(columns)):
            # Zeros have no logarithm: counts are shifted by one, other data by half of their smallest positive value.
            shift[j] = 0.0 if lowest > 0 else _smallest_unit(columns)
    return shift if np.isfinite(shift).any() else None


def _smallest_unit(columns: Sequence[FloatArray]) -> float:
    data = np.concatenate(list(columns))
    return 1.0 if (data == np.round(data)).all() else float(data[data > 0].min()) / 2


def _grows_with_level(columns: Sequence[FloatArray]) -> bool:
    """Whether the spread of the samples grows with their level by a power of more than 0.6.

    Each record is cut into blocks; level is the mean and spread the standard deviation of the increments in a block,
    which a trend does not change.
    """
    levels, spreads = [], []
    for column in columns:
        if len(column) < 4 * _BLOCKS:
            continue
        for block in np.array_split(column, _BLOCKS):
            levels.append(float(block.mean()))
            spreads.append(float(np.diff(block).std()))
    if len(levels) < _BLOCKS or min(levels) <= 0 or min(spreads) <= 0:
        return False
    x, y = np.log(levels), np.log(spreads)
    if np.ptp(x) < np.log(_LEVELS_APART):
        return False
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    return slope > _SLOPE and float(x @ y / np.sqrt((x @ x) * (y @ y) + 1e-300)) > _CORRELATION
