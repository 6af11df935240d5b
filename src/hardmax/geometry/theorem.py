"""Theorem 1.1 on a given run: its assumptions and its conclusions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..attention.layer import HardmaxLayer
from ..attention.normal_form import distinct
from ..dynamics.assumptions import Assumptions, assumptions_of
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.keep_and_stop_rules import Decided
from ..dynamics.process import SMALLEST_ALPHA
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import as_tokens, plain
from ..outcomes import counted
from ..polytopes import Polytope
from ..shapes import ArrayLike
from ..threads import one_thread
from .clusters import clusters
from .findings import Finding, Passage, TheoremReport, measured, unknown
from .result_arrays import (
    Result,
    Roles,
    hardmax_layer,
    near_one,
    require_hardmax,
    result,
    roles,
    score_matrix,
    stored_states,
)

# Rounding of a run is some tens of units in the last place; a violation of the theory is not.
_ROUNDING_UNITS = 1024
_DEPTH = 60  # most layers that tokens are run for until every one is decided
_EXTRA_LAYERS = 3  # layers past the last decision, on which decided tokens are checked


def check_assumptions(tokens: ArrayLike, layer: HardmaxLayer) -> Assumptions:
    """Assumptions of Theorem 1.1 that hold for these tokens and this layer.

    Parameters
    ----------
    tokens
        Shape (tokens, d).
    layer
        Hardmax layer.

    Returns
    -------
    Assumptions
        Each assumption, true or false.

    Examples
    --------
    >>> import hardmax as hm
    >>> print(check_assumptions([[1.0, 0.0], [0.0, 0.0]], hm.HardmaxLayer(A=[[1.0, 0.0], [0.0, -1.0]])))
    Theorem 1.1 does not apply: A is not positive definite; some token is zero
    """
    layer = require_hardmax(layer)
    tensor, _ = as_tokens(tokens)
    tensor = tensor.to(torch.float64)
    found = distinct(tensor, torch.ones(len(tensor), dtype=torch.float64, device=tensor.device))
    return assumptions_of(layer.score_matrix(tensor), layer.has_plain_values, tensor, found.point_of is None)


@one_thread()
def check_theorem(
    subject: Result | ArrayLike,
    layer: HardmaxLayer | None = None,
    *,
    require_assumptions: bool = False,
    tolerance: float | None = None,
) -> TheoremReport:
    """Report on Theorem 1.1 and facts 1 to 6, checked on a run, a limit, or tokens and a layer.

    Parameters
    ----------
    subject
        A :class:`Trajectory`, an :class:`Equilibrium`, or tokens of shape (tokens, d), which are run until every token
        is decided.
    layer
        Hardmax layer, when tokens are given (or pass the pair ``(tokens, layer)``).
    require_assumptions
        Raise an error where the theorem does not apply. Otherwise the report names the assumptions that fail, and the
        statements are checked nevertheless.
    tolerance
        Largest relative violation that counts as rounding; by default 1024 rounding errors of the dtype, or 16 times
        the tolerance of the layer where that is larger.

    Returns
    -------
    TheoremReport
        Assumptions and findings; ``report.holds`` is true where nothing is violated.

    Examples
    --------
    >>> import hardmax as hm
    >>> report = check_theorem([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5))
    >>> report.holds, report["leaders exist"].sentence
    (True, '2 leaders found')
    """
    run = _run(subject, layer)
    who, rule = roles(run), hardmax_layer(run)
    assumptions = run.assumptions
    if assumptions is None:
        raise InputError("run", str(rule), "must know its assumptions", "pass the result of hm.simulate")
    if require_assumptions:
        _require(assumptions)
    if tolerance is None:
        tolerance = _default_tolerance(run, rule)
    found = clusters(run)
    decided = [k for k, kind in enumerate(found.kinds) if kind != "undecided"]
    A = score_matrix(rule, found.centres.shape[1])
    findings = Ending(A, who, found.centres[decided], _remedy(rule)).conclusions(tolerance)
    return TheoremReport(assumptions, findings + _facts(run, A, tolerance))


def _remedy(rule: HardmaxLayer) -> str:
    """Remedy for undecided tokens."""
    if _moves(rule):
        return "run more layers"
    alpha = float(rule.alpha_at(0))
    return f'alpha = {alpha:g} is lost in rounding: pass alpha >= {SMALLEST_ALPHA:.1g} or tolerance="exact"'


def _moves(rule: HardmaxLayer) -> bool:
    """Whether more layers may decide more tokens."""
    return rule.tolerance == "exact" or float(rule.alpha_at(0)) >= SMALLEST_ALPHA


def _facts(run: Result, A: np.ndarray, tolerance: float) -> tuple[Finding, ...]:
    if isinstance(run, Equilibrium):
        why = "a limit has no layers: pass a run, or the tokens and the layer"
        return (unknown("facts 1 to 6", "Facts about the layers on the way.", why),)
    weights = np.ones(run.tokens.shape[1]) if run.weights is None else plain(run.weights).astype(np.float64)
    found = stored_states(run)
    # Exact ties of a run are ties within the default tolerance in its states, which are rounded.
    rule = found.rule(hardmax_layer(run), -1)
    return Passage(rule, A, found.states, run.layers, weights, roles(run)).facts(tolerance)


def _run(subject: object, layer: HardmaxLayer | None) -> Result:
    if isinstance(subject, (Trajectory, Equilibrium)):
        return result("subject", subject)
    if isinstance(subject, tuple) and len(subject) == 2 and isinstance(subject[1], HardmaxLayer) and layer is None:
        subject, layer = subject
    rule = require_hardmax(layer)
    depth = _DEPTH if _moves(rule) else 0
    decided = simulate(subject, rule, depth=depth, keep="last", stop=Decided(), progress=False)
    depth = int(decided.layers[-1]) + _EXTRA_LAYERS
    return simulate(subject, rule, depth=depth, progress=False)


def _default_tolerance(run: Result, layer: HardmaxLayer) -> float:
    unit = float(np.finfo(plain(run.positions).dtype).eps) if isinstance(run, Equilibrium) else stored_states(run).unit
    rounding = _ROUNDING_UNITS * unit
    return max(rounding, 16 * layer.tolerance) if isinstance(layer.tolerance, float) else rounding


def _require(assumptions: Assumptions) -> None:
    if assumptions.hold:
        return
    ways = {
        "symmetric": ("A", "must be symmetric", "use (A + A.T) / 2"),
        "positive_definite": (
            "A",
            "must be positive definite",
            "add c * numpy.eye(d) with c above its lowest eigenvalue",
        ),
        "plain_values": ("V", "must be the identity", "leave out V"),
        "nonzero": ("tokens", "must not be zero", "leave out the tokens at the origin"),
        "basic": ("layer", "must have one head, see all tokens and have one step size", "use HardmaxLayer(alpha, A)"),
        "distinct": ("tokens", "must be distinct", "keep one of the repeated tokens and give it their summed weight"),
    }
    for name, (argument, problem, remedy) in ways.items():
        if not getattr(assumptions, name):
            raise InputError(argument, str(assumptions), problem, f"{remedy}, or leave out require_assumptions")


EXIST = "There is at least one leader."
VERTICES = "The leaders are exactly the vertices of the polytope K, the convex hull of their limits."
CONVERGENCE = "Every token converges to a point of a finite set S."
SUPPORT = "Every limit s satisfies <A s, s> = max over y in K of <A s, y>: it lies on the face with normal A s."


@dataclass(frozen=True, eq=False)
class Ending:
    """The limits of the tokens of a run."""

    A: np.ndarray
    who: Roles
    centres: np.ndarray
    """The set S, shape (points, d), leaders first; undecided tokens left out."""
    remedy: str
    """Remedy for undecided tokens."""

    def conclusions(self, tolerance: float) -> tuple[Finding, ...]:
        """Findings on the conclusions of the theorem that concern the limit."""
        count = len(self.who.leaders)
        exist = measured("leaders exist", EXIST, float(count == 0), 0.0, f"{counted(count, 'leader')} found")
        if count == 0:
            why = "there is no leader"
            return exist, unknown("vertices", VERTICES, why), self._convergence(), unknown("support", SUPPORT, why)
        polytope = Polytope.of(self.centres[:count])
        return exist, self._vertices(polytope), self._convergence(), self._support(polytope, tolerance)

    def _vertices(self, polytope: Polytope) -> Finding:
        count = len(self.who.leaders)
        inner = np.setdiff1d(np.arange(count), polytope.vertex_indices)
        sentence = f"K is {polytope}; {counted(count, 'leader')}"
        if len(inner):
            sentence += f", of which {len(inner)} are no vertices (the first is token {self.who.leaders[inner[0]]})"
        return measured("vertices", VERTICES, float(len(inner)), 0.0, sentence)

    def _convergence(self) -> Finding:
        undecided = int((self.who.decided_at < 0).sum())
        if undecided:
            return unknown("convergence", CONVERGENCE, f"{counted(undecided, 'token')} undecided: {self.remedy}")
        latest = int(self.who.decided_at.max())
        sentence = f"every token is decided by layer {latest}, S has {counted(len(self.centres), 'point')}"
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
        sentence = (
            f"largest relative gap {worst:.2g} over {counted(len(points), 'limit point')}, {faces} of them on faces"
        )
        return measured("support", SUPPORT, worst, tolerance, sentence)
