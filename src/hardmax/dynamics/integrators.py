"""Integrators by name, and the layer that moves tokens along a flow for one step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..attention.base import ALL_ROWS, FIRST, AbstractLayer, Context
from ..errors import InputError
from ..inputs import as_positive
from ..outcomes import Ending, Outcome
from ..shapes import PerToken, States, Tokens
from .flows import AbstractFlow
from .integrator_steps import AbstractIntegrator as AbstractIntegrator
from .integrator_steps import AbstractStochasticIntegrator as AbstractStochasticIntegrator
from .integrator_steps import Adaptive as Adaptive
from .integrator_steps import EulerMaruyama as EulerMaruyama
from .integrator_steps import Heun as Heun
from .integrator_steps import NoiseSplitting as NoiseSplitting
from .integrator_steps import ProjectedEuler as ProjectedEuler
from .integrator_steps import ResidualNormalise as ResidualNormalise
from .integrator_steps import RungeKutta4 as RungeKutta4
from .integrator_steps import StochasticHeun as StochasticHeun

_DEFAULT_STEP = 0.05  # twenty steps per unit of time
_MOST_STEPS = 10_000_000  # longer runs are refused

_BY_NAME: dict[str, AbstractIntegrator] = {
    "euler": ProjectedEuler(),
    "residual": ResidualNormalise(),
    "heun": Heun(),
    "rk4": RungeKutta4(),
    "adaptive": Adaptive(),
    "euler-maruyama": EulerMaruyama(),
    "stochastic-heun": StochasticHeun(),
    "noise-splitting": NoiseSplitting(),
}
_WITH_NOISE = tuple(name for name, known in _BY_NAME.items() if isinstance(known, AbstractStochasticIntegrator))


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
        Rule for the step; a flow with noise needs one with noise.
    """

    flow: AbstractFlow
    length: float
    integrator: AbstractIntegrator

    def __post_init__(self) -> None:
        if self.stochastic and not isinstance(self.integrator, AbstractStochasticIntegrator):
            raise InputError(
                "integrator",
                self.integrator.name,
                "must be one with noise for this flow",
                f"pass one of {', '.join(_WITH_NOISE)}, or leave out `integrator`",
            )

    @property
    def stochastic(self) -> bool:
        """Whether the flow has noise, so that steps need a generator."""
        return self.flow.stochastic

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST)

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        """Some rows of the tokens after the step with the number ``context.index``, shape (rows, d).

        Parameters
        ----------
        tokens
            All tokens, float64, shape (tokens, d).
        weights
            Positive weight per token, float64, shape (tokens,).
        context
            Number of the step, from which the time follows; generator of the noise, which is drawn for all tokens.
        rows
            Rows to return; all when left out.

        Returns
        -------
        Tensor
            Float64 tensor of shape (rows, d).
        """
        time = context.index * self.length
        if not isinstance(self.integrator, AbstractStochasticIntegrator) or not self.stochastic:
            return self.integrator.advance(self.flow, tokens, weights, self.length, time)[rows]
        if context.generator is None:
            remedy = "run the flow with hm.simulate(tokens, flow, time=1.0, random_state=0)"
            raise InputError("random_state", None, "must be given for a flow with noise", remedy)
        increments = self.integrator.draw(tokens, self.length, context.generator)
        return self.integrator.advance_noisy(self.flow, tokens, weights, self.length, increments, time)[rows]

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

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> States:
        """Validated states from which a run starts; an unstable step raises an error that names the limit.

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
            Tokens as the flow admits them, shape (tokens, d), or wider where they carry extra coordinates.
        """
        states = self.flow.admit(tokens, weights, dtype)
        limit = self.longest(states, weights)
        if self.length > limit:
            raise InputError(
                "step",
                f"{self.length:.4g}",
                f"must stay below the stability limit {limit:.4g} of {self.integrator.name} at these tokens",
                f"pass step={0.5 * limit:.1g}" + ("" if self.stochastic else ', or integrator="adaptive"'),
            )
        if self.stochastic:
            self._check_noise(states.shape[1])
        return states

    def _check_noise(self, dimension: int) -> None:
        amplitude = float(torch.as_tensor(self.flow.diffusion).max())
        largest = self.flow.space.largest_variance(dimension)
        if amplitude**2 * self.length > largest:
            limit = largest / amplitude**2
            raise InputError(
                "step",
                f"{self.length:.4g}",
                f"must stay below {limit:.4g}: in a longer one, noise {amplitude:g} reaches all of {self.flow.space}",
                f"pass step={0.5 * limit:.1g}",
            )

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
    flow: AbstractFlow, time: object, step: object, integrator: str | AbstractIntegrator | None
) -> tuple[FlowStep, int]:
    """Layer to repeat and number of repetitions: equal steps of at most ``step`` that end exactly at ``time``.

    Without an integrator, Heun's method is used, and noise splitting where the flow has noise.
    """
    duration = as_positive("time", time)
    longest = min(_DEFAULT_STEP, duration) if step is None else as_positive("step", step)
    count = duration / longest
    if count > _MOST_STEPS:
        raise InputError("step", longest, f"would need {count:.3g} steps", f"at most {_MOST_STEPS} are run")
    steps = max(1, math.ceil(count * (1 - 1e-12)))
    if integrator is None:
        integrator = "noise-splitting" if flow.stochastic else "heun"
    return FlowStep(flow, duration / steps, integrator_named(integrator)), steps
