"""The Models page as data: a model of ``hm.zoo``, the ranges of its parameters, and the settings of its picture."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import hardmax as hm

from ...attention.base import LayerSequence
from ...errors import InputError
from ...scalars import shown
from ...zoo.equiangular_tokens import SCHEMES
from ..page import choice, number, whole

Value = bool | int | float | str | tuple[float, ...]
FRAMES = 40
"""Steps of the player over a run."""
FIRST_SEEN = FRAMES // 4
"""Frame that is shown at first: at the end many models are a single point."""
MOST_SEED = 2**31 - 1
# Entries of a tuple (heads, clusters, coordinates) that fit into a field and an address.
_MOST_ENTRIES = 8

TITLES = {
    "kuramoto": "Kuramoto's oscillators",
    "sphere_attention": "Self-attention on the sphere",
    "metastable": "Metastable clusters",
    "causal_sphere": "Causal attention on the sphere",
    "normalisation": "Normalisation schemes",
    "equiangular": "Equiangular tokens",
    "long_context": "Long context",
    "noisy": "Noise and its critical coupling",
    "multi_head": "Several heads",
    "value_spectrum": "Value matrix with a spectrum",
    "sinkhorn": "Sinkhorn attention",
    "frank_wolfe": "Frank–Wolfe steps",
    "rank_collapse": "Rank collapse",
}
"""Names to show; a model without one is shown by the name of its constructor."""

WORDS = {
    "kuramoto": "Oscillators pull each other to one phase. With frequencies of half width Δ they agree only above the "
    "coupling 2Δ.",
    "sphere_attention": "Tokens that start in one hemisphere meet in one point. Near it, 1 − cos decays with rate 2.",
    "metastable": "Clusters stay apart for a time that grows exponentially with β; each merger lifts the energy by a "
    "stair. Theory replaces each cluster by one heavy token.",
    "causal_sphere": "Each token attends to earlier ones only. The first token (star) never moves, and all others tend "
    "to it. Colours follow the order of the tokens.",
    "normalisation": "The place of the normalisation sets the speed: tokens become parallel exponentially fast with "
    "post and nGPT, and only like 1/t² with pre, peri and mixed.",
    "equiangular": "All pairs of tokens have the same cosine and keep it equal, so one equation gives the cosine.",
    "long_context": "One layer at β = γ log n. Attention averages all tokens for γ below 1/(1 − ρ) and leaves each "
    "token where it is above.",
    "noisy": "Tokens stay uniform on the sphere below the critical coupling and gather above it. The predicted growth "
    "is that of a small mean token: it holds for many tokens that are still nearly uniform.",
    "multi_head": "Heads with inverse temperatures of their own; their velocities add, so one equation gives the "
    "cosine of all pairs.",
    "value_spectrum": "The rescaled tokens z are drawn. Where the largest eigenvalue is positive and simple, they "
    "gather on at most three parallel lines; for equal eigenvalues, on the boundary of a polygon.",
    "sinkhorn": "Rows and columns of the weights sum to one, so the mean token is known exactly.",
    "frank_wolfe": "Hardmax attention as Frank–Wolfe steps. With A = −I all tokens tend to one of them, of small "
    "length.",
    "rank_collapse": "Without a skip connection tokens become equal doubly exponentially: the logarithm of the "
    "residual triples in each layer.",
}
"""What to look at, by model."""


@dataclass(frozen=True)
class Parameter:
    """An argument of a constructor that has a control."""

    name: str
    label: str
    default: Value
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    options: Mapping[str, Value] = field(default_factory=dict)
    """Values to choose from, by their labels; empty for numbers and tuples."""

    def read(self, state: Mapping[str, str]) -> Value:
        """The value in an address; the default for an invalid one."""
        if self.options:
            named = {str(value): value for value in self.options.values()}
            return named[choice(state, self.name, str(self.default), named)]
        if isinstance(self.default, tuple):
            try:
                return numbers_in(self.name, state.get(self.name, ""))
            except InputError:
                return self.default
        if isinstance(self.default, int):
            return whole(state, self.name, self.default, int(self.low), int(self.high))
        assert isinstance(self.default, float)  # noqa: S101 - all other kinds are treated above
        return number(state, self.name, self.default, self.low, self.high)


def numbers_in(name: str, text: str) -> tuple[float, ...]:
    """Numbers in a text, separated by commas or spaces."""
    remedy = f"write at most {_MOST_ENTRIES} numbers such as 0.5, 2"
    try:
        values = tuple(float(word) for word in text.replace(",", " ").split())
    except ValueError:
        raise InputError(name, shown(text), "must be numbers separated by commas", remedy) from None
    if not 1 <= len(values) <= _MOST_ENTRIES or not all(math.isfinite(value) for value in values):
        raise InputError(name, shown(text), "must be some finite numbers", remedy)
    return tuple(float(f"{value:.10g}") for value in values)


# Label, lowest and highest value, and step of numbers, by the name of the argument.
_NUMBERS: dict[str, tuple[str, float, float, float]] = {
    "coupling": ("Coupling", -4.0, 4.0, 0.1),
    "width": ("Half width Δ of the frequencies", 0.0, 2.0, 0.05),
    "initial": ("Order at the start", 0.05, 0.95, 0.05),
    "beta": ("Inverse temperature β", 0.0, 20.0, 0.1),
    "scatter": ("Scatter of a cluster", 0.005, 0.5, 0.005),
    "rho": ("Cosine ρ at the start", 0.0, 0.95, 0.05),
    "gamma": ("Factor γ of log n", 0.0, 4.0, 0.05),
    "alpha": ("Step α", 0.05, 5.0, 0.05),
    "step": ("Step of a layer", 0.005, 0.1, 0.005),
    "noise": ("Noise σ", 0.1, 3.0, 0.1),
    "size": ("Size at the start", 0.05, 1.0, 0.05),
    "skip": ("Share kept by the skip connection", 0.0, 0.95, 0.05),
    "d": ("Coordinates d", 2, 8, 1),
}
# Lowest values where a constructor asks for more than the others of the same name.
_LOWEST = {("noisy", "coupling"): 0.0, ("metastable", "beta"): 0.1, ("rank_collapse", "beta"): 0.1}
_LABELS = {
    ("normalisation", "alpha"): "Speed α of nGPT",
    ("normalisation", "scheme"): "Scheme",
    ("frank_wolfe", "sign"): "Score matrix A",
    ("noisy", "normalised"): "Softmax weights",
    ("kuramoto", "coupling"): "Coupling K",
    ("noisy", "coupling"): "Coupling K",
    ("sinkhorn", "coupling"): "Coupling c",
    ("metastable", "centres"): "Angles of the clusters, radians",
    ("multi_head", "betas"): "β of each head",
    ("value_spectrum", "spectrum"): "Eigenvalues of V",
}
_OPTIONS: dict[str, Mapping[str, Value]] = {
    "scheme": {name: name for name in SCHEMES},
    "sign": {"A = −I": -1, "A = I": 1},
}


@cache
def default_model(name: str) -> hm.zoo.FieldModel:
    """The model with its default parameters."""
    model: hm.zoo.FieldModel = getattr(hm.zoo, name)()
    return model


@cache
def parameters_of(name: str) -> tuple[Parameter, ...]:
    """The arguments of a model that have a control, in the order of its constructor."""
    found = []
    for argument in inspect.signature(default_model(name).constructor).parameters.values():
        default = argument.default
        label = _LABELS.get((name, argument.name), argument.name)
        if argument.name == "n":
            found.append(Parameter("n", "Number of tokens", default, 3 if name == "long_context" else 2, _most(name)))
        elif argument.name in _OPTIONS:
            found.append(Parameter(argument.name, label, default, options=_OPTIONS[argument.name]))
        elif isinstance(default, bool):
            options: dict[str, Value] = {"No": False, "Yes": True}
            found.append(Parameter(argument.name, label, default, options=options))
        elif isinstance(default, tuple):
            found.append(Parameter(argument.name, label, tuple(float(value) for value in default)))
        elif isinstance(default, (int, float)):
            reach = 4.0 * abs(default) or 1.0
            known = _NUMBERS.get(argument.name, (argument.name, 0.0, reach, reach / 40))
            low = _LOWEST.get((name, argument.name), known[1])
            label = _LABELS.get((name, argument.name), known[0])
            found.append(Parameter(argument.name, label, default, low, known[2], known[3]))
    return tuple(found)


def _most(name: str) -> int:
    """Most tokens: those of equiangular models have as many coordinates as tokens."""
    if name == "long_context":
        return 1_500  # a single layer
    return 128 if equiangular(name) else 1_000


def equiangular(name: str) -> bool:
    """Whether all pairs of tokens of a model have the same angle; they then live in as many coordinates as tokens."""
    return name in ("normalisation", "equiangular", "multi_head", "long_context")


# Measures that evaluate the velocities of many states, too slow to be repeated for each frame.
_COSTLY = {("noisy", "growth")}
# Measures that show more over time than the first one with a theory.
_FIRST = {"rank_collapse": "residual", "frank_wolfe": "diameter"}


def measures_over_time(model: hm.zoo.FieldModel) -> list[str]:
    """The measures that are cheap enough to be evaluated at every frame."""
    return [name for name in model.measures if (model.name, name) not in _COSTLY]


def on_sphere(model: hm.zoo.FieldModel) -> bool:
    """Whether the tokens of a model stay on the unit sphere."""
    return model.name in ("kuramoto", "sphere_attention", "metastable", "causal_sphere", "noisy")


@dataclass(frozen=True)
class ModelsState:
    """Values of the controls; an address stores those that differ from their defaults."""

    name: str = hm.zoo.MODELS[0]
    values: tuple[tuple[str, Value], ...] = ()
    """Parameters that differ from their defaults, sorted by name."""
    seed: int = 0
    duration: float | None = None
    """Time or number of layers; None for that of the model."""
    frame: int = FIRST_SEEN
    """Moment of the picture, of ``FRAMES`` equal parts of the run."""
    measure: str = ""
    """Measure whose curve is drawn; empty for the first with a theory."""
    trails: bool = True
    zoom: bool = False

    def value(self, parameter: Parameter) -> Value:
        """The value of a parameter."""
        return dict(self.values).get(parameter.name, parameter.default)

    @property
    def arguments(self) -> dict[str, Value]:
        """The arguments of the constructor."""
        return {parameter.name: self.value(parameter) for parameter in parameters_of(self.name)}

    @property
    def model(self) -> hm.zoo.FieldModel:
        """The model."""
        return default_model(self.name).constructor(**self.arguments)

    def run_options(self) -> dict[str, float]:
        """The options of the run: ``time`` of a flow or ``depth``."""
        model = self.model
        low, high, _ = durations(model)
        value = model.duration if self.duration is None else min(max(self.duration, low), high)
        return {"time": float(value)} if model.in_time else {"depth": int(value)}

    @property
    def run_key(self) -> tuple[object, ...]:
        """What a run depends on."""
        return (self.name, self.values, self.seed, self.duration)

    def changed(self, **changes: object) -> ModelsState:
        """The state with other settings."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def with_value(self, name: str, value: Value) -> ModelsState:
        """The state with another value of a parameter."""
        parameter = next(one for one in parameters_of(self.name) if one.name == name)
        rest = {key: old for key, old in self.values if key != name}
        if value != parameter.default:
            rest[name] = value
        return replace(self, values=tuple(sorted(rest.items())))

    def shown_measure(self, model: hm.zoo.FieldModel) -> str:
        """The measure whose curve is drawn."""
        cheap = measures_over_time(model)
        wanted = (self.measure, _FIRST.get(self.name, ""), *model.theory, *cheap)
        return next(name for name in wanted if name in cheap)

    def to_query(self) -> dict[str, str]:
        """The part of the address that stores the state."""
        query = {} if self.name == ModelsState.name else {"model": self.name}
        query |= {name: _short(value) for name, value in self.values}
        names = ("seed", "duration", "frame", "measure", "trails", "zoom")
        defaults = ModelsState()
        for name, value in ((name, getattr(self, name)) for name in names):
            if value != getattr(defaults, name):
                query[name] = _short(int(value) if isinstance(value, bool) else value)
        return query

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> ModelsState:
        """A state from an address; invalid values are clipped or ignored."""
        state = cls(name=choice(query, "model", cls.name, hm.zoo.MODELS))
        for parameter in parameters_of(state.name):
            candidate = state.with_value(parameter.name, parameter.read(query))
            try:
                _ = candidate.model
            except InputError:  # a value in its range that the model refuses, such as an odd number of tokens
                continue
            state = candidate
        low, high, _ = durations(state.model)
        duration = number(query, "duration", math.nan, low, high)
        if not math.isnan(duration):
            state = replace(state, duration=duration if state.model.in_time else round(duration))
        return replace(
            state,
            seed=whole(query, "seed", 0, 0, MOST_SEED),
            frame=whole(query, "frame", FIRST_SEEN, 0, FRAMES),
            measure=choice(query, "measure", "", measures_over_time(state.model)),
            trails=bool(whole(query, "trails", 1, 0, 1)),
            zoom=bool(whole(query, "zoom", 0, 0, 1)),
        )

    def code(self) -> str:
        """Python that reproduces the run and its numbers."""
        model = default_model(self.name)
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        options = [f"{name}={value:.10g}" for name, value in self.run_options().items()]
        reference = f"# {model.reference}"
        lines = ["import hardmax as hm", "", reference, f"model = hm.zoo.{self.name}({arguments})"]
        lines += [
            f"run = model.run({', '.join(options)}, random_state={self.seed})",
            "for name in model.measures:",
            '    print(f"{name}: {model.measure(name, run):.10g}")',
            "for name, (measured, theory) in model.compare(run).items():",
            '    print(f"{name}: {measured:.10g}, in theory {theory:.10g}")',
        ]
        plane = self._plane_code()
        if plane:
            lines[:1] = ["from dataclasses import replace", "", "import hardmax as hm", "import numpy as np"]
            lines += ["# The plane of the picture.", *plane]
        lines += [
            f"k = round({self.frame} * (len(run) - 1) / {FRAMES})  # the state that is drawn",
            f"ax = hm.draw_tokens(run, layer=int(run.layers[k]), trails={self.trails})",
            f'hm.save_figure(ax, "{self.name}.png")',
        ]
        return "\n".join(lines) + "\n"

    def _plane_code(self) -> list[str]:
        """Lines that project the run onto the plane of the picture; none for two coordinates."""
        model = self.model
        if self.name == "value_spectrum":
            rescaled = 'hm.zoo.rescaled(run, model.parameters["spectrum"])'
            if model.d > 1:
                return [f"run = replace(run, tokens={rescaled}[..., :2])"]
            return [f"z = {rescaled}", "run = replace(run, tokens=np.concatenate([z, 0 * z], axis=2))"]
        if equiangular(self.name):
            lines = ["angles = 2 * np.pi * np.arange(model.n) / model.n"]
            return [
                *lines,
                "run = replace(run, tokens=run.tokens @ np.stack([np.cos(angles), np.sin(angles)], axis=1))",
            ]
        if model.d == 2:
            return []
        lines = ["cloud = run.tokens.reshape(-1, model.d)"]
        if not on_sphere(model):
            lines.append("cloud = cloud - cloud.mean(axis=0)")
        return [
            *lines,
            "_, axes = np.linalg.eigh(cloud.T @ cloud)",
            "run = replace(run, tokens=run.tokens @ axes[:, [-1, -2]])",
        ]


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(f"{entry:.10g}" for entry in value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def durations(model: hm.zoo.FieldModel) -> tuple[float, float, float]:
    """Shortest and longest duration of a model to choose from, and the step between them."""
    if model.in_time:
        return model.duration / 20, 4 * model.duration, model.duration / 20
    fixed = isinstance(model.rule, LayerSequence) or model.duration == 1
    return 1, model.duration * (1 if fixed else 4), 1
