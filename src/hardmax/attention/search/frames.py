"""Coordinates in which blocks of scores are screened: queries of length one, points scaled or made round."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...shapes import Indices, PerQuery, PerToken, Queries, Square, Tokens, Values
from ..choice import length, zero_rows
from .margins import UNIT32, UNIT64, product_error

# Points from which the shape of the cloud is guessed.
_SAMPLE = 8192


@dataclass(frozen=True)
class Frame:
    """Queries and points in the coordinates of the screen. Scores there order points as the true scores do."""

    rows: Indices
    """The query of each row; zero queries are left out."""
    queries: Queries
    """One row each, of length one."""
    points: Tokens
    order: Indices
    """The original index of each point."""
    lengths: PerToken
    """Lengths of the points, decreasing where the frame is round."""
    reach: PerQuery
    """Distance below the largest score of its row, in this frame, at which a point may still win."""
    error: float
    """Bound on the error of a product of a query and a point, in the precision of this frame."""
    sizes: PerQuery
    """Length of each query, by which the scores of its row were divided."""
    centre: Values
    """The place of the points' origin: scores here lack those of the centre."""


def plain_frame(queries: Queries, points: Tokens, margin: float, dtype: torch.dtype) -> Frame:
    """The points as they are, scaled by a power of two."""
    rows, queries = _nonzero(queries)
    lengths = length(points)
    longest = float(lengths.max())
    if dtype == torch.float32:
        scale = 2.0 ** -float(torch.frexp(torch.tensor(longest)).exponent)
        points, lengths, longest = (points * scale).to(dtype), lengths * scale, longest * scale
    sizes = length(queries)
    units = (queries / sizes[:, None]).to(dtype)
    reach = torch.full_like(units[:, 0], margin * longest * (1 + UNIT32))
    order = torch.arange(points.shape[0], device=points.device)
    error = _error(points.shape[1], dtype) * longest
    return Frame(rows, units, points, order, lengths, reach, error, sizes, torch.zeros_like(points[0]))


def round_frame(queries: Queries, points: Tokens, margin: float, dtype: torch.dtype) -> Frame:
    r"""The cloud made round and centred, the longest points first.

    Scores are :math:`\langle q, c\rangle + \langle p, y\rangle` with :math:`y = W (z - c)` and
    :math:`p = W^{-T} q`; the first term is the same for all points.
    """
    rows, queries = _nonzero(queries)
    d = points.shape[1]
    longest = float(length(points).max())
    centre, axes, deviations = _shape(points, longest)
    y = (points - centre) @ (axes / deviations)
    p = queries @ (axes * deviations)
    lengths, order = torch.sort(length(y), descending=True)
    size, farthest = length(p), float(lengths[0])
    stretch = length(queries) / size
    # y and p each err by (d + 4) roundings of the sizes they are made of, at most sqrt(d) |W| 2 R and
    # sqrt(d) |1 / W| |q|.
    sizes = 2 * longest / float(deviations.min()) + float(deviations.max()) * stretch * farthest
    reach = (margin * longest * stretch + 2 * (d + 4) * d**0.5 * UNIT64 * sizes) * (1 + UNIT32)
    units = (p / size[:, None]).to(dtype)
    error = _error(d, dtype) * farthest
    return Frame(rows, units, y[order].to(dtype), order, lengths, reach.to(dtype), error, size, centre)


def _nonzero(queries: Queries) -> tuple[Indices, torch.Tensor]:
    rows = (~zero_rows(queries)).nonzero()[:, 0]
    return rows, queries if len(rows) == len(queries) else queries[rows]


def _error(d: int, dtype: torch.dtype) -> float:
    # Dividing by the length of a query costs (d + 8) roundings more.
    return product_error(d, UNIT32 if dtype == torch.float32 else UNIT64) + (d + 8) * UNIT64


def _shape(points: Tokens, longest: float) -> tuple[Values, Square, Values]:
    """Centre, axes and deviations of the cloud; flat directions are given some thickness, to stay invertible."""
    sample = points[:: max(1, points.shape[0] // _SAMPLE)]
    centre = sample.mean(dim=0)
    offsets = sample - centre
    variances, axes = torch.linalg.eigh(offsets.T @ offsets / len(sample))
    thinnest = max(1e-3 * float(variances[-1].clamp(min=0).sqrt()), 1e-7 * longest)
    return centre, axes, variances.clamp(min=thinnest**2).sqrt()
