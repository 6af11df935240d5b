"""Checks of small arguments that do not import torch: forecasting from a saved model needs NumPy only."""

from __future__ import annotations

import numpy as np

from ..errors import InputError


def whole(argument: str, value: object, least: int) -> int:
    """A whole number that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(
            argument, repr(value), f"must be a whole number, at least {least}", f"pass for example {argument}=50"
        )
    return int(value)


def one_of(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """One of a few values."""
    if value not in allowed:
        raise InputError(argument, repr(value), f"must be one of {allowed}", f"pass {argument}={allowed[0]!r}")
