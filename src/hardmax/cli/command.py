"""What all commands have in common: ``-`` stands for the standard input, and errors name flags."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from typer import Typer
from typer.core import TyperCommand

from ..errors import FileError, InputError
from . import standard_input
from .flags import flags_of, in_flags

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
