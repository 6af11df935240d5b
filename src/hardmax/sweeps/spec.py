"""Sweeps from a file: the experiments that it may name, and its grid, seeds and output folder, as data."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..attention.layer import AbstractLayer, HardmaxLayer, SoftmaxLayer
from ..datasets import make_matrix, make_tokens
from ..datasets.airfoil import airfoil
from ..datasets.chaotic import chaotic_series, lorenz63
from ..datasets.series import Series
from ..datasets.series_files import read_series as read_file
from ..datasets.signals import sinusoids
from ..dynamics import equilibrium as limits
from ..dynamics.simulate import simulate as run_layers
from ..errors import FileError, HardmaxError, InputError
from ..forecasting.data.series import Units, read_series
from ..forecasting.diagnostics.backtest import backtest
from ..forecasting.settings import Settings
from ..meanfield.flow import SphereFlow
from ..meanfield.measures import sphere_sample
from ..meanfield.phases import phases
from ..scalars import as_choice, as_count, as_positive
from .grid import OWN, sweep

_MADE: dict[str, Callable[[int, int], Series]] = {
    "lorenz63": lambda n, seed: lorenz63(n, random_state=seed),
    "sinusoids": lambda n, seed: sinusoids(n, random_state=seed),
    "airfoil": lambda n, seed: airfoil(n, initial_pitch=np.random.default_rng(seed).uniform(0.02, 0.3)),
}


def forecast(
    system: str = "lorenz63",
    file: str = "",
    n: int = 3000,
    observed: int = 0,
    every: int = 1,
    noise: float = 0.0,
    recipe: str = "family",
    ablation: str = "",
    delays: int = -1,
    restarts: int = 3,
    budget: float = 0.0,
    horizon: int = 200,
    starts: int = 20,
    random_state: int = 0,
) -> dict[str, object]:
    """Errors and valid times of the forecaster and of baselines, fitted to three quarters of a series.

    ``system`` is ``lorenz63``, ``sinusoids``, ``airfoil`` or a system of ``dysts``; ``file`` names a table instead.
    ``observed`` is the number of channels that are used, from the first (0: all), ``every`` the stride of the samples,
    and ``noise`` is in standard deviations. ``delays`` below zero leaves the window to the recipe; ``budget`` is the
    limit of the search in processor seconds, 0 for none.
    """
    as_choice("recipe", recipe, ("family", "paper"))
    as_choice("ablation", ablation, ("", "uniform", "mlp"))
    settings = Settings(
        delays=None if delays < 0 else as_count("delays", delays, 0),
        horizon=None,
        restarts=as_count("restarts", restarts, 1),
        ablation=ablation or None,
        seconds=None if budget == 0 else as_positive("budget", budget),
        seed=random_state,
        progress=False,
    )
    series = _seen(
        system, file, as_count("n", n, 2), as_count("observed", observed, 0), as_count("every", every, 1), random_state
    )
    if noise:
        series = series.with_noise(as_positive("noise", noise), random_state)
    record = read_series(series.values, times=series.times)
    needed = 16 + (settings.delays or 0)
    if len(series) < needed:
        raise InputError("n", f"{len(series)} samples", f"must leave at least {needed} samples", "take more of them")
    units = Units.of(record.trajectories)
    if not len(units.keep):
        raise InputError("system", series.source, "never varies", "choose another series")
    rows = [units.normalise(z) for z in record.trajectories]
    found = backtest(
        rows,
        len(units.keep),
        settings,
        record.dt,
        as_count("horizon", horizon, 2),
        as_count("starts", starts, 1),
        recipe=recipe,
    )
    row_of: dict[str, object] = {"kept": found.label, "starts_made": found.starts, "steps": len(found.times)}
    for row in found.rows:
        row_of |= {
            f"{row.model} error": row.error,
            f"{row.model} valid time": row.valid_time,
            f"{row.model} diverged": row.diverged,
        }
        if series.lyapunov_exponent:
            row_of[f"{row.model} Lyapunov times"] = row.valid_time * series.lyapunov_exponent
    return row_of


def _seen(system: str, file: str, n: int, observed: int, every: int, seed: int) -> Series:
    """The series with the observed channels and stride; of a longer file its last ``n`` samples."""
    if file:
        whole_file = read_file(file)
        series = Series(
            whole_file.values[-n:].copy(), whole_file.times[-n:].copy(), whole_file.names, whole_file.source
        )
    elif system in _MADE:
        series = _MADE[system](n * every, seed)
    else:
        series = chaotic_series(system, n * every, random_state=seed)
    if observed > series.channels:
        raise InputError("observed", observed, f"must be at most the {series.channels} channels there are", "lower it")
    if observed:
        series = series.observing(*range(observed))
    return series.every(every) if every > 1 else series


Numbers = dict[str, object]


def _matrices(matrix: str, d: int, heads: int, seed: int) -> list[np.ndarray]:
    """Score matrix of each head."""
    return [make_matrix(matrix, d, random_state=seed + head) for head in range(as_count("heads", heads, 1))]


def _window(window: int) -> int | None:
    return as_count("window", window, 0) or None


def equilibrium(
    law: str = "gaussian",
    n: int = 1000,
    d: int = 2,
    alpha: float = 0.5,
    matrix: str = "identity",
    causal: bool = False,
    window: int = 0,
    heads: int = 1,
    max_layers: int = 10_000,
    random_state: int = 0,
) -> Numbers:
    """Limit of infinite depth: number of leaders, layers until decided, number of limit points on faces.

    ``window`` counts the tokens in sight, 0 for all. Each of ``heads`` has a matrix of its own where it is random.
    """
    tokens = make_tokens(law, n, d, random_state=random_state)
    layer = HardmaxLayer(alpha, heads=_matrices(matrix, d, heads, random_state), causal=causal, window=_window(window))
    limit = limits.equilibrium(tokens, layer, max_layers=max_layers, progress=False)
    return {
        "leaders": len(limit.leaders),
        "on_faces": int(limit.on_faces.sum()),
        "layers": limit.layers,
        "decided_at_once": float((limit.decided_at == 0).mean()),
        "undecided": int((limit.decided_at < 0).sum()),
        "largest_following": int(np.bincount(limit.follows[limit.follows >= 0], minlength=1).max()),
        "outcome": limit.outcome,
    }


def simulate(
    law: str = "gaussian",
    n: int = 1000,
    d: int = 2,
    alpha: float = 0.5,
    beta: float | None = None,
    matrix: str = "identity",
    causal: bool = False,
    window: int = 0,
    heads: int = 1,
    depth: int = 20,
    random_state: int = 0,
) -> Numbers:
    """Run of ``depth`` layers, hardmax or (with ``beta``) softmax: distances between tokens at the end.

    ``window`` counts the tokens in sight, 0 for all. Each of ``heads`` has a matrix of its own where it is random.
    """
    tokens = make_tokens(law, n, d, random_state=random_state)
    matrices, seen = _matrices(matrix, d, heads, random_state), _window(window)
    layer: AbstractLayer = (
        HardmaxLayer(alpha, heads=matrices, causal=causal, window=seen)
        if beta is None
        else SoftmaxLayer(alpha, beta=beta, heads=matrices, causal=causal, window=seen)
    )
    run = run_layers(tokens, layer, depth=depth, keep="last", progress=False)
    known = {} if run.leadership is None else {"leaders": len(run.leadership.leaders)}
    known |= {} if run.leadership is None else {"undecided": run.leadership.undecided}
    return {**known, "spread": float(np.asarray(run.final).std(axis=0).mean()), "outcome": run.outcome}


def meanfield(
    beta: float = 100.0,
    n: int = 1000,
    B: tuple[tuple[float, ...], ...] = ((4.0, 0.0), (0.0, 1.0)),
    V: tuple[tuple[float, ...], ...] = ((1.0, 0.0), (0.0, 2.0)),
    tilt: float = 0.5,
    time: float = 14.0,
    step: float = 0.1,
    random_state: int = 0,
) -> Numbers:
    """Times and rates of concentration and escape of a law on the sphere at inverse temperature beta."""
    if not -1 < tilt < 1:
        raise InputError("tilt", tilt, "must lie between -1 and 1", "pass for example tilt = 0.5")
    law = sphere_sample(n, len(B), lambda x: 1 + tilt * x[:, -1], random_state=random_state)
    flow = SphereFlow(B, V, beta, few_tokens="ignore")
    run = run_layers(law.points, flow, time=time, step=step, weights=law.weights, progress=False)
    found = phases(run)
    return {**{name: value for name, value, _, _ in found.rows()}, "outcome": run.outcome}


RUNS: dict[str, Callable[..., Numbers]] = {
    "equilibrium": equilibrium,
    "simulate": simulate,
    "meanfield": meanfield,
    "forecast": forecast,
}
"""A new kind of run is one function and one entry here."""


EXAMPLE = """\
# A sweep: every combination of the values under [grid], once for each seed.
# Run it:                      hardmax sweep leaders.toml
# Killed? Run it again:        finished rows are not repeated.
# Look at it at any time:      hardmax sweep leaders.toml --status

run = "equilibrium"        # equilibrium, simulate, meanfield or forecast
folder = "leaders"         # beside this file: a small file for each row, and rows.parquet at the end
seeds = 5                  # 0 to 4; or a list such as [1, 7, 42]
jobs = 2                   # runs at a time

[grid]
law = ["gaussian", "ball", "heavy-tails"]
n = [100, 1000, 10000]
d = [2, 3]

[fixed]                    # the same in every run
alpha = 0.5
matrix = "random-spd"
"""

_KEYS = ("run", "folder", "seeds", "jobs", "backend", "grid", "fixed")
_NEEDED = ("run", "folder", "grid")


@dataclass(frozen=True)
class Spec:
    """A sweep as a file describes it, checked.

    Attributes
    ----------
    run
        Name of the experiment.
    folder
        Folder of the rows.
    points
        Values for each parameter.
    seeds
        Seeds of every point.
    jobs
        Number of runs at a time.
    backend
        The joblib backend, or None.
    """

    run: str
    folder: Path
    points: dict[str, list[Any]]
    seeds: list[int]
    jobs: int
    backend: str | None

    @property
    def rows(self) -> int:
        """Number of runs: points times seeds."""
        count = len(self.seeds)
        for values in self.points.values():
            count *= len(values)
        return count

    def perform(self, *, jobs: int | None = None, progress: bool | None = None) -> Any:
        """Table of all rows, after the runs that are missing.

        Parameters
        ----------
        jobs
            Number of runs at a time; by default that of the file.
        progress
            Whether a bar is shown: True, False, or None for long sweeps on a terminal.

        Returns
        -------
        pandas.DataFrame
            One row per run.
        """
        return sweep(
            RUNS[self.run],
            self.points,
            path=self.folder,
            seeds=self.seeds,
            jobs=self.jobs if jobs is None else jobs,
            backend=self.backend,
            progress=progress,
        )


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Sweep that a TOML file describes, checked; errors name the file and the entry.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Spec
        The sweep.
    """
    file = Path(path).expanduser()
    try:
        with file.open("rb") as stream:
            data = tomllib.load(stream)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})", "hardmax sweep --example prints one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"is not TOML ({error})", "hardmax sweep --example prints one") from None

    def refuse(entry: str, problem: str, remedy: str) -> HardmaxError:
        return FileError(path, f"{entry} {problem}", remedy)

    for key in data:
        if key not in _KEYS:
            raise refuse(repr(key), "is not known", f"use {', '.join(_KEYS)}")
    for key in _NEEDED:
        if key not in data:
            raise refuse(repr(key), "is missing", "hardmax sweep --example shows where it goes")
    if data["run"] not in RUNS:
        raise refuse(f"run = {data['run']!r}", "is no run", f"use {', '.join(RUNS)}")
    if not isinstance(data["folder"], str) or not data["folder"]:
        raise refuse("folder", "must be a name", 'write for example folder = "leaders"')
    points = _points(data, refuse)
    jobs, backend = data.get("jobs", 1), data.get("backend")
    if not _is_whole(jobs) or (jobs < 1 and jobs != -1):
        raise refuse(f"jobs = {jobs!r}", "must be a positive whole number, or -1 for all cores", "write jobs = 2")
    if backend is not None and not isinstance(backend, str):
        raise refuse(f"backend = {backend!r}", "must be a word", 'write for example backend = "dask"')
    return Spec(data["run"], file.parent / data["folder"], points, _seeds(data, refuse), jobs, backend)


def _points(data: dict[str, Any], refuse: Any) -> dict[str, list[Any]]:
    known = [name for name in inspect.signature(RUNS[data["run"]]).parameters if name != "random_state"]
    grid, fixed = data["grid"], data.get("fixed", {})
    for name, table in (("grid", grid), ("fixed", fixed)):
        if not isinstance(table, dict):
            raise refuse(name, "must be a table", f"write [{name}] and one line for each parameter")
        for parameter in table:
            if parameter in OWN or parameter not in known:
                raise refuse(f"{name}.{parameter}", f"is no parameter of {data['run']}", f"use {', '.join(known)}")
    both = sorted(set(grid) & set(fixed))
    if both:
        raise refuse(both[0], "is in [grid] and in [fixed]", "keep one of the two")
    for parameter, values in grid.items():
        if not isinstance(values, list) or not values:
            raise refuse(f"grid.{parameter}", "must be a list of values", f"write {parameter} = [{values!r}]")
    return {**grid, **{parameter: [value] for parameter, value in fixed.items()}}


def _seeds(data: dict[str, Any], refuse: Any) -> list[int]:
    seeds = data.get("seeds", 1)
    if _is_whole(seeds) and seeds > 0:
        return list(range(seeds))
    if isinstance(seeds, list) and seeds and all(_is_whole(seed) and seed >= 0 for seed in seeds):
        return list(dict.fromkeys(seeds))
    raise refuse(f"seeds = {seeds!r}", "must be how many, or a list of whole numbers", "write seeds = 5")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
