"""Ties in exact arithmetic: which last for ever, and where they lead.

The conditions and formulas are those of :mod:`hardmax.dynamics.standing_ties` and :mod:`hardmax.dynamics.last_ties`,
with equality in place of a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flint import fmpq

from ..attention.rational import Rational, Rows

Point = list[Rational]


def dot(left: Sequence[Rational], right: Sequence[Rational]) -> Rational:
    """The scalar product."""
    return sum((a * b for a, b in zip(left, right, strict=True)), fmpq(0))


def minus(left: Sequence[Rational], right: Sequence[Rational]) -> Point:
    """The difference of two points."""
    return [a - b for a, b in zip(left, right, strict=True)]


def mean(members: Sequence[int], points: Rows, weights: Sequence[Rational]) -> Point:
    """The weighted mean of some of the points."""
    total = sum((weights[j] for j in members), fmpq(0))
    return [sum((weights[j] * points[j][k] for j in members), fmpq(0)) / total for k in range(len(points[0]))]


@dataclass(frozen=True)
class Scene:
    """All that a tie is judged by, at one layer."""

    points: Rows
    goals: Rows
    """Where each decided token goes; an active one is given where it is."""
    weights: list[Rational]
    decided: list[bool]
    straight: list[bool]
    leads: list[bool]
    chosen: dict[int, list[int]]
    """For each active token, the tokens it listens to."""
    query: Callable[[Point], Point]
    alpha: Rational


class ExactTie:
    """The tokens ``who`` that all listen to the same set ``chosen`` of two or more."""

    def __init__(self, scene: Scene, chosen: list[int], who: list[int]) -> None:
        self.chosen, self.who, self._scene = chosen, who, scene
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
        self.straight = not any(self.slow) and not any(self.resonant)

        alike = all(scene.chosen[j] == chosen for j in active) and all(scene.straight[j] for j in decided)
        face = [scene.points[j] for j in chosen] + [scene.goals[j] for j in decided]
        aims = [scene.goals[j] for j in decided]
        reached = [self._level(scene.points[i], [scene.points[chosen[0]], *aims])[0] for i in who]
        levels = [self._level(middle, face) for middle in (now, self.target)]
        self.level = alike and bool(self.joint or self.leaders) and all(reached) and all(even for even, _ in levels)
        self.stands = self.level and all(top for _, top in levels)

    def _level(self, asker: Point, places: Rows) -> tuple[bool, bool]:
        """Whether all places score the same for the asker, and whether that is the best of all points."""
        query = self._scene.query(asker)
        values = [dot(query, place) for place in places]
        return min(values) == max(values), max(values) >= max(dot(query, z) for z in self._scene.points)

    def outlasts(self, goals: Rows) -> bool:
        """Whether nobody ever rises to this tie, if every token goes straight to its goal."""
        scene = self._scene
        heard = goals[self.chosen[0]]
        middle = scene.query(self.target)
        members = set(self.chosen)
        for i in self.who:
            rest = scene.query(minus(scene.points[i], self.target))
            for j, (point, goal) in enumerate(zip(scene.points, goals, strict=True)):
                if j in members:
                    continue
                step, ahead = minus(point, goal), minus(goal, heard)
                constant, quadratic = dot(middle, ahead), dot(rest, step)
                linear = dot(middle, step) + dot(rest, ahead)
                if constant > 0:
                    return False
                # A concave parabola may rise above zero between its ends.
                inside = quadratic < 0 and 0 < linear < -2 * quadratic
                if inside and constant - linear**2 / (4 * quadratic) >= 0:
                    return False
        return True


def lasting(ties: list[ExactTie], scene: Scene, only_ties_left: bool) -> list[ExactTie]:
    """The ties that last for ever."""
    standing = [tie for tie in ties if tie.stands]
    if len(standing) == len(ties) or not only_ties_left:
        return standing
    if not all(tie.level and tie.straight for tie in ties) or not all(scene.straight):
        return standing
    goals = list(scene.goals)
    for tie in ties:
        for i in tie.who:
            goals[i] = tie.target
    return ties if all(tie.outlasts(goals) for tie in ties) else standing
