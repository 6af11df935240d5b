r"""Integrators: one step of length h along a flow, without noise or along :math:`dX = f(t, X)\,dt + \sigma\,dB`.

The stages of Heun, Runge-Kutta and the adaptive pair are evaluated at projected points, that is, on the field
:math:`F(z) = f(z/|z|)` extended off the sphere; the sum is projected once at the end. This preserves the full order.
Where a flow depends on time, each stage is evaluated at its own time.

B is the Brownian motion of the space in which tokens move (:mod:`hardmax.dynamics.spaces`): on the sphere the equation
is :math:`dX = f\,dt + \sigma P_X\circ dW` in the sense of Stratonovich. All schemes take the increments of W as an
argument, so that the same path can be followed with several steps.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float

from ..errors import InputError
from ..inputs import as_number
from ..shapes import PerToken, Tokens, Values
from .flows import AbstractFlow


class AbstractIntegrator(ABC):
    """Interface of an integrator: the rule for one step."""

    name: ClassVar[str]
    """Name in messages."""
    order: ClassVar[int]
    """Order of convergence in the length of the step."""
    real_interval: ClassVar[float]
    """Length of the interval of stability on the negative real axis."""

    @abstractmethod
    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float = 0.0) -> Tokens:
        """Tokens after the time ``step``, shape (tokens, d).

        Parameters
        ----------
        flow
            Flow to follow.
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).
        step
            Length of the step, in units of time.
        time
            Time at the beginning of the step; it matters for flows that depend on time.

        Returns
        -------
        Tensor
            Shape (tokens, d), projected onto the space of the flow.
        """


@dataclass(frozen=True)
class ProjectedEuler(AbstractIntegrator):
    """Projected Euler method, order one: x + h f(x), projected."""

    name = "projected Euler"
    order = 1
    real_interval = 2.0

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float = 0.0) -> Tokens:
        return flow.project(tokens + step * flow.at(time).velocity(tokens, weights))


@dataclass(frozen=True)
class ResidualNormalise(AbstractIntegrator):
    """Residual connection and layer normalisation, as in a transformer, order one: x + h drift(x), projected.

    The drift is not projected to the tangent space first; the error is a few times that of projected Euler.
    """

    name = "residual + normalise"
    order = 1
    real_interval = 2.0

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float = 0.0) -> Tokens:
        return flow.project(tokens + step * flow.at(time).drift(tokens, weights))


@dataclass(frozen=True)
class Heun(AbstractIntegrator):
    """Heun's method, order two: the mean of the velocities at the start and at the end of an Euler step."""

    name = "Heun"
    order = 2
    real_interval = 2.0

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float = 0.0) -> Tokens:
        first = flow.at(time).velocity(tokens, weights)
        second = flow.at(time + step).velocity(flow.project(tokens + step * first), weights)
        return flow.project(tokens + 0.5 * step * (first + second))


@dataclass(frozen=True)
class RungeKutta4(AbstractIntegrator):
    """Classical Runge-Kutta method, order four."""

    name = "Runge-Kutta 4"
    order = 4
    real_interval = 2.785

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float = 0.0) -> Tokens:
        start, middle, end = flow.at(time), flow.at(time + 0.5 * step), flow.at(time + step)
        k1 = start.velocity(flow.project(tokens), weights)
        k2 = middle.velocity(flow.project(tokens + 0.5 * step * k1), weights)
        k3 = middle.velocity(flow.project(tokens + 0.5 * step * k2), weights)
        k4 = end.velocity(flow.project(tokens + step * k3), weights)
        return flow.project(tokens + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))


# Dormand and Prince 1980, order 5 with an embedded order 4; the last stage is the next step's first.
_NODES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_MOST_SUBSTEPS = 100_000  # per step; a tolerance that needs more is refused


@dataclass(frozen=True)
class Adaptive(AbstractIntegrator):
    """Dormand-Prince 5(4) with substeps inside each step, chosen so that the error estimate stays below a tolerance.

    States are stored once per step, so runs with different tolerances can be compared state by state.

    Parameters
    ----------
    tolerance
        Largest estimated error of a coordinate per substep, in (0, 1).
    """

    tolerance: float = 1e-8

    name = "adaptive Dormand-Prince 5(4)"
    order = 5
    real_interval = float("inf")  # substeps shrink until the error estimate allows them

    def __post_init__(self) -> None:
        as_number("tolerance", self.tolerance, lambda x: 0 < x < 1, "must lie in (0, 1)", "pass for example 1e-8")

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float = 0.0) -> Tokens:
        done, substep = 0.0, step
        first = flow.at(time).velocity(tokens, weights)
        for _ in range(_MOST_SUBSTEPS):
            substep = min(substep, step - done)
            moved, last, error = _dormand_prince(flow, tokens, weights, substep, time + done, first)
            # The estimate falls like the fifth power of the substep; 0.9 leaves room for its own error.
            factor = 5.0 if error == 0 else min(5.0, max(0.2, 0.9 * (self.tolerance / error) ** 0.2))
            if error <= self.tolerance:
                done += substep
                if step - done <= 1e-14 * step:
                    return moved
                tokens, first = moved, last
            substep *= factor
        raise InputError(
            "tolerance",
            self.tolerance,
            f"needs more than {_MOST_SUBSTEPS} substeps in one step of {step:g}",
            "raise the tolerance or lower beta",
        )


def _dormand_prince(
    flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float, first: Tokens
) -> tuple[Tokens, Tokens, float]:
    """Tokens after one substep, their velocity, and the largest estimated error of a coordinate."""
    stages = [first]
    target = tokens
    for row in _NODES:
        total = sum((c * k for c, k in zip(row, stages, strict=True) if c), torch.zeros_like(tokens))
        target = flow.project(tokens + step * total)
        moment = time + step * sum(row)  # each row of nodes sums to the share of the step at which its stage lies
        stages.append(flow.at(moment).velocity(target, weights))
    estimate = sum((c * k for c, k in zip(_ERROR, stages, strict=True) if c), torch.zeros_like(tokens))
    return target, stages[-1], float((step * estimate).abs().max())


class AbstractStochasticIntegrator(AbstractIntegrator):
    """Interface of an integrator for flows with noise; ``order`` is the weak order, that of expected values."""

    substeps: ClassVar[int] = 1
    """Number of increments of the Brownian motion that one step uses, over equal parts of the step."""

    @abstractmethod
    def advance_noisy(
        self,
        flow: AbstractFlow,
        tokens: Tokens,
        weights: PerToken,
        step: float,
        increments: Float[torch.Tensor, "part token coordinate"],
        time: float = 0.0,
    ) -> Tokens:
        """Tokens after the time ``step`` for given increments of the Brownian motion, shape (tokens, d).

        Parameters
        ----------
        flow
            Flow to follow.
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).
        step
            Length of the step, in units of time.
        increments
            Increments of a standard Brownian motion over the parts of the step, each of variance ``step / substeps``,
            shape (substeps, tokens, d).
        time
            Time at the beginning of the step; it matters for flows that depend on time.

        Returns
        -------
        Tensor
            Shape (tokens, d), projected onto the space of the flow.
        """

    def draw(
        self, tokens: Tokens, step: float, generator: torch.Generator
    ) -> Float[torch.Tensor, "part token coordinate"]:
        """Increments for one step, shape (substeps, tokens, d), the same on every device.

        Parameters
        ----------
        tokens
            Tokens that will move, shape (tokens, d).
        step
            Length of the step, in units of time.
        generator
            Generator on the CPU.

        Returns
        -------
        Tensor
            Independent normal numbers of variance ``step / substeps``, on the device of the tokens.
        """
        shape = (self.substeps, *tokens.shape)
        normal = torch.randn(shape, dtype=torch.float64, generator=generator).to(tokens.device)
        return math.sqrt(step / self.substeps) * normal

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, time: float = 0.0) -> Tokens:
        """Tokens after the time ``step`` without noise, shape (tokens, d).

        Parameters
        ----------
        flow
            Flow to follow.
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).
        step
            Length of the step, in units of time.
        time
            Time at the beginning of the step.

        Returns
        -------
        Tensor
            Shape (tokens, d), projected onto the space of the flow.
        """
        return self.advance_noisy(flow, tokens, weights, step, tokens.new_zeros((self.substeps, *tokens.shape)), time)


@dataclass(frozen=True)
class EulerMaruyama(AbstractStochasticIntegrator):
    r"""Euler-Maruyama method, weak order one: :math:`x + h f(x) + \sigma P_x \Delta W`, projected."""

    name = "Euler-Maruyama"
    order = 1
    real_interval = 2.0

    def advance_noisy(
        self,
        flow: AbstractFlow,
        tokens: Tokens,
        weights: PerToken,
        step: float,
        increments: Float[torch.Tensor, "part token coordinate"],
        time: float = 0.0,
    ) -> Tokens:
        return flow.project(tokens + _slope(flow.at(time), tokens, weights, step, increments))


@dataclass(frozen=True)
class StochasticHeun(AbstractStochasticIntegrator):
    """Stochastic Heun method: the mean of drift and noise at the start and at the end of an Euler-Maruyama step.

    In Euclidean space, where the noise does not depend on the tokens, the weak order is two. On the sphere, where the
    method gives the solution in the sense of Stratonovich, it is one.
    """

    name = "stochastic Heun"
    order = 1
    real_interval = 2.0

    def advance_noisy(
        self,
        flow: AbstractFlow,
        tokens: Tokens,
        weights: PerToken,
        step: float,
        increments: Float[torch.Tensor, "part token coordinate"],
        time: float = 0.0,
    ) -> Tokens:
        first = _slope(flow.at(time), tokens, weights, step, increments)
        second = _slope(flow.at(time + step), flow.project(tokens + first), weights, step, increments)
        return flow.project(tokens + 0.5 * (first + second))


@dataclass(frozen=True)
class NoiseSplitting(AbstractStochasticIntegrator):
    """Half a step of Brownian motion, a step of Heun along the drift, half a step of Brownian motion; weak order two.

    This is Strang splitting: of order two since both parts are, in Euclidean space and on the sphere. The step of
    Brownian motion is exact in law in Euclidean space and on the circle.
    """

    name = "noise splitting"
    order = 2
    real_interval = 2.0
    substeps = 2

    def advance_noisy(
        self,
        flow: AbstractFlow,
        tokens: Tokens,
        weights: PerToken,
        step: float,
        increments: Float[torch.Tensor, "part token coordinate"],
        time: float = 0.0,
    ) -> Tokens:
        before, after = increments
        # The amplitude in the middle of each half step: the variance is right to the third power of the step.
        tokens = _brownian(flow.at(time + 0.25 * step), tokens, 0.5 * step, before)
        tokens = Heun().advance(flow, tokens, weights, step, time)
        return _brownian(flow.at(time + 0.75 * step), tokens, 0.5 * step, after)


def _slope(
    flow: AbstractFlow,
    tokens: Tokens,
    weights: PerToken,
    step: float,
    increments: Float[torch.Tensor, "part token coordinate"],
) -> Tokens:
    """Displacement of an Euler-Maruyama step before the projection, shape (tokens, d)."""
    moved = step * flow.velocity(tokens, weights)
    if not flow.stochastic:
        return moved
    return moved + flow.space.tangent(tokens, _amplitude(flow, tokens) * increments.sum(dim=0))


def _brownian(flow: AbstractFlow, tokens: Tokens, duration: float, increment: Tokens) -> Tokens:
    if not flow.stochastic:
        return tokens
    sigma = _amplitude(flow, tokens)
    # One number where the space needs one; NoisyFlow refuses several amplitudes there.
    variance = duration * (sigma**2 if isinstance(sigma, float) else float((sigma**2).max()))
    return flow.space.brownian(tokens, sigma * increment, variance)


def _amplitude(flow: AbstractFlow, tokens: Tokens) -> float | Values:
    """Amplitude of the noise: one number, or one per coordinate on the device of the tokens, shape (d,)."""
    sigma = flow.diffusion
    return sigma.to(tokens.device) if isinstance(sigma, torch.Tensor) else sigma
