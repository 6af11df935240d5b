"""Simple candidates beside the family: rules, smoothing, ARIMA, decompositions, lags of seasons, and analogues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..classical.arima import LONGEST_SEASON, window_length
from ..classical.arima_fit import fit_arima
from ..classical.decomposition import Decomposition, Logarithm, SeasonalDifference, SeasonalTrend, remainders
from ..classical.rules import Drift, Median, Rollout, SeasonalNaive, fit_analogue, fit_smoothing
from ..data.delay_windows import Embedding
from ..features.feature_map import FeatureMap
from ..protocol import FloatArray
from ..rollout import Member, PathModel
from .readout_search import Learner

_Fit = Callable[[Sequence[FloatArray], int], PathModel | None]


@dataclass(frozen=True)
class Recipe:
    """A candidate: its kind as in the argument ``model``, its label, and its fit to pieces of the record.

    ``optimism`` is the factor by which its errors are larger on new samples than in the comparison.
    """

    kind: str
    label: str
    fit: _Fit
    optimism: float = 1.0


RULES = ("persistence", "seasonal-naive", "drift")
"""Kinds that have no parameters."""
_LONGEST_WINDOW = 500
"""Samples in a window of a simple model at most, unless three seasons need more."""


def longest_window(seasons: Sequence[int]) -> int:
    """Samples in a window of a simple model at most."""
    return max(_LONGEST_WINDOW, 3 * max(seasons, default=1))


_RIDGES = (1e-6, 1e-3, 1e-2)
"""Ridges of linear models with few lags: none, and those that noisy data need."""
LOGARITHM = "of the logarithm"
"""End of the label of a model of logarithms."""


def _sparse_lags(channels: int, near: int, seasons: Sequence[int], around: int) -> Embedding:
    """Embedding by the last ``near`` samples and those ``around`` one season before the next sample."""
    chosen = set(range(near))
    for season in seasons:
        chosen |= {lag for lag in range(season - 1 - around, season + around) if lag >= 0}
    ordered = np.array(sorted(chosen, reverse=True))
    columns = (-channels * (1 + ordered)[:, None] + np.arange(channels)).reshape(-1)
    return Embedding(int(ordered[0]) + 1, columns.astype(np.int64))


def linear_recipe(embedding: Embedding, ridge: float, label: str) -> Recipe:
    """TD-DMD with given lags and ridge."""

    def fit(pieces: Sequence[FloatArray], outputs: int) -> PathModel | None:
        return _linear(pieces, outputs, embedding, ridge)

    return Recipe("td-dmd", label, fit)


def _linear(pieces: Sequence[FloatArray], outputs: int, embedding: Embedding, ridge: float) -> Rollout | None:
    features = FeatureMap(pieces[0].shape[1], embedding)
    rows = sum(max(0, len(z) - features.window) for z in pieces)
    if rows < 2 + features.size:
        return None
    solved = Learner(pieces, outputs, 0).readouts([features], 0.0, np.array([ridge]))
    return Rollout((Member(features, solved[0]),)) if solved else None


def recipes_for(
    trajectories: Sequence[FloatArray],
    outputs: int,
    seasons: tuple[int, ...],
    longest: int,
    zero: FloatArray | None,
    most: int | None = None,
) -> list[Recipe]:
    """Simple candidates for a record with these seasons, whose windows fit into ``longest`` samples.

    Models of trends and seasons take longer windows where the record that they are fitted to is longer, of up to
    ``most`` samples (as many as ``longest`` by default).
    """
    channels = trajectories[0].shape[1]
    most = min(longest if most is None else most, max(len(z) for z in trajectories))
    plain = _plain(channels, outputs, seasons, longest, most)
    if zero is None or not _worth_a_logarithm(trajectories, outputs, zero):
        return plain
    low = np.concatenate([z[:, :outputs] for z in trajectories]).min(axis=0) + zero
    return plain + [
        _in_logarithms(recipe, zero, low / 2)
        for recipe in _plain(outputs, outputs, seasons, longest, most)
        if recipe.kind in ("smoothing", "arima", "seasonal-trend", "seasonal-difference", "td-dmd", "drift")
    ]


def _worth_a_logarithm(trajectories: Sequence[FloatArray], outputs: int, zero: FloatArray) -> bool:
    """Whether data are positive in every channel and vary by a factor of two or more."""
    data = np.concatenate([z[:, :outputs] for z in trajectories]) + zero
    low, high = data.min(axis=0), data.max(axis=0)
    return bool((low > 0).all() and (high > 2 * low).all())


def _in_logarithms(recipe: Recipe, zero: FloatArray, low: FloatArray) -> Recipe:
    def fit(pieces: Sequence[FloatArray], outputs: int) -> PathModel | None:
        def log(z: FloatArray) -> FloatArray:
            return np.asarray(np.log(np.maximum(z[:, :outputs] + zero, low)))

        inner = recipe.fit([log(z) for z in pieces], outputs)
        return None if inner is None else Logarithm(outputs, zero, low, inner)

    return Recipe(recipe.kind, f"{recipe.label}, {LOGARITHM}", fit)


def _plain(channels: int, outputs: int, seasons: tuple[int, ...], longest: int, most: int) -> list[Recipe]:
    found = [Recipe("persistence", "the last sample, repeated", lambda pieces, outs: SeasonalNaive(outs, 1))]
    found += [_naive(s) for s in seasons if s <= longest]
    found += [_drift(length) for length in sorted({min(longest, 8), min(longest, 40), most}) if length > 1]
    found += [_median(length) for length in _MEDIANS if length <= longest]
    fitting = tuple(s for s in seasons if 2 * s <= longest)
    if outputs <= _MOST_CHANNELS:
        found += [_smoothing(s, most) for s in (1, *fitting) if s <= _LONGEST_CYCLE and longest > 2]
        found.append(_arima(next((s for s in fitting if s <= LONGEST_SEASON), 1), most))
    found += _decompositions(outputs, fitting, most)
    for s in fitting:
        found += _differences(outputs, s, longest)
    found += _seasonal_lags(channels, fitting, longest)
    found += _analogues(fitting, longest)
    return found


def _room(pieces: Sequence[FloatArray], wanted: int) -> int:
    """Length of a window that all pieces hold, ``wanted`` samples at most."""
    return min(wanted, *(len(z) for z in pieces))


_MOST_CHANNELS = 8
"""Channels up to which smoothing and ARIMA are tried: the weights of the one are shared, which suits few channels, and
each channel of the other is fitted by itself, which takes time."""
_LONGEST_CYCLE = 400
"""Longest season of a smoothing: each of its seasonal values is learned from few samples."""


def _naive(season: int) -> Recipe:
    return Recipe(
        "seasonal-naive",
        f"the last season of {season} samples, repeated",
        lambda pieces, outs: SeasonalNaive(outs, season),
    )


def _drift(length: int) -> Recipe:
    label = f"the drift of the last {length} samples"
    return Recipe("drift", label, lambda pieces, outs: Drift(outs, _room(pieces, length)))


_MEDIANS = (5, 12, 30)
"""Samples that medians are taken of: few follow a level that moves, many are steady where it stays."""


def _median(length: int) -> Recipe:
    label = f"the median of the last {length} samples"
    return Recipe("median", label, lambda pieces, outs: Median(outs, length))


def _smoothing(season: int, most: int) -> Recipe:
    length = min(most, max(10 * season, 60))
    label = "exponential smoothing" + (f", season {season}" if season > 1 else "")

    def fit(pieces: Sequence[FloatArray], outputs: int) -> PathModel | None:
        room = _room(pieces, length)
        # The shortest of several records may not hold one season.
        return None if room < season else fit_smoothing(pieces, outputs, season, room)

    return Recipe("smoothing", label, fit)


def _arima(season: int, most: int) -> Recipe:
    length = min(most, window_length(season))
    label = "ARIMA" + (f", season {season}" if season > 1 else "")
    return Recipe("arima", label, lambda pieces, outs: fit_arima(pieces, outs, season, _room(pieces, length)))


def _decompositions(outputs: int, seasons: tuple[int, ...], most: int) -> list[Recipe]:
    if not seasons:
        return []
    sets = [seasons] if len(seasons) == 1 else [seasons, seasons[:1]]
    found = []
    for some in sets:
        top = max(some)
        for cycles, memory in ((12, np.inf), (5, 1.5)):
            length = min(most, cycles * top)
            for stiffness in (0.3, 30.0):
                parts = Decomposition(some, length, stiffness, memory * top, 0.9 if stiffness < 1 else 0.98)
                for inner in (0, 2, 8, 24):
                    found.append(_seasonal_trend(outputs, parts, inner))
    return found


def _seasonal_trend(outputs: int, parts: Decomposition, inner: int) -> Recipe:
    words = " and ".join(map(str, parts.seasons))
    how = "equal weights" if np.isinf(parts.memory) else "recent weights"
    trend = "flexible" if parts.stiffness < 1 else "stiff"
    label = f"{trend} trend and season {words} over {parts.length} samples, {how}"
    if inner:
        label += f", TD-DMD of {inner} lags on the remainder"

    def fit(pieces: Sequence[FloatArray], outs: int) -> PathModel | None:
        own = replace(parts, length=_room(pieces, parts.length))
        if not inner:
            return SeasonalTrend(outs, own)
        rest = remainders(pieces, outs, own, 3 * inner)
        model = _linear(rest, outs, _sparse_lags(outs, inner, (), 0), 1e-3) if rest else None
        return None if model is None else SeasonalTrend(outs, own, model)

    return Recipe("seasonal-trend", label, fit)


def _differences(outputs: int, season: int, longest: int) -> list[Recipe]:
    found = []
    for near, around in ((1, 0), (3, 0), (3, 2), (12, 0), (12, 2), (24, 3)):
        embedding = _sparse_lags(outputs, near, (season,) if around else (), around)
        if embedding.window + season > longest:
            continue
        words = " and those around a season" if around else ""
        label = f"TD-DMD of {near} lags{words} on differences over {season} samples"
        found.append(Recipe("seasonal-difference", label, _difference_fit(season, embedding)))
    return found


def _difference_fit(season: int, embedding: Embedding) -> _Fit:
    def fit(pieces: Sequence[FloatArray], outputs: int) -> PathModel | None:
        changes = [z[season:, :outputs] - z[:-season, :outputs] for z in pieces if len(z) > season]
        inner = _linear(changes, outputs, embedding, 1e-3) if changes else None
        return None if inner is None else SeasonalDifference(outputs, season, inner)

    return fit


def _seasonal_lags(channels: int, seasons: tuple[int, ...], longest: int) -> list[Recipe]:
    found = []
    for near in (2, 6, 16):
        for around in (1, 4) if seasons else (0,):
            embedding = _sparse_lags(channels, near, seasons, around)
            if embedding.window > longest:
                continue
            words = f" and those around {' and '.join(map(str, seasons))}" if seasons else ""
            label = f"TD-DMD of {near} lags{words}"
            found += [linear_recipe(embedding, ridge, f"{label}, ridge {ridge:g}") for ridge in _RIDGES]
    return found


def _analogues(seasons: tuple[int, ...], longest: int) -> list[Recipe]:
    found = []
    for length in sorted({4, 12, *(s for s in seasons)}):
        if length > longest // 2:
            continue
        for anchored in (False, True):
            label = f"analogues of {length} samples{', by their changes' if anchored else ''}"
            chunk = max(1, length // 2)
            found.append(Recipe("analogue", label, _analogue_fit(length, anchored, chunk)))
    return found


def _analogue_fit(length: int, anchored: bool, chunk: int) -> _Fit:
    return lambda pieces, outputs: fit_analogue(pieces, outputs, length, 8, anchored, chunk)
