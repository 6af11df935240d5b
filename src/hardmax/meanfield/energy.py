r"""Quantities that only grow: whether a run does what its structure says it must.

For V a positive multiple of a symmetric B every token moves uphill in the interaction energy

.. math:: \mathcal{E}_\beta = \frac1\beta \log \sum_{ij} w_i w_j e^{\beta\langle Bx_i, x_j\rangle},

each at its own speed. At zero temperature, for V symmetric and B symmetric positive definite, the Rayleigh quotient of
M = VB in the metric of B, :math:`\langle Bx, VBx\rangle/\langle x, Bx\rangle`, grows for every token. A cluster that
attends to itself climbs :math:`\langle x, Vx\rangle`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..dynamics.integrators import FlowStep
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import plain
from ..shapes import PerToken, Square, Tokens
from ..threads import one_thread
from .flow import SphereFlow

_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False)
class Lyapunov:
    """One value for each kept state of a run."""

    times: np.ndarray
    interaction: np.ndarray | None
    """The interaction energy; None at zero temperature and at beta = 0."""
    rayleigh: np.ndarray
    """Mean over tokens of the Rayleigh quotient of V B in the metric of B."""
    value: np.ndarray
    """Mean over tokens of <x, V x>."""
    order: np.ndarray
    """Length of the mean token: 0 for a balanced law, 1 for one cluster."""


def flow_of(run: Trajectory) -> SphereFlow:
    """The flow on the sphere that a run followed."""
    layer = run.layer if isinstance(run, Trajectory) else run
    if not isinstance(layer, FlowStep) or not isinstance(layer.flow, SphereFlow) or run.times is None:
        raise InputError("run", str(layer), "must follow a SphereFlow", "pass simulate(tokens, SphereFlow(…), time=…)")
    return layer.flow


def states_of(run: Trajectory) -> torch.Tensor:
    """Kept states as a float64 tensor on the CPU."""
    return torch.as_tensor(plain(run.tokens), dtype=torch.float64)


def weights_of(run: Trajectory) -> PerToken:
    """Weights of a run's tokens, summing to one."""
    if run.weights is None:
        n = run.tokens.shape[1]
        return torch.full((n,), 1 / n, dtype=torch.float64)
    mass = torch.as_tensor(plain(run.weights), dtype=torch.float64)
    return mass / mass.sum()


def interaction_energy(tokens: Tokens, weights: PerToken, B: Square, beta: float) -> float:
    """The interaction energy of checked tokens, in the log domain."""
    mass = weights.log()
    rows = max(1, _ENTRIES // len(tokens))
    parts = [
        torch.logsumexp(
            beta * (tokens[top : top + rows] @ B.T @ tokens.T) + mass + mass[top : top + rows, None], (0, 1)
        )
        for top in range(0, len(tokens), rows)
    ]
    return float(torch.logsumexp(torch.stack(parts), 0)) / beta


@one_thread()
def lyapunov(run: Trajectory) -> Lyapunov:
    """The quantities that grow along a run of a :class:`SphereFlow`."""
    flow = flow_of(run)
    states, mass = states_of(run), weights_of(run)
    d = states.shape[2]
    B, V = flow.score_matrix(d).detach().cpu(), flow.value_matrix(d).detach().cpu()
    asked = states @ B.T
    metric = (states * asked).sum(dim=2)
    if bool((metric == 0).any()):
        metric = metric + torch.finfo(torch.float64).tiny
    rayleigh = ((asked * (asked @ V.T)).sum(dim=2) / metric) @ mass
    value = (states * (states @ V.T)).sum(dim=2) @ mass
    order = torch.linalg.vector_norm(torch.einsum("knd,n->kd", states, mass), dim=1)
    interaction = None
    if 0 < flow.beta < math.inf:
        interaction = np.array([interaction_energy(state, mass, B, flow.beta) for state in states])
    return Lyapunov(np.asarray(run.times), interaction, rayleigh.numpy(), value.numpy(), order.numpy())
