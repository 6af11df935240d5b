r"""Lyapunov functions: quantities that do not decrease along a run.

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

from ..dynamics.attention_flow import AttentionFlow
from ..dynamics.flows import AbstractFlow
from ..dynamics.integrators import FlowStep
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import plain
from ..shapes import PerToken, Square, Tokens
from ..threads import one_thread
from .density_flow import DensityRun, energy_of, in_plane
from .flow import SphereFlow
from .measures import on_circle

_ENTRIES = 1 << 22  # logits per block: 32 MiB of float64


@dataclass(frozen=True, eq=False)
class Lyapunov:
    """Lyapunov functions of a run, one value per stored state."""

    times: np.ndarray
    """Times of the stored states, shape (states,)."""
    interaction: np.ndarray | None
    """Interaction energy, shape (states,); None at zero temperature and at beta = 0."""
    rayleigh: np.ndarray
    """Mean over tokens of the Rayleigh quotient of V B in the metric of B, shape (states,)."""
    value: np.ndarray
    """Mean over tokens of <x, V x>, shape (states,)."""
    order: np.ndarray
    """Length of the mean token, shape (states,): 0 for a balanced law, 1 for one cluster."""


def flow_of(run: Trajectory) -> SphereFlow:
    """Flow on the sphere that a run followed."""
    layer = run.layer if isinstance(run, Trajectory) else run
    if not isinstance(layer, FlowStep) or not isinstance(layer.flow, SphereFlow) or run.times is None:
        problem, remedy = _why_not(layer.flow if isinstance(layer, FlowStep) else layer)
        raise InputError("run", str(layer), problem, remedy)
    if layer.flow.causal:
        problem, remedy = "must not be causal: its law obeys no gradient flow", "leave out causal=True"
        raise InputError("run", str(layer), problem, remedy)
    return layer.flow


def _why_not(flow: object) -> tuple[str, str]:
    """Why a flow has no limit law here, and what to do instead."""
    if isinstance(flow, AbstractFlow) and flow.stochastic:
        problem = "must follow a SphereFlow without noise: the limit of a law that noise spreads is not derived here"
        return problem, "pass a run of the flow inside NoisyFlow, and compare both by wasserstein"
    if isinstance(flow, AttentionFlow) and len(flow.heads) > 1:
        problem = f"must follow a SphereFlow, of one head: the limit map of {len(flow.heads)} heads is not known"
        return problem, "pass a run of SphereFlow(B, V, beta) for one of the heads"
    if isinstance(flow, AttentionFlow):
        problem = "must follow a SphereFlow: weightings, masks and biases of an AttentionFlow have no limit map here"
        return problem, "for softmax without them, pass the same run of SphereFlow(B=head.A, V=head.V, beta=…)"
    return "must follow a SphereFlow", "pass simulate(tokens, SphereFlow(…), time=…)"


def states_of(run: Trajectory) -> torch.Tensor:
    """Stored states as a float64 tensor on the CPU, shape (states, tokens, d)."""
    return torch.as_tensor(plain(run.tokens), dtype=torch.float64)


def weights_of(run: Trajectory) -> PerToken:
    """Weights of the tokens of a run, shape (tokens,), summing to one."""
    if run.weights is None:
        n = run.tokens.shape[1]
        return torch.full((n,), 1 / n, dtype=torch.float64)
    mass = torch.as_tensor(plain(run.weights), dtype=torch.float64)
    return mass / mass.sum()


def interaction_energy(tokens: Tokens, weights: PerToken, B: Square, beta: float) -> float:
    """Interaction energy of validated tokens, computed in the log domain."""
    mass = weights.log()
    rows = max(1, _ENTRIES // len(tokens))
    parts = [
        torch.logsumexp(
            beta * (tokens[top : top + rows] @ B.T @ tokens.T) + mass + mass[top : top + rows, None], (0, 1)
        )
        for top in range(0, len(tokens), rows)
    ]
    return float(torch.logsumexp(torch.stack(parts), 0)) / beta


def _of_density(run: DensityRun) -> Lyapunov:
    """Lyapunov functions of a density: integrals in the plane of its nodes."""
    flow, first = run.flow, run.states[0]
    d = first.dimension
    B, V = (in_plane(m.detach().cpu().numpy(), first, "B") for m in (flow.score_matrix(d), flow.value_matrix(d)))
    rows = []
    for state in run.states:
        points, mass = on_circle(state.angles.ravel()), state.masses
        asked = points @ B.T
        metric = (points * asked).sum(axis=1)
        rayleigh = (asked * (asked @ V.T)).sum(axis=1) / np.where(metric == 0, np.finfo(float).tiny, metric)
        rows.append((rayleigh @ mass, (points * (points @ V.T)).sum(axis=1) @ mass, np.linalg.norm(state.mean)))
    interaction = None
    if 0 < flow.beta < math.inf:
        interaction = np.array([energy_of(state, flow) for state in run.states])
    return Lyapunov(run.times, interaction, *np.array(rows).T)


@one_thread()
def lyapunov(run: Trajectory | DensityRun) -> Lyapunov:
    """Lyapunov functions along a run of a :class:`SphereFlow`.

    Parameters
    ----------
    run
        Trajectory of a :class:`SphereFlow`, or a density that :func:`simulate_density` followed.

    Returns
    -------
    Lyapunov
        One value per stored state.
    """
    if isinstance(run, DensityRun):
        return _of_density(run)
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
