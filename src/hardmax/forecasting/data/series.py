"""Trajectories from the caller's data: gaps, uneven times and minimum length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...errors import InputError
from ...outcomes import counted
from ..protocol import FloatArray
from .timestamps import (
    dims_of,
    in_seconds,
    in_words,
    non_numeric_column,
    times_in_seconds,
    times_of,
    values_of,
    with_same_columns,
)
from .units import Units as Units

Gaps = Literal["refuse", "interpolate"]
Irregular = Literal["refuse", "resample"]
_Told = Callable[[float], str]
_LARGEST = 1e150
"""Largest value whose square is still a float64."""
_IRREGULAR = 1e-3
"""Share of a time step by which steps may differ: rounding in files."""
_FEWEST = 8
"""Samples that tuning needs at least."""


@dataclass(frozen=True)
class Record:
    """Trajectories (samples, channels) with one time step, and notes on the preparation of the data."""

    trajectories: list[FloatArray]
    dt: float
    last_time: float
    notes: tuple[str, ...]


def as_array(argument: str, value: object) -> FloatArray:
    """Value as an array of float64; refused unless it holds real numbers."""
    wrong = non_numeric_column(value)
    if wrong is not None:
        name, dates = wrong
        remedy = f"pass times=table[{name!r}] and the other columns" if dates else "leave it out, or convert it first"
        raise InputError(argument, f"column {name!r}", "must hold real numbers in every column", remedy)
    try:
        given = _known_or_nan(value) if hasattr(value, "iloc") else np.asarray(values_of(value))
        if given.dtype.kind == "c":
            raise TypeError("complex numbers: pass real and imaginary parts as channels")
        array = np.asarray(given, dtype=np.float64)
        if isinstance(value, np.ma.MaskedArray):
            array = np.where(np.ma.getmaskarray(value), np.nan, array)
    except (TypeError, ValueError) as error:
        raise InputError(
            argument, f"{type(value).__name__}", "must be an array of real numbers", f"convert it first ({error})"
        ) from None
    return array


def _known_or_nan(table: Any) -> np.ndarray:
    """Values of a table or series of pandas, whose nullable types have their own mark of a missing value."""
    found = np.asarray(table.to_numpy())
    return np.asarray(table.to_numpy(dtype=np.float64, na_value=np.nan)) if found.dtype.kind == "O" else found


def as_list(value: object) -> list[object]:
    """List of series: the parts of a list or tuple of arrays, or one series."""
    if isinstance(value, (list, tuple)) and len(value) > 0 and np.ndim(values_of(value[0])) >= 1:
        # A nested list of numbers is one table; a list of arrays or tables is several series.
        if all(isinstance(part, (list, tuple)) and np.ndim(part) == 1 for part in value):
            return [value]
        return list(value)
    return [value]


def _table(argument: str, value: object) -> FloatArray:
    array = as_array(argument, value)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            argument,
            f"shape {array.shape}",
            "must be (samples,) or (samples, channels)",
            "pass one array, or a list of arrays for several trajectories; for fields pass pod=",
        )
    return array


def fill_gaps(argument: str, z: FloatArray, gaps: Gaps, notes: list[str]) -> FloatArray:
    """Table (samples, channels) with gaps filled linearly, where ``gaps`` allows it; refused otherwise."""
    bad = ~np.isfinite(z)
    if not bad.any():
        return z
    row, column = (int(i) for i in np.argwhere(bad)[0])
    if gaps == "refuse":
        infinite = bool(np.isinf(z).any())
        raise InputError(
            argument,
            f"{z[row, column]} at sample {row}, channel {column} ({int(bad.sum())} in all)",
            "has infinite values, which count as gaps" if infinite else "has gaps",
            'pass gaps="interpolate" to fill them linearly, or split the series at its gaps',
        )
    filled = z.copy()
    index, late = np.arange(len(z)), 0
    for j in range(z.shape[1]):
        good = ~bad[:, j]
        if good.sum() < 2:
            raise InputError(argument, f"channel {j}", "has fewer than two finite samples", "leave this channel out")
        filled[:, j] = np.interp(index, index[good], z[good, j])
        late += len(z) - 1 - int(index[good][-1])
    many = int(bad.sum())
    notes.append(f"{counted(many, 'missing value')} {'was' if many == 1 else 'were'} interpolated linearly.")
    if late:
        notes.append(
            f"{late} of them are at the end, where the last known value was repeated: a forecast then starts from "
            "values that were not measured, so remove these samples if you can."
        )
    return filled


def _times(
    times: object, dt: object, tables: Sequence[FloatArray], notes: list[str]
) -> tuple[list[FloatArray] | None, float, _Told]:
    """Times per table, or None without ``times``; the time step; and a function that puts steps into words."""
    if dt is not None:
        try:
            step = float(in_seconds(dt))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            step = np.nan
        if not np.isfinite(step) or step <= 0:
            raise InputError("dt", repr(dt), "must be a positive number", "pass the time between samples, dt=0.02")
        if times is not None:
            raise InputError("times", "times and dt", "must not both be given", "pass one of them")
        return None, step, _as_number
    if times is None:
        return None, 1.0, _as_number
    columns = []
    told: _Told = _as_number
    for part in as_list(times):
        column, note = times_in_seconds(part)
        columns.append(as_array("times", column).reshape(-1))
        if note:
            told = in_words
        if note and note not in notes:
            notes.append(note)
    if len(columns) != len(tables) or any(len(a) != len(b) for a, b in zip(columns, tables, strict=True)):
        raise InputError(
            "times",
            f"lengths {[len(a) for a in columns]}",
            f"must have one time per sample, lengths {[len(b) for b in tables]}",
            "pass one array of times for each trajectory",
        )
    for column in columns:
        _check_increasing(column)
    return columns, float(np.median(np.concatenate([np.diff(column) for column in columns]))), told


def _as_number(step: float) -> str:
    return f"{step:.6g}"


def _check_increasing(column: FloatArray) -> None:
    """Refuse times that are missing, repeated or decreasing, with the first such place."""
    if len(column) < 2:
        raise InputError("times", f"{len(column)} times", "must be two or more", "pass a longer record")
    if not np.isfinite(column).all():
        place = int(np.flatnonzero(~np.isfinite(column))[0])
        raise InputError("times", f"no time at sample {place}", "must be finite", "leave out samples without a time")
    steps = np.diff(column)
    if (steps < 0).any():
        place = int(np.flatnonzero(steps < 0)[0]) + 1
        remedy = "reverse the order of the samples" if (steps < 0).all() else "sort the samples by time"
        raise InputError("times", f"a step back at sample {place}", "must increase", remedy)
    if (steps == 0).any():
        places = np.flatnonzero(steps == 0) + 1
        raise InputError(
            "times",
            f"{len(places)} repeated, the first at sample {places[0]}",
            "must increase: two samples have the same time",
            "keep one sample per time (or their mean), or pass several series as a list, one each",
        )


def check_choices(gaps: Gaps, irregular: Irregular) -> None:
    """Refuse unknown choices for gaps and for uneven times."""
    for name, value, allowed in (
        ("gaps", gaps, ("refuse", "interpolate")),
        ("irregular", irregular, ("refuse", "resample")),
    ):
        if value not in allowed:
            raise InputError(name, repr(value), f"must be one of {allowed}", f"pass {name}={allowed[1]!r}")


def read_series(
    series: object,
    *,
    dt: object = None,
    times: object = None,
    gaps: Gaps = "refuse",
    irregular: Irregular = "refuse",
    argument: str = "series",
) -> Record:
    """Checked trajectories with the same channels and one time step.

    Without ``dt`` and ``times``, the times that the data have of their own are used.
    """
    check_choices(gaps, irregular)
    given = as_list(series)
    for part in given:
        _check_time_first(argument, part)
    parts = with_same_columns(given)
    if parts is None:
        raise InputError(argument, "tables", "must all have the columns of the first", "give them the same names")
    if times is None and dt is None:
        times = times_of(parts)
    tables = [_table(argument, part) for part in parts]
    widths = {table.shape[1] for table in tables}
    if len(widths) != 1:
        raise InputError(
            argument, f"widths {sorted(widths)}", "must have the same channels in every trajectory", "align the columns"
        )
    notes: list[str] = []
    columns, step, told = _times(times, dt, tables, notes)
    tables = [fill_gaps(argument, table, gaps, notes) for table in tables]
    for table in tables:
        if table.size and float(np.abs(table).max()) > _LARGEST:
            raise InputError(
                argument, f"{np.abs(table).max():.3g}", f"must stay below {_LARGEST:g}", "choose larger units"
            )
        if len(table) < table.shape[1] and len(tables) == 1 and table.shape[1] > 50:
            raise InputError(
                argument,
                f"shape {table.shape}",
                "has fewer samples than channels",
                "axes are (samples, channels): transpose it, or reduce fields with pod=",
            )
    last = 0.0
    if columns is not None:
        tables, note = _regular(tables, columns, step, irregular, told)
        notes += note
        last = float(columns[-1][0]) + step * (len(tables[-1]) - 1)
    else:
        last = step * (len(tables[-1]) - 1)
    return Record([np.ascontiguousarray(table) for table in tables], step, last, tuple(notes))


_JUMP, _FEW_CHANGES = 5.0, 20
"""Ratio of the last change of a record to the largest before it, of so many at least, from which on it is told."""


def jump_at_the_end(record: Record, names: Sequence[str] = ()) -> tuple[str, ...]:
    """A sentence on each channel whose last sample is far from all others: forecasts start from it."""
    changes = np.abs(np.diff(record.trajectories[-1], axis=0))
    if len(changes) <= _FEW_CHANGES:
        return ()
    last, before = changes[-1], changes[:-1].max(axis=0)
    return tuple(
        f"The last sample of {names[k] if k < len(names) else f'channel {k}'} differs from the one before it by "
        f"{last[k]:.3g}, earlier samples by {before[k]:.3g} at most: the forecast starts from it, so leave it out if "
        "it is a mistake."
        for k in np.flatnonzero((before > 0) & (last > _JUMP * before)).tolist()
    )


def _check_time_first(argument: str, part: Any) -> None:
    """Refuse an xarray array whose dates belong to another dimension than the first."""
    dims = dims_of(part)
    dated = [name for name in dims if name in part.coords and np.asarray(part.coords[name]).dtype.kind in "Mm"]
    if dated and dims[0] not in dated:
        order = ", ".join(map(repr, [dated[0], *(name for name in dims if name != dated[0])]))
        raise InputError(argument, f"dimensions {dims}", "must have time first", f"pass array.transpose({order})")


def read_for_tuning(trajectories: object, dt: object) -> tuple[list[FloatArray], Units]:
    """Trajectories long enough for a validation part, with at least one channel that varies; and their units."""
    checked = read_series(trajectories, dt=dt, argument="trajectories").trajectories
    shortest, units = min(len(z) for z in checked), Units.of(checked)
    if shortest < _FEWEST:
        raise InputError("trajectories", f"{shortest} samples", f"must have {_FEWEST} or more", "pass longer ones")
    if len(units.keep) == 0:
        raise InputError("trajectories", "constant channels only", "must vary", "pass data that vary")
    return checked, units


def as_windows(windows: object, units: Units) -> FloatArray:
    """Normalised windows, shape (starts, samples, channels)."""
    array, channels = as_array("windows", windows), len(units.mean)
    if array.ndim != 3 or array.shape[2] != channels:
        problem = f"must be (starts, samples, {channels})"
        raise InputError("windows", f"shape {array.shape}", problem, "pass windows[None] for a single one")
    return units.normalise(array)


_OTHER_FREQUENCY = 1.25
"""Ratio of two steps from which on they belong to different frequencies; months of 28 and 31 days differ by less."""
_FEW_STEPS = 3
"""Steps of one length in a row that count as a frequency."""


def _regular(
    tables: list[FloatArray], columns: list[FloatArray], step: float, irregular: Irregular, told: _Told
) -> tuple[list[FloatArray], list[str]]:
    uneven = max(float(np.abs(np.diff(column) - step).max()) / step for column in columns)
    if uneven <= _IRREGULAR:
        return tables, []
    if irregular == "refuse":
        what = _unevenness(columns, step, uneven, told)
        raise InputError("times", what, "must be evenly spaced", _remedy(columns, step))
    even = []
    for table, column in zip(tables, columns, strict=True):
        grid = column[0] + step * np.arange(int((column[-1] - column[0]) / step + 1e-9) + 1)
        even.append(np.stack([np.interp(grid, column, table[:, j]) for j in range(table.shape[1])], axis=1))
    return even, [f"Samples were resampled to an even step of {told(step)} by linear interpolation."]


def _frequency_change(columns: list[FloatArray]) -> tuple[int, float, float] | None:
    """Sample from which on steps have another length to the end, with the steps before and after; None otherwise."""
    for column in columns:
        steps = np.diff(column)
        changes = np.flatnonzero(np.abs(np.diff(steps)) > _IRREGULAR * steps[:-1])
        if len(changes) == 1 and _FEW_STEPS <= changes[0] + 1 <= len(steps) - _FEW_STEPS:
            place = int(changes[0]) + 1
            return place, float(steps[0]), float(steps[-1])
        # Months and quarters are uneven by a tenth, so that a change to them shows in the ratio alone.
        jumps = 1 + np.flatnonzero(np.abs(np.diff(np.log(steps))) > np.log(_OTHER_FREQUENCY))
        # One step of another length may lead from one frequency to the other.
        if len(jumps) in (1, 2) and jumps[-1] <= jumps[0] + 1 and _FEW_STEPS <= jumps[0] <= len(steps) - _FEW_STEPS:
            before, after = steps[: jumps[0]], steps[jumps[-1] :]
            ends = float(np.median(before)), float(np.median(after))
            even = max(before.max() / before.min(), after.max() / after.min()) < _OTHER_FREQUENCY
            if even and abs(np.log(ends[1] / ends[0])) > np.log(_OTHER_FREQUENCY):
                return int(jumps[0]), *ends
    return None


def _gaps(columns: list[FloatArray], step: float) -> tuple[int, int, int] | None:
    """Number of missing blocks, the samples missing in all and the place of the first, where other steps are even."""
    blocks, missing, first = 0, 0, -1
    for column in columns:
        counts = np.diff(column) / step
        if np.abs(counts - np.round(counts)).max() > _IRREGULAR * max(1.0, float(counts.max())) or counts.min() < 0.5:
            return None
        long = np.flatnonzero(counts > 1.5)
        blocks, missing = blocks + len(long), missing + int(np.round(counts[long] - 1).sum())
        first = int(long[0]) + 1 if len(long) and first < 0 else first
    return blocks, missing, first


def _unevenness(columns: list[FloatArray], step: float, uneven: float, told: _Told) -> str:
    if (change := _frequency_change(columns)) is not None:
        place, before, after = change
        return f"steps of {told(before)} up to sample {place} and of {told(after)} from there on"
    if (gaps := _gaps(columns, step)) is not None:
        blocks, missing, first = gaps
        many = "1 missing block" if blocks == 1 else f"{blocks} missing blocks"
        return f"{many} ({counted(missing, 'sample')} of {told(step)}, the first before sample {first})"
    return f"steps that differ from their median {told(step)} by up to {100 * uneven:.3g} %"


def _remedy(columns: list[FloatArray], step: float) -> str:
    if _frequency_change(columns) is not None:
        return "use the part with one frequency, or bring both to the coarser one first"
    if (gaps := _gaps(columns, step)) is not None:
        return (
            'pass irregular="resample" to interpolate across short gaps, or split the series there and pass a list'
            if gaps[1] > gaps[0]
            else 'pass irregular="resample" to interpolate onto even times'
        )
    return 'pass irregular="resample" to interpolate onto even times'


_FEWEST_SAMPLES = 12
"""Samples beyond the delays that a fit needs at least: a training and a validation part."""


def drop_short(
    record: Record, inputs: list[FloatArray] | None, delays: int | None
) -> tuple[Record, list[FloatArray] | None, list[str]]:
    """Trajectories and inputs without those too short for ``delays``, and notes on what was left out."""
    needed = _FEWEST_SAMPLES if delays is None else delays + _FEWEST_SAMPLES
    lengths = [len(z) for z in record.trajectories]
    keep = [i for i, length in enumerate(lengths) if length >= needed]
    if not keep:
        raise InputError(
            "series",
            f"{max(lengths, default=0)} samples",
            f"has too few samples: at least {needed} are needed" + ("" if delays is None else f" for delays={delays}"),
            "record more, or lower `delays`",
        )
    notes = []
    if len(keep) < len(lengths):
        notes.append(
            f"{len(lengths) - len(keep)} of {len(lengths)} trajectories have fewer than {needed} samples and "
            "were left out."
        )
    remaining = Record([record.trajectories[i] for i in keep], record.dt, record.last_time, record.notes)
    return remaining, None if inputs is None else [inputs[i] for i in keep], notes
