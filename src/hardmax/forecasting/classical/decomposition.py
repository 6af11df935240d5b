r"""Forecasts of what remains after a transformation: seasonal-trend decomposition, seasonal differences, logarithm.

Each model transforms the window, forecasts the remainder by an inner model, and transforms back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..protocol import FloatArray
from ..rollout import PathModel

_HARMONICS = 60
"""Harmonics of one season at most: the cost of a decomposition is quadratic in them."""
_ROUGHNESS = 1e-3
"""Penalty on the square of a coefficient per harmonic number squared: seasonal shapes are smooth unless data say
otherwise."""


@dataclass(frozen=True)
class Decomposition:
    r"""Trend and seasons of a window by penalised least squares, and their continuation.

    Columns are a constant, a slope, a change of slope per season (of the longest one) with the penalty ``stiffness``,
    and sines and cosines of every season. A sample that is ``k`` samples old has the weight
    :math:`2^{-k/\mathrm{memory}}`. Beyond the window the slope is multiplied by ``damping`` at every step. All of it is
    linear in the window, so that one small matrix serves every window.

    Attributes
    ----------
    seasons
        Lengths of the seasons in samples; empty for a trend alone.
    length
        Samples in the window.
    stiffness
        Penalty on changes of the slope.
    memory
        Samples after which a weight has halved; infinity for equal weights.
    damping
        Factor on the slope per step ahead.
    """

    seasons: tuple[int, ...]
    length: int
    stiffness: float
    memory: float
    damping: float

    def _columns(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Columns at times, 0 being the last sample of the window, and the penalty of each."""
        span = float(max(self.seasons, default=max(8, self.length // 8)))
        ahead = np.maximum(times, 0.0)
        powers = ahead if self.damping == 1.0 else self.damping * (1 - self.damping**ahead) / (1 - self.damping)
        line = np.where(times <= 0, times, powers) / span
        columns, penalty = [np.ones_like(times), line], [0.0, 1e-6]
        # The last change is a whole span before the end, so that the final slope is measured and not guessed.
        for knot in np.arange(-self.length + span, -0.99 * span, span):
            columns.append(np.where(times > knot, line - knot / span, 0.0))
            penalty.append(self.stiffness)
        taken: set[float] = set()
        for season in self.seasons:
            for k in range(1, min(season // 2, _HARMONICS) + 1):
                frequency = k / season
                if round(frequency, 9) in taken:
                    continue
                taken.add(round(frequency, 9))
                angle = 2 * np.pi * frequency * times
                columns.append(np.cos(angle))
                penalty.append(_ROUGHNESS * k**2)
                if 2 * k != season:
                    columns.append(np.sin(angle))
                    penalty.append(_ROUGHNESS * k**2)
        return np.stack(columns, axis=1), np.asarray(penalty)

    @cached_property
    def _solution(self) -> tuple[FloatArray, FloatArray]:
        """Columns over the window (length, columns), and the map from the window to coefficients."""
        times = np.arange(1.0 - self.length, 1.0)
        columns, penalty = self._columns(times)
        weights = np.ones(self.length) if np.isinf(self.memory) else 2.0 ** (times / self.memory)
        weighted = columns * weights[:, None]
        matrix = weighted.T @ columns + np.diag(penalty * weights.sum() / self.length + 1e-9 * weights.sum())
        return columns, np.asarray(np.linalg.solve(matrix, weighted.T), dtype=np.float64)

    def split(self, windows: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
        """Remainder of windows (starts, length, channels), of the same shape, and the continuation (…, steps, …)."""
        columns, solve = self._solution
        coefficients = np.einsum("pt,stc->spc", solve, windows, optimize=True)
        fitted = np.einsum("tp,spc->stc", columns, coefficients, optimize=True)
        ahead, _ = self._columns(np.arange(1.0, steps + 1.0))
        return windows - fitted, np.einsum("tp,spc->stc", ahead, coefficients, optimize=True)


@dataclass(frozen=True)
class SeasonalTrend(PathModel):
    """Continued trend and seasons, plus the forecast of the remainder where there is a model of it."""

    outputs: int
    decomposition: Decomposition
    inner: PathModel | None = None

    @property
    def window(self) -> int:
        return self.decomposition.length

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        rest, ahead = self.decomposition.split(windows[:, -self.window :, : self.outputs], steps)
        return ahead if self.inner is None else np.asarray(ahead + self.inner.paths(rest, steps))


def remainders(
    pieces: Sequence[FloatArray], outputs: int, decomposition: Decomposition, needed: int
) -> list[FloatArray]:
    """Ends of the remainders of windows spread over the record, as a forecast sees them: training data of the inner.

    The last third of each window is taken, or ``needed`` samples where these are more.
    """
    length = decomposition.length
    part = min(length, max(length // 3, needed))
    found: list[FloatArray] = []
    for z in pieces:
        if len(z) < length:
            continue
        ends = np.arange(len(z), length - 1, -max(1, part // 2))[:_MOST_WINDOWS]
        windows = np.stack([z[end - length : end, :outputs] for end in ends])
        found += list(decomposition.split(windows, 1)[0][:, -part:])
    return found


_MOST_WINDOWS = 60
"""Windows of a record from which remainders are taken: enough for the few weights of the inner model."""


@dataclass(frozen=True)
class SeasonalDifference(PathModel):
    """Forecast of the differences from one season before, added back."""

    outputs: int
    season: int
    inner: PathModel

    @property
    def window(self) -> int:
        return self.season + self.inner.window

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        seen = windows[:, -self.window :, : self.outputs]
        ahead = self.inner.paths(seen[:, self.season :] - seen[:, : -self.season], steps)
        path = np.concatenate([seen[:, -self.season :], np.empty_like(ahead)], axis=1)
        for k in range(0, steps, self.season):
            count = min(self.season, steps - k)
            path[:, self.season + k : self.season + k + count] = path[:, k : k + count] + ahead[:, k : k + count]
        return np.asarray(path[:, self.season :])


@dataclass(frozen=True)
class Logarithm(PathModel):
    """Forecast of the logarithm of positive data; ``shift`` is what normalised data lack to be proportional to them."""

    outputs: int
    shift: FloatArray
    low: FloatArray
    inner: PathModel

    @property
    def window(self) -> int:
        return self.inner.window

    def forward(self, windows: FloatArray) -> FloatArray:
        """Logarithms of samples, each channel bounded below by half of its smallest training value."""
        return np.asarray(np.log(np.maximum(windows[..., : self.outputs] + self.shift, self.low)))

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        ahead = self.inner.paths(self.forward(windows), steps)
        # 50 is far above any ratio of the data, and its exponential is still a number.
        return np.asarray(np.exp(np.clip(ahead, -50.0, 50.0)) - self.shift)
