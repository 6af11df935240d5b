"""The same process in exact rational arithmetic: no tolerance, no rounding, for small numbers of tokens.

Plain loops over rationals, written apart from :mod:`hardmax.dynamics.process` so that each checks the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import torch
from flint import fmpq, fmpq_mat

from ..attention.rational import Rational, Rows, as_float, favourites, rational, rational_rows, require_small
from ..shapes import PerToken, Square, Tokens

Point = list[Rational]


@dataclass(frozen=True)
class _Path:
    """A decided token's future; see :mod:`hardmax.dynamics.closed_form` for the formula."""

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

    def __init__(self, points: Tokens, weights: PerToken, A: Square, alpha: float | Fraction) -> None:
        count = points.shape[0]
        require_small(count)
        self.layer = 0
        self.settled = False
        self.active = torch.arange(count)
        self.decided_at = torch.full((count,), -1)
        self.emerged_at = torch.full((count,), -1)
        self.follows = torch.full((count,), -1)
        self.ties: dict[int, list[int]] = {}
        self._weights = [rational(w) for w in weights.tolist()]
        self._A, self._alpha = rational_rows(A), rational(alpha)
        self._shrink = 1 / (1 + self._alpha)
        self._place = rational_rows(points)
        self._path: dict[int, _Path] = {}
        self._chosen: dict[int, list[int]] = {}
        self._hears_everyone = False
        self._decide()

    @property
    def done(self) -> bool:
        """Whether every token's future is known."""
        return len(self.active) == 0

    def positions(self, layer: int | None = None) -> Tokens:
        """All positions at this layer, or at any later one once everything is decided, rounded to float64."""
        return _rounded(self.exact_positions(self.layer if layer is None else layer))

    def limit(self) -> Tokens:
        """Where every token ends, rounded to float64; an undecided one is given where it is."""
        return _rounded([self._goal(i) for i in range(len(self._place))])

    def exact_positions(self, layer: int) -> Rows:
        """All positions as rationals."""
        return [
            self._path[i].at(layer, self._shrink) if i in self._path else place for i, place in enumerate(self._place)
        ]

    def move(self) -> None:
        """Take the active tokens one layer further, then decide whom that settles."""
        points = self.exact_positions(self.layer)
        for i in self.active.tolist():
            heard = self._mean(self._chosen[i], points)
            self._place[i] = [(z + self._alpha * h) * self._shrink for z, h in zip(points[i], heard, strict=True)]
        self.layer += 1
        rests = all(self._place[i] == points[i] for i in self.active.tolist())
        self._decide()
        # A zero token may rest for a layer while the mean of the others passes through zero.
        self.settled = rests and not self._hears_everyone

    def _goal(self, token: int) -> Point:
        return self._path[token].target if token in self._path else self._place[token]

    def _mean(self, members: list[int], points: Rows) -> Point:
        total = sum((self._weights[j] for j in members), fmpq(0))
        dimension = len(points[0])
        return [sum((self._weights[j] * points[j][k] for j in members), fmpq(0)) / total for k in range(dimension)]

    def _decide(self) -> None:
        points = self.exact_positions(self.layer)
        active = self.active.tolist()
        self._chosen = dict(zip(active, favourites(self._A, points, active), strict=True))
        silent = [i for i in active if not any(self._query(points[i]))]
        self._hears_everyone = bool(silent)
        heard = {i: c for i, c in self._chosen.items() if i not in set(silent)}
        for i, chosen in heard.items():
            if chosen == [i]:
                self.emerged_at[i] = self.layer
                self._settle(i, points[i], points[i], i)
        for i, chosen in heard.items():
            if len(chosen) == 1 and chosen != [i] and self._is_at_rest(chosen[0]):
                self._settle(i, points[i], points[chosen[0]], chosen[0])
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, chosen in heard.items():
            if len(chosen) > 1:
                groups.setdefault(tuple(chosen), []).append(i)
        # Judge all ties by who was decided before any tie was: the order of the groups must not matter.
        standing = [(c, who) for c, who in groups.items() if self._stands(list(c), who, points)]
        undecided = {i for i in active if i not in self._path}
        for chosen_set, who in standing:
            self._settle_tie(list(chosen_set), who, points, undecided)
        waiting = [i for i in active if i not in self._path]
        if waiting and set(waiting) <= set(silent):
            self._decide_silent(waiting, points)
        self.active = torch.tensor([i for i in active if i not in self._path], dtype=torch.int64)

    def _is_at_rest(self, token: int) -> bool:
        return bool(self.emerged_at[token] >= 0) and self._path[token].start == self._path[token].target

    def _query(self, point: Point) -> list[Rational]:
        return list((fmpq_mat(self._A) * fmpq_mat([[z] for z in point])).entries())

    def _stands(self, chosen: list[int], who: list[int], points: Rows) -> bool:
        """Whether the tie between ``chosen`` lasts for ever (conditions of ``standing_ties``)."""
        decided = [j for j in chosen if j in self._path]
        if any(self._chosen[j] != chosen for j in chosen if j not in self._path):
            return False
        if not decided:
            return True
        if not any(self.emerged_at[j] >= 0 for j in decided) or not all(self._path[j].straight for j in decided):
            return False
        goals = [self._path[j].target for j in decided]
        face = [points[j] for j in chosen] + goals
        means = [
            self._mean(decided, points),
            self._mean(decided, [self._goal(i) for i in range(len(points))]),
        ]
        return all(self._attain(points[i], goals, points) for i in who) and all(
            self._attain(mean, face, points) for mean in means
        )

    def _attain(self, asker: Point, places: Rows, points: Rows) -> bool:
        query = self._query(asker)
        best = max(_dot(query, z) for z in points)
        return all(_dot(query, z) == best for z in places)

    def _settle_tie(self, chosen: list[int], who: list[int], points: Rows, undecided: set[int]) -> None:
        active = [j for j in chosen if j in undecided]
        decided = [j for j in chosen if j not in undecided]
        leaders = [j for j in decided if self.emerged_at[j] >= 0]
        if not decided:  # joint leaders meet at their mean, and so do those who hear exactly them
            for i in who:
                self._settle(i, points[i], self._mean(chosen, points), chosen[0])
            self.emerged_at[chosen[0]] = self.layer
            return
        now, later = (
            self._mean(decided, points),
            self._mean(decided, [self._goal(i) for i in range(len(points))]),
        )
        gap = [a - b for a, b in zip(now, later, strict=True)]
        heavy = sum((self._weights[j] for j in active), fmpq(0))
        share = heavy / (heavy + sum((self._weights[j] for j in decided), fmpq(0)))
        slow = resonant = None
        if active:
            odds = (1 - share) / share
            middle = self._mean(active, points)
            slow = [u - t + odds * e for u, t, e in zip(middle, later, gap, strict=True)]
        else:
            resonant = [self._alpha * e for e in gap]
        rate = (1 + self._alpha * share) * self._shrink
        for i in who:
            self._settle(i, points[i], later, leaders[0], rate, slow, resonant)
            if len(leaders) > 1:
                self.ties[i] = leaders

    def _decide_silent(self, waiting: list[int], points: Rows) -> None:
        """Zero tokens hear everybody; they stay put for ever if the mean of all is and remains zero."""
        everybody = list(range(len(points)))
        goals = [self._goal(i) for i in everybody]
        if any(self._mean(everybody, points)) or any(self._mean(everybody, goals)):
            return
        leaders = torch.nonzero(self.emerged_at >= 0)[:, 0].tolist()
        for i in waiting:
            self._settle(i, points[i], [fmpq(0)] * len(points[0]), leaders[0] if leaders else i)
            if len(leaders) > 1:
                self.ties[i] = leaders

    def _settle(
        self,
        token: int,
        start: Point,
        target: Point,
        leader: int,
        rate: Rational | None = None,
        slow: Point | None = None,
        resonant: Point | None = None,
    ) -> None:
        self._path[token] = _Path(
            start,
            target,
            self.layer,
            self._shrink if rate is None else rate,
            slow if slow is not None and any(slow) else None,
            resonant if resonant is not None and any(resonant) else None,
        )
        self.follows[token] = leader
        self.decided_at[token] = self.layer


def _dot(left: list[Rational], right: Point) -> Rational:
    return sum((a * b for a, b in zip(left, right, strict=True)), fmpq(0))


def _rounded(rows: Rows) -> Tokens:
    return torch.tensor([[as_float(x) for x in row] for row in rows], dtype=torch.float64)
