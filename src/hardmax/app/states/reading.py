"""Values from an address, which anybody may have written: nonsense becomes the default, the rest is bounded."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping


def number(state: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    """A finite number between two bounds."""
    try:
        value = float(state.get(name, ""))
    except ValueError:
        return default
    # Ten digits are what an address keeps.
    return float(f"{min(high, max(low, value)):.10g}") if math.isfinite(value) else default


def whole(state: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """A whole number between two bounds."""
    return round(number(state, name, default, low, high))


def choice(state: Mapping[str, str], name: str, default: str, known: Collection[str]) -> str:
    """One of the known words."""
    value = state.get(name, default)
    return value if value in known else default


def different(values: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, str]:
    """What is not at its default, as short text: the state to keep."""
    return {
        name: f"{value:.10g}" if isinstance(value, float) else str(value)
        for name, value in values.items()
        if value != defaults[name]
    }
