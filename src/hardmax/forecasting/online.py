r"""Updates of a fitted forecaster with samples that arrive after the fit, and an alarm when the data have changed.

The readouts are those of a fit of the readouts to all data (:mod:`.recursive_readout`); features, units, noise and
ridge stay those of the fit. Sums are updated with every sample, and readouts are solved from them when a forecast needs
them, or once the sums hold 1 % more samples than the readouts. Before a sample is learned it is predicted one step
ahead, by the readouts as solved last. With :math:`q_k` the mean square
of that error over the channels, in units of the one-step errors on validation data, the alarm is Page's cumulative sum
of the log-likelihood ratio of Gaussian errors that have grown by a factor :math:`\rho`:

.. math:: S_k = \max\bigl(0,\ S_{k-1} - \log\rho + \tfrac12\,(1 - \rho^{-2})\,q_k\bigr), \qquad S_k > \log N.

For independent Gaussian errors of the validation size it takes at least :math:`N` samples on average until a false
alarm (Lorden 1971). Errors of chaotic systems come in bursts: the threshold is therefore at least twice the largest
:math:`S` along the validation data, which do not drift; as the tail of :math:`S` is exponential, this squares the time
between false alarms. Each term is at most half the threshold, so that a single outlier raises no alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import FileError, InputError
from ..tensor_files import field, require
from .data.units import Units
from .features.reservoir import Reservoir
from .protocol import FloatArray
from .recursive_readout import RecursiveReadout, Sums
from .rollout import Member, Predictor, roll
from .search.model_search import SearchResult
from .search.readout_search import Learner
from .search.refit import FALLBACK_NOISE, FALLBACK_RIDGE

_GROWTH = 2.0
"""Growth of the one-step errors that the alarm is tuned to: a factor that matters to a forecast."""
_BETWEEN_FALSE_ALARMS = 10_000
"""Mean number of samples until a false alarm, at least, for independent Gaussian errors."""
_THRESHOLD = log(_BETWEEN_FALSE_ALARMS)
_SMALLEST = 1e-13
"""Lower bound of the one-step errors, in standard deviations: below it they are rounding."""
_MORE = 0.01
"""Share of new samples from which on the readouts are solved again without being asked for."""
_FITTED, _MOST_STEPS = 0.7, 2000
"""Share of a record that a simple model is fitted to, to measure its one-step errors on the rest, and their number."""
UPDATE_BLOCK = 256
"""Samples that are predicted and learned at once: a limit on the memory of their windows."""
_CONSTANT = 1e-9
"""Relative difference from its mean that is rounding in a constant channel."""
_DAMAGED = "the file is damaged; save the model again"
_Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Drift:
    """Comparison of one-step errors since the fit with those on validation data, and an alarm when they have grown.

    Attributes
    ----------
    samples
        Number of samples since the fit.
    predicted
        Number of them that were predicted before they were learned: those after windows without gaps.
    error_ratio
        Root mean square of these one-step errors, in units of the one-step errors on validation data; NaN without any.
    statistic
        Cumulative sum of log-likelihood ratios that the errors have doubled.
    threshold
        Value of the statistic above which the alarm is raised.
    alarm_at
        Number of the sample, counted from 1 after the fit, at which the alarm was raised first; 0 for no alarm.
    constant_until
        Number of the sample at which a channel that was constant in the fit, and is forecast so, moved first; 0 if none
        did.
    margin
        Factor by which the errors in whose units squares are passed exceed those on validation data.
    """

    samples: int = 0
    predicted: int = 0
    error_ratio: float = float("nan")
    statistic: float = 0.0
    threshold: float = _THRESHOLD
    alarm_at: int = 0
    constant_until: int = 0
    margin: float = 1.0

    @property
    def alarm(self) -> bool:
        """Whether the errors have grown, or a constant channel has moved: the model should be fitted again."""
        return self.alarm_at > 0 or self.constant_until > 0

    def __str__(self) -> str:
        if self.constant_until:
            return (
                f"A channel that was constant in the fit moved at sample {self.constant_until} of {self.samples}, and "
                "forecasts do not follow it. Fit the model again."
            )
        if not self.predicted:
            return f"{self.samples} samples since the fit, none of them after a window without gaps."
        size = f"one-step errors {self.error_ratio:.3g} times those on validation data"
        if self.alarm:
            return f"Drift since sample {self.alarm_at} of {self.samples}: {size}. Fit the model again."
        return f"No drift in {self.samples} samples: {size}."

    def after(self, squares: FloatArray) -> Drift:
        """Drift after more samples.

        Parameters
        ----------
        squares
            Mean square errors in units of those on validation data times ``margin``, shape (samples,); NaN where there
            was no forecast.

        Returns
        -------
        Drift
            The comparison that includes these samples.
        """
        statistic, alarm_at = self.statistic, self.alarm_at
        for k, square in enumerate(squares, start=self.samples + 1):
            if np.isnan(square):
                continue
            statistic = max(0.0, statistic + min(_term(float(square)), 0.5 * self.threshold))
            if statistic > self.threshold and not alarm_at:
                alarm_at = k
        new = squares[~np.isnan(squares)]
        predicted = self.predicted + len(new)
        before = self.predicted * (self.error_ratio / self.margin) ** 2 if self.predicted else 0.0
        ratio = self.margin * float(np.sqrt((before + float(new.sum())) / predicted)) if predicted else self.error_ratio
        return replace(
            self,
            samples=self.samples + len(squares),
            predicted=predicted,
            error_ratio=ratio,
            statistic=statistic,
            alarm_at=alarm_at,
        )


@dataclass(frozen=True)
class Online:
    """Sums of all readouts of a predictor, and what the next samples need.

    Attributes
    ----------
    readouts
        The readouts that are solved again, each once.
    places
        For the members, the linear model and the fallback of the predictor the number of their readout.
    scale
        One-step errors on validation data in normalised units, shape (outputs,): the upper end of the 95 % interval of
        their root mean square, because a value that is too low by a tenth makes false alarms ten times as frequent.
    known
        Whether each sample of the last window is free of gaps, shape (window,).
    seed
        Seed of the window noise.
    drift
        Comparison of one-step errors.
    behind
        Number of samples in the sums that the readouts of the predictor do not hold yet.
    """

    readouts: tuple[RecursiveReadout, ...]
    places: tuple[int, ...]
    scale: FloatArray
    known: npt.NDArray[np.bool_]
    seed: int
    drift: Drift
    behind: int = 0

    @property
    def samples(self) -> int:
        """Samples in the sums."""
        return max(readout.samples for readout in self.readouts)

    def solved(self, predictor: Predictor) -> Predictor:
        """The predictor with readouts of all samples so far."""
        if not self.behind:
            return predictor
        members = [readout.member() for readout in self.readouts]
        return _with_members(predictor, [members[place] for place in self.places])


@dataclass(frozen=True)
class Updated:
    """Result of an update: state, predictor, and the last window in normalised units with its gaps filled.

    The readouts of the predictor are those solved last; :meth:`Online.solved` has those of all samples.
    """

    online: Online
    predictor: Predictor
    window: FloatArray


def start_online(search: SearchResult, trajectories: Sequence[FloatArray], seed: int) -> Online:
    """State after a fit to the normalised ``trajectories``; new samples continue the last of them."""
    predictor = search.predictor
    learner = Learner(trajectories, predictor.outputs, seed)
    readouts: list[RecursiveReadout] = []
    places: list[int] = []
    number: dict[int, int] = {}
    for member in _solved(predictor):
        if id(member) not in number:
            number[id(member)] = len(readouts)
            readouts.append(RecursiveReadout.start(learner, member.features, *_rule(search, member)))
        places.append(number[id(member)])
    scale, threshold, margin = _calibrated(search, trajectories)
    known = np.ones(predictor.window, dtype=bool)
    return Online(tuple(readouts), tuple(places), scale, known, seed, Drift(threshold=threshold, margin=margin))


def _solved(predictor: Predictor) -> list[Member]:
    """Models whose readouts are updated; the one that is stored for its attention weights is not."""
    return [*predictor.members, predictor.linear, *([predictor.fade.fallback] if predictor.fade.fallback else [])]


def _calibrated(search: SearchResult, trajectories: Sequence[FloatArray]) -> tuple[FloatArray, float, float]:
    """Upper ends of one-step errors on validation data, (outputs,), the threshold of the alarm, and their margin.

    The model is the selected one as fitted without these data.
    """
    fold = search.folds[0]
    outputs = fold.truth.shape[2]
    if search.predictor.path is None:
        known = fold.truth if fold.future is None else np.concatenate([fold.truth, fold.future], axis=2)
        records = [np.concatenate([window, ahead]) for window, ahead in zip(fold.windows, known, strict=True)]
        errors = [_one_step(search.selection.chosen.members, path, fold.windows.shape[1], outputs) for path in records]
        truth = fold.truth
    else:
        errors, truth = _one_step_of_simple(search, trajectories, outputs)
    scale = np.maximum(np.sqrt((np.concatenate(errors) ** 2).mean(axis=0)), _SMALLEST)
    margin = float(np.sqrt(_upper_mean([((error / scale) ** 2).mean(axis=1) for error in errors], truth)))
    scale = scale * margin
    highest = 0.0
    for error in errors:
        statistic = 0.0
        for square in ((error / scale) ** 2).mean(axis=1):
            statistic = max(0.0, statistic + _term(float(square)))
            highest = max(highest, statistic)
    return scale, max(_THRESHOLD, 2.0 * highest), margin


def _one_step(members: Sequence[Member], path: FloatArray, length: int, outputs: int) -> FloatArray:
    """One-step errors of a rollout model along a path, after its first ``length`` samples."""
    windows = path[np.arange(len(path) - length)[:, None] + np.arange(length)]
    return np.asarray(roll(members, windows, 1)[0][:, 0] - path[length:, :outputs])


def _one_step_of_simple(
    search: SearchResult, trajectories: Sequence[FloatArray], outputs: int
) -> tuple[list[FloatArray], FloatArray]:
    """One-step errors of a simple model after each of its origins, as fitted before it, and the samples forecast.

    Its window is too long for the folds of the family. Where it cannot be fitted to less, it is used as it is.
    """
    recipe, path = search.selection.chosen.recipe, search.predictor.path
    assert path is not None  # noqa: S101 (a simple model is selected)
    longest = max(trajectories, key=len)
    cut = min(max(int(_FITTED * len(longest)), len(longest) - _MOST_STEPS), len(longest) - 2)
    others = [z for z in trajectories if z is not longest]
    fitted = None if recipe is None else recipe.fit([*others, longest[:cut]], outputs)
    if fitted is None or fitted.window > cut:
        fitted, cut = path, min(max(cut, path.window), len(longest) - 1)
    starts = range(cut, len(longest))
    windows = np.stack([longest[k - fitted.window : k] for k in starts])
    after = longest[cut:]
    future = after[:, None, outputs:] if after.shape[1] > outputs else None
    errors = fitted.paths(windows, 1, future)[:, 0] - after[:, :outputs]
    return [np.asarray(errors)], after[None, :, :outputs]


def _upper_mean(squares: list[FloatArray], truth: FloatArray) -> float:
    """Upper end of the 95 % interval of the mean of ``squares``, which is one, along overlapping paths."""
    distinct = len(np.unique(truth.reshape(-1, truth.shape[2]), axis=0))
    centred = [part - 1.0 for part in squares]
    variance = float(np.concatenate(centred).var())
    # Correlated errors count as fewer: the factor of a first-order process, at most that of runs of 40 samples.
    products = sum(float(part[1:] @ part[:-1]) for part in centred)
    correlation = products / max(sum(float(part @ part) for part in centred), 1e-300)
    correlation = min(max(correlation, 0.0), 0.95)
    counted = distinct * (1.0 - correlation) / (1.0 + correlation)
    return 1.0 + 2.0 * float(np.sqrt(variance / max(counted, 1.0)))


def _term(square: float) -> float:
    """Log-likelihood ratio of one error."""
    return 0.5 * (1.0 - _GROWTH**-2) * square - log(_GROWTH)


def _rule(search: SearchResult, member: Member) -> tuple[float, float]:
    """Window noise and ridge with which the readout of a member was solved."""
    predictor, selection = search.predictor, search.selection
    if member is predictor.fade.fallback:
        return FALLBACK_NOISE, FALLBACK_RIDGE
    for known, source in zip(predictor.members, selection.chosen.sources, strict=True):
        if known is member:
            return source.noise, source.ridge
    linear = selection.linear.sources[0]
    return linear.noise, linear.ridge


def extend(
    online: Online,
    predictor: Predictor,
    window: FloatArray,
    samples: FloatArray,
    inputs: FloatArray | None,
) -> Updated:
    """State and predictor after more samples.

    Parameters
    ----------
    online
        State so far.
    predictor
        Predictor so far.
    window
        Last samples so far in normalised units, shape (window, outputs).
    samples
        New samples in normalised units, shape (new, outputs); NaN where a value is missing.
    inputs
        Normalised inputs of the window and of the new samples, shape (window + new, inputs), or None.

    Returns
    -------
    Updated
        State, predictor and last window after the new samples.
    """
    length, new = len(window), len(samples)
    states = np.concatenate([window, samples])
    rows = states
    if inputs is not None:
        # The row of a sample holds the inputs of the next one, as in the fit.
        rows = np.concatenate([states, np.concatenate([inputs[1:], inputs[-1:]])], axis=1)
    seen = np.isfinite(samples)
    known = np.concatenate([online.known, seen.all(axis=1)])
    if not known[length:].all():
        # Predictions that fill gaps stay in the windows of forecasts.
        online, predictor = replace(online, behind=0), online.solved(predictor)
    _fill(rows, predictor, length)
    squares = _square_errors(rows, known, seen, predictor, online.scale)
    readouts = tuple(
        readout.extended(
            rows[length - readout.features.window :],
            known[length - readout.features.window :],
            seen,
            _draw(online.seed, readout, online.drift.samples, new, rows.shape[1]),
        )
        for readout in online.readouts
    )
    drift, behind = online.drift.after(squares), online.behind + new
    later = replace(online, readouts=readouts, known=known[new:], drift=drift, behind=behind)
    if behind > _MORE * later.samples:
        later, predictor = replace(later, behind=0), later.solved(predictor)
    return Updated(later, _with_range(predictor, samples), rows[new:, : predictor.outputs])


def _fill(rows: FloatArray, predictor: Predictor, length: int) -> None:
    """Fill missing values by one-step predictions, one sample after the other, in place."""
    outputs = predictor.outputs
    for t in np.flatnonzero(np.isnan(rows[:, :outputs]).any(axis=1)):
        ahead = predictor.roll(rows[t - length : t][None], 1)[0, 0]
        rows[t, :outputs] = np.where(np.isnan(rows[t, :outputs]), ahead, rows[t, :outputs])


def _square_errors(
    rows: FloatArray,
    known: npt.NDArray[np.bool_],
    seen: npt.NDArray[np.bool_],
    predictor: Predictor,
    scale: FloatArray,
) -> FloatArray:
    """Mean square one-step errors of the new samples in units of those on validation data, shape (new,), or NaN."""
    new, outputs = len(seen), predictor.outputs
    length = len(rows) - new
    squares = np.full(new, np.nan)
    gaps = np.concatenate([[0], np.cumsum(~known)])
    usable = np.flatnonzero((gaps[length : length + new] == gaps[:new]) & seen.any(axis=1))
    if len(usable):
        windows, truth = rows[usable[:, None] + np.arange(length)], rows[length + usable, :outputs]

        def mean_square(ahead: FloatArray) -> FloatArray:
            error = np.where(seen[usable], (ahead - truth) / scale, 0.0)
            return np.asarray((error**2).sum(axis=1) / seen[usable].sum(axis=1))

        squares[usable] = mean_square(predictor.roll(windows, 1)[:, 0])
        outside = predictor.fade.weight(windows[:, -1, :outputs]) < 1.0
        if predictor.fade.fallback is not None and outside.any():
            # Rare extremes of the same process: nonlinear models fade there, so the better of both models counts.
            linear = mean_square(roll([predictor.linear], windows, 1)[0][:, 0])
            squares[usable] = np.where(outside, np.fmin(squares[usable], linear), squares[usable])
    return squares


def _draw(seed: int, readout: RecursiveReadout, before: int, new: int, channels: int) -> FloatArray:
    """Standard normal numbers of new samples, (copies, new, channels); the same however the samples are divided."""
    if readout.noise == 0:
        return np.zeros((readout.copies, new, channels))
    level = int(readout.noise * 1e9)
    return np.stack(
        [
            np.random.default_rng([seed, level, 1 + before + k]).standard_normal((readout.copies, channels))
            for k in range(new)
        ],
        axis=1,
    )


def _with_members(predictor: Predictor, members: list[Member]) -> Predictor:
    """Predictor with other readouts, in the order of ``_solved``."""
    count, fade = len(predictor.members), predictor.fade
    fallback = None if fade.fallback is None else members[count + 1]
    return replace(
        predictor,
        members=tuple(members[:count]),
        linear=members[count],
        fade=replace(fade, fallback=fallback),
    )


def _with_range(predictor: Predictor, samples: FloatArray) -> Predictor:
    """Predictor whose range is extended by new samples, shape (new, outputs), NaN where a value is missing."""
    fade = predictor.fade
    low = np.fmin(fade.middle - fade.half_range, np.fmin.reduce(samples, axis=0))
    high = np.fmax(fade.middle + fade.half_range, np.fmax.reduce(samples, axis=0))
    grown = (low < fade.middle - fade.half_range) | (high > fade.middle + fade.half_range)
    if not grown.any():
        return predictor
    middle = np.where(grown, (low + high) / 2, fade.middle)
    half_range = np.where(grown, (high - low) / 2, fade.half_range)
    return replace(predictor, fade=replace(fade, middle=middle, half_range=half_range))


# files


def put_online(online: Online, arrays: _Arrays) -> dict[str, Any]:
    """Recipe of the state for a file; its arrays are added to ``arrays``."""
    arrays |= {"online.known": online.known.astype(np.float64), "online.scale": online.scale}
    parts = []
    for i, readout in enumerate(online.readouts):
        name = f"online.readout{i}"
        arrays[f"{name}.noises"] = readout.noises
        if readout.state is not None:
            arrays[f"{name}.state"] = readout.state
        arrays |= {f"{name}.before": readout.before, f"{name}.after": readout.after}
        for k, (_, sums) in enumerate(readout.sums):
            arrays[f"{name}.sums{k}"] = sums.matrix
        parts.append(
            {
                "noise": readout.noise,
                "ridge": readout.ridge,
                "patterns": [list(pattern) for pattern, _ in readout.sums],
                "rows": [sums.rows for _, sums in readout.sums],
            }
        )
    drift = online.drift
    return {
        "readouts": parts,
        "places": list(online.places),
        "seed": online.seed,
        "behind": online.behind,
        "drift": {
            "samples": drift.samples,
            "predicted": drift.predicted,
            "error_ratio": drift.error_ratio if drift.predicted else None,
            "statistic": drift.statistic,
            "threshold": drift.threshold,
            "alarm_at": drift.alarm_at,
            "constant_until": drift.constant_until,
            "margin": drift.margin,
        },
    }


def get_online(path: Path, words: dict[str, Any], arrays: _Arrays, predictor: Predictor) -> Online:
    """State from a file, for the predictor of the same file."""
    models = _solved(predictor)
    places = tuple(int(place) for place in field(path, words, "places", list))
    parts = field(path, words, "readouts", list)
    if len(places) != len(models) or set(places) != set(range(len(parts))):
        raise FileError(path, "its sums do not belong to its models", _DAMAGED)
    readouts = []
    for i, about in enumerate(parts):
        member = models[places.index(i)]
        readouts.append(_get_readout(path, f"online.readout{i}", about, arrays, member, predictor.outputs))
    drift = dict(field(path, words, "drift", dict))
    ratio = drift.pop("error_ratio")
    known = require(path, arrays, "online.known", (predictor.window,)) > 0
    state = Drift(**drift, error_ratio=float("nan") if ratio is None else float(ratio))
    scale = require(path, arrays, "online.scale", (predictor.outputs,))
    # Files of earlier versions hold readouts of all samples.
    behind = field(path, words, "behind", int) if "behind" in words else 0
    return Online(tuple(readouts), places, scale, known, field(path, words, "seed", int), state, behind)


def _get_readout(
    path: Path, name: str, about: dict[str, Any], arrays: _Arrays, member: Member, outputs: int
) -> RecursiveReadout:
    features = member.features
    noises = require(path, arrays, f"{name}.noises", (None, features.window, features.channels))
    pool: Reservoir | None = features.reservoir
    state = None if pool is None else require(path, arrays, f"{name}.state", (len(noises), pool.size))
    noise, ridge = float(about["noise"]), float(about["ridge"])
    patterns, rows = field(path, about, "patterns", list), field(path, about, "rows", list)
    before = require(path, arrays, f"{name}.before", (None, None))
    after = require(path, arrays, f"{name}.after", before.shape)
    modes = before.shape[1]
    size = 1 + 2 * modes if modes else features.size + outputs
    sums = tuple(
        (
            tuple(bool(flag) for flag in pattern),
            Sums(require(path, arrays, f"{name}.sums{k}", (size, size)), int(count), noise > 0),
        )
        for k, (pattern, count) in enumerate(zip(patterns, rows, strict=True))
    )
    if not sums or any(len(pattern) != outputs for pattern, _ in sums):
        raise FileError(path, f"part {name!r} has no sums of {outputs} channels", _DAMAGED)
    return RecursiveReadout(features, noise, ridge, outputs, noises, state, sums, before, after)


# the caller's samples


def move_of_constant(samples: FloatArray, units: Units) -> int:
    """Number of the first sample, from 1, in which a constant channel has another value; 0 without one."""
    fixed = np.setdiff1d(np.arange(len(units.mean)), units.keep)
    away = np.abs(samples[:, fixed] - units.mean[fixed]) > _CONSTANT * np.abs(units.mean[fixed])
    return int(away.any(axis=1).argmax()) + 1 if away.any() else 0


def read_samples(samples: FloatArray, channels: int) -> FloatArray:
    """New samples, shape (new, channels); NaN is a gap, infinity and other shapes are refused."""
    array = samples
    if array.ndim == 0 and channels == 1:
        array = array.reshape(1, 1)
    elif array.ndim == 1:
        array = array[:, None] if channels == 1 else array[None]
    if array.ndim != 2 or array.shape[1] != channels:
        raise InputError(
            "samples",
            f"shape {samples.shape}",
            f"must be (samples, {channels})",
            "pass the same channels as in fit, oldest sample first",
        )
    if np.isinf(array).any():
        raise InputError("samples", "infinity", "must be finite or NaN", "pass NaN where a value is missing")
    return array
