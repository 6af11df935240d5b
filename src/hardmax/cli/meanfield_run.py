"""The work of ``hardmax meanfield``: read, simulate, compare with the limit measure, draw, save, summarise."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from ..distributed import Processes, processes
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..files import write_text
from ..meanfield.energy import flow_of
from ..meanfield.flow import SphereFlow
from ..meanfield.limit import low_temperature_limit
from ..meanfield.measures import FewTokensWarning, Measure, circle_quantiles, fibonacci_sphere, sphere_sample
from ..meanfield.phases import Phases, phases
from ..meanfield.rates import rates
from ..storage.token_tables import read_matrix, read_tokens
from .options import require_target

_DEFAULT_B, _DEFAULT_V = "diag:4,1", "diag:1,2"
_TABLES = (".csv", ".json")
_ARCHIVES = (".zarr", ".nc")
# A film of a few seconds.
_MOST_FRAMES = 60


@dataclass(frozen=True)
class Request:
    """The options of the command; see its help."""

    B: str | None
    V: str | None
    betas: list[float]
    tokens: Path | None
    n: int | None
    tilt: float
    random: bool
    seed: int
    normalise: bool
    time: float
    step: float
    integrator: str
    precision: str
    figure: Path | None
    animate: Path | None
    save: Path | None
    as_json: bool
    quiet: bool


def run(request: Request) -> None:
    """Run the command."""
    _require_writable_all(request)
    tokens = None if request.tokens is None else read_tokens(request.tokens)
    B, V = _matrices(request, None if tokens is None else tokens.shape[1])
    law = _law(request, len(B)) if tokens is None else Measure(tokens, np.full(len(tokens), 1 / len(tokens)))
    rates(low_temperature_limit(law.points, B, V))  # refused before the work, if it is
    runs = []
    with processes() as ranks:
        for beta in request.betas:
            runs.append(_follow(request, law, B, V, beta, ranks))
    if not ranks.first:
        raise typer.Exit(0 if all(run.outcome.ok for run in runs) else 1)
    found = [phases(run) for run in runs]
    files = _write(request, runs, found)
    if request.as_json:
        data = {"runs": [_data(one, run) for one, run in zip(found, runs, strict=True)], "files": files}
        typer.echo(json.dumps(data, allow_nan=False))
    elif not request.quiet:
        _tell(law, found, files)
    if not all(run.outcome.ok for run in runs):
        raise typer.Exit(1)


def read_betas(text: str) -> list[float]:
    """Inverse temperatures from a list separated by commas."""
    betas = []
    for word in text.split(","):
        try:
            beta = float(word)
        except ValueError:
            beta = math.nan
        if not beta >= 0:
            raise InputError("--beta", repr(word), "must be a number that is not negative", "pass --beta 10,100 or inf")
        betas.append(beta)
    return betas


def read_square(option: str, text: str) -> np.ndarray:
    """A matrix as typed: ``diag:4,1``, rows as in ``4,0;0,1``, or the name of a file."""
    words = text.strip()
    try:
        if words.startswith("diag:"):
            return np.diag([float(word) for word in words.removeprefix("diag:").split(",")])
        rows = [[float(word) for word in row.split(",")] for row in words.split(";")]
    except ValueError:
        if not Path(words).exists():
            remedy = "pass diag:4,1, rows such as 4,0;0,1, or a file of d rows of d numbers"
            raise InputError(option, repr(text), "is neither a matrix nor a file", remedy) from None
        return read_matrix(words)
    if any(len(row) != len(rows) for row in rows):
        raise InputError(option, repr(text), "must be square", "separate rows by semicolons: 4,0;0,1")
    return np.array(rows)


def _require_writable_all(request: Request) -> None:
    from ..figures.save import FORMATS as PICTURES
    from ..figures.save import MOVIE_FORMATS as FILMS

    require_target("--figure", request.figure, PICTURES)
    require_target("--animate", request.animate, FILMS)
    require_target("--save", request.save, (*_TABLES, *_ARCHIVES))


def _matrices(request: Request, dimension: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Both matrices; where only one is given the other is the identity."""
    if request.B is None and request.V is None and dimension in (None, 2):
        return read_square("--B", _DEFAULT_B), read_square("--V", _DEFAULT_V)
    given = {name: read_square(f"--{name}", text) for name, text in (("B", request.B), ("V", request.V)) if text}
    d = dimension if dimension is not None else len(next(iter(given.values())))
    for name, matrix in given.items():
        if len(matrix) != d:
            remedy = "B, V and the tokens need the same number of coordinates"
            raise InputError(f"--{name}", f"{len(matrix)} x {len(matrix)}", f"must be {d} x {d}", remedy)
    return given.get("B", np.eye(d)), given.get("V", np.eye(d))


def _law(request: Request, d: int) -> Measure:
    n, tilt = request.n if request.n is not None else 1000, request.tilt
    if not -1 < tilt < 1:
        raise InputError("--tilt", tilt, "must lie between -1 and 1", "pass for example --tilt 0.5")
    if request.random or d > 3:
        return sphere_sample(n, d, lambda x: 1 + tilt * x[:, -1], random_state=request.seed)
    if d == 2:
        return circle_quantiles(n, lambda angle: 1 + tilt * np.sin(angle))
    if d == 3:
        return fibonacci_sphere(n, axis=(0.05, -0.05, 1.0)).reweighted(lambda x: 1 + tilt * x[:, -1])
    raise InputError("--B", f"{d} x {d}", "must act on two coordinates or more", "a line has no sphere to move on")


def _follow(request: Request, law: Measure, B: np.ndarray, V: np.ndarray, beta: float, ranks: Processes) -> Trajectory:
    flow = SphereFlow(B, V, beta, normalise=request.normalise, precision=request.precision)  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewTokensWarning)
        run = simulate(
            ranks.share(law.points),
            flow,
            time=request.time,
            step=request.step,
            integrator=request.integrator,
            weights=ranks.share(law.weights),
            processes=ranks,
            progress=False if request.quiet else None,
        )
    for warning in caught if ranks.first else ():
        typer.secho(f"warning: {warning.message}", fg="yellow", err=True)
    return run


def _write(request: Request, runs: list[Trajectory], found: list[Phases]) -> list[str]:
    written = []
    if request.figure is not None:
        _draw(runs, found, request.figure)
        written.append(str(request.figure))
    if request.animate is not None:
        from ..figures.tokens import animate_tokens

        film = _thinned(runs[int(np.argmax(request.betas))])
        animate_tokens(film, request.animate, seconds_per_layer=0.1, progress=False if request.quiet else None)
        written.append(str(request.animate))
    if request.save is not None:
        written += _save_runs(runs, request.save) if _is_archive(request.save) else _save(found, request.save)
    return written


def _is_archive(path: Path) -> bool:
    return path.suffix.lower() in _ARCHIVES


def _save_runs(runs: list[Trajectory], path: Path) -> list[str]:
    """Save every run with its flow, to be loaded by ``hardmax.load``; several get their beta into the name."""
    from ..storage.trajectories import save

    written = []
    for run in runs:
        beta = flow_of(run).beta
        target = path if len(runs) == 1 else path.with_name(f"{path.stem}-beta-{beta:g}{path.suffix}")
        save(run, target)
        written.append(str(target))
    return written


def _thinned(run: Trajectory) -> Trajectory:
    from dataclasses import replace

    selected = np.unique(np.linspace(0, len(run) - 1, _MOST_FRAMES).round().astype(np.int64))
    times = None if run.times is None else run.times[selected]
    return replace(run, tokens=run.tokens[selected], layers=run.layers[selected], times=times)


def _draw(runs: list[Trajectory], found: list[Phases], path: Path) -> None:
    from ..figures import draw_angles, draw_distances, new_figure, save_figure

    on_circle = runs[-1].tokens.shape[2] == 2
    figure = new_figure(11.4 if on_circle else 6.4, 4.2)
    axes = np.atleast_1d(figure.subplots(1, 2 if on_circle else 1))
    draw_distances(found, ax=axes[0])
    if on_circle:
        last = found[-1]
        marks = {"closest approach": last.approach_time}
        if last.escape_time is not None:
            marks["escape"] = last.escape_time
        draw_angles(runs[-1], ax=axes[1], marks=marks)
    save_figure(figure, path)


def _save(found: list[Phases], path: Path) -> list[str]:
    rows = [
        (one.beta, float(t), float(w), float(trimmed))
        for one in found
        for t, w, trimmed in zip(one.times, one.distances, one.trimmed, strict=True)
    ]
    names = ("beta", "time", found[0].distance_name, f"trimmed {found[0].distance_name}")
    if path.suffix.lower() == ".json":
        text = json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=1) + "\n"
    else:
        lines = [",".join(names), *(",".join(repr(value) for value in row) for row in rows)]
        text = "\n".join(lines) + "\n"
    write_text(path, text)
    return [str(path)]


def _data(one: Phases, run: Trajectory) -> dict[str, object]:
    rows = {name: found for name, found, _, _ in one.rows()}
    theory = {name: _finite(expected) for name, _, _, expected in one.rows() if expected is not None}
    return {
        "beta": _finite(one.beta),
        "outcome": run.outcome.ending.value,
        **{name: _finite(value) for name, value in rows.items()},
        "theory": theory,
        "tokens per kernel": _finite(one.occupancy.smallest),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _tell(law: Measure, found: list[Phases], files: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"{len(law)} tokens in {law.points.shape[1]} dimensions; {found[0].limit}")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for one in found:
        table.add_column(f"beta = {one.beta:g}", justify="right")
    table.add_column("theory", justify="right")
    for k, (name, *_) in enumerate(found[0].rows()):
        cells = []
        for one in found:
            _, value, error, _ = one.rows()[k]
            cells.append("–" if value is None else f"{value:.4g}" + (f" ± {error:.1g}" if error is not None else ""))
        expected = [one.rows()[k][3] for one in found]
        shown = [f"{value:.4g}" for value in dict.fromkeys(expected) if value is not None and math.isfinite(value)]
        table.add_row(name, *cells, ", ".join(shown) or "–")
    table.add_row("tokens per kernel", *(f"{one.occupancy.smallest:.3g}" for one in found), "10 or more")
    console.print(table)
    for file in files:
        console.print(f"wrote {file}", highlight=False)
