"""A budget of processor time, asked between pieces of work."""

from __future__ import annotations

import time
from collections.abc import Callable

_AMPLE = 8.0


class Clock:
    """Seconds of this thread's processor time since the start; None means no limit."""

    def __init__(self, seconds: float | None = None) -> None:
        self._started = time.thread_time()
        self.seconds = seconds
        self.pulse: Callable[[], None] | None = None
        """Called whenever the time is asked: where progress is told and where work that nobody waits for ends."""

    def spent(self) -> float:
        """How much was used."""
        return time.thread_time() - self._started

    def share_of(self, count: int, least: int) -> int:
        """How many of ``count`` things to look at closely: all of them, fewer when there is little time."""
        if self.seconds is None:
            return count
        return max(least, min(count, round(count * self.seconds / _AMPLE)))

    def within(self, share: float = 1.0) -> bool:
        """Whether less than this share of the budget was used."""
        if self.pulse is not None:
            self.pulse()
        return self.seconds is None or self.spent() < share * self.seconds
