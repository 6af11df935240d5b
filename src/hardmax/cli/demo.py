"""``hardmax demo``: a tour of the capabilities, as one page."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    output: Annotated[Path, typer.Option(metavar="PATH", help="The page to write (.html).")] = Path("out/demo.html"),
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
) -> None:
    """Run a tour of the library and write it as one self-contained HTML page.

    [bold]Examples[/bold]

    [dim]# write out/demo.html[/dim]
    [cyan]hardmax demo[/cyan]
    [dim]# write it elsewhere and show it[/dim]
    [cyan]hardmax demo --output tour.html --open[/cyan]
    """
    import time

    from ..errors import FileError
    from ..files import make_folder, require_writable
    from ..reproduce import take_tour

    if output.suffix.lower() not in (".html", ".htm"):
        raise FileError(output, "is no name for a page", "end it in .html")
    make_folder(output.parent)
    require_writable(output)
    began = time.perf_counter()

    def arrive(number: int, count: int, title: str) -> None:
        typer.echo(f"[{number}/{count}] {title}", err=True)

    take_tour(output, arrive=arrive)
    seconds = time.perf_counter() - began
    typer.echo(f"\nThe tour took {seconds:.0f} seconds and is in {output}: open it in a browser.")
    typer.echo(
        f"\nTo try next{_on_the_path()}:\n"
        "  hardmax simulate --limit --figure limit.png       200 random tokens at infinite depth\n"
        "  hardmax simulate your-points.csv                  your own tokens, one per line\n"
        "  hardmax simulate --depth 20 --animate run.gif     a film, layer by layer\n"
        "  hardmax reproduce clustering                      the figures and a table of the paper"
    )
    if open_page:
        import webbrowser

        webbrowser.open(output.resolve().as_uri())


def _on_the_path() -> str:
    """Remark on how to call ``hardmax`` by its name where it is not on the path; else empty."""
    here = Path(sys.executable).parent
    found = shutil.which("hardmax")
    if found is not None and Path(found).parent == here:
        return ""
    activate = Path(os.path.relpath(here / "activate"))
    return f" (after `source {activate}`)" if activate.is_file() else f" (the command is {here / 'hardmax'})"
