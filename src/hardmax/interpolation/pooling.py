r"""Codes by mean pooling: one number per sequence, all different, that attention with B = 0 can compute.

With :math:`t=\langle u, x\rangle` and :math:`f_b(j) = \mathrm{mean}_{x\in X^j}\,\mathrm{relu}(t(x)-b)`, two different
measures on the line differ in :math:`f_b` for some token value b. So starting from the partition of the sequences by
their means and adding knots that split a class, at most N-1 knots make the vectors
:math:`(\mathrm{mean}_j, f_{b_1}(j),\dots,f_{b_K}(j))` pairwise different, and almost every linear form of them is a
code. The search takes small integer coefficients and prefers the largest ratio of the smallest gap to the range.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import fmpq

from ..errors import HardmaxError
from .lattice import Lattice
from .numbers import ZERO, Vector, dot, to_float

_TRIES = 400
_MOST_TRIES = 20_000
_CANDIDATES = 256
_RESOLVED = 1e-13  # a float64 gap ratio below this says nothing about the exact codes


class NoCodeError(HardmaxError):
    """No coefficients were found, although almost all of them will do."""


@dataclass(frozen=True)
class PooledCode:
    r""":math:`c_j = \langle w, \mathrm{mean}_j\rangle + g(w)\sum_r a_r f_{b_r}(j)`: coefficients and codes."""

    weights: Vector
    knots: tuple[fmpq, ...]
    heights: tuple[fmpq, ...]
    codes: tuple[fmpq, ...]

    @property
    def gap(self) -> fmpq:
        """Smallest distance between two codes."""
        ordered = sorted(self.codes)
        return min(b - a for a, b in itertools.pairwise(ordered))


def pooled_code(
    lattice: Lattice, u: Sequence[int], generator: np.random.Generator, *, across: Vector | None, single: bool = False
) -> PooledCode:
    r"""Find a code. ``across`` = v means that knots write along v, so that :math:`g(w)=\langle w, v\rangle`; without
    it :math:`g=1`. ``single`` allows only multiples of u as :math:`w`.
    """
    levels = lattice.project(u)
    means = _means(lattice)
    flat = [(dot([fmpq(c) for c in u], mean),) for mean in means] if single else means
    knots = _splitting_knots(lattice, levels, _classes(flat))
    features = [_feature(lattice, levels, b) for b in knots]
    weights, heights, codes = _search(lattice, u, means, features, generator, across, single)
    scale = fmpq(1, lattice.denominator)
    return PooledCode(weights, tuple(b * scale for b in knots), heights, codes)


def _means(lattice: Lattice) -> list[Vector]:
    totals = lattice.sums(lattice.points).tolist()
    return [
        tuple(fmpq(int(c), n * lattice.denominator) for c in row)
        for row, n in zip(totals, lattice.sizes.tolist(), strict=True)
    ]


def _classes(keys: Sequence[object]) -> np.ndarray:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _splitting_knots(lattice: Lattice, levels: np.ndarray, label: np.ndarray) -> list[int]:
    """Token values at which the partition is split until every class has one member, greedily."""
    knots: list[int] = []
    while len(set(label.tolist())) < len(label):
        members = np.flatnonzero(np.bincount(label)[label] > 1)
        values = np.unique(np.concatenate([levels[lattice.starts[j] : lattice.starts[j + 1]] for j in members]))
        if len(values) > _CANDIDATES:
            pick = np.linspace(0, len(values) - 1, _CANDIDATES).round().astype(int)
            found = _best_knot(lattice, levels, label, members, values[pick]) or _best_knot(
                lattice, levels, label, members, values
            )
        else:
            found = _best_knot(lattice, levels, label, members, values)
        if found is None:
            raise NoCodeError("the direction does not keep the measures apart")
        knots.append(found[0])
        label = found[1]
    return knots


def _best_knot(
    lattice: Lattice, levels: np.ndarray, label: np.ndarray, members: np.ndarray, values: np.ndarray
) -> tuple[int, np.ndarray] | None:
    """The value that splits the classes most, with the new classes; None when none splits any."""
    own = [levels[lattice.starts[j] : lattice.starts[j + 1]].astype(object) for j in members]
    best: tuple[int, int] | None = None
    count = len(set(label[members].tolist()))
    for b in values.tolist():
        keys = set()
        for j, t in zip(members.tolist(), own, strict=True):
            total, n = int(sum(x - b for x in t if x > b)), len(t)
            divisor = math.gcd(total, n)
            keys.add((int(label[j]), total // divisor, n // divisor))
        if len(keys) > count:
            count, best = len(keys), (len(keys), int(b))
    if best is None:
        return None
    b = best[1]
    features = _feature(lattice, levels, b)
    return b, _classes([(int(c), f) for c, f in zip(label, features, strict=True)])


def _feature(lattice: Lattice, levels: np.ndarray, knot: int) -> list[fmpq]:
    totals = lattice.sums(np.maximum(levels - knot, 0)).tolist()
    return [fmpq(int(s), n * lattice.denominator) for s, n in zip(totals, lattice.sizes.tolist(), strict=True)]


def _search(
    lattice: Lattice,
    u: Sequence[int],
    means: list[Vector],
    features: list[list[fmpq]],
    generator: np.random.Generator,
    across: Vector | None,
    single: bool,
) -> tuple[Vector, tuple[fmpq, ...], tuple[fmpq, ...]]:
    d, count, knots = lattice.data.dimension, len(means), len(features)
    mean_table = np.array([[to_float(c) for c in mean] for mean in means])
    feature_table = np.array([[to_float(f) for f in feature] for feature in features]).reshape(knots, count)
    along = np.array([to_float(c) for c in across]) if across is not None else None
    best: tuple[float, list[int], list[int], tuple[fmpq, ...]] | None = None
    size = 2
    for attempt in range(1, _MOST_TRIES + 1):
        if attempt > _TRIES and best is not None:
            break
        if attempt % 60 == 0:
            size *= 2
        w = list(u) if single else generator.integers(-size, size, size=d, endpoint=True).tolist()
        a = (generator.integers(1, size, size=knots, endpoint=True) * generator.choice([-1, 1], size=knots)).tolist()
        gain = float(along @ np.array(w, dtype=float)) if along is not None else 1.0
        if not any(w) or (knots and gain == 0.0):
            continue
        codes = mean_table @ np.array(w, dtype=float)
        if knots:
            codes = codes + gain * (np.array(a, dtype=float) @ feature_table)
        ratio = _gap_ratio(codes)
        if ratio < _RESOLVED and attempt <= _TRIES:
            continue
        if best is None or ratio > best[0]:
            exact = _exact_codes(means, features, w, a, across)
            if len(set(exact)) == count:
                best = (ratio, w, a, exact)
                if single and not knots:
                    break
    if best is None:
        raise NoCodeError("no small coefficients give every sequence its own code")
    return tuple(fmpq(c) for c in best[1]), tuple(fmpq(c) for c in best[2]), best[3]


def _gap_ratio(codes: np.ndarray) -> float:
    ordered = np.sort(codes)
    extent = float(ordered[-1] - ordered[0])
    return float(np.diff(ordered).min()) / extent if extent > 0 else 0.0


def _exact_codes(
    means: list[Vector], features: list[list[fmpq]], w: list[int], a: list[int], across: Vector | None
) -> tuple[fmpq, ...]:
    weights = [fmpq(c) for c in w]
    gain = fmpq(1) if across is None else dot(weights, across)
    codes = []
    for j, mean in enumerate(means):
        bends = sum((height * feature[j] for height, feature in zip(a, features, strict=True)), ZERO)
        codes.append(dot(weights, mean) + gain * bends)
    return tuple(codes)
