"""Options that the help shows together, in a panel with a title."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import typer


def panel(title: str) -> Callable[..., Any]:
    """``typer.Option`` for the options of one panel."""
    return partial(typer.Option, rich_help_panel=title)
