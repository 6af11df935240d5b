"""The work of ``hardmax forecast``: read a series, fit or load a model, backtest, forecast, write."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import typer
from matplotlib.figure import Figure

from ..errors import FileError, InputError
from ..figures.forecast_page import write_page
from ..figures.forecasting import draw_forecast, interval_of
from ..figures.save import FORMATS, save_figure
from ..files import require_writable, write_text
from ..forecasting.data.series import Gaps
from ..forecasting.diagnostics.backtest import Backtest
from ..forecasting.forecast import Band, Forecast
from ..forecasting.forecaster import TimeDelayedTransformer, load_forecaster
from ..forecasting.settings import MODELS
from ..progress import StageLog, Tell
from .forecast_report import (
    Columns,
    Measured,
    even_series,
    moments_of,
    naming_columns,
    notes_in_words,
    read_measured,
    sentences,
    unit_of,
)
from .options import require_target

_FIT = 0.55
"""The share of the time for the fit; the backtest, which learns from three quarters of the data, has the rest."""


_USUAL = 0.68
"""Probability of the narrower interval in the figure and on the page: that of a standard deviation."""


@dataclass(frozen=True)
class Request:
    """The options of the command, read."""

    files: list[Path]
    steps: int
    columns: list[str] | None
    inputs: list[str] | None
    ahead: Path | None
    time_column: str | None
    dt: float | None
    gaps: str
    resample: bool
    window: int | None
    season: list[int] | None
    kind: str | None
    pod: int | float | None
    lower: float | None
    upper: float | None
    transform: str | None
    interval: float
    recipe: str
    seconds: float | None
    seed: int
    starts: int
    figure: Path | None
    output: Path | None
    report: Path | None
    save: Path | None
    model: Path | None
    as_json: bool


@dataclass(frozen=True)
class _Result:
    """Results of the command for one file."""

    model: TimeDelayedTransformer
    measured: Measured
    backtest: Backtest | None
    ahead: Forecast
    band: Band | None
    lines: list[str]
    written: list[str]
    seconds: dict[str, float]


def run(request: Request) -> None:
    """Run the command: one file after the other."""
    _check(request)
    results = []
    for number, (file, name) in enumerate(zip(request.files, _names(request), strict=True)):
        if len(request.files) == 1:
            found = _run_one(request, "")
        else:
            with _about(file):
                found = _run_one(_one_of_several(request, file, name), f" {number + 1} of {len(request.files)}")
        results.append(found)
        if not request.as_json:
            if number:
                typer.echo("")
            for line in (*found.lines, *(f"Wrote {path}." for path in found.written)):
                typer.echo(line)
    if request.as_json:
        data = [_data(found, request.interval) for found in results]
        typer.echo(json.dumps(data[0] if len(data) == 1 else data))


def _names(request: Request) -> list[str]:
    """A name for each file, for what is written: without its ending, and with its folder where two have the same."""
    stems = [file.stem for file in request.files]
    names = [
        stem if stems.count(stem) == 1 else f"{file.absolute().parent.name}-{stem}"
        for file, stem in zip(request.files, stems, strict=True)
    ]
    for file, name in zip(request.files, names, strict=True):
        if names.count(name) > 1 and (request.figure or request.output or request.report or request.save):
            problem = f"and another would both be written as {name!r}"
            raise InputError("files", str(file), problem, "rename one, or pass it alone")
    return names


@contextmanager
def _about(file: Path) -> Iterator[None]:
    """Name the file in errors about its data: of several files, it is not known which one they are about."""
    try:
        yield
    except InputError as error:
        raise InputError(error.argument, f"{error.value} in {file}", error.problem, error.marked_remedy) from error


def _one_of_several(request: Request, file: Path, name: str) -> Request:
    """The request for one of several files; what is written has the name of the file in its own."""

    def named(path: Path | None) -> Path | None:
        return None if path is None else path.with_name(f"{path.stem}-{name}{path.suffix}")

    return replace(
        request,
        files=[file],
        figure=named(request.figure),
        output=named(request.output),
        report=named(request.report),
        save=None if request.save is None else request.save / name,
    )


def _run_one(request: Request, which: str) -> _Result:
    """Fit or load, backtest, forecast and write for the only file of the request."""
    seconds: dict[str, float] = {}
    with StageLog(f"forecast{which}", most=request.seconds if request.model is None else None) as log:
        log("reading", 0.0, 1.0)
        began = time.monotonic()
        measured = _read(request)
        seconds["reading"] = time.monotonic() - began
        if request.model is None:
            model, backtest = _fit_and_backtest(request, measured, log, seconds)
            ahead = model.forecast(request.steps, u=measured.ahead)
        else:
            model, backtest = load_forecaster(request.model), None
            ahead = _from_the_end(request, model, measured)
        if model.pod_ is not None:
            ahead = _as_columns(model, ahead)
        log("writing" if request.figure is None else "figure", 0.98, 1.0)
        began = time.monotonic()
        written = _write(request, model, measured, ahead)
        # Eigenvalues and the Lyapunov exponent are computed for the words.
        log("reading the model", 0.99, 1.0)
        even = even_series(measured, request.gaps, request.resample) if request.resample else measured.series
        lines = list(sentences(model, measured, backtest, ahead, even=len(even), level=request.interval))
        if request.report is not None:
            series = measured.series
            write_page(
                request.report,
                Path(series.source).name,
                lines,
                backtest,
                ahead,
                _figure(request, model, measured, ahead),
                names=series.names,
                moments=moments_of(series, ahead),
                unit=unit_of(series),
                levels=_levels(request.interval),
            )
            written.append(str(request.report))
        seconds["writing"] = time.monotonic() - began
    lines.append("Time: " + ", ".join(f"{stage} {spent:.1f} s" for stage, spent in seconds.items()) + ".")
    return _Result(model, measured, backtest, ahead, interval_of(ahead, request.interval), lines, written, seconds)


def _as_columns(model: TimeDelayedTransformer, ahead: Forecast) -> Forecast:
    """A forecast of modes as one of the columns that they reduce; its spread is that of modes and remainder."""
    values, spread = model.reconstruct(ahead), model.reconstruct_spread(ahead)
    return Forecast(values, spread, ahead.times, ahead.outcome, ahead.left_range_at)


def _read(request: Request) -> Measured:
    measured = read_measured(
        request.files[0],
        _columns(request),
        time=request.time_column,
        gaps=request.gaps,
        resample=request.resample,
        ahead=request.ahead,
        steps=request.steps,
    )
    return measured if request.dt is None else replace(measured, series=measured.series.stepping(request.dt))


def _fit_and_backtest(
    request: Request, measured: Measured, log: StageLog, seconds: dict[str, float]
) -> tuple[TimeDelayedTransformer, Backtest | None]:
    """The model fitted to the series, and its backtest, within the seconds asked for; their times are entered."""
    began = time.monotonic()
    share = _FIT if request.starts else 1.0
    model = _fitted(request, measured, None if request.seconds is None else share * request.seconds, log)
    seconds["fit"] = time.monotonic() - began
    if not request.starts or model.report_.numbers.get("kept") == "constant":
        return model, None
    if request.seconds is not None:
        # A fit that ended early leaves its time to the backtest.
        model.set_params(budget=max(request.seconds - (time.monotonic() - began), (1 - _FIT) * request.seconds / 2))
    model.set_params(progress=_part(log, "backtest", _FIT, 0.97))
    horizon = min(request.steps, max(2, len(measured.series) // 8))
    halfway = time.monotonic()
    backtest = model.backtest(horizon, request.starts)
    seconds["backtest"] = time.monotonic() - halfway
    return model.set_params(budget=request.seconds, progress=None), backtest


def _part(log: StageLog, name: str, begin: float, end: float) -> Tell:
    """A function that reports progress of a part of the command, between these shares of the whole."""

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
    if not 0.0 < request.interval < 1.0:
        raise InputError("--interval", request.interval, "must be between 0 and 1", "pass for example --interval 0.9")
    if request.transform not in (None, "auto", "log"):
        raise InputError("--transform", repr(request.transform), "must be none, auto or log", "pass --transform auto")
    if request.model is not None:
        given = {"--season": request.season, "--kind": request.kind, "--pod": request.pod, "--lower": request.lower}
        given |= {"--upper": request.upper, "--transform": request.transform}
        for flag, value in given.items():
            if value is not None:
                raise InputError(flag, value, "cannot be used with --model, which is fitted already", "leave it out")
    _known_options(request)
    if request.report is not None:
        if request.report.suffix.lower() != ".html":
            raise FileError(request.report, "--report writes HTML only", "end the name in .html")
        require_writable(request.report)
    require_target("--figure", request.figure, FORMATS)
    if request.output is not None:
        if request.output.suffix.lower() != ".csv":
            raise FileError(request.output, "--output writes CSV only", "end the name in .csv")
        require_writable(request.output)
    if request.model is not None and request.save is not None:
        raise InputError("--save", str(request.save), "cannot be used with --model", "the model is saved already")


def _known_options(request: Request) -> dict[str, object]:
    """Parameters of the estimator from ``--season`` and ``--kind``; refused where it has none of that name."""
    known = TimeDelayedTransformer().get_params()
    found: dict[str, object] = {}
    for flag, name, value in (("--season", "season", request.season), ("--kind", "model", request.kind)):
        if value is None:
            continue
        if name not in known:
            raise InputError(flag, value, "is not known to this version of the model", "leave it out")
        if flag == "--kind" and value not in MODELS:
            raise InputError(flag, value, f"must be one of {', '.join(MODELS)}", "pass --kind auto")
        found[name] = value
    if isinstance(found.get("season"), list) and len(cast(list[int], found["season"])) == 1:
        found["season"] = cast(list[int], found["season"])[0]
    return found


def _columns(request: Request) -> Columns:
    saved = None if request.model is None else Columns.saved_in(request.model)
    if saved is None:
        return Columns(request.columns, request.inputs or [])
    return Columns(
        saved.channels if request.columns is None else request.columns,
        saved.inputs if request.inputs is None else request.inputs,
    )


def _fitted(request: Request, measured: Measured, budget: float | None, log: StageLog) -> TimeDelayedTransformer:
    series = measured.series
    timed = bool(series.time_name)
    model = TimeDelayedTransformer(
        delays=None if request.window is None else request.window - 1,
        recipe=request.recipe,
        budget=budget,
        pod=request.pod,
        lower=request.lower,
        upper=request.upper,
        transform=request.transform,
        random_state=request.seed,
        progress=_part(log, "fit", 0.01, _FIT if request.starts else 0.97),
    ).set_params(**_known_options(request))
    try:
        with naming_columns(series):
            return model.fit(
                series.values,
                times=series.times if timed else None,
                dt=None if timed else 1.0 if request.dt is None else request.dt,
                u=measured.inputs,
                gaps=cast(Gaps, request.gaps),
                irregular="resample" if request.resample else "refuse",
            )
    except InputError as error:
        if error.argument != "model":
            raise
        # The parameter ``model`` is the option --kind here; --model is a folder.
        raise error.rephrased("--kind", lambda words: words.replace('model="auto"', "--kind auto")) from error


def _from_the_end(request: Request, model: TimeDelayedTransformer, measured: Measured) -> Forecast:
    """From the last samples of a series by a model that was fitted before, at the times of the series."""
    series, steps = even_series(measured, request.gaps, request.resample), request.steps
    channels = model.channels_ if model.pod_ is None else model.pod_.modes.shape[1]
    if series.channels != channels:
        raise FileError(
            series.source,
            f"has {series.channels} channels and the model knows {channels}",
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
    return replace(ahead, times=series.times[-1] + model.dt_ * np.arange(1, steps + 1))


def _write(request: Request, model: TimeDelayedTransformer, measured: Measured, ahead: Forecast) -> list[str]:
    written, series = [], measured.series
    if request.save is not None:
        folder = model.save(request.save)
        Columns(list(series.names), list(measured.input_names)).save(folder)
        written.append(str(request.save))
    if request.output is not None:
        columns = {series.time_name or "time": series.dates_with_offset(ahead.times) if series.began else ahead.times}
        columns |= {name: ahead.values[:, k] for k, name in enumerate(series.names)}
        columns |= {f"{name} spread": ahead.spread[:, k] for k, name in enumerate(series.names)}
        band = interval_of(ahead, request.interval)
        if band is not None:
            for k, name in enumerate(series.names):
                columns |= {f"{name} lower": band.lower[:, k], f"{name} upper": band.upper[:, k]}
        write_text(request.output, pd.DataFrame(columns).to_csv(index=False))
        written.append(str(request.output))
    if request.figure is not None:
        save_figure(_figure(request, model, measured, ahead), request.figure)
        written.append(str(request.figure))
    return written


def _levels(asked: float) -> tuple[float, ...]:
    """Probabilities of the intervals in the figure and on the page: about a standard deviation, and the one asked."""
    return tuple(sorted({_USUAL, asked}))


def _figure(request: Request, model: TimeDelayedTransformer, measured: Measured, ahead: Forecast) -> Figure:
    """Figure of the end of the record and the forecast."""
    series = measured.series
    return draw_forecast(
        pd.DataFrame(series.values).interpolate(limit_direction="both").to_numpy(),
        ahead,
        dt=model.dt_,
        names=series.names,
        times=series.times if series.time_name else None,
        dates=series.dates if series.began else None,
        levels=_levels(request.interval),
    )


def _data(found: _Result, level: float) -> dict[str, object]:
    series, model, band = found.measured.series, found.model, found.band
    ends = None if band is None else {"lower": band.lower.tolist(), "upper": band.upper.tolist()}
    ahead = found.ahead.data() | {
        "dates": series.dates_with_offset(found.ahead.times).tolist() if series.began else None,
        "interval": None if ends is None else {"level": level, **ends},
    }
    return {
        "source": series.source,
        "samples": len(series),
        "channels": list(series.names),
        "time_column": series.time_name or None,
        "dt": model.dt_,
        "report": model.report_.data() | {"sentences": notes_in_words(model.report_.sentences, series)},
        "backtest": None if found.backtest is None else found.backtest.data(),
        "forecast": ahead,
        "wrote": found.written,
        "seconds": found.seconds,
    }
