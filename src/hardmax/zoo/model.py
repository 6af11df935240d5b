"""A model of the field: its equation, paper and initial tokens, and the numbers that are measured on its runs.

Some models reduce to scalar equations; functions that solve these are here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import solve_ivp

from ..attention.base import AbstractLayer, LayerSequence
from ..citations import PAPERS, PAPERS_OF_MODEL, Paper
from ..dynamics.flows import AbstractFlow
from ..dynamics.keep_and_stop_rules import Keep
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..progress import Progress
from ..randomness import seeded
from ..scalars import shown

Run = Trajectory[np.ndarray]
Number = Callable[[Run], float]


@dataclass(frozen=True, eq=False)
class FieldModel:
    """A model of the field, returned by the functions of ``hm.zoo``.

    Examples
    --------
    >>> import hardmax as hm
    >>> model = hm.zoo.kuramoto(coupling=1.0, n=100)
    >>> run = model.run(time=4.0, random_state=0)
    >>> measured, theory = model.compare(run)["order"]
    >>> round(measured, 4), round(theory, 4)
    (0.5962, 0.5962)
    """

    name: str
    """Name of its constructor in ``hm.zoo``."""
    equation: str
    """Equation in LaTeX."""
    rule: AbstractFlow | AbstractLayer
    """Flow or layer that moves the tokens."""
    n: int
    """Number of tokens."""
    d: int
    """Number of coordinates of a token."""
    parameters: Mapping[str, object]
    """Arguments of the constructor."""
    constructor: Callable[..., FieldModel]
    """Function of ``hm.zoo`` that made the model."""
    law: Callable[[np.random.Generator], np.ndarray]
    """Initial tokens of shape (n, d), drawn from a generator."""
    duration: float
    """Time of a run of a flow, or number of layers, where none is given."""
    measures: Mapping[str, Number]
    """Numbers that are measured on a run, by name."""
    theory: Mapping[str, Number] = field(default_factory=dict)
    """Predictions for measures of the same name; some depend on the start or the duration of the run."""
    critical: Mapping[str, float] = field(default_factory=dict)
    """Value of a parameter at which the model changes its behaviour, by the name of the parameter."""
    step: float = 0.05
    """Length of the step of a flow where none is given."""
    integrator: str = "rk4"
    """Integrator of a flow."""

    @property
    def in_time(self) -> bool:
        """Whether the model is a flow in continuous time; otherwise it is made of layers."""
        return isinstance(self.rule, AbstractFlow)

    @property
    def papers(self) -> tuple[Paper, ...]:
        """Papers of the model; ``hm.citation(model)`` prints them."""
        return tuple(PAPERS[key] for key in PAPERS_OF_MODEL[self.name])

    @property
    def reference(self) -> str:
        """Authors, year and arXiv number of its first paper."""
        paper = self.papers[0]
        return f"{', '.join(paper.family_names)} {paper.year}, arXiv:{paper.arxiv}"

    def start(
        self, n: int | None = None, d: int | None = None, random_state: int | np.random.Generator | None = None
    ) -> np.ndarray:
        """Initial tokens, shape (n, d).

        Parameters
        ----------
        n, d
            Number of tokens and of coordinates; those of the model when left out.
        random_state
            Seed or generator.

        Returns
        -------
        ndarray
            Float64, shape (n, d).
        """
        model = self if n is None and d is None else self._sized(n, d)
        return model.law(seeded(random_state).generator)

    def run(
        self,
        *,
        n: int | None = None,
        d: int | None = None,
        time: float | None = None,
        depth: int | None = None,
        step: float | None = None,
        random_state: int | np.random.Generator | None = None,
        keep: Keep = "all",
        progress: Progress = None,
    ) -> Trajectory[np.ndarray]:
        """Run of the model from its initial tokens.

        Parameters
        ----------
        n, d
            Number of tokens and of coordinates; those of the model when left out.
        time
            Duration of a flow; that of the model when left out.
        depth
            Number of layers; that of the model when left out.
        step
            Longest step of a flow.
        random_state
            Seed of the initial tokens and of the noise, or a generator.
        keep
            States to store, see :func:`hardmax.simulate`.
        progress
            Progress bar, see :func:`hardmax.simulate`.

        Returns
        -------
        Trajectory
            Stored states of shape (states, n, d).
        """
        model = self if n is None and d is None else self._sized(n, d)
        generator = seeded(random_state).generator
        tokens = model.law(generator)
        if model.in_time:
            if depth is not None:
                raise InputError("depth", depth, f"is for layers; {self.name} is a flow", "pass time instead")
            return simulate(
                tokens,
                model.rule,
                time=model.duration if time is None else time,
                step=model.step if step is None else step,
                integrator=model.integrator,
                keep=keep,
                random_state=generator,
                progress=progress,
            )
        if time is not None or step is not None:
            raise InputError("time", time, f"is for flows; {self.name} is made of layers", "pass depth instead")
        layers = int(model.duration) if depth is None else depth
        if isinstance(model.rule, LayerSequence) and layers > len(model.rule.layers):
            raise InputError("depth", layers, f"is more than its {len(model.rule.layers)} layers", "pass fewer")
        return simulate(tokens, model.rule, depth=layers, keep=keep, random_state=generator, progress=progress)

    def compare(self, run: Trajectory[np.ndarray]) -> dict[str, tuple[float, float]]:
        """Measured value and prediction of each measure for which there is a theory.

        Parameters
        ----------
        run
            Run of this model.

        Returns
        -------
        dict
            ``{measure: (measured, predicted)}``.
        """
        return {name: (self.measures[name](run), predict(run)) for name, predict in self.theory.items()}

    def measure(self, name: str, run: Trajectory[np.ndarray]) -> float:
        """One measure of a run.

        Parameters
        ----------
        name
            Name among ``measures``.
        run
            Run of this model.

        Returns
        -------
        float
            The measured number.
        """
        if name not in self.measures:
            remedy = f"pass one of {', '.join(self.measures)}"
            raise InputError("measure", shown(name), f"is no measure of {self.name}", remedy)
        return self.measures[name](run)

    def with_parameters(self, **changes: object) -> FieldModel:
        """The model with some parameters changed.

        Parameters
        ----------
        **changes
            New values, by the names of the constructor's arguments.

        Returns
        -------
        FieldModel
            A new model.
        """
        unknown = [name for name in changes if name not in self.parameters]
        if unknown:
            remedy = f"pass one of {', '.join(self.parameters)}"
            raise InputError(unknown[0], shown(changes[unknown[0]]), f"is no parameter of {self.name}", remedy)
        return self.constructor(**{**self.parameters, **changes})

    def _sized(self, n: int | None, d: int | None) -> FieldModel:
        """The model with other numbers of tokens and coordinates."""
        wanted = {"n": self.n if n is None else n, "d": self.d if d is None else d}
        model = self.with_parameters(**{k: v for k, v in wanted.items() if k in self.parameters})
        for name, own in (("n", model.n), ("d", model.d)):
            if own != wanted[name] and (n, d)[name == "d"] is not None:
                raise InputError(name, wanted[name], f"must be {own} for {self.name}", f"leave out {name}")
        return model

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.name}({values}): {self.rule}"

    def __repr__(self) -> str:
        return f"<{self}>"


# Relative and absolute error of scalar equations, far below that of a measurement.
_ACCURACY = 1e-10


def order(run: Run) -> float:
    """Length of the mean token at the end: 1 where all tokens of length one agree, near 0 where they are spread."""
    return float(np.linalg.norm(run.final.mean(axis=0)))


def initial_order(run: Run) -> float:
    """Length of the mean token at the first stored state."""
    return float(np.linalg.norm(run.tokens[0].mean(axis=0)))


def duration(run: Run) -> float:
    """Time between the first and the last stored state of a flow."""
    times = times_of(run)
    return float(times[-1] - times[0])


def times_of(run: Run) -> np.ndarray:
    """Times of the stored states of a flow, shape (states,)."""
    if run.times is None:
        raise InputError("run", shown(run), "must be a run of a flow", "pass model.run() of the same model")
    return run.times


def spread(run: Run) -> float:
    """Largest distance of two tokens at the end."""
    tokens = run.final
    largest = 0.0
    for token in tokens:
        largest = max(largest, float(np.linalg.norm(tokens - token, axis=1).max()))
    return largest


def mean_cosine(tokens: np.ndarray) -> float:
    """Mean cosine of the angle between two different tokens."""
    unit = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    n = len(unit)
    total = float(np.square(unit.sum(axis=0)).sum())
    return (total - n) / (n * (n - 1))


def cosine(run: Run) -> float:
    """Mean cosine of the angle between two different tokens at the end."""
    return mean_cosine(run.final)


def energy_of(tokens: np.ndarray, beta: float) -> float:
    r"""Interaction energy relative to its maximum, :math:`n^{-2}\sum_{ij} e^{\beta(\langle x_i, x_j\rangle - 1)}`."""
    return float(np.exp(beta * (tokens @ tokens.T - 1)).mean())


def solved(rates: Callable[[float, np.ndarray], np.ndarray], start: np.ndarray, time: float) -> np.ndarray:
    """Solution of a small system of ordinary differential equations at ``time``."""
    if time == 0:
        return start
    found = solve_ivp(rates, (0.0, time), start, rtol=_ACCURACY, atol=_ACCURACY, method="LSODA")
    return np.asarray(found.y[:, -1])


def attention_to_others(gamma: float, beta: float, n: int) -> float:
    """Softmax weight of one other token, where all pairs of n tokens have the cosine ``gamma``."""
    return 1 / (math.exp(beta * (1 - gamma)) + n - 1)


def unit_vectors(generator: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Independent uniform points of the unit sphere, shape (n, d)."""
    points = generator.normal(size=(n, d))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def equiangular_tokens(n: int, rho: float) -> np.ndarray:
    """n unit vectors in R^n all pairs of which have the cosine ``rho``, 0 <= rho < 1, shape (n, n)."""
    # x_i = a e_i + b (1, ..., 1) with a^2 = 1 - rho and n b^2 + 2 a b = rho.
    a = math.sqrt(1 - rho)
    b = (math.sqrt(a * a + n * rho) - a) / n
    return a * np.eye(n) + b
