"""The one door to the search: which method runs is a matter of speed, never of the answer."""

from __future__ import annotations

from ...shapes import Indices, Queries, Tokens
from ..choice import Choice, choice_from_pairs
from .tiled import tiled_pairs


def attended(
    queries: Queries, points: Tokens, *, tolerance: float, method: str = "auto", hint: Indices | None = None
) -> Choice:
    r"""The sets :math:`C_i`: for each query, the points whose score is within the tolerance of the best."""
    rows, columns = tiled_pairs(queries, points, tolerance)
    return choice_from_pairs(queries, points, rows, columns, tolerance)
