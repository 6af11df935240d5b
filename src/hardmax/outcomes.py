"""What became of a run: a name for programs, a sentence and a remedy for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "leader"), counted(2, "leader")
    ('1 leader', '2 leaders')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Ending(Enum):
    """The ways in which a run can end."""

    DECIDED = "decided"
    DEPTH_REACHED = "depth reached"
    TIME_REACHED = "time reached"
    STOPPED = "stopped by a rule"
    SETTLED = "settled without a decision"
    UNDECIDED = "undecided"
    DIVERGED = "diverged"
    OUT_OF_TIME = "out of time"


_FAILURES = frozenset({Ending.UNDECIDED, Ending.DIVERGED, Ending.OUT_OF_TIME})


@dataclass(frozen=True)
class Outcome:
    """How a run ended, in words.

    ``ok`` is false when the run did not do all that was asked of it; what it did do is kept.

    >>> print(Outcome(Ending.DEPTH_REACHED, "50 layers were run"))
    depth reached: 50 layers were run
    """

    ending: Ending
    sentence: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Whether the run did all that was asked of it."""
        return self.ending not in _FAILURES

    def attributes(self) -> dict[str, str]:
        """The same as attributes of a labelled data set."""
        return {"outcome": self.ending.value, "outcome_sentence": self.sentence, "outcome_remedy": self.remedy}

    def __str__(self) -> str:
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{self.ending.value}: {self.sentence}{tail}"
