"""Updates of a forecaster sample by sample, as a share of the fit, and the fit of a long record; processor time."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from hardmax.datasets.chaotic import lorenz63
from hardmax.datasets.series import Series
from hardmax.forecasting.forecaster import TimeDelayedTransformer

from ._table import Check, Report

_UPDATES = 40
"""Samples that are learned one by one after each fit."""
_LONG = 50_000
"""Samples of the long record, which is to be fitted within two minutes."""


def run(*, quick: bool = False) -> Report:
    """Fits to records of several lengths, each followed by single updates; ``quick`` takes the shortest."""
    report = Report("Updates", ["record", "samples", "fit s", "update ms", "update, % of the fit"])
    shares = []
    for samples in (600,) if quick else (600, 2000, 5000, _LONG):
        record = lorenz63(samples + _UPDATES, 0.02, random_state=0)
        kinds = {"Lorenz '63, three channels": record, "Lorenz '63, first channel, 2 % noise": _noisy(record)}
        for name, series in kinds.items():
            if samples == _LONG and series is not record:
                continue
            fit, update = _seconds(series.values, samples, series.dt)
            shares.append(100 * update / fit)
            report.rows.append([name, samples, fit, 1e3 * update, shares[-1]])
            if samples == _LONG:
                report.checks.append(Check(f"fit of {_LONG:,} samples", fit, 120, at_least=False, unit="s"))
    report.checks.append(Check("one update, share of a fit at most", max(shares), 1.0, at_least=False, unit="%"))
    report.notes.append(
        f"Processor seconds of one core, default settings; update: median of {_UPDATES} single samples."
    )
    return report


def _noisy(record: Series) -> Series:
    return record.observing(0).with_noise(0.02, 0)


def _seconds(values: np.ndarray, samples: int, dt: float) -> tuple[float, float]:
    """Processor seconds of a fit to the first samples, and of one update with a sample after them."""
    model = TimeDelayedTransformer(random_state=0, progress=False)
    began = time.process_time()
    model.fit(values[:samples], dt=dt)
    fit = time.process_time() - began
    spent = []
    for sample in values[samples:]:
        began = time.process_time()
        model.update(sample[None])
        spent.append(time.process_time() - began)
    return fit, median(spent)
