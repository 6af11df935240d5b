r"""The slow oracle: the hardmax layer written line by line from the paper, in plain loops.

It works on any numbers that add, multiply and compare: with :class:`fractions.Fraction` it is exact. Nothing
in the library calls it; the tests compare every fast path with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..shapes import Queries, Tokens
from .choice import Choice, slack

Number = Any
Point = Sequence[Number]


def scores(A: Sequence[Point], Z: Sequence[Point], i: int) -> list[Number]:
    r""":math:`\langle A z_i, z_j\rangle` for every j."""
    d = len(Z[i])
    query = [sum(A[row][k] * Z[i][k] for k in range(d)) for row in range(d)]
    return [sum(query[k] * z[k] for k in range(d)) for z in Z]


def attended(A: Sequence[Point], Z: Sequence[Point], i: int) -> list[int]:
    r""":math:`C_i(Z)`, ties by equality of numbers."""
    values = scores(A, Z, i)
    best = max(values)
    return [j for j, value in enumerate(values) if value == best]


def hardmax_step(A: Sequence[Point], Z: Sequence[Point], alpha: Number) -> list[list[Number]]:
    """Tokens after one layer of the map, shape (tokens, d): each moves towards the mean of those it attends to."""
    moved = []
    for i, z in enumerate(Z):
        chosen = attended(A, Z, i)
        target = [sum(Z[j][k] for j in chosen) / len(chosen) for k in range(len(z))]
        moved.append([(z[k] + alpha * target[k]) / (1 + alpha) for k in range(len(z))])
    return moved


def dense_choice(queries: Queries, points: Tokens, tolerance: float) -> Choice:
    """Choice from the scores of all pairs, in the order of the coordinates: the dense oracle for the search methods."""
    reach = slack(queries, points, tolerance)
    everyone = (queries == 0).all(dim=1)
    best = torch.empty_like(queries[:, 0])
    rows, columns = [], []
    coordinates = points.T.contiguous()
    for i in range(queries.shape[0]):
        values = queries[i, 0] * coordinates[0]
        for k in range(1, points.shape[1]):
            values += queries[i, k] * coordinates[k]
        best[i] = values.max()
        chosen = (values >= best[i] - reach[i]).nonzero()[:, 0]
        rows.append(torch.full_like(chosen, i))
        columns.append(chosen)
    chosen_by, chosen = torch.cat(rows), torch.cat(columns)
    sizes = torch.bincount(chosen_by)
    first = chosen[sizes.cumsum(0) - sizes]
    several = (sizes > 1) & ~everyone
    tied = several.nonzero()[:, 0]
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes[tied].cumsum(0)])
    return Choice(first, best, everyone, tied, offsets, chosen[several[chosen_by]])
