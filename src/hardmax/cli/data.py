"""``hardmax data``: real data, fetched only on request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    group.command()(imdb)
    group.callback()(_group)
    app.add_typer(group, name="data", help="Fetch real data on request, checked.")


def _group() -> None:
    """Fetch real data on request, checked."""


def imdb(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File of the reviews (.csv, .csv.gz, .csv.xz).")
    ] = Path("imdb.csv"),
    archive: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read this local aclImdb_v1.tar.gz instead of fetching it.")
    ] = None,
) -> None:
    """The 50,000 IMDb reviews of Maas et al. (2011) as one table: text, label (1: positive), split.

    The official archive (84 MB) is fetched beside the output, checked by its SHA-256 and stored.
    """
    from ..datasets.corpora import download_imdb, read_imdb_archive, write_documents

    table = read_imdb_archive(archive if archive is not None else download_imdb(output.parent))
    write_documents(table, output)
    typer.echo(f"{len(table):,} reviews are in {output}.")
