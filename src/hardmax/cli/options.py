"""Options shared by several commands: panels of the help, and numbers as people type them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import typer

from ..errors import InputError


def panel(title: str) -> Callable[..., Any]:
    """``typer.Option`` for the options of one panel."""
    return partial(typer.Option, rich_help_panel=title)


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
