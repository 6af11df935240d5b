"""A long rollout must stay bounded before a model may be chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .protocol import FloatArray
from .rolling import Fade, Member, roll

STEPS = 1200
STARTS = 12
_LIMIT = 1.6
_FIRST = (40, 200)


def stays_bounded(
    members: Sequence[Member],
    windows: FloatArray,
    middle: FloatArray,
    half_range: FloatArray,
    *,
    steps: int = STEPS,
    future: FloatArray | None = None,
    fade: Fade | None = None,
) -> bool:
    """Whether rollouts of ``steps`` from a few windows stay within 1.6 half-ranges of the middle of the data.

    With inputs the rollout is as long as the inputs are known.
    """
    chosen = np.unique(np.linspace(0, len(windows) - 1, STARTS).astype(int))
    if future is not None:
        steps = min(steps, future.shape[1])
    windows, future = windows[chosen], None if future is None else future[chosen]
    for some in sorted({min(steps, first) for first in (*_FIRST, steps)}):
        # Most that explode do so soon: a short look spares the long one.
        paths = roll(members, windows, some, future=future, fade=fade)
        if not (np.abs(paths - middle) / half_range < _LIMIT).all():
            return False
    return True
