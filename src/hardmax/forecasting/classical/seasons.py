"""Seasons of a record, in samples: found from its autocorrelation, or given and checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
_TIMES, _FAR = 4, 40
"""Multiples of a season at which the autocorrelation is averaged, and the lag up to which there are more of them: an
alternation that noise soon forgets is high at the first multiples only."""
_BY_CHANCE = 2.5
"""Mean autocorrelation at the multiples of a season, at least, in standard errors of independent samples."""
_LASTING = 0.4
"""The same, relative to the autocorrelation at one season: an autoregression with a factor of -0.8 reaches 0.15."""
_SHARE = 0.15
"""The same, at least: share of the variance that the season explains."""
_SECOND = 5.5
"""As ``_BY_CHANCE``, for a second season: the first of hundreds of lags that noise beats would be taken as one."""
_SECOND_USUAL = 0.5
"""Factor of the lowest autocorrelation at a second season that is a usual one: few lags are candidates."""
_CHANNELS = 0.64
"""Growth of the square of all bounds with the logarithm of the number of channels: the highest of so many chance peaks
is twice as high with 100 channels. Three random walks have a season in one of 50 records."""
_TOP = 1.25
"""Relative distance from the first high peak at which a higher one is the top of the same cycle: a sine is above half
of its height from 5/6 of a cycle on, and noise makes peaks there."""
_WIDE = 0.04
"""Relative change of a season by which its multiples may fit better than the top of its peak."""
_NEAR, _NOISE = 0.3, 3.0
"""Cycles over the record by which a usual season may differ from the one found, and by which its autocorrelation may be
lower, times one minus the autocorrelation, over the square root of the number of samples."""
_APART = 1.5
"""Ratio of two seasons of a channel, at least: what is left of one that changes slowly is another one next to it."""
_NEARLY = 0.75
"""Autocorrelation at a season, relative to that at a multiple with less than three cycles, from which on it is not the
multiple."""
_PARTS, _SHORTEST_PART = 5, 4
"""Number of short seasons in a long one, and samples in a short one, at least: one of a few parts, such as half a year,
or of few samples, is a part of the pattern of the long one."""
_SCALE = 0.3
"""Window in which the mean and the size of changes are measured, as a share of the record: changes of a growing level
grow, and the largest would decide alone."""
_CLIP = 4.0
"""Largest change, in units of the mean change around it: one outlier would hide a season."""
_ROUNDING = 1e-9
"""Size relative to that of the channel below which what is left is rounding: that of a straight line has a period."""
_MOST_LAGS = 6000
"""Largest lag at which the autocorrelation is used: four of the longest season."""
_CALENDAR = (4, 7, 12, 24, 48, 52, 96, 168, 336, 365, 672)
"""Usual seasons: quarters, days of a week, months, hours, half hours and quarter hours of a day, weeks of a year,
hours, half hours and quarter hours of a week, days of a year."""
_SHORTEST_OF_TWO = 12
"""Shortest season of the calendar that two cycles are enough for: fewer pairs of samples agree by chance."""
_CALENDAR_STRONG = 0.4
"""Autocorrelation at a usual season, at least, of the record and of its differences: of two cycles of 52 independent
samples one in 500 reaches it by chance in one of them."""
_STRONGER = 0.05
"""Autocorrelation by which a usual season of two cycles must exceed those before it: a multiple of another does not."""
MOST_SEASONS = 2
"""Seasons at once: a day and a week in hourly data."""


def find_seasons(trajectories: Sequence[FloatArray], outputs: int) -> tuple[int, ...]:
    """Seasons in samples, shortest first, at most two; empty where the record repeats nothing.

    Channels of the longest record are looked at one by one. A season is a peak of the autocorrelation of a channel, or
    of its differences, that is high for the number of cycles in the record and at its multiples as well. A second
    season is one of what is left without the first, or, where it divides the first, of its pattern. Usual seasons of
    the calendar, such as 12 months or 52 weeks, are also found in a record of two to three cycles.

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
    # One of many channels has a peak by chance more often.
    strict = float(np.sqrt(1.0 + _CHANNELS * np.log(outputs)))
    strengths: dict[int, float] = {}
    for channel in record.T:
        for season, strength in _seasons_of(channel, longest, strict).items():
            same = [o for o in strengths if _is_known(season, o, len(record)) or _is_unresolved(season, o, len(record))]
            clearest = max([season, *same], key=lambda p: strengths.get(p, strength))
            strengths[clearest] = strength + sum(strengths.pop(other) for other in same)
    found = sorted(sorted(strengths, key=lambda season: -strengths[season])[:MOST_SEASONS])
    is_part = len(found) > 1 and found[1] % found[0] == 0 and found[1] < _PARTS * found[0]
    return tuple(found[1:] if is_part else found)


def _seasons_of(channel: FloatArray, longest: int, strict: float) -> dict[int, float]:
    """Seasons of one channel, with the autocorrelation at each."""
    # Differences show short seasons beside a slow drift, the record itself shows long ones.
    both = [_without_drift(channel, differences=differences) for differences in (True, False)]
    found = _clearest(both, {}, longest, strict)
    if not found:
        return {}
    (first,) = found
    left = [_without_season(some, first) for some in both]
    found |= _clearest(left, found, longest, strict)
    short, long = min(found), max(found)
    if short < long:
        # What is left without the longer one must have the shorter one, unless it is a part of its pattern.
        rest = [_autocorrelation(_without_season(some, long), _lags(len(channel), longest)) for some in both]
        if long % short == 0 or not any(_lasts(c, short, len(channel), strict * _BY_CHANCE) for c in rest):
            found.pop(short)
    if len(found) == 1 and (part := _part_of(both[1], long)) is not None:
        found[part] = found[long]
    return found


def _clearest(both: Sequence[FloatArray], known: Iterable[int], longest: int, strict: float) -> dict[int, float]:
    """The season that differences or record show most clearly, with its autocorrelation, beside those known."""
    samples = len(both[1])
    correlations = [_autocorrelation(some, _lags(samples, longest)) for some in both]
    seen = [(c, _season(c, longest, samples, strict, tuple(known))) for c in correlations]
    heights = {
        p: float(c[p])
        for c, p in seen
        if p is not None and not any(_is_known(p, o, samples) or max(p, o) < _APART * min(p, o) for o in known)
    }
    usual = None if known else _usual_season(both)
    if usual is not None:
        heights[usual] = max(heights.get(usual, 0.0), min(float(c[usual]) for c in correlations))
    for p in sorted(heights, reverse=True):
        shorter = [o for o in heights if p > _APART * o and _is_known(p, o, samples)]
        if any(heights[o] > _NEARLY * heights[p] for o in shorter):
            heights.pop(p)
    best = max(heights, key=lambda season: heights[season], default=None)
    return {} if best is None else {best: heights[best]}


def _lags(samples: int, longest: int) -> int:
    """Largest lag at which the autocorrelation of a record is used."""
    return max(longest + 1, min(int(_KNOWN * samples), _MOST_LAGS))


def _sums(record: FloatArray, season: int) -> tuple[FloatArray, FloatArray]:
    """Sum of the samples at each phase of a season, and their number."""
    phase = np.arange(len(record)) % season
    return np.bincount(phase, record, season).astype(np.float64), np.bincount(phase, minlength=season).astype(
        np.float64
    )


def _without_season(record: FloatArray, season: int) -> FloatArray:
    """Record without a season: each sample minus the mean of the other cycles at its phase."""
    total, count = _sums(record, season)
    phase = np.arange(len(record)) % season
    return _unless_rounding(record - (total[phase] - record) / np.maximum(count[phase] - 1, 1), record)


def _unless_rounding(left: FloatArray, record: FloatArray) -> FloatArray:
    """What is left of a record, or zeros where it is rounding."""
    return np.asarray(left if np.ptp(left) > _ROUNDING * np.ptp(record) else np.zeros_like(left))


def _part_of(record: FloatArray, season: int) -> int | None:
    """The shorter season that divides a season and explains much of its pattern; None without one."""
    total, count = _sums(record, season)
    pattern = total / count - (total / count).mean()
    power = max(float(pattern @ pattern), 1e-300)
    best, most = None, _STRONG
    for part in range(_SHORTEST_PART, season // _PARTS + 1):
        if season % part == 0:
            shape = pattern.reshape(-1, part).mean(axis=0)
            share = float(shape @ shape) * (season // part) / power
            # A random pattern has a share too, as in an analysis of variance.
            own = 1.0 - (1.0 - share) * (season - 1) / (season - part)
            if own > max(most + _ROUNDING, _BY_CHANCE * np.sqrt(2.0 * (part - 1)) / season):
                best, most = part, own
    return best


def _usual_season(both: Sequence[FloatArray]) -> int | None:
    """The season of the calendar that differences and record of two to three cycles repeat most clearly, or None."""
    best, height = None, _CALENDAR_STRONG
    for season in _CALENDAR:
        samples = len(both[1])
        if season < _SHORTEST_OF_TWO or not 2 * season <= samples < _CYCLES * season:
            continue
        each = [_autocorrelation(some, min(season + 2, samples - 2)) for some in both]
        around = slice(max(1, season - 2), season + 3)
        found = min(float(some[season]) for some in each)
        before = max(float(some[season // 3 : season - season // 4].max()) for some in each)
        if found > max(height, before + _STRONGER) and all(some[season] >= some[around].max() for some in each):
            best, height = season, found
    return best


def _is_known(season: int, other: int, samples: int) -> bool:
    """Whether a season is another one, or a multiple of it that a record of ``samples`` does not hold three times."""
    times = max(1, round(season / other)) if season > samples // _CYCLES else 1
    return abs(season - times * other) <= _ALIKE * other


def _is_unresolved(season: int, other: int, samples: int) -> bool:
    """Whether two seasons differ by less than one cycle over the record, so that it does not tell them apart."""
    return abs(samples / season - samples / other) < 1.0


def _without_drift(channel: FloatArray, *, differences: bool) -> FloatArray:
    """Channel without its straight line, or its differences without their drift, all of about the same size."""
    if differences:
        changes = np.diff(channel)
        width = max(2, int(_SCALE * len(changes)))
        changes = _unless_rounding(changes - _running_mean(changes, width), channel)
        scale = _running_mean(np.abs(changes), width)
        scale = np.maximum(scale, max(1e-3 * float(scale.max(initial=0.0)), 1e-300))
        return np.asarray(np.clip(changes / scale, -_CLIP, _CLIP))
    t = np.linspace(-1.0, 1.0, len(channel))
    base = np.stack([np.ones_like(t), t], axis=1)
    return _unless_rounding(channel - base @ np.linalg.lstsq(base, channel, rcond=None)[0], channel)


def _running_mean(values: FloatArray, width: int) -> FloatArray:
    """Mean of the values in a window around each one, shorter at the ends."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    first = np.arange(len(values)) - width // 2
    begin, end = np.maximum(first, 0), np.minimum(first + width, len(values))
    return np.asarray((total[end] - total[begin]) / (end - begin))


def _autocorrelation(record: FloatArray, lags: int) -> FloatArray:
    """Autocorrelation at lags 0 to ``lags``, each lag by its own number of pairs."""
    count = len(record)
    centred = record - record.mean()
    power = np.abs(np.fft.rfft(centred, 1 << (2 * count - 1).bit_length())) ** 2
    products = np.fft.irfft(power)[: lags + 1]
    return np.asarray(products / max(products[0], 1e-300) * count / (count - np.arange(lags + 1)))


def _season(correlation: FloatArray, longest: int, samples: int, strict: float, known: tuple[int, ...]) -> int | None:
    """Lag of the season among the peaks of an autocorrelation up to a longest lag; None without one."""
    lag = np.arange(1, longest + 3)
    chance = strict * _BY_CHANCE
    # The fewer cycles a record holds, the more often noise repeats by chance.
    enough = strict * np.maximum(_STRONG, _CHANCE * np.sqrt(lag / samples))
    if known:
        # Means over few cycles leave fewer independent samples.
        chance = strict * _SECOND * np.sqrt(samples / (samples - sum(known)))
        # What is left may be nearly independent, which a long season shows: Bartlett's formula.
        lower = chance * np.sqrt((1.0 + 2.0 * np.sum(correlation[1 : samples // 10] ** 2)) / (samples - lag))
        lower[[season - 1 for season in _CALENDAR if season <= len(lag)]] *= _SECOND_USUAL
        enough = np.minimum(enough, np.maximum(_SHARE, lower))
    enough = np.where(lag > samples // _CYCLES, np.maximum(enough, _VERY_STRONG), enough)
    inner = correlation[1 : longest + 1]
    peaks = 1 + np.flatnonzero((inner > correlation[:longest]) & (inner >= correlation[2 : longest + 2]))
    strong = [int(p) for p in peaks if p >= 2 and correlation[p] > enough[p] and _repeats(correlation, int(p))]
    strong = [_by_multiples(correlation, p, 1, longest) for p in strong]
    strong = [p for p in strong if _lasts(correlation, p, samples, chance)]
    if not strong:
        return None
    highest = max(correlation[p] for p in strong)
    # The first peak that is nearly as high as any is the season; lower ones before it are its harmonics.
    first = next(p for p in strong if correlation[p] > 0.5 * highest)
    # Noise makes peaks on the slope before the top.
    first = max((p for p in strong if first <= p <= _TOP * first), key=lambda p: correlation[p])
    first = _by_multiples(correlation, first, max(1, int(_WIDE * first)), longest)
    # A usual season next to it, that is as high but for noise, is more likely.
    near = [usual for usual in _CALENDAR if usual <= longest and abs(samples / usual - samples / first) < _NEAR]
    times = (len(correlation) - 1) // max([first, *near])
    heights = {season: _at_multiples(correlation, season, times) for season in [first, *near]}
    least = heights[first] - _NOISE * (1.0 - correlation[first]) / np.sqrt(samples)
    return max((usual for usual in near if heights[usual] >= least), key=lambda usual: heights[usual], default=first)


def _lasts(correlation: FloatArray, season: int, samples: int, chance: float) -> bool:
    """Whether the correlation at the multiples of a season is high for their number of pairs, and for that at one."""
    multiples = np.arange(season, min(len(correlation), max(_TIMES * season, _FAR) + 1), season)
    pairs = samples - multiples
    # A season has no mean over one cycle; what has one is a slow change. An even cycle has half of each end.
    total = np.cumsum(np.pad(correlation, (season // 2 + 1, season // 2), mode="reflect"))
    begin, end = multiples, multiples + 1 - season % 2
    cycle = (total[begin + season] - total[begin] + total[end + season] - total[end]) / (2 * season)
    seasonal = correlation[multiples] - cycle
    mean = pairs @ seasonal / pairs.sum()
    return bool(mean > max(chance / np.sqrt(pairs.sum()), _LASTING * seasonal[0], _SHARE))


def _by_multiples(correlation: FloatArray, peak: int, reach: int, longest: int) -> int:
    """The peak or a lag next to it, by the correlation at its multiples: noise moves a peak."""
    last = min(peak + reach, longest)
    around = (peak, *range(max(2, peak - reach), peak), *range(peak + 1, last + 1))
    times = (len(correlation) - 1) // max(peak, last)
    return int(max(around, key=lambda season: _at_multiples(correlation, season, times)))


def _at_multiples(correlation: FloatArray, season: int, times: int) -> float:
    """Mean correlation at some multiples of a season, each by the share of the record that its pairs cover."""
    multiples = season * np.arange(1, times + 1)
    weights = 1.0 - _KNOWN * multiples / len(correlation)
    return float(weights @ correlation[multiples] / weights.sum())


def _repeats(correlation: FloatArray, peak: int) -> bool:
    """Whether the correlation is much lower on both sides of a peak, and high again at twice its lag where known."""
    height, twice = correlation[peak], correlation[2 * peak - 1 : 2 * peak + 2]
    low = max(correlation[:peak].min(), correlation[peak : 2 * peak + 1].min())
    return bool(height - low > _RISE and (len(twice) < 3 or twice.max() > _AGAIN * height))


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
