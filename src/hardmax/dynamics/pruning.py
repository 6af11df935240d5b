"""Which points lie safely inside the hull of the leaders, and so can never be listened to.

Leaders never move, so a decided token inside their hull stays inside it and scores less than some leader for every
query. In the plane and in space the hull is cheap and this drops almost all tokens after the first layer.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.spatial import ConvexHull, QhullError

from ..attention.choice import score
from ..shapes import Mask, Points, Tokens

_WORTHWHILE = 256  # fewer points than this are searched faster than a hull is built
_LARGEST_TABLE = 50_000_000


def safely_inside(points: Tokens, leaders: Points, margin: float) -> Mask:
    """True for points at least ``margin`` inside the convex hull of ``leaders``; false wherever that is not cheap.

    Sums are taken in the order of the coordinates, so that equal points get equal answers, whatever is beside them.
    """
    count, d = points.shape
    inside = torch.zeros(count, dtype=torch.bool, device=points.device)
    if count < _WORTHWHILE or d not in (2, 3) or len(leaders) <= d:
        return inside
    try:
        hull = ConvexHull(leaders.cpu().numpy())
    except QhullError:  # the leaders lie in a plane or on a line
        return inside
    normals = torch.from_numpy(np.ascontiguousarray(hull.equations[:, :-1])).to(points.device)
    offsets = torch.from_numpy(np.ascontiguousarray(hull.equations[:, -1])).to(points.device)
    inscribed = float((-offsets).min()) - margin
    if inscribed > 0:
        inside = score(points, points) < inscribed**2 * (1 - 1e-12)
    rest = torch.nonzero(~inside)[:, 0]
    if len(rest) * len(normals) <= _LARGEST_TABLE:
        beyond = offsets + points[rest, :1] * normals[:, 0]
        for k in range(1, d):
            beyond += points[rest, k : k + 1] * normals[:, k]
        inside[rest] = beyond.amax(dim=1) <= -margin
    return inside
