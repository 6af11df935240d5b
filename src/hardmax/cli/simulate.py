"""``hardmax simulate``: the options; the work is done in :mod:`hardmax.cli.simulate_run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import RULES, AsJson, Quiet, panel, read_number, read_step, read_whole

# The names of hardmax.datasets, repeated here because the help must not import it; a test compares them.
LAWS = ("gaussian", "uniform-cube", "ball", "sphere", "circle", "grid", "clusters", "heavy-tails")
MATRICES = ("identity", "paper", "random-spd", "anisotropic", "random", "rotation")

# Options by the panel of the help in which they are shown.
_tokens = panel("Tokens")
_layer = panel("Layer")
_run = panel("Run")
_output = panel("Output")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)


def simulate(
    tokens: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, NPY or Parquet: one row per token, one column per coordinate; - for the standard input.",
            show_default=False,
        ),
    ] = None,
    random: Annotated[
        str | None,
        _tokens(metavar="LAW", help=f"Draw tokens instead: {', '.join(LAWS)}. Without a file: gaussian."),
    ] = None,
    n: Annotated[str | None, _tokens("--n", "--number", metavar="N", help="Number of tokens to draw (200).")] = None,
    dim: Annotated[str | None, _tokens(metavar="D", help="Coordinates of each token drawn (2).")] = None,
    seed: Annotated[str | None, _tokens(metavar="S", help="Seed of the random generator.", show_default="0")] = None,
    weights: Annotated[Path | None, _tokens(metavar="FILE", help="One positive weight per token.")] = None,
    alpha: Annotated[str, _layer(metavar="NUMBER", help="Step size towards the attended tokens: 0.5 or 1/2.")] = "0.5",
    matrix: Annotated[
        str | None,
        _layer(
            metavar="NAME|FILE",
            help=f"The score matrix A: {', '.join(MATRICES)}, or a file of d rows of d numbers.",
            show_default="identity",
        ),
    ] = None,
    softmax: Annotated[
        str | None, _layer(metavar="BETA", help="Softmax at this inverse temperature instead of hardmax.")
    ] = None,
    rule: Annotated[
        str | None,
        _layer(metavar="RULE", help=f"How scores become weights: {', '.join(RULES)}.", show_default="hardmax"),
    ] = None,
    causal: Annotated[
        bool, _layer("--causal", help="Each token sees itself and the tokens before it, as in a decoder.")
    ] = False,
    window: Annotated[
        str | None, _layer(metavar="W", help="Each token sees W tokens, itself included: with --causal the last W.")
    ] = None,
    heads: Annotated[
        str | None,
        _layer(metavar="H", help="H heads with equal shares, each with a random symmetric positive definite matrix."),
    ] = None,
    steps: Annotated[
        str | None,
        _layer(
            metavar="RULE", help="Steps that shrink with the layer t: power:P for alpha (t + 1)^-P, or geometric:R."
        ),
    ] = None,
    exact: Annotated[
        bool, _layer("--exact", help="Decide by rational arithmetic, without any tolerance (few tokens).")
    ] = False,
    depth: Annotated[str | None, _run(metavar="K", help="Run K layers.")] = None,
    limit: Annotated[
        bool, _run("--limit", help="Jump to infinite depth, in closed form. The default for hardmax.")
    ] = False,
    keep: Annotated[
        str | None,
        _run(metavar="WHICH", help="Layers of a run to store: all, last, every:K, or a list such as 0,1,5."),
    ] = None,
    seconds: Annotated[
        str | None, _run(metavar="S", help="Stop after this time with the layers so far (exit status 1).")
    ] = None,
    theorem: Annotated[
        bool, _run("--theorem", help="Require the assumptions of Theorem 1.1 and check its conclusions.")
    ] = False,
    figure: Annotated[Path | None, _output(metavar="PATH", help="Draw to .png, .pdf, .svg or .html.")] = None,
    animate: Annotated[Path | None, _output(metavar="PATH", help="Film to .gif or .mp4.")] = None,
    save: Annotated[
        Path | None,
        _output(
            metavar="PATH",
            help="Save all to .zarr, .zip or .nc; the last positions alone to .csv, .npy or .parquet.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        _output(metavar="PATH", help="Prove the limit in exact rationals and write it for verify.py (few tokens)."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run tokens through attention layers, or to infinite depth, and find leaders and followers.

    [bold]Examples[/bold]

    [dim]# 200 random tokens at infinite depth[/dim]
    [cyan]hardmax simulate[/cyan]
    [dim]# your own tokens, with a picture[/dim]
    [cyan]hardmax simulate points.csv --limit --figure limit.png[/cyan]
    [dim]# tokens from another program[/dim]
    [cyan]python make_points.py | hardmax simulate -[/cyan]
    [dim]# a decoder with two heads, at infinite depth[/dim]
    [cyan]hardmax simulate --causal --heads 2[/cyan]
    [dim]# layer by layer, as a film and a file[/dim]
    [cyan]hardmax simulate --depth 20 --animate run.gif --save run.zarr[/cyan]

    Two processes share the work of [cyan]torchrun --nproc-per-node 2 -m hardmax simulate …[/cyan]; the first prints and
    writes. Under torchrun use --number, because --n is an option of torchrun.

    The exit status is 0 for a complete run, 1 when the run ended early or the theorem failed, 2 for bad input.
    """
    from .simulate_run import Request, run

    run(
        Request(
            tokens=tokens,
            random=random,
            n=read_whole("--n", n, 200, least=1),
            dim=read_whole("--dim", dim, 2, least=1),
            seed=read_whole("--seed", seed, 0, least=0),
            weights=weights,
            alpha=read_step("--alpha", alpha, exact=exact),
            matrix=matrix,
            softmax=read_number("--softmax", softmax, 4.0),
            rule=rule,
            causal=causal,
            window=read_whole("--window", window, 8, least=1),
            heads=read_whole("--heads", heads, 2, least=1),
            steps=steps,
            exact=exact,
            depth=read_whole("--depth", depth, 20, least=0),
            limit=limit,
            keep=keep,
            seconds=read_number("--seconds", seconds, 10.0),
            theorem=theorem,
            figure=figure,
            animate=animate,
            save=save,
            certificate=certificate,
            as_json=as_json,
            quiet=quiet,
        )
    )
