"""Progress on anything that takes longer than two seconds, on the error stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

Tell: TypeAlias = Callable[[str, float, float | None], None]
"""Called as ``tell(stage, done, total)``; what it raises ends the work."""
Progress: TypeAlias = Tell | bool | None
_PATIENCE = 2.0


class Ticker:
    """A progress bar that appears only when the work turns out to be long.

    ``progress`` is True (from the start), False (never), None (after two seconds, on a terminal), or a function that
    is told ``(stage, done, total)`` instead; an error raised in it ends the work.

    >>> with Ticker("layers", 3, progress=False) as ticker:
    ...     for _ in range(3):
    ...         ticker.advance()
    """

    def __init__(self, description: str, total: float | None = None, *, progress: Progress = None) -> None:
        self._description = description
        self._total = total
        self._wanted = progress
        self._done = 0.0
        self._note = ""
        self._started = time.monotonic()
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Ticker:
        self._show_if_due()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, amount: float = 1.0, note: str = "") -> None:
        """Say that ``amount`` more is done; ``note`` is shown beside the bar."""
        self._done += amount
        self._note = note
        if callable(self._wanted):
            self._wanted(note or self._description, self._done, self._total)
            return
        self._show_if_due()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, note=self._note)

    def reach(self, done: float, note: str = "") -> None:
        """Say that so much is done in all; for work whose parts count for themselves."""
        self.advance(done - self._done, note)

    def beat(self) -> None:
        """Say that the work goes on, between steps that can be counted; a function that is told may end it here."""
        self.advance(0.0, self._note)

    def _show_if_due(self) -> None:
        if self._bar is not None or self._wanted is False or callable(self._wanted):
            return
        if self._wanted is None and (not sys.stderr.isatty() or time.monotonic() - self._started < _PATIENCE):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:g}/{task.total}" if self._total else "{task.completed:g}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(self._description, total=self._total, note=self._note)
        self._bar.update(self._task, completed=self._done)
