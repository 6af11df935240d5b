"""The base class of a page, and functions that read values from an address."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from panel.viewable import Viewable

    from ..progress import Progress
    from .history import History
    from .session import Session


def number(state: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    """The number called ``name`` in an address, clipped to the bounds; the default where there is none."""
    try:
        value = float(state.get(name, ""))
    except ValueError:
        return default
    # An address stores ten digits.
    return float(f"{min(high, max(low, value)):.10g}") if math.isfinite(value) else default


def whole(state: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """The integer called ``name`` in an address, clipped to the bounds."""
    return round(number(state, name, default, low, high))


def choice(state: Mapping[str, str], name: str, default: str, known: Collection[str]) -> str:
    """The value called ``name`` in an address if it is known, else the default."""
    value = state.get(name, default)
    return value if value in known else default


def different(values: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, str]:
    """The values that differ from their defaults, as short text for an address."""
    return {
        name: f"{value:.10g}" if isinstance(value, float) else str(value)
        for name, value in values.items()
        if value != defaults[name]
    }


def written(value: float) -> str:
    """The shortest text that gives the number back to the last digit, for code and addresses."""
    text = f"{value:g}"
    return text if float(text) == value else repr(value)


class Page(ABC):
    """A page of the explorer; every visit has an object of its own.

    ``build`` is called once, after ``restore`` with the query of the address. Whenever the view changes, the page calls
    ``session.changed()``, which updates the address and the Python code.
    """

    slug: ClassVar[str]
    """The last part of the address, in lower case."""
    title: ClassVar[str]
    task: ClassVar[str]
    """What to do on the page, in one sentence."""
    text: ClassVar[str]
    """What is shown on the page, one paragraph."""
    paper: ClassVar[str]
    """The arXiv number of the paper behind the page."""
    functions: ClassVar[tuple[str, ...]]
    """The public names that the page uses; each links to its documentation."""
    scripts: ClassVar[tuple[str, ...]] = ()
    """Files in ``static`` that the page runs in the browser."""
    needs: ClassVar[tuple[str, ...]] = ()
    """JavaScript libraries that the page needs beside Bokeh, by Panel's names."""
    history: History[Any] | None = None
    """Undo, redo and reset, made in ``build`` by pages that have them; their buttons are among the tools."""

    @abstractmethod
    def build(self, session: Session) -> Viewable:
        """The body of the page."""

    @abstractmethod
    def code(self) -> str:
        """Python that reproduces the current view."""

    @abstractmethod
    def state(self) -> dict[str, str]:
        """The state to store in the address, as short strings; values at their defaults may be left out."""

    @abstractmethod
    def restore(self, state: Mapping[str, str]) -> None:
        """Take a state from an address; invalid values are ignored or clipped."""

    @abstractmethod
    def figure(self) -> Figure | None:
        """The current view as a Matplotlib figure to export; None while there is nothing to draw."""

    def page(self) -> str | None:
        """The current view as an interactive HTML page that needs no server; None where there is no such page."""
        return None

    def film(self, path: Path, progress: Progress) -> Path | None:
        """Write the motion of the current view as GIF or MP4, by the suffix of ``path``; None without motion."""
        return None
