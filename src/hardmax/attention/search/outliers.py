"""Clouds whose shape would spoil a screen in half precision: few points much longer than the rest, or an offset.

The screen rounds relative to the longest point. One point 1e5 times as long as the others leaves them one or two bits,
and every block would have to be searched again in float64. Such points are searched separately and the two results
compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...shapes import Indices, PerQuery, Tokens
from ..choice import Ballot
from .decision import Found

# At most one point in so many is an outlier, so that the search among them costs little.
_RARE = 1000
# Half precision has 11 bits: with a ratio of 32 the other points keep 6 of them.
_MUCH_FARTHER = 32.0
# Offsets up to 30 spreads cost nothing measurable; with 1e3 the plain screen takes 6 times as long (H200, d = 16).
_FAR_FROM_ZERO = 64.0


@dataclass(frozen=True)
class Cloud:
    """Properties of a cloud of points that affect a screen."""

    may_have_outliers: bool
    is_far_from_zero: bool
    """Whether the points, not all of them nearly equal, lie close together compared with the length of their mean."""


def cloud_of(points: Tokens) -> Cloud:
    """The shape of a cloud, at the cost of one pass over the points and one wait for the device.

    With at most one outlier in 1000, and all others 32 times nearer to the mean than the farthest point, the root mean
    square distance is at most sqrt(1 / 1000 + 1 / 32**2) = 1 / 22.5 of the farthest: a cheap test that none are there.
    """
    mean = points.mean(dim=0)
    squares = (points - mean).square().sum(dim=1)
    spread = squares.mean().sqrt()
    # With a smaller spread than that, centred points would have too few digits left to be worth it.
    far = (spread > 2.0**-40 * mean.norm()) & (mean.norm() > _FAR_FROM_ZERO * spread)
    factor = (1 / _RARE + 1 / _MUCH_FARTHER**2) ** -0.5
    flags = torch.stack([squares.max().sqrt() > 0.99 * factor * spread, far]).tolist()
    return Cloud(len(points) >= _RARE and flags[0], flags[1])


def outliers_of(points: Tokens) -> torch.Tensor | None:
    """True for the few points that lie much farther from the mean than all others; None where there are none."""
    most = len(points) // _RARE
    distances = (points - points.mean(dim=0)).norm(dim=1)
    farthest = distances.topk(most + 1).values
    limit = _MUCH_FARTHER * farthest[-1]
    return distances > limit if bool(farthest[0] > limit) else None


def decide_between(ballot: Ballot, one: Found, other: Found, slack: PerQuery) -> None:
    """Record the better of two results per query; where both are within the slack, decide among all members.

    Both results are for all queries, on two parts of the points.
    """
    gap = _by_query(one, one.best) - _by_query(other, other.best)
    for found, wins in ((one, gap > slack), (other, gap < -slack)):
        rows, listed = wins[found.rows], wins[found.tied]
        ballot.record(found.rows[rows], found.first[rows], found.best[rows], found.tied[listed], found.members[listed])
    close = gap.abs() <= slack
    candidates = [_pairs(found, close) for found in (one, other)]
    ballot.decide(*(torch.cat(side) for side in zip(*candidates, strict=True)))


def _by_query(found: Found, values: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(values).index_copy(0, found.rows, values)


def _pairs(found: Found, chosen: torch.Tensor) -> tuple[Indices, Indices]:
    """Pairs of a chosen query and a point that it may have chosen."""
    listed = chosen[found.tied]
    alone = chosen.index_fill(0, found.tied, False)[found.rows]
    return (
        torch.cat([found.rows[alone], found.tied[listed]]),
        torch.cat([found.first[alone], found.members[listed]]),
    )
