"""A fitted model, ready to roll: NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .error_growth import ErrorGrowth
from .protocol import FloatArray
from .rolling import Fade, Member, roll, window_of

FARTHEST = 1e3
"""Forecasts are held within so many normalised units; whoever gets there has left the training range long before."""


@dataclass(frozen=True)
class Predictor:
    """The chosen members, the best linear model, what happens outside the training range, and how errors grow.

    ``errors`` is None for a model from a file that was written before held-out errors were saved with it.
    """

    outputs: int
    members: tuple[Member, ...]
    linear: Member
    fade: Fade
    errors: ErrorGrowth | None = None
    attentive: Member | None = None
    """The best model with attention, kept for reading even where another forecasts better."""

    @property
    def everyone(self) -> list[Member]:
        """All models kept."""
        attentive = [] if self.attentive is None else [self.attentive]
        fallback = [] if self.fade.fallback is None else [self.fade.fallback]
        return [*self.members, self.linear, *fallback, *attentive]

    @property
    def window(self) -> int:
        """How many samples a forecast starts from."""
        return window_of(self.everyone)

    def roll(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        """Forecasts ``(starts, steps, outputs)`` in normalised units."""
        paths = roll(self.members, windows, steps, future=future, fade=self.fade, ceiling=FARTHEST)
        return np.asarray(paths[0])

    def spread(self, starts: int, steps: int) -> FloatArray:
        """Expected errors ``(starts, steps, outputs)`` in normalised units; NaN where they were not measured."""
        shape = (starts, steps, self.outputs)
        return np.full(shape, np.nan) if self.errors is None else np.tile(self.errors.ahead(steps), (starts, 1, 1))
