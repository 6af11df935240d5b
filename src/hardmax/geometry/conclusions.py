"""The conclusions of Theorem 1.1, held against the limit of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..polytopes import Polytope
from .findings import Finding, measured, unknown
from .reading import Roles, near_one

EXIST = "There is at least one leader."
VERTICES = "The leaders are exactly the vertices of the polytope K, the convex hull of their limits."
CONVERGENCE = "Every token converges to a point of a finite set S."
SUPPORT = "Every limit s satisfies <A s, s> = max over y in K of <A s, y>: it lies on the face with normal A s."


@dataclass(frozen=True, eq=False)
class Ending:
    """Where the tokens of a run end."""

    A: np.ndarray
    who: Roles
    centres: np.ndarray
    """The set S, leaders first; undecided tokens left out."""
    remedy: str
    """What to do about undecided tokens."""

    def conclusions(self, tolerance: float) -> tuple[Finding, ...]:
        """All conclusions of the theorem that concern the limit."""
        count = len(self.who.leaders)
        exist = measured("leaders exist", EXIST, float(count == 0), 0.0, f"{_of(count, 'leader')} found")
        if count == 0:
            why = "there is no leader"
            return exist, unknown("vertices", VERTICES, why), self._convergence(), unknown("support", SUPPORT, why)
        polytope = Polytope.of(self.centres[:count])
        return exist, self._vertices(polytope), self._convergence(), self._support(polytope, tolerance)

    def _vertices(self, polytope: Polytope) -> Finding:
        count = len(self.who.leaders)
        inner = np.setdiff1d(np.arange(count), polytope.vertex_indices)
        sentence = f"K is {polytope}; {_of(count, 'leader')}"
        if len(inner):
            sentence += f", of which {len(inner)} are no vertices (the first is token {self.who.leaders[inner[0]]})"
        return measured("vertices", VERTICES, float(len(inner)), 0.0, sentence)

    def _convergence(self) -> Finding:
        undecided = int((self.who.decided_at < 0).sum())
        if undecided:
            return unknown("convergence", CONVERGENCE, f"{_of(undecided, 'token')} undecided: {self.remedy}")
        latest = int(self.who.decided_at.max())
        sentence = f"every token is decided by layer {latest}, S has {_of(len(self.centres), 'point')}"
        return measured("convergence", CONVERGENCE, 0.0, 0.0, sentence)

    def _support(self, polytope: Polytope, tolerance: float) -> Finding:
        A, _ = near_one(self.A)
        points, exponent = near_one(self.centres)
        queries = points @ A.T
        own = (queries * points).sum(axis=1)
        best = np.ldexp(polytope.support(queries), -exponent)
        scale = np.sqrt((queries**2).sum(axis=1)).max() * np.sqrt((points**2).sum(axis=1)).max()
        worst = float(np.abs(best - own).max() / scale) if scale > 0 else 0.0
        faces = len(self.centres) - len(self.who.leaders)
        sentence = f"largest relative gap {worst:.2g} over {_of(len(points), 'limit point')}, {faces} of them on faces"
        return measured("support", SUPPORT, worst, tolerance, sentence)


def _of(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
