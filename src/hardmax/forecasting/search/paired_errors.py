r"""Comparison of two candidates by the errors of the same forecasts, with its standard error.

With :math:`a_{ci}` and :math:`b_{ci}` the mean errors of the forecasts of two candidates from start :math:`i` after cut
:math:`c`, the advantage of the first is the mean of :math:`\log(a_{ci}/b_{ci})`, in which all starts after a cut share
its weight. Starts lie close together and their forecasts overlap, so that the number of independent ones is that of the
horizons side by side, divided by what unequal weights cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..protocol import FloatArray

_NEGLIGIBLE = 1e-3
"""Error, as a share of the mean error, that is added to both: without it the logarithm of an exact forecast decides."""
_SMALLEST = 1e-4
"""Lower bound on the standard deviation of logarithms: two forecasts differ by rounding at least."""


def log_ratio(
    first: Sequence[FloatArray], second: Sequence[FloatArray], weights: FloatArray, horizons: float
) -> tuple[float, float]:
    """Mean logarithm of the ratio of two candidates' errors, and its standard error.

    Parameters
    ----------
    first, second
        Mean errors of the forecasts from each start, one array (starts,) per cut.
    weights
        Weight of each cut, shape (cuts,); they sum to one.
    horizons
        Number of horizons that lie side by side after the first cut.

    Returns
    -------
    tuple of float
        The mean, negative where the first errs less, and its standard error.
    """
    small = _NEGLIGIBLE * float(np.concatenate(list(second)).mean()) + 1e-12
    logs = [np.log((a + small) / (b + small)) for a, b in zip(first, second, strict=True)]
    shares = np.concatenate(
        [np.full(len(part), weight / len(part)) for part, weight in zip(logs, weights, strict=True)]
    )
    values = np.concatenate(logs)
    mean = float(shares @ values)
    spread = float(np.sqrt(shares @ (values - mean) ** 2))
    equal = 1.0 / (len(weights) * float((weights**2).sum()))
    independent = max(1.0, min(horizons, len(values)) * equal)
    return mean, max(spread, _SMALLEST) / float(np.sqrt(independent))
