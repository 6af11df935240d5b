"""``hardmax meanfield``: the options; the work is done in :mod:`hardmax.cli.meanfield_run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Quiet, panel, read_number, read_whole

_law = panel("Tokens")
_flow = panel("Flow")
_run = panel("Run")
_output = panel("Output")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(meanfield)


def meanfield(
    B: Annotated[
        str | None,
        _flow("--B", metavar="MATRIX", help="Score matrix: diag:4,1, a list such as 4,0;0,1, or a file. diag:4,1."),
    ] = None,
    V: Annotated[str | None, _flow("--V", metavar="MATRIX", help="Value matrix, likewise. diag:1,2.")] = None,
    beta: Annotated[
        str, _flow(metavar="LIST", help="Inverse temperatures, separated by commas; inf for zero temperature.")
    ] = "10,30,100",
    tokens: Annotated[
        Path | None, _law(metavar="FILE", help="Tokens of length one, CSV, NPY or Parquet, instead of a law.")
    ] = None,
    n: Annotated[str | None, _law("--n", "--number", metavar="N", help="Number of tokens (1000).")] = None,
    tilt: Annotated[
        str, _law(metavar="A", help="The law: density 1 + A x, x the last coordinate, between -1 and 1 (0.5).")
    ] = "0.5",
    random: Annotated[
        bool, _law("--random", help="Draw tokens at random instead of deterministically (d = 2 and 3).")
    ] = False,
    seed: Annotated[str, _law(metavar="S", help="Seed of the random generator.")] = "0",
    normalise: Annotated[bool, _law("--normalise", help="Scale tokens of a file to length one.")] = False,
    time: Annotated[str, _run(metavar="T", help="Duration of the flow.")] = "14",
    step: Annotated[str, _run(metavar="H", help="The longest step.")] = "0.1",
    integrator: Annotated[str, _run(metavar="NAME", help="euler, residual, heun, rk4 or adaptive.")] = "heun",
    precision: Annotated[str, _run(metavar="NAME", help="float64 or float32.")] = "float64",
    figure: Annotated[
        Path | None, _output(metavar="PATH", help="Draw W2 through time and the tokens to .png, .pdf, .svg or .html.")
    ] = None,
    animate: Annotated[
        Path | None, _output(metavar="PATH", help="Film the tokens at the largest beta to .gif or .mp4.")
    ] = None,
    save: Annotated[
        Path | None,
        _output(
            metavar="PATH",
            help="Save W2 through time for every beta to .csv or .json, or the runs to .zarr or .nc (one per beta).",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Simulate attention on the sphere at low temperature: concentration, metastability, terminal phase.

    [bold]Examples[/bold]

    [dim]# three temperatures on the circle, with a picture[/dim]
    [cyan]hardmax meanfield --figure phases.png[/cyan]
    [dim]# matrices of your own[/dim]
    [cyan]hardmax meanfield --B diag:2,1,1 --V diag:1,2,0.5 --beta 100 --n 4000 --time 25[/cyan]
    [dim]# a film[/dim]
    [cyan]hardmax meanfield --beta 100 --animate flow.gif[/cyan]

    The exit status is 0 for complete runs, 1 when a run ended early, 2 for bad input or when there is no limit.
    """
    from .meanfield_run import Request, read_betas, run

    run(
        Request(
            B=B,
            V=V,
            betas=read_betas(beta),
            tokens=tokens,
            n=read_whole("--n", n, 1000, least=1),
            tilt=read_number("--tilt", tilt, 0.5) or 0.0,
            random=random,
            seed=read_whole("--seed", seed, 0, least=0) or 0,
            normalise=normalise,
            time=read_number("--time", time, 14.0) or 0.0,
            step=read_number("--step", step, 0.1) or 0.0,
            integrator=integrator,
            precision=precision,
            figure=figure,
            animate=animate,
            save=save,
            as_json=as_json,
            quiet=quiet,
        )
    )
