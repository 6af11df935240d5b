r"""The continuity equation of the attention flow, solved along characteristics.

.. math:: \partial_t\mu + \mathrm{div}\bigl(\mu\,P_x V m_\mu(x)\bigr) = 0, \qquad
          m_\mu(x) = \frac{\int y\,e^{\beta\langle Bx, y\rangle}\,d\mu}{\int e^{\beta\langle Bx, y\rangle}\,d\mu} .

The nodes of a :class:`SphereDensity` move with the velocity of the flow and keep their masses. After each step of the
integrator panels that have become too long for the kernel, or on which the angle is no longer a polynomial, are split.
There is no numerical diffusion and no noise of few tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import DOP853

from ..errors import InputError
from ..inputs import as_number
from ..outcomes import counted
from ..threads import one_thread
from .density import TO_LEGENDRE, SphereDensity
from .density_attention import AxialKernel, CircleKernel, Kernel, attended, attention_share, log_interaction
from .flow import SphereFlow
from .measures import on_circle
from .spectrum import NoLimitError, leading_part
from .sphere import direction_of

_WIDTHS = 4.0  # longest panel in widths (beta |B|)^-1/2 of the kernel, which 16 nodes integrate to 1e-13
_LONGEST = 0.5  # radians of a panel at any temperature
# Largest last Legendre coefficients of the angle on a panel, in radians, times its mass, and their range: a panel above
# is split. Panels of little mass, between clusters that part, are rough at the scale 1/beta and need fewer digits.
_TAIL, _TAILS = 1e-12, (1e-10, 1e-6)
_TOO_LATE = 100.0  # a panel this many times above a limit is split at the start of the step, which is repeated
# Panels below the first mass cannot change W_2 by 1e-9 and are not refined; if others attend to them, those down
# to the second are, then to the third. Each costs several times as much as the one before.
_LEAST_MASSES = (1e-12, 1e-20, 1e-280)
_ATTENDED = 1e-6  # largest share of attention, by mass, to panels that are not refined
_UNCONTROLLED = 1.0  # error in radians that the integrator may make at their nodes
_MOST_NODES = 1 << 18  # above, the flow makes structures that panels do not resolve
_STRETCH = 0.5  # longest step times |V|: the law moves by at most this many radians between two checks of panels
_SYMMETRIC = 1e-12  # relative size of the parts of B and V that break the symmetry about the axis
_SHORTEST = 1e-12  # shortest step as a share of the time span


@dataclass(frozen=True, eq=False)
class DensityRun:
    """Density along an attention flow, at the stored times."""

    times: np.ndarray
    """Times of the stored states, shape (states,)."""
    states: tuple[SphereDensity, ...]
    """Density at each of ``times``."""
    flow: SphereFlow
    """Flow that was followed."""
    evaluations: int
    """Number of times that the velocity was evaluated."""

    @property
    def final(self) -> SphereDensity:
        """Density at the last time."""
        return self.states[-1]

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        nodes = counted(self.final.angles.size, "node")
        return f"<DensityRun of {counted(len(self), 'state')} to time {self.times[-1]:g}, {nodes} at the end>"


@one_thread()
def simulate_density(
    density: SphereDensity, flow: SphereFlow, *, time: float, every: float = 0.1, tolerance: float = 1e-9
) -> DensityRun:
    """Density along an attention flow: the limit of :func:`simulate` for infinitely many tokens.

    Parameters
    ----------
    density
        Law at time zero, from :func:`circle_density` or :func:`axial_density`.
    flow
        Attention flow. With an axis, B and V must be multiples of the identity orthogonal to the axis and have the
        axis as an eigenvector.
    time
        Time span, positive.
    every
        Time between stored states, positive.
    tolerance
        Error of one step of the integrator in radians, root mean square over the nodes.

    Returns
    -------
    DensityRun
        Times and densities; :func:`phases`, :func:`lyapunov` and figures take it as they take a run of tokens.

    Examples
    --------
    >>> from hardmax import circle_density
    >>> run = simulate_density(circle_density(), SphereFlow(beta=4.0), time=1.0, every=0.5)
    >>> run.times
    array([0. , 0.5, 1. ])
    >>> bool(abs(run.final.angles - run.states[0].angles).max() < 1e-12)  # stationary
    True
    """
    given: object = density
    if not isinstance(given, SphereDensity):
        remedy = "pass circle_density(…) or axial_density(…)"
        raise InputError("density", f"a {type(given).__name__}", "must be a SphereDensity", remedy)
    field = _Field.of(density, flow)
    span = as_number("time", time, lambda x: x > 0, "must be positive", "pass for example time=14.0")
    gap = as_number("every", every, lambda x: x > 0, "must be positive", "pass for example every=0.1")
    error = as_number("tolerance", tolerance, lambda x: 1e-13 <= x <= 1e-2, "must lie in [1e-13, 1e-2]", "pass 1e-9")
    count = max(1, round(span / gap))
    if abs(count * gap - span) > 1e-9 * span:
        count = math.ceil(span / gap)
    times = np.append(gap * np.arange(count), span)
    return DensityRun(times, *_followed(_prepared(density, field), field, times, error))


@dataclass(frozen=True, eq=False)
class _Field:
    """Velocity of the angle under attention to a density."""

    kernel: Kernel | None
    """None at zero temperature."""
    B: np.ndarray
    """Score matrix in the plane of the nodes, shape (2, 2)."""
    V: np.ndarray
    """Value matrix in the plane of the nodes, shape (2, 2)."""
    flow: SphereFlow

    @staticmethod
    def of(density: SphereDensity, flow: SphereFlow) -> _Field:
        if not isinstance(flow, SphereFlow) or flow.causal:
            name = str(flow) if isinstance(flow, SphereFlow) else f"a {type(flow).__name__}"
            raise InputError("flow", name, "must be a SphereFlow without a mask", "pass SphereFlow(B, V, beta)")
        d = density.dimension
        B, V = (matrix.detach().cpu() for matrix in (flow.score_matrix(d), flow.value_matrix(d)))
        if flow.at_zero_temperature:
            B = direction_of(B)
        scores, values = (in_plane(matrix.numpy(), density, name) for matrix, name in ((B, "B"), (V, "V")))
        if flow.at_zero_temperature:
            if min(abs(np.linalg.eigvals(scores))) == 0:
                remedy = "pass a regular B or a finite beta"
                raise InputError("B", "a singular matrix", "must be regular at zero temperature", remedy)
            return _Field(None, scores, values, flow)
        return _Field(kernel_of(density, flow.beta * scores), scores, values, flow)

    def velocity(self, angles: np.ndarray, density: SphereDensity) -> np.ndarray:
        """Velocity of each node, shape (panels * nodes,), of a density moved to these angles."""
        points = on_circle(angles)
        if self.kernel is None:
            heard = points @ self.B.T
            heard /= np.linalg.norm(heard, axis=1, keepdims=True)
        else:
            heard = attended(self.kernel, angles, density.masses)
        pulled = heard @ self.V.T
        velocity = (points[:, 0] * pulled[:, 1] - points[:, 1] * pulled[:, 0]).reshape(density.angles.shape)
        # An edge must not tear: where neighbours part, differences in the last bit would grow exponentially.
        shared = 0.5 * (velocity[1:, 0] + velocity[:-1, -1])
        velocity[1:, 0] = velocity[:-1, -1] = shared
        outer = 0.5 * (velocity[0, 0] + velocity[-1, -1]) if density.axis is None else 0.0  # the poles do not move
        velocity[0, 0] = velocity[-1, -1] = outer
        return np.asarray(velocity.ravel())

    def attends_to(self, density: SphereDensity, nodes: np.ndarray) -> float:
        """Share of the attention of all mass that some nodes get."""
        if self.kernel is None:
            return 0.0
        return attention_share(self.kernel, density.angles.ravel(), density.masses, nodes)

    @property
    def longest(self) -> float:
        """Longest panel in radians."""
        return _LONGEST if self.kernel is None else min(_LONGEST, _WIDTHS / math.sqrt(max(self.kernel.size, 1e-300)))


def kernel_of(density: SphereDensity, scores: np.ndarray) -> Kernel:
    """Kernel of softmax attention to a density, for logits <scores x, y> in the plane of its nodes."""
    if density.axis is None:
        return CircleKernel(scores)
    return AxialKernel(float(scores[0, 0]), float(scores[1, 1]), density.dimension)


def in_plane(matrix: np.ndarray, density: SphereDensity, name: str) -> np.ndarray:
    """Matrix in the plane of the nodes, shape (2, 2); without the symmetry of the density an InputError."""
    if density.axis is None:
        return matrix
    axis, d = density.axis, density.dimension
    along = float(axis @ matrix @ axis)
    across = (float(np.trace(matrix)) - along) / (d - 1)
    rest = matrix - across * np.eye(d) - (along - across) * np.outer(axis, axis)
    if np.abs(rest).max() > _SYMMETRIC * max(np.abs(matrix).max(), 1e-300):
        problem = "must be b a a^T + c (I - a a^T) for the axis a of the density"
        raise InputError(
            name, f"a matrix that differs by {np.abs(rest).max():.3g}", problem, "use simulate with tokens"
        )
    return np.diag([along, across])


def energy_of(density: SphereDensity, flow: SphereFlow) -> float:
    """Interaction energy of a density at a positive, finite beta."""
    B = flow.score_matrix(density.dimension).detach().cpu().numpy()
    kernel = kernel_of(density, flow.beta * in_plane(B, density, "B"))
    return log_interaction(kernel, density.angles.ravel(), density.masses) / flow.beta


def _prepared(density: SphereDensity, field: _Field) -> SphereDensity:
    """The density with an edge where basins of the limit meet, and panels that resolve the kernel."""
    if density.axis is None:
        try:
            leading = leading_part(field.B, field.V)
        except NoLimitError:
            leading = None
        if leading is not None and leading.dimension == 1:
            normal = leading.projector[int(np.abs(leading.projector).sum(axis=1).argmax())]
            angle = math.atan2(normal[0], -normal[1])
            density = density.split_at(angle).split_at(angle + math.pi)
    while (rough := _excess(density, field.longest, 0.0) > 1).any():
        density = density.split(rough)
    return density


def _excess(density: SphereDensity, longest: float, least_mass: float) -> np.ndarray:
    """How far each panel is above the limits of its length and roughness, shape (panels,); split above one."""
    mass = density.weights.sum(axis=1)
    tail = np.abs(density.angles @ TO_LEGENDRE[-2:].T).max(axis=1) / np.clip(_TAIL / np.maximum(mass, 1e-300), *_TAILS)
    found = np.maximum(tail, (density.lengths / longest) ** 4)  # a panel of twice the length is 16 times too long
    found[mass < least_mass] = 0.0
    return np.asarray(found)


class _UnresolvedMassError(Exception):
    """Mass that was not refined is attended to."""


def _followed(
    density: SphereDensity, field: _Field, times: np.ndarray, tolerance: float
) -> tuple[tuple[SphereDensity, ...], SphereFlow, int]:
    for least_mass in _LEAST_MASSES[:-1]:
        try:
            states, evaluations = _stepped(density, field, times, tolerance, least_mass)
        except _UnresolvedMassError:
            continue
        return tuple(states), field.flow, evaluations
    states, evaluations = _stepped(density, field, times, tolerance, _LEAST_MASSES[-1])
    return tuple(states), field.flow, evaluations


def _solver(
    density: SphereDensity,
    field: _Field,
    now: float,
    span: float,
    step: float | None,
    longest: float,
    tolerance: np.ndarray,
) -> Any:  # the stubs of SciPy take no tolerance per component
    first = None if step is None else min(step, span - now)
    rounding = 100 * np.finfo(float).eps
    start = density.angles.ravel()
    solver: Any = DOP853

    def velocity(_: float, angles: np.ndarray) -> np.ndarray:
        return field.velocity(angles, density)

    return solver(velocity, now, start, span, max_step=longest, rtol=rounding, atol=tolerance, first_step=first)


def _stepped(
    density: SphereDensity, field: _Field, times: np.ndarray, tolerance: float, least_mass: float
) -> tuple[list[SphereDensity], int]:
    span, speed = float(times[-1]), float(np.linalg.norm(field.V, 2))
    longest_step = min(span, _STRETCH / speed) if speed > 0 else span
    states, evaluations, now = [density], 0, 0.0
    step: float | None = None
    while now < span:
        light = np.repeat(density.weights.sum(axis=1) < least_mass, density.angles.shape[1])
        solver = _solver(density, field, now, span, step, longest_step, np.where(light, _UNCONTROLLED, tolerance))
        while solver.status == "running":
            before = density.moved(solver.y.reshape(density.angles.shape))
            message = solver.step()
            if str(solver.status) == "failed" or (solver.t < span and solver.t - solver.t_old < _SHORTEST * span):
                found = f"steps of {solver.t - solver.t_old:.1g} at t = {solver.t:g} {message or ''}".strip()
                raise InputError("flow", found, "is too stiff", "lower beta")
            after = density.moved(solver.y.reshape(density.angles.shape))
            excess = _excess(after, field.longest, least_mass)
            if excess.max() > _TOO_LATE:
                # The panels were too rough within the step: repeat it with halves of them.
                density, now, step = before.split(excess > 1), solver.t_old, float(solver.t - solver.t_old)
                break
            inner = times[(times > solver.t_old) & (times <= solver.t)]
            if len(inner):
                between = solver.dense_output()
                states += [density.moved(between(t).reshape(density.angles.shape)) for t in inner]
                if least_mass > _LEAST_MASSES[-1] and light.any() and field.attends_to(states[-1], light) > _ATTENDED:
                    raise _UnresolvedMassError
            density, now = after, solver.t
            if (excess > 1).any():
                density, step = density.split(excess > 1), float(solver.h_abs)
                break
        evaluations += solver.nfev
        if density.angles.size > _MOST_NODES:
            found, remedy = f"{density.angles.size} nodes at t = {now:g}", "lower beta or the time"
            raise InputError("density", found, "has structures that panels do not resolve", remedy)
    return states, evaluations
