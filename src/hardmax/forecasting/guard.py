"""A long rollout must stay where the data were before a model may be chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .protocol import FloatArray
from .rolling import Fade, Member, roll

STEPS = 1200
STARTS = 12
_OUTSIDE = 1.15
_LIMIT = 1.65
_RARELY = 0.01
_FIRST = (40, 200)


def stays_bounded(
    members: Sequence[Member],
    windows: FloatArray,
    fade: Fade,
    *,
    steps: int = STEPS,
    future: FloatArray | None = None,
) -> bool:
    """Whether rollouts from a few windows keep to the range of the data.

    They may leave it (by more than 15 % of the half-range) in one step of a hundred, and never go beyond 1.65
    half-ranges. With inputs the rollout is as long as the inputs are known.
    """
    chosen = np.unique(np.linspace(0, len(windows) - 1, STARTS).astype(int))
    if future is not None:
        steps = min(steps, future.shape[1])
    windows, future = windows[chosen], None if future is None else future[chosen]
    for some in sorted({min(steps, first) for first in (*_FIRST, steps)}):
        # Most that explode do so soon: a short look spares the long one.
        excess = fade.excess(roll(members, windows, some, future=future, fade=fade)[0])
        if not (excess < _LIMIT).all() or (excess > _OUTSIDE).mean() > _RARELY:
            return False
    return True
