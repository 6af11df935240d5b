"""``hardmax probe``: measurements of a trained transformer beside the theory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .options import Quiet, panel, read_whole

_what = panel("Measurements")
_output = panel("Output")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(probe)


def probe(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="A folder with config.json and weights, or a .gguf file.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="TEXTS",
            help="Texts: one per line, or a column of a CSV, TSV, JSON lines or Parquet file; - for standard input.",
            show_default=False,
        ),
    ] = None,
    example: Annotated[
        bool, _what("--example", help="A few sentences that come with hardmax, through MODEL or an installed model.")
    ] = False,
    rule: Annotated[
        list[str] | None,
        _what(
            "--rule",
            metavar="RULE",
            help="Replace attention by hardmax, top-K, beta=F, uniform or zero, and measure the effect; repeatable.",
        ),
    ] = None,
    every_head: Annotated[
        bool,
        _what("--every-head", help="Also replace each head alone by hardmax and by zero, for a verdict on every head."),
    ] = False,
    most: Annotated[
        str | None, _what("--most", metavar="N", help="Take the first N texts.", show_default="all")
    ] = None,
    column: Annotated[str | None, _what("--text", metavar="COLUMN", help="Column of the texts in a table.")] = None,
    dtype: Annotated[str, _what(metavar="TYPE", help="float32 or float64.")] = "float32",
    device: Annotated[str, _what(metavar="DEVICE", help="cpu, or cuda where there is a GPU.")] = "cpu",
    seed: Annotated[str | None, _what(metavar="S", help="Seed of the chance levels.", show_default="0")] = None,
    report: Annotated[
        Path, _output("--report", metavar="FOLDER", help="Folder of report.html, report.json and the tables.")
    ] = Path("out/probe"),
    resume: Annotated[
        bool, _output("--resume", help="Save measurements in the folder, and resume a run that was stopped.")
    ] = False,
    as_json: Annotated[bool, _output("--json", help="Print the report as one JSON object and nothing else.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure a trained transformer: leading tokens, temperature of each head, and where the theory does not apply.

    Nothing is downloaded: the model is a folder or a file on this machine. The report is one HTML page.

    [bold]Examples[/bold]

    [dim]# a model that is installed as a package, and sentences that come with hardmax[/dim]
    [cyan]hardmax probe --example[/cyan]
    [dim]# a model and texts of your own[/dim]
    [cyan]hardmax probe path/to/model texts.txt --report out/[/cyan]
    [dim]# each head replaced by hardmax and by zero, with the effect on the model[/dim]
    [cyan]hardmax probe path/to/model texts.txt --every-head --rule hardmax --rule top-8[/cyan]
    """
    if not example and (model is None or file is None):
        missing = "MODEL" if model is None else "TEXTS"
        raise InputError(missing, None, "must be given", "pass a model and a file of texts, or try --example")
    if example and file is not None:
        raise InputError("TEXTS", str(file), "cannot be given with --example", "leave out one of the two")
    from .probe_run import run

    run(
        model,
        file,
        column=column,
        most=read_whole("--most", most, 32, least=1),
        rules=rule or (),
        every_head=every_head,
        dtype=dtype,
        device=device,
        seed=read_whole("--seed", seed, 0, least=0) or 0,
        folder=report,
        resume=resume,
        as_json=as_json,
        quiet=quiet,
    )
