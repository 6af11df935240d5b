"""Layout of queries and points for the search on a GPU, so that large scores of a query are in few blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...shapes import Indices, PerQuery, Queries, Tokens
from ..kernels import pair_scores
from .frames import round_frame
from .margins import UNIT32

# Points whose lengths differ by less than this are ordered by direction instead.
_SAME_LENGTH = 1.02


@dataclass(frozen=True)
class Intervals:
    """Points that each query sees, from ``start`` to ``stop``, and the length of the longest of them."""

    start: Indices
    stop: Indices
    longest: PerQuery


@dataclass(frozen=True)
class Arranged:
    r"""Queries and points in the coordinates of the screen, and the relation of its scores to the deciding ones:

    :math:`\langle p, y\rangle = (\langle q, z\rangle - \text{offset}) / \text{size}`.
    """

    p: Queries
    y: Tokens
    q: Queries
    z: Tokens
    order: Indices | None
    margin: float
    reach: PerQuery | None
    """Largest distance below the best score at which a point may still win; None: the margin times the longest."""
    size: torch.Tensor | None
    """None stands for one."""
    offset: PerQuery | None
    """None stands for zero."""
    tolerance: float
    square_z: torch.Tensor
    """The largest squared length of a z."""
    lengths: torch.Tensor | None
    """Lengths of y where they prune."""
    square_y: torch.Tensor
    """The largest squared length of a y."""
    intervals: Intervals | None = None
    """Points that each query sees, by their place; None stands for all."""


def in_sequence(queries: Queries, points: Tokens, margin: float, tolerance: float, intervals: Intervals) -> Arranged:
    """Queries and points as they are, where each query sees an interval of the points."""
    square = pair_scores(points, points).max()
    return Arranged(
        queries, points, queries, points, None, margin, None, None, None, tolerance, square, None, square, intervals
    )


def arrange(
    queries: Queries, points: Tokens, margin: float, tolerance: float, prune: bool, square: torch.Tensor | None = None
) -> Arranged:
    """Queries and points as they are, or with ``prune`` in a frame in which the cloud is round, the longest first.

    ``square`` is the squared length that tolerance and margin refer to; that of the longest point when left out.
    """
    own_square = pair_scores(points, points).max()
    square = own_square if square is None else square
    if not prune:
        order = torch.atan2(points[:, 1], points[:, 0]).argsort() if points.shape[1] == 2 else None
        z = points if order is None else points[order]
        return Arranged(queries, z, queries, z, order, margin, None, None, None, tolerance, square, None, own_square)
    zero = ~queries.any(dim=1)
    if bool(zero.any()):  # any direction serves, since their result is not used
        queries = torch.where(zero[:, None], torch.ones_like(queries), queries)
    # The frame measures the margin by its own longest point.
    stretched = margin if square is own_square else margin * float((square / own_square).sqrt()) * (1 + UNIT32)
    frame = round_frame(queries.double(), points.double(), stretched, torch.float64)
    order = _longest_first_then_by_direction(frame.lengths, frame.points)
    lengths = frame.lengths[order]
    return Arranged(
        p=frame.queries,
        y=frame.points[order],
        q=queries,
        z=points[frame.order[order]],
        order=frame.order[order],
        reach=frame.reach,
        size=frame.sizes,
        offset=queries.double() @ frame.centre,
        margin=margin,
        tolerance=tolerance,
        square_z=square,
        lengths=lengths,
        square_y=lengths.max().square(),
    )


def _longest_first_then_by_direction(lengths: torch.Tensor, points: Tokens) -> Indices:
    """Points of similar length together, ordered by an angle, so that large scores of a query are in few blocks."""
    ring = torch.log(lengths.clamp_min(1e-300)) * (1 / torch.tensor(_SAME_LENGTH).log().item())
    angle = torch.atan2(points[:, 1], points[:, 0]) if points.shape[1] > 1 else torch.sign(points[:, 0])
    return (angle - 8.0 * ring.floor()).argsort()
