"""Forecasting against PyDMD, PySINDy, reservoirpy, NG-RC and TD-DMD: accuracy beside time, and the promised figures.

The comparison on chaotic systems is a study of its own: ``hardmax reproduce forecasting-study``.
"""

from __future__ import annotations

import time

import numpy as np

from hardmax.datasets import TypicalSection, lorenz63
from hardmax.forecasting import EchoState, HigherOrderDMD, Sindy
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.models.ng_rc import NextGenerationReservoir
from hardmax.forecasting.models.td_dmd import TimeDelayedDMD
from hardmax.forecasting.protocol import AbstractForecaster
from hardmax.reproduce.forecasting_cases import (
    ForecastCase,
    airfoil_case,
    lorenz_case,
    sinusoid_case,
    spiral_case,
    spiral_cycle_case,
)

from ._measure import growth
from ._table import Check, Report

_OURS = "TD-TF"


def run(*, quick: bool = False) -> Report:
    """Measure everything; ``quick`` uses shorter records and searches."""
    report = Report("Forecasting", ["case", "model", "NRMSE", "valid time", "fit s", "roll s"])
    search = 2.0 if quick else 10.0
    cases = {
        "lorenz": lorenz_case(full=True, quick=quick),
        "sinusoids": sinusoid_case(quick=quick),
        "noisy": sinusoid_case(noise=0.05, quick=quick),
        "airfoil": airfoil_case(quick=quick),
        "spiral": spiral_case(quick=quick),
        "cycle": spiral_cycle_case(quick=quick),
    }
    found = {name: _compared(case, search, quick, report) for name, case in cases.items()}
    errors = {name: {model: row[0] for model, row in rows.items()} for name, rows in found.items()}
    floor = 1e-12  # below it nothing but rounding is compared
    report.notes += [
        f"Processor seconds of one core. Rivals search for {search:g} s on held-out rollouts; ours runs its whole "
        "recipe" + (f" in {search:g} s." if quick else "."),
        "NRMSE of rollouts over all starts and steps; valid time in Lyapunov times for Lorenz '63, else units of time.",
    ]
    report.checks += [
        Check(
            f"fit on {len(cases['lorenz'].training[0]):,} samples of 3 channels",
            found["lorenz"][_OURS][1],
            30.0,
            at_least=False,
            unit="s",
        ),
        Check("flutter speed of the typical section, off 6.285 by", _flutter_miss(), 0.005, at_least=False, unit=""),
        _ratio("sinusoids, error against the best tuned TD-DMD", errors["sinusoids"], "TD-DMD", 2.0, floor),
        _ratio("noisy sinusoids, error against HODMD", errors["noisy"], "HODMD (PyDMD)", 1.5, floor),
        _ratio("spiral cycle, error against the best tuned TD-DMD", errors["cycle"], "TD-DMD", 2.0, floor),
        Check("airfoil from new angles, NRMSE", errors["airfoil"][_OURS], 3e-3, at_least=False, unit=""),
        Check("spiral of new amplitudes, NRMSE", errors["spiral"][_OURS], 3e-2, at_least=False, unit=""),
    ]
    report.checks += _growths(quick)
    return report


def _compared(case: ForecastCase, search: float, quick: bool, report: Report) -> dict[str, tuple[float, float]]:
    """Rows of every model on one case; gives back their errors and the seconds of their fits."""
    models: list[AbstractForecaster] = [
        TimeDelayedTransformer(seconds=search if quick else None, budget=None, random_state=0, progress=False),
        TimeDelayedDMD(seconds=search),
        NextGenerationReservoir(seconds=search),
        HigherOrderDMD(seconds=search),
        Sindy(seconds=search),
        EchoState(seconds=search),
    ]
    found = {}
    for model in models:
        began = time.thread_time()
        model.fit(case.training, case.dt)
        fitted = time.thread_time()
        curves = case.curves(model)
        rolled = time.thread_time()
        error = case.error(curves)
        shown = error if np.isfinite(error) else "diverged"
        report.rows.append([case.name, model.name, shown, case.valid_time(curves), fitted - began, rolled - fitted])
        found[model.name] = (error, fitted - began)
    return found


def _ratio(what: str, errors: dict[str, float], rival: str, target: float, floor: float) -> Check:
    return Check(what, max(errors[_OURS], floor) / max(errors[rival], floor), target, at_least=False, unit="times")


def _flutter_miss() -> float:
    return abs(TypicalSection().flutter_speed() - 6.285)


def _growths(quick: bool) -> list[Check]:
    """The exponent of the cost: of a fit in the samples, and of the attention layer in the window."""
    few, many = (1000, 4000) if quick else (2500, 10000)
    series = lorenz63(many).values
    samples = [_fit_seconds(TimeDelayedTransformer(random_state=0, progress=False), series[:n]) for n in (few, many)]
    short, long = (16, 64) if quick else (16, 128)
    layer = [
        _fit_seconds(TimeDelayedTransformer(p, recipe="paper", random_state=0, progress=False), series[:few])
        for p in (short, long)
    ]
    return [
        Check(
            f"cost of a fit grows with {few:,} to {many:,} samples by the power",
            growth(*samples, many / few),
            1.1,
            False,
            "",
        ),
        Check(
            f"cost of the layer grows with {short} to {long} lags by the power",
            growth(*layer, long / short),
            1.1,
            False,
            "",
        ),
    ]


def _fit_seconds(model: TimeDelayedTransformer, values: np.ndarray) -> float:
    began = time.thread_time()
    model.fit(values, dt=0.02)
    return time.thread_time() - began
