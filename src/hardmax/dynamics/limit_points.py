"""Which limits are the same point: those apart by rounding alone."""

from __future__ import annotations

import numpy as np

# Limits closer than this in every coordinate, relative to the largest coordinate, are one point: thousands of rounding
# errors of float64, which is more than the closed form makes and less than distinct limits are apart.
_GRAIN = 1e-12
# The same for limits that were rounded to a coarser dtype, in its rounding errors.
_GRAIN_UNITS = 8


def same_limits(points: np.ndarray, size: float, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each distinct limit, ascending, and for each row the number of its limit, shape (row,).

    Parameters
    ----------
    points
        Limits, shape (row, coordinate).
    size
        The largest coordinate of the whole system, which rounding is relative to.
    unit
        The rounding unit of the dtype that the limits were stored in.

    >>> first, which = same_limits(np.array([[1.0], [0.5], [1.0 - 1e-15]]), 1.0, 2.0**-52)
    >>> first.tolist(), which.tolist()
    ([0, 1], [0, 1, 0])
    """
    grain = max(_GRAIN, _GRAIN_UNITS * unit) * size
    # Along each coordinate a gap wider than the grain separates. Rounding to multiples of the grain would not do: it
    # also separates neighbours on either side of a boundary.
    labels = np.empty(points.shape, dtype=np.int64)
    for k in range(points.shape[1]):
        order = np.argsort(points[:, k], kind="stable")
        labels[order, k] = np.cumsum(np.diff(points[order, k], prepend=points[order[:1], k]) > grain)
    _, first, which = np.unique(labels, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.sort(first), rank[which.reshape(-1)]
