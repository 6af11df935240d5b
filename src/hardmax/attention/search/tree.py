r"""Points of one length: the largest score is the nearest neighbour, found by a k-d tree.

On a sphere of radius R, :math:`|R\hat q - z|^2 = R^2 + |z|^2 - 2 R \langle \hat q, z\rangle` for the direction
:math:`\hat q` of a query, so a larger score is a smaller distance, and scores within :math:`\mu R` of the best are
squared distances within :math:`2 \mu R^2` of the least, plus the difference of the squared lengths.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ...threads import allowed_threads
from ..choice import AbstractBallot
from .margins import UNIT64

Floats = NDArray[np.float64]

# Squared lengths may differ by this fraction; with a larger spread too many points are as near as the nearest.
_SPREAD = 1e-9
# Points whose lengths are compared first: enough to refuse most clouds that are not on a sphere.
_SAMPLE = 1000
# Pairs of a query and a point held at a time: 16 MB of int64 each for rows and columns.
_PAIRS_AT_ONCE = 1 << 21


def decide_by_tree(ballot: AbstractBallot, queries: Floats, points: Floats, margin: float) -> bool:
    """True after all queries were decided; False where lengths differ."""
    d = points.shape[1]
    for some in (points[:: 1 + len(points) // _SAMPLE], points):
        squared = np.einsum("ij,ij->i", some, some)
        radius, spread = float(np.sqrt(squared.max())), float(squared.max() - squared.min())
        if spread > _SPREAD * radius**2:
            return False
    rows = np.flatnonzero(queries.any(axis=1))
    targets = queries[rows] * (radius / np.sqrt(np.einsum("ij,ij->i", queries, queries)[rows]))[:, None]
    # The direction of a query and the distances err by a few roundings each.
    more = spread + 2 * (margin + 16 * (d + 8) * UNIT64) * radius**2
    tree = cKDTree(points)
    threads = allowed_threads()
    distances, nearest = map(np.asarray, tree.query(targets, k=[1, 2], workers=threads))
    limits = np.sqrt(distances[:, 0] ** 2 + more) * (1 + 1e-12)
    alone = distances[:, 1] > limits
    ballot.decide(torch.from_numpy(rows[alone]), torch.from_numpy(nearest[alone, 0].astype(np.int64)))
    rows, targets, limits = rows[~alone], targets[~alone], limits[~alone]
    counts = tree.query_ball_point(targets, limits, workers=threads, return_length=True)
    ends = np.cumsum(counts)
    start = 0
    while start < len(rows):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, side="right")))
        found = tree.query_ball_point(targets[start:stop], limits[start:stop], workers=threads)
        ballot.decide(
            torch.from_numpy(np.repeat(rows[start:stop], counts[start:stop])),
            torch.from_numpy(np.concatenate([np.asarray(some, dtype=np.int64) for some in found])),
        )
        start = stop
    return True
