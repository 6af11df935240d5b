"""``hardmax forecast``: the options; the work is done in :mod:`hardmax.cli.forecast_run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import read_number, read_whole


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(forecast)


def forecast(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="CSV, TSV, text, NPY, NetCDF or Parquet: one row per moment, one column per channel. Several files "
            "are fitted one by one.",
            show_default=False,
        ),
    ],
    steps: Annotated[str, typer.Option(metavar="N", help="Samples to look ahead.")] = "200",
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Channels to use; all but the time when left out.")
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns that act from outside and are known ahead; forecast the others."),
    ] = None,
    ahead: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The inputs of the steps to come, one row per step.")
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The time column, or none; found by itself when left out.")
    ] = None,
    dt: Annotated[str | None, typer.Option(metavar="T", help="Time between samples, where no column holds it.")] = None,
    gaps: Annotated[str, typer.Option(metavar="refuse|interpolate", help="What to do with empty cells.")] = "refuse",
    resample: Annotated[bool, typer.Option("--resample", help="Interpolate uneven times onto even ones.")] = False,
    window: Annotated[
        str | None, typer.Option(metavar="N", help="Look back at most N samples; chosen by itself when left out.")
    ] = None,
    season: Annotated[
        str | None,
        typer.Option(metavar="N,M", help="Samples in a season, or in several; found by itself when left out."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Select this kind of model: td-dmd, ng-rc, seasonal-naive, smoothing, arima, …",
        ),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option(metavar="N", help="Reduce many columns to N modes first; a share such as 0.999 of their energy."),
    ] = None,
    lower: Annotated[str | None, typer.Option(metavar="X", help="No forecast goes below X, such as 0.")] = None,
    upper: Annotated[str | None, typer.Option(metavar="X", help="No forecast goes above X.")] = None,
    transform: Annotated[
        str,
        typer.Option(metavar="none|auto|log", help="Fit logarithms of all channels, or where called for."),
    ] = "none",
    interval: Annotated[
        str, typer.Option(metavar="P", help="Probability of the intervals that are printed and written.")
    ] = "0.9",
    recipe: Annotated[
        str, typer.Option(metavar="NAME", help="family, or paper for the published model and its training.")
    ] = "family",
    seconds: Annotated[
        str,
        typer.Option(metavar="S", help="About how long fit and backtest may take together; 0 lets the search end."),
    ] = "60",
    seed: Annotated[str, typer.Option(metavar="S", help="Random seed.")] = "0",
    starts: Annotated[
        str, typer.Option(metavar="N", help="Forecasts in the backtest; 0 leaves the backtest out.")
    ] = "20",
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the forecast and its spread (.png .pdf .svg .html).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the forecast as CSV.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with figure, backtest and forecast (.html).")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Save the model for later.")] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", metavar="FOLDER", help="Use a saved model instead of fitting: no search."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Fit a time-delayed transformer to a series, backtest it, and forecast.

    The model is a linear one (time-delayed DMD) with nonlinear features beside it, which are selected only if they
    forecast validation data better. The backtest shows it beside persistence (tomorrow is like today), the mean,
    seasonal naive (like a season ago), analogues, TD-DMD and NG-RC, from several moments of the last quarter, which is
    not used for the fit: the column "valid time" says for about how long the forecast can be trusted, and a sentence
    how many samples the intervals held.

    Progress is shown on the error stream: a bar on a terminal, else one line per stage, with the time left.
    After 60 seconds the search ends with what it has found, and the report says so.

    [bold]Examples[/bold]

    [dim]# 200 samples ahead, with a picture[/dim]
    [cyan]hardmax forecast data.csv --steps 200 --figure out.png --save model/[/cyan]
    [dim]# two channels of many, with empty cells and uneven times[/dim]
    [cyan]hardmax forecast data.csv --columns lift,drag --gaps interpolate --resample[/cyan]
    [dim]# monthly counts with a page of results; intervals hold 95 % of the samples[/dim]
    [cyan]hardmax forecast sales.csv --steps 24 --lower 0 --transform auto --interval 0.95 --report sales.html[/cyan]
    [dim]# a valve as an input, and its future settings[/dim]
    [cyan]hardmax forecast plant.csv --inputs valve --ahead plan.csv --steps 50[/cyan]
    [dim]# a shorter search (of a long record it takes pieces, and refits the choice on all)[/dim]
    [cyan]hardmax forecast long.csv --seconds 20[/cyan]
    [dim]# the saved model from the end of newer data[/dim]
    [cyan]hardmax forecast newer.csv --model model/ --output ahead.csv[/cyan]
    """
    from .forecast_run import Request, run

    run(
        Request(
            files=files,
            steps=read_whole("--steps", steps, 200) or 0,
            columns=_names(columns),
            inputs=_names(inputs),
            ahead=ahead,
            time_column=time_column,
            dt=read_number("--dt", dt, 0.1),
            gaps=gaps,
            resample=resample,
            window=read_whole("--window", window, 20),
            season=_seasons(season),
            kind=kind,
            pod=_modes(pod),
            lower=read_number("--lower", lower, 0.0),
            upper=read_number("--upper", upper, 1.0),
            transform=None if transform == "none" else transform,
            interval=read_number("--interval", interval, 0.9) or 0.0,
            recipe=recipe,
            seconds=read_number("--seconds", seconds, 60.0) or None,
            seed=read_whole("--seed", seed, 0, least=0) or 0,
            starts=read_whole("--starts", starts, 20) or 0,
            figure=figure,
            output=output,
            report=report,
            save=save,
            model=model,
            as_json=as_json,
        )
    )


def _seasons(text: str | None) -> list[int] | None:
    return None if text is None else [read_whole("--season", part, 12, least=2) or 0 for part in text.split(",")]


def _modes(text: str | None) -> int | float | None:
    """A whole number of modes, or a share of their energy."""
    number = read_number("--pod", text, 8)
    return number if number is None or 0.0 < number < 1.0 else read_whole("--pod", text, 8, least=1)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
