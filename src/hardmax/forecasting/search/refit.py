"""Refit of the best candidates on all data, and the boundedness check of their long rollouts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.delay_windows import lags
from ..error_growth import ErrorGrowth, measure_growth
from ..features.feature_map import FeatureMap
from ..protocol import FloatArray
from ..rollout import Fade, Member, Predictor, roll
from .held_out import HeldOut
from .readout_search import Candidate, Learner
from .selection import Finalist, Selection
from .validation import Fold

STEPS = 1200
"""Steps of the boundedness check at most."""
STARTS = 12
"""Windows from which the boundedness check starts."""
_OUTSIDE = 1.15
"""Excess from which on a step counts as outside the range; there the nonlinear part begins to fade."""
_LIMIT = 1.65
"""Excess that no step may reach: just above the end of the fade (1.6), where fading rollouts are clipped."""
_RARELY = 0.01
"""Share of steps that may lie outside the range."""
_FIRST = (40, 200)
"""Lengths of the first, cheap checks."""


def stays_bounded(
    members: Sequence[Member],
    windows: FloatArray,
    fade: Fade,
    *,
    steps: int = STEPS,
    future: FloatArray | None = None,
) -> bool:
    """Whether rollouts from a few windows stay within the range of the data.

    They may leave it (by more than 15 % of the half-range) in one step of a hundred, and never exceed 1.65
    half-ranges. With inputs the rollout is as long as the inputs are known.
    """
    chosen = np.unique(np.linspace(0, len(windows) - 1, STARTS).astype(int))
    if future is not None:
        steps = min(steps, future.shape[1])
    windows, future = windows[chosen], None if future is None else future[chosen]
    for some in sorted({min(steps, first) for first in (*_FIRST, steps)}):
        # Most unbounded rollouts diverge early, so that a short check makes the long one unnecessary.
        excess = fade.excess(roll(members, windows, some, future=future, fade=fade)[0])
        if not (excess < _LIMIT).all() or (excess > _OUTSIDE).mean() > _RARELY:
            return False
    return True


_PLACES = 12
"""Windows of the whole data from which refitted models are checked."""
FALLBACK_NOISE = 0.1
"""Window noise of the fallback, in standard deviations: it shrinks the readout, so that rollouts return."""
FALLBACK_RIDGE = FALLBACK_NOISE**2
"""Ridge of the fallback, as strong as its noise."""


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
        self._fade = Fade(*self._bounds, self._fallback(trajectories[0].shape[1]))

    def member(self, candidate: Candidate) -> Member:
        """The candidate with its readout fitted to all data."""
        key = id(candidate)
        if key not in self._members:
            self._members[key] = refit_member(self._learner, candidate)
        return self._members[key]

    def is_bounded(self, finalist: Finalist) -> bool:
        """Whether long rollouts stay bounded, both as fitted on the first fold and as refitted on all data."""
        fold = self._fold
        fade = self._fade_for(finalist)
        if not stays_bounded(finalist.members, fold.windows, fade, steps=self._steps, future=fold.future):
            return False
        try:
            members = [self.member(source) for source in finalist.sources]
        except np.linalg.LinAlgError:
            return False
        return stays_bounded(members, self._windows, fade, steps=self._steps, future=self._future)

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
            if index or not fitted_on_first:
                learner = Learner(fold.training, self._outputs, self._seed)
                try:
                    members = [refit_member(learner, source) for source in finalist.sources]
                except np.linalg.LinAlgError:
                    continue
            paths.append(roll(members, fold.windows, fold.horizon, future=fold.future, fade=fade)[0])
            truths.append(fold.truth)
            apart.append(held.apart)
        return measure_growth(paths, truths, apart)

    def _fade_for(self, finalist: Finalist) -> Fade:
        return Fade(*self._bounds) if finalist.is_linear else self._fade

    def _fallback(self, channels: int) -> Member:
        """Linear map of the latest sample, fitted with much noise, so that its rollouts return from far outside."""
        features = FeatureMap(channels, lags(channels, 1))
        solved = self._learner.readouts([features], FALLBACK_NOISE, np.array([FALLBACK_RIDGE]))
        return Member(features, solved[0])

    def predictor(self, selection: Selection, errors: ErrorGrowth, attentive: Candidate | None) -> Predictor:
        """Predictor of the selected model, with the best linear model, the fade, the error growth and attention."""
        members = tuple(self.member(source) for source in selection.chosen.sources)
        return Predictor(
            self._outputs,
            members,
            self.member(selection.linear.sources[0]),
            self._fade_for(selection.chosen),
            errors,
            None if attentive is None else self.member(attentive),
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


def data_range(trajectories: Sequence[FloatArray], outputs: int) -> tuple[FloatArray, FloatArray]:
    """Middle and half-range of the data per output, each of shape (outputs,)."""
    data = np.concatenate([z[:, :outputs] for z in trajectories])
    low, high = data.min(axis=0), data.max(axis=0)
    return (low + high) / 2, np.maximum((high - low) / 2, 1e-12)
