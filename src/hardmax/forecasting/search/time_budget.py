"""Time budgets of a search, checked between units of work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

_AMPLE = 8.0
"""Seconds from which on a budget reduces no count of models."""
_FOR_THE_SEARCH = 0.6
"""Share of wall time for the search itself: selection, boundedness checks and refit come after it."""
_LATE, _FEWER = 0.5, 3
"""Past this share of wall time, one in three models is evaluated at full length."""
_NEARLY_OVER = 0.9
"""Share of wall time after which no further model is checked for boundedness: the refit still needs time."""


class TimeBudget:
    """Budgets of processor time and of wall time since construction, each None for no limit.

    ``seconds`` is processor time of this thread, which does not depend on the load of the machine, for comparisons at
    equal cost. ``budget`` is wall time.
    """

    def __init__(self, seconds: float | None = None, budget: float | None = None) -> None:
        self._started = time.thread_time()
        self._began = time.monotonic()
        self.seconds, self.budget = seconds, budget
        self.ended = False
        """Whether work was left out because a budget was used up."""
        self.on_check: Callable[[], None] | None = None
        """Called at every check: it reports progress, and raises to cancel the work."""

    def spent(self) -> float:
        """Processor seconds used."""
        return time.thread_time() - self._started

    def used(self) -> float:
        """Share used of the budget that is nearer to its end; 0 without budgets."""
        return max(self._processor(), self._wall())

    def affordable(self, count: int, least: int) -> int:
        """Number of models, out of ``count`` and at least ``least``, that the budgets allow to evaluate in full."""
        planned = [part for part in (self.seconds, self.budget) if part is not None]
        if not planned:
            return count
        if self._wall() > _LATE:
            count //= _FEWER
        return max(least, min(count, round(count * min(planned) / _AMPLE)))

    def within(self, share: float = 1.0) -> bool:
        """Whether less than this share of the time for the search was used."""
        if self.on_check is not None:
            self.on_check()
        inside = self._processor() < share and self._wall() < share * _FOR_THE_SEARCH
        self.ended = self.ended or not inside
        return inside

    def time_for_selection(self) -> bool:
        """Whether there is wall time left to check further models after the search."""
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
    """Share of a budget that was used; infinite for a budget of zero."""
    if budget is None:
        return 0.0
    return used / budget if budget > 0 else math.inf
