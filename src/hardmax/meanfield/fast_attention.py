r"""Attention on the circle by a Fourier-Bessel sum, and truncated attention at large beta.

By Jacobi and Anger, :math:`e^{\kappa\cos(\theta-\varphi)} = \sum_m I_m(\kappa) e^{im(\theta-\varphi)}`, so for a query
:math:`q = \kappa (\cos\varphi, \sin\varphi)` and keys at angles :math:`\theta_j` of weights :math:`w_j`, with moments
:math:`c_m = \sum_j w_j e^{im\theta_j}`,

.. math:: \sum_j w_j e^{\langle q, y_j\rangle} = I_0(\kappa)\Bigl(c_0 + 2\,\mathrm{Re}\sum_{m\ge1} \rho_m e^{-im\varphi}
          c_m\Bigr), \qquad \rho_m = \prod_{k\le m} r_k, \quad r_k = I_k(\kappa)/I_{k-1}(\kappa).

The ratios come from the backward recurrence :math:`r_m = 1/(2m/\kappa + r_{m+1})`, which is stable and runs in the
direction of Horner's rule for the sum: one loop over m, nothing stored.

The sum cancels where a query's keys are all far from it. The sum of the moduli is carried along, which bounds the
rounding error; queries whose bound passes the tolerance are left to dense rows.

A key whose score is :math:`\delta = \log(n/\varepsilon)` below the best changes nothing beyond :math:`\varepsilon`,
even if all the others are as bad. Keys are grouped into small caps of the sphere; a cap of centre c and angular radius
rho holds no score above :math:`\kappa\cos(\angle(q, c) - \rho)`. Queries of similar direction are done together, on
the union of the caps that any of them needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import i0e

from .rows import exponential

# Queries per pass: bounds the memory of the table of terms.
_CHUNK = 2048
_EXTRA_RATIOS = 24  # the recurrence forgets its start value within a few terms


def modes(kappa: float, tolerance: float) -> int:
    """Number of modes beyond which I_m / I_0 is below ``tolerance``.

    ``I_m(k)/I_0(k) <= exp(-m^2/(2 k + 2 m))``, a bound that holds for small and for large k.
    """
    depth = -math.log(tolerance)
    return math.ceil(depth + math.sqrt(depth * depth + 2 * depth * kappa)) + 2


def circle_mean(
    queries: np.ndarray, keys: np.ndarray, weights: np.ndarray, tolerance: float = 1e-12
) -> tuple[np.ndarray, np.ndarray]:
    """Mean that each query attends to in float64, and the queries for which the error may exceed ``tolerance``."""
    mean, _, left = circle_sums(queries, keys, weights, tolerance)
    return mean, left


def circle_sums(
    queries: np.ndarray, keys: np.ndarray, weights: np.ndarray, tolerance: float = 1e-12
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As :func:`circle_mean`, and between them the logarithm of the sum of weights per query."""
    kappa = np.hypot(queries[:, 0], queries[:, 1])
    count = modes(float(kappa.max()), 1e-17)
    moments = _moments(keys, weights, count + 1)
    # Three sums with the same factors: the denominator, and the two halves of the numerator.
    coefficients = np.stack([moments[: count + 1], moments[1 : count + 2], _shifted(moments, count)])
    mean, sums = np.empty((len(queries), 2)), np.empty(len(queries))
    trusted = np.empty(len(queries), dtype=bool)
    for top in range(0, len(queries), _CHUNK):
        part = slice(top, top + _CHUNK)
        mean[part], sums[part], trusted[part] = _evaluate(queries[part], kappa[part], coefficients, tolerance)
    logs = np.log(sums) + np.log(i0e(kappa)) + kappa + math.log(weights.sum())
    return mean, logs, np.flatnonzero(~trusted)


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
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    # Each of the sums is rounded in every mode, relative to its value there.
    error = 4 * np.finfo(float).eps * math.sqrt(count + 1) * size
    trusted = denominator * tolerance > error
    divisor = np.where(trusted, denominator, 1.0)
    ratio_of_sums = numerator / divisor
    return np.stack([ratio_of_sums.real, ratio_of_sums.imag], axis=1), divisor, trusted


GROUP = 128
"""Number of keys, or queries, per group."""
_SAMPLED = 8  # caps near a group of queries whose middle keys give a first good score
_SLACK = 16  # units of rounding in a cosine


@dataclass(frozen=True)
class _Caps:
    """Keys in an order in which those of a group are neighbours."""

    order: np.ndarray
    starts: np.ndarray
    """First key of each group, and the number of keys at the end."""

    @property
    def count(self) -> int:
        return len(self.starts) - 1


def _grouped(points: np.ndarray) -> _Caps:
    """Split along the widest coordinate at the median until groups are small."""
    parts: list[np.ndarray] = []
    pending = [np.arange(len(points))]
    while pending:
        part = pending.pop()
        if len(part) <= GROUP:
            parts.append(part)
            continue
        here = points[part]
        axis = int((here.max(axis=0) - here.min(axis=0)).argmax())
        half = len(part) // 2
        split = np.argpartition(here[:, axis], half)
        pending += [part[split[half:]], part[split[:half]]]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return _Caps(np.concatenate(parts), starts)


def truncated_mean(
    queries: np.ndarray,
    keys: np.ndarray,
    weights: np.ndarray,
    *,
    tolerance: float,
    largest_share: float = 1.0,
) -> np.ndarray | None:
    """Mean that each query attends to, with an error of at most ``2 tolerance``; None if too many pairs contribute.

    Keys are unit vectors and the largest weight is one.
    """
    depth = math.log(len(keys) / tolerance)
    kappa = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    caps = _grouped(keys)
    ordered, mass = keys[caps.order], weights[caps.order]
    directions = queries / np.maximum(kappa, np.finfo(queries.dtype).tiny)[:, None]
    groups = _grouped(directions)
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    needed = _needed(directions[groups.order], kappa[groups.order], groups, ordered, log_mass, caps, depth)
    sizes = np.diff(caps.starts)
    share = float((needed @ sizes) @ np.diff(groups.starts)) / (len(queries) * len(keys))
    if share > largest_share:
        return None
    values = np.concatenate([ordered, np.ones_like(ordered[:, :1])], axis=1)
    mean = np.empty((len(queries), keys.shape[1]), queries.dtype)
    for group in range(groups.count):
        members = groups.order[groups.starts[group] : groups.starts[group + 1]]
        chosen = np.concatenate(
            [np.arange(caps.starts[cap], caps.starts[cap + 1]) for cap in np.flatnonzero(needed[group])]
        )
        mean[members] = _rows(queries[members], ordered[chosen], log_mass[chosen], values[chosen])
    return mean


def _rows(queries: np.ndarray, keys: np.ndarray, log_mass: np.ndarray, values: np.ndarray) -> np.ndarray:
    kernel = queries @ keys.T
    kernel += log_mass
    kernel -= kernel.max(axis=1, keepdims=True)
    exponential(kernel, True)
    total = kernel @ values
    mean: np.ndarray = total[:, :-1] / total[:, -1:]
    return mean


def _needed(
    directions: np.ndarray,
    kappa: np.ndarray,
    groups: _Caps,
    keys: np.ndarray,
    log_mass: np.ndarray,
    caps: _Caps,
    depth: float,
) -> np.ndarray:
    """Mask of the caps that each group of queries needs, shape (groups, caps); a group is a cap of directions."""
    centres, cosines, samples = _centres(keys, caps)
    middles, spreads, _ = _centres(directions, groups)
    towards = np.clip(middles @ centres.T, -1.0, 1.0)
    nearest = np.argpartition(-towards, min(_SAMPLED, caps.count) - 1, axis=1)[:, :_SAMPLED]
    heaviest = np.maximum.reduceat(log_mass, caps.starts[:-1])
    # The least cosine that a key must reach, for any query of the group and a key of weight one.
    least = np.empty(groups.count)
    longest = np.empty(groups.count)
    for group in range(groups.count):
        inside = slice(groups.starts[group], groups.starts[group + 1])
        chosen = samples[nearest[group]]
        length = kappa[inside]
        known = (length[:, None] * (directions[inside] @ keys[chosen].T) + log_mass[chosen]).max(axis=1)
        positive = length > 0
        thresholds = np.where(positive, (known - depth) / np.where(positive, length, 1.0), -np.inf)
        least[group] = thresholds.min()
        longest[group] = length.max()
    angle = np.arccos(towards) - np.arccos(cosines) - np.arccos(spreads)[:, None]
    highest = np.cos(np.maximum(0.0, angle)) + _SLACK * np.finfo(keys.dtype).eps
    # No weight exceeds one, so that of a cap's heaviest key can only lower its best score.
    lowered = heaviest / np.maximum(longest, np.finfo(keys.dtype).tiny)[:, None]
    return np.asarray(highest + lowered >= least[:, None])


def _centres(keys: np.ndarray, caps: _Caps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre of each cap, cosine of its angular radius, and the key nearest to the centre."""
    starts, sizes = caps.starts[:-1], np.diff(caps.starts)
    sums = np.add.reduceat(keys, starts, axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    centres = np.where(lengths[:, None] > 0, sums / np.where(lengths > 0, lengths, 1.0)[:, None], keys[starts])
    inner = np.einsum("ij,ij->i", keys, np.repeat(centres, sizes, axis=0))
    cosines = np.minimum.reduceat(inner, starts) - 8 * np.finfo(keys.dtype).eps
    best = np.maximum.reduceat(inner, starts)
    hits = np.flatnonzero(inner == np.repeat(best, sizes))
    samples = hits[np.searchsorted(hits, starts)]
    return centres, np.clip(cosines, -1.0, 1.0), samples
