"""What ``hardmax forecast`` does: a series in, a model, its past record and a forecast out."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import typer

from ..datasets.series import Series
from ..errors import FileError, InputError
from ..figures.forecasting import draw_forecast
from ..figures.save import FORMATS, save_figure
from ..files import require_writable, write_text
from ..forecasting.data.series import Gaps
from ..forecasting.diagnostics.backtest import Backtest
from ..forecasting.forecast import Forecast
from ..forecasting.forecaster import TimeDelayedTransformer, load_forecaster
from ..progress import StageLog, Tell
from .forecast_report import Columns, Measured, even_series, read_measured, sentences
from .outputs import require_target

_FIT = 0.55
"""The share of the time for the fit; the backtest, which learns from three quarters of the data, has the rest."""


@dataclass(frozen=True)
class Request:
    """The options of the command, read."""

    file: Path
    steps: int
    columns: list[str] | None
    inputs: list[str] | None
    ahead: Path | None
    time_column: str | None
    dt: float | None
    gaps: str
    resample: bool
    window: int | None
    recipe: str
    seconds: float | None
    seed: int
    starts: int
    figure: Path | None
    output: Path | None
    save: Path | None
    model: Path | None
    as_json: bool


def run(request: Request) -> None:
    """Read, fit or load, judge, forecast, tell, write."""
    _check(request)
    with StageLog("forecast", most=request.seconds if request.model is None else None) as log:
        log("reading", 0.0, 1.0)
        measured = _read(request)
        if request.model is None:
            model, backtest = _judged(request, measured, log)
            ahead = model.forecast(request.steps, u=measured.ahead)
        else:
            model, backtest = load_forecaster(request.model), None
            ahead = _from_the_end(request, model, measured)
        log("writing" if request.figure is None else "figure", 0.98, 1.0)
        written = _write(request, model, measured, ahead)
        # Eigenvalues and the Lyapunov exponent are computed for the words.
        log("reading the model", 0.99, 1.0)
        words = [] if request.as_json else list(sentences(model, measured, backtest, ahead))
    if request.as_json:
        typer.echo(json.dumps(_data(model, measured.series, backtest, ahead, written)))
        return
    for line in words:
        typer.echo(line)
    for path in written:
        typer.echo(f"Wrote {path}.")


def _read(request: Request) -> Measured:
    measured = read_measured(
        request.file,
        _columns(request),
        time=request.time_column,
        gaps=request.gaps,
        resample=request.resample,
        ahead=request.ahead,
        steps=request.steps,
    )
    return measured if request.dt is None else replace(measured, series=measured.series.stepping(request.dt))


def _judged(request: Request, measured: Measured, log: StageLog) -> tuple[TimeDelayedTransformer, Backtest | None]:
    """The model fitted to the series, and its backtest, within the seconds asked for."""
    began = time.monotonic()
    share = _FIT if request.starts else 1.0
    model = _fitted(request, measured, None if request.seconds is None else share * request.seconds, log)
    if not request.starts or model.report_.numbers.get("kept") == "constant":
        return model, None
    if request.seconds is not None:
        # A fit that ended early leaves its time to the backtest.
        model.set_params(budget=max(request.seconds - (time.monotonic() - began), (1 - _FIT) * request.seconds / 2))
    model.set_params(progress=_part(log, "backtest", _FIT, 0.97))
    horizon = min(request.steps, max(2, len(measured.series) // 8))
    backtest = model.backtest(horizon, request.starts)
    return model.set_params(budget=request.seconds, progress=None), backtest


def _part(log: StageLog, name: str, begin: float, end: float) -> Tell:
    """What tells the log of a part of the command, between these shares of the whole."""

    def tell(stage: str, done: float, total: float | None) -> None:
        log(f"{name}: {stage}", begin + (end - begin) * (done / total if total else 0.0), 1.0)

    return tell


def _check(request: Request) -> None:
    if request.steps < 1:
        raise InputError("--steps", request.steps, "must be at least 1", "pass for example --steps 200")
    if request.gaps not in ("refuse", "interpolate"):
        raise InputError("--gaps", repr(request.gaps), "must be refuse or interpolate", "pass --gaps interpolate")
    if request.dt is not None and not (np.isfinite(request.dt) and request.dt > 0):
        raise InputError("--dt", request.dt, "must be a positive number", "pass the time between samples: --dt 0.1")
    if request.window is not None and request.window < 1:
        raise InputError("--window", request.window, "must be at least 1", "pass for example --window 20")
    if request.seconds is not None and not (np.isfinite(request.seconds) and request.seconds > 0):
        problem = "must be a positive number, or 0 for no limit"
        raise InputError("--seconds", request.seconds, problem, "pass --seconds 10, or leave it out")
    if request.recipe not in ("family", "paper"):
        raise InputError("--recipe", repr(request.recipe), "must be family or paper", "leave it out for family")
    if request.starts < 0:
        raise InputError("--starts", request.starts, "must not be negative", "pass --starts 20, or 0 for no backtest")
    require_target("--figure", request.figure, FORMATS)
    if request.output is not None:
        if request.output.suffix.lower() != ".csv":
            raise FileError(request.output, "--output writes CSV only", "end the name in .csv")
        require_writable(request.output)
    if request.model is not None and request.save is not None:
        raise InputError("--save", str(request.save), "cannot be used with --model", "the model is kept already")


def _columns(request: Request) -> Columns:
    kept = None if request.model is None else Columns.kept(request.model)
    if kept is None:
        return Columns(request.columns, request.inputs or [])
    return Columns(
        kept.channels if request.columns is None else request.columns,
        kept.inputs if request.inputs is None else request.inputs,
    )


def _fitted(request: Request, measured: Measured, budget: float | None, log: StageLog) -> TimeDelayedTransformer:
    series = measured.series
    timed = bool(series.time_name)
    model = TimeDelayedTransformer(
        delays=None if request.window is None else request.window - 1,
        recipe=request.recipe,
        budget=budget,
        random_state=request.seed,
        progress=_part(log, "fit", 0.01, _FIT if request.starts else 0.97),
    )
    return model.fit(
        series.values,
        times=series.times if timed else None,
        dt=None if timed else 1.0 if request.dt is None else request.dt,
        u=measured.inputs,
        gaps=cast(Gaps, request.gaps),
        irregular="resample" if request.resample else "refuse",
    )


def _from_the_end(request: Request, model: TimeDelayedTransformer, measured: Measured) -> Forecast:
    """From the last samples of a series by a model that was fitted before, at the times of the series."""
    series, steps = even_series(measured, request.gaps, request.resample), request.steps
    if series.channels != model.channels_:
        raise FileError(
            series.source,
            f"has {series.channels} channels and the model knows {model.channels_}",
            "choose the columns that it was fitted to with --columns",
        )
    if model.forcing_ is not None and measured.inputs is None:
        problem = f"has channels only and the model was fitted with {model.forcing_.width} inputs"
        raise FileError(series.source, problem, "name them with --inputs, and pass those to come with --ahead")
    step = series.dt if series.time_name or request.dt is not None else model.dt_
    if abs(step - model.dt_) > 1e-3 * model.dt_:
        raise FileError(
            series.source,
            f"has samples {step:.6g} apart and the model was fitted to {model.dt_:.6g}",
            "sample the series alike, or fit again",
        )
    u = None
    if measured.inputs is not None and measured.ahead is not None:
        u = np.concatenate([measured.inputs[-model.window :], measured.ahead])
    ahead = model.forecast(steps, window=series.values[-model.window :], u=u)
    times = series.times[-1] + model.dt_ * np.arange(1, steps + 1)
    return Forecast(ahead.values, ahead.spread, times, ahead.outcome, ahead.left_range_at)


def _write(request: Request, model: TimeDelayedTransformer, measured: Measured, ahead: Forecast) -> list[str]:
    written, series = [], measured.series
    if request.save is not None:
        folder = model.save(request.save)
        Columns(list(series.names), list(measured.input_names)).keep(folder)
        written.append(str(request.save))
    if request.output is not None:
        columns = {series.time_name or "time": series.dates(ahead.times) if series.began else ahead.times}
        columns |= {name: ahead.values[:, k] for k, name in enumerate(series.names)}
        columns |= {f"{name} spread": ahead.spread[:, k] for k, name in enumerate(series.names)}
        write_text(request.output, pd.DataFrame(columns).to_csv(index=False))
        written.append(str(request.output))
    if request.figure is not None:
        record = pd.DataFrame(series.values).interpolate(limit_direction="both").to_numpy()
        timed = bool(series.time_name)
        figure = draw_forecast(
            record,
            ahead,
            dt=model.dt_,
            names=series.names,
            times=series.times if timed else None,
            dates=series.dates if series.began else None,
        )
        save_figure(figure, request.figure)
        written.append(str(request.figure))
    return written


def _data(
    model: TimeDelayedTransformer, series: Series, backtest: Backtest | None, ahead: Forecast, written: list[str]
) -> dict[str, object]:
    return {
        "source": series.source,
        "samples": len(series),
        "channels": list(series.names),
        "time_column": series.time_name or None,
        "dt": model.dt_,
        "report": model.report_.data(),
        "backtest": None if backtest is None else backtest.data(),
        "forecast": ahead.data(),
        "wrote": written,
    }
