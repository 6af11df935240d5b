"""Flows made from another flow: with noise, with parameters that depend on time, with momentum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch

from ..errors import InputError
from ..inputs import as_number, as_positive, as_tensor, as_tokens
from ..scalars import shown
from ..shapes import Array, ArrayLike, ArrayT_co, PerToken, States, Tokens, Values
from .flows import AbstractFlow, AbstractWrappedFlow
from .spaces import AbstractSpace
from .trajectory import Trajectory

_LARGEST_NOISE = 1e100  # squares of increments must not overflow


def _checked(flow: object, argument: str = "flow") -> AbstractFlow:
    if not isinstance(flow, AbstractFlow):
        raise InputError(argument, shown(flow), "must be a flow", "pass for example hm.SphereFlow(beta=2.0)")
    return flow


@dataclass(frozen=True, eq=False, init=False)
class NoisyFlow(AbstractWrappedFlow):
    r"""A flow with independent noise on every token:

    .. math:: dX_i = f_i(X)\, dt + \sigma\, dB_i .

    In R^d, B is a Brownian motion. On the unit sphere it is Brownian motion there, with the generator
    :math:`\tfrac{\sigma^2}{2}\Delta`: the equation is :math:`dX_i = f_i\,dt + \sigma P_{X_i}\circ dW_i` in the sense of
    Stratonovich. An equation with the noise :math:`\sqrt{2\kappa}\,dB` has :math:`\sigma = \sqrt{2\kappa}`. With a
    :class:`hardmax.MomentumFlow` the noise acts on the momenta (Langevin dynamics).

    Parameters
    ----------
    flow
        Flow to which noise is added.
    noise
        Amplitude :math:`\sigma`, not negative; in R^d it may be one number per coordinate, shape (d,).

    Examples
    --------
    >>> import hardmax as hm
    >>> print(hm.NoisyFlow(hm.SphereFlow(beta=2.0), 0.3))
    attention flow on the sphere, beta = 2, with noise 0.3
    """

    flow: AbstractFlow
    noise: float | Values

    def __init__(self, flow: AbstractFlow, noise: ArrayLike) -> None:
        space = _checked(flow).space
        if flow.stochastic:
            raise InputError("flow", str(flow), "has noise already", "pass one noise for all of it")
        object.__setattr__(self, "flow", flow)
        object.__setattr__(self, "noise", _amplitude(noise, space))

    @property
    def stochastic(self) -> bool:
        """True, also for an amplitude of zero."""
        return True

    @property
    def diffusion(self) -> float | Values:
        """Amplitude of the noise."""
        return self.noise

    def at(self, time: float) -> AbstractFlow:
        frozen = self.flow.at(time)
        return self if frozen is self.flow else NoisyFlow(frozen, self.noise)

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> States:
        if isinstance(self.noise, torch.Tensor) and len(self.noise) != tokens.shape[1]:
            raise InputError(
                "noise",
                f"{len(self.noise)} numbers",
                f"must have one per coordinate, {tokens.shape[1]}",
                "pass one number for all coordinates",
            )
        return self.flow.admit(tokens, weights, dtype)

    def __str__(self) -> str:
        noise = f"{self.noise:g}" if isinstance(self.noise, float) else "per coordinate"
        return f"{self.flow}, with noise {noise}"


def _amplitude(noise: ArrayLike, space: AbstractSpace) -> float | Values:
    remedy = "pass for example noise=0.3"
    values, _ = as_tensor("noise", noise)
    if np.ndim(noise) == 0:  # type: ignore[arg-type]  # checked above
        problem = "must be finite and not negative"
        return as_number("noise", values.item(), lambda x: 0 <= x <= _LARGEST_NOISE, problem, remedy)
    if not space.per_coordinate:
        problem = f"must be one number: it is the same in all directions of {space}"
        raise InputError("noise", f"shape {tuple(values.shape)}", problem, remedy)
    if values.ndim != 1:
        problem = "must be one number, or one per coordinate"
        raise InputError("noise", f"shape {tuple(values.shape)}", problem, remedy)
    if not bool(((values >= 0) & (values <= _LARGEST_NOISE)).all()):
        raise InputError("noise", shown(values.tolist()), "must be finite and not negative", remedy)
    return values.to(torch.float64)


class TimeDependentFlow(AbstractWrappedFlow):
    r"""A flow whose parameters depend on time.

    Parameters
    ----------
    flow_at
        Function of the time since the start of the run; returns the flow of that moment. All of them move tokens in the
        same space, and either all or none have noise.

    Examples
    --------
    >>> import hardmax as hm
    >>> cooling = hm.TimeDependentFlow(lambda t: hm.SphereFlow(beta=1.0 + t))
    >>> print(cooling.at(3.0))
    attention flow on the sphere, beta = 4
    """

    def __init__(self, flow_at: Callable[[float], AbstractFlow]) -> None:
        if not callable(flow_at):
            raise InputError(
                "flow_at",
                shown(flow_at),
                "must be a function of time",
                "pass for example lambda t: hm.SphereFlow(beta=1.0 + t)",
            )
        self._flow_at = flow_at
        self.flow = self.at(0.0)

    def at(self, time: float) -> AbstractFlow:
        return _checked(self._flow_at(time), "flow_at(time)").at(time)

    def __str__(self) -> str:
        return f"time-dependent flow, at first {self.flow}"


@dataclass(frozen=True)
class PhaseSpace(AbstractSpace):
    """Positions in a space and momenta tangential to it, side by side: shape (tokens, 2d). Noise acts on the momenta.

    Parameters
    ----------
    space
        Space of the positions.
    """

    space: AbstractSpace

    def project(self, points: Tokens) -> Tokens:
        positions, momenta = points.chunk(2, dim=1)
        positions = self.space.project(positions)
        return torch.cat([positions, self.space.tangent(positions, momenta)], dim=1)

    def tangent(self, points: Tokens, vectors: Tokens) -> Tokens:
        """Tangential momenta with zeros for positions, on which no noise acts, shape (tokens, 2d)."""
        kicks = self.space.tangent(points.chunk(2, dim=1)[0], vectors.chunk(2, dim=1)[1])
        return torch.cat([torch.zeros_like(kicks), kicks], dim=1)

    def brownian(self, points: Tokens, increments: Tokens, variance: float) -> Tokens:
        return points + self.tangent(points, increments)

    def curvature(self, points: Tokens, velocities: Tokens) -> Tokens:
        raise InputError("flow", str(self), "has momenta already", "pass a flow without momentum")

    def __str__(self) -> str:
        return f"positions in {self.space} and their momenta"


@dataclass(frozen=True, eq=False, init=False)
class MomentumFlow(AbstractWrappedFlow):
    r"""A flow of second order: the velocity f of another flow acts as a force,

    .. math:: \dot x = \frac{p}{m}, \qquad \dot p = f(x) - \frac{c}{m} p ,

    that is :math:`m\ddot x + c\dot x = f(x)`. For :math:`c = 1` and :math:`m \to 0` tokens follow the other flow. On
    the sphere :math:`\dot p` is the covariant derivative, so that momenta stay tangential.

    The state of a token has 2d coordinates, its position and its momentum: ``run.tokens`` has shape (states, tokens,
    2d), and :meth:`positions`, :meth:`momenta` and :meth:`without_momenta` separate them.

    Parameters
    ----------
    flow
        Flow whose velocity is the force, without noise: noise is added by ``NoisyFlow(MomentumFlow(flow), 0.3)``.
    friction
        Coefficient c, not negative.
    mass
        Coefficient m, positive.
    momenta
        Initial momentum of each token, shape (tokens, d); zero when left out. On the sphere its tangential part counts.

    Examples
    --------
    >>> import hardmax as hm
    >>> flow = hm.MomentumFlow(hm.CallableFlow(lambda z, w: -z), friction=0.0)
    >>> run = hm.simulate([[1.0]], flow, time=1.0, integrator="rk4")
    >>> flow.positions(run)[-1].round(4), flow.momenta(run)[-1].round(4)
    (array([[0.5403]]), array([[-0.8415]]))
    """

    flow: AbstractFlow
    friction: float
    mass: float
    initial: Tokens | None
    """Initial momenta, shape (tokens, d); None for zero."""

    def __init__(
        self,
        flow: AbstractFlow,
        friction: float = 1.0,
        mass: float = 1.0,
        *,
        momenta: ArrayLike | None = None,
    ) -> None:
        space = _checked(flow).space
        if flow.stochastic or isinstance(space, PhaseSpace):
            remedy = "pass NoisyFlow(MomentumFlow(flow), noise)" if flow.stochastic else "pass the flow inside it"
            raise InputError("flow", str(flow), "must have neither noise nor momentum", remedy)
        remedy = "pass for example friction=1.0"
        object.__setattr__(self, "flow", flow)
        accept = as_number("friction", friction, lambda x: x >= 0, "must be finite and not negative", remedy)
        object.__setattr__(self, "friction", accept)
        object.__setattr__(self, "mass", as_positive("mass", mass))
        start = None if momenta is None else as_tokens(momenta, argument="momenta")[0].to(torch.float64)
        object.__setattr__(self, "initial", start)

    @property
    def space(self) -> AbstractSpace:
        """Positions and momenta."""
        return PhaseSpace(self.flow.space)

    def at(self, time: float) -> AbstractFlow:
        frozen = self.flow.at(time)
        same = frozen is self.flow
        return self if same else MomentumFlow(frozen, self.friction, self.mass, momenta=self.initial)

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.velocity(tokens, weights)

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.velocity_of(slice(None), tokens, weights)

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.velocity_of(rows, tokens, weights)

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        positions, momenta = tokens.chunk(2, dim=1)
        speeds = momenta[rows] / self.mass
        if rows == slice(None):
            force = self.flow.velocity(positions, weights)
        else:
            force = self.flow.velocity_of(rows, positions, weights)
        turning = self.mass * self.flow.space.curvature(positions[rows], speeds)
        return torch.cat([speeds, force - self.friction * speeds + turning], dim=1)

    def project(self, tokens: Tokens) -> Tokens:
        return self.space.project(tokens)

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> States:
        positions = self.flow.admit(tokens, weights, dtype)
        momenta = torch.zeros_like(positions) if self.initial is None else self.initial.to(positions.device)
        if momenta.shape != positions.shape:
            raise InputError(
                "momenta",
                f"shape {tuple(momenta.shape)}",
                f"must have shape {tuple(positions.shape)} as the tokens have",
                "pass one momentum per token",
            )
        return torch.cat([positions, self.flow.space.tangent(positions, momenta)], dim=1)

    def fastest_decay(self, tokens: Tokens, weights: PerToken) -> float:
        # Eigenvalues of m s^2 + c s + k, where k is the rate of the flow itself; the larger one where both are real.
        stiffness = self.flow.fastest_decay(tokens.chunk(2, dim=1)[0], weights)
        if self.friction == 0:
            return 0.0
        apart = max(0.0, 1 - 4 * stiffness / self.friction * (self.mass / self.friction))
        return self.friction / self.mass * (1 + math.sqrt(apart)) / 2

    def positions(self, run: Trajectory[ArrayT_co]) -> ArrayT_co:
        """Positions of the tokens of a run, shape (states, tokens, d).

        Parameters
        ----------
        run
            Run of this flow, with or without noise.

        Returns
        -------
        array or tensor
            Of the kind of ``run.tokens``.
        """
        return cast(ArrayT_co, _states(run)[..., : run.tokens.shape[-1] // 2])

    def momenta(self, run: Trajectory[ArrayT_co]) -> ArrayT_co:
        """Momenta of the tokens of a run, shape (states, tokens, d).

        Parameters
        ----------
        run
            Run of this flow, with or without noise.

        Returns
        -------
        array or tensor
            Of the kind of ``run.tokens``.
        """
        return cast(ArrayT_co, _states(run)[..., run.tokens.shape[-1] // 2 :])

    def without_momenta(self, run: Trajectory[ArrayT_co]) -> Trajectory[ArrayT_co]:
        """The run with positions alone, for figures.

        Parameters
        ----------
        run
            Run of this flow, with or without noise.

        Returns
        -------
        Trajectory
            The same run; its ``tokens`` have shape (states, tokens, d).
        """
        return replace(run, tokens=self.positions(run))

    def __str__(self) -> str:
        return f"{self.flow}, with momentum (friction {self.friction:g}, mass {self.mass:g})"


def _states(run: Trajectory) -> Array:
    if not isinstance(run, Trajectory) or run.tokens.shape[-1] % 2:
        remedy = "pass simulate(tokens, flow, time=…) of this flow"
        raise InputError("run", shown(run), "must be a run of a flow with momentum", remedy)
    return run.tokens
