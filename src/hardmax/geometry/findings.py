"""Findings of a check of the theory, and facts 1 to 6 about the hardmax map checked on the stored states of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from ..attention.layer import HardmaxLayer
from ..attention.search import attended
from ..dynamics.assumptions import Assumptions
from ..polytopes import Polytope
from .result_arrays import Roles, near_one


@dataclass(frozen=True)
class Finding:
    """One statement of the theory, checked on one run."""

    name: str
    """Short name, the key in :class:`TheoremReport`."""
    statement: str
    """The statement in words."""
    holds: bool | None
    """Whether the statement holds; None where the run does not allow to check it."""
    worst: float
    """Largest violation that was measured (0 where there is none), in the units that the sentence names."""
    tolerance: float
    """Largest violation that counts as rounding."""
    sentence: str
    """What was measured, in words."""

    def __str__(self) -> str:
        verdict = {True: "holds", False: "VIOLATED", None: "not known"}[self.holds]
        return f"{verdict:9} {self.name}: {self.sentence}"


def measured(name: str, statement: str, worst: float, tolerance: float, sentence: str) -> Finding:
    """Finding that holds where the largest violation is within the tolerance."""
    return Finding(name, statement, bool(worst <= tolerance), worst, tolerance, sentence)


def unknown(name: str, statement: str, why: str) -> Finding:
    """Finding that could not be checked, with the reason."""
    return Finding(name, statement, None, 0.0, 0.0, why)


@dataclass(frozen=True)
class TheoremReport:
    """Theorem 1.1 and the facts around it, checked on one run or limit; ``report[name]`` is one finding."""

    assumptions: Assumptions
    """Which assumptions of the theorem hold."""
    findings: tuple[Finding, ...]
    """The statements with what was measured."""

    @property
    def holds(self) -> bool:
        """Whether no statement that could be checked is violated."""
        return not self.violations

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The statements that do not hold."""
        return tuple(finding for finding in self.findings if finding.holds is False)

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"no finding is called {name!r}: {', '.join(f.name for f in self.findings)}")

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join([str(self.assumptions), *(str(finding) for finding in self.findings)])


NESTED = "Fact 1: the convex hull of the tokens at a layer contains that of the next."
NORMS = "Fact 2: the A-norm of a token never decreases."
LARGEST = "Fact 3: the token of strictly largest A-norm is a leader from layer 0."
STOP = "Fact 4: once a leader, always a leader, and it never moves again."
INVARIANT = "Fact 5: token order, A -> c A and a linear change of variables change nothing."
LOYAL = "Fact 6: a token that follows one leader alone follows it for ever; permanent ties stay tied."
MAP = "Every stored layer is the image of the layer before it."

_TOO_FEW = "needs two stored layers"
# Hulls are compared exactly up to this dimension, and in this many directions above it.
_HULL_DIMENSION = 4
_DIRECTIONS = 512


@dataclass(frozen=True, eq=False)
class Passage:
    """The stored states of a run, and its leaders and followers."""

    layer: HardmaxLayer
    A: np.ndarray
    states: np.ndarray
    layers: np.ndarray
    weights: np.ndarray
    who: Roles

    def facts(self, tolerance: float) -> tuple[Finding, ...]:
        """One finding per fact from 1 to 6; these concern the layers, not the limit."""
        scaled, _ = near_one(self.states)
        matrix, _ = near_one(self.A)
        if not matrix.any() or not scaled.any():
            return (unknown("facts 1 to 6", "Facts about the layers on the way.", "all scores are zero"),)
        one = replace(self, states=scaled, A=matrix)
        return (
            one._nested(tolerance),
            one._norms(tolerance),
            one._largest(tolerance),
            one._stop(tolerance),
            one._invariant(tolerance),
            one._loyal(tolerance),
            one._map(tolerance),
        )

    @property
    def _pairs(self) -> range:
        return range(len(self.states) - 1)

    def _queries(self, state: np.ndarray) -> np.ndarray:
        return np.asarray(state @ self.A.T)

    def _support(self, queries: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Largest score of each query, shape (queries,), by exact search."""
        found = attended(torch.from_numpy(queries), torch.from_numpy(np.ascontiguousarray(points)), tolerance=0.0)
        return found.best.numpy()

    def _nested(self, tolerance: float) -> Finding:
        if not self._pairs:
            return unknown("nested hulls", NESTED, _TOO_FEW)
        if self.states.shape[2] <= _HULL_DIMENSION:
            worst = max(float(Polytope.of(self.states[k]).excess(self.states[k + 1]).max()) for k in self._pairs)
            where = "hulls"
        else:
            directions = self._some_directions()
            heights = np.array([(state @ directions.T).max(axis=0) for state in self.states])
            worst = float(np.diff(heights, axis=0).max())
            where = f"{len(directions)} directions"
        worst = max(0.0, worst)
        sentence = f"compared in {where} over {len(self._pairs)} steps, largest excess {worst:.2g}"
        return measured("nested hulls", NESTED, worst, tolerance, sentence)

    def _some_directions(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        chosen = rng.permutation(self.states.shape[1])[: _DIRECTIONS // 2]
        tokens = self._queries(self.states[0][chosen])
        found = np.concatenate([tokens, rng.normal(size=(_DIRECTIONS // 2, self.states.shape[2]))])
        lengths = np.sqrt((found**2).sum(axis=1))
        return np.asarray(found[lengths > 0] / lengths[lengths > 0, None])

    def _squared_norms(self, state: np.ndarray) -> np.ndarray:
        return np.asarray((self._queries(state) * state).sum(axis=1))

    def _norms(self, tolerance: float) -> Finding:
        if not self._pairs:
            return unknown("A-norms", NORMS, _TOO_FEW)
        squared = np.array([self._squared_norms(state) for state in self.states])
        scale = np.abs(squared).max()
        worst = max(0.0, float(-np.diff(squared, axis=0).min() / scale)) if scale > 0 else 0.0
        sentence = f"largest relative decrease of <A z, z> {worst:.2g} over {len(self._pairs)} steps"
        return measured("A-norms", NORMS, worst, tolerance, sentence)

    def _largest(self, tolerance: float) -> Finding:
        name = "largest A-norm"
        points, first = np.unique(self.states[0], axis=0, return_index=True)
        squared = self._squared_norms(points)
        top = int(np.argmax(squared))
        others = np.delete(squared, top)
        if len(others) and squared[top] - others.max() <= tolerance * np.abs(squared).max():
            return unknown(name, LARGEST, "no token is strictly the longest")
        token, start = int(first[top]), int(self.layers[0])
        emerged = dict(zip(self.who.leaders.tolist(), self.who.emerged_at.tolist(), strict=True)).get(token)
        late = emerged is None or emerged > start
        told = f"token {token} leads from layer {emerged}" if emerged is not None else f"token {token} never leads"
        return measured(name, LARGEST, float(late), 0.0, f"{told}; the first stored layer is {start}")

    def _stop(self, tolerance: float) -> Finding:
        worst_move = worst_score = 0.0
        seen = 0
        for k, state in enumerate(self.states):
            here = self.who.emerged_at <= self.layers[k]
            leaders = self.who.leaders[here]
            if not len(leaders):
                continue
            seen += len(leaders)
            if k + 1 < len(self.states):
                worst_move = max(worst_move, float(np.abs(self.states[k + 1][leaders] - state[leaders]).max()))
            queries = self._queries(state[leaders])
            gap = self._support(queries, state) - (queries * state[leaders]).sum(axis=1)
            worst_score = max(worst_score, float(gap.max()))
        sentence = f"largest move {worst_move:.2g}, largest score above its own {worst_score:.2g}, {seen} looks"
        return measured("leaders stop", STOP, max(worst_move, worst_score), tolerance, sentence)

    def _loyal(self, tolerance: float) -> Finding:
        worst, seen = 0.0, 0
        single = (self.who.decided_at >= 0) & ~np.isin(np.arange(len(self.who.follows)), self.who.leaders)
        single[self.who.ties.tokens] = False
        rows = np.repeat(self.who.ties.tokens, np.diff(self.who.ties.offsets))
        for k, state in enumerate(self.states):
            loyal = np.flatnonzero(single & (self.who.decided_at <= self.layers[k]))
            tied = self.who.decided_at[rows] <= self.layers[k]
            seen += len(loyal) + int(tied.sum())
            if len(loyal):
                queries = self._queries(state[loyal])
                gap = self._support(queries, state) - (queries * state[self.who.follows[loyal]]).sum(axis=1)
                worst = max(worst, float(gap.max()))
            if tied.any():
                worst = max(worst, self._uneven(state, rows[tied], self.who.ties.members[tied]))
        if not seen:
            return unknown("loyal followers", LOYAL, "no stored layer has a decided follower")
        sentence = f"largest score above the leader's {worst:.2g} in {seen} looks"
        return measured("loyal followers", LOYAL, worst, tolerance, sentence)

    def _uneven(self, state: np.ndarray, tied: np.ndarray, leaders: np.ndarray) -> float:
        """Largest difference between the scores of two leaders of one tie.

        A token may be tied with followers of its leaders; the scores of the leaders are then lower, but equal.
        """
        scores = (self._queries(state[tied]) * state[leaders]).sum(axis=1)
        highest = np.full(len(state), -np.inf)
        np.maximum.at(highest, tied, scores)
        return float((highest[tied] - scores).max())

    def _map(self, tolerance: float) -> Finding:
        adjacent = [k for k in self._pairs if self.layers[k + 1] == self.layers[k] + 1]
        if not adjacent:
            return unknown("map", MAP, "no two neighbouring layers were stored")
        steps = ((self._moved(self.A, self.states[k], self.weights), self.states[k + 1]) for k in adjacent)
        worst = max(float(np.abs(moved - following).max()) for moved, following in steps)
        sentence = f"largest difference {worst:.2g} over {len(adjacent)} layers"
        return measured("map", MAP, worst, tolerance, sentence)

    def _invariant(self, tolerance: float) -> Finding:
        """Finding on one layer from the first stored state under three changes, none of which causes rounding."""
        state, n = self.states[0], self.states.shape[1]
        plain = self._moved(self.A, state, self.weights)
        backwards = self._moved(self.A, state[::-1], self.weights[::-1])[::-1]
        larger = self._moved(4.0 * self.A, state, self.weights)
        # M reverses the coordinates, flips every other sign and stretches by powers of two.
        d = state.shape[1]
        stretch = np.where(np.arange(d) % 2 == 0, 2.0, -0.5)
        order = np.arange(d)[::-1]
        changed = self._moved(
            (self.A / stretch[:, None] / stretch[None, :])[np.ix_(order, order)],
            (state * stretch)[:, order],
            self.weights,
        )
        back = changed[:, order] / stretch
        differences = [float(np.abs(other - plain).max()) for other in (backwards, larger, back)]
        sentence = "differences after one layer {:.2g} (order), {:.2g} (4 A), {:.2g} (M z) for {} tokens".format(
            *differences, n
        )
        return measured("invariance", INVARIANT, max(differences), tolerance, sentence)

    def _moved(self, A: np.ndarray, state: np.ndarray, weights: np.ndarray) -> np.ndarray:
        layer = HardmaxLayer(self.layer.alpha, A, tolerance=self.layer.tolerance)
        return np.asarray(layer(np.ascontiguousarray(state), np.ascontiguousarray(weights)))
