"""The command ``hardmax`` and its subcommands."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Typer
from typer.core import TyperCommand, TyperGroup

from .._version import __version__
from ..errors import FileError, HardmaxError, InputError
from . import (
    data,
    demo,
    doctor,
    explore,
    forecast,
    interpolate,
    meanfield,
    model,
    probe,
    reproduce,
    sentiment,
    simulate,
    standard_input,
    sweep,
)
from .flags import flags_of, in_flags

# Parameters that name a table to read; all others that name a file name one to write, or a model.
_TABLES = frozenset({"tokens", "weights", "matrix", "B", "V", "data", "outputs", "file", "files", "ahead"})


class Command(TyperCommand):
    """Command that also reads tables from the standard input, and whose errors name its own flags."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with ExitStack() as stack:
                _read_marked(ctx.params, stack)
                return super().invoke(ctx)
        except (InputError, FileError) as error:
            raise in_flags(error, flags_of(self.params)) from error


def speak_of_flags(app: Typer) -> None:
    """Make every command of ``app`` and of its groups a :class:`Command`."""
    for one in app.registered_commands:
        one.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            speak_of_flags(group.typer_instance)


def _read_marked(given: dict[str, Any], stack: ExitStack) -> None:
    """Put a temporary file in the place of ``-``, also of one in a list of files."""
    tables = {name: value if isinstance(value, (list, tuple)) else [value] for name, value in given.items()}
    marked = [
        name
        for name, values in tables.items()
        if name in _TABLES
        for value in values
        if str(value) == standard_input.MARK
    ]
    if len(marked) > 1:
        named = " and ".join(marked)
        raise InputError(standard_input.MARK, named, "can stand for one table only", "save the others to files")
    for name in marked:
        path = stack.enter_context(standard_input.as_file(standard_input.read_all()))
        whole = [
            value if str(value) != standard_input.MARK else path if isinstance(value, Path) else str(path)
            for value in tables[name]
        ]
        given[name] = whole if isinstance(given[name], (list, tuple)) else whole[0]


# A new command is a module with a function `register(app)` and one entry here.
_COMMANDS = (
    demo, simulate, model, probe, sentiment, interpolate, forecast, meanfield, sweep, explore, reproduce, data, doctor,
)  # fmt: skip

# Exit statuses by convention: usage error, 128 + SIGINT, 128 + SIGPIPE.
_BAD_INPUT, _INTERRUPTED, _PIPE_CLOSED = 2, 130, 141


class _Guarded(TyperGroup):
    """Group of commands: errors of the library become one line and an exit status, all others a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except HardmaxError as error:
            _complain(str(error))
            raise typer.Exit(_BAD_INPUT) from error
        except MemoryError as error:
            _complain(f"there is not enough memory ({error}): use fewer tokens, or keep fewer layers")
            raise typer.Exit(_BAD_INPUT) from error
        except KeyboardInterrupt as error:
            _complain("interrupted; nothing half-written was left behind", label="")
            raise typer.Exit(_INTERRUPTED) from error
        except BrokenPipeError as error:
            # The reader has closed the pipe (`hardmax … | head`): no message, and the last flush goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_PIPE_CLOSED) from error
        return result


def _complain(message: str, label: str = "error: ") -> None:
    rank = os.environ.get("RANK", "0")  # with several processes, each names itself
    label = label if rank == "0" else f"process {rank}: {label}"
    typer.secho(label + " ".join(message.splitlines()), fg="red" if label else None, err=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hardmax {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _hardmax(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = None,
) -> None:
    """Transformers as dynamical systems: tokens are points, layers are time. Simulate them, compute
    their leaders and limits, classify texts, forecast series and compile networks.

    [bold]To begin[/bold]

    [dim]# a tour in half a minute, as one page[/dim]
    [cyan]hardmax demo[/cyan]
    [dim]# 200 random tokens at infinite depth, with a picture[/dim]
    [cyan]hardmax simulate --limit --figure limit.png[/cyan]
    [dim]# your own tokens, one per line[/dim]
    [cyan]hardmax simulate points.csv[/cyan]
    """


for _command in _COMMANDS:
    _command.register(app)
speak_of_flags(app)
