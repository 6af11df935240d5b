"""Checked scalar arguments: numbers, counts and choices. Without torch, so that every module can use them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence

from .errors import InputError

_SHOWN = 60
"""Characters of a value that a message shows."""


def shown(value: object) -> str:
    """A value as messages show it: on one line, and cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def as_number(argument: str, value: object, accept: Callable[[float], bool], problem: str, remedy: str) -> float:
    """One finite real number for which ``accept`` is true, as float."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(argument, shown(value), "must be a number", remedy) from None
    if isinstance(value, (bool, str)) or not math.isfinite(number) or not accept(number):
        raise InputError(argument, shown(value), problem, remedy)
    return number


def as_positive(argument: str, value: object) -> float:
    """One finite number greater than zero, as float."""
    return as_number(argument, value, lambda x: x > 0, "must be positive and finite", f"pass {argument} > 0")


def as_count(argument: str, value: object, least: int = 0) -> int:
    """A whole number that is at least ``least``, as int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InputError(
            argument,
            shown(value),
            f"must be a whole number, at least {least}",
            f"pass for example {argument}=50",
        )
    return int(value)


def as_choice(argument: str, value: object, allowed: Sequence[object]) -> None:
    """Raise an InputError for a value that is not among ``allowed``."""
    if value not in allowed:
        raise InputError(argument, repr(value), f"must be one of {allowed}", f"pass {argument}={allowed[0]!r}")
