"""Fit of a forecaster: from the caller's data to a value that holds everything a forecast needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..outcomes import counted
from .classical.counts import Counts, small_counts
from .data.continued import check_same_dates
from .data.exogenous_inputs import Forcing, read_inputs
from .data.labels import NO_LABELS, Labels, last_labels
from .data.pod import Pod, fit_pod, read_fields
from .data.series import (
    Gaps,
    Irregular,
    Record,
    Units,
    as_list,
    check_choices,
    drop_short,
    jump_at_the_end,
    read_series,
)
from .data.timestamps import times_of
from .data.units import Scaling
from .diagnostics.report import Report, report_on
from .online import Online
from .protocol import FloatArray
from .rollout import Predictor
from .search.model_search import SearchResult, fit_family
from .search.selection import Finalist
from .settings import Settings


@dataclass(frozen=True)
class FittedForecaster:
    """Everything that is learned or measured by a fit; the estimator stores its parts as attributes.

    Attributes
    ----------
    seed
        Seed of the random numbers.
    dt
        Time between samples.
    last_time
        Time of the last training sample.
    units
        Mean and standard deviation per channel.
    forcing
        Units of the exogenous inputs; None without inputs.
    pod
        Modes of the fields; None for series.
    predictor
        The fitted model in normalised units; None where no channel varies.
    last_window
        Last training samples, shape (window, channels).
    last_inputs
        Their inputs, shape (window, inputs), or None.
    report
        Sentences and numbers about the fit.
    explained_beyond_linear
        Share of the one-step error variance of TD-DMD that the model explains on validation data.
    budget_ended
        Whether a time budget ended the search or the training.
    search
        Result of the model search; None for the published recipe and for models from files.
    rows
        Normalised training data, one array (samples, channels) per trajectory; None for models from files.
    labels
        Names of the channels and dates of the record.
    kept
        The selected model and how to fit it again, for a backtest; None for the published recipe.
    online
        State of updates with new samples; None before the first.
    """

    seed: int
    dt: float
    last_time: float
    units: Units
    forcing: Forcing | None
    pod: Pod | None
    predictor: Predictor | None
    last_window: FloatArray
    last_inputs: FloatArray | None
    report: Report
    explained_beyond_linear: float
    budget_ended: bool
    search: SearchResult | None = None
    rows: list[FloatArray] | None = None
    labels: Labels = NO_LABELS
    kept: Finalist | None = None
    online: Online | None = None


@dataclass(frozen=True)
class _Learned:
    """A predictor, where one was fitted, and how it was found."""

    predictor: Predictor | None = None
    search: SearchResult | None = None
    explained_beyond_linear: float = 0.0
    budget_ended: bool = False


def fit_forecaster(
    series: object,
    settings: Settings,
    *,
    recipe: str,
    pod: int | float | None,
    dt: float | None,
    times: object,
    u: object,
    gaps: Gaps,
    irregular: Irregular,
    scaling: Scaling,
) -> FittedForecaster:
    """Model of ``series`` by the given recipe, with the units, the last window and the report of the fit."""
    check_choices(gaps, irregular)
    given = as_list(series)
    scaling.check(pod is not None)
    decomposition: Pod | None = None
    filled: tuple[str, ...] = ()
    if pod is not None:
        if dt is None and times is None:
            times = times_of(as_list(series))
        fields, filled = read_fields(series, gaps)
        decomposition, series = fit_pod(fields, pod)
        if decomposition.rank < pod:
            filled = (
                *filled,
                f"The fields have {counted(decomposition.rank, 'mode')} that vary, fewer than pod={pod}.",
            )
    record = read_series(series, dt=dt, times=times, gaps=gaps, irregular=irregular)
    check_same_dates(given, u)
    inputs = None if u is None else read_inputs(u, record.trajectories)
    record, inputs, notes = drop_short(record, inputs, settings.delays)
    units, logged = scaling.units(record.trajectories)
    if decomposition is not None:
        units = units.on_one_scale()
    forcing = None if inputs is None else Forcing(Units.of(inputs))
    rows = normalised_rows(record, inputs, units, forcing)
    outputs = len(units.keep)
    settings = replace(settings, zero=zero_of(units), count=count_of(record.trajectories, units))
    found = _learn(rows, outputs, settings, recipe) if outputs else _Learned()
    if found.predictor is not None and isinstance(found.predictor.path, Counts):
        units = units.of_counts(found.predictor.path.unit > 0)
    window = 1 if found.predictor is None else found.predictor.window
    labels = _labels(given, u, record, reduced=pod is not None)
    jump = jump_at_the_end(record, labels.names) if pod is None else ()
    return FittedForecaster(
        settings.seed,
        record.dt,
        record.last_time,
        units,
        forcing,
        decomposition,
        found.predictor,
        record.trajectories[-1][-window:],
        None if inputs is None else inputs[-1][-window:],
        report_on(
            settings,
            units,
            predictor=found.predictor,
            search=found.search,
            budget_ended=found.budget_ended,
            notes=(*filled, *record.notes, *notes, *jump, *logged),
        ),
        found.explained_beyond_linear,
        found.budget_ended,
        found.search,
        rows,
        labels,
        None if found.search is None else found.search.selection.chosen,
    )


def _labels(given: Sequence[object], u: object, record: Record, *, reduced: bool) -> Labels:
    """Labels of the record and its inputs; of fields that are reduced to modes, names of the inputs alone."""
    inputs = [] if u is None else as_list(u)
    labels = last_labels(given, inputs, record.last_time, len(record.trajectories[-1]), record.dt)
    return replace(NO_LABELS, inputs=labels.inputs) if reduced else labels


def _learn(rows: Sequence[FloatArray], outputs: int, settings: Settings, recipe: str) -> _Learned:
    if recipe == "paper":
        from .models.published import fit_paper  # imports torch, which takes seconds

        predictor, ended = fit_paper(rows, outputs, settings)
        return _Learned(predictor, budget_ended=ended)
    search = fit_family(rows, outputs, settings)
    return _Learned(search.predictor, search, search.beyond_linear, search.budget_ended)


def zero_of(units: Units) -> tuple[float, ...] | None:
    """What normalised samples lack, per varying channel, to be proportional to the data; None for their logarithms."""
    if units.shift is not None:
        return None
    return tuple(float(value) for value in units.mean[units.keep] / units.scale[units.keep])


def count_of(trajectories: Sequence[FloatArray], units: Units) -> tuple[float, ...] | None:
    """Size of one count in normalised units, per varying channel, 0 for other data; None without small counts."""
    small = small_counts(trajectories)[units.keep]
    if units.shift is not None or not small.any():
        return None
    return tuple(float(size) for size in np.where(small, 1.0 / units.scale[units.keep], 0.0))


def normalised_rows(
    record: Record, inputs: list[FloatArray] | None, units: Units, forcing: Forcing | None
) -> list[FloatArray]:
    """Normalised trajectories, one array (samples, channels + inputs) each."""
    rows = [units.normalise(z) for z in record.trajectories]
    if forcing is None or inputs is None:
        return rows
    return [forcing.attach(z, v) for z, v in zip(rows, inputs, strict=True)]
