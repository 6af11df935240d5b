"""The search on a GPU: screened on the tensor cores, decided in float64 (:mod:`hardmax.attention.kernels.search`)."""

from __future__ import annotations

from dataclasses import fields

import torch

from ...errors import InputError
from ...shapes import Indices, Queries, Tokens
from ..choice import Ballot, Choice, length, listed_choice, require_fewer_ties, zero_rows
from ..kernels import pair_scores
from .arrangement import Arranged, Intervals, arrange, in_sequence
from .decision import Found, Screen
from .intervals import largest_in
from .margins import tie_margin
from .maxima import NARROWEST, WIDEST, Tiles
from .outliers import Cloud, cloud_of, decide_between, outliers_of

# Largest scores of blocks held at a time, in numbers; less where the memory is short.
_MAXIMA_AT_ONCE = 1 << 30
# Blocks evaluated again per row before a finer screen is used.
_MOST_VISITS, _ANY = 32, 2**31 - 1
# For fewer pairs, making the cloud round and sorting it takes longer than scoring all of them.
_PRUNING_PAYS_FROM = 1 << 36


def takes(dimension: int) -> bool:
    """Whether the kernels support points of this many coordinates."""
    return dimension <= WIDEST


def decide_by_kernels(ballot: Ballot, queries: Queries, points: Tokens, margin: float, tolerance: float) -> None:
    """Decide all queries that are not zero."""
    cloud = cloud_of(points)
    outliers = outliers_of(points) if cloud.may_have_outliers else None
    if outliers is None:
        prune = _pruning_pays(queries, points, cloud)
        found = best_points(queries, points, margin, tolerance, prune=prune)
        ballot.record(found.rows, found.first, found.best, found.tied, found.members)
        return
    square = pair_scores(points, points).max()
    few, most = outliers.nonzero()[:, 0], (~outliers).nonzero()[:, 0]
    among_few = best_points(queries, points[few], margin, tolerance, prune=False, square=square)
    rest = points[most]
    prune = _pruning_pays(queries, rest, cloud_of(rest))
    among_most = best_points(queries, rest, margin, tolerance, prune=prune, square=square)
    slack = tolerance * pair_scores(queries, queries).sqrt() * square.sqrt()
    decide_between(ballot, among_most.of(most), among_few.of(few), slack)


def _pruning_pays(queries: Queries, points: Tokens, cloud: Cloud) -> bool:
    return len(queries) * len(points) >= _PRUNING_PAYS_FROM or cloud.is_far_from_zero


def best_points(
    queries: Queries,
    points: Tokens,
    margin: float,
    tolerance: float,
    *,
    prune: bool = True,
    square: torch.Tensor | None = None,
    tiles: Tiles | None = None,
    most_visits: int = _MOST_VISITS,
    maxima_at_once: int = _MAXIMA_AT_ONCE,
) -> Found:
    """Points within the tolerance of the largest score; for a zero query any point.

    ``prune`` visits points by decreasing length, after making the cloud round, and stops where none can win;
    ``square`` is the squared length that the tolerance refers to, that of the longest point when left out.
    """
    arranged = arrange(queries, points, margin, tolerance, prune, square)
    return _best_of(arranged, tiles, most_visits, maxima_at_once)


def best_points_in(
    queries: Queries,
    points: Tokens,
    margin: float,
    tolerance: float,
    intervals: Intervals,
    *,
    tiles: Tiles | None = None,
    most_visits: int = _MOST_VISITS,
    maxima_at_once: int = _MAXIMA_AT_ONCE,
) -> Found:
    """Points of the interval of each query within the tolerance of its largest score; for a zero query any of them.

    Rows whose intervals are near each other should be neighbours: blocks that no row of a tile sees are left out.
    """
    arranged = in_sequence(queries, points, margin, tolerance, intervals)
    return _best_of(arranged, tiles, most_visits, maxima_at_once)


def choice_by_kernels(queries: Queries, points: Tokens, start: Indices, stop: Indices, tolerance: float) -> Choice:
    """The choice of each query among the points from ``start`` to ``stop``; not all points are zero."""
    middle = start + stop
    order = torch.argsort(middle, stable=True) if bool((middle[1:] < middle[:-1]).any()) else None
    asked, low, high = (queries, start, stop) if order is None else (queries[order], start[order], stop[order])
    seen = Intervals(low, high, largest_in(length(points), low, high))
    found = best_points_in(asked, points, tie_margin(tolerance, points.shape[1]), tolerance, seen)
    rows, tied = (found.rows, found.tied) if order is None else (order[found.rows], order[found.tied])
    first = torch.empty_like(start).index_copy_(0, rows, found.first)
    best = torch.empty_like(queries[:, 0]).index_copy_(0, rows, found.best)
    everyone = zero_rows(queries)
    first, best = torch.where(everyone, start, first), best.masked_fill(everyone, 0.0)
    require_fewer_ties(len(tied))
    return listed_choice(first, best, everyone, tied, found.members, len(points))


def _best_of(arranged: Arranged, tiles: Tiles | None, most_visits: int, maxima_at_once: int) -> Found:
    in_two_fit = 3 * arranged.z.shape[1]
    pieces = 2 if in_two_fit <= NARROWEST else 1
    parts: list[Found] = []
    finer = pieces == 1 and in_two_fit <= WIDEST
    screen = Screen(arranged, pieces, tiles, most_visits if finer else _ANY)
    left = _portions(screen, None, parts, maxima_at_once)
    if len(left):
        _portions(Screen(arranged, 2 if finer else pieces, tiles, _ANY), left, parts, maxima_at_once)
    if len(parts) == 1:
        return parts[0]
    return Found(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Found)))


def _portions(screen: Screen, rows: Indices | None, parts: list[Found], maxima_at_once: int) -> Indices:
    """Decide the rows (None: all), as many at a time as the memory allows; return those that need a finer screen."""
    left: list[Indices] = []
    count, start = screen.asked if rows is None else len(rows), 0
    while start < count:
        if start and rows is None:
            # The rows so far determine for how many of the blocks largest scores are stored.
            screen.hold_what_was_needed()
        part = slice(start, min(start + screen.rows_that_fit(maxima_at_once), count))
        some: Indices | slice = part if rows is None else rows[part]
        try:
            found, unfinished = screen.decide(some)
        except torch.OutOfMemoryError:
            maxima_at_once = _less(maxima_at_once, screen)
            continue
        parts.append(found)
        left.append(unfinished)
        start = part.stop
    return left[0] if len(left) == 1 else torch.cat(left)


def _less(maxima_at_once: int, screen: Screen) -> int:
    if maxima_at_once <= screen.smallest:
        raise InputError(
            "tokens",
            f"{screen.count} points",
            "do not fit into the memory of the device",
            f"free {screen.smallest * 4 / 2**30:.2g} GiB on it, use fewer tokens, or move them to the CPU",
        )
    torch.cuda.empty_cache()
    return max(screen.smallest, min(maxima_at_once, screen.asked * screen.blocks) // 4)
