"""Forecasts in the caller's units, and whether they left the range of the training data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .forcing import Forcing
from .inference import Predictor
from .protocol import FloatArray
from .series import Units

_FAR = 3.0
_HELD = 0.95


def roll_ahead(
    predictor: Predictor | None,
    units: Units,
    forcing: Forcing | None,
    states: FloatArray,
    steps: int,
    inputs: FloatArray | None,
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Values and spread ``(starts, steps, channels)``; the step at which each start left the range, and who is far out.

    Without a predictor nothing varied in the training data, and nothing varies ahead.
    """
    starts = len(states)
    if predictor is None:
        values = np.broadcast_to(units.mean, (starts, steps, len(units.mean))).copy()
        return values, np.zeros_like(values), np.zeros(starts, dtype=np.int64), np.zeros(starts, dtype=bool)
    rows, future = normalised(units, forcing, states, inputs)
    ahead = predictor.roll(rows, steps, future)
    spread = predictor.spread(starts, steps)
    excess = predictor.fade.excess(ahead)
    # A hair beyond the largest training value is still the training range.
    outside = excess > 1.05
    left = np.where(outside.any(axis=1), outside.argmax(axis=1) + 1, 0).astype(np.int64)
    # A fading model is held at the end of its reach; whoever ends there has not been led back.
    fade = predictor.fade
    far = excess[:, -1] > (_FAR if fade.fallback is None else _HELD * fade.end)
    return units.restore(ahead), units.stretch(spread), left, far


def normalised(
    units: Units, forcing: Forcing | None, states: FloatArray, inputs: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Windows as a predictor reads them, with their inputs attached, and the inputs of the steps ahead."""
    rows = units.normalise(states)
    return (rows, None) if forcing is None or inputs is None else forcing.split(rows, inputs)
