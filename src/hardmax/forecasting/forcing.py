"""Inputs from outside: known in the past and, for a forecast, ahead.

The row of sample ``k`` carries the inputs of sample ``k+1``, so that the next sample may depend on the inputs of its
own time (lift on the angle of attack), and on those before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .protocol import FloatArray
from .series import Units, as_array, read_series


@dataclass(frozen=True)
class Forcing:
    """The inputs' units; ``width`` is how many a caller passes."""

    units: Units

    @property
    def width(self) -> int:
        """How many inputs there are."""
        return len(self.units.mean)

    def attach(self, states: FloatArray, inputs: FloatArray) -> FloatArray:
        """Rows ``[z_k, u_{k+1}]``; the last row repeats its own inputs, for want of later ones."""
        ahead = np.concatenate([inputs[..., 1:, :], inputs[..., -1:, :]], axis=-2)
        return np.concatenate([states, self.units.normalise(ahead)], axis=-1)

    def split(self, states: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Windows with inputs attached, and the inputs of the steps ahead, from inputs over both."""
        length = states.shape[-2]
        ahead = self.units.normalise(inputs)[..., 1:, :]
        windows = np.concatenate([states, ahead[..., :length, :]], axis=-1)
        future = ahead[..., length:, :]
        return windows, np.concatenate([future, ahead[..., -1:, :]], axis=-2)


def read_inputs(u: object, trajectories: Sequence[FloatArray]) -> list[FloatArray]:
    """One table of inputs for each trajectory, of the same length."""
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
    """Inputs ``(starts, rows, width)`` for a forecast."""
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
    """Inputs over the windows ``states`` and the steps ahead; None for a model without inputs.

    ``before`` are those of the record's last window; where it is None, ``u`` holds the windows' own inputs too.
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
