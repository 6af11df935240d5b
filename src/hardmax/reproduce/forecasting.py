"""The four cases of the time-delayed transformer paper with its claims and the measured errors, and a fifth case.

After Alcalde, Widhalm, Yılmaz, arXiv 2602.08478. Its aerodynamic data (lift and drag of the NLR7301 airfoil) are not
public; a simulated typical section past its flutter speed is used instead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from ..figures import figure_bytes, save_figure
from ..figures.fields import draw_fields
from ..figures.forecast_diagnostics import draw_eigenvalues
from ..figures.forecasting import draw_forecast
from ..files import make_folder, write_text
from ..forecasting.forecaster import TimeDelayedTransformer
from ..forecasting.models.ng_rc import NextGenerationReservoir
from ..forecasting.models.td_dmd import TimeDelayedDMD
from ..forecasting.protocol import AbstractForecaster
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
from .report import Report
from .tables import Table

PAGE = "forecasting.html"
OURS, PAPER = "ours", "published recipe"
_LEAD = (
    "One attention layer with one query forecasts a dynamical system from a window of its past. The paper compares it "
    "with time-delayed DMD on four cases. Here they are reproduced with the published recipe (AdamW on increments) and "
    "with the default of this library, which selects the linear model unless a nonlinear one forecasts better."
)
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


def models(*, quick: bool) -> dict[str, AbstractForecaster]:
    """The models that are compared, by name; in a quick run their searches are shorter."""
    seconds = 2.0 if quick else None
    return {
        "TD-DMD, tuned": TimeDelayedDMD(seconds=seconds),
        "NG-RC, tuned": NextGenerationReservoir(seconds=seconds),
        PAPER: TimeDelayedTransformer(recipe="paper", seconds=seconds, random_state=0, progress=False),
        OURS: TimeDelayedTransformer(seconds=seconds, random_state=0, progress=False),
    }


def reproduce_forecasting(
    output: str | os.PathLike[str], *, quick: bool = False, progress: bool | None = None
) -> Report:
    """The cases of the time-delayed transformer paper (arXiv 2602.08478), as a page.

    Figures are written as PNG and PDF, the table as CSV, JSON and Markdown, the page as ``forecasting.html``.

    Parameters
    ----------
    output
        Folder for the figures, the tables and the page; it is made if it does not exist.
    quick
        Shorter records and searches.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.

    Returns
    -------
    Report
        The page.
    """
    folder = make_folder(output)
    report = Report("Time-delayed transformers", lead=_LEAD)
    rows: list[tuple[object, ...]] = []
    with Ticker("fits", 4 * len(PARTS), progress=progress) as ticker:
        for part in PARTS:
            case = part.make(quick)
            fitted = models(quick=quick)
            found = []
            for name, model in fitted.items():
                began = time.thread_time()
                model.fit(case.training, case.dt)
                curves = case.curves(model)
                found.append((name, case.error(curves), case.valid_time(curves), time.thread_time() - began))
                ticker.advance(note=f"{part.title}, {name}")
            rows += [(part.title, *row) for row in found]
            ours = fitted[OURS]
            assert isinstance(ours, TimeDelayedTransformer)  # noqa: S101 (made so above)
            figure = _picture(case, ours)
            save_figure(figure, folder / f"{_slug(part.title)}.png")
            save_figure(figure, folder / f"{_slug(part.title)}.pdf")
            unit = "Lyapunov times" if case.lyapunov_time else "units of time"
            claim = f"The paper's claim: {part.claim}." if part.claim else _NO_CLAIM
            section = report.section(part.title).text("\n\n".join(filter(None, (claim, case.about, str(ours.report_)))))
            section.picture(
                figure_bytes(figure, dpi=130),
                "The record, the default forecast with its spread, and the true future (dashed).",
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
            if not quick and part is PARTS[0]:
                axes = draw_eigenvalues(ours)
                circle = axes.get_figure()
                assert isinstance(circle, Figure)  # noqa: S101 (a new one)
                save_figure(circle, folder / "eigenvalues.png")
                section.picture(
                    figure_bytes(circle, dpi=130), "Eigenvalues of the linear path: eight on the circle.", narrow=True
                )
    table = Table(
        "All cases",
        ("case", "model", "NRMSE", "valid time", "seconds"),
        rows,
        "NRMSE: root mean square error of rollouts over all starts and steps, in standard deviations of the data (of "
        "the whole field for the spiral and the wake). Seconds of one core for the fit and the rollouts.",
    )
    report.section("All cases").table(table)
    write_text(folder / "cases.csv", table.to_csv())
    write_text(folder / "cases.json", table.to_json())
    write_text(folder / "cases.md", f"{table.to_markdown()}\n\n{table.note}\n")
    report.write(folder / PAGE)
    return report


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


def _picture(case: ForecastCase, model: TimeDelayedTransformer) -> Figure:
    """Figure of the forecast from the start in the middle and the true future, at most three channels."""
    k, shown = len(case.windows) // 2, min(3, case.truth.shape[2])
    steps = min(case.horizon, 300)
    ahead = model.forecast(steps, window=case.windows[k])
    few = type(ahead)(
        ahead.values[:, :shown],
        ahead.spread[:, :shown],
        ahead.times,
        ahead.outcome,
        int(np.asarray(ahead.left_range_at)),
    )
    return draw_forecast(
        case.windows[k][:, :shown], few, dt=case.dt, names=case.names[:shown], truth=case.truth[k][:, :shown]
    )
