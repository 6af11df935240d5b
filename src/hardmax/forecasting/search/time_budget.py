"""Time budgets, checked between units of work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

_AMPLE = 8.0
_FOR_THE_SEARCH = 0.6
"""The share of wall time that a search may plan with: selection, boundedness and refit come after it."""
_LATE, _FEWER = 0.5, 3
"""Past this share of wall time only one in three models is looked at closely."""
_NEARLY_OVER = 0.9


class TimeBudget:
    """Two budgets since the start, each None for no limit.

    ``seconds`` is processor time of this thread: the same search whatever else the machine does, for comparisons.
    ``budget`` is wall time: what somebody waits.
    """

    def __init__(self, seconds: float | None = None, budget: float | None = None) -> None:
        self._started = time.thread_time()
        self._began = time.monotonic()
        self.seconds, self.budget = seconds, budget
        self.ended = False
        """Whether something was left out because the time was over."""
        self.on_check: Callable[[], None] | None = None
        """Called whenever the time is asked: where progress is told and where cancelled work ends."""

    def spent(self) -> float:
        """Processor seconds used."""
        return time.thread_time() - self._started

    def used(self) -> float:
        """The share used of the budget that is nearer to its end, 0 without budgets; a wall budget counts whole."""
        return max(self._processor(), self._wall())

    def affordable(self, count: int, least: int) -> int:
        """How many of ``count`` things to look at closely: all of them, fewer when there is little time."""
        planned = [part for part in (self.seconds, self.budget) if part is not None]
        if not planned:
            return count
        if self._wall() > _LATE:
            count //= _FEWER
        return max(least, min(count, round(count * min(planned) / _AMPLE)))

    def within(self, share: float = 1.0) -> bool:
        """Whether less than this share of the search's time was used."""
        if self.on_check is not None:
            self.on_check()
        inside = self._processor() < share and self._wall() < share * _FOR_THE_SEARCH
        self.ended = self.ended or not inside
        return inside

    def time_for_selection(self) -> bool:
        """Whether there is wall time left to look at further models after the search."""
        if self.on_check is not None:
            self.on_check()
        left = self._wall() < _NEARLY_OVER
        self.ended = self.ended or not left
        return left

    def _processor(self) -> float:
        return _share(self.spent(), self.seconds)

    def _wall(self) -> float:
        return _share(time.monotonic() - self._began, self.budget)


def _share(used: float, budget: float | None) -> float:
    """The share of a budget that was used; a budget of zero is always over."""
    if budget is None:
        return 0.0
    return used / budget if budget > 0 else math.inf
