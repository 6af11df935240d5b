"""Time budgets of a search, checked between units of work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

_AMPLE = 8.0
"""Seconds from which on a budget reduces no count of models."""
_FOR_THE_SEARCH = 0.66
"""Share of a budget for the search itself: ranking, boundedness checks and refit come after it."""
_LATE, _FEWER = 0.5, 3
"""Past this share of wall time, one in three models is evaluated at full length."""
_FOR_RANKING = 0.8
"""Share of a budget after which no further model is ranked on the second fold."""
_FOR_SIMPLE_MODELS = 0.95
"""Share of a budget after which no further simple model is compared: held-out errors come after it."""
_LEAST_FOR_SIMPLE_MODELS = 0.15
"""Share of processor time that simple models have in any case: where a record has no dynamics they decide alone."""
_NEARLY_OVER = 0.9
"""Share of a budget after which no further model is checked for boundedness: the comparison with simple models, the
refit and the held-out errors take the rest."""


class TimeBudget:
    """Budgets of processor time and of wall time since construction, each None for no limit.

    ``seconds`` is processor time of this thread, which does not depend on the load of the machine, for comparisons at
    equal cost. ``budget`` is wall time. ``for_the_search`` is the share of both in which models are searched; a model
    without a selection and boundedness checks after its search passes 1.
    """

    def __init__(
        self, seconds: float | None = None, budget: float | None = None, *, for_the_search: float = _FOR_THE_SEARCH
    ) -> None:
        self._for_the_search = for_the_search
        self._started = time.thread_time()
        self._began = time.monotonic()
        self.seconds, self.budget = seconds, budget
        self._checked: tuple[float, float] | None = None
        self._longest = 0.0
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
        return self._left(share * self._for_the_search)

    def time_for_ranking(self) -> bool:
        """Whether there is time left to rank further models on the second fold after the search."""
        return self._left(_FOR_RANKING, foreseeing=True)

    def time_for_selection(self) -> bool:
        """Whether there is time left to check further models for boundedness after the ranking."""
        return self._left(_NEARLY_OVER, foreseeing=True)

    def comparison(self) -> Callable[[], bool]:
        """Function that says whether there is time left for simple models, whose comparison begins now.

        They have what the family has left of the processor time, and 15 % of it in any case.
        """
        begun = self.spent()

        def left() -> bool:
            if self.on_check is not None:
                self.on_check()
            own = _share(self.spent() - begun, self.seconds)
            inside = own < _LEAST_FOR_SIMPLE_MODELS or self._processor() < _FOR_SIMPLE_MODELS
            inside = inside and self._wall() < _FOR_SIMPLE_MODELS
            self.ended = self.ended or not inside
            return inside

        return left

    def _left(self, share: float, *, foreseeing: bool = False) -> bool:
        """Whether less than this share of both budgets was used; progress is reported and cancelling noticed.

        With ``foreseeing``, whether that still holds after one more piece of work, as long as the longest one between
        two checks with the same share.
        """
        if self.on_check is not None:
            self.on_check()
        used = self.used()
        if self._checked is not None and self._checked[0] == share:
            self._longest = max(self._longest, used - self._checked[1])
        else:
            self._longest = 0.0
        self._checked = (share, used)
        left = used + (self._longest if foreseeing else 0.0) < share
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
