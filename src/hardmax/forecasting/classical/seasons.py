"""Seasons of a record, in samples: found from its autocorrelation, or given and checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InputError
from ..protocol import FloatArray

_LONGEST = 1500
"""Longest season that is looked for, in samples: two months of hours, or four years of days."""
_CYCLES = 3
"""Cycles that a record must hold for a season to be found: with fewer, a slow drift looks the same."""
_FEWEST_CYCLES = 2.2
"""Cycles that a record must hold at least for a season as strong as ``_VERY_STRONG``."""
_VERY_STRONG = 0.7
"""Autocorrelation from which on a season of fewer than three cycles counts: a drift has no such peak."""
_STRONG = 0.2
"""Autocorrelation at a season, at least: below it, a seasonal rule does not beat the mean."""
_CHANCE = 0.9
"""Autocorrelation at a season, at least, times the square root of the number of cycles in the record."""
_KNOWN = 0.7
"""Largest lag, as a share of the record, at which the autocorrelation is used: beyond it few pairs are left."""
_ALIKE = 0.1
"""Relative difference up to which two seasons count as one."""
_RISE = 0.15
"""Autocorrelation at a season above the lowest on either side, at least: a slow decay has no such rise."""
_AGAIN = 0.5
"""Autocorrelation at two seasons, at least, relative to that at one: a chance peak has none."""
_STRONGER, _BY_CHANCE = 0.05, 4.0
"""Autocorrelation by which a longer season must exceed that at the same multiple of a shorter one next to it, and the
same in standard errors: one minus the autocorrelation, over the square root of the number of samples. The highest of
many multiples is higher by chance: with three, noise around one season gives a second one now and then."""
_CALENDAR = (4, 7, 12, 24, 48, 52, 96, 168, 365)
"""Usual seasons: quarters, days of a week, months, hours, half hours and quarter hours of a day, weeks of a year, hours
of a week, days of a year."""
_SHORTEST_OF_TWO = 12
"""Shortest season of the calendar that two cycles are enough for: fewer pairs of samples agree by chance."""
_CALENDAR_STRONG = 0.4
"""Autocorrelation at a usual season, at least, of the record and of its differences: of two cycles of 52 independent
samples one in 500 reaches it by chance in one of them."""
MOST_SEASONS = 2
"""Seasons at once: a day and a week in hourly data."""


def find_seasons(trajectories: Sequence[FloatArray], outputs: int) -> tuple[int, ...]:
    """Seasons in samples, shortest first, at most two; empty where the record repeats nothing.

    A season is a peak of the autocorrelation of the longest record, or of its differences, that is high for the number
    of cycles in the record. A second season is a later peak that is higher than what multiples of the first explain.
    Usual seasons of the calendar, such as 12 months or 52 weeks, are also found in a record of two to three cycles.

    Parameters
    ----------
    trajectories
        Arrays (samples, channels).
    outputs
        Number of leading channels that are looked at; the others are inputs.

    Returns
    -------
    tuple of int
        The seasons.
    """
    record = max(trajectories, key=len)[:, :outputs]
    longest = min(_LONGEST, int(len(record) / _FEWEST_CYCLES))
    if longest < 2:
        return ()
    found: list[int] = []
    # Differences show short seasons beside a slow drift, the record itself shows long ones.
    for differences in (True, False):
        slow = _without_drift(record, differences=differences)
        whole = _autocorrelation(slow, max(longest + 1, int(_KNOWN * len(slow))))
        for season in (_by_multiples(whole, p) for p in _peaks(whole[: longest + 2], len(record))):
            close = [other for other in found if _is_unresolved(season, other, len(record))]
            if close and season in _CALENDAR and not any(other in _CALENDAR for other in close):
                found = [season if other is close[0] else other for other in found]
            elif not close and not any(_is_known(season, other, len(record)) for other in found):
                found.append(season)
    found = found[:MOST_SEASONS]
    usual = _usual_season(record)
    if usual is not None and not any(_is_known(usual, other, len(record)) for other in found):
        # So few cycles do not tell it from a season of nearly the same length.
        found = [*[season for season in found if 2 * season <= usual][: MOST_SEASONS - 1], usual]
    return tuple(sorted(found))


def _usual_season(record: FloatArray) -> int | None:
    """The season of the calendar that a record of two to three cycles repeats most clearly; None without one."""
    best, height = None, _CALENDAR_STRONG
    for season in _CALENDAR:
        if season < _SHORTEST_OF_TWO or not 2 * season <= len(record) < _CYCLES * season:
            continue
        both = [
            _autocorrelation(_without_drift(record, differences=d), min(season + 2, len(record) - 2))
            for d in (True, False)
        ]
        around = slice(max(1, season - 2), season + 3)
        found = min(float(some[season]) for some in both)
        if found > height and all(some[season] >= some[around].max() for some in both):
            best, height = season, found
    return best


def _is_known(season: int, other: int, samples: int) -> bool:
    """Whether a season is another one, or a multiple of it that a record of ``samples`` does not hold three times."""
    times = max(1, round(season / other)) if season > samples // _CYCLES else 1
    return abs(season - times * other) <= _ALIKE * other


def _is_unresolved(season: int, other: int, samples: int) -> bool:
    """Whether two seasons differ by less than one cycle over the record, so that it does not tell them apart."""
    return abs(samples / season - samples / other) < 1.0


def _without_drift(record: FloatArray, *, differences: bool) -> FloatArray:
    """Record without its straight line, or without what its differences remove."""
    if differences:
        return np.diff(record, axis=0)
    t = np.linspace(-1.0, 1.0, len(record))
    base = np.stack([np.ones_like(t), t], axis=1)
    return np.asarray(record - base @ np.linalg.lstsq(base, record, rcond=None)[0])


def _autocorrelation(record: FloatArray, lags: int) -> FloatArray:
    """Mean autocorrelation of the channels at lags 0 to ``lags``, each lag by its own number of pairs."""
    count = len(record)
    centred = record - record.mean(axis=0)
    power = np.abs(np.fft.rfft(centred, 2 * count, axis=0)) ** 2
    products = np.fft.irfft(power, axis=0)[: lags + 1]
    variance = np.maximum(products[0], 1e-300)
    pairs = count / (count - np.arange(lags + 1))
    return np.asarray((products / variance).mean(axis=1) * pairs)


def _peaks(correlation: FloatArray, samples: int) -> tuple[int, ...]:
    """Lags of the seasons among the peaks of an autocorrelation."""
    lag = np.arange(1, len(correlation) + 1)
    # The fewer cycles a record holds, the more often noise repeats by chance.
    enough = np.maximum(_STRONG, _CHANCE * np.sqrt(lag / samples))
    enough = np.where(lag > samples // _CYCLES, np.maximum(enough, _VERY_STRONG), enough)
    inner = correlation[1:-1]
    peaks = 1 + np.flatnonzero((inner > correlation[:-2]) & (inner >= correlation[2:]))
    strong = [int(p) for p in peaks if p >= 2 and correlation[p] > enough[p] and _repeats(correlation, int(p))]
    if not strong:
        return ()
    highest = max(correlation[p] for p in strong)
    # The first peak that is nearly as high as any is the season; lower ones before it are its harmonics.
    first = next(p for p in strong if correlation[p] > 0.5 * highest)
    found = [first]
    for p in strong:
        if len(found) < MOST_SEASONS and p > 1.5 * found[-1] and _exceeds(correlation, p, found[-1], samples):
            found.append(p)
    return tuple(found)


def _by_multiples(correlation: FloatArray, peak: int) -> int:
    """The peak or a lag next to it, by the correlation at its multiples: noise moves a peak by one."""
    best, height = peak, -np.inf
    for season in (peak, peak - 1, peak + 1):
        multiples = np.arange(season, len(correlation), season) if season > 1 else np.zeros(0, dtype=int)
        # Each multiple counts by the share of the record that its pairs cover, as far as that is known here.
        weights = 1.0 - _KNOWN * multiples / len(correlation)
        found = float(weights @ correlation[multiples] / weights.sum()) if len(multiples) > 1 else -np.inf
        if found > height:
            best, height = season, found
    return best


def _repeats(correlation: FloatArray, peak: int) -> bool:
    """Whether the correlation is much lower on both sides of a peak, and high again at twice its lag where known."""
    height, twice = correlation[peak], correlation[2 * peak - 1 : 2 * peak + 2]
    low = max(correlation[:peak].min(), correlation[peak : 2 * peak + 1].min())
    return bool(height - low > _RISE and (len(twice) < 3 or twice.max() > _AGAIN * height))


def _exceeds(correlation: FloatArray, peak: int, season: int, samples: int) -> bool:
    """Whether a peak is higher than at all shorter lags beyond one season, and than one shorter season later."""
    margin = max(_STRONGER, _BY_CHANCE * (1.0 - correlation[peak]) / np.sqrt(samples))
    before = correlation[season // 2 + 1 : peak - season // 2].max(initial=-1.0)
    after = correlation[peak + season // 2 : peak + season + season // 2 + 1].max(initial=-1.0)
    return bool(correlation[peak] > before + margin and correlation[peak] > after + margin)


def check_record(seasons: Sequence[int], trajectories: Sequence[FloatArray]) -> None:
    """Refuse seasons that a record does not hold twice."""
    longest = max(len(z) for z in trajectories)
    for season in seasons:
        if 2 * season > longest:
            raise InputError(
                "season",
                season,
                f"is {'longer than the record' if season > longest else 'more than half of the record'}, which has "
                f"{longest} samples: two seasons are needed",
                "record more, or pass a shorter season, or none",
            )
