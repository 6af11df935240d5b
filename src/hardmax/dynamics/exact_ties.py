"""Ties in exact arithmetic: those that last for ever, and their limits.

The conditions and formulas are those of :mod:`hardmax.dynamics.ties`, with equality in place of a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flint import fmpq

from ..attention.rational import Rational, Rows, as_float

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
