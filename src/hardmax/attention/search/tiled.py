"""Every pair, by matrix products of bounded size."""

from __future__ import annotations

import torch

from ...shapes import Indices, Queries, Tokens
from ..choice import length

_ENTRIES = 1 << 24


def tiled_pairs(queries: Queries, points: Tokens, tolerance: float) -> tuple[Indices, Indices]:
    """Candidate pairs: every point whose score may be within the tolerance of the best for its query."""
    # A product and the deciding score each err by at most about d units of rounding of |q| max |z|.
    margin = 1.001 * tolerance + 4 * (queries.shape[1] + 4) * 2.0**-53
    reach = margin * length(queries) * length(points).max() + 1e-300
    nonzero = (queries != 0).any(dim=1).nonzero()[:, 0]
    rows, columns = [], []
    for block in nonzero.split(max(1, _ENTRIES // len(points))):
        scores = queries[block] @ points.T
        near = scores >= (scores.amax(dim=1) - reach[block])[:, None]
        row, column = near.nonzero(as_tuple=True)
        rows.append(block[row])
        columns.append(column)
    if not rows:
        return nonzero, nonzero
    return torch.cat(rows), torch.cat(columns)
