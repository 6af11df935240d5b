"""Runs and limits as plain NumPy arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..attention.choice import TIE_UNITS
from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.leadership import Leadership, Ties
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import plain

Result = Trajectory | Equilibrium

_UNIT64 = float(np.finfo(np.float64).eps)


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
            "pass the result of hm.simulate or hm.equilibrium",
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
    """Leaders and followers of a run; raises an InputError where it has none."""
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
    """Stored states in float64, shape (states, tokens, d), at least one."""
    if not isinstance(run, Trajectory):
        remedy = "a limit has no layers: pass the result of simulate"  # type: ignore[unreachable]
        raise InputError("run", f"a {type(run).__name__}", "must be a Trajectory", remedy)
    if len(run) == 0:
        raise InputError(
            "run",
            "a run without states in memory",
            "must have stored a state",
            "load the run from disk, or keep='last'",
        )
    return plain(run.tokens).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Kept:
    """Stored states of a run of a hardmax layer in float64, and their rounding unit."""

    states: np.ndarray
    layers: np.ndarray
    unit: float
    """Rounding unit of the states, relative to the largest coordinate."""

    def rule(self, layer: HardmaxLayer, k: int) -> HardmaxLayer:
        """Layer with the tolerance for the k-th state: past layer 0, ties must survive the rounding of the states."""
        if self.layers[k] == 0:
            return layer
        tolerance = TIE_UNITS * self.unit
        if isinstance(layer.tolerance, float):
            tolerance = layer.tolerance if self.unit == _UNIT64 else max(layer.tolerance, tolerance)
        return HardmaxLayer(layer.alpha, layer.A, V=layer.V, tolerance=tolerance)


def kept(run: Trajectory) -> Kept:
    """Stored states before they were rounded to the dtype of the run, where they can be recomputed.

    A run of float32 tokens is computed in float64 and rounded when it is returned. The states are computed again from
    layer 0, which is exact, and replace the stored ones if they agree with them to float32.
    """
    found, stored = states(run), plain(run.tokens).dtype
    if stored == np.float64:
        return Kept(found, run.layers, _UNIT64)
    unit = float(np.finfo(stored).eps)
    if int(run.layers[0]) == 0:
        again = simulate(
            found[0],
            hardmax_layer(run),
            depth=int(run.layers[-1]),
            keep=run.layers.tolist(),
            weights=None if run.weights is None else plain(run.weights),
            progress=False,
        )
        whole = np.asarray(again.tokens)
        if whole.shape == found.shape and np.abs(whole - found).max() <= unit * np.abs(found).max():
            return Kept(whole, run.layers, _UNIT64)
    return Kept(found, run.layers, unit)


def score_matrix(layer: HardmaxLayer, dimension: int) -> np.ndarray:
    """Score matrix A as a NumPy array of shape (d, d); the identity when the layer has none."""
    return plain(layer.score_matrix(torch.zeros((1, dimension), dtype=torch.float64)))


def near_one(array: np.ndarray) -> tuple[np.ndarray, int]:
    """``(array * 2**-e, e)`` with entries at most one in size and e even, so that square roots scale too."""
    exponent = math.frexp(float(np.abs(array).max()))[1] if array.size else 0
    exponent += exponent % 2
    return np.ldexp(array, -exponent), exponent


def require_hardmax(layer: object) -> HardmaxLayer:
    """The layer, if it is a HardmaxLayer; otherwise an InputError is raised."""
    if not isinstance(layer, HardmaxLayer):
        raise InputError(
            "layer", repr(layer)[:60], "must be a HardmaxLayer", "Theorem 1.1 is about HardmaxLayer(alpha, A)"
        )
    return layer
