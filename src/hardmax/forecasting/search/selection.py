"""Which model is kept: ranked on two folds, bounded by a long bounded rollout, refitted on all data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..rollout import Member, roll
from .readout_search import Candidate, Learner, score_together
from .validation import Fold

_MEMBERS = (3, 6)
_CLEARLY_BETTER = 0.2


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
class Ranking:
    """Finalists by their score over the folds, and behind them the other candidates by that on the first."""

    best: tuple[Finalist, ...]
    rest: tuple[Finalist, ...]

    @property
    def linear(self) -> Finalist:
        """The best plain TD-DMD; there always is one."""
        return next(f for f in self.best if f.is_linear)


@dataclass(frozen=True)
class Selection:
    """The choice, the best linear model beside it, the ranking, and why."""

    chosen: Finalist
    linear: Finalist
    ranking: tuple[Finalist, ...]
    bounded: bool
    rejected: int
    all_checked: bool = True
    """Whether there was time to look for a model with bounded rollouts."""


class FoldScores:
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


def rank(
    candidates: Sequence[Candidate], folds: Sequence[Fold], outputs: int, seed: int, finalists: int = 40
) -> Ranking:
    """The best candidates and means of the best, by their score over the folds; then all the others."""
    two = FoldScores(folds, outputs, seed)
    ranked = sorted(candidates, key=lambda c: c.score)
    entered = _distinct(ranked, finalists, ridges=3)
    linear = _distinct([c for c in ranked if c.features.is_linear], max(4, finalists // 5), ridges=3)
    pool = {id(c): c for c in (*entered, *linear)}
    singles = two.singles(list(pool.values()))
    apart = _distinct([f.sources[0] for f in singles], max(_MEMBERS))
    means = [two.mean_of(tuple(apart[:count])) for count in _MEMBERS if len(apart) >= count]
    best = tuple(sorted([*singles, *means], key=lambda f: f.score))
    rest = tuple(Finalist((c,), c.score) for c in ranked if id(c) not in pool)
    return Ranking(best, rest)


def select(
    ranking: Ranking, is_bounded: Callable[[Finalist], bool], may_continue: Callable[[], bool] = lambda: True
) -> Selection:
    """The first of the whole list that ``is_bounded``: whose long rollouts keep to the range of the data.

    When the time is over (``may_continue`` says False) TD-DMD is asked next, and no other. Where the choice is clearly worse
    (by 0.2 in score) than TD-DMD, or else than the best of all, these are kept and marked as not bounded.
    """
    linear = ranking.linear
    rejected, all_checked = 0, True
    chosen: Finalist | None = None
    for finalist in (*ranking.best, *ranking.rest):
        if not may_continue():
            all_checked = False
            chosen = linear if is_bounded(linear) else None
            break
        if is_bounded(finalist):
            chosen = finalist
            break
        rejected += 1
    bounded = True
    best = ranking.best[0]
    if chosen is None or linear.score < chosen.score - _CLEARLY_BETTER:
        # Growing or drifting records leave their range by right; what TD-DMD foretells of them is then kept.
        chosen, bounded = linear, False
    elif best.score < chosen.score - _CLEARLY_BETTER:
        # Safety would cost too much: fading leads this one back whenever it leaves the range.
        chosen, bounded = best, False
    return Selection(chosen, linear, ranking.best, bounded, rejected, all_checked)


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
