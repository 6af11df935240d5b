r"""Attention at large beta: only keys near the best one matter, and whole groups of keys are known not to.

A key whose score is :math:`\delta = \log(n/\varepsilon)` below the best changes nothing beyond :math:`\varepsilon`,
even if all the others are as bad. Keys are grouped into small caps of the sphere; a cap of centre c and angular radius
rho holds no score above :math:`\kappa\cos(\angle(q, c) - \rho)`. Queries of similar direction are done together, on
the union of the caps that any of them needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .rows import exponential

GROUP = 128
"""Keys, or queries, that are treated together."""
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
    """The mean attended by each query, off by at most ``2 tolerance``; None if more than a share of pairs matters.

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
    """Which caps each group of queries needs, shape (group of queries, cap); a group is a cap of directions."""
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
