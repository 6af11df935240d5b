"""Pictures that values draw of themselves: the package names the painter, so that nothing reaches up to the figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Painter = Callable[..., Any]
_PAINTERS: dict[str, Callable[[], Painter]] = {}


def painted_by(kind: str, painter: Callable[[], Painter]) -> None:
    """Say who draws values of the class called ``kind``; ``painter`` is asked when the first one is drawn."""
    _PAINTERS[kind] = painter


def picture(value: object, ax: Any = None) -> Any:
    """Draw ``value`` on ``ax``, or on axes of its own."""
    return _PAINTERS[type(value).__name__]()(value, ax)
