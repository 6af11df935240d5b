"""Lorenz '63 with the classical parameters: 10, 28, 8/3."""

from __future__ import annotations

import numpy as np

from ..randomness import seeded
from .integrate import sampled_solution
from .series import Series

LYAPUNOV_EXPONENT = 0.9056
"""The largest one, of the classical parameters (Viswanath)."""
_LORENZ_SPIN_UP = 20.0


def lorenz63(n: int = 5000, dt: float = 0.02, *, random_state: int | np.random.Generator | None = 0) -> Series:
    r""":math:`x' = 10(y-x),\ y' = x(28-z)-y,\ z' = xy - \tfrac{8}{3}z` on its attractor.

    Each seed starts elsewhere; the first 20 units of time are not kept.

    >>> lorenz63(50).names
    ('x', 'y', 'z')
    """
    from ..inputs import as_count, as_positive

    n, dt = as_count("n", n, least=2), as_positive("dt", dt)
    rng = seeded(random_state).generator
    start = np.array([1.0, 1.0, 20.0]) + rng.standard_normal(3)
    on_it = sampled_solution(_speed, start, np.array([0.0, _LORENZ_SPIN_UP]), source="Lorenz '63")[-1]
    times = dt * np.arange(n)
    values = sampled_solution(_speed, on_it, times, source="Lorenz '63")
    return Series(values, times, ("x", "y", "z"), "Lorenz '63", LYAPUNOV_EXPONENT)


def _speed(_: float, state: np.ndarray) -> tuple[float, float, float]:
    x, y, z = state
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
