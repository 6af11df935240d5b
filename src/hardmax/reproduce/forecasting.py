"""The four cases of the time-delayed transformer paper, its claims beside what we measure.

After Alcalde, Widhalm, Yılmaz, arXiv 2602.08478. Its aerodynamic data (lift and drag of the NLR7301 airfoil) are not
public: a typical section past its flutter speed stands in for them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from ..figures import figure_bytes, save_figure
from ..figures.forecast_reading import draw_eigenvalues
from ..figures.forecasting import draw_forecast
from ..files import make_folder, write_text
from ..forecasting.forecaster import TimeDelayedTransformer
from ..forecasting.linear import TimeDelayedDMD
from ..forecasting.polynomial import NextGenerationReservoir
from ..forecasting.protocol import AbstractForecaster
from ..progress import Ticker
from .forecasting_cases import ForecastCase, airfoil_case, lorenz_case, sinusoid_case, spiral_case
from .report import Report
from .tables import Table

PAGE = "forecasting.html"
OURS, PAPER = "ours", "published recipe"
_LEAD = (
    "One attention layer with one query forecasts a dynamical system from a window of its past. The paper compares it "
    "with time-delayed DMD on four cases; here they are made anew, with the published recipe (AdamW on increments) and "
    "with our default, which keeps the linear model wherever nothing nonlinear forecasts better."
)


@dataclass(frozen=True)
class _Part:
    """A case, what the paper claims of it, and what to look at."""

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
)


def models(*, quick: bool) -> dict[str, AbstractForecaster]:
    """What is compared, by name; quick searches are shorter."""
    seconds = 2.0 if quick else None
    return {
        "TD-DMD, tuned": TimeDelayedDMD(seconds=seconds),
        "NG-RC, tuned": NextGenerationReservoir(seconds=seconds),
        PAPER: TimeDelayedTransformer(recipe="paper", seconds=seconds, random_state=0, progress=False),
        OURS: TimeDelayedTransformer(seconds=seconds, random_state=0, progress=False),
    }


def reproduce(output: str | os.PathLike[str], *, quick: bool = False, progress: bool | None = None) -> Report:
    """Make the figures and the table and write them, with a page that shows them all, into the folder ``output``."""
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
            section = report.section(part.title).text(f"The paper's claim: {part.claim}.\n\n{ours.report_}")
            section.picture(
                figure_bytes(figure, dpi=130),
                "The record, our forecast with its spread, and what really followed (dashed).",
            ).table(
                Table(
                    f"Rollouts over {case.horizon} steps from {len(case.windows)} starts",
                    ("model", "NRMSE", f"valid time, {unit}", "seconds"),
                    found,
                    f"At most {case.horizon * case.dt / (case.lyapunov_time or 1.0):.4g} {unit} are looked at.",
                )
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
        "the whole field for the spiral). Seconds of one core for the fit and the rollouts.",
    )
    report.section("All cases").table(table)
    write_text(folder / "cases.csv", table.to_csv())
    write_text(folder / "cases.json", table.to_json())
    write_text(folder / "cases.md", f"{table.to_markdown()}\n\n{table.note}\n")
    report.write(folder / PAGE)
    return report


def _slug(title: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in title.lower()).strip("-")


def _picture(case: ForecastCase, model: TimeDelayedTransformer) -> Figure:
    """The forecast from the start in the middle, beside what followed; two channels are enough of many."""
    k, shown = len(case.windows) // 2, min(3, case.truth.shape[2])
    steps = min(case.horizon, 300)
    ahead = model.forecast(steps, window=case.windows[k])
    kept = type(ahead)(
        ahead.values[:, :shown],
        ahead.spread[:, :shown],
        ahead.times,
        ahead.outcome,
        int(np.asarray(ahead.left_range_at)),
    )
    return draw_forecast(
        case.windows[k][:, :shown], kept, dt=case.dt, names=case.names[:shown], truth=case.truth[k][:, :shown]
    )
