"""What is promised of all that runs on a million tokens: nearly linear time, and little memory."""

from __future__ import annotations

from collections.abc import Mapping

from ._measure import growth, peak_megabytes
from ._table import Check


def at_a_million(work: str, took: Mapping[tuple[int, int], float]) -> list[Check]:
    """Growth and peak memory of ``work``; ``took`` holds its seconds by tokens and coordinates."""
    checks = []
    for d in (2, 3):
        exponent = growth(took[10**5, d], took[10**6, d], 10)
        what = f"{work}, growth in n from 1e5 to 1e6, d = {d}"
        checks.append(Check(what, exponent, 1.2, at_least=False, unit="power of n"))
    memory = peak_megabytes(work, 10**6, 3)
    what = f"{work} (1,000,000, 3), peak memory beyond the input"
    return [*checks, Check(what, memory, 1000.0, at_least=False, unit="MB")]
