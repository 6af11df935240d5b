"""Forecasts from whole windows by simple rules: seasonal naive, drift, exponential smoothing, analogues, and means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..protocol import FloatArray
from ..rollout import FORECAST_CEILING, Fade, Member, PathModel, roll, window_of


@dataclass(frozen=True)
class SeasonalNaive(PathModel):
    """The last season, repeated; with a season of one sample the last sample."""

    outputs: int
    season: int

    @property
    def window(self) -> int:
        return self.season

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        last = windows[:, -self.season :, : self.outputs]
        return np.asarray(np.tile(last, (1, -(-steps // self.season), 1))[:, :steps])


@dataclass(frozen=True)
class Drift(PathModel):
    """The last sample, moved on by the mean change over the window."""

    outputs: int
    length: int

    @property
    def window(self) -> int:
        return self.length

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        first, last = windows[:, -self.length, : self.outputs], windows[:, -1, : self.outputs]
        slope = (last - first) / max(1, self.length - 1)
        return np.asarray(last[:, None] + slope[:, None] * np.arange(1, steps + 1)[None, :, None])


@dataclass(frozen=True)
class Median(PathModel):
    """The median of the last ``length`` samples, repeated: one outlier at the end does not move it."""

    outputs: int
    length: int

    @property
    def window(self) -> int:
        return self.length

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        middle = np.median(windows[:, -self.length :, : self.outputs], axis=1)
        return np.repeat(middle[:, None], steps, axis=1)


@dataclass(frozen=True)
class Smoothing(PathModel):
    r"""Damped exponential smoothing with an additive season (Holt–Winters), run through the window.

    With level :math:`l`, slope :math:`b` and seasonal part :math:`s`,

    .. math:: e_t = y_t - (l + \varphi b + s_{t-m}),\quad l \leftarrow l + \varphi b + \alpha e_t,\quad
              b \leftarrow \varphi b + \alpha\beta e_t,\quad s_t = s_{t-m} + \gamma(1-\alpha) e_t.

    ``weights`` are :math:`(\alpha, \beta, \gamma, \varphi)`; a season of one sample has no seasonal part.
    """

    outputs: int
    season: int
    length: int
    weights: FloatArray

    @property
    def window(self) -> int:
        return self.length

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        samples = windows[:, -self.length :, : self.outputs]
        starts, length, outputs = samples.shape
        flat = samples.transpose(1, 0, 2).reshape(length, -1)
        level, slope, cycle, _ = run_smoothing(flat, self.season, *self.weights)
        damped = np.cumsum(self.weights[3] ** np.arange(1, steps + 1))
        ahead = level + slope * damped[:, None]
        if self.season > 1:
            ahead = ahead + cycle[(length + np.arange(steps)) % self.season]
        return np.asarray(ahead.reshape(steps, starts, outputs).transpose(1, 0, 2))


def run_smoothing(
    samples: FloatArray, season: int, alpha: FloatArray, beta: FloatArray, gamma: FloatArray, damping: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Level, slope, seasonal part (season, columns) at the end of ``samples`` (length, columns), and mean squares.

    The mean square of the one-step errors, shape (columns,), leaves out the first two seasons. Weights are numbers or
    have one entry per column.
    """
    length, columns = samples.shape
    head = samples[: min(length, 2 * season)]
    level, slope = samples[:season].mean(axis=0), np.zeros(columns)
    cycle = np.zeros((max(1, season), columns))
    if season > 1:
        centred = head - head.mean(axis=0)
        if len(head) == 2 * season:
            # Half of the difference of the two means is the slope over half a season each way.
            slope = (samples[season : 2 * season].mean(axis=0) - level) / season
            line = slope * (np.arange(2 * season)[:, None] - season + 0.5)
            cycle = (centred - line).reshape(2, season, columns).mean(axis=0)
            level = head.mean(axis=0) - slope * (season + 0.5)
        else:
            cycle = samples[:season] - level
    total, counted = np.zeros(columns), 0
    for t in range(length):
        ahead = level + damping * slope
        place = t % season if season > 1 else 0
        error = samples[t] - ahead - cycle[place]
        level = ahead + alpha * error
        slope = damping * slope + alpha * beta * error
        if season > 1:
            cycle[place] = cycle[place] + gamma * (1 - alpha) * error
        if t >= min(2 * season, length // 2):
            total, counted = total + error**2, counted + 1
    return level, slope, cycle, total / max(1, counted)


_GRID = ((0.02, 0.1, 0.3, 0.6, 0.95), (0.0, 0.02, 0.1, 0.3), (0.0, 0.05, 0.2, 0.5), (0.8, 0.9, 0.95, 0.98, 1.0))
"""Weights that are compared first."""
_MOST_SAMPLES = 1500
"""Samples at the end of a record that smoothing weights are fitted to: older ones say little about them."""


def fit_smoothing(pieces: Sequence[FloatArray], outputs: int, season: int, length: int) -> Smoothing:
    """Smoothing whose weights have the smallest one-step errors: the best of a grid, refined three times."""
    record = max(pieces, key=len)[-_MOST_SAMPLES:, :outputs]
    grid = [np.asarray(part) for part in _GRID]
    if season < 2:
        grid[2] = np.zeros(1)
    best = np.zeros(4)
    for _ in range(4):
        table = np.stack([part.reshape(-1) for part in np.meshgrid(*grid, indexing="ij")])
        count = table.shape[1]
        wide = np.repeat(record, count, axis=1)
        with np.errstate(all="ignore"):
            squares = run_smoothing(wide, season, *np.tile(table, (1, outputs)))[3].reshape(outputs, count)
        scale = np.maximum(np.nanmin(squares, axis=1, keepdims=True), 1e-300)
        total = np.log(np.maximum(squares / scale, 1e-300)).sum(axis=0)
        best = table[:, int(np.argmin(np.where(np.isfinite(total), total, np.inf)))]
        grid = [_around(part, value) for part, value in zip(grid, best, strict=True)]
    return Smoothing(outputs, season, length, best)


def _around(part: FloatArray, value: float) -> FloatArray:
    """Finer values around one value of a grid."""
    if len(part) < 2:
        return part
    index = int(np.argmin(np.abs(part - value)))
    low = part[max(0, index - 1)]
    high = part[min(len(part) - 1, index + 1)]
    return np.unique([(low + value) / 2, value, (value + high) / 2])


@dataclass(frozen=True)
class Analogue(PathModel):
    """Weighted mean of what followed the most similar windows of the record (simplex projection).

    Weights fall off exponentially with the distance, in units of the nearest (Sugihara and May, 1990). A forecast
    longer than ``chunk`` is continued from its own last window.

    Attributes
    ----------
    outputs
        Number of channels.
    library
        Samples of the record, shape (samples, outputs), with a row of NaN between trajectories.
    length
        Samples from the first to the last of a window, both included.
    neighbours
        Number of windows that are averaged.
    anchored
        Whether windows are compared relative to their last samples and the changes after them are added to the last
        sample; else values are compared and averaged.
    chunk
        Samples that are forecast at once.
    spacing
        Samples from one compared sample of a window to the next.
    """

    outputs: int
    library: FloatArray
    length: int
    neighbours: int
    anchored: bool
    chunk: int
    spacing: int = 1

    @property
    def window(self) -> int:
        return self.length

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        seen = windows[:, -self.length :, : self.outputs]
        rows, follow, last = self._examples()
        size = (rows**2).sum(axis=1)
        parts: list[FloatArray] = []
        while sum(part.shape[1] for part in parts) < steps:
            ahead = np.concatenate([self._ahead(some, rows, size, follow, last) for some in self._blocks(seen, rows)])
            parts.append(ahead)
            seen = np.concatenate([seen, ahead], axis=1)[:, -self.length :]
        return np.concatenate(parts, axis=1)[:, :steps]

    def _blocks(self, seen: FloatArray, rows: FloatArray) -> list[FloatArray]:
        """Windows in blocks whose distances to all rows fit into memory."""
        return np.array_split(seen, -(-len(seen) * len(rows) // _MOST_DISTANCES)) if len(seen) else [seen]

    def _examples(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Windows of the library (examples, columns), what follows them (…, chunk, outputs), their last samples."""
        count = len(self.library) - self.length - self.chunk + 1
        views = np.lib.stride_tricks.sliding_window_view(self.library, self.length, axis=0)[:count]
        follow = np.lib.stride_tricks.sliding_window_view(self.library[self.length :], self.chunk, axis=0)[:count]
        usable = np.isfinite(views).all(axis=(1, 2)) & np.isfinite(follow).all(axis=(1, 2))
        rows = self._columns(views[usable].transpose(0, 2, 1))
        return rows, follow[usable].transpose(0, 2, 1), views[usable][:, :, -1]

    def _columns(self, windows: FloatArray) -> FloatArray:
        """Compared numbers of windows (starts, length, outputs), shape (starts, columns)."""
        # The last sample of a window is always among those compared.
        chosen = windows[:, (self.length - 1) % self.spacing :: self.spacing]
        if self.anchored:
            chosen = chosen - windows[:, -1:]
        return np.asarray(chosen.reshape(len(windows), -1))

    def _ahead(
        self, seen: FloatArray, rows: FloatArray, size: FloatArray, follow: FloatArray, last: FloatArray
    ) -> FloatArray:
        """Next ``chunk`` samples after each window, shape (starts, chunk, outputs)."""
        query = self._columns(seen)
        squares = (query**2).sum(axis=1)[:, None] + size - 2 * query @ rows.T
        nearest = np.argsort(squares, axis=1, kind="stable")[:, : self.neighbours]
        # The expanded square loses digits of small distances, on which weights depend.
        apart = np.sqrt(((rows[nearest] - query[:, None]) ** 2).sum(axis=2))
        weight = np.exp(-apart / np.maximum(apart.min(axis=1, keepdims=True), 1e-12))
        weight = weight / weight.sum(axis=1, keepdims=True)
        after = follow[nearest]
        if self.anchored:
            after = after - last[nearest][:, :, None]
        mean = (weight[:, :, None, None] * after).sum(axis=1)
        return np.asarray(mean + seen[:, -1:] if self.anchored else mean)


_LIBRARY = 20_000
"""Samples of the record at most that analogues are looked for in: the cost of a forecast is linear in them."""
_MOST_DISTANCES = 4_000_000
"""Distances that are computed at once (32 MB)."""


def fit_analogue(
    pieces: Sequence[FloatArray],
    outputs: int,
    length: int,
    neighbours: int,
    anchored: bool,
    chunk: int,
    spacing: int = 1,
) -> Analogue | None:
    """Analogue forecast from the samples of ``pieces``; None where they hold too few windows."""
    usable = [z[:, :outputs] for z in pieces if len(z) > length + chunk]
    count = sum(len(z) - length - chunk for z in usable)
    if count < 4 * neighbours:
        return None
    gap = np.full((1, outputs), np.nan)
    library = np.concatenate([part for z in usable for part in (z, gap)])[:-1][-_LIBRARY:]
    return Analogue(outputs, library, length, neighbours, anchored, chunk, spacing)


@dataclass(frozen=True)
class Rollout(PathModel):
    """Rollouts of the mean of some members, as the family of models makes them."""

    members: tuple[Member, ...]
    fade: Fade | None = None

    @property
    def window(self) -> int:
        fallback = [] if self.fade is None or self.fade.fallback is None else [self.fade.fallback]
        return window_of([*self.members, *fallback])

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        return np.asarray(
            roll(self.members, windows, steps, future=future, fade=self.fade, ceiling=FORECAST_CEILING)[0]
        )


@dataclass(frozen=True)
class Mean(PathModel):
    """Mean of the forecasts of several models.

    Attributes
    ----------
    parts
        The models.
    weights
        Weights that sum to one over the models: one per model, shape (models,), or one per model and step ahead, shape
        (models, steps), of which the last holds for later steps. None: equal weights.
    trimmed
        Share of the weight that is left out among the lowest forecasts of every sample, and among the highest, below
        0.5; 0.25 is the interquartile mean.
    """

    parts: tuple[PathModel, ...]
    weights: FloatArray | tuple[float, ...] | None = None
    trimmed: float = 0.0

    @property
    def window(self) -> int:
        return max(part.window for part in self.parts)

    def paths(self, windows: FloatArray, steps: int, future: FloatArray | None = None) -> FloatArray:
        found = np.stack([part.paths(windows[:, -part.window :], steps, future) for part in self.parts])
        weights = np.full(len(found), 1.0 / len(found)) if self.weights is None else np.asarray(self.weights)
        by_step = weights[:, None] if weights.ndim == 1 else weights
        return weighted_mean(found, by_step[:, np.minimum(np.arange(steps), by_step.shape[1] - 1)], self.trimmed)


def weighted_mean(found: FloatArray, weights: FloatArray, trimmed: float = 0.0) -> FloatArray:
    """Mean of forecasts, shape (starts, steps, outputs), with the weights of their models at every step.

    Parameters
    ----------
    found
        Forecasts, shape (models, starts, steps, outputs).
    weights
        Weights that sum to one over the models, shape (models, steps).
    trimmed
        Share of the weight that is left out among the lowest forecasts of every sample, and among the highest.
    """
    if trimmed <= 0.0:
        return np.asarray(np.einsum("mk,mskc->skc", weights, found))
    order = np.argsort(found, axis=0, kind="stable")
    values = np.take_along_axis(found, order, axis=0)
    shares = np.take_along_axis(np.broadcast_to(weights[:, None, :, None], found.shape), order, axis=0)
    above = np.cumsum(shares, axis=0)
    below = above - shares
    kept = np.clip(np.minimum(above, 1.0 - trimmed) - np.maximum(below, trimmed), 0.0, None)
    return np.asarray((kept * values).sum(axis=0) / kept.sum(axis=0))
