"""``hardmax reproduce``: the figures and tables of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    papers = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    papers.command()(clustering)
    papers.command()(interpolation)
    papers.command()(meanfield)
    papers.command()(sentiment)
    app.add_typer(papers, name="reproduce", help="Make the figures and tables of the papers.")


def clustering(
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figures and tables.")] = Path(
        "out/clustering"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer random systems, in seconds.")] = False,
) -> None:
    """Figures 1 and 2 of the clustering paper (arXiv 2407.01602), and a table of facts checked on random systems.

    [bold]Examples[/bold]

    [dim]# everything, in out/clustering[/dim]
    [cyan]hardmax reproduce clustering[/cyan]
    [dim]# the same with fewer random systems, elsewhere[/dim]
    [cyan]hardmax reproduce clustering --quick --output figures[/cyan]
    """
    from ..reproduce.clustering import PAGE, reproduce

    reproduce(output, quick=quick)
    typer.echo(f"The figures and tables are in {output}; {output / PAGE} shows them all.")


def meanfield(
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figures and tables.")] = Path(
        "out/meanfield"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer tokens and temperatures, in seconds.")] = False,
) -> None:
    """Concentration, metastability and the terminal phase at low temperature (after arXiv 2605.10931).

    [bold]Examples[/bold]

    [dim]# everything, in out/meanfield, in about a minute[/dim]
    [cyan]hardmax reproduce meanfield[/cyan]
    [dim]# fewer tokens and temperatures[/dim]
    [cyan]hardmax reproduce meanfield --quick[/cyan]
    """
    from ..reproduce.meanfield import PAGE, reproduce

    reproduce(output, quick=quick)
    typer.echo(f"The figures and tables are in {output}; {output / PAGE} shows them all.")


def interpolation(
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figures and tables.")] = Path(
        "out/interpolation"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller networks and short training, in a minute.")] = False,
) -> None:
    """Exact interpolation (arXiv 2502.02270): the construction stage by stage, counts, errors, regularised training.

    [bold]Examples[/bold]

    [dim]# everything, in out/interpolation; the training takes minutes[/dim]
    [cyan]hardmax reproduce interpolation[/cyan]
    [dim]# the same figures from smaller networks and short training[/dim]
    [cyan]hardmax reproduce interpolation --quick[/cyan]
    """
    from ..reproduce.interpolation import PAGE, reproduce

    reproduce(output, quick=quick)
    typer.echo(f"The figures and tables are in {output}; {output / PAGE} shows them all.")


def sentiment(
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figures and tables.")] = Path(
        "out/sentiment"
    ),
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Reviews with the columns text and label; the embedded corpus without it."),
    ] = None,
    epochs: Annotated[str, typer.Option(metavar="N", help="Passes through the data for the published model.")] = "100",
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where to train the published model, for example cuda.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few reviews and epochs, in a minute.")] = False,
) -> None:
    """Sentiment analysis of the clustering paper (arXiv 2407.01602): accuracy by dimension, leaders, two reviews.

    Run again with the same folder it goes on with the training where it was.

    [bold]Examples[/bold]

    [dim]# everything on the embedded corpus (extra 'data'); the published training takes hours without a GPU[/dim]
    [cyan]hardmax reproduce sentiment --device cuda[/cyan]
    [dim]# the paper's data, from `hardmax data imdb`[/dim]
    [cyan]hardmax reproduce sentiment --data imdb.csv --device cuda[/cyan]
    [dim]# a minute's worth of it[/dim]
    [cyan]hardmax reproduce sentiment --quick[/cyan]
    """
    from ..reproduce.sentiment import PAGE, reproduce
    from .values import read_whole

    reproduce(output, data=data, quick=quick, epochs=read_whole("--epochs", epochs, 100) or 100, device=device)
    typer.echo(f"The figures and tables are in {output}; {output / PAGE} shows them all.")
