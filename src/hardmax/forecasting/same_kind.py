"""More data of the kind that a model was fitted to: the same channels, the same time step, the same inputs."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from .forcing import Forcing, read_inputs
from .pod import Pod
from .protocol import FloatArray
from .series import Record, as_array, read_series


def read_like_the_fit(
    series: object, u: object, dt: float, channels: int, pod: Pod | None, forcing: Forcing | None
) -> tuple[Record, list[FloatArray] | None]:
    """Trajectories and inputs, fields reduced by the model's own modes; refused where they do not fit the model."""
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
    """Whether a single start was given, and all of them as ``(starts, samples, channels)``, ``needed`` at least."""
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
