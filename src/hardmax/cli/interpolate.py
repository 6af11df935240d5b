"""``hardmax interpolate`` and ``hardmax verify``: compile a data set into a network, and prove a saved one again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import panel

# Repeated from hardmax.interpolation because the help must not import it; a test compares them.
CONSTRUCTIONS = ("leaders", "fewest", "witness", "conditioned", "paper")

_network, _output = panel("Network"), panel("Output")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(interpolate)
    app.command()(verify)


def interpolate(
    data: Annotated[
        Path,
        typer.Argument(help="JSON, or CSV/Parquet in long form (sequence, token, coordinates).", show_default=False),
    ],
    output: Annotated[Path, _output("--output", "-o", metavar="FOLDER", help="Folder of the network.")],
    outputs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For CSV/Parquet: the output points, in the same long form."),
    ] = None,
    construction: Annotated[str, _network(metavar="NAME", help=f"One of {', '.join(CONSTRUCTIONS)}.")] = "leaders",
    width: Annotated[int, _network(metavar="H", help="Neurons per layer.")] = 4,
    softmax: Annotated[
        str | None, _network(metavar="TAU", help="Softmax attention at this temperature: 0.1 or 1/10.")
    ] = None,
    flat: Annotated[
        bool | None,
        _network(
            "--flat/--no-flat",
            help="Constant around every token: safer in floats, more blocks.",
            show_default=False,
        ),
    ] = None,
    token_level: Annotated[
        bool, _network("--token-level", help="Outputs name the image of every single token.")
    ] = False,
    onnx: Annotated[Path | None, _output(metavar="FILE", help="Also write the network for ONNX runtimes.")] = None,
    workers: Annotated[int, _output(metavar="P", help="Processes that share the proof.")] = 1,
) -> None:
    """Compile a data set into a transformer that maps every input exactly to its output, with a proof.

    [bold]data.json[/bold] holds {"inputs": [[[0, 0], [1, "3/8"]], ...], "outputs": [[[1, 2]], ...]}: per sequence a
    list of tokens and a list of at most as many output points. Give "labels": ["spam", "ham", ...] instead of outputs
    to classify. Numbers are taken exactly as written.

    [bold]data.csv[/bold] has one row per token: sequence, token, then the coordinates, and either a column label or a
    second file of the same form with the output points.

    [cyan]hardmax interpolate data.json -o net/[/cyan]                               the default: true argmax attention
    [cyan]hardmax interpolate data.json -o net/ --construction conditioned[/cyan]    best in floating point
    [cyan]hardmax interpolate tokens.csv --outputs targets.csv -o net/[/cyan]
    [cyan]hardmax verify net/[/cyan]                                                 prove it again from the file
    """
    from ..interpolation import classify_exactly
    from ..interpolation import interpolate as build
    from ..interpolation.data import read_problem

    _require_outputs(output, onnx)
    problem = read_problem(data, outputs)
    options = {
        "construction": construction,
        "width": width,
        "flat": flat,
        **({"attention": "softmax", "temperature": softmax} if softmax is not None else {}),
    }
    if problem.labels is not None:
        level = {"token_level": True} if token_level else {}
        network = classify_exactly(problem.inputs, problem.labels, **options, **level)
    else:
        network = build(problem.inputs, problem.outputs, token_level=token_level, **options)  # type: ignore[arg-type]
    certificate = network.certify(workers=workers)
    typer.echo(network.summary())
    typer.echo(str(certificate))
    if not certificate.proved:
        raise typer.Exit(1)
    network.save(output)
    if onnx is not None:
        network.to_onnx(onnx)
    typer.echo(f"written to {output}")


def _require_outputs(output: Path, onnx: Path | None) -> None:
    """Refuse what could not be written, before any work is done and anything is written."""
    from ..files import require_folder, require_writable

    require_folder(output)
    if onnx is not None:
        from ..interpolation.export.onnx_graph import require_onnx

        require_onnx()
        require_writable(onnx)


def verify(
    path: Annotated[Path, typer.Argument(help="The folder that interpolate wrote.", show_default=False)],
    workers: Annotated[int, typer.Option(metavar="P", help="Processes that share the proof.")] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit status is the answer.")] = False,
) -> None:
    """Prove a saved network again, from its data and its weights alone.

    The exit status is 0 when every sequence provably goes to its output and every claim of the file holds, 1 when not
    (the sequences that fail are named), 2 when the file cannot be read.
    """
    from ..interpolation import verify as check

    certificate = check(path, workers=workers)
    if not quiet:
        typer.echo(str(certificate))
    if not certificate.proved:
        raise typer.Exit(1)
