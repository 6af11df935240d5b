"""Held-out rollouts from a rolling origin, from which the growth of errors is measured.

Models are compared on the folds of :mod:`hardmax.forecasting.search.validation`. Errors are measured on more data: each
fold here ends its training data at another time, and its rollouts start in the stretch up to the next of these times.
They continue beyond it, to the end of the record, because none of that was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..protocol import FloatArray
from ..rollout import PathModel
from .validation import Fold, make_folds, subsampled

_CUTS = (0.8, 0.9, 0.7, 0.6, 0.5)
"""Shares of a record at which training ends; the first as in the first validation fold, whose models are reused."""
_CUTS_OF_LONG = (0.8, 0.9)
"""The same for long records: they have enough later starts, and models fitted to much less would be worse."""
_LONG = 500
"""Samples from which on a record counts as long. With these numbers, intervals held their share on real series of 30 to
1,000 samples and on chaotic systems."""
_STARTS, _STARTS_OF_LONG = 24, 48
"""Starts per fold."""
_LONGEST = 1 / 3
"""Share of a record that a rollout covers at most, so that several of them do not overlap."""
_SHORTEST_TRAINING = 8
"""Samples beyond the window without which no fold is made."""


@dataclass(frozen=True)
class HeldOut:
    """A fold whose rollouts forecast unseen data, and the number of samples from one start to the next.

    True samples are NaN where the record has ended.
    """

    fold: Fold
    apart: float


def folds_of(
    trajectories: Sequence[FloatArray], outputs: int, context: int, horizon: int, path: PathModel | None
) -> list[HeldOut]:
    """Folds for the errors of a model of the family with windows of ``context`` samples, or of a simple model.

    The window of a simple model, as fitted to all data, may be as long as the record; fitted to less it is shorter.
    """
    if path is None:
        return held_out_folds(trajectories, outputs, context, horizon)
    return held_out_folds(trajectories, outputs, max(context, path.window), horizon, shrinks=True)


def held_out_folds(
    trajectories: Sequence[FloatArray], outputs: int, context: int, horizon: int, *, shrinks: bool = False
) -> list[HeldOut]:
    """Folds with training up to several times, the first of them that of the first validation fold.

    With three or more records whole ones are held out, as in the selection of models. Windows have ``context`` samples;
    with ``shrinks`` no more than the longest training part.
    """
    if len(trajectories) >= 3:
        return [_spread_out(fold) for fold in make_folds(trajectories, outputs, context, horizon, _STARTS_OF_LONG)]
    shortest = min(len(z) for z in trajectories)
    ahead = max(2, min(horizon, int(_LONGEST * shortest)))
    cuts, starts = (_CUTS_OF_LONG, _STARTS_OF_LONG) if shortest >= _LONG else (_CUTS, _STARTS)
    folds: list[HeldOut] = []
    for cut in cuts:
        until = min((share for share in cuts if share > cut), default=1.0)
        length = _room(trajectories, cut, context) if shrinks else context
        found = _fold(trajectories, outputs, length, ahead, cut, until, starts, 0 if shrinks else _SHORTEST_TRAINING)
        if found is None and not folds:
            # The window is too long for a rolling origin: the validation part alone.
            return [_spread_out(make_folds(trajectories, outputs, context, horizon, _STARTS_OF_LONG)[0])]
        if found is not None:
            folds.append(found)
    return folds


def _room(trajectories: Sequence[FloatArray], cut: float, context: int) -> int:
    """Samples in the windows of a simple model, which depend on the lengths of the records it is fitted to."""
    # The two samples are what the simplest model needs.
    longest = max(2, *(_end(len(z), cut) for z in trajectories))
    # Fitted to the longer of two records alone, its window may be longer than when fitted to both.
    return min(context, longest) if len(trajectories) == 1 else longest


def _spread_out(fold: Fold) -> HeldOut:
    """The fold, with its starts counted as spread over as many samples as its rollouts have steps."""
    return HeldOut(fold, fold.horizon / len(fold.windows))


def _fold(
    trajectories: Sequence[FloatArray],
    outputs: int,
    context: int,
    ahead: int,
    cut: float,
    until: float,
    starts: int,
    beyond: int,
) -> HeldOut | None:
    """Fold with training up to the share ``cut`` of each record and starts up to the share ``until``, or None.

    Records whose training part does not hold ``beyond`` samples more than a window are left out.
    """
    training, windows, after, covered = [], [], [], 0
    for z in trajectories:
        first = _end(len(z), cut)
        last = len(z) if until >= 1.0 else max(first + 1, _end(len(z), until))
        if first < context + beyond:
            continue
        training.append(z[:first])
        covered += last - first
        for start in np.unique(np.linspace(first, last - 1, min(starts, last - first)).astype(int)):
            known = z[start : start + ahead]
            padded = np.full((ahead, z.shape[1]), np.nan)
            padded[: len(known)] = known
            # Inputs are needed at every step; those after the end only lead to errors that are not counted.
            padded[len(known) :, outputs:] = known[-1, outputs:]
            windows.append(z[start - context : start])
            after.append(padded)
    if not windows:
        return None
    rows = np.stack(after)
    future = rows[:, :, outputs:] if rows.shape[2] > outputs else None
    fold = Fold(subsampled(training, context), np.stack(windows), rows[:, :, :outputs], future)
    return HeldOut(fold, covered / len(windows))


def _end(samples: int, share: float) -> int:
    """Number of training samples, with at least 4 left, as in the validation folds."""
    return samples - max(4, int((1.0 - share) * samples + 1e-9))
