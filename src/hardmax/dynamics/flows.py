"""Flows in continuous time: layers whose number grows while each does less.

A flow says how fast tokens move; an integrator turns it into a layer, and :func:`hardmax.simulate` repeats that layer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from ..attention.layer import AbstractLayer
from ..errors import InputError
from ..inputs import as_positive
from ..outcomes import Ending, Outcome
from ..shapes import PerToken, Tokens
from .integrators import AbstractIntegrator, integrator_named

DEFAULT_STEP = 0.05
_MOST_STEPS = 10_000_000


class AbstractFlow(ABC):
    """What every flow can do: say where tokens may be, and how fast they move there."""

    @abstractmethod
    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """What pulls each token, before it is bent to the space where tokens live."""

    @abstractmethod
    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """How fast each token moves."""

    @abstractmethod
    def project(self, tokens: Tokens) -> Tokens:
        """The nearest points of the space where tokens live."""

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """What pulls some of the tokens; flows that can leave out the work for the others do."""
        return self.drift(tokens, weights)[rows]

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """How fast some of the tokens move."""
        return self.velocity(tokens, weights)[rows]

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> Tokens:
        """Check tokens that came in with precision ``dtype`` before a run; give back those to start from."""
        return tokens

    def fastest_decay(self, tokens: Tokens, weights: PerToken) -> float:
        """The largest rate at which a small displacement of one token shrinks; steps must resolve it."""
        return 0.0


@dataclass(frozen=True, eq=False)
class FlowStep(AbstractLayer):
    """The layer that moves tokens along a flow for the time ``length``."""

    flow: AbstractFlow
    length: float
    integrator: AbstractIntegrator

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.integrator.advance(self.flow, tokens, weights, self.length)

    def longest(self, tokens: Tokens, weights: PerToken) -> float:
        """The longest step with which a displacement of one of these tokens does not grow by discretisation."""
        decay = self.flow.fastest_decay(tokens, weights)
        return self.integrator.real_interval / decay if decay > 0 else math.inf

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> Tokens:
        """Check tokens before a run; an unstable step raises an error that says the limit."""
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
        """The outcome of repeating this layer, told in time instead of layers."""
        if outcome.ending is not Ending.DEPTH_REACHED:
            return outcome
        return Outcome(Ending.TIME_REACHED, f"time {steps * self.length:g} in {steps} steps of {self.integrator.name}")

    def __str__(self) -> str:
        return f"{self.flow}; {self.integrator.name} with step {self.length:g}"


def discretised(
    flow: AbstractFlow, time: object, step: object, integrator: str | AbstractIntegrator
) -> tuple[FlowStep, int]:
    """The layer to repeat and how often: equal steps, at most ``step`` long, that end exactly at ``time``."""
    duration = as_positive("time", time)
    longest = min(DEFAULT_STEP, duration) if step is None else as_positive("step", step)
    count = duration / longest
    if count > _MOST_STEPS:
        raise InputError("step", longest, f"would need {count:.3g} steps", f"at most {_MOST_STEPS} are run")
    steps = max(1, math.ceil(count * (1 - 1e-12)))
    return FlowStep(flow, duration / steps, integrator_named(integrator)), steps
