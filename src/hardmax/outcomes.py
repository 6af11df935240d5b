"""Outcomes of runs: a code, a sentence and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


def counted(number: int, noun: str) -> str:
    """Number with its noun, in the plural unless it is one.

    >>> counted(1, "leader"), counted(2000, "leader")
    ('1 leader', '2,000 leaders')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class Ending(Enum):
    """Ways in which a run can end; the value is the text that is printed and saved."""

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
    """How a run ended, in words; a run that ended early still returns what it computed.

    Examples
    --------
    >>> print(Outcome(Ending.DEPTH_REACHED, "50 layers were run"))
    depth reached: 50 layers were run
    """

    ending: Ending
    """Reason for the end, for programs."""
    sentence: str
    """What happened, in words."""
    remedy: str = ""
    """What to change for another outcome; empty where there is nothing to change."""

    @property
    def ok(self) -> bool:
        """Whether the run finished what was requested: neither undecided, diverged nor out of time."""
        return self.ending not in _FAILURES

    def attributes(self) -> dict[str, str]:
        """Outcome as attributes of an ``xarray.Dataset``.

        Returns
        -------
        dict
            Texts ``outcome``, ``outcome_sentence`` and ``outcome_remedy``.
        """
        return {"outcome": self.ending.value, "outcome_sentence": self.sentence, "outcome_remedy": self.remedy}

    def __str__(self) -> str:
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{self.ending.value}: {self.sentence}{tail}"
