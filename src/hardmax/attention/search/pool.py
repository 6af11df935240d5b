r"""Points that can have the largest score for some query, found without building a convex hull.

A point deep inside the convex hull never has the largest score. Whiten the cloud with the covariance of a sample,
:math:`y = W (z - c)`, and let r be the radius of a ball inside the hull of the whitened sample: a point with
:math:`|y| < r` lies inside. One pass over the points, and for a Gaussian cloud a few in a thousand remain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Points that fix the inscribed ball, the outermost of them that span its hull, and points per pass: speed only.
_SAMPLE = 8192
_OUTERMOST = 512
# Points of a sequence that are always among those of its prefixes.
_FIRST = 512
_CHUNK = 1 << 15
# Cells to an edge of the cube of directions, for d = 1, 2, 3 and 4: enough to lose little of the radius.
_GRID = (1, 256, 24, 8)


def outer_points(points: Floats, depth: float) -> NDArray[np.int64]:
    """Indices of all points whose score can come within ``depth |q|`` of the largest for some query q.

    Parameters
    ----------
    points
        Float64 array of shape (points, d), d at most 4.
    depth
        Distance below the largest score, in units of the length of the query.

    Returns
    -------
    array
        Indices, ascending. Further points may be among them: the test is conservative.
    """
    n = points.shape[0]
    if n <= _SAMPLE:
        return np.arange(n)
    return points_outside(points[:: n // _SAMPLE], points, depth)


def outer_points_of_prefixes(points: Floats, depth: float) -> NDArray[np.int64]:
    """Indices of all points whose score can come within ``depth |q|`` of the largest up to them for some query q.

    A point is left out where it lies deep inside the hull of the first m points and is one of the next m.

    Parameters
    ----------
    points
        Float64 array of shape (points, d), d at most 4.
    depth
        Distance below the largest score, in units of the length of the query.

    Returns
    -------
    array
        Indices, ascending, 0 among them.
    """
    n, known = points.shape[0], min(points.shape[0], _FIRST)
    found = [np.arange(known)]
    while known < n:
        stop = min(2 * known, n)
        sample = points[:known][:: max(1, known // _SAMPLE)]
        found.append(known + points_outside(sample, points[known:stop], depth))
        known = stop
    return np.concatenate(found)


def points_outside(sample: Floats, points: Floats, depth: float) -> NDArray[np.int64]:
    """Indices of all points that do not lie more than ``depth`` inside the hull of the sample, and perhaps others.

    Parameters
    ----------
    sample, points
        Float64 arrays of shapes (sample, d) and (points, d), d at most 4.
    depth
        Distance from the surface of the hull.

    Returns
    -------
    array
        Indices, ascending.
    """
    n, d = points.shape
    centre = sample.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(sample, rowvar=False).reshape(d, d))
    if not variances[0] > 1e-12 * variances[-1]:
        return np.arange(n)
    deviations = np.sqrt(variances)
    whiten = axes / deviations
    radius = _inscribed_radius((sample - centre) @ whiten)
    # Shrunk by this fraction, the ball holds no point within ``depth`` of the surface of the hull, rounding included:
    # it is an ellipsoid in the original coordinates, radius * deviations[0] thick.
    size = max(float(points.max()), -float(points.min())) * np.sqrt(d)
    shrink = 1e-9 + 2 * (depth + 64 * d * 2.0**-53 * size) / (radius * deviations[0]) if radius > 0 else 1.0
    if shrink >= 0.5:
        return np.arange(n)
    limit = (radius * (1 - shrink)) ** 2
    offset = centre @ whiten
    found = []
    for start in range(0, n, _CHUNK):
        y = points[start : start + _CHUNK] @ whiten
        y -= offset
        y *= y
        squared = y[:, 0]
        for k in range(1, d):
            squared = squared + y[:, k]
        found.append(np.flatnonzero(squared >= limit) + start)
    return np.concatenate(found)


def _inscribed_radius(cloud: Floats) -> float:
    """The radius of a ball about the origin that the hull of ``cloud`` provably contains (up to rounding)."""
    d = cloud.shape[1]
    order = np.argsort((cloud * cloud).sum(axis=1))
    outermost = cloud[order[-_OUTERMOST:]]
    per_edge = _GRID[d - 1]
    half = 1.0 / per_edge
    ticks = -1 + half * (2 * np.arange(per_edge) + 1)
    tangents = np.stack(np.meshgrid(*[ticks] * (d - 1)), axis=-1).reshape(-1, d - 1)
    longest = np.sqrt(1 + ((np.abs(tangents) + half) ** 2).sum(axis=1))
    radius = np.inf
    for axis in range(d):
        rest = np.delete(outermost, axis, axis=1)
        # Over the cell the score of a point falls at most by half the l1 length of its tangential part.
        falls = half * np.abs(rest).sum(axis=1)
        along = tangents @ rest.T
        for sign in (-1.0, 1.0):
            support = (along + (sign * outermost[:, axis] - falls)).max(axis=1)
            radius = min(radius, float((support / longest).min()))
    return radius
