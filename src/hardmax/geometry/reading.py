"""What a run or a limit says, as plain arrays: the one place where results are unpacked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.leadership import Leadership, Ties
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import plain

Result = Trajectory | Equilibrium


@dataclass(frozen=True, eq=False)
class Roles:
    """A leadership in plain arrays; see :class:`hardmax.dynamics.leadership.Leadership`."""

    leaders: np.ndarray
    emerged_at: np.ndarray
    follows: np.ndarray
    decided_at: np.ndarray
    ties: Ties

    @classmethod
    def of(cls, leadership: Leadership) -> Roles:
        return cls(
            plain(leadership.leaders),
            plain(leadership.emerged_at),
            plain(leadership.follows),
            plain(leadership.decided_at),
            leadership.ties,
        )


def result(argument: str, value: object) -> Result:
    """Require a Trajectory or an Equilibrium."""
    if not isinstance(value, (Trajectory, Equilibrium)):
        raise InputError(
            argument,
            type(value).__name__,
            "must be a Trajectory or an Equilibrium",
            "pass what hm.simulate or hm.equilibrium gives back",
        )
    return value


def hardmax_layer(run: Result) -> HardmaxLayer:
    """The hardmax layer of a run; only hardmax has leaders."""
    if not isinstance(run.layer, HardmaxLayer):
        raise InputError(
            "run",
            str(run.layer),
            "must come from a HardmaxLayer",
            "only hardmax attention has leaders and followers",
        )
    return run.layer


def roles(run: Result) -> Roles:
    """Who leads and who follows, or an error that says why a run does not know."""
    if run.leadership is None:
        layer = hardmax_layer(run)
        raise InputError(
            "run",
            str(layer),
            "must have V = identity to have leaders",
            "leave out V, or look at attention_at(run, k)",
        )
    return Roles.of(run.leadership)


def states(run: Trajectory) -> np.ndarray:
    """The kept states in float64, at least one."""
    if not isinstance(run, Trajectory):
        remedy = "a limit has no layers: pass what simulate gave back"  # type: ignore[unreachable]
        raise InputError("run", f"a {type(run).__name__}", "must be a Trajectory", remedy)
    if len(run) == 0:
        raise InputError(
            "run",
            "a run without states in memory",
            "must have kept a state",
            "load the run from disk, or keep='last'",
        )
    return plain(run.tokens).astype(np.float64, copy=False)


def score_matrix(layer: HardmaxLayer, dimension: int) -> np.ndarray:
    """A in NumPy; the identity when the layer has none."""
    return plain(layer.score_matrix(torch.zeros((1, dimension), dtype=torch.float64)))


def near_one(array: np.ndarray) -> tuple[np.ndarray, int]:
    """``(array * 2**-e, e)`` with entries at most one in size and e even, so that square roots scale too."""
    exponent = math.frexp(float(np.abs(array).max()))[1] if array.size else 0
    exponent += exponent % 2
    return np.ldexp(array, -exponent), exponent


def require_hardmax(layer: object) -> HardmaxLayer:
    """The layer that was given, if it is one that the theorem is about."""
    if not isinstance(layer, HardmaxLayer):
        raise InputError(
            "layer", repr(layer)[:60], "must be a HardmaxLayer", "Theorem 1.1 is about HardmaxLayer(alpha, A)"
        )
    return layer
