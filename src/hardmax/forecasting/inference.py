"""A fitted model, ready to roll: NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .protocol import FloatArray
from .rolling import Fade, Member, roll, window_of

FARTHEST = 1e3
"""Forecasts are held within so many normalised units; whoever gets there has left the training range long before."""


@dataclass(frozen=True)
class Predictor:
    """The chosen members, the best linear model, what happens outside the training range, and models beside them.

    ``companions`` are other good models of the same data: their disagreement, times ``spread_factor``, is the spread.
    """

    outputs: int
    members: tuple[Member, ...]
    linear: Member
    fade: Fade
    companions: tuple[Member, ...] = ()
    spread_factor: float = 1.0
    attentive: Member | None = None
    """The best model with attention, kept for reading even where another forecasts better."""

    @property
    def everyone(self) -> list[Member]:
        """All models kept."""
        attentive = [] if self.attentive is None else [self.attentive]
        fallback = [] if self.fade.fallback is None else [self.fade.fallback]
        return [*self.members, self.linear, *fallback, *self.companions, *attentive]

    @property
    def window(self) -> int:
        """How many samples a forecast starts from."""
        return window_of(self.everyone)

    def roll(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        """Forecasts ``(starts, steps, outputs)`` in normalised units."""
        paths = roll(self.members, windows, steps, future=future, fade=self.fade, ceiling=FARTHEST)
        return np.asarray(paths[0])

    def spread(self, windows: FloatArray, steps: int, future: FloatArray | None, ahead: FloatArray) -> FloatArray:
        """Root mean square distance of the companions' forecasts from ``ahead``, calibrated on held-out rollouts."""
        if not self.companions:
            return np.zeros_like(ahead)
        squares: FloatArray = np.zeros_like(ahead)
        for companion in self.companions:
            path = roll([companion], windows, steps, future=future, fade=self.fade, ceiling=FARTHEST)[0]
            squares += (path - ahead) ** 2
        return np.asarray(self.spread_factor * np.sqrt(squares / len(self.companions)))
