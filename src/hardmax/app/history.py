"""Undo, redo and reset of a page: a bounded list of its states, which never change."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import panel as pn

T = TypeVar("T")

MOST_STATES = 60
"""States kept; more than a person goes back."""
_ONE_MOVE = 1.0
"""Seconds within which changes of the same control are one step: a slider that moves reports many values."""


class History(Generic[T]):
    """States of a page with buttons for undo, redo and reset; ``show(state)`` is called for the state to go to.

    ``weigh(state)`` are the bytes of the large objects of a state by their ``id``; an object of several states counts
    once, and the oldest states are dropped beyond ``most_bytes``. ``same(one, other)`` tells whether two states show
    the same.
    """

    def __init__(
        self,
        first: T,
        show: Callable[[T], None],
        *,
        reset: T,
        weigh: Callable[[T], Mapping[int, int]] = lambda _: {},
        most_bytes: int = 32 * 2**20,
        same: Callable[[T, T], bool] = operator.eq,
    ) -> None:
        self._states, self._at = [first], 0
        self._latest = ("", 0.0)
        self._show, self._reset, self._weigh, self._most_bytes, self._same = show, reset, weigh, most_bytes, same
        options = {"width": 66, "margin": 0}
        self.undo = pn.widgets.Button(label="Undo", css_classes=["undo"], description="Undo (Ctrl+Z)", **options)
        self.redo = pn.widgets.Button(label="Redo", css_classes=["redo"], description="Redo (Ctrl+Shift+Z)", **options)
        self.reset = pn.widgets.Button(label="Reset", description="Back to how the page begins", **options)
        self.buttons = (self.undo, self.redo, self.reset)
        self._mark()

    def connect(self, guarded: Callable[[Callable[..., None]], Callable[..., Any]]) -> None:
        """Let the buttons work; ``guarded`` shows errors as messages."""
        self.undo.on_click(guarded(lambda _: self.step(-1)))
        self.redo.on_click(guarded(lambda _: self.step(1)))
        self.reset.on_click(guarded(lambda _: self._start_again()))

    def record(self, state: T, control: str = "") -> None:
        """Add a state after the current one; what was undone can then no longer be redone.

        States that the same ``control`` gives in quick succession are one, and none where they lead back to the state
        before: going back to that would change nothing.
        """
        now = time.monotonic()
        before, self._latest = self._latest, (control, now)
        joined = bool(control) and before[0] == control and now - before[1] < _ONE_MOVE and self._at > 0
        del self._states[self._at + (0 if joined else 1) :]
        if joined and self._same(state, self._states[-1]):
            self._latest = ("", 0.0)  # what follows is a step of its own
        else:
            self._states.append(state)
        while len(self._states) > MOST_STATES or (len(self._states) > 2 and self._bytes() > self._most_bytes):
            del self._states[0]
        self._at = len(self._states) - 1
        self._mark()

    @property
    def current(self) -> T:
        """The state that is shown."""
        return self._states[self._at]

    def amend(self, state: T) -> None:
        """Replace the current state without a step, for changes that are not undone, such as those of a player."""
        self._states[self._at] = state

    def _bytes(self) -> int:
        found: dict[int, int] = {}
        for state in self._states:
            found.update(self._weigh(state))
        return sum(found.values())

    def step(self, by: int) -> None:
        """Go back or forth by so many states, as far as there are some."""
        target = min(max(self._at + by, 0), len(self._states) - 1)
        if target != self._at:
            self._at, self._latest = target, ("", 0.0)
            self._mark()
            self._show(self._states[target])

    def _start_again(self) -> None:
        self.record(self._reset)
        self._show(self._reset)

    def _mark(self) -> None:
        self.undo.disabled = self._at == 0
        self.redo.disabled = self._at == len(self._states) - 1
