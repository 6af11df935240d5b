"""Updates of a forecaster sample by sample, as a share of the fit, and the fit of a long record; processor time."""

from __future__ import annotations

import time

import numpy as np

from hardmax.datasets.chaotic import lorenz63
from hardmax.datasets.series import Series
from hardmax.forecasting.forecaster import TimeDelayedTransformer

from ._table import Check, Report

_UPDATES = 40
"""Samples that are learned one by one after each fit."""
_AHEAD = 100
"""Steps of a forecast after an update."""
_LONG = 50_000
"""Samples of the long record, which is to be fitted within two minutes."""


def run(*, quick: bool = False) -> Report:
    """Fits to records of several lengths, each followed by single updates; ``quick`` takes the shortest."""
    columns = ["record", "samples", "fit s", "first update ms", "update ms", "update, % of the fit"]
    report = Report("Updates", [*columns, "with a forecast, %"])
    shares = []
    for samples in (600,) if quick else (600, 2000, 5000, _LONG):
        record = lorenz63(samples + 1 + 2 * _UPDATES, 0.02, random_state=0)
        kinds = {"Lorenz '63, three channels": record, "Lorenz '63, first channel, 2 % noise": _noisy(record)}
        for name, series in kinds.items():
            if samples == _LONG and series is not record:
                continue
            fit, first, update, both = _seconds(series.values, samples, series.dt)
            shares.append(100 * update / fit)
            report.rows.append([name, samples, fit, 1e3 * first, 1e3 * update, shares[-1], 100 * both / fit])
            if samples == _LONG:
                report.checks.append(Check(f"fit of {_LONG:,} samples", fit, 120, at_least=False, unit="s"))
    report.checks.append(Check("one update, share of a fit at most", max(shares), 1.0, at_least=False, unit="%"))
    report.notes.append(
        f"Processor seconds of one core, default settings; update: mean of {_UPDATES} single samples after the first, "
        f"which sums up the data of the fit; with a forecast: mean of {_UPDATES} more, each followed by a forecast of "
        f"{_AHEAD} steps, for which the readouts are solved."
    )
    return report


def _noisy(record: Series) -> Series:
    return record.observing(0).with_noise(0.02, 0)


def _seconds(values: np.ndarray, samples: int, dt: float) -> tuple[float, float, float, float]:
    """Processor seconds of a fit to the first samples, the first update, an update, and an update with a forecast."""
    model = TimeDelayedTransformer(random_state=0, progress=False)
    began = time.process_time()
    model.fit(values[:samples], dt=dt)
    fit = time.process_time() - began
    began = time.process_time()
    model.update(values[samples : samples + 1])
    first = time.process_time() - began
    silent, asked = np.split(values[samples + 1 :], 2)
    began = time.process_time()
    for sample in silent:
        model.update(sample[None])
    update = (time.process_time() - began) / _UPDATES
    began = time.process_time()
    for sample in asked:
        model.update(sample[None])
        model.forecast(_AHEAD)
    return fit, first, update, (time.process_time() - began) / _UPDATES
