"""Solutions of ordinary differential equations at evenly spaced times, by an adaptive method of order 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import InputError


def sampled_solution(
    speed: Callable[[float, np.ndarray], Sequence[float] | np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    *,
    tolerance: float = 1e-10,
    source: str = "the system",
) -> np.ndarray:
    """States of ``x' = speed(t, x)`` at ``times``, from ``start`` at the first; shape (times, coordinates)."""
    from scipy.integrate import solve_ivp

    with np.errstate(all="ignore"):
        found = solve_ivp(
            speed, (times[0], times[-1]), start, method="DOP853", t_eval=times, rtol=tolerance, atol=tolerance
        )
    if not found.success or found.y.shape[1] != len(times) or not np.isfinite(found.y).all():
        reached = found.t[-1] if len(found.t) else times[0]
        raise InputError(
            "start",
            np.array2string(np.asarray(start), precision=4),
            f"must give a solution of {source} up to time {times[-1]:.4g}; this one ended at {reached:.4g}",
            "start elsewhere or ask for fewer samples",
        )
    return np.ascontiguousarray(found.y.T)
