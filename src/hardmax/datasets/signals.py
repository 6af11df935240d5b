r"""Series without chaos: a sum of sinusoids, and a rotating spiral of a reaction-diffusion system.

With :math:`w = u + iv`,

.. math:: w_t = (1 - |w|^2)\,w - i\beta |w|^2 w + d\,\nabla^2 w .

Space is spectral; diffusion is solved exactly by an integrating factor and the reaction by Runge–Kutta of order 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..progress import Ticker
from ..randomness import seeded
from ..scalars import as_count, as_positive
from .series import Series

# Ratios such as 1.7 sqrt(2) are irrational, so the sum never repeats.
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
    r"""Series of one channel :math:`\sum_k a_k \sin(\omega_k t + \varphi_k)` with random phases.

    Parameters
    ----------
    n
        Number of samples.
    dt
        Time between samples.
    noise
        Standard deviation of added normal noise, in standard deviations of the clean signal.
    frequencies
        Angular frequencies of the sinusoids.
    amplitudes
        Amplitudes, one per frequency.
    random_state
        A seed or a NumPy generator of phases and noise; None draws a seed.

    Returns
    -------
    Series
        One channel, y.

    Examples
    --------
    >>> sinusoids(100).values.shape
    (100, 1)
    """
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


def spiral(
    samples: int = 500,
    dt: float = 0.1,
    *,
    amplitude: float = 1.0,
    grid: int = 64,
    size: float = 20.0,
    diffusion: float = 0.1,
    beta: float = 1.0,
    arms: int = 1,
    substep: float = 0.05,
    progress: bool | None = None,
) -> np.ndarray:
    """Snapshots of a rotating spiral of a reaction-diffusion system, shape (samples, 2, grid, grid).

    Parameters
    ----------
    samples
        Number of snapshots.
    dt
        Time between snapshots.
    amplitude
        Amplitude of the initial spiral.
    grid
        Nodes along each side of the square.
    size
        Length of each side.
    diffusion
        Diffusion coefficient d of both species.
    beta
        Rotation of the phase with the amplitude.
    arms
        Number of arms of the spiral.
    substep
        Longest step of the time integration.
    progress
        Whether a bar is shown: True, False, or None for long runs on a terminal.

    Returns
    -------
    numpy.ndarray
        Both species, shape (samples, 2, grid, grid).

    Examples
    --------
    >>> spiral(3, grid=8).shape
    (3, 2, 8, 8)
    """
    samples, grid = as_count("samples", samples, least=1), as_count("grid", grid, least=4)
    dt, size, substep = as_positive("dt", dt), as_positive("size", size), as_positive("substep", substep)
    steps = round(dt / substep)
    if steps < 1 or abs(steps * substep - dt) > 1e-9 * dt:
        raise InputError("substep", substep, f"must divide dt = {dt:g}", f"pass for example substep={dt / 2:g}")
    axis = (np.arange(grid) + 0.5) / grid * size - size / 2
    X, Y = np.meshgrid(axis, axis, indexing="ij")
    r = np.hypot(X, Y)
    wave = 2 * np.pi / size * np.fft.fftfreq(grid, 1 / grid)
    half = np.exp(-diffusion * (wave[:, None] ** 2 + wave**2) * substep / 2)
    state = np.fft.fft2(amplitude * np.tanh(r) * np.exp(1j * (arms * np.arctan2(Y, X) - r)))
    shots = np.empty((samples, 2, grid, grid))
    with Ticker("snapshots", samples, progress=progress) as ticker, np.errstate(all="ignore"):
        for k in range(samples):
            field = np.fft.ifft2(state)
            if not np.isfinite(field).all():
                problem = f"makes the solution blow up with substep {substep:g}"
                raise InputError("amplitude", amplitude, problem, "pass a smaller amplitude or substep")
            shots[k, 0], shots[k, 1] = field.real, field.imag
            for _ in range(steps if k + 1 < samples else 0):
                state = _advanced(state, half, substep, beta)
            ticker.advance()
    return shots


def _reaction(state: np.ndarray, beta: float) -> np.ndarray:
    w = np.fft.ifft2(state)
    square = w.real**2 + w.imag**2
    return np.asarray(np.fft.fft2((1 - square - 1j * beta * square) * w))


def _advanced(state: np.ndarray, half: np.ndarray, h: float, beta: float) -> np.ndarray:
    """One step of integrating-factor Runge–Kutta; ``half`` is diffusion over half a step."""
    whole = half * half
    k1 = _reaction(state, beta)
    k2 = _reaction(half * (state + h / 2 * k1), beta)
    k3 = _reaction(half * state + h / 2 * k2, beta)
    k4 = _reaction(whole * state + h * half * k3, beta)
    return np.asarray(whole * state + h / 6 * (whole * k1 + 2 * half * (k2 + k3) + k4))
