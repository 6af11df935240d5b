"""The hardmax process in exact rational arithmetic: no tolerance, no rounding, for small numbers of tokens.

Plain loops over rationals, written apart from :mod:`hardmax.dynamics.process` so that each checks the other. The
conditions and formulas of lasting ties are those of :mod:`hardmax.dynamics.ties`, with equality in place of a
tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from flint import fmpq, fmpq_mat

from ..attention.rational import Rational, Rows, as_float, attended_sets, rational, rational_rows, require_small
from ..shapes import PerToken, Square, Tokens

Point = list[Rational]

# Layers over which a tie is followed; a tie that is not decided by then is examined again at a later layer.
_MOST_LAYERS_AHEAD = 500


def dot(left: Sequence[Rational], right: Sequence[Rational]) -> Rational:
    """Scalar product of two points."""
    return sum((a * b for a, b in zip(left, right, strict=True)), fmpq(0))


def minus(left: Sequence[Rational], right: Sequence[Rational]) -> Point:
    """Difference of two points."""
    return [a - b for a, b in zip(left, right, strict=True)]


def mean(members: Sequence[int], points: Rows, weights: Sequence[Rational]) -> Point:
    """Weighted mean of some of the points."""
    total = sum((weights[j] for j in members), fmpq(0))
    return [sum((weights[j] * points[j][k] for j in members), fmpq(0)) / total for k in range(len(points[0]))]


@dataclass(frozen=True)
class Scene:
    """State of one layer on which the conditions for a tie depend."""

    points: Rows
    goals: Rows
    """Target of each decided token; for an active one its position."""
    weights: list[Rational]
    decided: list[bool]
    straight: list[bool]
    leads: list[bool]
    chosen: dict[int, list[int]]
    """Tokens that each active token with a non-zero query listens to."""
    query: Callable[[Point], Point]
    alpha: Rational


class ExactTie:
    """Tokens that all listen to the same set ``chosen`` of two or more."""

    def __init__(self, scene: Scene, chosen: list[int], tokens: list[int]) -> None:
        self.chosen, self.tokens, self._scene = chosen, tokens, scene
        decided = [j for j in chosen if scene.decided[j]]
        active = [j for j in chosen if not scene.decided[j]]
        self.leaders = [j for j in decided if scene.leads[j]]
        self.joint = not decided
        now = mean(decided or active, scene.points, scene.weights)
        self.target = mean(decided or active, scene.goals, scene.weights)
        gap = minus(now, self.target)
        heavy = sum((scene.weights[j] for j in active), fmpq(0))
        share = heavy / sum((scene.weights[j] for j in chosen), fmpq(0))
        self.rate = (1 + scene.alpha * share) / (1 + scene.alpha)
        self.slow = self.resonant = [fmpq(0)] * len(now)
        if active:
            middle, odds = mean(active, scene.points, scene.weights), (1 - share) / share
            self.slow = [u + odds * e for u, e in zip(minus(middle, self.target), gap, strict=True)]
        else:
            self.resonant = [scene.alpha * e for e in gap]
        self.alike = all(scene.chosen.get(j) == chosen for j in active) and all(scene.straight[j] for j in decided)
        self.stands = self.alike and bool(self.joint or self.leaders) and self._reaches(now, decided)

    def _reaches(self, now: Point, decided: list[int]) -> bool:
        """Whether all members and their targets attain the largest score for every intermediate mean."""
        scene = self._scene
        aims = [scene.goals[j] for j in decided]
        face = [scene.points[j] for j in self.chosen] + aims
        return all(self._attain(scene.points[i], aims) for i in self.tokens) and all(
            self._attain(middle, face) for middle in (now, self.target)
        )

    def _attain(self, point: Point, places: Rows) -> bool:
        query = self._scene.query(point)
        best = max(dot(query, z) for z in self._scene.points)
        return all(dot(query, place) == best for place in places)

    def outlasts(self, goals: Rows, drifts: Rows) -> bool:
        """Whether no token ever leaves, joins or exceeds this tie, if every token moves as given."""
        scene = self._scene
        member = self.chosen[0]
        steps = [minus(z, t) for z, t in zip(scene.points, goals, strict=True)]
        for i in self.tokens:
            still, moving, drifting = (scene.query(part[i]) for part in (goals, steps, drifts))
            for j in range(len(goals)):
                t, d, g = (minus(part[j], part[member]) for part in (goals, steps, drifts))
                terms = [
                    dot(still, t),
                    dot(still, g) + dot(drifting, t),
                    dot(still, d) + dot(moving, t),
                    dot(drifting, g),
                    dot(moving, g) + dot(drifting, d),
                    dot(moving, d),
                ]
                lasts = not any(terms) if j in self.chosen else _stays_negative(terms, 1 / (1 + scene.alpha))
                if not lasts:
                    return False
        return True


def _stays_negative(terms: list[Rational], s: Rational) -> bool:
    """Whether the sum of ``terms`` times (1, m s^m, s^m, m^2 s^2m, m s^2m, s^2m) is negative for m = 1, 2, …

    The first nonzero term decides in the end, since each weight is of lower order than the one before it. Every ratio
    of a later weight to it falls from m = 2 / log(1/s) on, so once the later terms are outweighed they stay so.
    """
    lead = next((k for k, term in enumerate(terms) if term), None)
    if lead is None or terms[lead] > 0:
        return False
    falling = 2 / math.log1p(as_float(1 / s - 1))
    for m in range(1, _MOST_LAYERS_AHEAD):
        power = s**m
        weights = [fmpq(1), m * power, power, m * m * power**2, m * power**2, power**2]
        if sum((a * w for a, w in zip(terms, weights, strict=True)), fmpq(0)) >= 0:
            return False
        later = sum((abs(a) * w for a, w in zip(terms[lead + 1 :], weights[lead + 1 :], strict=True)), fmpq(0))
        if m > falling and later < -terms[lead] * weights[lead]:
            return True
    return False


def lasting(ties: list[ExactTie], scene: Scene, only_ties_left: bool) -> list[ExactTie]:
    """Ties that last for ever."""
    standing = [tie for tie in ties if tie.stands]
    if len(standing) == len(ties) or not only_ties_left:
        return standing
    if not all(tie.alike and not any(tie.slow) for tie in ties) or not all(scene.straight):
        return standing
    goals = list(scene.goals)
    drifts = [[fmpq(0)] * len(goals[0])] * len(goals)
    for tie in ties:
        for i in tie.tokens:
            goals[i], drifts[i] = tie.target, tie.resonant
    return ties if all(tie.outlasts(goals, drifts) for tie in ties) else standing


@dataclass(frozen=True)
class _Path:
    """Closed form of a decided token; see :mod:`hardmax.dynamics.closed_form` for the formula."""

    start: Point
    target: Point
    layer: int
    rate: Rational
    slow: Point | None = None
    resonant: Point | None = None

    @property
    def straight(self) -> bool:
        return self.slow is None and self.resonant is None

    def at(self, layer: int, shrink: Rational) -> Point:
        m = layer - self.layer
        if m == 0 or (self.start == self.target and self.straight):
            return self.start
        share = shrink**m
        place = [t + share * (a - t) for a, t in zip(self.start, self.target, strict=True)]
        if self.slow is not None:
            extra = self.rate**m - share
            place = [x + extra * p for x, p in zip(place, self.slow, strict=True)]
        if self.resonant is not None:
            place = [x + m * share * q for x, q in zip(place, self.resonant, strict=True)]
        return place


class ExactProcess:
    """Distinct points under the hardmax map, exactly; see :class:`hardmax.dynamics.process.HardmaxProcess`."""

    def __init__(self, points: Tokens, weights: PerToken | list[Rational], A: Square, alpha: float | Fraction) -> None:
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
        self.ties: dict[int, list[int]] = {}
        self.kinds: dict[int, str] = {}
        """Argument by which each decided point is decided: leader, follower, tie, last or zero."""
        self.attends_to: dict[int, list[int]] = {}
        """Points that each decided point attends to from its decision on, ascending."""
        self._weights = weights if isinstance(weights, list) else [rational(w) for w in weights.tolist()]
        self._A, self._alpha = rational_rows(A), rational(alpha)
        self._shrink = 1 / (1 + self._alpha)
        self._place = rational_rows(points)
        self._path: dict[int, _Path] = {}
        self._chosen: dict[int, list[int]] = {}
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
        return _rounded(self.exact_limit())

    def exact_limit(self) -> Rows:
        """Limits as rationals; for an undecided token its position."""
        return [self._goal(i) for i in range(len(self._place))]

    def exact_positions(self, layer: int) -> Rows:
        """All positions as rationals."""
        return [
            self._path[i].at(layer, self._shrink) if i in self._path else place for i, place in enumerate(self._place)
        ]

    def move(self) -> None:
        """Move the active tokens by one layer, then decide those whose future is known."""
        points = self.exact_positions(self.layer)
        for i in self.active.tolist():
            goal = mean(self._chosen[i], points, self._weights)
            self._place[i] = [(z + self._alpha * g) * self._shrink for z, g in zip(points[i], goal, strict=True)]
        self.layer += 1
        # An active token may rest for one layer while the tokens that it listens to still move.
        self.settled = all(self._place[i] == points[i] for i in self.active.tolist()) and all(
            path.start == path.target for path in self._path.values()
        )
        self._decide()

    def _goal(self, token: int) -> Point:
        return self._path[token].target if token in self._path else self._place[token]

    def _decide(self) -> None:
        points = self.exact_positions(self.layer)
        active = self.active.tolist()
        self._chosen = dict(zip(active, attended_sets(self._A, points, active), strict=True))
        # A single point at zero listens to itself alone; otherwise a zero token listens to every token.
        zero = [i for i in active if len(points) > 1 and not any(self._query(points[i]))]
        sets = {i: c for i, c in self._chosen.items() if i not in set(zero)}
        for i, chosen in sets.items():
            if chosen == [i]:
                self.emerged_at[i] = self.layer
                self._settle("leader", i, points[i], points[i], i)
        for i, chosen in sets.items():
            if len(chosen) == 1 and chosen != [i] and self._is_at_rest(chosen[0]):
                self._settle("follower", i, points[i], points[chosen[0]], chosen[0])
        self._decide_ties(sets, points)
        waiting = [i for i in active if i not in self._path]
        if waiting and set(waiting) <= set(zero):
            self._decide_zero(waiting, points)
        self.active = torch.tensor([i for i in active if i not in self._path], dtype=torch.int64)

    def _is_at_rest(self, token: int) -> bool:
        return bool(self.emerged_at[token] >= 0) and self._path[token].start == self._path[token].target

    def _query(self, point: Point) -> list[Rational]:
        return list((fmpq_mat(self._A) * fmpq_mat([[z] for z in point])).entries())

    def _decide_ties(self, sets: dict[int, list[int]], points: Rows) -> None:
        count = len(points)
        tied = {i: chosen for i, chosen in sets.items() if len(chosen) > 1}
        scene = Scene(
            points=points,
            goals=[self._goal(i) for i in range(count)],
            weights=self._weights,
            decided=[i in self._path for i in range(count)],
            straight=[i not in self._path or self._path[i].straight for i in range(count)],
            leads=(self.emerged_at >= 0).tolist(),
            chosen=sets,
            query=self._query,
            alpha=self._alpha,
        )
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, chosen in tied.items():
            groups.setdefault(tuple(chosen), []).append(i)
        ties = [ExactTie(scene, list(chosen), tokens) for chosen, tokens in groups.items()]
        only_ties_left = all(scene.decided[i] or i in tied for i in self._chosen)
        for tie in lasting(ties, scene, only_ties_left):
            leaders = tie.chosen[:1] if tie.joint else self._leaders_behind(tie.chosen)
            if tie.joint:  # they meet at their mean, as do tokens that listen to exactly this set
                self.emerged_at[leaders[0]] = self.layer
            for i in tie.tokens:
                kind = "tie" if tie.stands else "last"
                self._settle(kind, i, points[i], tie.target, leaders[0], tie.rate, tie.slow, tie.resonant)
                if len(leaders) > 1:
                    self.ties[i] = leaders

    def _leaders_behind(self, members: list[int]) -> list[int]:
        """Leaders among these tokens and leaders that they follow, ascending."""
        leaders = {int(self.follows[j]) for j in members if self.follows[j] >= 0}
        return sorted(leaders.union(*(self.ties[j] for j in members if j in self.ties)))

    def _decide_zero(self, waiting: list[int], points: Rows) -> None:
        """Settle zero tokens, which listen to every token, if the mean of all is and remains zero."""
        every = list(range(len(points)))
        goals = [[fmpq(0)] * len(points[0]) if i in waiting else self._goal(i) for i in every]
        if any(mean(every, points, self._weights)) or any(mean(every, goals, self._weights)):
            return
        if self._bends_move_the_mean():
            return
        leaders = torch.nonzero(self.emerged_at >= 0)[:, 0].tolist()
        if not leaders:  # there is no leader, so the zero tokens lead jointly
            leaders = waiting[:1]
            self.emerged_at[leaders] = self.layer
        for i in waiting:
            self._settle("zero", i, points[i], [fmpq(0)] * len(points[0]), leaders[0])
            if len(leaders) > 1:
                self.ties[i] = leaders

    def _bends_move_the_mean(self) -> bool:
        """Whether the terms of paths that are not straight have a weighted sum that is not zero, for some rate."""
        sums: dict[Rational | None, Point] = {}
        for i, path in self._path.items():
            since = self.layer - path.layer
            # At the present layer a slow term has decayed by its rate, a resonant one by that of straight paths.
            for key, rate, bend in ((path.rate, path.rate, path.slow), (None, self._shrink, path.resonant)):
                if bend is not None:
                    factor = self._weights[i] * rate**since
                    total = sums.get(key, [fmpq(0)] * len(bend))
                    sums[key] = [a + factor * c for a, c in zip(total, bend, strict=True)]
        return any(any(total) for total in sums.values())

    def _settle(
        self,
        kind: str,
        token: int,
        start: Point,
        target: Point,
        leader: int,
        rate: Rational | None = None,
        slow: Point | None = None,
        resonant: Point | None = None,
    ) -> None:
        rate = self._shrink if rate is None else rate
        bends = [term if term is not None and any(term) else None for term in (slow, resonant)]
        self._path[token] = _Path(start, target, self.layer, rate, *bends)
        self.follows[token] = leader
        self.decided_at[token] = self.layer
        self.kinds[token], self.attends_to[token] = kind, self._chosen[token]


def _rounded(rows: Rows) -> Tokens:
    return torch.tensor([[as_float(x) for x in row] for row in rows], dtype=torch.float64)
