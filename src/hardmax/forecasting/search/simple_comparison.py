r"""Simple candidates beside the family, compared by forecasts from rolling origins.

A record is cut at several places; every candidate is fitted before each cut and forecasts from starts after it. With
:math:`e_{cik}` the error of start :math:`i` after cut :math:`c` at step :math:`k` in standard deviations, the typical
error is

.. math:: \exp\Big(\tfrac1H \sum_{k=1}^H \sum_c w_c \log \tfrac1n \sum_{i=1}^n e_{cik}\Big),

the geometric mean over the steps and the cuts of the mean error over the starts: early steps, where a good model of a
chaotic system is accurate, count as much as late ones; calm stretches of a record count as much as rough ones; and a
single lucky start does not count. The weight :math:`w_c` doubles from cut to cut, because forecasts continue the end of
the record.

Data that are rounded, and counts, may be forecast exactly right at all starts after a cut, and a geometric mean with a
factor of zero says nothing. Mean errors are therefore at least half the smallest one that is not zero, as far as the
data lie on a grid. Where the true samples of all starts are the same at some step, as those of rare counts are, the
means are arithmetic for all candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..classical.counts import Counts, medians
from ..classical.rules import Mean, weighted_mean
from ..protocol import FloatArray
from ..rollout import PathModel
from .simple_candidates import LOGARITHM, RULES, Recipe, longest_window
from .validation import log_ratio


@dataclass(frozen=True)
class Origin:
    """Pieces before a cut, and forecasts to make after it: windows, true samples, and the inputs ahead (or None)."""

    pieces: list[FloatArray]
    windows: FloatArray
    truth: FloatArray
    future: FloatArray | None
    horizons: float
    """Number of horizons that lie side by side after the cut: starts of overlapping forecasts tell less."""
    resolution: float = 0.0
    """Distance of neighbouring values of the data, root mean square over the outputs; 0 for data on no grid."""


_HELD_OUT, _MOST_HELD_OUT, _FEW = 0.35, 0.5, 50
"""Share of a record after the first cut: 0.35, or as much as 50 samples need, but no more than 0.5. A third of a short
record holds one or two horizons, whose smallest error is mostly luck."""
_CUTS = 3
"""Cuts of a record: more folds cost more fits."""
_STARTS = 8
"""Starts after each cut at most."""
_RECENT = 2.0
"""Weight of the errors after a cut, relative to those after the cut before it."""
_LONG = 6000
"""Samples from which on one cut is made: it leaves enough starts, and fits of long records take time."""


def make_origins(
    trajectories: Sequence[FloatArray], outputs: int, horizon: int, seasons: Sequence[int]
) -> list[Origin]:
    """Cuts of the record, the first after two seasons or more, each with windows that reach back to the beginning.

    Windows have 500 samples, or three seasons where these are more, at most. Of three or more trajectories the last
    ones are forecast as a whole.
    """
    if len(trajectories) >= 3:
        return _whole(trajectories, outputs, horizon)
    resolution = resolution_of(trajectories, outputs)
    longest = max(trajectories, key=len)
    others = [z for z in trajectories if z is not longest]
    total = len(longest)
    top = max(seasons, default=1)
    held_out = min(max(_HELD_OUT, _FEW / total), _MOST_HELD_OUT)
    first = max(min(2 * top + 1, int(0.8 * total)), int((1 - held_out) * total))
    ahead = max(1, min(horizon, (total - first) // 2))
    cuts = 1 if total > _LONG else _CUTS
    places = np.unique(np.linspace(first, total - ahead, cuts + 1).astype(int))
    origins = []
    for cut, until in pairwise(places):
        # The last sample before the next cut belongs to this one; the last cut of all includes the last start.
        last = until if until == places[-1] else until - 1
        starts = np.unique(np.linspace(cut, last, _STARTS * _CUTS // cuts).astype(int))
        reach = min(int(cut), longest_window(seasons))
        windows = np.stack([longest[start - reach : start] for start in starts])
        after = np.stack([longest[start : start + ahead] for start in starts])
        future = after[:, :, outputs:] if after.shape[2] > outputs else None
        share = (until - cut) / ahead + (until == places[-1])
        pieces = [*others, longest[:cut]]
        origins.append(Origin(pieces, windows, after[:, :, :outputs], future, float(share), resolution))
    return origins


def _whole(trajectories: Sequence[FloatArray], outputs: int, horizon: int) -> list[Origin]:
    count = max(1, len(trajectories) // 4)
    held = trajectories[-count:]
    shortest = min(len(z) for z in trajectories)
    length = shortest // 2
    ahead = max(1, min(horizon, shortest - length))
    windows = np.stack([z[:length] for z in held])
    after = np.stack([z[length : length + ahead] for z in held])
    future = after[:, :, outputs:] if after.shape[2] > outputs else None
    pieces, resolution = list(trajectories[:-count]), resolution_of(trajectories, outputs)
    return [Origin(pieces, windows, after[:, :, :outputs], future, float(count), resolution)]


_ON_A_GRID, _MOST_VALUES = 1e-3, 1e5
"""Distance from a grid, in its steps, that is rounding; and the steps that it has at most."""


def resolution_of(trajectories: Sequence[FloatArray], outputs: int) -> float:
    """Step of the grid on which data lie, root mean square over the outputs; those on no grid have a step of zero."""
    data = np.concatenate([z[:, :outputs] for z in trajectories])
    return float(np.sqrt(np.mean([_grid_step(channel) ** 2 for channel in data.T])))


def _grid_step(channel: FloatArray) -> float:
    values = np.unique(channel)
    step = float(np.diff(values).min()) if len(values) > 1 else 0.0
    if step == 0.0 or values[-1] - values[0] > _MOST_VALUES * step:
        return 0.0
    steps = (values - values[0]) / step
    return step if np.abs(steps - np.round(steps)).max() < _ON_A_GRID else 0.0


def step_errors(paths: FloatArray, truth: FloatArray) -> FloatArray:
    """Errors (starts, steps) of forecasts (starts, steps, outputs), in standard deviations."""
    bounded = np.nan_to_num(paths, nan=1e3, posinf=1e3, neginf=-1e3)
    return np.asarray(np.sqrt(((bounded - truth) ** 2).mean(axis=-1)))


def typical_error(curve: FloatArray) -> float:
    """Geometric mean over the steps of mean errors (steps,)."""
    return float(np.exp(np.log(np.maximum(curve, 1e-16)).mean()))


@dataclass(frozen=True)
class Scored:
    """A recipe with its forecasts from the origins, and their mean error at every step, (steps,).

    ``tied`` says that samples repeat so often that means of errors are arithmetic.
    """

    recipe: Recipe
    paths: list[FloatArray]
    curve: FloatArray
    tied: bool = False

    @property
    def error(self) -> float:
        """Typical error over all steps."""
        return self.error_up_to(len(self.curve))

    def error_up_to(self, steps: int) -> float:
        """Typical error over the first steps."""
        early = self.curve[:steps]
        return float(early.mean()) if self.tied else typical_error(early)


def samples_repeat(origins: Sequence[Origin]) -> bool:
    """Whether the true samples at some step are the same after all starts of a cut, as those of counts may be."""
    many = [origin.truth for origin in origins if len(origin.truth) >= _SEVERAL]
    return any((truth == truth[:1]).all(axis=(0, 2)).any() for truth in many)


_SEVERAL = 3
"""Starts of a cut from which on equal samples are no coincidence of two forecasts."""


def score(recipe: Recipe, origins: Sequence[Origin]) -> Scored | None:
    """The recipe scored on all origins; None where it cannot be fitted or forecasts no numbers."""
    paths = []
    for origin in origins:
        try:
            model = recipe.fit(origin.pieces, origin.truth.shape[2])
        except np.linalg.LinAlgError:
            return None
        if model is None or model.window > origin.windows.shape[1]:
            return None
        with np.errstate(all="ignore"):
            found = model.paths(origin.windows, origin.truth.shape[1], origin.future)
        if not np.isfinite(found).all():
            return None
        paths.append(np.clip(found, -1e3, 1e3))
    return _scored(recipe, paths, origins)


def _scored(recipe: Recipe, paths: list[FloatArray], origins: Sequence[Origin]) -> Scored:
    """The recipe with the mean over the origins, later ones with more weight, of the mean error over the starts."""
    means = np.stack(
        [step_errors(path, origin.truth).mean(axis=0) for path, origin in zip(paths, origins, strict=True)]
    )
    weights, tied = _weights(origins), samples_repeat(origins)
    smallest = np.array([max(1e-16, origin.resolution / (2 * len(origin.truth))) for origin in origins])
    curve = weights @ means if tied else np.exp(weights @ np.log(np.maximum(means, smallest[:, None])))
    return Scored(recipe, paths, np.asarray(curve), tied)


def _weights(origins: Sequence[Origin]) -> FloatArray:
    """Weights of the origins, (origins,), which sum to one."""
    weights = _RECENT ** np.arange(len(origins))
    return np.asarray(weights / weights.sum())


def evidence(candidate: Scored, rule: Scored, origins: Sequence[Origin]) -> float:
    """By how many standard errors of the difference a candidate errs less than one of the simplest rules.

    Only steps before the candidate's error exceeds 0.4 standard deviations are compared, if there are any: a chaotic
    system is forecast no better by any model after them.
    """
    if candidate is rule:
        return 0.0
    steps = _accurate_steps(candidate) or len(candidate.curve)

    def errors(scored: Scored) -> list[FloatArray]:
        pairs = zip(scored.paths, origins, strict=True)
        return [step_errors(path, origin.truth)[:, :steps].mean(axis=1) for path, origin in pairs]

    horizons = sum(origin.horizons for origin in origins)
    mean, error = log_ratio(errors(candidate), errors(rule), _weights(origins), horizons)
    return -mean / error


def _accurate_steps(candidate: Scored) -> int:
    """Number of steps before the error of a candidate exceeds that of an accurate forecast."""
    late = np.flatnonzero(candidate.curve > _ACCURATE)
    return int(late[0]) if len(late) else len(candidate.curve)


def mean_of(
    parts: Sequence[Scored], origins: Sequence[Origin], simplest: Scored | None = None, share: float = 0.0
) -> Scored:
    """The interquartile mean of several candidates from their forecasts, with the weights of :func:`step_weights`.

    A quarter of the weight is left out among the lowest forecasts of every sample, and among the highest: one model
    that goes astray then moves the mean little.
    """
    weights = step_weights(parts, simplest, share)
    found = [np.stack([part.paths[i] for part in parts]) for i in range(len(origins))]
    paths = [weighted_mean(some, weights, _TRIMMED) for some in found]

    def fit(pieces: Sequence[FloatArray], outputs: int) -> PathModel | None:
        fitted = [part.recipe.fit(pieces, outputs) for part in parts]
        known = [(model, weight) for model, weight in zip(fitted, weights, strict=True) if model is not None]
        if not known:
            return None
        shares = np.stack([weight for _, weight in known])
        return Mean(tuple(model for model, _ in known), shares / shares.sum(axis=0), _TRIMMED)

    label = f"the mean of {len(parts)} models ({'; '.join(part.recipe.label for part in parts)})"
    return _scored(Recipe("mean", label, fit), paths, origins)


def step_weights(parts: Sequence[Scored], simplest: Scored | None = None, share: float = 0.0) -> FloatArray:
    r"""Weights of a mean of candidates at every step ahead, shape (candidates, steps), which sum to one at each step.

    They are inverse to the squares of the errors around the step: with :math:`e_{mk}` the mean error of candidate
    :math:`m` at step :math:`k`,

    .. math:: w_{mk} \propto \hat e_{mk}^{-2}, \qquad
              \hat e_{mk} = \text{mean of } e_{mj} \text{ over } k / 1.5 \le j \le 1.5\,k.

    A candidate that is accurate for a few steps has its weight there, and one that is only good late has it late. The
    weight of ``simplest``, where it is one of them, is ``share`` at least while its error is up to 1.25 times the
    smallest; this least weight falls to zero at 1.75 times.
    """
    errors = np.stack([_around_step(part.curve) for part in parts])
    relative = errors / errors.min(axis=0)
    inverse = relative**-2.0
    weights = np.asarray(inverse / inverse.sum(axis=0))
    for place, part in enumerate(parts):
        if part is simplest:
            least = share * np.clip((_LARGEST_ERROR - relative[place]) / _LESS_WEIGHT, 0.0, 1.0)
            raised = weights[place] < least
            weights[:, raised] *= (1.0 - least[raised]) / (1.0 - weights[place, raised])
            weights[place, raised] = least[raised]
    return weights


def _around_step(curve: FloatArray) -> FloatArray:
    """Mean of errors (steps,) over the steps within a factor of 1.5 of each, at least 1e-12, shape (steps,)."""
    steps = np.arange(1, len(curve) + 1)
    first = np.searchsorted(steps, steps / _FACTOR)
    last = np.searchsorted(steps, steps * _FACTOR, side="right")
    # An arithmetic mean: where samples tie, an error that is zero by chance does not decide about the steps around it.
    return np.array([max(float(curve[a:b].mean()), 1e-12) for a, b in zip(first, last, strict=True)])


_FACTOR = 1.5
"""Steps whose errors count for the weights at a step: those that are 1.5 times earlier to 1.5 times later. The error at
one step alone is that of few forecasts."""
_MEMBERS = 7
"""Kinds in the mean of the best at most: a mean of unlike models errs less on new data than most of them."""
_TRIMMED = 0.25
"""Share of the weight that is left out on either side: the interquartile mean."""
_NEAR, _WIDER = 1.2, 1.5
"""Typical error of a kind in the mean at most, relative to the smallest: 1.2 plus 1.5 over the horizons held out.

The fewer horizons a comparison holds, the more the smallest error is luck, and the more kinds are worth a mean.
"""
_CLEARLY, _SAFER = 0.95, 0.3
"""Ratio of the smallest typical error to that of the mean below which the single model is selected: 0.95, less 0.3 over
the horizons held out."""
_LARGEST_SHARE, _TOLERATED = 0.5, 1.5
"""The best of the simplest rules has a weight of at least 1 over the horizons held out, or 0.5 where that is less, in
the mean, unless its typical error is more than 1.5 times the smallest and that difference is beyond its standard error:
weights that few forecasts suggest are mostly luck."""
_LARGEST_ERROR, _LESS_WEIGHT = 1.75, 0.5
"""Error at a step, relative to the smallest, from which on there is no least weight, as at the early steps of a chaotic
system; and the range below it over which the least weight falls, so that forecasts do not jump from step to step."""
_FAR_BETTER = 0.1
"""Ratio of the typical error of the family to that of the simplest rules below which nothing else is tried: where it is
a half, an ARIMA of a smooth season may be better still."""
_ACCURATE, _MUCH_BETTER, _BETTER = 0.4, 0.5, 0.8
"""Error, in standard deviations, up to which a forecast is accurate; and the ratios of the typical error of the family,
over its accurate steps, to that of the simplest rules and to that of every other simple kind below which it is a model
of the dynamics: later steps of chaos tell nothing."""


@dataclass(frozen=True)
class Comparison:
    """Candidates by their typical error over the rolling origins, best first, and how they were compared.

    Attributes
    ----------
    scored
        The best candidate of each kind and the means of the best, by typical error.
    kept
        The selected one.
    linear_error
        Typical error of the best TD-DMD of the family; None where it was not compared.
    horizon
        Steps of the forecasts.
    starts
        Number of forecasts.
    seasons
        Seasons in samples.
    """

    scored: tuple[Scored, ...]
    kept: Scored
    linear_error: float | None
    horizon: int
    starts: int
    seasons: tuple[int, ...]

    @property
    def errors(self) -> dict[str, float]:
        """Smallest typical error of each kind, smallest first."""
        return {kind: self.error_of(kind) or 0.0 for kind in dict.fromkeys(s.recipe.kind for s in self.scored)}

    def error_of(self, kind: str) -> float | None:
        """Typical error of the best candidate of a kind; None where there is none."""
        return next((s.error for s in self.scored if s.recipe.kind == kind), None)


def compare(
    family: Sequence[Recipe],
    recipes: Sequence[Recipe],
    origins: Sequence[Origin],
    seasons: tuple[int, ...],
    may_continue: Callable[[], bool],
) -> Comparison | None:
    """Comparison of the models of the family, the selected one first, with simple recipes; None where none forecasts.

    Where the selected model of the family is ten times as accurate as the simplest rules it is selected without a
    further search: the record is that of a deterministic system, and a mean with simple models would lose accuracy. So
    it is where it is twice as accurate over its accurate steps, no simple kind is nearly as accurate there, and none is
    accurate at more steps. Otherwise errors count times the optimism of their recipe.
    """
    rules = [recipe for recipe in recipes if recipe.kind in RULES]
    scored = [found for recipe in [*family, *rules] if (found := score(recipe, origins)) is not None]
    chosen = next((s for s in scored if family and s.recipe is family[0]), None)
    simple = [s.error for s in scored if s.recipe.kind in RULES]
    clear = chosen is not None and bool(simple) and chosen.error < _FAR_BETTER * min(simple)
    if not clear:
        for recipe in _in_turn([recipe for recipe in recipes if recipe not in rules]):
            if not may_continue():
                break
            found = score(recipe, origins)
            if found is not None:
                scored.append(found)
        clear = chosen is not None and _more_accurate(chosen, best_of_each(scored))
    if not scored:
        return None
    if not clear:
        scored = [replace(s, curve=s.curve * s.recipe.optimism) for s in scored]
    linear = next((s.error for s in scored if family and s.recipe is family[-1]), None)
    best = best_of_each(scored)
    kept = chosen if clear and chosen is not None else best[0]
    if not clear:
        held_out = max(1.0, sum(origin.horizons for origin in origins))
        near = [s for s in best if s.error <= (_NEAR + _WIDER / held_out) * best[0].error][:_MEMBERS]
        rule = next((s for s in best if s.recipe.kind in RULES), None)
        # The median of the last samples is as simple as a rule, and needs no margin.
        simple_best = best[0].recipe.kind in (*RULES, "median")
        sure = rule is None or simple_best or evidence(best[0], rule, origins) > 1.0
        tolerated = rule is not None and (not sure or rule.error <= _TOLERATED * best[0].error)
        if rule is not None and tolerated and all(s is not rule for s in near):
            near.append(rule)
        if len(near) > 1:
            mean = mean_of(near, origins, rule, min(_LARGEST_SHARE, 1.0 / held_out))
            kept = best[0] if sure and best[0].error < (_CLEARLY - _SAFER / held_out) * mean.error else mean
            best = sorted([*best, mean], key=lambda s: s.error)
    starts = sum(len(origin.truth) for origin in origins)
    return Comparison(tuple(best), kept, linear, origins[0].truth.shape[1], starts, seasons)


def in_whole_counts(found: Comparison, origins: Sequence[Origin], zero: FloatArray, unit: FloatArray) -> Comparison:
    """The comparison with the selected simple model forecasting whole counts, unless its typical error grows.

    ``zero`` and ``unit`` are those of :class:`.classical.counts.Counts`.
    """
    kept = found.kept
    if kept.recipe.kind == "family":
        return found

    def fit(pieces: Sequence[FloatArray], outputs: int) -> PathModel | None:
        inner = kept.recipe.fit(pieces, outputs)
        return None if inner is None else Counts(outputs, zero, unit, inner)

    recipe = replace(kept.recipe, label=f"{kept.recipe.label}, rounded to whole counts", fit=fit)
    rounded = _scored(recipe, [medians(path, zero, unit) for path in kept.paths], origins)
    if rounded.error > kept.error:
        return found
    others = [s for s in found.scored if s is not kept]
    return replace(found, scored=tuple(sorted([*others, rounded], key=lambda s: s.error)), kept=rounded)


def _in_turn(recipes: Sequence[Recipe]) -> list[Recipe]:
    """Recipes with the first of every kind before the second of any: a budget that ends early leaves out no kind."""
    seen: dict[tuple[str, bool], int] = {}
    turns = []
    for recipe in recipes:
        kind = (recipe.kind, recipe.label.endswith(LOGARITHM))
        turns.append(seen.get(kind, 0))
        seen[kind] = turns[-1] + 1
    return [recipes[place] for place in np.argsort(turns, kind="stable")]


def _more_accurate(family: Scored, others: Sequence[Scored]) -> bool:
    """Whether a model of the family forecasts its accurate steps much better than simple kinds do, and no fewer."""
    steps = _accurate_steps(family)
    if steps == 0 or any((s.curve <= _ACCURATE).sum() > (family.curve <= _ACCURATE).sum() for s in others):
        return False
    own = family.error_up_to(steps)
    rules = [s for s in others if s.recipe.kind in RULES]
    kinds = [s for s in others if s.recipe.kind not in (*RULES, "family", "td-dmd")]
    return all(own < _MUCH_BETTER * s.error_up_to(steps) for s in rules) and all(
        own < _BETTER * s.error_up_to(steps) for s in kinds
    )


def best_of_each(scored: Sequence[Scored]) -> list[Scored]:
    """The best candidate of each kind, those in logarithms being kinds of their own, by typical error."""
    seen: dict[tuple[str, bool], Scored] = {}
    for found in sorted(scored, key=lambda s: s.error):
        seen.setdefault((found.recipe.kind, found.recipe.label.endswith(LOGARITHM)), found)
    return list(seen.values())
