"""The four cases of the time-delayed transformer paper with its claims and the measured errors, and a fifth case.

After Alcalde, Widhalm, Yılmaz, arXiv 2602.08478. Its aerodynamic data (lift and drag of the NLR7301 airfoil) are not
public; a simulated typical section past its flutter speed is used instead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ..figures import figure_bytes, save_figure
from ..figures.fields import draw_fields
from ..figures.forecast_diagnostics import draw_eigenvalues
from ..files import make_folder, write_text
from ..forecasting.forecaster import TimeDelayedTransformer
from ..progress import Ticker
from .forecasting_cases import (
    FieldView,
    ForecastCase,
    airfoil_case,
    lorenz_case,
    sinusoid_case,
    spiral_case,
    wake_case,
)
from .forecasting_comparison import (
    OURS,
    attention_table,
    attention_variants,
    climate,
    models,
    overlay,
)
from .report import Report, Table

PAGE = "forecasting.html"
_LEAD = (
    "One attention layer with one query forecasts a dynamical system from a window of its past. The paper compares it "
    "with time-delayed DMD on four cases. Here they are reproduced with the published recipe (AdamW on increments), "
    "with the same layer started from weights that carry TD-DMD and trained by variable projection, and with the "
    "default of this library, which selects the linear model unless a nonlinear one forecasts better."
)
_QUICK = (
    "This is a quick run: records are shorter and every search ends after two seconds of processor time. It shows "
    "that the computation works. It cannot judge the trained models, whose training it ends early, nor the Lyapunov "
    "exponent and the histogram of long rollouts, which it leaves out; run the command without --quick for those."
)
_LIMITED = "Records are whole; every search or training ended after {:g} s of processor time."
_NO_CLAIM = (
    "Not in the paper. A cylinder between two walls sheds vortices at Re = 100, computed by a lattice Boltzmann "
    "method; the cycle is nearly linear once the velocity is reduced by POD."
)


@dataclass(frozen=True)
class _Part:
    """A case, the function that makes it, and the claim of the paper (empty where it has no such case)."""

    title: str
    make: Callable[[bool], ForecastCase]
    claim: str


PARTS = (
    _Part("A sum of sinusoids", lambda quick: sinusoid_case(quick=quick), "as good as TD-DMD on near-linear systems"),
    _Part(
        "Unsteady aerodynamics",
        lambda quick: airfoil_case(quick=quick),
        "better than TD-DMD; NLR7301 data, not public: here a typical section past flutter, from new initial angles",
    ),
    _Part("Lorenz '63", lambda quick: lorenz_case(quick=quick), "much better than TD-DMD on chaotic systems"),
    _Part(
        "A reaction–diffusion spiral",
        lambda quick: spiral_case(quick=quick),
        "much better than TD-DMD on nonlinear fields reduced by POD; here from new amplitudes",
    ),
    _Part("A confined cylinder wake", lambda quick: wake_case(quick=quick), ""),
)

_FITS = 7 * 4 + 5
"""Fits of a whole run: five models and two variants on the four cases of the paper, five models on the fifth."""


def reproduce_forecasting(
    output: str | os.PathLike[str],
    *,
    quick: bool = False,
    seconds: float | None = None,
    progress: bool | None = None,
) -> Report:
    """The cases of the time-delayed transformer paper (arXiv 2602.08478), as a page.

    Figures are written as PNG and PDF, the table as CSV, JSON and Markdown, the page as ``forecasting.html``; rows are
    written case by case.

    Parameters
    ----------
    output
        Folder for the figures, the tables and the page; it is made if it does not exist.
    quick
        Shorter records, and searches of two seconds.
    seconds
        Processor seconds after which each search or training ends, on the whole records; None for no limit.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Report
        The page.
    """
    folder = make_folder(output)
    limit = "" if seconds is None else _LIMITED.format(seconds)
    size = _QUICK if quick else limit
    seconds = 2.0 if quick else seconds
    report = Report("Time-delayed transformers", lead=f"{_LEAD} {size}".strip())
    rows: list[tuple[object, ...]] = []
    measured: dict[str, dict[str, float]] = {}
    by_time: set[str] = set()
    with Ticker("fits", _FITS, progress=progress) as ticker:
        for part in PARTS:
            case = part.make(quick)
            fitted = models(seconds=seconds)
            if part.claim:
                fitted |= attention_variants(seconds=seconds)
            found = []
            for name, model in fitted.items():
                began = time.thread_time()
                model.fit(case.training, case.dt)
                curves = case.curves(model)
                found.append((name, case.error(curves), case.valid_time(curves), time.thread_time() - began))
                ticker.advance(note=f"{part.title}, {name}")
            rows += [(part.title, *row) for row in found]
            if part.claim:
                chaotic = case.lyapunov_time is not None
                measured[part.title] = {name: valid if chaotic else error for name, error, valid, _ in found}
                by_time |= {part.title} if chaotic else set()
            ours = fitted[OURS]
            assert isinstance(ours, TimeDelayedTransformer)  # noqa: S101 (made so above)
            figure = overlay(case, fitted)
            save_figure(figure, folder / f"{_slug(part.title)}.png")
            save_figure(figure, folder / f"{_slug(part.title)}.pdf")
            unit = "Lyapunov times" if case.lyapunov_time else "units of time"
            claim = f"The paper's claim: {part.claim}." if part.claim else _NO_CLAIM
            section = report.section(part.title).text("\n\n".join(filter(None, (claim, case.about, str(ours.report_)))))
            section.picture(
                figure_bytes(figure, dpi=130),
                "The record, the default forecast with its spread, the forecasts of TD-DMD and of the published layer, "
                "and the true future (dashed). Lines end where they leave the panel.",
            ).table(
                Table(
                    f"Rollouts over {case.horizon} steps from {len(case.windows)} starts",
                    ("model", "NRMSE", f"valid time, {unit}", "seconds"),
                    found,
                    f"At most {case.horizon * case.dt / (case.lyapunov_time or 1.0):.4g} {unit} are compared.",
                )
            )
            if case.fields is not None:
                shown = _fields(case, case.fields, ours)
                save_figure(shown, folder / f"{_slug(part.title)}-fields.png")
                section.picture(
                    figure_bytes(shown, dpi=110),
                    "Fields reconstructed from the coefficients, for the start in the middle; the part outside the "
                    "modes is missing in all four.",
                )
            if not quick and case.lyapunov_time is not None:
                shown, long = climate(case, fitted)
                save_figure(shown, folder / "climate.png")
                write_text(folder / "climate.csv", long.to_csv())
                section.picture(
                    figure_bytes(shown, dpi=130),
                    "Long rollouts on the attractor of the record (grey), and their histograms.",
                ).table(long)
            if not quick and part is PARTS[0]:
                axes = draw_eigenvalues(ours)
                circle = axes.get_figure()
                assert isinstance(circle, Figure)  # noqa: S101 (a new one)
                save_figure(circle, folder / "eigenvalues.png")
                section.picture(
                    figure_bytes(circle, dpi=130), "Eigenvalues of the linear path: eight on the circle.", narrow=True
                )
            _write_tables(folder, rows, measured, by_time, size)
    adds, table = _write_tables(folder, rows, measured, by_time, size)
    report.section("What attention adds").table(adds)
    report.section("All cases").table(table)
    report.write(folder / PAGE)
    return report


def _write_tables(
    folder: Path,
    rows: list[tuple[object, ...]],
    measured: dict[str, dict[str, float]],
    by_time: set[str],
    size: str,
) -> tuple[Table, Table]:
    """The tables of attention and of all cases so far, also written as files; ``size`` says what limits the run."""
    table = Table(
        "All cases",
        ("case", "model", "NRMSE", "valid time", "seconds"),
        rows,
        "NRMSE: root mean square error of rollouts over all starts and steps, in standard deviations of the data (of "
        "the whole field for the spiral and the wake). Seconds of one core for the fit and the rollouts."
        + (f" {size}" if size else ""),
    )
    adds = attention_table(measured, by_time)
    write_text(folder / "attention.csv", adds.to_csv())
    write_text(folder / "attention.md", f"{adds.to_markdown()}\n\n{adds.note}\n")
    write_text(folder / "cases.csv", table.to_csv())
    write_text(folder / "cases.json", table.to_json())
    write_text(folder / "cases.md", f"{table.to_markdown()}\n\n{table.note}\n")
    return adds, table


def _fields(case: ForecastCase, view: FieldView, model: TimeDelayedTransformer) -> Figure:
    """Figure for the start in the middle: its last known field, the true field at the horizon, and its forecast."""
    k = len(case.windows) // 2
    end = model.roll(case.windows[k : k + 1], case.horizon)[0, -1]
    return draw_fields(
        view.shown(case.windows[k, -1]),
        view.shown(case.truth[k, -1]),
        view.shown(end),
        x=view.x,
        y=view.y,
        hidden=view.hidden,
        name=view.name,
        ahead=f"{case.horizon * case.dt:.3g} units of time ahead",
    )


def _slug(title: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in title.lower()).strip("-")
