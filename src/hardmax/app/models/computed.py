"""The run of a model on the Models page: its measures beside theory, and its tokens in the plane of the picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import hardmax as hm

from ...errors import InputError
from ...progress import Progress
from .state import FRAMES, ModelsState, equiangular, on_sphere

Run = hm.Trajectory[np.ndarray]
MOST_NUMBERS = 2 * 10**7
"""Numbers that a run may store, 160 MB: several visitors share the memory."""
# Measured on one core: evaluations of a rule for few tokens, weights and products of coordinates, each per second.
_EVALUATIONS, _WEIGHTS, _PRODUCTS = 1e3, 5e7, 2e9


@dataclass(frozen=True, eq=False)
class Curve:
    """A measure over the frames of a run, and its prediction."""

    measure: str
    measured: np.ndarray
    """Shape (frames,); NaN where the measure needs more states."""
    theory: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Computed:
    """A run of a model, its measures, and the points to draw."""

    state: ModelsState
    model: hm.zoo.FieldModel
    run: Run
    frames: np.ndarray
    """Index of the stored state of each frame, shape (frames,)."""
    flat: Run
    """The run in the plane of the picture, tokens of shape (states, tokens, 2)."""
    rows: tuple[tuple[str, float, float | None], ...]
    """Measure, its value at the end, and the prediction where there is one."""
    curve: Curve

    @property
    def points(self) -> np.ndarray:
        """Tokens of the frames in the plane of the picture, shape (frames, tokens, 2)."""
        return np.asarray(self.flat.tokens[self.frames])

    @property
    def moments(self) -> np.ndarray:
        """Time or layer of each frame, shape (frames,)."""
        moments = self.run.layers if self.run.times is None else self.run.times
        return np.asarray(moments[self.frames])

    def shown_as(self, state: ModelsState) -> Computed:
        """The same run and curve with other settings of the picture."""
        return self if state == self.state else replace(self, state=state)

    @property
    def shown(self) -> int:
        """Index of the frame that is shown; runs of few layers have fewer frames than the address counts."""
        return int(np.searchsorted(self.frames, round(self.state.frame * (len(self.run) - 1) / FRAMES)))

    def moment_of(self, k: int) -> int:
        """The value of an address for the frame k."""
        return round(k * FRAMES / max(1, len(self.frames) - 1))

    def axes(self) -> tuple[str, str]:
        """Labels of the axes of the picture."""
        if self.state.name == "value_spectrum":
            return "rescaled coordinate 1", "rescaled coordinate 2"
        if equiangular(self.state.name):
            return "first axis of the polygon", "second axis of the polygon"
        if self.model.d == 2:
            return "first coordinate", "second coordinate"
        return "first principal axis", "second principal axis"

    def words(self) -> str:
        """What the plane of the picture is, where it is not that of two coordinates."""
        d = self.model.d
        if equiangular(self.state.name):
            return (
                f"The {d:,} coordinates are projected onto the plane in which the tokens make a regular polygon, fixed "
                "over the run; the radius is √(1 − cosine) times the length of a token."
            )
        if d <= 2:
            return ""
        if self.state.name == "value_spectrum":
            return f"The first two of {d} rescaled coordinates are drawn."
        return f"The {d:,} coordinates are projected onto the two principal axes of all states, fixed over the run."


def seconds(state: ModelsState) -> float:
    """Rough time of the computation of a state, to decide whether it runs in the background."""
    model = state.model
    duration = sum(state.run_options().values())
    evaluations = 4 * duration / model.step if model.in_time else duration  # four in a step of Runge and Kutta
    pairs = model.n**2
    return evaluations * (1 / _EVALUATIONS + pairs / _WEIGHTS + pairs * model.d / _PRODUCTS)


def compute(state: ModelsState, known: Computed | None = None, progress: Progress = None) -> Computed:
    """The run of a state with its numbers; the run of ``known`` is used again where it is the same."""
    model = state.model
    if known is not None and known.state.run_key == state.run_key:
        return replace(known, state=state, curve=_curve(state, model, known.run, known.frames))
    run = _run(state, model, progress)
    # Indices by rounding, as in the code of the page.
    frames = np.unique([round(k * (len(run) - 1) / FRAMES) for k in range(FRAMES + 1)])
    rows = tuple((name, _safe(measure, run), _predicted(model, name, run)) for name, measure in model.measures.items())
    flat = replace(run, tokens=in_plane(state, model, run))
    return Computed(state, model, run, frames, flat, rows, _curve(state, model, run, frames))


def _run(state: ModelsState, model: hm.zoo.FieldModel, progress: Progress) -> Run:
    options = state.run_options()
    duration = sum(options.values())
    numbers = (duration / model.step if model.in_time else duration) * model.n * model.d
    if numbers > MOST_NUMBERS:
        problem = f"is too large for this duration: the run has {numbers:,.0f} numbers"
        raise InputError("n", model.n, problem, f"reduce one of them, to {MOST_NUMBERS:,} numbers")
    return model.run(**options, random_state=state.seed, progress=progress)  # type: ignore[arg-type]


def in_plane(state: ModelsState, model: hm.zoo.FieldModel, run: Run) -> np.ndarray:
    """Tokens in the plane of the picture, shape (states, tokens, 2); the code of the page does the same."""
    tokens = np.asarray(run.tokens)
    if state.name == "value_spectrum":
        z: np.ndarray = hm.zoo.rescaled(run, state.arguments["spectrum"])  # type: ignore[arg-type]
        return np.asarray(z[..., :2] if model.d > 1 else np.concatenate([z, 0 * z], axis=2))
    if equiangular(state.name):
        angles = 2 * np.pi * np.arange(model.n) / model.n
        return np.asarray(tokens @ np.stack([np.cos(angles), np.sin(angles)], axis=1))
    if model.d == 2:
        return tokens
    cloud = tokens.reshape(-1, model.d)
    # Around the origin on the sphere, so that its shadow is the unit disc and the origin its centre.
    cloud = cloud if on_sphere(model) else cloud - cloud.mean(axis=0)
    _, axes = np.linalg.eigh(cloud.T @ cloud)
    return np.asarray(tokens @ axes[:, [-1, -2]])


def _curve(state: ModelsState, model: hm.zoo.FieldModel, run: Run, frames: np.ndarray) -> Curve:
    name = state.shown_measure(model)
    parts = [_until(run, k) for k in frames.tolist()]
    measured = np.array([_safe(model.measures[name], part) for part in parts])
    theory = np.array([_safe(model.theory[name], part) for part in parts]) if name in model.theory else None
    return Curve(name, measured, theory)


def _until(run: Run, k: int) -> Run:
    """The run as if it had ended at the stored state k."""
    times = None if run.times is None else run.times[: k + 1]
    return replace(run, tokens=run.tokens[: k + 1], layers=run.layers[: k + 1], times=times)


def _predicted(model: hm.zoo.FieldModel, name: str, run: Run) -> float | None:
    return _safe(model.theory[name], run) if name in model.theory else None


def _safe(measure: Callable[[Run], float], run: Run) -> float:
    """A measure of a run; NaN where it is undefined, as a rate of a single state or a quotient of zeros."""
    try:
        with np.errstate(all="ignore"):
            return float(measure(run))
    except (ArithmeticError, IndexError, RuntimeError, ValueError):
        return math.nan
