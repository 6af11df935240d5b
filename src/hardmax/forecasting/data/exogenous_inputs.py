"""Exogenous inputs, past and future, and checks of new data against those of the fit.

The row of sample ``k`` holds the inputs of sample ``k+1``, so that the next sample may depend on the inputs of its own
time (such as lift on the angle of attack) and on earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..protocol import FloatArray
from .pod import Pod
from .series import Record, Units, as_array, read_series


@dataclass(frozen=True)
class Forcing:
    """Units of the inputs."""

    units: Units

    @property
    def width(self) -> int:
        """Number of inputs, constant ones included."""
        return len(self.units.mean)

    def attach(self, states: FloatArray, inputs: FloatArray) -> FloatArray:
        """Rows ``[z_k, u_{k+1}]``; the last row repeats its own inputs, because later ones are not known."""
        ahead = np.concatenate([inputs[..., 1:, :], inputs[..., -1:, :]], axis=-2)
        return np.concatenate([states, self.units.normalise(ahead)], axis=-1)

    def split(self, states: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Windows with inputs attached, and the inputs of the steps ahead; ``inputs`` cover both."""
        length = states.shape[-2]
        ahead = self.units.normalise(inputs)[..., 1:, :]
        windows = np.concatenate([states, ahead[..., :length, :]], axis=-1)
        future = ahead[..., length:, :]
        return windows, np.concatenate([future, ahead[..., -1:, :]], axis=-2)


def read_inputs(u: object, trajectories: Sequence[FloatArray]) -> list[FloatArray]:
    """Inputs per trajectory, each of shape (samples, inputs) with as many samples as the trajectory."""
    tables = read_series(u, dt=1.0, argument="u").trajectories
    if len(tables) != len(trajectories) or any(len(a) != len(b) for a, b in zip(tables, trajectories, strict=False)):
        raise InputError(
            "u",
            f"lengths {[len(a) for a in tables]}",
            f"must have one row per sample, lengths {[len(b) for b in trajectories]}",
            "pass one table of inputs for each trajectory (resample both to even times first)",
        )
    return tables


def read_future(u: object, forcing: Forcing, rows: int, starts: int, meaning: str) -> FloatArray:
    """Inputs for a forecast, shape (starts, rows, inputs); ``meaning`` says what the rows are, for errors."""
    array = as_array("u", u)
    given = array.shape
    if array.ndim == 1 and forcing.width == 1:
        array = array[:, None]
    if array.ndim == 2:
        array = np.broadcast_to(array, (starts, *array.shape))
    if array.shape != (starts, rows, forcing.width):
        raise InputError("u", f"shape {given}", f"must be ({rows}, {forcing.width})", f"pass the inputs of {meaning}")
    if not np.isfinite(array).all():
        raise InputError("u", "NaN or infinity", "must be finite", "fill the gaps of the inputs")
    return np.asarray(array)


def inputs_over(
    u: object, forcing: Forcing | None, states: FloatArray, steps: int, before: FloatArray | None
) -> FloatArray | None:
    """Inputs over the windows ``states`` and the steps ahead, shape (starts, samples + steps, inputs), or None.

    ``before`` are the inputs of the last window of the record; where it is None, ``u`` includes those of the windows.
    """
    if forcing is None:
        if u is not None:
            raise InputError("u", f"a {type(u).__name__}", "was not used in fit", "fit with u=, or leave it out")
        return None
    if u is None:
        raise InputError("u", None, "is needed by a model fitted with inputs", "pass the inputs of the steps ahead")
    if before is None:
        return read_future(u, forcing, states.shape[1] + steps, len(states), "the window and the steps ahead")
    ahead = read_future(u, forcing, steps, 1, "the steps ahead")
    return np.concatenate([before[None], ahead], axis=1)


def read_new_data(
    series: object, u: object, dt: float, channels: int, pod: Pod | None, forcing: Forcing | None
) -> tuple[Record, list[FloatArray] | None]:
    """Trajectories and inputs of new data, with fields reduced to the modes of the model.

    Data are refused where channels or inputs differ from those of the fit.
    """
    if pod is not None:
        series = [pod.reduce(part) for part in pod.fields("series", series)]
    record = read_series(series, dt=dt)
    width = record.trajectories[0].shape[1]
    if width != channels:
        raise InputError(
            "series",
            f"{width} channels",
            f"must have the {channels} channels of the fit",
            "pass the same channels in the same order",
        )
    if forcing is None:
        if u is not None:
            raise InputError("u", f"a {type(u).__name__}", "was not used in fit", "leave it out")
        return record, None
    if u is None:
        raise InputError("u", None, "is needed by a model fitted with inputs", "pass the inputs of the series")
    inputs = read_inputs(u, record.trajectories)
    if inputs[0].shape[1] != forcing.width:
        raise InputError(
            "u", f"{inputs[0].shape[1]} inputs", f"must have the {forcing.width} inputs of the fit", "pass u as in fit"
        )
    return record, inputs


def read_window(window: object, channels: int, needed: int, pod: Pod | None) -> tuple[bool, FloatArray]:
    """Whether a single window was given, and the windows, shape (starts, samples, channels).

    Windows with fewer than ``needed`` samples are refused.
    """
    array = as_array("window", window)
    if pod is not None and array.shape[-len(pod.shape) :] == pod.shape:
        array = pod.reduce(array)
    if array.ndim == 1 and channels == 1:
        array = array[:, None]
    single = array.ndim == 2
    if single:
        array = array[None]
    if array.ndim != 3 or array.shape[2] != channels:
        raise InputError(
            "window",
            f"shape {array.shape}",
            f"must have {channels} channels: (samples, {channels}) or (starts, samples, channels)",
            "pass the same channels as in fit, oldest sample first",
        )
    if array.shape[1] < needed or len(array) == 0:
        raise InputError(
            "window",
            f"{array.shape[1]} samples",
            f"must hold at least {needed} samples",
            f"pass the last {needed} samples, or fit with fewer delays",
        )
    if not np.isfinite(array).all():
        raise InputError("window", "NaN or infinity", "must be finite", "fill its gaps first")
    return single, array
