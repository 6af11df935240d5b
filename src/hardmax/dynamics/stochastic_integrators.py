r"""Integrators with noise: one step of length h along :math:`dX = f(t, X)\,dt + \sigma\,dB`.

B is the Brownian motion of the space in which tokens move (:mod:`hardmax.dynamics.spaces`): on the sphere the equation
is :math:`dX = f\,dt + \sigma P_X\circ dW` in the sense of Stratonovich. All schemes take the increments of W as an
argument, so that the same path can be followed with several steps.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float

from ..shapes import PerToken, Tokens, Values
from .flows import AbstractFlow
from .runge_kutta import AbstractIntegrator, Heun


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
