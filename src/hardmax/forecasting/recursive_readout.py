r"""Recursive least squares for readouts: new samples change the sums, and the readout is solved from them again.

Without window noise the sums are the triangular factor :math:`R` of :math:`[F, D]` (features and increments), to which
rows are added by orthogonal transformations; with window noise they are the Gram matrix. Both are what the fit solves
from, so that the readout is that of a fit of the readout to all data, up to rounding. The ridge of the fit grows with
the number of rows, :math:`\lambda N`, and therefore cannot be part of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .data.delay_windows import Embedding, flat_windows
from .features.feature_map import FeatureMap
from .protocol import FloatArray
from .rollout import Member
from .search.readout_search import (
    BY_MODES,
    Learner,
    gram,
    latest_of_modes,
    merge_triangles,
    mode_readout,
    ridge_path,
    ridge_path_of_gram,
    triangle,
)

_BLOCK = 4096
"""Rows that are factorised at once, as in the fit."""
_WELL_CONDITIONED = 1e-10
"""Reciprocal condition number from which on a direct solve agrees with the truncated one of the fit to 1e-8."""
Pattern = tuple[bool, ...]
"""Which outputs were observed."""


@dataclass(frozen=True)
class Sums:
    """Triangular factor or Gram matrix of ``[features, targets]``, shape (size + targets, the same), and its rows."""

    matrix: FloatArray
    rows: int
    by_gram: bool

    @classmethod
    def of(cls, features: FloatArray, targets: FloatArray, *, by_gram: bool) -> Sums:
        """Sums of these rows."""
        if by_gram:
            return cls(gram(features, targets), len(features), True)
        step = max(_BLOCK, 4 * features.shape[1])
        size = features.shape[1] + targets.shape[1]
        parts = [triangle(features[i : i + step], targets[i : i + step]) for i in range(0, len(features), step)]
        factor = merge_triangles(parts) if parts else np.zeros((0, size))
        # Fewer rows than columns: rows of zeros make the factor square.
        return cls(np.concatenate([factor, np.zeros((size - len(factor), size))]), len(features), False)

    def add(self, features: FloatArray, targets: FloatArray) -> Sums:
        """Sums with more rows."""
        if len(features) == 0:
            return self
        if self.by_gram:
            return Sums(self.matrix + gram(features, targets), self.rows + len(features), True)
        return Sums(
            _add_rows(self.matrix, np.concatenate([features, targets], axis=1)), self.rows + len(features), False
        )

    def merge(self, other: Sums) -> Sums:
        """Sums of the rows of both."""
        rows = self.rows + other.rows
        if self.by_gram:
            return Sums(self.matrix + other.matrix, rows, True)
        return Sums(_add_rows(self.matrix, other.matrix), rows, False)

    def solve(self, targets: int, ridge: float) -> FloatArray:
        """Readout, shape (size, targets)."""
        size = len(self.matrix) - targets
        found = self._solve_directly(size, ridge)
        if found is None:
            path = ridge_path_of_gram if self.by_gram else ridge_path
            found = path(self.matrix, size, targets, self.rows, np.array([ridge]))[0]
        return found

    def _solve_directly(self, size: int, ridge: float) -> FloatArray | None:
        """Readout by triangular factors, many times faster than by eigenvectors; None where that is not precise."""
        from scipy.linalg import cho_solve, solve_triangular
        from scipy.linalg.lapack import dpocon, dpotrf, dtrcon

        corner, right = self.matrix[:size, :size], self.matrix[:size, size:]
        if not np.isfinite(self.matrix).all() or not corner.any():
            return None
        if self.by_gram:
            norm = float(np.abs(corner).sum(axis=0).max())
            factor, failed = dpotrf(corner)
            if failed or dpocon(factor, norm)[0] < _WELL_CONDITIONED:
                return None
            factor, failed = dpotrf(corner + ridge * self.rows * np.eye(size))
            return None if failed else np.asarray(cho_solve((factor, False), right))
        small = np.sqrt(_WELL_CONDITIONED)
        # Neither the sums nor the ridge make the solution precise: no factor is worth its time.
        if ridge * self.rows < _WELL_CONDITIONED * corner[0, 0] ** 2 and dtrcon(corner)[0] < small:
            return None
        both = _add_rows(self.matrix, np.sqrt(ridge * self.rows) * np.eye(size, len(self.matrix)))
        if dtrcon(both[:size, :size])[0] < small:
            return None
        return np.asarray(solve_triangular(both[:size, :size], both[:size, size:]))


def _add_rows(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """Triangular factor of ``factor`` with rows below it; the cost is linear in the rows."""
    from scipy.linalg.lapack import dtpqrt

    # Blocks of 32 columns are LAPACK's usual choice.
    found, _, _, failed = dtpqrt(0, min(32, len(factor)), np.asfortranarray(factor), np.asfortranarray(rows))
    if failed:
        raise np.linalg.LinAlgError("rows could not be added to a triangular factor")
    return np.triu(found)


@dataclass(frozen=True)
class RecursiveReadout:
    """One feature map, how its readout is solved, the sums so far, and what features of the next sample need.

    Attributes
    ----------
    features
        Feature map of the member.
    noise
        Window noise of the fit, in standard deviations.
    ridge
        Ridge of the fit, or ``BY_MODES``.
    outputs
        Number of channels to forecast.
    noises
        Standard normal numbers of the last samples, shape (copies, window, channels); zeros without noise.
    state
        Reservoir states before the newest sample, shape (copies, units), or None. The newest sample is not included,
        because its row holds inputs of the sample after it.
    sums
        Sums of all rows, per pattern of observed outputs; the pattern with all outputs comes first.
    before
        Coordinates of the window before the newest sample, shape (1, coordinates), for ``BY_MODES``; (0, coordinates)
        where it holds a gap.
    after
        Coordinates of the newest window, of the same shape.
    """

    features: FeatureMap
    noise: float
    ridge: float
    outputs: int
    noises: FloatArray
    state: FloatArray | None
    sums: tuple[tuple[Pattern, Sums], ...]
    before: FloatArray
    after: FloatArray

    @classmethod
    def start(cls, learner: Learner, features: FeatureMap, noise: float, ridge: float) -> RecursiveReadout:
        """The readout as the fit solves it on the data of the learner; new samples continue its last piece."""
        pieces, window, outputs = learner.pieces, features.window, learner.outputs
        noisy = learner.noisy(noise)
        last = noisy[len(pieces) - 1 :: len(pieces)]
        scale = noise if noise > 0 else 1.0
        noises = np.stack([(part - pieces[-1])[-window:] / scale for part in last])
        state = None
        if features.reservoir is not None:
            state = np.stack([features.reservoir.run(part[:-1])[-1] for part in last])
        everything = (True,) * outputs
        before = after = np.empty((0, 0))
        if ridge == BY_MODES:
            embedding = _modes(features)
            parts = [embedding(_windows(z, embedding.window)) for z in pieces if len(z) > embedding.window]
            before, after = parts[-1][-2:-1], parts[-1][-1:]
            parts[-1] = parts[-1][:-1]  # the newest window is still without the inputs of the next sample
            first, then = np.concatenate([a[:-1] for a in parts]), np.concatenate([a[1:] for a in parts])
            sums = Sums.of(_with_ones(first), then, by_gram=False)
        else:
            sums = Sums.of(*learner.design(features, noise), by_gram=noise > 0)
        return cls(features, noise, ridge, outputs, noises, state, ((everything, sums),), before, after)

    @property
    def copies(self) -> int:
        """Copies of every sample with noise of their own."""
        return len(self.noises)

    @property
    def samples(self) -> int:
        """Samples with a window before them in the sums."""
        return sum(sums.rows for _, sums in self.sums) // self.copies

    def extended(
        self,
        rows: FloatArray,
        known: npt.NDArray[np.bool_],
        seen: npt.NDArray[np.bool_],
        drawn: FloatArray,
    ) -> RecursiveReadout:
        """The readout with more samples.

        Parameters
        ----------
        rows
            The last ``window`` samples so far and the new ones, with inputs attached, shape (window + new, channels).
        known
            Whether each of these rows is free of gaps, shape (window + new,).
        seen
            Which outputs of the new samples were observed, shape (new, outputs).
        drawn
            Standard normal numbers of the new samples, shape (copies, new, channels).

        Returns
        -------
        RecursiveReadout
            The readout with the sums of all rows.
        """
        window, new = self.features.window, len(seen)
        noises = np.concatenate([self.noises, drawn], axis=1)
        noisy = rows + self.noise * noises
        state, states = self._states(noisy, known, new)
        extended = replace(self, noises=noises[:, new:], state=state)
        if self.ridge == BY_MODES:
            return extended._with_modes(rows, known, new)
        gaps = np.concatenate([[0], np.cumsum(~known)])
        whole = gaps[window : window + new] == gaps[:new]  # the window before each new sample
        sums = dict(self.sums)
        for pattern in {tuple(bool(flag) for flag in one) for one in seen[whole]}:
            at = np.flatnonzero(whole & (seen == pattern).all(axis=1))
            if not any(pattern):
                continue
            added = self._design(noisy, rows, states, at, np.array(pattern))
            sums[pattern] = sums[pattern].add(*added) if pattern in sums else Sums.of(*added, by_gram=self.noise > 0)
        return replace(extended, sums=tuple(sums.items()))

    def _states(
        self, noisy: FloatArray, known: npt.NDArray[np.bool_], new: int
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Reservoir states before the newest sample, and those before each new sample, (copies, new, units)."""
        pool, window = self.features.reservoir, self.features.window
        if pool is None or self.state is None:
            return None, None
        state, states = self.state, np.empty((self.copies, new, pool.size))
        for k in range(new):
            # The states start again from zero after a gap, as at the beginning of a trajectory.
            row = window - 1 + k
            state = pool.step(state, noisy[:, row]) if known[row] else np.zeros_like(state)
            states[:, k] = state
        return state, states

    def _design(
        self,
        noisy: FloatArray,
        rows: FloatArray,
        states: FloatArray | None,
        at: npt.NDArray[np.int64],
        pattern: npt.NDArray[np.bool_],
    ) -> tuple[FloatArray, FloatArray]:
        """Features and increments of the new samples ``at``, all copies; zero increments of unobserved outputs."""
        window, channels = self.features.window, rows.shape[1]
        features, targets = [], []
        for copy in range(self.copies):
            views = np.lib.stride_tricks.sliding_window_view(noisy[copy].reshape(-1), window * channels)[::channels]
            features.append(self.features(views[at], None if states is None else states[copy][at]))
            step = rows[window + at, : self.outputs] - noisy[copy][window - 1 + at, : self.outputs]
            targets.append(np.where(pattern, step, 0.0))
        return np.concatenate(features), np.concatenate(targets)

    def _with_modes(self, rows: FloatArray, known: npt.NDArray[np.bool_], new: int) -> RecursiveReadout:
        """The readout of coordinates of whole windows; pairs are added once the inputs after them are known."""
        embedding, window = _modes(self.features), self.features.window
        coordinates = embedding(_windows(rows, window))  # of windows that end at rows window - 1, window, …
        gaps = np.concatenate([[0], np.cumsum(~known)])
        whole = gaps[window:] == gaps[: new + 1]
        pairs = np.flatnonzero(whole[:-1] & whole[1:])
        pairs = pairs[pairs < new - 1]
        first, then = coordinates[pairs], coordinates[pairs + 1]
        if len(self.before) and whole[0]:
            first, then = np.concatenate([self.before, first]), np.concatenate([coordinates[:1], then])
        sums = self.sums[0][1].add(_with_ones(first), then)
        pair = bool(whole[-2] and whole[-1])
        keep = slice(0, 1 if pair else 0)
        return replace(
            self,
            sums=((self.sums[0][0], sums),),
            before=coordinates[-2:-1][keep],
            after=coordinates[-1:][keep],
        )

    def member(self) -> Member:
        """Features with the readout of all rows so far."""
        if self.ridge == BY_MODES:
            return Member(self.features, self._mode_readout()[None])
        (_, full), *others = self.sums
        if not others:
            return Member(self.features, full.solve(self.outputs, self.ridge)[None])
        columns = []
        for j in range(self.outputs):
            sums = full
            for pattern, some in others:
                sums = sums.merge(some) if pattern[j] else sums
            columns.append(sums.solve(self.outputs, self.ridge)[:, j])
        return Member(self.features, np.stack(columns, axis=1)[None])

    def _mode_readout(self) -> FloatArray:
        sums = self.sums[0][1].add(_with_ones(self.before), self.after)
        count = self.after.shape[1]
        corner, right = sums.matrix[: count + 1, : count + 1], sums.matrix[: count + 1, count + 1 :]
        # The truncation of numpy.linalg.lstsq, by which the fit solves.
        cut = np.finfo(np.float64).eps * max(sums.rows, count + 1)
        operator = np.asarray(np.linalg.lstsq(corner, right, rcond=cut)[0], dtype=np.float64)
        latest = latest_of_modes(_modes(self.features), self.features.channels)
        return mode_readout(operator, latest, self.features.channels, self.outputs)


def _modes(features: FeatureMap) -> Embedding:
    assert features.polynomial is not None  # noqa: S101 (readouts by modes have principal coordinates)
    return features.polynomial


def _windows(trajectory: FloatArray, length: int) -> FloatArray:
    """Windows with and without a successor, shape (samples - length + 1, length * channels)."""
    return flat_windows(np.concatenate([trajectory, trajectory[-1:]]), length)


def _with_ones(coordinates: FloatArray) -> FloatArray:
    return np.concatenate([np.ones((len(coordinates), 1)), coordinates], axis=1)
