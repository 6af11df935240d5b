"""A sum of sinusoids: the plainest series, on which a linear model is exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..randomness import seeded
from .series import Series

FREQUENCIES = (1.0, 1.7 * 2**0.5, 1.3 * np.pi, 5.9)
AMPLITUDES = (1.0, 0.6, 0.4, 0.25)


def sinusoids(
    n: int = 3000,
    dt: float = 0.05,
    *,
    noise: float = 0.0,
    frequencies: Sequence[float] = FREQUENCIES,
    amplitudes: Sequence[float] = AMPLITUDES,
    random_state: int | np.random.Generator | None = 0,
) -> Series:
    r"""One channel :math:`\sum_k a_k \sin(\omega_k t + \varphi_k)` with random phases.

    ``noise`` is the standard deviation of added normal noise, in standard deviations of the clean signal.

    >>> sinusoids(100).values.shape
    (100, 1)
    """
    from ..inputs import as_count, as_positive

    n, dt = as_count("n", n, least=2), as_positive("dt", dt)
    if len(frequencies) != len(amplitudes):
        raise InputError(
            "amplitudes", f"{len(amplitudes)} of them", f"must be {len(frequencies)}, one a frequency", "pass as many"
        )
    rng = seeded(random_state).generator
    times = dt * np.arange(n)
    phases = rng.uniform(0.0, 2 * np.pi, len(frequencies))
    clean = (np.asarray(amplitudes) * np.sin(np.outer(times, np.asarray(frequencies)) + phases)).sum(axis=1)[:, None]
    values = clean + noise * clean.std() * rng.standard_normal(clean.shape) if noise else clean
    return Series(values, times, ("y",), "a sum of sinusoids", 0.0)
