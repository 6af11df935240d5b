r"""The slow oracle: the hardmax layer written line by line from the paper, in plain loops.

It works on any numbers that add, multiply and compare: with :class:`fractions.Fraction` it is exact. Nothing in the
library calls it; the tests hold every fast path against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..shapes import Queries, Tokens
from .choice import Choice, choice_from_pairs

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
    """One layer of the map: every token moves towards the mean of those it listens to."""
    moved = []
    for i, z in enumerate(Z):
        chosen = attended(A, Z, i)
        target = [sum(Z[j][k] for j in chosen) / len(chosen) for k in range(len(z))]
        moved.append([(z[k] + alpha * target[k]) / (1 + alpha) for k in range(len(z))])
    return moved


def dense_choice(queries: Queries, points: Tokens, tolerance: float) -> Choice:
    """Every pair scored, one query at a time: the dense oracle for the search methods."""
    rows, columns = [], []
    everybody = torch.arange(points.shape[0])
    for i in range(queries.shape[0]):
        rows.append(torch.full_like(everybody, i))
        columns.append(everybody)
    return choice_from_pairs(queries, points, torch.cat(rows), torch.cat(columns), tolerance)
