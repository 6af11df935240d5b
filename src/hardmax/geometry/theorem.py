"""Theorem 1.1 on a given run: whether its assumptions hold, and whether its conclusions do."""

from __future__ import annotations

import numpy as np
import torch

from ..attention.distinct import distinct
from ..attention.layer import HardmaxLayer
from ..dynamics.assumptions import Assumptions, assumptions_of
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.process import SMALLEST_ALPHA
from ..dynamics.rules import Decided
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import as_tokens, plain
from ..shapes import ArrayLike
from ..threads import one_thread
from .clusters import clusters
from .conclusions import Ending
from .facts import Passage
from .findings import Finding, TheoremReport, unknown
from .reading import Result, hardmax_layer, kept, require_hardmax, result, roles, score_matrix

# Rounding of a run is some tens of units in the last place; a violation of the theory is not.
_ROUNDING_UNITS = 1024
_DEPTH = 60
_EXTRA_LAYERS = 3


def check_assumptions(tokens: ArrayLike, layer: HardmaxLayer) -> Assumptions:
    """Which assumptions of Theorem 1.1 hold for these tokens and this layer.

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
    """Hold Theorem 1.1 and facts 1 to 6 against a run, a limit, or tokens and a layer.

    Parameters
    ----------
    subject
        A :class:`Trajectory`, an :class:`Equilibrium`, or tokens, which are run until every one is decided.
    layer
        The layer, when tokens are given (or pass the pair ``(tokens, layer)``).
    require_assumptions
        Refuse input to which the theorem does not apply. Otherwise the report says which assumptions fail and
        what was measured all the same.
    tolerance
        The largest relative violation that counts as rounding.

    >>> import hardmax as hm
    >>> report = check_theorem([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5))
    >>> report.holds, report["leaders exist"].sentence
    (True, '2 leaders found')
    """
    run = _run(subject, layer)
    who, rule = roles(run), hardmax_layer(run)
    assumptions = run.assumptions
    if assumptions is None:
        raise InputError("run", str(rule), "must know its assumptions", "pass what hm.simulate gives back")
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
    """What to do about undecided tokens."""
    if _moves(rule):
        return "run more layers"
    return f'alpha = {float(rule.alpha):g} is lost in rounding: pass alpha >= {SMALLEST_ALPHA:.1g} or tolerance="exact"'


def _moves(rule: HardmaxLayer) -> bool:
    """Whether more layers may decide more tokens."""
    return rule.tolerance == "exact" or float(rule.alpha) >= SMALLEST_ALPHA


def _facts(run: Result, A: np.ndarray, tolerance: float) -> tuple[Finding, ...]:
    if isinstance(run, Equilibrium):
        why = "a limit has no layers: pass a run, or the tokens and the layer"
        return (unknown("facts 1 to 6", "Facts about the layers on the way.", why),)
    weights = np.ones(run.tokens.shape[1]) if run.weights is None else plain(run.weights).astype(np.float64)
    found = kept(run)
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
    unit = float(np.finfo(plain(run.positions).dtype).eps) if isinstance(run, Equilibrium) else kept(run).unit
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
        "distinct": ("tokens", "must be distinct", "keep one of the repeated tokens and give it their summed weight"),
    }
    for name, (argument, problem, remedy) in ways.items():
        if not getattr(assumptions, name):
            raise InputError(argument, str(assumptions), problem, f"{remedy}, or leave out require_assumptions")
