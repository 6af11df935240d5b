"""``hardmax reproduce``: the figures and tables of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_Folder = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figures and tables.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    papers = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    papers.command("all")(all_papers)
    papers.command()(clustering)
    papers.command()(interpolation)
    papers.command()(meanfield)
    papers.command()(sentiment)
    papers.command()(forecasting)
    papers.command("forecasting-study")(forecasting_study)
    app.add_typer(papers, name="reproduce", help="Make the figures and tables of the papers.")


def all_papers(
    output: Annotated[
        Path, typer.Option("--out", "--output", metavar="FOLDER", help="Folder for the report; one there is resumed.")
    ] = Path("report"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes and short training: minutes instead of hours.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The paper's film reviews, from `hardmax data imdb`."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where to train the published text model, for example cuda.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Parts to run, separated by commas; all without it.")
    ] = None,
    seconds: Annotated[
        str | None,
        typer.Option(metavar="S", help="Processor seconds of each search or training of the part forecasting."),
    ] = None,
) -> None:
    """One report on all papers: every figure and table, published beside measured, as a page and as JSON.

    A part that has finished is not run again: the same command resumes where it was stopped.

    [bold]Examples[/bold]

    [dim]# what can be seen in minutes; most training is too short to be judged[/dim]
    [cyan]hardmax reproduce all --quick --out report[/cyan]
    [dim]# everything, in hours; run again to resume[/dim]
    [cyan]hardmax reproduce all --out report[/cyan]
    [dim]# two parts[/dim]
    [cyan]hardmax reproduce all --only clustering,meanfield[/cyan]
    """
    from ..reproduce import reproduce_all
    from .options import read_number

    limit = None if seconds is None else read_number("--seconds", seconds, 60.0)
    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    reproduce_all(output, quick=quick, data=data, device=device, only=names, seconds=limit, say=typer.echo)
    typer.echo(f"The report is {output / 'index.html'}, its data {output / 'report.json'}.")


def clustering(
    output: _Folder = Path("out/clustering"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer random systems, in seconds.")] = False,
) -> None:
    """Figures 1 and 2 of the clustering paper (arXiv 2407.01602), and a table of facts checked on random systems.

    [bold]Examples[/bold]

    [dim]# everything, in out/clustering[/dim]
    [cyan]hardmax reproduce clustering[/cyan]
    [dim]# the same with fewer random systems, elsewhere[/dim]
    [cyan]hardmax reproduce clustering --quick --output figures[/cyan]
    """
    from ..reproduce import reproduce_clustering

    reproduce_clustering(output, quick=quick)
    _say_where(output, "clustering.html")


def meanfield(
    output: _Folder = Path("out/meanfield"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer tokens and temperatures, in seconds.")] = False,
) -> None:
    """Concentration, metastability and the terminal phase at low temperature (after arXiv 2605.10931).

    [bold]Examples[/bold]

    [dim]# everything, in out/meanfield, in about a minute[/dim]
    [cyan]hardmax reproduce meanfield[/cyan]
    [dim]# fewer tokens and temperatures[/dim]
    [cyan]hardmax reproduce meanfield --quick[/cyan]
    """
    from ..reproduce import reproduce_meanfield

    reproduce_meanfield(output, quick=quick)
    _say_where(output, "meanfield.html")


def interpolation(
    output: _Folder = Path("out/interpolation"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller networks and short training, in a minute.")] = False,
) -> None:
    """Exact interpolation (arXiv 2502.02270): the construction stage by stage, counts, errors, regularised training.

    [bold]Examples[/bold]

    [dim]# everything, in out/interpolation; the training takes minutes[/dim]
    [cyan]hardmax reproduce interpolation[/cyan]
    [dim]# the same figures from smaller networks and short training[/dim]
    [cyan]hardmax reproduce interpolation --quick[/cyan]
    """
    from ..reproduce import reproduce_interpolation

    reproduce_interpolation(output, quick=quick)
    _say_where(output, "interpolation.html")


def sentiment(
    output: _Folder = Path("out/sentiment"),
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

    Run again with the same folder, the training is resumed.

    [bold]Examples[/bold]

    [dim]# everything on the embedded corpus (extra 'data'); the published training takes hours without a GPU[/dim]
    [cyan]hardmax reproduce sentiment --device cuda[/cyan]
    [dim]# the paper's data, from `hardmax data imdb`[/dim]
    [cyan]hardmax reproduce sentiment --data imdb.csv --device cuda[/cyan]
    [dim]# a minute's worth of it[/dim]
    [cyan]hardmax reproduce sentiment --quick[/cyan]
    """
    from ..reproduce import reproduce_sentiment
    from .options import read_whole

    reproduce_sentiment(
        output, data=data, quick=quick, epochs=read_whole("--epochs", epochs, 100) or 100, device=device
    )
    _say_where(output, "sentiment.html")


def forecasting(
    output: _Folder = Path("out/forecasting"),
    quick: Annotated[bool, typer.Option("--quick", help="Shorter records and searches, in a minute.")] = False,
    seconds: Annotated[
        str | None, typer.Option(metavar="S", help="Processor seconds after which each search or training ends.")
    ] = None,
) -> None:
    """The four cases of the time-delayed transformer paper (arXiv 2602.08478), its claims beside measurements.

    [bold]Examples[/bold]

    [dim]# everything, in out/forecasting, in some minutes[/dim]
    [cyan]hardmax reproduce forecasting[/cyan]
    [dim]# shorter records and searches[/dim]
    [cyan]hardmax reproduce forecasting --quick[/cyan]
    [dim]# whole records, searches of 20 seconds each[/dim]
    [cyan]hardmax reproduce forecasting --seconds 20[/cyan]
    """
    from ..reproduce import reproduce_forecasting
    from .options import read_number

    limit = None if seconds is None else read_number("--seconds", seconds, 60.0)
    reproduce_forecasting(output, quick=quick, seconds=limit)
    _say_where(output, "forecasting.html")


def forecasting_study(
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for rows and tables; a study there is resumed.")
    ] = Path("out/forecasting-study"),
    seconds: Annotated[str, typer.Option(metavar="S", help="Processor seconds of search for every model.")] = "5",
    seeds: Annotated[str, typer.Option(metavar="N", help="Seeds, each with its own data.")] = "3",
    jobs: Annotated[str, typer.Option(metavar="N", help="Fits at a time; at most one a core.")] = "1",
    summary: Annotated[bool, typer.Option("--summary", help="Run nothing, read what is finished.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Two systems, one seed, one second: to see it work.")] = False,
) -> None:
    """The forecaster against TD-DMD, NG-RC, HODMD, SINDy, an echo state network and an MLP on 21 chaotic systems.

    Four settings: the full state, the first coordinate, the same with 2 % noise, coarse sampling. It takes hours of one
    core; rows are written as they finish, and the same command resumes a study that was stopped.

    [bold]Examples[/bold]

    [dim]# begin, or resume[/dim]
    [cyan]hardmax reproduce forecasting-study --folder study[/cyan]
    [dim]# what is finished so far[/dim]
    [cyan]hardmax reproduce forecasting-study --folder study --summary[/cyan]
    """
    from .options import read_number, read_whole

    budget = read_number("--seconds", seconds, 5.0) or 5.0
    count, at_once = read_whole("--seeds", seeds, 3) or 3, read_whole("--jobs", jobs, 1) or 1
    from ..reproduce import run_forecasting_study, write_forecasting_summary
    from ..reproduce.forecasting_study_cases import FIRST

    if quick:
        run_forecasting_study(
            folder, seconds=1.0, seeds=1, settings=[FIRST], systems=["Chen", "Lorenz '63"], progress=True
        )
    elif not summary:
        run_forecasting_study(folder, seconds=budget, seeds=count, jobs=at_once, progress=True)
    for table in write_forecasting_summary(folder):
        typer.echo(f"\n{table.title}\n\n{table.to_markdown()}\n{table.note}")
    typer.echo(f"\nThe rows and tables are in {folder}; {folder / 'study.html'} shows them all.")


def _say_where(output: Path, page: str) -> None:
    typer.echo(f"The figures and tables are in {output}; {output / page} shows them all.")
