"""What ``hardmax forecast`` reads: channels, inputs from outside, the inputs to come, and columns by a kept model."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from ..datasets.series import Series
from ..datasets.series_files import read_series
from ..errors import FileError, InputError, in_other_words
from ..files import write_text
from ..forecasting.series import Gaps
from ..forecasting.series import read_series as made_even

_COLUMNS = "columns.json"
_OPTIONS = {
    'gaps="interpolate"': "--gaps interpolate",
    'irregular="resample"': "--resample",
    "lower delays": "look back less far with --window",
    ", or split the series at its gaps into a list": "",
    "choose the columns to use": "choose the columns to use: --columns A,B",
    "say time column 'none'": "say --time-column none",
}
"""Remedies as one types them in Python, and on the command line."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are channels and which are inputs; None for all that are left."""

    channels: list[str] | None
    inputs: list[str]

    @classmethod
    def kept(cls, folder: Path) -> Columns | None:
        """The columns that a model in a folder was fitted to, where they are known."""
        file = folder / _COLUMNS
        if not file.is_file():
            return None
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            lists = [kept["channels"], kept["inputs"]]
            if not all(isinstance(name, str) for names in lists for name in names):
                raise TypeError("a name is no text")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(
                file, f"does not name columns ({error})", "save the model again, or remove the file"
            ) from error
        return cls(*lists)

    def keep(self, folder: Path) -> None:
        """Beside a model, so that a later file may have its columns in another order."""
        write_text(folder / _COLUMNS, json.dumps({"channels": self.channels, "inputs": self.inputs}) + "\n")


@dataclass(frozen=True)
class Measured:
    """A series at even times, the inputs of its samples and of the steps ahead, and what was done to get there."""

    series: Series
    inputs: np.ndarray | None = None
    ahead: np.ndarray | None = None
    input_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_measured(
    file: Path, columns: Columns, *, time: str | None, gaps: str, resample: bool, ahead: Path | None, steps: int
) -> Measured:
    """The channels of a file, and its inputs with those to come; both are made even together."""
    wanted = None if columns.channels is None else [*columns.channels, *columns.inputs]
    with in_options():
        whole = read_series(file, time=time, columns=wanted)
    missing = [name for name in columns.inputs if name not in whole.names]
    if missing:
        raise FileError(file, f"has no column {missing[0]!r} for --inputs", f"choose among {', '.join(whole.names)}")
    if not columns.inputs:
        if ahead is not None:
            raise InputError("--ahead", str(ahead), "holds inputs to come", "name their columns too: --inputs u")
        return Measured(whole)
    if ahead is None:
        raise InputError(
            "--inputs",
            ",".join(columns.inputs),
            "must be known for the steps ahead",
            f"pass a file with {steps} rows of them: --ahead FILE",
        )
    rows, notes = _even(whole, gaps, resample)
    given = [rows.names.index(name) for name in columns.inputs]
    channels = [k for k in range(rows.channels) if k not in given]
    if not channels:
        raise InputError("--inputs", ",".join(columns.inputs), "leave no channel to forecast", "name fewer columns")
    future = read_series(ahead, time=time, columns=columns.inputs)
    if len(future) < steps:
        raise FileError(
            ahead, f"has the inputs of {len(future)} steps", f"give {steps} rows, or pass --steps {len(future)}"
        )
    if not np.isfinite(future.values[:steps]).all():
        raise FileError(ahead, "has gaps", "give every input of every step")
    return Measured(
        rows.observing(*channels), rows.values[:, given], future.values[:steps], tuple(columns.inputs), tuple(notes)
    )


def even_series(measured: Measured, gaps: str, resample: bool) -> Series:
    """The series without gaps at even times, as a model that was fitted before needs it."""
    return _even(measured.series, gaps, resample)[0]


def _even(series: Series, gaps: str, resample: bool) -> tuple[Series, tuple[str, ...]]:
    with in_options():
        record = made_even(
            series.values,
            times=series.times,
            gaps=cast(Gaps, gaps),
            irregular="resample" if resample else "refuse",
        )
    values = record.trajectories[0].copy()
    times = series.times[0] + record.dt * np.arange(len(values)) if len(values) != len(series) else series.times
    return replace(series, values=values, times=times), record.notes


def in_options() -> AbstractContextManager[None]:
    """Remedies that name arguments of Python come out as options."""
    return in_other_words(_OPTIONS)
