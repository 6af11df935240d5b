"""Tomorrow will be like today: the forecast that any other has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ..protocol import FloatArray


class Persistence:
    """The last sample for ever."""

    name = "persistence"
    window = 1

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Nothing to learn."""
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """The last sample of each window, ``steps`` times."""
        return np.repeat(windows[:, -1:], steps, axis=1)
