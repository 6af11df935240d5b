"""Which model is kept: ranked on two folds, guarded by a long bounded rollout, refitted on all data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .guard import STEPS, stays_bounded
from .held_out import Fold
from .protocol import FloatArray
from .rolling import Member, roll
from .search import Candidate, Learner, score_together

_MEMBERS = (3, 6)
_CLEARLY_BETTER = 0.3


@dataclass(frozen=True)
class Finalist:
    """One candidate, or the mean of several, with its score over all folds."""

    sources: tuple[Candidate, ...]
    score: float

    @property
    def label(self) -> str:
        """What it is, in words."""
        if len(self.sources) == 1:
            return self.sources[0].label
        return f"the mean of {len(self.sources)} models, the best of them {self.sources[0].label}"

    @property
    def members(self) -> list[Member]:
        """For rolling out, as fitted on the first fold."""
        return [source.member for source in self.sources]

    @property
    def is_linear(self) -> bool:
        """Whether this is plain TD-DMD."""
        return len(self.sources) == 1 and self.sources[0].features.is_linear


@dataclass(frozen=True)
class Selection:
    """The choice, the best linear model beside it, the ranking, and why."""

    chosen: Finalist
    linear: Finalist
    ranking: tuple[Finalist, ...]
    guarded: bool
    rejected: int


class TwoFolds:
    """Scores of candidates over the folds, from readouts learned on each."""

    def __init__(self, folds: Sequence[Fold], outputs: int, seed: int) -> None:
        self.folds = folds
        self._second = Learner(folds[1].training, outputs, seed) if len(folds) > 1 else None
        self._members: dict[int, Member] = {}

    def singles(self, candidates: Sequence[Candidate]) -> list[Finalist]:
        """Each candidate with its mean score, best first."""
        scores = [[c.score] for c in candidates]
        if self._second is not None:
            self._learn(candidates)
            known = [i for i, c in enumerate(candidates) if id(c) in self._members]
            found = score_together(self.folds[1], [self._members[id(candidates[i])] for i in known])
            for i, score in zip(known, found, strict=True):
                scores[i].append(score)
        finalists = [Finalist((c,), float(np.mean(s))) for c, s in zip(candidates, scores, strict=True)]
        return sorted(finalists, key=lambda f: f.score)

    def mean_of(self, sources: tuple[Candidate, ...]) -> Finalist:
        """Several candidates rolled out together, each already learned by :meth:`singles`."""
        sides = [(self.folds[0], [c.member for c in sources])]
        if all(id(c) in self._members for c in sources):
            sides.append((self.folds[1], [self._members[id(c)] for c in sources]))
        scores = [
            float(fold.score(roll(members, fold.windows, fold.horizon, future=fold.future))[0])
            for fold, members in sides
        ]
        return Finalist(sources, float(np.mean(scores)))

    def _learn(self, candidates: Sequence[Candidate]) -> None:
        together: dict[tuple[int, float], list[Candidate]] = {}
        for candidate in candidates:
            together.setdefault((id(candidate.features), candidate.noise), []).append(candidate)
        for (_, noise), group in together.items():
            ridges = np.array([c.ridge for c in group])
            try:
                solved = self._second.readouts([group[0].features], noise, ridges) if self._second else []
            except np.linalg.LinAlgError:
                continue
            for candidate, readout in zip(group, solved[0] if solved else (), strict=bool(solved)):
                self._members[id(candidate)] = Member(candidate.features, readout[None])


def select(
    candidates: Sequence[Candidate],
    folds: Sequence[Fold],
    outputs: int,
    seed: int,
    bounds: tuple[FloatArray, FloatArray],
    finalists: int = 40,
) -> Selection:
    """The lowest score over the folds among those whose long rollouts stay bounded, over the whole list."""
    two = TwoFolds(folds, outputs, seed)
    ranked = sorted(candidates, key=lambda c: c.score)
    entered = _distinct(ranked, finalists, ridges=3)
    linear_entered = _distinct([c for c in ranked if c.features.is_linear], max(4, finalists // 5), ridges=3)
    pool = {id(c): c for c in (*entered, *linear_entered)}
    singles = two.singles(list(pool.values()))
    ensembles = []
    apart = _distinct([f.sources[0] for f in singles], max(_MEMBERS))
    for count in _MEMBERS:
        if len(apart) >= count:
            ensembles.append(two.mean_of(tuple(apart[:count])))
    ranking = sorted([*singles, *ensembles], key=lambda f: f.score)
    linear = next(f for f in ranking if f.is_linear)
    chosen, rejected = _first_bounded(ranking, folds[0], bounds)
    if chosen is None:
        # No finalist holds: walk on down the whole list, whatever its scores.
        rest = (Finalist((c,), c.score) for c in ranked if id(c) not in pool)
        chosen, more = _first_bounded(rest, folds[0], bounds)
        rejected += more
    guarded = chosen is not None
    if chosen is None or linear.score < chosen.score - _CLEARLY_BETTER:
        # Growing or drifting records leave their range by right; what TD-DMD foretells of them is then kept.
        chosen, guarded = linear, False
    return Selection(chosen, linear, tuple(ranking), guarded, rejected)


def _distinct(candidates: Sequence[Candidate], count: int, ridges: int = 1) -> list[Candidate]:
    """The first ``count``, with at most so many ridges of one model."""
    seen: dict[tuple[str, int, float], int] = {}
    chosen = []
    for candidate in candidates:
        seen[candidate.identity] = seen.get(candidate.identity, 0) + 1
        if seen[candidate.identity] <= ridges:
            chosen.append(candidate)
        if len(chosen) >= count:
            break
    return chosen


def _first_bounded(
    ranking: Iterable[Finalist], fold: Fold, bounds: tuple[FloatArray, FloatArray]
) -> tuple[Finalist | None, int]:
    rejected = 0
    for finalist in ranking:
        if stays_bounded(finalist.members, fold.windows, *bounds, steps=STEPS, future=fold.future):
            return finalist, rejected
        rejected += 1
    return None, rejected
