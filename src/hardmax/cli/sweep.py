"""``hardmax sweep``: a grid of runs from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .options import AsJson, Quiet, read_whole

if TYPE_CHECKING:
    import pandas as pd

    from ..sweeps.spec import Spec

# Rows of a table that fit on a terminal.
_SHOWN = 12


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sweep)


def sweep(
    spec: Annotated[Path | None, typer.Argument(help="The sweep, as a TOML file.", show_default=False)] = None,
    example: Annotated[bool, typer.Option("--example", help="Print an example of such a file and exit.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Run nothing; show the rows that are finished.")] = False,
    jobs: Annotated[
        str | None, typer.Option(metavar="J", help="Runs at a time, in place of the file's number.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a grid of parameter values, one row per run, and resume a sweep that was stopped.

    [bold]Examples[/bold]

    [dim]# a file to start from[/dim]
    [cyan]hardmax sweep --example > leaders.toml[/cyan]
    [dim]# run it; if it is killed, the same command runs what is missing[/dim]
    [cyan]hardmax sweep leaders.toml[/cyan]
    [dim]# show the progress[/dim]
    [cyan]hardmax sweep leaders.toml --status[/cyan]

    Each row has the seed, the parameters, what was found, the outcome, the seconds and, if the run failed, its error.
    The exit status is 0 when all runs finished, 1 when some failed or are missing, 2 for bad input.
    """
    from ..sweeps.spec import EXAMPLE, read_spec

    if example:
        typer.echo(EXAMPLE, nl=False)
        return
    if spec is None:
        raise InputError("SPEC", None, "must be given", "hardmax sweep --example > sweep.toml makes one to start from")
    asked = read_spec(spec)
    number = read_whole("--jobs", jobs, 2)
    if number is not None and number < 1:
        raise InputError("--jobs", number, "must be at least 1", "pass for example --jobs 2")
    if status:
        from ..sweeps import read_sweep

        table = read_sweep(asked.folder)
    else:
        table = asked.perform(jobs=number, progress=False if quiet or as_json else None)
    failed = int((table["outcome"] == "failed").sum()) if len(table) else 0
    if as_json:
        typer.echo(json.dumps(_data(asked, table, failed)))
    elif not quiet:
        _tell(asked, table, failed)
    if failed or len(table) < asked.rows:
        raise typer.Exit(1)


def _data(spec: Spec, table: pd.DataFrame, failed: int) -> dict[str, object]:
    return {
        "run": spec.run,
        "folder": str(spec.folder),
        "rows": len(table),
        "of": spec.rows,
        "failed": failed,
        "seconds": float(table["seconds"].sum()) if len(table) else 0.0,
    }


def _tell(spec: Spec, table: pd.DataFrame, failed: int) -> None:
    typer.echo(f"{len(table)} of {spec.rows} rows of {spec.run}, {failed} failed, in {spec.folder}")
    if len(table):
        shown = table.head(_SHOWN).drop(columns=[] if failed else ["error"])
        typer.echo(shown.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
        if len(table) > _SHOWN:
            typer.echo(f"… and {len(table) - _SHOWN} more: hardmax.read_sweep({str(spec.folder)!r})")
