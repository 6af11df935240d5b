"""Phase diagrams: one measure of a model over two of its parameters, averaged over seeds."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..files import write_text
from ..scalars import as_count, shown
from ..zoo.model import FieldModel
from .grid import sweep

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Axis = tuple[str, Iterable[float]]
Constructor = Callable[..., FieldModel]
# Columns of the table that are not parameters of the model.
_OWN = ("model", "measure", "run_time", "run_depth", "run_step")


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Mean of a measure over a grid of two parameters, returned by :func:`hardmax.phase_diagram`."""

    model: str
    """Name of the model."""
    measure: str
    """Name of the measure."""
    x_name: str
    """Parameter along the horizontal axis."""
    x: np.ndarray
    """Its values, shape (columns,)."""
    y_name: str
    """Parameter along the vertical axis."""
    y: np.ndarray
    """Its values, shape (rows,)."""
    mean: np.ndarray
    """Mean over seeds, shape (rows, columns); NaN where every run failed."""
    deviation: np.ndarray
    """Standard deviation over seeds, shape (rows, columns)."""
    critical: np.ndarray | None
    """Points (x, y) of the transition predicted by theory, shape (points, 2); None where no theory is known."""
    rows: pd.DataFrame
    """One row per run: parameters, seed, value, outcome, seconds, error."""

    def to_pandas(self) -> pd.DataFrame:
        """Tidy table with one row per run.

        Returns
        -------
        pandas.DataFrame
            Columns: the two parameters, ``seed``, the measure, ``outcome``, ``seconds``, ``error``.
        """
        return self.rows.copy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the diagram: the table as CSV, or everything as JSON, by the suffix.

        Parameters
        ----------
        path
            File that ends with ``.csv`` or ``.json``.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".csv":
            write_text(str(path), self.rows.to_csv(index=False))
        elif suffix == ".json":
            content = {
                "model": self.model,
                "measure": self.measure,
                self.x_name: self.x.tolist(),
                self.y_name: self.y.tolist(),
                "mean": _without_nan(self.mean),
                "deviation": _without_nan(self.deviation),
                "critical": None if self.critical is None else self.critical.tolist(),
            }
            write_text(str(path), json.dumps(content, indent=1) + "\n")
        else:
            raise InputError("path", str(path), "must end with .csv or .json", "rename the file")

    def draw(self, ax: Axes | None = None) -> Axes:
        """Draw the diagram: the measure as colour, the theory as a line.

        Parameters
        ----------
        ax
            Axes to draw on; those of a new figure when left out.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from ..drawing.style import INK, axes_or_new, style_axes, styled

        with styled():
            ax = axes_or_new(ax, 5.6, 4.2)
            style_axes(ax)
            ax.grid(False)
            image = ax.pcolormesh(_edges(self.x), _edges(self.y), self.mean, cmap="viridis", rasterized=True)
            bar = ax.figure.colorbar(image, ax=ax)
            bar.set_label(self.measure.replace("_", " "))
            bar.outline.set_visible(False)
            if self.critical is not None and len(self.critical):
                ax.plot(*self.critical.T, color="white", linewidth=4.0)
                ax.plot(*self.critical.T, color=INK, linewidth=2.0, linestyle="--", label="theory")
                ax.legend(loc="best", labelcolor=INK, frameon=True, framealpha=0.9, edgecolor="none")
            ax.set_xlim(float(_edges(self.x)[0]), float(_edges(self.x)[-1]))
            ax.set_ylim(float(_edges(self.y)[0]), float(_edges(self.y)[-1]))
            ax.set_xlabel(self.x_name)
            ax.set_ylabel(self.y_name)
            ax.set_title(f"{self.model.replace('_', ' ')}: {self.measure.replace('_', ' ')}")
        return ax

    def __str__(self) -> str:
        size = f"{len(self.x)} x {len(self.y)} points, {len(self.rows)} runs"
        return f"PhaseDiagram of {self.model}: {self.measure} over {self.x_name} and {self.y_name}, {size}"

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True)
class _Experiment:
    """One run of a model at a point of the grid, as a sweep calls it."""

    constructor: Constructor

    def __call__(
        self,
        *,
        model: str,
        measure: str,
        run_time: float | None,
        run_depth: int | None,
        run_step: float | None,
        random_state: int,
        **parameters: object,
    ) -> Mapping[str, object]:
        made = self.constructor(**parameters)
        run = made.run(time=run_time, depth=run_depth, step=run_step, random_state=random_state, progress=False)
        return {"value": made.measure(measure, run), "outcome": run.outcome}


def phase_diagram(
    model: Constructor | str,
    *,
    x: Axis,
    y: Axis,
    measure: str = "order",
    fixed: Mapping[str, object] | None = None,
    seeds: int = 3,
    time: float | None = None,
    depth: int | None = None,
    step: float | None = None,
    path: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    backend: str | None = None,
    progress: bool | None = None,
) -> PhaseDiagram:
    """Phase diagram of a model: one measure over two parameters, with the transition that theory predicts.

    Parameters
    ----------
    model
        Constructor of ``hm.zoo``, its name, or a function of your own that returns a ``hm.zoo.FieldModel``.
    x, y
        Name of a parameter of the constructor, and its values in increasing order.
    measure
        Name of a measure of the model.
    fixed
        Other parameters of the constructor.
    seeds
        Number of runs per point, with the seeds 0, 1, 2, …
    time
        Duration of each run of a flow; that of the model when left out.
    depth
        Number of layers of each run; that of the model when left out.
    step
        Longest step of a flow; that of the model when left out.
    path
        Folder for finished runs: a diagram that was stopped resumes there, see :func:`hardmax.sweep`.
    jobs
        Number of runs at a time.
    backend
        The joblib backend, see :func:`hardmax.sweep`.
    progress
        Whether a bar is shown: True, False, or None for long ones on a terminal.

    Returns
    -------
    PhaseDiagram
        Table, means, theory, ``draw()`` and ``save(path)``.

    Examples
    --------
    >>> import hardmax as hm
    >>> grid = hm.phase_diagram("long_context", x=("rho", [0.0, 0.5]), y=("gamma", [0.5, 3.0]), measure="own_weight",
    ...                         fixed={"n": 50}, seeds=1)
    >>> grid.mean.round(2)
    array([[0.13, 0.05],
           [1.  , 0.88]])
    >>> grid.critical.round(2).tolist()
    [[0.0, 1.0], [0.5, 2.0]]
    """
    constructor = _constructor(model)
    known = list(inspect.signature(constructor).parameters)
    (x_name, xs), (y_name, ys) = _axis("x", x, known), _axis("y", y, known)
    if x_name == y_name:
        raise InputError("y", repr(y_name), "must be another parameter than x", f"use one of {', '.join(known)}")
    others = dict(fixed or {})
    for name in others:
        if name not in known or name in (x_name, y_name):
            remedy = f"use one of {', '.join(k for k in known if k not in (x_name, y_name))}"
            raise InputError("fixed", repr(name), "is no other parameter of the model", remedy)
    count = as_count("seeds", seeds, 1)
    # The first model raises the errors of its parameters before anything is run.
    first = constructor(**{**others, x_name: float(xs[0]), y_name: float(ys[0])})
    if measure not in first.measures:
        remedy = f"pass one of {', '.join(first.measures)}"
        raise InputError("measure", shown(measure), f"is no measure of {first.name}", remedy)
    _require_lengths(first, time=time, depth=depth, step=step)
    points = {
        "model": [f"{constructor.__module__}.{constructor.__qualname__}"],
        "measure": [measure],
        "run_time": [time],
        "run_depth": [depth],
        "run_step": [step],
        **{name: [value] for name, value in others.items()},
        y_name: ys.tolist(),
        x_name: xs.tolist(),
    }
    table = sweep(
        _Experiment(constructor),
        points,
        path=path,
        seeds=range(count),
        jobs=jobs,
        backend=backend,
        progress=progress,
    )
    if "value" not in table:  # every run failed
        error = str(table["error"].iloc[0])
        raise InputError("model", first.name, f"fails at every point: {error}", "change the parameters")
    values = table["value"].to_numpy(dtype=float).reshape(len(ys), len(xs), count)
    rows = table.drop(columns=[name for name in _OWN if name in table]).rename(columns={"value": measure})
    good = np.isfinite(values)
    runs = good.sum(axis=2)
    total = np.where(good, values, 0.0).sum(axis=2)
    mean = np.divide(total, runs, out=np.full(runs.shape, np.nan), where=runs > 0)
    spread = np.where(good, (values - mean[:, :, None]) ** 2, 0.0).sum(axis=2)
    deviation = np.sqrt(np.divide(spread, runs, out=np.full(runs.shape, np.nan), where=runs > 0))
    critical = _critical(constructor, others, x_name, xs, y_name, ys)
    return PhaseDiagram(first.name, measure, x_name, xs, y_name, ys, mean, deviation, critical, rows)


def _constructor(model: object) -> Constructor:
    from .. import zoo

    if isinstance(model, str):
        if model not in zoo.MODELS:
            raise InputError("model", repr(model), "is no model", f"pass one of {', '.join(zoo.MODELS)}")
        found: Constructor = getattr(zoo, model)
        return found
    if isinstance(model, FieldModel):
        remedy = f"pass hm.zoo.{model.name}, and its parameters as fixed"
        raise InputError("model", model.name, "must be the constructor of a model, not a model", remedy)
    if not callable(model):
        raise InputError("model", shown(model), "must be a constructor of hm.zoo", "pass for example hm.zoo.noisy")
    return model


def _axis(argument: str, axis: object, known: list[str]) -> tuple[str, np.ndarray]:
    if not isinstance(axis, tuple) or len(axis) != 2 or not isinstance(axis[0], str):
        remedy = f'pass for example {argument}=("beta", [1.0, 2.0, 4.0])'
        raise InputError(argument, shown(axis), "must be a parameter and its values", remedy)
    name, given = axis
    if name not in known:
        raise InputError(argument, repr(name), "is no parameter of the model", f"use one of {', '.join(known)}")
    try:
        values = np.asarray(list(given), dtype=float)
    except (TypeError, ValueError):
        raise InputError(argument, shown(given), "must have numbers as values", "pass a list of numbers") from None
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all() or not (np.diff(values) > 0).all():
        problem = "must have at least two finite values in increasing order"
        raise InputError(argument, shown(given), problem, "pass for example numpy.linspace(0, 4, 9)")
    return name, values


def _require_lengths(model: FieldModel, **given: float | None) -> None:
    """Raise an InputError for a time or step of layers, or a depth of a flow."""
    right = ("time", "step") if model.in_time else ("depth",)
    for name, value in given.items():
        if value is not None and name not in right:
            raise InputError(name, value, f"is not for {model.name}", f"pass {right[0]} instead")


def _critical(
    constructor: Constructor, others: dict[str, Any], x_name: str, xs: np.ndarray, y_name: str, ys: np.ndarray
) -> np.ndarray | None:
    """Predicted transition: y as a function of x, or x as a function of y, as the model knows it."""
    points = []
    for along, values, across, start in ((x_name, xs, y_name, ys[0]), (y_name, ys, x_name, xs[0])):
        for value in np.unique(np.concatenate([np.linspace(values[0], values[-1], 2), values])):
            model = constructor(**{**others, along: float(value), across: float(start)})
            if across in model.critical:
                pair = (float(value), model.critical[across])
                points.append(pair if along == x_name else pair[::-1])
        if points:
            return np.array(points)
    return None


def _edges(centres: np.ndarray) -> np.ndarray:
    """Borders of the cells around the values, shape (values + 1,)."""
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])


def _without_nan(values: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]
