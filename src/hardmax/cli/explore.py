"""``hardmax explore``: the explorer in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import read_whole

_LOCAL = ("localhost", "127.0.0.1", "::1")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explore)


def explore(
    port: Annotated[str, typer.Option(metavar="P", help="Port of the server; 0 for any free port.")] = "5007",
    address: Annotated[str, typer.Option(metavar="HOST", help="The interface to listen on.")] = "localhost",
    public: Annotated[
        bool,
        typer.Option("--public", help="Allow an address other than localhost, for other machines."),
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    pages: Annotated[
        str | None, typer.Option(metavar="LIST", help="Only these pages, separated by commas; all when left out.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="A folder or GGUF file of a trained model for the page Real model; repeatable."
        ),
    ] = None,
) -> None:
    """Open the explorer in the browser, from a server that only this machine can reach.

    [bold]Examples[/bold]

    [dim]# open the explorer[/dim]
    [cyan]hardmax explore[/cyan]
    [dim]# on another port, without opening a browser[/dim]
    [cyan]hardmax explore --port 8080 --no-browser[/cyan]
    [dim]# with a trained model from a folder[/dim]
    [cyan]hardmax explore --model models/all-MiniLM-L6-v2[/cyan]
    [dim]# for a class in the same network[/dim]
    [cyan]hardmax explore --address 0.0.0.0 --public[/cyan]
    """
    from ..errors import InputError, MissingExtraError

    number = read_whole("--port", port, 5007) or 0
    if not 0 <= number <= 65_535:
        raise InputError("--port", number, "must lie in 0 … 65535", "pass for example --port 5007")
    if address not in _LOCAL and not public:
        raise InputError(
            "--address",
            repr(address),
            "is not this machine alone",
            "add --public to let every user who can reach that address use the explorer",
        )
    wanted = None if pages is None else [name.strip() for name in pages.split(",") if name.strip()]
    try:
        from ..app.server import make_server
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("panel", "bokeh", "tornado", "param"):
            raise
        raise MissingExtraError(str(error.name), "app", "the explorer") from None
    server = make_server(wanted, port=number, address=address, open_browser=not no_browser, models=model or ())
    if address not in _LOCAL:
        typer.secho(
            f"Listening on {address}: every user who can reach this machine can use the explorer, upload tables into "
            "its memory and take its processors. There is no password and no encryption. Stop it when you are done.",
            fg="yellow",
            err=True,
        )
    host = "localhost" if address in (*_LOCAL, "0.0.0.0") else address  # noqa: S104 - compared, not bound
    typer.echo(f"The explorer is at http://{host}:{server.port}/  (Ctrl-C ends it)")
    try:
        server.run_until_shutdown()
    finally:
        server.pool.close()
