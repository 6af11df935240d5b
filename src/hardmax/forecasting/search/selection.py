"""Selection of the model: candidates ranked on two folds, the best one with bounded long rollouts selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..rollout import Member, roll
from .readout_search import Candidate, Learner, score_together
from .simple_candidates import Recipe
from .validation import Fold

_MEMBERS = (3, 6)
"""Numbers of best models whose means are candidates too."""
_SIMPLE = 6
"""Polynomials of lags that are ranked over all folds however many other candidates score better on the first."""
_CLEARLY_BETTER = 0.2
"""Difference in score for which TD-DMD is selected though its long rollouts leave the range: errors lower by a factor
of about 1.5. Growing or drifting records do leave their range, and TD-DMD extrapolates them."""
_WORTH, _AT_LEAST = 1.1, 0.02
"""Ratio of scores, and difference beside it, for which boundedness is given up. Scores are about proportional to the
time for which forecasts are accurate. On 27 chaotic systems in four settings, none of them in the study, forecasts were
accurate 2 % longer than with a ratio of 2."""


@dataclass(frozen=True)
class Finalist:
    """One candidate, or the mean of several, with its score over all folds (lower is better)."""

    sources: tuple[Candidate, ...]
    score: float
    recipe: Recipe | None = None
    """The selected model where it is none of the family; the sources are then the best of the family."""

    @property
    def label(self) -> str:
        """Description in words."""
        if self.recipe is not None:
            return self.recipe.label
        if len(self.sources) == 1:
            return self.sources[0].label
        return f"the mean of {len(self.sources)} models, the best of them {self.sources[0].label}"

    @property
    def members(self) -> list[Member]:
        """Members for rollouts, as fitted on the first fold."""
        return [source.member for source in self.sources]

    @property
    def is_linear(self) -> bool:
        """Whether this is TD-DMD."""
        return len(self.sources) == 1 and self.rolls_linearly

    @property
    def rolls_linearly(self) -> bool:
        """Whether this is TD-DMD or the mean of several, so that nothing nonlinear fades out."""
        return self.recipe is None and all(source.features.is_linear for source in self.sources)


@dataclass(frozen=True)
class Ranking:
    """Finalists by their score over the folds, and the other candidates by their score on the first fold."""

    best: tuple[Finalist, ...]
    rest: tuple[Finalist, ...]

    @property
    def linear(self) -> Finalist:
        """The best TD-DMD, which is always among the finalists."""
        return next(f for f in self.best if f.is_linear)

    @property
    def simple(self) -> Finalist | None:
        """The best single polynomial model, whose check for boundedness is cheap; None without any."""
        return next((f for f in self.best if len(f.sources) == 1 and f.sources[0].family == "polynomial"), None)


@dataclass(frozen=True)
class Selection:
    """The selected model, the best linear model, the ranking, and the course of the selection."""

    chosen: Finalist
    linear: Finalist
    ranking: tuple[Finalist, ...]
    bounded: bool
    """Whether long rollouts of the selected model stay within the range of the data."""
    rejected: int
    """Number of models that failed the boundedness check before one passed."""
    all_checked: bool = True
    """Whether there was time to check models until one passed, or all of them."""


class FoldScores:
    """Scores of candidates over the folds, from readouts fitted on each."""

    def __init__(self, folds: Sequence[Fold], outputs: int, seed: int) -> None:
        self.folds = folds
        self._second = Learner(folds[1].training, outputs, seed) if len(folds) > 1 else None
        self._members: dict[int, Member] = {}

    def singles(
        self, candidates: Sequence[Candidate], first: Sequence[Candidate], may_continue: Callable[[], bool]
    ) -> list[Finalist]:
        """Each candidate with its mean score, best first.

        Candidates are scored in the order given, all of one feature map and noise together, after those of the models
        of ``first``, until ``may_continue`` returns False; those that remain are left out.
        """
        together: dict[tuple[int, float], list[Candidate]] = {}
        for candidate in (*first, *candidates):
            together.setdefault((id(candidate.features), candidate.noise), [])
        for candidate in candidates:
            together[id(candidate.features), candidate.noise].append(candidate)
        needed = {(id(c.features), c.noise) for c in first}
        finalists: list[Finalist] = []
        for key, group in together.items():
            if key not in needed and not may_continue():
                break
            finalists += self._scored(group)
        return sorted(finalists, key=lambda f: f.score)

    def _scored(self, group: Sequence[Candidate]) -> list[Finalist]:
        """Candidates of one feature map and noise with their mean scores."""
        scores = [[c.score] for c in group]
        if self._second is not None:
            self._learn(group)
            known = [i for i, c in enumerate(group) if id(c) in self._members]
            found = score_together(self.folds[1], [self._members[id(group[i])] for i in known])
            for i, score in zip(known, found, strict=True):
                scores[i] += [] if score is None else [score]
        return [Finalist((c,), float(np.mean(s))) for c, s in zip(group, scores, strict=True)]

    def mean_of(self, sources: tuple[Candidate, ...]) -> Finalist:
        """Mean of several candidates, each already fitted by :meth:`singles`."""
        sides = [(self.folds[0], [c.member for c in sources])]
        if all(id(c) in self._members for c in sources):
            sides.append((self.folds[1], [self._members[id(c)] for c in sources]))
        scores = [
            float(fold.score(roll(members, fold.windows, fold.horizon, future=fold.future))[0])
            for fold, members in sides
        ]
        return Finalist(sources, float(np.mean(scores)))

    def _learn(self, group: Sequence[Candidate]) -> None:
        ridges = np.array([c.ridge for c in group])
        try:
            solved = self._second.readouts([group[0].features], group[0].noise, ridges) if self._second else []
        except np.linalg.LinAlgError:
            return
        for candidate, readout in zip(group, solved[0] if solved else (), strict=bool(solved)):
            self._members[id(candidate)] = Member(candidate.features, readout[None])


def rank(
    candidates: Sequence[Candidate],
    folds: Sequence[Fold],
    outputs: int,
    seed: int,
    finalists: int = 40,
    may_continue: Callable[[], bool] = lambda: True,
) -> Ranking:
    """Ranking of the best candidates and of means of the best over the folds, followed by all others.

    The best TD-DMD and the best polynomials of lags (NG-RC) are always ranked, and before all others; further ones
    until ``may_continue`` returns False.
    """
    two = FoldScores(folds, outputs, seed)
    ranked = sorted(candidates, key=lambda c: c.score)
    entered = _distinct(ranked, finalists, ridges=3)
    linear = _distinct([c for c in ranked if c.features.is_linear], max(4, finalists // 5), ridges=3)
    simple = _distinct([c for c in ranked if c.features.is_polynomial_of_lags], _SIMPLE, ridges=3)
    pool = {id(c): c for c in (*entered, *linear, *simple)}
    singles = two.singles(list(pool.values()), [*linear[:1], *simple[:1]], may_continue)
    distinct = _distinct([f.sources[0] for f in singles], max(_MEMBERS))
    means = [two.mean_of(tuple(distinct[:count])) for count in _MEMBERS if len(distinct) >= count and may_continue()]
    best = tuple(sorted([*singles, *means], key=lambda f: f.score))
    scored = {id(f.sources[0]) for f in singles}
    rest = tuple(Finalist((c,), c.score) for c in ranked if id(c) not in scored)
    return Ranking(best, rest)


def select(
    ranking: Ranking,
    is_bounded: Callable[[Finalist], bool],
    score_as_used: Callable[[Finalist], float],
    may_continue: Callable[[], bool] = lambda: True,
) -> Selection:
    """Selection of the first model of the ranking for which ``is_bounded`` returns True.

    The best of all is selected, and marked as not bounded, where it is better than that by a tenth, by the scores of
    ``score_as_used``: those of rollouts that fade outside the range, as forecasts do. TD-DMD is selected, and marked
    likewise, where no model is bounded, or where it is better than the bounded one by 0.2 in score. When
    ``may_continue`` returns False, the best single polynomial model is checked next, then TD-DMD, and no other model.
    """
    linear, best = ranking.linear, ranking.best[0]
    all_checked = True
    refused: set[int] = set()
    chosen: Finalist | None = None
    best_as_used = 0.0
    for finalist in (*ranking.best, *ranking.rest):
        if refused and _gains(best_as_used, finalist.score):
            # The best would be selected before this one and those that follow.
            break
        if not may_continue():
            all_checked = False
            last = [f for f in (ranking.simple, linear) if f is not None and id(f) not in refused]
            chosen = next((f for f in sorted(last, key=lambda f: f.score) if is_bounded(f)), None)
            break
        if is_bounded(finalist):
            chosen = finalist
            break
        if not refused:
            best_as_used = score_as_used(best)
        refused.add(id(finalist))
    bounded = True
    if chosen is None or linear.score < chosen.score - _CLEARLY_BETTER:
        chosen, bounded = linear, False
    if best is not chosen and _gains(score_as_used(best), score_as_used(chosen)):
        chosen, bounded = best, False
    return Selection(chosen, linear, ranking.best, bounded, len(refused), all_checked)


def _gains(score: float, other: float) -> bool:
    """Whether a score is so much better than another one that boundedness is given up for it."""
    return score < other + (_WORTH - 1.0) * min(other, 0.0) - _AT_LEAST


def select_family(
    ranking: Ranking,
    family: str,
    is_bounded: Callable[[Finalist], bool],
    may_continue: Callable[[], bool] = lambda: True,
) -> Selection | None:
    """Selection of the first model of one family whose rollouts stay bounded, else of its best; None without any."""
    own = [
        finalist
        for finalist in (*ranking.best, *ranking.rest)
        if all(source.family == family for source in finalist.sources)
    ]
    if not own:
        return None
    rejected = 0
    for finalist in own:
        if not may_continue():
            return Selection(own[0], ranking.linear, tuple(own), False, rejected, False)
        if is_bounded(finalist):
            return Selection(finalist, ranking.linear, tuple(own), True, rejected)
        rejected += 1
    return Selection(own[0], ranking.linear, tuple(own), False, rejected)


def _distinct(candidates: Sequence[Candidate], count: int, ridges: int = 1) -> list[Candidate]:
    """The first ``count`` candidates, with at most ``ridges`` of one model."""
    seen: dict[tuple[str, int, float], int] = {}
    chosen = []
    for candidate in candidates:
        seen[candidate.identity] = seen.get(candidate.identity, 0) + 1
        if seen[candidate.identity] <= ridges:
            chosen.append(candidate)
        if len(chosen) >= count:
            break
    return chosen
