r"""Margins of a screen for which the points that it drops provably cannot win.

All bounds are relative to :math:`|q| R`, with q the query and R the largest length of a point. With unit roundoff u,
a sum of d products in any order, fused or not, errs by at most :math:`\gamma_d = d u / (1 - d u)` of that.
"""

from __future__ import annotations

# Unit roundoffs of float64 and float32.
UNIT64 = 2.0**-53
UNIT32 = 2.0**-24

# Covers the second-order terms of every bound here for d up to a million.
_SPARE = 1 + 2.0**-20


def tie_margin(tolerance: float, dimension: int) -> float:
    """Largest distance of the true score of a chosen point below the true largest score.

    The deciding scores of the point and of the best each err by gamma_d; the slack is rounded a few times, and so
    is the difference of best and slack.
    """
    return _SPARE * (tolerance * (1 + (dimension + 8) * UNIT64) + 2 * (dimension + 2) * UNIT64)


def product_error(dimension: int, unit: float) -> float:
    """Bound on the error of a score whose operands are rounded to ``unit`` and multiplied in that precision."""
    # Two roundings of the operands, gamma_d for the sum, and four to spare: for the subtractions that make a
    # threshold of it, and for numbers that underflow.
    return _SPARE * (dimension + 6) * unit
