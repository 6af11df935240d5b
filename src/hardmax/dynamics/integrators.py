r"""Integrators: one step of length h along a flow, and the layer that repeats it.

The stages of Heun, Runge-Kutta and the adaptive pair are evaluated at projected points, that is, on the field
:math:`F(z) = f(z/|z|)` extended off the sphere; the sum is projected once at the end. This preserves the full order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from ..attention.layer import AbstractLayer
from ..errors import InputError
from ..inputs import as_number, as_positive
from ..outcomes import Ending, Outcome
from ..shapes import PerToken, Tokens
from .flows import AbstractFlow

_DEFAULT_STEP = 0.05  # twenty steps per unit of time
_MOST_STEPS = 10_000_000  # longer runs are refused


class AbstractIntegrator(ABC):
    """Interface of an integrator: the rule for one step."""

    name: ClassVar[str]
    """Name in messages."""
    order: ClassVar[int]
    """Order of convergence in the length of the step."""
    real_interval: ClassVar[float]
    """Length of the interval of stability on the negative real axis."""

    @abstractmethod
    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float) -> Tokens:
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

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float) -> Tokens:
        return flow.project(tokens + step * flow.velocity(tokens, weights))


@dataclass(frozen=True)
class ResidualNormalise(AbstractIntegrator):
    """Residual connection and layer normalisation, as in a transformer, order one: x + h drift(x), projected.

    The drift is not projected to the tangent space first; the error is a few times that of projected Euler.
    """

    name = "residual + normalise"
    order = 1
    real_interval = 2.0

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float) -> Tokens:
        return flow.project(tokens + step * flow.drift(tokens, weights))


@dataclass(frozen=True)
class Heun(AbstractIntegrator):
    """Heun's method, order two: the mean of the velocities at the start and at the end of an Euler step."""

    name = "Heun"
    order = 2
    real_interval = 2.0

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float) -> Tokens:
        first = flow.velocity(tokens, weights)
        second = flow.velocity(flow.project(tokens + step * first), weights)
        return flow.project(tokens + 0.5 * step * (first + second))


@dataclass(frozen=True)
class RungeKutta4(AbstractIntegrator):
    """Classical Runge-Kutta method, order four."""

    name = "Runge-Kutta 4"
    order = 4
    real_interval = 2.785

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float) -> Tokens:
        def field(points: Tokens) -> Tokens:
            return flow.velocity(flow.project(points), weights)

        k1 = field(tokens)
        k2 = field(tokens + 0.5 * step * k1)
        k3 = field(tokens + 0.5 * step * k2)
        k4 = field(tokens + step * k3)
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

    def advance(self, flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float) -> Tokens:
        done, substep = 0.0, step
        first = flow.velocity(tokens, weights)
        for _ in range(_MOST_SUBSTEPS):
            substep = min(substep, step - done)
            moved, last, error = _dormand_prince(flow, tokens, weights, substep, first)
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
    flow: AbstractFlow, tokens: Tokens, weights: PerToken, step: float, first: Tokens
) -> tuple[Tokens, Tokens, float]:
    """Tokens after one substep, their velocity, and the largest estimated error of a coordinate."""
    stages = [first]
    target = tokens
    for row in _NODES:
        total = sum((c * k for c, k in zip(row, stages, strict=True) if c), torch.zeros_like(tokens))
        target = flow.project(tokens + step * total)
        stages.append(flow.velocity(target, weights))
    estimate = sum((c * k for c, k in zip(_ERROR, stages, strict=True) if c), torch.zeros_like(tokens))
    return target, stages[-1], float((step * estimate).abs().max())


_BY_NAME: dict[str, AbstractIntegrator] = {
    "euler": ProjectedEuler(),
    "residual": ResidualNormalise(),
    "heun": Heun(),
    "rk4": RungeKutta4(),
    "adaptive": Adaptive(),
}


def name_of(integrator: AbstractIntegrator) -> str:
    """Name by which :func:`integrator_named` returns an integrator of this type."""
    return next(name for name, known in _BY_NAME.items() if type(known) is type(integrator))


def integrator_named(integrator: str | AbstractIntegrator) -> AbstractIntegrator:
    """Integrator of this name; an integrator is returned unchanged."""
    if isinstance(integrator, AbstractIntegrator):
        return integrator
    if integrator not in _BY_NAME:
        raise InputError("integrator", repr(integrator), "is not known", f"pass one of {', '.join(_BY_NAME)}")
    return _BY_NAME[integrator]


@dataclass(frozen=True, eq=False)
class FlowStep(AbstractLayer):
    """Layer that moves tokens along a flow for a fixed time.

    Parameters
    ----------
    flow
        Flow to follow.
    length
        Length of the step, in units of time.
    integrator
        Rule for the step.
    """

    flow: AbstractFlow
    length: float
    integrator: AbstractIntegrator

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.integrator.advance(self.flow, tokens, weights, self.length)

    def longest(self, tokens: Tokens, weights: PerToken) -> float:
        """Longest stable step: with it the discretisation does not amplify a displacement of one token.

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).

        Returns
        -------
        float
            Length in units of time; infinite where every step is stable.
        """
        decay = self.flow.fastest_decay(tokens, weights)
        return self.integrator.real_interval / decay if decay > 0 else math.inf

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> Tokens:
        """Validated tokens from which a run starts; an unstable step raises an error that names the limit.

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).
        dtype
            Precision of the tokens that the caller passed.

        Returns
        -------
        Tensor
            Tokens as the flow admits them, shape (tokens, d).
        """
        tokens = self.flow.admit(tokens, weights, dtype)
        limit = self.longest(tokens, weights)
        if self.length > limit:
            raise InputError(
                "step",
                f"{self.length:.4g}",
                f"must stay below the stability limit {limit:.4g} of {self.integrator.name} at these tokens",
                f'pass step={0.5 * limit:.1g}, or integrator="adaptive"',
            )
        return tokens

    def in_time(self, outcome: Outcome, steps: int) -> Outcome:
        """Outcome of repeating this layer, with a sentence in units of time instead of layers.

        Parameters
        ----------
        outcome
            Outcome in layers.
        steps
            Number of steps that were run.

        Returns
        -------
        Outcome
            The same outcome, except where the requested depth was reached.
        """
        if outcome.ending is not Ending.DEPTH_REACHED:
            return outcome
        return Outcome(Ending.TIME_REACHED, f"time {steps * self.length:g} in {steps} steps of {self.integrator.name}")

    def __str__(self) -> str:
        return f"{self.flow}; {self.integrator.name} with step {self.length:g}"


def discretised(
    flow: AbstractFlow, time: object, step: object, integrator: str | AbstractIntegrator
) -> tuple[FlowStep, int]:
    """Layer to repeat and number of repetitions: equal steps of at most ``step`` that end exactly at ``time``."""
    duration = as_positive("time", time)
    longest = min(_DEFAULT_STEP, duration) if step is None else as_positive("step", step)
    count = duration / longest
    if count > _MOST_STEPS:
        raise InputError("step", longest, f"would need {count:.3g} steps", f"at most {_MOST_STEPS} are run")
    steps = max(1, math.ceil(count * (1 - 1e-12)))
    return FlowStep(flow, duration / steps, integrator_named(integrator)), steps
