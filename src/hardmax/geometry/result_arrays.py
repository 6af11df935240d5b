"""Runs and limits as plain NumPy arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import torch

from ..attention.base import AbstractLayer
from ..attention.choice import TIE_UNITS, Choice
from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.leadership import Leadership, Ties
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import plain

Result = Trajectory | Equilibrium
LayerT = TypeVar("LayerT", bound=AbstractLayer)

_UNIT64 = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Roles:
    """A leadership in plain arrays; see :class:`hardmax.dynamics.leadership.Leadership`."""

    leaders: np.ndarray
    emerged_at: np.ndarray
    follows: np.ndarray
    decided_at: np.ndarray
    ties: Ties
    proved: bool = True
    """Whether leaders and followers are those for ever; otherwise those seen at the last stored layer."""

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
    """The value, if it is a Trajectory or an Equilibrium; otherwise an InputError is raised."""
    if not isinstance(value, (Trajectory, Equilibrium)):
        raise InputError(
            argument,
            type(value).__name__,
            "must be a Trajectory or an Equilibrium",
            "pass the result of hm.simulate or hm.equilibrium",
        )
    return value


def require_choices(run: Result) -> AbstractLayer:
    """The layer of a run, if each token attends to some tokens alone; otherwise an InputError is raised."""
    if not run.layer.chooses:
        raise InputError(
            "run",
            str(run.layer),
            "must come from a layer that chooses: this one attends to every token",
            "use a HardmaxLayer, or a layer with a method choose",
        )
    return run.layer


def hardmax_layer(run: Result) -> HardmaxLayer:
    """The hardmax layer of a run with one head that sees all tokens, to which Theorem 1.1 applies."""
    return require_hardmax(run.layer, "run")


def roles(run: Result) -> Roles:
    """Leaders and followers of a run; raises an InputError where it has none."""
    if run.leadership is not None:
        return Roles.of(run.leadership)
    layer = require_choices(run)
    if not layer.has_leaders:
        raise InputError(
            "run",
            str(layer),
            "must have V = identity to have leaders",
            "leave out V, or look at attention_at(run, k)",
        )
    if not isinstance(run, Trajectory):
        raise InputError("run", str(layer), "has no leaders", "pass the result of hm.simulate")
    return _observed(run)


def choices_at(run: Trajectory, found: StoredStates, k: int) -> tuple[Choice, ...]:
    """Sets C_i of all tokens at the k-th stored state, one Choice per head."""
    layer = found.rule(require_choices(run).at(int(run.layers[k])), k)
    return layer.choose_heads(torch.from_numpy(np.ascontiguousarray(found.states[k])))


def _observed(run: Trajectory) -> Roles:
    """Leaders and followers as the stored states show them: without a proof that they stay.

    A leader listens to itself alone in every head at the last stored state; it emerged at the first stored layer from
    which on it always does. A follower listens, in the first head, to leaders alone.
    """
    found = stored_states(run)
    count = found.states.shape[1]
    itself = torch.arange(count)
    emerged = np.full(count, -1)
    for k in range(len(found.layers)):
        alone = torch.ones(count, dtype=torch.bool)
        for choice in choices_at(run, found, k):
            alone &= (choice.first == itself) & ~choice.everyone
            alone[choice.tied] = False
        leads = alone.numpy()
        emerged = np.where(leads, np.where(emerged < 0, found.layers[k], emerged), -1)
    last = choices_at(run, found, -1)[0]
    first = last.first.numpy()
    follows = np.where(leads, np.arange(count), np.where(leads[first], first, -1))
    follows[last.everyone.numpy()] = -1
    several: dict[int, np.ndarray] = {}
    for token in last.tied.tolist():
        members = last[token].numpy()
        follows[token] = members[0] if leads[members].all() else -1
        if leads[members].all():
            several[token] = members
    leaders = np.flatnonzero(leads)
    undecided = np.full(count, -1)
    return Roles(leaders, emerged[leaders], follows, undecided, ties_of(several), proved=False)


def ties_of(listed: dict[int, np.ndarray]) -> Ties:
    """Ties in compressed rows, from the members of each tied token."""
    tokens = np.array(sorted(listed), dtype=np.int64)
    members = [listed[int(i)] for i in tokens]
    offsets = np.cumsum([0, *(len(m) for m in members)], dtype=np.int64)
    return Ties(tokens, offsets, np.concatenate(members, dtype=np.int64) if members else offsets[:0])


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
class StoredStates:
    """Stored states of a run in float64, and their rounding unit."""

    states: np.ndarray
    layers: np.ndarray
    unit: float
    """Rounding unit of the states, relative to the largest coordinate."""

    def rule(self, layer: LayerT, k: int) -> LayerT:
        """Layer with the tolerance for the k-th state: past layer 0, ties must survive the rounding of the states."""
        if self.layers[k] == 0 or not isinstance(layer, HardmaxLayer):
            return layer
        tolerance = TIE_UNITS * self.unit
        if isinstance(layer.tolerance, float):
            tolerance = layer.tolerance if self.unit == _UNIT64 else max(layer.tolerance, tolerance)
        return cast(LayerT, layer.with_tolerance(tolerance))


def stored_states(run: Trajectory) -> StoredStates:
    """Stored states before they were rounded to the dtype of the run, where they can be recomputed.

    A run of float32 tokens is computed in float64 and rounded when it is returned. The states are computed again from
    layer 0, which is exact, and replace the stored ones if they agree with them to float32.
    """
    found, stored = states(run), plain(run.tokens).dtype
    if stored == np.float64:
        return StoredStates(found, run.layers, _UNIT64)
    unit = float(np.finfo(stored).eps)
    if int(run.layers[0]) == 0 and run.times is None and not run.layer.stochastic:
        again = simulate(
            found[0],
            run.layer,
            depth=int(run.layers[-1]),
            keep=run.layers.tolist(),
            weights=None if run.weights is None else plain(run.weights),
            progress=False,
        )
        whole = np.asarray(again.tokens)
        if whole.shape == found.shape and np.abs(whole - found).max() <= unit * np.abs(found).max():
            return StoredStates(whole, run.layers, _UNIT64)
    return StoredStates(found, run.layers, unit)


def score_matrix(layer: HardmaxLayer, dimension: int) -> np.ndarray:
    """Score matrix A as a NumPy array of shape (d, d); the identity when the layer has none."""
    return plain(layer.score_matrix(torch.zeros((1, dimension), dtype=torch.float64)))


def near_one(array: np.ndarray) -> tuple[np.ndarray, int]:
    """``(array * 2**-e, e)`` with entries at most one in size and e even, so that square roots scale too."""
    exponent = math.frexp(float(np.abs(array).max()))[1] if array.size else 0
    exponent += exponent % 2
    return np.ldexp(array, -exponent), exponent


def require_hardmax(layer: object, argument: str = "layer") -> HardmaxLayer:
    """The layer, if Theorem 1.1 is about it; otherwise an InputError names what it lacks."""
    if not isinstance(layer, HardmaxLayer):
        raise InputError(
            argument, str(layer)[:60], "must be a HardmaxLayer", "Theorem 1.1 is about HardmaxLayer(alpha, A)"
        )
    if not layer.is_basic:
        raise InputError(
            argument,
            str(layer),
            "must have one head, see all tokens and have one step size",
            "Theorem 1.1 is about HardmaxLayer(alpha, A); see hm.equilibrium for masks, heads and steps",
        )
    return layer
