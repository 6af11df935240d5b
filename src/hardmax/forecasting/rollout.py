"""Rollouts: predictions fed back into the model, for many readouts and many starts at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .data.exogenous_inputs import Forcing
from .data.units import Units
from .error_growth import ErrorGrowth
from .features.feature_map import FeatureMap
from .protocol import FloatArray

CEILING = 1e2
"""Rollouts of candidates are clipped at this many standard deviations: beyond, all count as failed alike."""


@dataclass(frozen=True)
class Member:
    """Features with their readouts, shape (readouts, features, outputs): the increment is ``features @ readout``."""

    features: FeatureMap
    readouts: FloatArray


@dataclass(frozen=True)
class Fade:
    """Range of the training data, and the transition to a linear model outside it.

    The excess of a sample is its distance from the middle of the range, in half-ranges, in the worst channel. The
    weight of the nonlinear part is one up to an excess of ``begin`` and zero from ``end`` on, where ``fallback``, a
    linear model that returns to the range, has taken over. Predictions are clipped at an excess of ``end``. Without a
    fallback (a linear model, or the published recipe) nothing fades, and the excess is only reported.

    Attributes
    ----------
    middle
        Middle of the range per output, shape (outputs,).
    half_range
        Half of the range per output, shape (outputs,).
    fallback
        Linear model outside the range, or None.
    begin
        Excess up to which the nonlinear part has its full weight.
    end
        Excess from which on the nonlinear part has no weight.
    """

    middle: FloatArray
    half_range: FloatArray
    fallback: Member | None = None
    begin: float = 1.15
    end: float = 1.6

    def excess(self, samples: FloatArray) -> FloatArray:
        """Excess of each sample.

        Parameters
        ----------
        samples
            Normalised samples, shape (..., outputs).

        Returns
        -------
        ndarray
            Excess, shape (...); at most one within the training range.
        """
        return np.asarray((np.abs(samples - self.middle) / self.half_range).max(axis=-1))

    def weight(self, samples: FloatArray) -> FloatArray:
        """Weight of the nonlinear part at each sample.

        Parameters
        ----------
        samples
            Normalised samples, shape (..., outputs).

        Returns
        -------
        ndarray
            Weights between 0 and 1, shape (...).
        """
        return np.fmax(np.fmin((self.end - self.excess(samples)) / (self.end - self.begin), 1.0), 0.0)

    @property
    def reach(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest values that predictions are clipped to, each of shape (outputs,)."""
        return self.middle - self.end * self.half_range, self.middle + self.end * self.half_range


def window_of(members: Sequence[Member]) -> int:
    """Number of samples in the longest window of the members."""
    return max(member.features.window for member in members)


def roll(
    members: Sequence[Member],
    windows: FloatArray,
    steps: int,
    *,
    future: FloatArray | None = None,
    fade: Fade | None = None,
    ceiling: float = CEILING,
) -> FloatArray:
    """Forecasts, shape (readouts, starts, steps, outputs), by the mean of the members' increments at every step.

    Channels after the outputs are inputs; ``future[:, i]`` holds the inputs that belong to predicted sample ``i``.
    """
    fading = fade if fade is not None and fade.fallback is not None else None
    parts = list(members) + ([fading.fallback] if fading is not None and fading.fallback is not None else [])
    low, high = (-ceiling, ceiling) if fading is None else fading.reach
    needed = window_of(parts)
    copies, _, outputs = members[0].readouts.shape
    starts, _, channels = windows.shape
    rows = copies * starts
    flat = np.zeros((rows, (needed + steps) * channels))
    flat[:, : needed * channels] = np.tile(windows[:, -needed:].reshape(starts, -1), (copies, 1))
    if channels > outputs and future is not None:
        tail = flat.reshape(rows, needed + steps, channels)[:, needed:, outputs:]
        tail[...] = np.tile(future[:, :steps], (copies, 1, 1))
    states = [_warm(part.features, windows, copies) for part in parts]

    def increment(index: int, end: int) -> FloatArray:
        part = parts[index]
        found = part.features(flat[:, end - part.features.window * channels : end], states[index])
        return np.asarray((found.reshape(copies, starts, -1) @ part.readouts).reshape(rows, outputs))

    with np.errstate(all="ignore"):
        for step in range(steps):
            end = (needed + step) * channels
            latest = flat[:, end - channels : end - channels + outputs]
            mean = sum(increment(index, end) for index in range(len(members))) / len(members)
            if fading is not None and (share := fading.weight(latest)).min() < 1.0:
                inside = np.where(share[:, None] > 0, share[:, None] * mean, 0.0)
                mean = inside + (1.0 - share[:, None]) * increment(len(members), end)
            # fmin and fmax return the other argument where one is NaN.
            flat[:, end : end + outputs] = np.fmax(np.fmin(latest + mean, high), low)
            for index, part in enumerate(parts):
                state = states[index]
                if part.features.reservoir is not None and state is not None:
                    states[index] = part.features.reservoir.step(state, flat[:, end : end + channels])
    shaped = flat.reshape(copies, starts, needed + steps, channels)
    return shaped[:, :, needed:, :outputs]


def _warm(features: FeatureMap, windows: FloatArray, copies: int) -> FloatArray | None:
    if features.reservoir is None:
        return None
    state = features.reservoir.initial_state(len(windows))
    for k in range(windows.shape[1] - features.reservoir.window, windows.shape[1]):
        state = features.reservoir.step(state, windows[:, k])
    return np.tile(state, (copies, 1))


class PathModel(ABC):
    """A model that forecasts from a window as a whole, rather than step by step."""

    @property
    @abstractmethod
    def window(self) -> int:
        """Number of samples that a forecast starts from."""

    @abstractmethod
    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        """Forecasts, shape (starts, steps, outputs), from windows (starts, samples, channels), oldest sample first.

        Windows may be longer than :attr:`window`; channels after the outputs are inputs, with ``future`` those ahead.
        """


FORECAST_CEILING = 1e3
"""Forecasts are clipped at this many standard deviations, far outside any training range."""


@dataclass(frozen=True)
class Predictor:
    """The selected members, the best linear model, the fade outside the training range, and the error growth.

    ``errors`` is None for a model from a file of an earlier version, without validation errors.
    """

    outputs: int
    members: tuple[Member, ...]
    linear: Member
    fade: Fade
    errors: ErrorGrowth | None = None
    attentive: Member | None = None
    """The best model with attention, stored for its attention weights even where another model is selected."""
    path: PathModel | None = None
    """The selected model where it is none of the family; the members are then the best of the family."""

    @property
    def all_members(self) -> list[Member]:
        """All models that are stored."""
        attentive = [] if self.attentive is None else [self.attentive]
        fallback = [] if self.fade.fallback is None else [self.fade.fallback]
        return [*self.members, self.linear, *fallback, *attentive]

    @property
    def window(self) -> int:
        """Number of samples that a forecast starts from."""
        return max(window_of(self.all_members), 1 if self.path is None else self.path.window)

    @property
    def fades(self) -> bool:
        """Whether a nonlinear part fades out outside the training range."""
        return self.path is None and self.fade.fallback is not None

    def roll(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        """Forecasts in normalised units, shape (starts, steps, outputs)."""
        if self.path is not None:
            found = self.path.paths(windows, steps, future)
            return np.asarray(np.clip(found, -FORECAST_CEILING, FORECAST_CEILING))
        paths = roll(self.members, windows, steps, future=future, fade=self.fade, ceiling=FORECAST_CEILING)
        return np.asarray(paths[0])

    def spread(self, starts: int, steps: int) -> FloatArray:
        """Expected errors in normalised units, shape (starts, steps, outputs); NaN where they were not measured."""
        shape = (starts, steps, self.outputs)
        return np.full(shape, np.nan) if self.errors is None else np.tile(self.errors.ahead(steps), (starts, 1, 1))


_ROUNDING, _CLOSE = 1e-9, 1.05
"""Excess above one that is rounding, and the excess up to which a forecast has not left the range."""
_FAR = 3.0
"""Excess at the last step from which on a forecast ended far outside."""
_CLIPPED = 0.95
"""Share of the clipping excess from which on a step of a fading forecast counts as clipped."""


@dataclass(frozen=True)
class Ahead:
    """Forecasts from several starts.

    Attributes
    ----------
    normalised
        Forecasts in normalised units, within the bounds of the data, shape (starts, steps, outputs).
    values
        Forecasts in the units of the data, shape (starts, steps, channels).
    spread
        Expected errors, of the same shape.
    close
        Whether each start reaches values beyond the training range, shape (starts,), however little.
    left
        Step at which each start first did, shape (starts,); 0 where it went no further than 5 % of the half-range.
    far
        Whether each start ended far outside, as the trend of a simple model may, shape (starts,).
    diverged
        Whether each start diverged, shape (starts,): a model of dynamics ended far outside or was clipped more than
        once, or a simple model was clipped at the end.
    """

    normalised: FloatArray
    values: FloatArray
    spread: FloatArray
    close: npt.NDArray[np.bool_]
    left: npt.NDArray[np.int64]
    far: npt.NDArray[np.bool_]
    diverged: npt.NDArray[np.bool_]


def roll_ahead(
    predictor: Predictor | None,
    units: Units,
    forcing: Forcing | None,
    states: FloatArray,
    steps: int,
    inputs: FloatArray | None,
) -> Ahead:
    """Forecasts of the predictor; without one, as fitted to constant channels, the forecast is constant."""
    starts = len(states)
    if predictor is None:
        nothing = np.zeros((starts, steps, 0))
        values = units.restore(nothing)
        never = np.zeros(starts, dtype=bool)
        return Ahead(nothing, values, np.zeros_like(values), never, np.zeros(starts, dtype=np.int64), never, never)
    rows, future = normalised(units, forcing, states, inputs)
    ahead = units.bounded(predictor.roll(rows, steps, future))
    spread = predictor.spread(starts, steps)
    fade = predictor.fade
    excess = fade.excess(ahead)
    # Values slightly beyond the largest training value, by up to 5 % of the half-range, are close to the range.
    beyond = excess > 1.0 + _ROUNDING
    close = np.asarray(beyond.any(axis=1))
    left = np.where((excess > _CLOSE).any(axis=1), beyond.argmax(axis=1) + 1, 0).astype(np.int64)
    far = excess[:, -1] > _FAR
    if predictor.path is not None:
        diverged = np.asarray((np.abs(ahead[:, -1]) >= FORECAST_CEILING).any(axis=1))
    elif not predictor.fades:
        diverged = far
    else:
        # A forecast that returns from the clipping value and reaches it again is a saw-tooth of the clipping.
        clipped = excess > _CLIPPED * fade.end
        diverged = clipped[:, -1] | (clipped.sum(axis=1) > 1)
    values = units.whole(units.restore(ahead))
    return Ahead(ahead, values, units.restore_spread(spread, ahead), close, left, far, diverged)


def normalised(
    units: Units, forcing: Forcing | None, states: FloatArray, inputs: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Normalised windows with their inputs attached, and the normalised inputs of the steps ahead (or None)."""
    rows = units.normalise(states)
    return (rows, None) if forcing is None or inputs is None else forcing.split(rows, inputs)
