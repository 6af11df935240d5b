r"""Attention on the circle as an exact Fourier-Bessel sum: O(n sqrt(kappa)) instead of O(n^2).

By Jacobi and Anger, :math:`e^{\kappa\cos(\theta-\varphi)} = \sum_m I_m(\kappa) e^{im(\theta-\varphi)}`, so for a query
:math:`q = \kappa (\cos\varphi, \sin\varphi)` and keys at angles :math:`\theta_j` of weights :math:`w_j`, with moments
:math:`c_m = \sum_j w_j e^{im\theta_j}`,

.. math:: \sum_j w_j e^{\langle q, y_j\rangle} = I_0(\kappa)\Bigl(c_0 + 2\,\mathrm{Re}\sum_{m\ge1} \rho_m e^{-im\varphi}
          c_m\Bigr), \qquad \rho_m = \prod_{k\le m} r_k, \quad r_k = I_k(\kappa)/I_{k-1}(\kappa).

The ratios come from the backward recurrence :math:`r_m = 1/(2m/\kappa + r_{m+1})`, which is stable and runs in the
direction of Horner's rule for the sum: one loop over m, nothing stored.

The sum cancels where a query's keys are all far from it. The sum of the moduli is carried along, which bounds the
rounding error; queries whose bound passes the tolerance are left to dense rows.
"""

from __future__ import annotations

import math

import numpy as np

_CHUNK = 2048
_EXTRA_RATIOS = 24  # the recurrence forgets its start value within a few terms


def modes(kappa: float, tolerance: float) -> int:
    """How many modes are needed: beyond them I_m / I_0 is below ``tolerance``.

    ``I_m(k)/I_0(k) <= exp(-m^2/(2 k + 2 m))``, a bound that holds for small and for large k.
    """
    depth = -math.log(tolerance)
    return math.ceil(depth + math.sqrt(depth * depth + 2 * depth * kappa)) + 2


def circle_mean(
    queries: np.ndarray, keys: np.ndarray, weights: np.ndarray, tolerance: float = 1e-12
) -> tuple[np.ndarray, np.ndarray]:
    """The mean attended by each query in float64, and the queries for which it may be off by ``tolerance``."""
    kappa = np.hypot(queries[:, 0], queries[:, 1])
    count = modes(float(kappa.max()), 1e-17)
    moments = _moments(keys, weights, count + 1)
    # Three sums with the same factors: the denominator, and the two halves of the numerator.
    coefficients = np.stack([moments[: count + 1], moments[1 : count + 2], _shifted(moments, count)])
    mean = np.empty((len(queries), 2))
    trusted = np.empty(len(queries), dtype=bool)
    for top in range(0, len(queries), _CHUNK):
        part = slice(top, top + _CHUNK)
        mean[part], trusted[part] = _evaluate(queries[part], kappa[part], coefficients, tolerance)
    return mean, np.flatnonzero(~trusted)


def _shifted(moments: np.ndarray, count: int) -> np.ndarray:
    # For the modes -m the numerator has conj(c_{m-1}); the loop sums its conjugate.
    return np.concatenate([[0.0], moments[:count]])


def _moments(keys: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """``c_0 ... c_count`` of the normalised weights."""
    total = np.zeros(count + 1, dtype=complex)
    mass = weights / weights.sum()
    for top in range(0, len(keys), _CHUNK):
        unit = keys[top : top + _CHUNK, 0] + 1j * keys[top : top + _CHUNK, 1]
        power = mass[top : top + _CHUNK].astype(complex)
        for m in range(count + 1):
            total[m] += power.sum()
            power *= unit
    return total


def _evaluate(
    queries: np.ndarray, kappa: np.ndarray, coefficients: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    count = coefficients.shape[1] - 1
    safe = np.maximum(kappa, 1e-200)
    turn = (queries[:, 0] - 1j * queries[:, 1]) / safe
    ratio = safe / (count + 1 + np.sqrt((count + 1.0) ** 2 + safe**2))
    for m in range(count + _EXTRA_RATIOS, count, -1):
        ratio = 1.0 / (2 * m / safe + ratio)
    moduli = np.abs(coefficients[0])
    sums = np.repeat(coefficients[:, -1][:, None], len(queries), axis=1)
    size = np.full(len(queries), moduli[-1])
    twice = 2.0 / safe
    for m in range(count, 0, -1):
        # ``ratio`` is r_{m+1} here; the sums up to mode m are multiplied by r_m e^{-i phi} and c_{m-1} is added.
        ratio = 1.0 / (m * twice + ratio)
        sums *= ratio * turn
        sums += coefficients[:, m - 1][:, None]
        size *= ratio
        size += moduli[m - 1]
    plain = coefficients[0, 0].real
    denominator = 2 * sums[0].real - plain
    numerator = sums[1] + np.conj(sums[2])
    # Each of the sums is rounded in every mode, relative to what it holds then.
    error = 4 * np.finfo(float).eps * math.sqrt(count + 1) * size
    trusted = denominator * tolerance > error
    ratio_of_sums = numerator / np.where(trusted, denominator, 1.0)
    return np.stack([ratio_of_sums.real, ratio_of_sums.imag], axis=1), trusted
