r"""Masks, heads and steps in exact rational arithmetic: tokens run until their futures are known in closed form.

The facts are those of ``docs/devdocs/attention-family.rst``, written here as plain loops over rationals and apart from
:mod:`hardmax.dynamics.family.process`, so that each checks the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from flint import fmpq, fmpq_mat

from ...attention.rational import Rational, Rows, as_float, rational, rational_rows, require_small
from ...shapes import PerToken, Tokens
from ..exact import Point, dot, mean, minus
from ..leadership import Undecided, leaders_of_groups
from .ties import is_examined_together

# The end of a segment is placed a little further on, so that rounding of the infinite product does not matter.
_SAFELY = 1 - 2.0**-40
# Rounds of listening after which the mean that a token listens to must be constant.
_MOST_ROUNDS = 6

Sets = tuple[tuple[int, ...], ...]  # the tokens that a token listens to, per head


@dataclass(frozen=True)
class _Future:
    """Closed form of a decided token: see ``docs/devdocs/attention-family.rst``."""

    start: Point
    target: Point
    layer: int
    share: Rational
    slow: Point | None = None
    resonant: tuple[Point, ...] | None = None

    @property
    def straight(self) -> bool:
        return self.slow is None and self.resonant is None

    @property
    def rests(self) -> bool:
        return self.straight and self.start == self.target


@dataclass(frozen=True)
class _Tie:
    """Limit and closed form of a token that listens to the same sets for ever."""

    token: int
    sets: Sets
    target: Point
    share: Rational
    slow: Point
    resonant: Point


class ExactFamilyProcess:
    """Tokens under hardmax attention with a mask, several heads and steps, exactly."""

    def __init__(
        self,
        points: Tokens,
        weights: PerToken,
        matrices: Sequence[Rows],
        shares: Sequence[Rational],
        alpha_at: Callable[[int], float | Fraction],
        remaining: Callable[[int], float],
        *,
        causal: bool,
        itself_alone: bool = False,
    ) -> None:
        count = points.shape[0]
        require_small(count)
        self.layer = 0
        self.settled = False
        self.stuck = self.recurring = False  # no step is too small for a rational
        self.certain = True
        self.active = torch.arange(count)
        self.decided_at = torch.full((count,), -1)
        self.emerged_at = torch.full((count,), -1)
        self.follows = torch.full((count,), -1)
        self.choices = torch.full((len(matrices), count), -1)
        self.reasons = torch.zeros(count, dtype=torch.int64)
        self.ties: dict[int, list[int]] = {}
        self._weights = [rational(w) for w in weights.tolist()]
        self._A = [fmpq_mat(A) for A in matrices]
        total = sum(shares, fmpq(0))
        self._shares = [share / total for share in shares]  # shares that are floats need not sum to one exactly
        self._alpha = [rational(alpha_at(0))]
        self._shrink = [fmpq(1)]
        self._alpha_at, self._remaining, self._causal, self._alone = alpha_at, remaining, causal, itself_alone
        self._place = rational_rows(points)
        self._future: dict[int, _Future] = {}
        self._means: dict[int, Point] = {}
        self._decide()

    @property
    def done(self) -> bool:
        """Whether every token's future is known."""
        return len(self.active) == 0

    def positions(self, layer: int | None = None) -> Tokens:
        """Positions at this layer, or at any later one once every token is decided, rounded to float64."""
        return _rounded(self.exact_positions(self.layer if layer is None else layer))

    def limit(self) -> Tokens:
        """Limit of every token, rounded to float64; for an undecided one its position."""
        return _rounded([self._limit(i) for i in range(len(self._place))])

    def exact_positions(self, layer: int) -> Rows:
        """All positions as rationals."""
        return [self._at(self._future[i], layer) if i in self._future else z for i, z in enumerate(self._place)]

    def move(self) -> None:
        """Move the active tokens by one layer, then decide those whose future is known."""
        points, alpha = self.exact_positions(self.layer), self._step(self.layer)
        for i in self.active.tolist():
            self._place[i] = [(z + alpha * m) / (1 + alpha) for z, m in zip(points[i], self._means[i], strict=True)]
        self.layer += 1
        still = all(self._place[i] == points[i] for i in self.active.tolist())
        self.settled = still and all(future.rests for future in self._future.values())
        self._decide()

    def _step(self, layer: int) -> Rational:
        while len(self._alpha) <= layer:
            self._alpha.append(rational(self._alpha_at(len(self._alpha))))
        return self._alpha[layer]

    def _shrinkage(self, start: int, stop: int) -> Rational:
        while len(self._shrink) <= stop:
            self._shrink.append(self._shrink[-1] / (1 + self._step(len(self._shrink) - 1)))
        return self._shrink[stop] / self._shrink[start]

    def _at(self, future: _Future, layer: int) -> Point:
        if future.rests or layer == future.layer:
            return future.start
        fast = self._shrinkage(future.layer, layer)
        place = [t + fast * (a - t) for a, t in zip(future.start, future.target, strict=True)]
        steps = [self._step(u) for u in range(future.layer, layer)]
        if future.slow is not None:
            rate = fmpq(1)
            for alpha in steps:
                rate *= (1 + alpha * future.share) / (1 + alpha)
            place = [x + (rate - fast) * p for x, p in zip(place, future.slow, strict=True)]
        if future.resonant is not None:
            sums = [fmpq(1)] + [fmpq(0)] * len(future.resonant)  # elementary symmetric polynomials of the steps
            for alpha in steps:
                for k in range(len(future.resonant), 0, -1):
                    sums[k] += alpha * sums[k - 1]
            for weight, term in zip(sums[1:], future.resonant, strict=True):
                place = _plus(place, fast * weight, term)
        return place

    def _limit(self, token: int) -> Point:
        if token not in self._future:
            return self._place[token]
        future = self._future[token]
        short = rational(self._remaining(future.layer))
        return [t + short * (a - t) for a, t in zip(future.start, future.target, strict=True)]

    def _sight(self, token: int) -> int:
        """Number of tokens, from the first on, that a token sees."""
        return token + 1 if self._causal else len(self._place)

    def _decide(self) -> None:
        points, active = self.exact_positions(self.layer), self.active.tolist()
        chosen = self._chosen(active, points)
        self._means = {i: self._mean(sets, points) for i, sets in chosen.items()}
        for i in active:
            if all(points[k] == points[i] for members in chosen[i] for k in members):
                self._fix(i, chosen[i], points)
        sets = {i: self._reduced(chosen[i], points) for i in active if i not in self._future}
        ties = {i: tie for i in sets if (tie := self._tie(i, sets, points)) is not None}
        while doubtful := [
            i for i, tie in ties.items() if any(k in sets and k not in ties for c in tie.sets for k in c)
        ]:
            for i in doubtful:  # a member that is not decided with it may leave the tie
                del ties[i]
                self.reasons[i] = Undecided.TIED
        behind = {i: [self._leaders_behind(members) for members in tie.sets] for i, tie in ties.items()}
        for i, tie in ties.items():
            self._settle(tie, behind[i], points)
        if is_examined_together(self.layer) and self._remaining(self.layer) == 0:
            self._settle_together({i: self._reduced(chosen[i], points) for i in sets if i not in ties}, points)
        self.active = torch.tensor([i for i in active if i not in self._future], dtype=torch.int64)

    def _chosen(self, active: list[int], points: Rows) -> dict[int, Sets]:
        if not active:
            return {}
        columns = fmpq_mat(points).transpose()
        asking = fmpq_mat([points[i] for i in active])
        scores = [(asking * A.transpose() * columns).tolist() for A in self._A]
        chosen: dict[int, Sets] = {}
        for row, i in enumerate(active):
            if self._alone:
                chosen[i] = ((i,),) * len(scores)
                continue
            seen = [table[row][: self._sight(i)] for table in scores]
            tops = [max(values) for values in seen]
            chosen[i] = tuple(
                tuple(k for k, value in enumerate(values) if value == top)
                for values, top in zip(seen, tops, strict=True)
            )
        return chosen

    def _mean(self, sets: Sets, points: Rows) -> Point:
        means = [mean(members, points, self._weights) for members in sets]
        return [
            sum((w * m[k] for w, m in zip(self._shares, means, strict=True)), fmpq(0)) for k in range(len(means[0]))
        ]

    def _rests(self, token: int) -> bool:
        return token in self._future and self._future[token].rests

    def _fix(self, token: int, chosen: Sets, points: Rows) -> None:
        self._future[token] = _Future(points[token], points[token], self.layer, fmpq(0))
        self.decided_at[token] = self.layer
        self.reasons[token] = 0
        for h, members in enumerate(chosen):
            first = next(k for k in members if self._rests(k))  # the token itself, if no other
            self.choices[h, token] = token if first == token else self.follows[first]
        self.follows[token] = self.choices[0, token]
        if self.follows[token] == token:
            self.emerged_at[token] = self.layer

    def _reduced(self, sets: Sets, points: Rows) -> Sets:
        """The sets, with one token at rest in place of a set that lies at its position."""
        made = []
        for members in sets:
            resting = [k for k in members if self._rests(k)]
            single = all(points[k] == points[members[0]] for k in members)
            made.append((resting[0],) if single and resting else members)
        return tuple(made)

    def _tie(self, i: int, all_sets: dict[int, Sets], points: Rows) -> _Tie | None:
        """The future of a token, if it listens to the same sets for ever; otherwise None, with a reason."""
        sets = all_sets[i]
        spread = any(points[k] != points[members[0]] for members in sets for k in members)
        self.reasons[i] = Undecided.TIED if spread else Undecided.MOVING
        members = {k for some in sets for k in some}
        active = {k for k in members if k not in self._future}
        if any(all_sets[k] != sets for k in active):
            return None
        if not all(self._future[k].straight for k in members - active):
            return None
        zero = [fmpq(0)] * len(points[0])
        share, moving, now, later = fmpq(0), zero, zero, zero
        for w, some in zip(self._shares, sets, strict=True):
            total = sum((self._weights[k] for k in some), fmpq(0))
            for k in some:
                part = w * self._weights[k] / total
                if k in active:
                    share, moving = share + part, _plus(moving, part, points[k])
                else:
                    now, later = _plus(now, part, points[k]), _plus(later, part, self._future[k].target)
        moving = [x / share for x in moving] if share else zero
        rest = 1 - share
        now, later = ([x / rest for x in v] if rest else moving for v in (now, later))
        gap = minus(now, later)
        slow = minus(moving, later) if share else zero
        if share and rest:
            slow = _plus(slow, rest / share, gap)
        resonant = zero if share else gap
        if (any(slow) or any(resonant)) and self._remaining(self.layer) > 0:
            return None  # the limit of such a token has no closed form where the steps have a finite sum
        ends = [now, later]
        if not share and not any(gap):  # steps of a finite sum end before the target
            short = rational(self._remaining(self.layer) * _SAFELY)
            ends = [_plus(later, short, minus(points[i], later))]
        directions = [points[i], *([moving] if share else []), *(ends if rest else [])]
        failing = self._failing(i, sets, directions, points)
        if failing is not None:
            if not spread and not any(gap) and not active:
                several = len(sets) > 1
                self.reasons[i] = Undecided.OUTSIDE_CONE + failing if several else Undecided.NOT_LEADING_IN_SIGHT
            return None
        return _Tie(i, sets, later, share, slow, resonant)

    def _failing(self, i: int, sets: Sets, directions: list[Point], points: Rows) -> int | None:
        """First head in which a member or its target misses the largest score in some direction; None if none does."""
        seen = points[: self._sight(i)]
        for h, members in enumerate(sets):
            face = [points[k] for k in members] + [self._future[k].target for k in members if k in self._future]
            if any(k not in self._future for k in members):
                face += directions[1:]  # active members move towards these
            for direction in directions:
                query = list((self._A[h] * fmpq_mat([[x] for x in direction])).entries())
                best = max(dot(query, z) for z in seen)
                if any(dot(query, y) != best for y in face):
                    return h
        return None

    def _settle(self, tie: _Tie, behind: list[list[int]], points: Rows) -> None:
        i = tie.token
        slow, resonant = tie.slow if any(tie.slow) else None, (tie.resonant,) if any(tie.resonant) else None
        everyone = sorted({k for some in behind for k in some})
        if not everyone:  # the members listen to one another alone and meet at their mean
            everyone = [min(k for members in tie.sets for k in members)]
            self.emerged_at[everyone[0]] = self.layer
        self._future[i] = _Future(points[i], tie.target, self.layer, tie.share, slow, resonant)
        self.decided_at[i] = self.layer
        self.reasons[i] = 0
        for h, some in enumerate(behind):
            self.choices[h, i] = some[0] if some else everyone[0]
        self.follows[i] = self.choices[0, i]
        if len(behind[0]) > 1:
            self.ties[i] = behind[0]

    def _settle_together(self, sets: dict[int, Sets], points: Rows) -> None:
        """Settle active tokens that keep their sets if all that they see do."""
        every = range(len(points))
        goals = [self._future[k].target if k in self._future else points[k] for k in every]
        clouds = [points]
        while True:  # means that tokens listen to after 1, 2, … rounds of listening, until these are constant
            spoken = clouds[-1]
            following = [self._mean(sets[k], spoken) if k in sets else goals[k] for k in every]
            restless = {k for k in sets if following[k] != spoken[k]}
            if (len(clouds) > 1 and not restless) or len(clouds) > _MOST_ROUNDS:
                break
            clouds.append(following)
        known = [k not in restless and (k in sets or self._future[k].straight) for k in every]
        accepted = []
        for i in sorted(sets):
            if all(known[: self._sight(i)]) and self._keeps(i, sets[i], clouds):
                accepted.append(i)
            elif self._causal:
                break
            else:
                return  # without a mask every token sees it
        for i in accepted:
            terms = tuple(minus(cloud[i], clouds[-1][i]) for cloud in clouds[1:-1])
            resonant = terms if any(any(term) for term in terms) else None
            self._future[i] = _Future(points[i], clouds[-1][i], self.layer, fmpq(0), None, resonant)
            self.decided_at[i] = self.layer
            self.reasons[i] = 0
        self._name(accepted, sets)

    def _keeps(self, i: int, sets: Sets, clouds: list[Rows]) -> bool:
        """Whether the members attain the largest score in every round of listening, for the query of every round."""
        for A, members in zip(self._A, sets, strict=True):
            for asked in clouds:
                query = list((A * fmpq_mat([[x] for x in asked[i]])).entries())
                for cloud in clouds:
                    best = max(dot(query, y) for y in cloud[: self._sight(i)])
                    if any(dot(query, cloud[k]) != best for k in members):
                        return False
        return True

    def _name(self, tokens: list[int], sets: dict[int, Sets]) -> None:
        """Name the leaders of tokens that were settled together; the lowest member leads a group without a leader."""
        for i, leaders, first in leaders_of_groups(tokens, sets, self.follows, self.ties):
            if first is not None:
                self.emerged_at[first] = self.layer
            for h, some in enumerate(leaders):
                self.choices[h, i] = some[0]
            self.follows[i] = self.choices[0, i]
            if len(leaders[0]) > 1:
                self.ties[i] = leaders[0]

    def _leaders_behind(self, members: Sequence[int]) -> list[int]:
        """Leaders among these tokens and leaders that they follow, ascending."""
        decided = [k for k in members if k in self._future]
        leaders = {int(self.follows[k]) for k in decided}
        return sorted(leaders.union(*(self.ties[k] for k in decided if k in self.ties)))


def _plus(left: Point, factor: Rational, right: Point) -> Point:
    return [a + factor * b for a, b in zip(left, right, strict=True)]


def _rounded(rows: Rows) -> Tokens:
    return torch.tensor([[as_float(x) for x in row] for row in rows], dtype=torch.float64)
