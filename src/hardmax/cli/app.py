"""The command ``hardmax``: its subcommands, and error messages in the words of the command line.

Errors of the library name arguments as Python spells them: ``d must be 2, got 3: pass d=2``. A command has flags
instead, so an error is spelt again before it is shown: ``--dim must be 2, got 3: pass --dim 2``. What is
spelt again is the argument that an error is about, ``name=value``, ``name > value``, and names that only a program
would use (with an underscore); sentences stay as they are. Expressions for which a command has another way are listed
below.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
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
    reproduce,
    sentiment,
    simulate,
    standard_input,
    sweep,
)

# Arguments of the library by the parameter that stands for them where a command has no parameter of the same name.
_PARAMETER_OF = {
    "A": "matrix",
    "attention": "softmax",
    "beta": "softmax",
    "checkpoint_path": "checkpoint",
    "d": "dim",
    "delays": "window",
    "inputs": "data",
    "irregular": "resample",
    "law": "random",
    "n_jobs": "jobs",
    "name": "matrix",
    "outputs": "data",
    "progress": "quiet",
    "random_state": "seed",
    "require_assumptions": "theorem",
    "start": "seed",
    "temperature": "softmax",
    "times": "time_column",
    "tolerance": "exact",
    "u": "inputs",
    "validation_fraction": "test_share",
}

# Python expressions in remedies, and what a command offers instead; the flag has to be one that the command has.
_EXPRESSIONS: tuple[tuple[str, str, str], ...] = (
    (r"tolerance=[\"']exact[\"']", "--exact", "--exact"),
    (r"leave tolerance at its default", "--exact", "leave out --exact"),
    (r"irregular=[\"']resample[\"']", "--resample", "--resample"),
    (r"attention=[\"']softmax[\"']", "--softmax", "--softmax TAU"),
    (r"attention=[\"']hardmax[\"']", "--softmax", "no --softmax"),
    (r"the limit beta = inf is HardmaxLayer", "--softmax", "leave out --softmax for hardmax"),
    (r"Every\(k\)", "--keep", "--keep every:10"),
    (r"a list of layers", "--keep", "--keep 0,1,5"),
    (r"ToDisk\(path\)", "--save", "--save run.zarr"),
    (r"(?:use )?simulate\(depth=…\)", "--depth", "give --depth K"),
    (r"A=numpy\.eye\(\d+\)", "--matrix", "--matrix identity"),
    (r"c \* numpy\.eye\(d\)", "--matrix", "c times the identity"),
    (r"\(A \+ A\.T\) / 2", "--matrix", "the mean of A and its transpose"),
    (r",? (?:a numpy Generator )?or None\b", "", ""),  # on the command line a flag is left out
    (r"\btokens\.T\b", "", "the table transposed"),
)

_RELATIONS = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}
_VALUE = r"\"[^\"]*\"|'[^']*'|\([^)]*\)|\[[^\]]*\]|[^\s,;:)]*"


def flags_of(parameters: Iterable[Any]) -> dict[str, str]:
    """The flag for each argument of the library, for a command with these parameters of typer's."""
    own = {p.name: next(iter([o for o in p.opts if o.startswith("--")]), "") for p in parameters if p.name}
    flags = {name: flag for name, flag in own.items() if flag}
    aliases = {name: flags[other] for name, other in _PARAMETER_OF.items() if name not in own and other in flags}
    return {**aliases, **flags}


def in_flags(error: HardmaxError, flags: Mapping[str, str]) -> HardmaxError:
    """The same error with flags for arguments.

    >>> flags = {"d": "--dim", "law": "--random"}
    >>> print(in_flags(InputError("d", 3, "must be 2", 'pass d=2, or law="sphere"'), flags))
    --dim must be 2, got 3: pass --dim 2, or --random sphere
    """
    if isinstance(error, InputError):
        about, flag = error.argument, flags.get(error.argument, error.argument)
        problem, remedy = (_spelt(words, flags, about) for words in (error.problem, error.remedy))
        return InputError(flag, error.value, problem, remedy)
    if isinstance(error, FileError):
        return FileError(error.path, error.problem, _spelt(error.remedy, flags))
    return error


def _spelt(words: str, flags: Mapping[str, str], about: str = "") -> str:
    known = set(flags.values())
    for expression, flag, instead in _EXPRESSIONS:
        if not flag or flag in known:
            words = re.sub(expression, instead, words)
    if not flags:
        return words
    words = re.sub(f"{_name(flags)}=({_VALUE})", lambda found: _setting(flags[found[1]], found[2]), words)
    words = re.sub(f"{_name(flags)} ([<>]=?) ", lambda found: f"{flags[found[1]]} {_RELATIONS[found[2]]} ", words)
    # Other names may be ordinary words or, like A, names of the mathematics.
    bare = [name for name in flags if "_" in name or (name == about and len(name) == 1 and name.islower())]
    return re.sub(rf"{_name(bare)}\b", lambda found: flags[found[1]], words) if bare else words


def _name(names: Iterable[str]) -> str:
    """A pattern for one of ``names`` as a word of its own."""
    return rf"(?<![\w-])({'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"


def _setting(flag: str, value: str) -> str:
    """A flag with its value as it is typed: without quotes, brackets, and the blanks of a list."""
    if value in ("True", "…", ""):
        return flag
    if value in ("False", "None"):
        return f"no {flag}"
    quoted = value.startswith(('"', "'"))
    return f"{flag} {value.strip(chr(34) + chr(39)) if quoted else value.strip('[]()').replace(', ', ',')}"


# Parameters that name a table to read; all others that name a file name one to write, or a model.
_TABLES = frozenset({"tokens", "weights", "matrix", "B", "V", "data", "outputs", "file", "ahead"})


class Command(TyperCommand):
    """A command that reads tables from the standard input too and whose errors speak of its own flags."""

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
    """Put a temporary file in the place of ``-``."""
    marked = [name for name, value in given.items() if name in _TABLES and str(value) == standard_input.MARK]
    if len(marked) > 1:
        named = " and ".join(marked)
        raise InputError(standard_input.MARK, named, "can stand for one table only", "save the others to files")
    for name in marked:
        path = stack.enter_context(standard_input.as_file(standard_input.read_all()))
        given[name] = path if isinstance(given[name], Path) else str(path)


# A new command is a module with a function `register(app)` and one entry here.
_COMMANDS = (demo, simulate, sentiment, interpolate, forecast, meanfield, sweep, explore, reproduce, data, doctor)

_BAD_INPUT, _INTERRUPTED, _PIPE_CLOSED = 2, 130, 141


class _Guarded(TyperGroup):
    """Runs a command; its expected failures become one line and an exit status, all others keep their traceback."""

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
            # The reader has gone (`hardmax … | head`): say nothing, and let the last flush go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_PIPE_CLOSED) from error
        return result


def _complain(message: str, label: str = "error: ") -> None:
    rank = os.environ.get("RANK", "0")  # one of several processes says which it is
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
    """Transformers as dynamical systems: tokens are points, layers are time. Who leads, who follows, where does
    everything end?

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
