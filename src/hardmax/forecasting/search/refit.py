"""Refit of the best candidates on all data, and the boundedness check of their long rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..classical.rules import Rollout
from ..data.delay_windows import lags
from ..error_growth import ErrorGrowth, amplification, measure_growth
from ..features.feature_map import FeatureMap
from ..protocol import FloatArray
from ..rollout import Fade, Member, PathModel, Predictor, roll
from .held_out import HeldOut
from .readout_search import Candidate, Learner
from .selection import Finalist, Selection
from .simple_candidates import Recipe
from .validation import Fold

STEPS = 1200
"""Steps of the boundedness check at most."""
STARTS = 12
"""Windows from which the boundedness check starts."""
_ABOVE_THE_END = 1.03
"""Excess that no step may reach, relative to the end of the fade, where fading rollouts are clipped."""
_RARELY = 0.01
"""Share of steps that may lie outside the range."""
_FIRST = (40, 200)
"""Lengths of the first, cheap checks."""
_DIFFERENCE, _DIFFERENCES = 0.1, (1e-10, 1e-3)
"""Size of the differences whose growth is followed: a tenth of the last held-out error, so that neither rounding nor
the size of the attractor decides, within these limits."""
_SETTLED, _FURTHER = 4, 3
"""Differences have a quarter of the held-out steps to turn into directions that grow, and are followed for three times
as many."""


def stays_bounded(
    members: Sequence[Member],
    windows: FloatArray,
    fade: Fade,
    *,
    steps: int = STEPS,
    future: FloatArray | None = None,
) -> bool:
    """Whether rollouts from a few windows stay within the range of the data.

    They may leave it (by more than the excess at which the fade begins, 15 % of the half-range unless the record has
    grown beyond its range itself) in one step of a hundred, and never exceed the end of the fade by 3 %. With inputs
    the rollout is as long as the inputs are known.
    """
    # Most unbounded rollouts diverge early, so that a short check makes the long one unnecessary.
    return all(
        _bounded_for(some, members, windows, fade, future) for some in sorted({*(min(steps, f) for f in _FIRST), steps})
    )


def _bounded_for(
    steps: int, members: Sequence[Member], windows: FloatArray, fade: Fade, future: FloatArray | None
) -> bool:
    """Whether rollouts of this many steps from a few of the windows stay within the range of the data."""
    chosen = np.unique(np.linspace(0, len(windows) - 1, STARTS).astype(int))
    windows, future = windows[chosen], None if future is None else future[chosen]
    if future is not None:
        steps = min(steps, future.shape[1])
    excess = fade.excess(roll(members, windows, steps, future=future, fade=fade)[0])
    return bool((excess < _ABOVE_THE_END * fade.end).all() and (excess > fade.begin).mean() <= _RARELY)


_PLACES = 12
"""Windows of the whole data from which refitted models are checked."""
FALLBACK_NOISE = 0.1
"""Window noise of the fallback, in standard deviations: it shrinks the readout, so that rollouts return."""
FALLBACK_RIDGE = FALLBACK_NOISE**2
"""Ridge of the fallback, as strong as its noise."""


_OPTIMISM = 1.2
"""Factor by which the errors of the family, next to those of an ARIMA, are larger on new samples than in the comparison
with simple models (1.17 in the mean over the development series): its structure was selected with the whole record."""


class Refit:
    """Readouts of candidates fitted to all data, each computed once."""

    def __init__(self, trajectories: Sequence[FloatArray], outputs: int, seed: int, fold: Fold) -> None:
        self._learner = Learner(trajectories, outputs, seed)
        self._outputs = outputs
        self._seed = seed
        self._fold = fold
        self._bounds = data_range(trajectories, outputs)
        self._members: dict[int, Member] = {}
        self._windows, self._future = _start_windows(trajectories, outputs, fold)
        self._steps = int(np.clip(2 * max(len(z) for z in trajectories), 100, STEPS))
        self._limits = fade_limits(trajectories, outputs)
        self._fade = Fade(*self._bounds, self._fallback(trajectories[0].shape[1]), *self._limits)

    def member(self, candidate: Candidate) -> Member:
        """The candidate with its readout fitted to all data."""
        key = id(candidate)
        if key not in self._members:
            self._members[key] = refit_member(self._learner, candidate)
        return self._members[key]

    def is_bounded(self, finalist: Finalist, may_continue: Callable[[], bool] = lambda: True) -> bool:
        """Whether long rollouts stay bounded, both as fitted on the first fold and as refitted on all data.

        Short rollouts of both are checked before long ones of either. When ``may_continue`` returns False in between,
        boundedness is not established.
        """
        fold, fade = self._fold, self._fade_for(finalist)
        short = min(max(_FIRST), self._steps)
        if not stays_bounded(finalist.members, fold.windows, fade, steps=short, future=fold.future):
            return False
        try:
            members = [self.member(source) for source in finalist.sources]
        except np.linalg.LinAlgError:
            return False
        if not stays_bounded(members, self._windows, fade, steps=short, future=self._future):
            return False
        if short == self._steps:
            return True
        return all(
            may_continue() and _bounded_for(self._steps, some, windows, fade, future)
            for some, windows, future in (
                (finalist.members, fold.windows, fold.future),
                (members, self._windows, self._future),
            )
        )

    def score(self, finalist: Finalist) -> float:
        """Score on the first fold of rollouts that fade outside the range, as forecasts do; lower is better."""
        fold, fade = self._fold, self._fade_for(finalist)
        return float(fold.score(roll(finalist.members, fold.windows, fold.horizon, future=fold.future, fade=fade))[0])

    def validation_errors(
        self, finalist: Finalist, folds: Sequence[HeldOut], *, fitted_on_first: bool = True
    ) -> ErrorGrowth:
        """Error growth of the finalist over held-out rollouts, fitted on the training part of each fold.

        The training part of the first fold is the one that the candidates were fitted on, unless ``fitted_on_first`` is
        False.
        """
        fade, paths, truths, apart = self._fade_for(finalist), [], [], []
        for index, held in enumerate(folds):
            fold, members = held.fold, finalist.members
            if finalist.recipe is not None:
                found = finalist.recipe.fit(fold.training, self._outputs)
                if found is not None and found.window <= fold.windows.shape[1]:
                    paths.append(found.paths(fold.windows, fold.horizon, fold.future))
                    truths.append(fold.truth)
                    apart.append(held.apart)
                continue
            if index or not fitted_on_first:
                learner = Learner(fold.training, self._outputs, self._seed)
                try:
                    members = [refit_member(learner, source) for source in finalist.sources]
                except np.linalg.LinAlgError:
                    continue
            paths.append(roll(members, fold.windows, fold.horizon, future=fold.future, fade=fade)[0])
            truths.append(fold.truth)
            apart.append(held.apart)
        growth = measure_growth(paths, truths, apart)
        return growth if finalist.recipe is not None else replace(growth, amplified=self._amplified(finalist, growth))

    def _amplified(self, finalist: Finalist, growth: ErrorGrowth) -> FloatArray | None:
        """Growth of small differences between rollouts of the refitted model, beyond the held-out steps."""
        if self._future is not None:
            return None  # inputs are known for the held-out steps only
        known = len(growth.per_step)
        try:
            members = [self.member(source) for source in finalist.sources]
        except np.linalg.LinAlgError:
            return None
        size = float(np.clip(_DIFFERENCE * np.sqrt((growth.per_step[-1] ** 2).mean()), *_DIFFERENCES))
        generator = np.random.default_rng([self._seed, 11])
        shifted = self._windows + size * generator.standard_normal(self._windows.shape)
        settled = max(1, known // _SETTLED)
        steps = settled + min(STEPS, _FURTHER * known)
        paths = roll(members, np.concatenate([self._windows, shifted]), steps, fade=self._fade_for(finalist))[0]
        one, other = np.split(paths, 2)
        return amplification(one - other, settled)

    def _fade_for(self, finalist: Finalist) -> Fade:
        if finalist.rolls_linearly or finalist.recipe is not None:
            return Fade(*self._bounds, None, *self._limits)
        return self._fade

    def recipe(self, finalist: Finalist, kind: str) -> Recipe:
        """Recipe that refits a finalist of the family to any pieces of the record."""
        fade = self._fade_for(finalist)

        def fit(pieces: Sequence[FloatArray], outputs: int) -> PathModel | None:
            learner = Learner(pieces, outputs, self._seed)
            needed = max(source.features.window for source in finalist.sources)
            if sum(max(0, len(z) - needed) for z in pieces) < 2:
                return None
            return Rollout(tuple(refit_member(learner, source) for source in finalist.sources), fade)

        return Recipe(kind, finalist.label, fit, _OPTIMISM)

    def _fallback(self, channels: int) -> Member:
        """Linear map of the latest sample, fitted with much noise, so that its rollouts return from far outside."""
        features = FeatureMap(channels, lags(channels, 1))
        solved = self._learner.readouts([features], FALLBACK_NOISE, np.array([FALLBACK_RIDGE]))
        return Member(features, solved[0])

    def path(self, selection: Selection) -> PathModel | None:
        """The selected model fitted to all data where it is none of the family, else None."""
        recipe = selection.chosen.recipe
        return None if recipe is None else recipe.fit(self._learner.pieces, self._outputs)

    def predictor(
        self, selection: Selection, errors: ErrorGrowth, attentive: Candidate | None, path: PathModel | None = None
    ) -> Predictor:
        """Predictor of the selected model, with the best linear model, the fade, the error growth and attention."""
        members = tuple(self.member(source) for source in selection.chosen.sources)
        return Predictor(
            self._outputs,
            members,
            self.member(selection.linear.sources[0]),
            self._fade_for(selection.chosen),
            errors,
            None if attentive is None else self.member(attentive),
            path,
        )


def refit_member(learner: Learner, candidate: Candidate) -> Member:
    """The candidate with its readout fitted to the data of the learner."""
    solved = learner.readouts([candidate.features], candidate.noise, np.array([candidate.ridge]))
    return Member(candidate.features, solved[0])


def _start_windows(
    trajectories: Sequence[FloatArray], outputs: int, fold: Fold
) -> tuple[FloatArray, FloatArray | None]:
    """Windows spread over all data, shape (starts, length, channels), and the inputs after them (or None)."""
    length, ahead = fold.windows.shape[1], fold.horizon
    room = [z for z in trajectories if len(z) >= length + ahead]
    share = -(-_PLACES // max(1, len(room)))
    ends = [(z, int(k)) for z in room for k in np.unique(np.linspace(length, len(z) - ahead, share).astype(int))]
    if not ends:
        return fold.windows, fold.future
    if trajectories[0].shape[1] == outputs:
        # Forecasts start from the last window, after which no inputs are known.
        return np.stack([z[k - length : k] for z, k in [*ends, (trajectories[-1], len(trajectories[-1]))]]), None
    windows = np.stack([z[k - length : k] for z, k in ends])
    return windows, np.stack([z[k : k + ahead, outputs:] for z, k in ends])


_GROWTH_CUTS = (0.5, 0.65, 0.8)
"""Shares of a record at which its range is compared with that of the samples that follow."""
_LONG_ENOUGH = 1000
"""Samples from which on the growth of the range is measured: of few samples it is chance, or a trend."""
_WIDEST = 1.75
"""Growth of the range at most: the fade then ends at 2.8 half-ranges, below the 3 from which forecasts diverge."""


def range_growth(trajectories: Sequence[FloatArray], outputs: int) -> float:
    """Excess that samples reach beyond the range of the samples before them, at least 1 and at most 1.75.

    It is the largest over three cuts of each record of at least 1,000 samples, each followed by a fifth of the record.
    """
    found = []
    for z in trajectories:
        if len(z) < _LONG_ENOUGH:
            continue
        ends = [(int(cut * len(z)), int((cut + 0.2) * len(z))) for cut in _GROWTH_CUTS]
        ranges = [Fade(*data_range([z[:cut]], outputs)) for cut, _ in ends]
        found += [float(r.excess(z[cut:end, :outputs]).max()) for r, (cut, end) in zip(ranges, ends, strict=True)]
    return float(np.clip(max(found, default=1.0), 1.0, _WIDEST))


def fade_limits(trajectories: Sequence[FloatArray], outputs: int) -> tuple[float, float]:
    """Excess at which the fade begins and ends: 1.15 and 1.6, times the growth of the range of the record."""
    growth = range_growth(trajectories, outputs)
    return Fade.begin * growth, Fade.end * growth


def data_range(trajectories: Sequence[FloatArray], outputs: int) -> tuple[FloatArray, FloatArray]:
    """Middle and half-range of the data per output, each of shape (outputs,)."""
    data = np.concatenate([z[:, :outputs] for z in trajectories])
    low, high = data.min(axis=0), data.max(axis=0)
    return (low + high) / 2, np.maximum((high - low) / 2, 1e-12)
