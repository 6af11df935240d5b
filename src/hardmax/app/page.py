"""The base class of a page, and the values that it reads from its address."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from panel.viewable import Viewable

    from .session import Session


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


class Page(ABC):
    """One capability to look at; every visitor gets an object of their own.

    ``build`` is called once, after ``restore`` has been given the query of the address. Whenever what is shown
    changes, the page calls ``session.changed()``: the address and the Python code follow.
    """

    slug: ClassVar[str]
    """The last part of the address, in lower case."""
    title: ClassVar[str]
    text: ClassVar[str]
    """One paragraph on what one sees, in plain words."""
    paper: ClassVar[str]
    """The arXiv number of the paper behind the page."""
    functions: ClassVar[tuple[str, ...]]
    """The public names that the page shows; each links to its documentation."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Libraries that its browser must load beside Bokeh, by Panel's names."""

    @abstractmethod
    def build(self, session: Session) -> Viewable:
        """The body of the page."""

    @abstractmethod
    def code(self) -> str:
        """Python that reproduces the current view."""

    @abstractmethod
    def state(self) -> dict[str, str]:
        """What the address must keep, as short strings; what has its default value may be left out."""

    @abstractmethod
    def restore(self, state: Mapping[str, str]) -> None:
        """Take up a state from an address, which anybody may have written: ignore or bound what makes no sense."""

    @abstractmethod
    def figure(self) -> Figure | None:
        """The current view as a figure to export, drawn by the library; None while there is nothing to draw."""
