"""Functions shared by several commands: panels of the help, typed numbers, output files, a spinner."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import FileError, InputError
from ..files import require_writable

_PATIENCE = 2.0
"""Seconds of work before a spinner appears: shorter work needs none."""


RULES = ("hardmax", "softmax:BETA", "topk:K", "topk:K:BETA", "sigmoid:BETA", "linear:BETA", "sinkhorn:BETA")
"""The values of --rule: how scores become weights."""


def panel(title: str) -> Callable[..., Any]:
    """``typer.Option`` for the options of one panel."""
    return partial(typer.Option, rich_help_panel=title)


AsJson = Annotated[bool, panel("Output")("--json", help="Print one JSON object and nothing else.")]
"""The option --json of several commands."""
Quiet = Annotated[bool, panel("Output")("--quiet", "-q", help="Print nothing but errors.")]
"""The option --quiet of several commands."""


def read_whole(option: str, text: str | None, example: int, *, least: int | None = None) -> int | None:
    """A whole number such as ``1000`` or ``1_000`` or ``1e6``, not below ``least``; None stays None."""
    if text is None:
        return None
    value = _fraction(text)
    if value is None or value.denominator != 1:
        raise InputError(option, repr(text), "must be a whole number", f"pass for example {option} {example}")
    if least is not None and value < least:
        raise InputError(option, text, f"must be at least {least}", f"pass for example {option} {example}")
    return int(value)


def read_number(option: str, text: str | None, example: float) -> float | None:
    """A finite number such as ``0.5``, ``1/2`` or ``1e-3``; None stays None."""
    if text is None:
        return None
    value = _fraction(text)
    if value is None:
        raise InputError(option, repr(text), "must be a number", f"pass for example {option} {example:g}")
    return float(value)


def read_step(option: str, text: str, *, exact: bool) -> float | Fraction:
    """A positive number that stays exact where it is written as a fraction, or where exactness is asked for."""
    value = _fraction(text)
    if value is None:
        remedy = f"pass for example {option} 0.5 or {option} 1/2"
        raise InputError(option, repr(text), "must be a number or a fraction", remedy)
    if value <= 0:
        raise InputError(option, text, "must be positive", f"pass for example {option} 0.5 or {option} 1/2")
    return value if exact or "/" in text else float(value)


def require_target(option: str, path: Path | None, known: Sequence[str], *, folder_with: str | None = None) -> None:
    """Refuse a name whose suffix the option does not know, or that cannot be written; None asks for nothing.

    A folder may be replaced if it has the file ``folder_with``.
    """
    if path is None:
        return
    if path.suffix.lower() not in known:
        problem = f"{option} cannot write {path.suffix or 'a file without suffix'}"
        raise FileError(path, problem, f"use {', '.join(known)}")
    require_writable(path, folder_with=folder_with)


@contextmanager
def waiting(what: str, quiet: bool = False) -> Iterator[None]:
    """Show ``what`` and a spinner if the block takes longer than two seconds, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{what} …")
    timer = threading.Timer(_PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def _fraction(text: str) -> Fraction | None:
    # Longer texts are mistakes, and 1e999999999 would be expanded into all its digits.
    mantissa, _, exponent = text.strip().lower().partition("e")
    if len(text) > 400 or (exponent and not exponent.lstrip("+-").isdecimal()) or len(exponent) > 4:
        return None
    try:
        value = Fraction(text.strip().replace("_", ""))
    except (ValueError, ZeroDivisionError):
        return None
    return value if abs(value) < Fraction(10) ** 308 and mantissa else None
