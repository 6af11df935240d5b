"""Concentration, metastability and the terminal phase of mean-field transformers at low temperature.

After Alcalde, Bungert, Riedl, Roith, arXiv 2605.10931. The figures illustrate its statements and are not those of the
paper; rates and times marked as theory were derived from the model and are compared with runs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..dynamics.simulate import simulate
from ..figures import figure_bytes, new_figure
from ..figures.meanfield import (
    draw_distances,
    draw_durations,
    draw_least_distances,
    draw_phase_diagram,
    draw_scaling,
)
from ..figures.sphere import draw_angles, draw_sphere
from ..files import make_folder
from ..meanfield.density import circle_density
from ..meanfield.density_flow import simulate_density
from ..meanfield.exact import zero_temperature_solution
from ..meanfield.flow import SphereFlow
from ..meanfield.limit import low_temperature_limit
from ..meanfield.measures import Measure, circle_quantiles, fibonacci_sphere
from ..meanfield.phases import Phases, phases
from ..meanfield.transport import wasserstein
from ..progress import Ticker
from .report import Report, Table, write_results

PAGE = "meanfield.html"
CIRCLE_B, CIRCLE_V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
SPHERE_B, SPHERE_V = np.diag([2.0, 1.0, 1.0]), np.diag([1.0, 2.0, 0.5])
_TILT = (0.05, -0.05, 1.0)
_BETAS = (10.0, 30.0, 100.0, 300.0)
# About evenly spaced in log(beta). Those of the tables are among them, so that each density is followed once.
_DIAGRAM = tuple(map(float, (10, 13, 18, 24, 30, 42, 56, 75, 100, 133, 178, 300, 562, 1000)))
_SCALING = (150.0, 300.0, 600.0, 1200.0)
_SCALING_TIME = 1.0
_LEAST = (100.0, 178.0, 300.0, 562.0, 1000.0)
_QUICK_DIAGRAM = _QUICK_LEAST = (10.0, 18.0, 30.0)


def circle_law(n: int) -> Measure:
    """Quantile tokens of the density 1 + sin(angle)/2."""
    return circle_quantiles(n, lambda angle: 1 + np.sin(angle) / 2)


def circle_phases(n: int, betas: Sequence[float], *, time: float = 14.0, step: float = 0.08) -> list[Phases]:
    """The phases of runs of tokens on the circle at several temperatures."""
    tokens = circle_law(n).points
    flows = [SphereFlow(CIRCLE_B, CIRCLE_V, beta, few_tokens="ignore") for beta in betas]
    return [phases(simulate(tokens, flow, time=time, step=step)) for flow in flows]


def density_phases(betas: Sequence[float], *, time: float = 14.0, tolerance: float = 1e-5) -> list[Phases]:
    """The phases of the density on the circle at several temperatures."""
    law = circle_density(lambda angle: 1 + np.sin(angle) / 2)
    return [
        phases(simulate_density(law, SphereFlow(CIRCLE_B, CIRCLE_V, beta), time=time, tolerance=tolerance))
        for beta in betas
    ]


def scaling_errors(n: int, betas: Sequence[float]) -> list[float]:
    """Root mean square distance to the exact zero-temperature flow at a fixed time."""
    tokens = circle_law(n).points
    truth = zero_temperature_solution(tokens, CIRCLE_B, CIRCLE_V, time=_SCALING_TIME)
    errors = []
    for beta in betas:
        flow = SphereFlow(CIRCLE_B, CIRCLE_V, beta)
        end = simulate(tokens, flow, time=_SCALING_TIME, step=0.1, integrator="rk4", keep="last").final
        errors.append(math.sqrt(float(((np.asarray(end) - np.asarray(truth)) ** 2).sum(axis=1).mean())))
    return errors


def reproduce_meanfield(output: str | os.PathLike[str], *, quick: bool = False, progress: bool | None = None) -> Report:
    """The figures and tables of the mean-field paper (arXiv 2605.10931), as a page.

    Figures are written as PNG and PDF, tables as CSV, JSON and Markdown, the page as ``meanfield.html``.

    Parameters
    ----------
    output
        Folder for the figures, the tables and the page; it is made if it does not exist.
    quick
        Fewer tokens and fewer values of beta.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Report
        The page.
    """
    folder = make_folder(output)
    n = 600 if quick else 1000
    diagram_betas = _QUICK_DIAGRAM if quick else _DIAGRAM
    with Ticker("parts", len(diagram_betas) + 5, progress=progress) as ticker:
        densities = {}
        for beta in diagram_betas:
            densities[beta] = _without_held(density_phases([beta])[0])
            ticker.advance()
        found = circle_phases(n, _BETAS[:3]) if quick else [densities[beta] for beta in _BETAS]
        ticker.advance()
        least_betas = _QUICK_LEAST if quick else _LEAST
        counts = (150, 300, 600) if quick else (1000, 2000, 4000)
        least = [densities[beta] for beta in least_betas]
        by_count = [[one.approach_distance for one in circle_phases(count, least_betas)] for count in counts]
        ticker.advance()
        scaling = _SCALING[:2] if quick else _SCALING
        errors = scaling_errors(1000 if quick else 2000, scaling)
        ticker.advance()
        film = simulate(circle_law(n).points, SphereFlow(CIRCLE_B, CIRCLE_V, 100.0), time=14.0, step=0.08)
        at_hundred = found[2]
        ticker.advance()
        sphere, sphere_table = _sphere(1500)
        ticker.advance()
    figures = {
        "distances": _figure_of(lambda ax: draw_distances(found, ax=ax), 6.4, 4.2),
        "scaling-in-beta": _figure_of(lambda ax: draw_scaling(scaling, errors, _SCALING_TIME, ax=ax), 5.4, 4.2),
        "least-distance": _figure_of(
            lambda ax: draw_least_distances(least, ax=ax, tokens=dict(zip(counts, by_count, strict=True))), 5.8, 4.2
        ),
        "durations": _figure_of(lambda ax: draw_durations(found, ax=ax), 5.4, 4.2),
        "terminal-phase": _figure_of(lambda ax: draw_angles(film, ax=ax, marks=_marks(at_hundred)), 6.4, 4.2),
        "phase-diagram": _figure_of(lambda ax: draw_phase_diagram([*densities.values()], ax=ax), 6.4, 4.4),
        "sphere": sphere,
    }
    tables = {
        "phases": _phases_table(found),
        "least-distance": _least(least, counts, by_count),
        "phase-diagram": _diagram_table([*densities.values()]),
        "sphere": sphere_table,
        "scaling-in-beta": _scaling(scaling, errors),
    }
    report = _page(figures, tables)
    write_results(folder, figures, tables)
    report.write(folder / PAGE)
    return report


def _without_held(one: Phases) -> Phases:
    """The phases without an escape where the run ends before the law is as far from the limit as at the start."""
    later = one.distances[int(one.distances.argmin()) :]
    return one if later.max() > one.distances[0] else replace(one, escape_time=None, escape=None)


def _figure_of(draw: Callable[[Axes], Axes], width: float, height: float) -> Figure:
    figure = new_figure(width, height)
    draw(figure.add_subplot())
    return figure


def _marks(found: Phases) -> dict[str, float]:
    marks = {"closest approach": found.approach_time}
    if found.escape_time is not None:
        marks["escape"] = found.escape_time
    return marks


def _sphere(n: int) -> tuple[Figure, Table]:
    tokens = fibonacci_sphere(n, axis=_TILT).points
    law = low_temperature_limit(tokens, SPHERE_B, SPHERE_V)
    flow = SphereFlow(SPHERE_B, SPHERE_V, 100.0, few_tokens="ignore")
    run = simulate(tokens, flow, time=25.0, step=0.1, keep=[0, 15, 60, 150, 250])
    times = np.asarray(run.times)
    rows = []
    for time, state in zip(times, np.asarray(run.tokens), strict=True):
        side = np.where(state[:, 1:2] < 0, -1.0, 1.0)
        spread = math.sqrt(float(((state - side * np.array([0.0, 1.0, 0.0])) ** 2).sum(axis=1).mean()))
        rows.append((float(time), float(wasserstein(state, law.positions)), spread))
    note = (
        f"B = diag(2, 1, 1), V = diag(1, 2, 1/2), beta = 100, {n} Fibonacci tokens around an axis tilted by 4 degrees."
        " With four tokens per kernel the length of the second phase depends on the positions of the tokens: the tilt "
        "was chosen among some twenty, of which about half had left the circle at t = 25."
    )
    table = Table("On the sphere", ("time", "W2 to the circle of the limit", "rms distance to ± e2"), rows, note)
    return draw_sphere(run, times.tolist()), table


def _phases_table(found: list[Phases]) -> Table:
    rows = []
    for one in found:
        fell, rose = one.concentration, one.escape
        rows.append(
            (
                one.beta,
                one.approach_distance,
                one.approach_time,
                one.expected_approach_time,
                one.escape_time,
                one.expected_escape_time,
                None if fell is None else fell.rate,
                None if rose is None else rose.rate,
                one.terminal.distance,
            )
        )
    columns = (
        "beta",
        "least W2",
        "closest at t",
        "ln(beta)/2c",
        "escape at t",
        "theory, to leading order",
        "rate of concentration (theory 0.5)",
        "rate of escape (theory 1)",
        "rms distance to the top of V",
    )
    logs = np.log([one.beta for one in found])
    closest = np.polyfit(logs, [one.approach_time for one in found], 1)[0]
    escape = np.polyfit(logs, [one.escape_time or math.nan for one in found], 1)[0]
    note = (
        f"Slope against ln(beta): closest approach {closest:.3f} (theory 1), escape {escape:.3f} (theory 1.5). The "
        "theory fixes slopes, not the constants that times share."
    )
    return Table("Phases on the circle", columns, rows, note)


def _least(found: Sequence[Phases], counts: Sequence[int], by_count: Sequence[Sequence[float]]) -> Table:
    betas = [one.beta for one in found]
    slope = np.polyfit(np.log(betas), np.log([one.approach_distance for one in found]), 1)[0]
    columns = ("beta", "least W2 of the density", *(f"{count} tokens" for count in counts), "range of token counts")
    rows = []
    for k, one in enumerate(found):
        values = [several[k] for several in by_count]
        rows.append((one.beta, one.approach_distance, *values, max(values) - min(values)))
    note = f"Slope {slope:.3f} of the density; that of the width of the kernel is -0.5."
    return Table("Least W2 against beta", columns, rows, note)


def _diagram_table(found: Sequence[Phases]) -> Table:
    """Times and least distances of the densities of the phase diagram, with a check that W2 falls with beta."""
    rows: list[tuple[float | None, ...]] = []
    before: Phases | None = None
    for one in found:
        rise = None
        if before is not None:
            early = before.times <= before.approach_time
            rise = float((np.interp(before.times, one.times, one.distances) - before.distances)[early].max())
        rows.append((one.beta, one.approach_distance, one.approach_time, one.escape_time, rise))
        before = one
    columns = ("beta", "least W2", "closest at t", "escape at t", "largest rise of W2 above the beta before")
    note = (
        "The last column compares W2 with that at the next smaller beta, up to the closest approach of the latter. It "
        "is largest at about half that time, and of the same size for tokens. No escape: the clusters have not left at "
        "the end of the run."
    )
    return Table("Phases of the density against beta", columns, rows, note)


def _scaling(betas: Sequence[float], errors: Sequence[float]) -> Table:
    slope = np.polyfit(np.log(betas), np.log(errors), 1)[0]
    return Table(
        "Error at a fixed time", ("beta", "rms error"), list(zip(betas, errors, strict=True)), f"Slope {slope:.3f}."
    )


def _page(figures: dict[str, Figure], tables: dict[str, Table]) -> Report:
    pictures = {name: figure_bytes(figure, dpi=150) for name, figure in figures.items()}
    report = Report(
        "Mean-field transformers at low temperature",
        lead="Tokens on the unit sphere attend to each other by softmax. For many tokens and large beta they first "
        "concentrate at the image of a linear map, stay there for a time that grows like log beta, and then move to "
        "the leading direction of the value matrix. After Alcalde, Bungert, Riedl and Roith (arXiv 2605.10931).",
    )
    report.section("Concentration and metastability").text(
        "B = diag(4, 1), V = diag(1, 2) on the circle: the limit map sends every token to plus or minus e1, although V "
        "prefers e2. The distance to that law falls at a rate given by the spectrum of V B, and rises when clusters "
        "attend to themselves."
    ).picture(
        pictures["distances"],
        "W2 to the limit law; dots mark the closest approach. Dashed: the rates of the theory.",
    ).table(tables["phases"])
    report.section("Three phases of the tokens").text(
        "The angle of every token through time, at beta = 100. First all gather at the angles 0 and pi, then they "
        "rest, then both clusters leave for the angle pi/2."
    ).picture(pictures["terminal-phase"], "Colours show where a token started.")
    report.section("How near it comes").text(
        "The least W2 to the limit law against beta, for the density itself and for three numbers of quantile tokens. "
        "Where few tokens are left between the clusters they attend to themselves, stand still and raise the distance."
    ).picture(pictures["least-distance"], "Density, with its slope, and tokens.", narrow=True).table(
        tables["least-distance"]
    )
    report.section("How long it lasts").text(
        "Both times grow like log beta, with the slopes 1/(2c) and (1/c + 1/(v_top - v_1))/2."
    ).picture(pictures["durations"], "Times read off the runs, with fitted slopes beside the theory's.", narrow=True)
    report.section("Phase diagram").text(
        "Of the density. At the two largest values of beta the clusters do not leave within the time shown. A cluster "
        "at x that has moved from e1 attends to mass behind it, a share p of all, if p is above exp(-beta (|Bx| - "
        "<x, Bx>)), and the mass that is still arriving, a share of about exp(-2t), is enough to hold it at a distance "
        "of about 2 sqrt(t/beta)/1.5. Thousands of tokens have no mass that small: they leave as the theory says."
    ).picture(
        pictures["phase-diagram"], "Bright: close to the limit law. The metastable phase widens with beta."
    ).table(tables["phase-diagram"])
    report.section("Error at a fixed time").text(
        "Against the exact zero-temperature flow the error falls like 1/beta for a smooth law, faster than the "
        "theorem's bound, which asks for less."
    ).picture(pictures["scaling-in-beta"], "Measured, with the fitted slope.", narrow=True).table(
        tables["scaling-in-beta"]
    )
    report.section("On the sphere").text(
        "A repeated leading eigenvalue: tokens gather on a great circle first, and only later at the two ends of e2."
    ).picture(pictures["sphere"], "Bright: in front. Colours show where a token started.").table(tables["sphere"])
    report.section("Reproduce this page").code("hardmax reproduce meanfield")
    return report
