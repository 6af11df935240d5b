"""``hardmax forecast``: fit a series and look ahead. What the command does is in ``forecasting``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import read_number, read_whole


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(forecast)


def forecast(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, text, NPY, NetCDF or Parquet: one row a moment, one column a channel.", show_default=False
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
        Path | None, typer.Option(metavar="FILE", help="The inputs of the steps to come, one row a step.")
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The time column, or none; found by itself when left out.")
    ] = None,
    dt: Annotated[str | None, typer.Option(metavar="T", help="Time between samples, where no column tells.")] = None,
    gaps: Annotated[str, typer.Option(metavar="refuse|interpolate", help="What to do with empty cells.")] = "refuse",
    resample: Annotated[bool, typer.Option("--resample", help="Interpolate uneven times onto even ones.")] = False,
    window: Annotated[
        str | None, typer.Option(metavar="N", help="Look back at most N samples; chosen by itself when left out.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(metavar="NAME", help="family, or paper for the published model and its training.")
    ] = "family",
    seconds: Annotated[
        str,
        typer.Option(metavar="S", help="About how long fit and backtest may take together; 0 lets the search end."),
    ] = "60",
    seed: Annotated[str, typer.Option(metavar="S", help="Seed of all that is random.")] = "0",
    starts: Annotated[
        str, typer.Option(metavar="N", help="Forecasts in the backtest; 0 leaves the backtest out.")
    ] = "20",
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the forecast and its spread (.png .pdf .svg .html).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the forecast as CSV.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep the model for later.")] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", metavar="FOLDER", help="Use a kept model instead of fitting: no search."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Fit a time-delayed transformer to a series, judge it on its own past, and forecast.

    The model is a linear one (time-delayed DMD) with nonlinear features beside it, which are kept only if they forecast
    data better that they have not seen. The backtest shows it beside persistence (tomorrow is like today), TD-DMD and
    NG-RC, from several moments of the last quarter, which it learns nothing from: trust the forecast for about as long
    as the column "valid time" says.

    What it does is told on the error stream as it goes: a bar on a terminal, else a line a stage, with the time left.
    After 60 seconds the search ends with what it has found, and the report says so.

    [bold]Examples[/bold]

    [dim]# 200 samples ahead, with a picture[/dim]
    [cyan]hardmax forecast data.csv --steps 200 --figure out.png --save model/[/cyan]
    [dim]# two channels of many, with empty cells and uneven times[/dim]
    [cyan]hardmax forecast data.csv --columns lift,drag --gaps interpolate --resample[/cyan]
    [dim]# a valve that one sets, and how it will be set[/dim]
    [cyan]hardmax forecast plant.csv --inputs valve --ahead plan.csv --steps 50[/cyan]
    [dim]# a shorter search (of a long record it takes pieces, and refits the choice on all)[/dim]
    [cyan]hardmax forecast long.csv --seconds 20[/cyan]
    [dim]# the kept model from the end of newer data[/dim]
    [cyan]hardmax forecast newer.csv --model model/ --output ahead.csv[/cyan]
    """
    from .forecast_run import Request, run

    run(
        Request(
            file=file,
            steps=read_whole("--steps", steps, 200) or 0,
            columns=_names(columns),
            inputs=_names(inputs),
            ahead=ahead,
            time_column=time_column,
            dt=read_number("--dt", dt, 0.1),
            gaps=gaps,
            resample=resample,
            window=read_whole("--window", window, 20),
            recipe=recipe,
            seconds=read_number("--seconds", seconds, 60.0) or None,
            seed=read_whole("--seed", seed, 0, least=0) or 0,
            starts=read_whole("--starts", starts, 20) or 0,
            figure=figure,
            output=output,
            save=save,
            model=model,
            as_json=as_json,
        )
    )


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
