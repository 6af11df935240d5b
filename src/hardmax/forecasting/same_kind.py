"""More data of the kind that a model was fitted to: the same channels, the same time step, the same inputs."""

from __future__ import annotations

from ..errors import InputError
from .forcing import Forcing, read_inputs
from .pod import Pod
from .protocol import FloatArray
from .series import Record, read_series


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
