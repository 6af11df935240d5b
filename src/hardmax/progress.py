"""Progress on the error stream: bars for long work, and stages with an estimate of the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

Tell: TypeAlias = Callable[[str, float, float | None], None]
"""A function called as ``tell(stage, done, total)``; an error raised in it ends the work."""
Progress: TypeAlias = Tell | bool | None
"""True (shown from the start), False (never), None (shown once the work takes long), or a function to call instead."""
_PATIENCE = 2.0
"""Seconds of work before a bar appears: shorter work needs none."""
_PATIENCE_WITH_STAGES = 1.0
"""Seconds of work before stages are shown."""
_TOO_EARLY = 0.04
"""Share of the work before which its time does not predict the rest."""


class Ticker:
    """Progress bar that appears only where the work takes long.

    ``progress`` is True (from the start), False (never), None (after two seconds, on a terminal), or a function that
    is called with ``(stage, done, total)`` instead; an error raised in it ends the work.

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
        """Report ``amount`` more work; ``note`` is shown beside the bar."""
        self._done += amount
        self._note = note
        if callable(self._wanted):
            self._wanted(note or self._description, self._done, self._total)
            return
        self._show_if_due()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, note=self._note)

    def reach(self, done: float, note: str = "") -> None:
        """Report the work done in total."""
        self.advance(done - self._done, note)

    def beat(self) -> None:
        """Report that the work continues between steps, so that a function passed as ``progress`` can end it."""
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


@contextmanager
def telling(description: str, total: float | None, progress: Progress) -> Iterator[Tell]:
    """Context with the function that progress is reported to: the caller's own, or one that moves a bar."""
    if callable(progress):
        yield progress
        return
    with Ticker(description, total, progress=progress) as ticker:
        yield lambda stage, done, total: ticker.reach(done, stage)


class StageLog:
    """Stages of long work: a bar on a terminal, else one line per stage, with the time left.

    Called as ``log(stage, done, total)``. Nothing is shown for ``patience`` seconds; ``most`` is the number of seconds
    after which the work ends in any case, where that is known. Use it in a ``with`` block.
    """

    def __init__(self, title: str, *, patience: float = 0.0, most: float | None = None) -> None:
        self._title, self._patience, self._most = title, patience, most
        self._started = time.monotonic()
        self._expected: float | None = None
        self._share = 0.0
        self._last = ""
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> StageLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        spent = time.monotonic() - self._started
        share = min(1.0, done / total) if total else 0.0
        if share > self._share:
            self._share = share
            self._expected = spent / share if share > _TOO_EARLY else None
        if spent < self._patience:
            return
        if sys.stderr.isatty():
            self._show(stage)
        elif stage != self._last:
            left = self._left(spent)
            print(f"{self._title}: {stage}; {spent:.1f} s so far{left and ', ' + left}", file=sys.stderr, flush=True)
        self._last = stage

    def _left(self, spent: float) -> str:
        """Time left, in words; empty where it is not known."""
        most = None if self._most is None else max(0.0, self._most - spent)
        if self._expected is None:
            return "" if most is None else f"at most about {_seconds(most)} left"
        about = max(0.0, self._expected - spent)
        return f"about {_seconds(about if most is None else min(about, most))} left"

    def _show(self, stage: str) -> None:
        if self._bar is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn(self._title),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(stage, total=1.0, left="")
        left = self._left(time.monotonic() - self._started)
        self._bar.update(self._task, description=stage, completed=self._share, left=left)


def _seconds(count: float) -> str:
    return f"{count:.0f} s" if count < 100 else f"{count / 60:.0f} min"


class Stages:
    """Work in named stages, each with the share of the time that it usually takes (``weights``, of any sum).

    ``tell`` is called with ``(stage, done, total)`` where a stage begins and at every :meth:`beat`; an error raised in
    it ends the work.

    >>> with Stages({"search": 3.0, "refit": 1.0}, print) as stages:
    ...     stages.begin("search")
    ...     stages.begin("refit")
    search 0.0 4.0
    refit 3.0 4.0
    refit 4.0 4.0
    """

    def __init__(self, weights: Mapping[str, float], tell: Tell) -> None:
        self._weights, self._tell = weights, tell
        self._total = sum(weights.values())
        self._stage, self._done = "", 0.0

    def __enter__(self) -> Stages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._stage:
            self._tell(self._stage, self._total, self._total)

    def begin(self, stage: str) -> None:
        """Report that ``stage`` begins: those before it are done."""
        names = list(self._weights)
        self._stage, self._done = stage, sum(self._weights[name] for name in names[: names.index(stage)])
        self.beat()

    def beat(self, share: float = 0.0) -> None:
        """Report that the work continues, and that this share of the stage is done."""
        self._tell(self._stage, self._done + min(1.0, share) * self._weights[self._stage], self._total)


@contextmanager
def in_stages(
    title: str, weights: Mapping[str, float], *, progress: Progress = None, most: float | None = None
) -> Iterator[Stages]:
    """Context with the stages of some work, shown according to ``progress``.

    True shows them from the start, None once the work has taken a second, False never; a function is called instead.
    """
    if callable(progress):
        with Stages(weights, progress) as stages:
            yield stages
    elif progress is False:
        with Stages(weights, lambda stage, done, total: None) as stages:
            yield stages
    else:
        patience = 0.0 if progress else _PATIENCE_WITH_STAGES
        with StageLog(title, patience=patience, most=most) as log, Stages(weights, log) as stages:
            yield stages
