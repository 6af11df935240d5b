"""The directive ``commands``: every command of ``hardmax`` with arguments and options, read from the program itself."""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Help texts colour commands and comments in the markup of rich.
_TAG = re.compile(r"\[/?(?:bold|dim|cyan|italic)\]")
_COMMAND = re.compile(r"\[cyan\](.*?)\[/cyan\]", re.DOTALL)


def _escaped(text: str) -> str:
    """Plain words for reStructuredText: no character of them is markup."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def _words(text: str) -> str:
    """A paragraph of a help text on one line: commands as code, everything else as plain words."""
    parts = _COMMAND.split(" ".join(text.split()))
    return "".join(_escaped(_TAG.sub("", part)) if k % 2 == 0 else f"``{part}``" for k, part in enumerate(parts))


def _paragraph(text: str) -> list[str]:
    """A paragraph of a help text; one whose lines are coloured throughout is a list of commands to type."""
    lines = text.splitlines()
    if all(line.startswith(("[dim]", "[cyan]")) for line in lines):
        typed = [("$ " if line.startswith("[cyan]") else "") + _TAG.sub("", line) for line in lines]
        return [".. code-block:: console", "", *(f"   {line}" for line in typed), ""]
    return [_words(text), ""]


def _commands(command: Any, name: str, level: int) -> list[str]:
    """One command, and the commands below it, as reStructuredText."""
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    lines = [f".. _command-{name.replace(' ', '-')}:", "", name, "-~^"[level] * len(name), ""]
    lines += [".. code-block:: text", "", f"   {usage}", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines += _paragraph(paragraph)
    records = [parameter.get_help_record(context) for parameter in command.get_params(context) if not parameter.hidden]
    rows = [record for record in records if record is not None and record[0] != "--help"]
    if rows:
        lines += [".. list-table::", "   :widths: 34 66", "   :class: options", ""]
        for names, meaning in rows:
            lines += [f"   * - ``{names}``", f"     - {_words(meaning)}"]
        lines.append("")
    for below, child in sorted(getattr(command, "commands", {}).items()):
        if not child.hidden:
            lines += _commands(child, f"{name} {below}", level + 1)
    return lines


def all_commands() -> str:
    """Every command that is not hidden, in alphabetical order, as reStructuredText."""
    from typer.main import get_command

    from hardmax.cli.app import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    shown = [(name, command) for name, command in sorted(commands.items()) if not command.hidden]
    return "\n".join(line for name, command in shown for line in _commands(command, f"hardmax {name}", 0))


class Commands(SphinxDirective):
    """A section per command of ``hardmax``."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(all_commands(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
