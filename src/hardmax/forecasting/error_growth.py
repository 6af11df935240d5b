"""Growth of the forecast error with the steps ahead, measured on held-out rollouts, and the intervals that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from .protocol import FloatArray

_SLOWEST = 0.5
"""Power of a random walk: slower growth beyond the validation steps has not been observed, so it is not assumed."""
_SMALLEST = 1e-15
"""Rounding, in standard deviations of the data: a lower bound on every error."""
_FAR = 3.0
"""Distance from the middle of the true samples, in half-ranges, from which on a held-out rollout counts as diverged."""
_MOST_ROLLOUTS = 256
"""Held-out rollouts that are stored at most."""
_MOST_VALUES = 2_000_000
"""Numbers that are stored at most (16 MB): fewer rollouts are where they are long or have many channels."""
_LARGEST = 700.0
"""About the largest exponent of a float64; the limit of errors is reached long before."""
_NEIGHBOURS = 1.5
"""Steps within this factor of a step share its quantiles of standardised errors: one step alone has too few."""
_FEWEST_INDEPENDENT = 3.0
"""Lower bound on the number of independent rollouts that the widening of intervals is computed for."""
_SELECTED = 1.08
"""Factor on half-widths: the model was selected on part of the same rollouts, where its errors are smaller.
Chosen on 24 real series, on which intervals of 68 and 95 % then held 65 and 92 %; none was kept aside."""
_LEVELS: FloatArray = np.append(np.linspace(0.01, 0.99, 99), [0.995, 0.999])
"""Levels at which quantiles are computed; those between are interpolated."""


@dataclass(frozen=True)
class ErrorGrowth:
    r"""Expected error of a forecast as a function of the steps ahead, in standard deviations of the data.

    With :math:`r_{kj}` the root mean square error of held-out rollouts at step :math:`k` in channel :math:`j`, the
    expected error is the running maximum :math:`s_{kj} = \max_{i \le k} r_{ij}`. Beyond the longest held-out rollout
    of :math:`H` steps it is extrapolated as :math:`s_{Hj}\,(k/H)^p` or :math:`s_{Hj}\,e^{q(k-H)}`, whichever fits
    :math:`\log s` better between :math:`H/4` and :math:`H` by least squares, with :math:`p \ge 1/2`. Where it is known
    how small differences between rollouts of the model grow, by a factor :math:`g_{kj}` over :math:`k` steps, it is
    :math:`s_{Hj} \max((k/H)^p, g_{k-H,j})` instead: held-out errors of a chaotic system grow by the errors of every
    step first, and only later as differences do. It is at most the error of a forecast without skill,
    :math:`\sqrt{1 + m_j}`. Here :math:`m_j` is the mean square of the forecast itself late in the rollouts: 0 for a
    forecast at the mean of the data, 1 for one that varies like the data.

    Half the width of a central interval that holds a share :math:`p` is :math:`s_{kj}` times the :math:`p`-quantile of
    the absolute held-out errors in units of their :math:`s`, at steps near :math:`k`. It is widened by the ratio of the
    quantiles of Student's t and of the normal distribution, because few of the rollouts are independent, and by 8 %,
    because the model was selected on part of them. Over the steps the nearest never decreasing sequence is taken.

    Attributes
    ----------
    per_step
        Errors :math:`s_{kj}` of the held-out rollouts, shape (steps, outputs), never decreasing; row ``k - 1``
        belongs to ``k`` steps ahead.
    limit
        Errors of a forecast without skill, shape (outputs,).
    held_out
        Signed errors (truth minus forecast) of held-out rollouts, shape (rollouts, steps, outputs), NaN where a
        rollout went on after the end of the data; None for a model from a file of an earlier version.
    independent
        About how many independent rollouts tell as much as these at each step, shape (steps,); None like
        ``held_out``.
    amplified
        Factors :math:`g_{kj}` of :func:`amplification`, shape (steps, outputs); None where they are not known.
    """

    per_step: FloatArray
    limit: FloatArray
    held_out: FloatArray | None = None
    independent: FloatArray | None = None
    amplified: FloatArray | None = None

    def ahead(self, steps: int) -> FloatArray:
        """Expected errors of a forecast: measured as far as known, extrapolated beyond.

        Parameters
        ----------
        steps
            Number of steps ahead.

        Returns
        -------
        ndarray
            Errors, shape (steps, outputs).
        """
        known = len(self.per_step)
        if steps <= known:
            return self.per_step[:steps].copy()
        last, beyond = self.per_step[-1], np.arange(known + 1, steps + 1, dtype=np.float64)
        # A measured error above the limit is not reduced.
        highest = np.maximum(self.limit, last)
        factors = np.stack([self._factors(j, beyond) for j in range(self.per_step.shape[1])], axis=1)
        return np.concatenate([self.per_step, np.minimum(last * factors, highest)])

    def _factors(self, output: int, beyond: FloatArray) -> FloatArray:
        """Ratios of the errors of an output at the steps ``beyond`` to the last that was measured."""
        errors = self.per_step[:, output]
        if self.amplified is None:
            return _growth(errors, beyond)
        logs = np.log(self.amplified[:, output])
        further = beyond - len(errors)
        # Beyond the steps that were followed, differences go on to grow at their mean rate.
        rest = np.maximum(further - len(logs), 0.0) * logs[-1] / len(logs)
        grown = np.interp(further, np.arange(1, len(logs) + 1), logs) + rest
        return np.asarray(np.maximum(_growth(errors, beyond, exponential=False), np.exp(np.minimum(grown, _LARGEST))))

    def half_widths(self, levels: FloatArray, steps: int) -> FloatArray:
        """Half the widths of central intervals around a forecast.

        Parameters
        ----------
        levels
            Shares of the true samples that the intervals are to hold, between 0 and 1, shape (levels,).
        steps
            Number of steps ahead.

        Returns
        -------
        ndarray
            Half-widths, shape (levels, steps, outputs), never decreasing with the steps or with the level.
        """
        table = self._table(steps)
        flat = table.reshape(len(_LEVELS), -1)
        grid, flat = np.append(0.0, _LEVELS), np.vstack([np.zeros(flat.shape[1]), flat])
        found = np.stack([np.interp(levels, grid, column) for column in flat.T], axis=1)
        return np.asarray(found.reshape(len(levels), *table.shape[1:]))

    def paths(self, count: int, steps: int, generator: np.random.Generator) -> FloatArray:
        """Possible errors of a forecast over all its steps, drawn from the held-out rollouts.

        Each is the course of one held-out rollout, with a random sign, mapped step by step to the distribution of
        :meth:`half_widths`: errors at different steps and in different outputs are related as they were there.

        Parameters
        ----------
        count
            Number of draws.
        steps
            Number of steps ahead.
        generator
            Source of random numbers.

        Returns
        -------
        ndarray
            Errors, shape (count, steps, outputs).
        """
        ranks, signs = self._ranks(steps)
        chosen = generator.integers(len(ranks), size=count)
        jitter = generator.random(count)
        flips = generator.choice([-1.0, 1.0], size=count)
        table = self._table(steps)
        grid = np.append(0.0, _LEVELS)
        paths = np.empty((count, steps, table.shape[2]))
        for k in range(steps):
            for j in range(table.shape[2]):
                level = (ranks[chosen, k, j] + jitter) / len(ranks)
                sizes = np.interp(level, grid, np.append(0.0, table[:, k, j]))
                paths[:, k, j] = flips * signs[chosen, k, j] * sizes
        return paths

    def _table(self, steps: int) -> FloatArray:
        """Half-widths at the levels of ``_LEVELS``, shape (levels, steps, outputs)."""
        scale = self.ahead(steps)
        if self.held_out is None or self.independent is None:
            return np.asarray(_normal_quantiles(_LEVELS)[:, None, None] * scale)
        measured = _measured_half_widths(self.held_out, self.independent)
        known = min(steps, measured.shape[1])
        table = np.empty((len(_LEVELS), *scale.shape))
        table[:, :known] = measured[:, :known]
        table[:, known:] = measured[:, -1:] * (scale[known:] / self.per_step[-1])
        return np.maximum(np.maximum.accumulate(np.maximum.accumulate(table, axis=1), axis=0), _SMALLEST)

    def _ranks(self, steps: int) -> tuple[FloatArray, FloatArray]:
        """Rank of each rollout among all at every step, from 0, and its sign there, each (rollouts, steps, outputs)."""
        if self.held_out is None:
            # Without rollouts errors of all steps have one rank and one sign: the widest sums, which is the safe side.
            ranks = np.tile(np.arange(64.0)[:, None, None], (1, steps, self.per_step.shape[1]))
            return ranks, np.ones_like(ranks)
        errors = self.held_out[:, :steps]
        whole = np.isfinite(errors).all(axis=(1, 2))
        # Rollouts that ended early are used where few others are; they continue at their last standardised error.
        errors = errors[whole] if whole.sum() >= _FEWEST_INDEPENDENT else errors
        standard = _continued(errors / self.per_step[: errors.shape[1]])
        ranks = np.argsort(np.argsort(np.abs(standard), axis=0, kind="stable"), axis=0, kind="stable").astype(float)
        signs = np.where(standard < 0, -1.0, 1.0)
        extra = steps - standard.shape[1]
        return tuple(np.concatenate([a, np.repeat(a[:, -1:], extra, axis=1)], axis=1) for a in (ranks, signs))  # type: ignore[return-value]


def _continued(values: FloatArray) -> FloatArray:
    """Values (rollouts, steps, outputs) with NaN at the end of a rollout replaced by its last number."""
    filled = values.copy()
    for k in range(1, filled.shape[1]):
        missing = ~np.isfinite(filled[:, k])
        filled[:, k][missing] = filled[:, k - 1][missing]
    return filled


def _measured_half_widths(errors: FloatArray, independent: FloatArray) -> FloatArray:
    """Half-widths at ``_LEVELS`` from held-out errors (rollouts, steps, outputs), shape (levels, steps, outputs)."""
    steps = errors.shape[1]
    sizes = np.abs(errors)
    scale = np.maximum(np.sqrt(np.nanmean(sizes**2, axis=0)), _SMALLEST)
    found = np.empty((len(_LEVELS), *scale.shape))
    for j in range(scale.shape[1]):
        standard = sizes[:, :, j] / scale[:, j]
        done: dict[tuple[int, int], FloatArray] = {}
        for k in range(steps):
            low = int((k + 1) / _NEIGHBOURS)
            near = (low, min(steps, max(low + 1, int(np.ceil((k + 1) * _NEIGHBOURS)))))
            if near not in done:
                some = standard[:, slice(*near)]
                done[near] = np.quantile(some[np.isfinite(some)], _LEVELS)
            found[:, k, j] = done[near] * scale[k, j]
        found[:, :, j] = _never_decreasing(found[:, :, j])
    return found * (_SELECTED * _widening(independent))[:, :, None]


def _never_decreasing(rows: FloatArray) -> FloatArray:
    """Nearest never decreasing sequence to each row, by least squares (pooling of adjacent violators)."""
    fitted = np.empty_like(rows)
    for index, row in enumerate(rows):
        blocks: list[list[float]] = []
        for value in row:
            blocks.append([float(value), 1.0])
            while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
                mean, size = blocks.pop()
                total = size + blocks[-1][1]
                blocks[-1] = [(mean * size + blocks[-1][0] * blocks[-1][1]) / total, total]
        fitted[index] = np.repeat([mean for mean, _ in blocks], [int(size) for _, size in blocks])
    return fitted


def _normal_quantiles(levels: FloatArray) -> FloatArray:
    """Half-widths of central intervals of the standard normal distribution, shape (levels,)."""
    return np.array([NormalDist().inv_cdf((1 + level) / 2) for level in levels])


def _widening(independent: FloatArray) -> FloatArray:
    """Ratios of the quantiles of Student's t and of the normal distribution, shape (levels, steps).

    By the expansion of Cornish and Fisher: to 1 % for four degrees of freedom up to a level of 0.99.
    """
    z, v = _normal_quantiles(_LEVELS)[:, None], np.maximum(independent, _FEWEST_INDEPENDENT)[None]
    first = (z**2 + 1) / 4
    second = (5 * z**4 + 16 * z**2 + 3) / 96
    third = (3 * z**6 + 19 * z**4 + 17 * z**2 - 15) / 384
    return np.asarray(1 + first / v + second / v**2 + third / v**3)


def _growth(errors: FloatArray, beyond: FloatArray, *, exponential: bool = True) -> FloatArray:
    """Ratios of the errors at the steps ``beyond`` to the last of ``errors``, by a power of the steps or an exponential
    function, whichever fits better; with ``exponential=False`` by the power."""
    known = len(errors)
    slowest = np.asarray((beyond / known) ** _SLOWEST)
    counted = np.arange(1, known + 1, dtype=np.float64)
    late = counted >= known / 4
    if late.sum() < 3:
        return slowest
    logs, steps = np.log(np.maximum(errors[late], _SMALLEST)), counted[late]
    fits = [_line(x, logs) for x in (np.log(steps), steps)]
    by_power = not exponential or fits[0][1] <= fits[1][1]
    power = fits[0][0] * np.log(beyond / known) if by_power else fits[1][0] * (beyond - known)
    return np.maximum(slowest, np.exp(np.minimum(power, _LARGEST)))


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope of the least-squares line, and the sum of its squared residuals."""
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y) / float(x @ x)
    return slope, float(((y - slope * x) ** 2).sum())


def measure_growth(
    rollouts: Sequence[FloatArray], truths: Sequence[FloatArray], apart: Sequence[float] | None = None
) -> ErrorGrowth:
    """Error growth over rollouts (starts, steps, outputs), with the true samples, of one fold or several.

    True samples are NaN after the end of the data. ``apart`` is the number of samples from one start to the next in
    each fold; without it the starts of a fold count as spread over as many samples as its rollouts have steps. Diverged
    rollouts are left out; where all have diverged, they are clipped.
    """
    longest = max(truth.shape[1] for truth in truths)
    outputs = truths[0].shape[2]
    low, high = (pick([pick(t, axis=(0, 1)) for t in truths], axis=0) for pick in (np.nanmin, np.nanmax))
    middle, reach = (low + high) / 2, _FAR * np.maximum((high - low) / 2, _SMALLEST)
    stays = [(np.abs(path - middle) <= reach).all(axis=(1, 2)) for path in rollouts]
    clip = not any(some.any() for some in stays)
    errors, independent, counted = [], np.zeros(longest), np.zeros(longest)
    late, late_count = np.zeros(outputs), 0
    for index, (path, truth) in enumerate(zip(rollouts, truths, strict=True)):
        steps = truth.shape[1]
        used = np.full(len(path), True) if clip else stays[index]
        inside = np.clip(path[used], middle - reach, middle + reach)
        padded = np.full((len(inside), longest, outputs), np.nan)
        # No error counts with more than the range of the data.
        padded[:, :steps] = np.clip(truth[used] - inside, low - high, high - low)
        errors.append(padded)
        gap = steps / len(path) if apart is None else apart[index]
        counts = np.isfinite(padded[:, :, 0]).sum(axis=0)
        independent += counts * np.minimum(1.0, gap / np.arange(1, longest + 1))
        counted += counts
        end = inside[:, -max(1, steps // 4) :]
        late += (end**2).sum(axis=(0, 1))
        late_count += end.shape[0] * end.shape[1]
    # Starts closer than the steps ahead overlap, but their errors may be unrelated all the same.
    independent = np.maximum(independent, counted / _relatedness(errors))
    signed = np.concatenate(errors)
    known = np.isfinite(signed).any(axis=(0, 2))
    signed, independent = signed[:, known], independent[known]
    per_step = np.sqrt(np.nanmean(signed**2, axis=0))
    per_step = np.maximum(np.maximum.accumulate(per_step, axis=0), _SMALLEST)
    return ErrorGrowth(per_step, np.sqrt(1.0 + late / late_count), _stored(signed), independent)


def amplification(differences: FloatArray, settled: int) -> FloatArray:
    r"""Factors by which small differences between rollouts grow, never decreasing and at least 1.

    With :math:`D_{kj}` the root mean square over the starts of the differences at step :math:`k` in output :math:`j`,
    and :math:`\tau` the steps after which they have turned into directions that grow, the factors are
    :math:`g_{kj} = \max_{i \le k} D_{\tau+i,j} / D_{\tau j}`.

    Parameters
    ----------
    differences
        Differences of rollouts from neighbouring windows, shape (starts, steps, outputs).
    settled
        The number of steps :math:`\tau`.

    Returns
    -------
    ndarray
        Factors after 1, 2, … steps, shape (steps - settled, outputs).
    """
    sizes = np.maximum(np.sqrt((differences**2).mean(axis=0)), _SMALLEST)
    return np.maximum(np.maximum.accumulate(sizes[settled:] / sizes[settled - 1], axis=0), 1.0)


def _relatedness(folds: Sequence[FloatArray]) -> FloatArray:
    r"""Number of rollouts that tell as much as one independent rollout, at each step, shape (steps,), at least 1.

    It is :math:`1 + 2 \sum_j \rho_j`, with the autocorrelation :math:`\rho_j` of the absolute errors of rollouts
    that started :math:`j` starts apart, summed up to the first that is not positive, and averaged over steps near.
    """
    sizes = [np.abs(fold).mean(axis=2) for fold in folds]
    steps = sizes[0].shape[1]
    middle = _finite_mean(np.concatenate(sizes))
    from_middle = [size - middle for size in sizes]
    variance = _mean_product(from_middle, 0)
    total, positive = np.ones(steps), variance > 0
    for lag in range(1, max(len(size) for size in sizes)):
        related = np.divide(_mean_product(from_middle, lag), variance, out=np.zeros(steps), where=variance > 0)
        positive = positive & (related > 0)
        if not positive.any():
            break
        total += np.where(positive, 2 * related, 0.0)
    near = [slice(int((k + 1) / _NEIGHBOURS), int(np.ceil((k + 1) * _NEIGHBOURS))) for k in range(steps)]
    return np.array([total[some].mean() if len(total[some]) else total[k] for k, some in enumerate(near)])


def _mean_product(folds: Sequence[FloatArray], lag: int) -> FloatArray:
    """Mean product of values (starts, steps) of starts ``lag`` apart, over all folds, shape (steps,); 0 without any."""
    products = [fold[lag:] * fold[: len(fold) - lag] for fold in folds if len(fold) > lag]
    return _finite_mean(np.concatenate(products))


def _finite_mean(values: FloatArray) -> FloatArray:
    """Mean of the finite values of each column, shape (columns,); 0 without any, such as steps that no rollout has."""
    finite = np.isfinite(values)
    return np.asarray(np.where(finite, values, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1))


def _stored(signed: FloatArray) -> FloatArray:
    """Rollouts spread over all, as many as are stored."""
    most = int(np.clip(_MOST_VALUES // signed[0].size, 1, _MOST_ROLLOUTS))
    chosen = np.unique(np.linspace(0, len(signed) - 1, most).astype(int))
    return np.asarray(signed[chosen])
