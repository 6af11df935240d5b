r"""Attention to a density: the mean that a point at any angle attends to.

On the circle the kernel is :math:`e^{\langle \beta B x, y\rangle}`. On the sphere with an axis a, write
:math:`x = \cos\alpha\,a + \sin\alpha\,\omega` and :math:`B = b_a aa^\top + b_\perp(I - aa^\top)`. The integral over the
latitude of y is a Bessel function, with :math:`\nu = (d-3)/2` and :math:`z = \beta b_\perp \sin\alpha\sin\alpha'`,

.. math:: \int e^{\langle\beta Bx, y\rangle}\,d\omega'
          = e^{\beta b_a\cos\alpha\cos\alpha'}\,\Gamma(\nu+1)\,(2/z)^\nu I_\nu(z), \qquad
          \langle\omega, \omega'\rangle \mapsto I_{\nu+1}(z)/I_\nu(z),

so both are kernels of one angle, with values in a plane. Nodes that are much closer than the kernel varies are taken
together: their mass goes to Chebyshev points of a short interval, and the attended mean is interpolated back.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, hyp0f1, ive

from .fast_attention import circle_sums, modes
from .measures import on_circle

# Chebyshev points per interval, and its length times beta |B|: e^x on [-1, 1] is interpolated to 1e-13.
_PROXIES, _INTERVAL = 12, 2.0
_LONGEST = 0.1  # radians of an interval at high temperature, on which sines are polynomials to rounding
_ENTRIES = 1 << 18  # kernel values per block: 2 MiB, which the cache holds
# Nanoseconds per mode of a query and of the sum, per value of the kernel, per block of queries, and per bound: measured
# on one core for 500 to 4,000 nodes and beta from 10 to 1000; their ratios decide between modes and blocks.
_MODE, _CALL, _PAIR, _BLOCK, _BOUND = 10.5, 15_000.0, 3.0, 22_500.0, 13.0
_NEAR = 24  # keys per block of neighbours, and queries per block: a block is evaluated or left out as a whole
_BOUNDS = 1 << 14  # bounds at a time, so that the cache holds them
_NEGLIGIBLE = 46.0  # a block this far below the best logit has less than 1e-20 of its weight
_KNOTS = 1 << 14  # of the tables of Bessel functions, cubic in log(1 + z): an error of 1e-13
_SERIES, _FAR = 1.0, 1e5  # below, the power series; above, the asymptotic one


class Kernel(ABC):
    """Kernel between angles: the logits of attention and the values that are averaged."""

    size: float
    """Largest slope of the logits per radian, beta |B|."""

    @abstractmethod
    def logits(self, queries: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Logits, shape (queries, keys), and the factor of the second value per pair (None for one)."""

    def mean(self, queries: np.ndarray, keys: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Attended mean in the plane, shape (queries, 2), and log of the sum of weights, shape (queries,)."""
        mean, logs = np.empty((len(queries), 2)), np.empty(len(queries))
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.abs(weights))
        values = np.concatenate([on_circle(keys), np.ones((len(keys), 1))], axis=1) * np.sign(weights)[:, None]
        rows = max(1, _ENTRIES // len(keys))
        for top in range(0, len(queries), rows):
            part = slice(top, top + rows)
            kernel, factor = self.logits(queries[part], keys)
            kernel += log_weights
            highest = kernel.max(axis=1, keepdims=True)
            kernel -= highest
            np.exp(kernel, out=kernel)
            total = kernel @ values
            if factor is not None:
                kernel *= factor
                total[:, 1] = kernel @ values[:, 1]
            mean[part] = total[:, :2] / total[:, 2:]
            logs[part] = highest[:, 0] + np.log(total[:, 2])
        return mean, logs


@dataclass(frozen=True, eq=False)
class CircleKernel(Kernel):
    """Softmax attention on the circle with logits <scores x, y>."""

    scores: np.ndarray

    @cached_property
    def size(self) -> float:  # type: ignore[override]
        return float(np.linalg.norm(self.scores, 2))

    def logits(self, queries: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, None]:
        return (on_circle(queries) @ self.scores.T) @ on_circle(keys).T, None

    def mean(self, queries: np.ndarray, keys: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        asking = on_circle(queries) @ self.scores.T
        by_modes = modes(self.size, 1e-17) * (_MODE * len(queries) + _CALL)
        if len(queries) / _NEAR * (len(keys) * _BOUND + _BLOCK) < by_modes:
            near = NearKeys.of(asking, keys, weights)
            if near.pairs * _PAIR + near.blocks * _BLOCK < by_modes:
                return near.mean()
        mean, logs, left = circle_sums(asking, on_circle(keys), weights)
        if len(left):
            mean[left], logs[left] = NearKeys.of(asking[left], keys, weights).mean()
        return mean, logs


@dataclass(frozen=True, eq=False)
class NearKeys:
    """Attention on the circle to blocks of neighbouring keys, without those that are negligible to all of a block."""

    asking: np.ndarray
    """Queries in the order of their angles, shape (queries, 2): the logit of a key y is <query, y>."""
    order: np.ndarray
    """Number of each of the queries before they were ordered."""
    places: np.ndarray
    """Keys, shape (blocks of keys, keys of a block, 2)."""
    weights: np.ndarray
    """Weights of the keys, shape (blocks of keys, keys of a block); zero where a block is not full."""
    needed: np.ndarray
    """Whether each block of queries attends to a block of keys, shape (blocks of queries, blocks of keys)."""

    @staticmethod
    def of(asking: np.ndarray, keys: np.ndarray, weights: np.ndarray) -> NearKeys:
        turned = np.mod(keys, 2 * math.pi)
        by_angle = np.argsort(turned, kind="stable")
        count = -(-len(keys) // _NEAR)
        # The last block is filled up with its last key, of weight zero.
        filled = np.append(by_angle, np.full(count * _NEAR - len(keys), by_angle[-1]))
        blocks = turned[filled].reshape(count, _NEAR)
        masses = weights[filled]
        masses[len(keys) :] = 0.0
        masses = masses.reshape(count, _NEAR)
        places = on_circle(blocks.ravel()).reshape(count, _NEAR, 2)
        order = np.argsort(np.arctan2(asking[:, 1], asking[:, 0]), kind="stable")
        asking = asking[order]
        arcs = _Arcs.of(blocks, places, masses)
        needed = np.empty((-(-len(asking) // _NEAR), count), dtype=bool)
        rows = _NEAR * max(1, _BOUNDS // (_NEAR * count))
        for top in range(0, len(asking), rows):
            wanted = arcs.wanted(asking[top : top + rows])
            found = np.logical_or.reduceat(wanted, np.arange(0, len(wanted), _NEAR), axis=0)
            needed[top // _NEAR : top // _NEAR + len(found)] = found
        return NearKeys(asking, order, places, masses, needed)

    @property
    def pairs(self) -> int:
        """Number of logits that are evaluated."""
        return int(self.needed.sum()) * _NEAR * _NEAR

    @property
    def blocks(self) -> int:
        """Number of blocks of queries."""
        return len(self.needed)

    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Attended mean, shape (queries, 2), and log of the sum of weights, in the first order of the queries."""
        mean, logs = np.empty((len(self.asking), 2)), np.empty(len(self.asking))
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.abs(self.weights))
        signs = np.sign(self.weights)[..., None]
        values = np.concatenate([self.places, np.ones_like(signs)], axis=2) * signs
        for block, chosen in enumerate(self.needed):
            part = slice(block * _NEAR, (block + 1) * _NEAR)
            kernel = self.asking[part] @ self.places[chosen].reshape(-1, 2).T
            kernel += log_weights[chosen].ravel()
            highest = kernel.max(axis=1, keepdims=True)
            kernel -= highest
            np.exp(kernel, out=kernel)
            total = kernel @ values[chosen].reshape(-1, 3)
            rows = self.order[part]
            mean[rows] = total[:, :2] / total[:, 2:]
            logs[rows] = highest[:, 0] + np.log(total[:, 2])
        return mean, logs


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs of the circle, each with some keys."""

    middles: np.ndarray
    """Unit vector to the middle of each arc, and the one a quarter turn further, shape (2, arcs, 2)."""
    halves: np.ndarray
    """Cosine and sine of half the length of each arc, shape (2, arcs)."""
    heaviest: np.ndarray
    """Key of the largest weight of each arc, shape (arcs, 2)."""
    logs: np.ndarray
    """Logarithms of this weight and of the sum of all, without signs, shape (2, arcs)."""

    @staticmethod
    def of(angles: np.ndarray, places: np.ndarray, weights: np.ndarray) -> _Arcs:
        size = np.abs(weights)
        middle, half = 0.5 * (angles[:, 0] + angles[:, -1]), 0.5 * (angles[:, -1] - angles[:, 0])
        with np.errstate(divide="ignore"):
            logs = np.log(np.stack([size.max(axis=1), size.sum(axis=1)]))
        return _Arcs(
            np.stack([on_circle(middle), on_circle(middle + 0.5 * math.pi)]),
            np.stack([np.cos(half), np.sin(half)]),
            places[np.arange(len(places)), size.argmax(axis=1)],
            logs,
        )

    def wanted(self, asking: np.ndarray) -> np.ndarray:
        """Whether each arc may have more than a negligible share of the attention of a query, (queries, arcs)."""
        best = asking @ self.heaviest.T
        best += self.logs[0]
        length = np.hypot(asking[:, 0], asking[:, 1])[:, None]
        along = asking @ self.middles[0].T
        # The best place of an arc is the direction of the query where that lies inside, otherwise the nearer end.
        inside = along >= length * self.halves[0]
        along *= self.halves[0]
        beside = np.abs(asking @ self.middles[1].T)
        beside *= self.halves[1]
        along += beside
        np.copyto(along, length, where=inside)
        along += self.logs[1]
        return np.asarray(along >= best.max(axis=1, keepdims=True) - _NEGLIGIBLE)


@dataclass(frozen=True, eq=False)
class AxialKernel(Kernel):
    """Softmax attention among latitudes of the sphere in d dimensions."""

    along: float
    """beta times the eigenvalue of B on the axis."""
    across: float
    """beta times the eigenvalue of B orthogonal to it."""
    dimension: int

    @cached_property
    def size(self) -> float:  # type: ignore[override]
        return max(abs(self.along), abs(self.across))

    @cached_property
    def _table(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Step in log(1 + z), and cubics between knots of log(e^-z 0F1) and of the ratio, each of shape (4, knots)."""
        order = 0.5 * (self.dimension - 3)
        knots = np.linspace(0.0, math.log1p(abs(self.across)) * (1 + 1e-12) + 1e-9, _KNOTS)
        z = np.expm1(knots)
        height, ratio = (CubicSpline(knots, f).c for f in (log_latitude(order, z), bessel_ratio(order, z)))
        return float(knots[1]), np.asarray(height), np.asarray(ratio)

    def logits(self, queries: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y = on_circle(queries), on_circle(keys)
        signed = np.outer(self.across * x[:, 1], y[:, 1])
        z = np.abs(signed)
        step, height, ratio = self._table
        offset = np.log1p(z)
        knot = np.minimum((offset / step).astype(np.int64), _KNOTS - 2)
        offset -= step * knot
        latitude = z + np.outer(self.along * x[:, 0], y[:, 0]) + _cubic(height, knot, offset)
        # The ratio is odd; Chebyshev points beyond a pole have a negative sine.
        return latitude, np.copysign(_cubic(ratio, knot, offset), signed)


def _cubic(coefficients: np.ndarray, knot: np.ndarray, offset: np.ndarray) -> np.ndarray:
    value = coefficients[0].take(knot)
    for k in range(1, 4):
        value *= offset
        value += coefficients[k].take(knot)
    return np.asarray(value)


def log_latitude(order: float, z: np.ndarray) -> np.ndarray:
    r"""Logarithm of :math:`e^{-z}\,\Gamma(\nu+1)(2/z)^\nu I_\nu(z)`, elementwise."""
    found = np.empty_like(z)
    near, far = z < _SERIES, z > _FAR
    found[near] = np.log(hyp0f1(order + 1, z[near] ** 2 / 4)) - z[near]
    middle, rest = z[~near & ~far], z[far]
    scale = gammaln(order + 1)
    found[~near & ~far] = scale + order * np.log(2 / middle) + np.log(ive(order, middle))
    # I_nu(z) e^-z sqrt(2 pi z) = 1 - (m - 1)/(8z) + (m - 1)(m - 9)/(2 (8z)^2) - ..., m = 4 nu^2
    found[far] = scale + order * np.log(2 / rest) - 0.5 * np.log(2 * math.pi * rest) + np.log(_asymptotic(order, rest))
    return found


def bessel_ratio(order: float, z: np.ndarray) -> np.ndarray:
    r"""Ratio :math:`I_{\nu+1}(z)/I_\nu(z)`, elementwise: the mean of the first coordinate on the latitude sphere."""
    found = np.empty_like(z)
    near, far = z < _SERIES, z > _FAR
    square = z[near] ** 2 / 4
    found[near] = z[near] / (2 * order + 2) * hyp0f1(order + 2, square) / hyp0f1(order + 1, square)
    middle = z[~near & ~far]
    found[~near & ~far] = ive(order + 1, middle) / ive(order, middle)
    found[far] = _asymptotic(order + 1, z[far]) / _asymptotic(order, z[far])
    return found


def _asymptotic(order: float, z: np.ndarray) -> np.ndarray:
    m, x = 4 * order * order, 1 / (8 * z)
    return np.asarray(1 - (m - 1) * x * (1 - (m - 9) * x / 2 * (1 - (m - 25) * x / 3)))


def _interval(kernel: Kernel) -> float:
    return min(_LONGEST, _INTERVAL / max(kernel.size, 1e-300))


def attended(kernel: Kernel, angles: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean that each node attends to, in the plane, shape (nodes, 2); close nodes are evaluated together."""
    groups = _Groups.of(angles, weights, _interval(kernel))
    mean, logs = kernel.mean(groups.places, groups.places, groups.masses)
    return groups.back(mean, logs)


def log_interaction(kernel: Kernel, angles: np.ndarray, weights: np.ndarray) -> float:
    """Logarithm of the double integral of the kernel over the density."""
    groups = _Groups.of(angles, weights, _interval(kernel))
    _, logs = Kernel.mean(kernel, groups.places, groups.places, groups.masses)
    highest = float(logs.max())
    return highest + math.log(float(groups.masses @ np.exp(logs - highest)))


def attention_share(kernel: Kernel, angles: np.ndarray, weights: np.ndarray, nodes: np.ndarray) -> float:
    """Share of the attention of all mass that some of the nodes get."""
    asking = _Groups.of(angles[~nodes], weights[~nodes], _interval(kernel))
    heavy = Kernel.mean(kernel, asking.places, asking.places, asking.masses)[1]
    light = Kernel.mean(kernel, asking.places, angles[nodes], weights[nodes])[1]
    return float(np.abs(asking.masses) @ (1 / (1 + np.exp(np.minimum(heavy - light, 700.0)))))


_CHEBYSHEV = np.cos(math.pi * (np.arange(_PROXIES) + 0.5) / _PROXIES)
_BARYCENTRIC = (-1.0) ** np.arange(_PROXIES) * np.sin(math.pi * (np.arange(_PROXIES) + 0.5) / _PROXIES)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Nodes, some of them replaced by Chebyshev points of the interval that they share."""

    places: np.ndarray
    masses: np.ndarray
    alone: np.ndarray
    """Whether each node stands for itself."""
    basis: np.ndarray
    """Lagrange polynomials of the interval at each of the other nodes, shape (others, proxies)."""
    owner: np.ndarray
    """Number of the interval of each of the other nodes."""

    @staticmethod
    def of(angles: np.ndarray, weights: np.ndarray, length: float) -> _Groups:
        cells = np.floor(angles / length)
        _, cell, counts = np.unique(cells, return_inverse=True, return_counts=True)
        alone = counts[cell] <= _PROXIES
        others = angles[~alone]
        if len(others) == 0:
            return _Groups(angles, weights, alone, np.empty((0, _PROXIES)), np.empty(0, dtype=np.int64))
        first, owner = np.unique(cells[~alone], return_inverse=True)
        middles = (first + 0.5) * length
        basis = _lagrange((others - middles[owner]) / (0.5 * length))
        masses = np.stack([np.bincount(owner, weights[~alone] * column, len(first)) for column in basis.T], axis=1)
        proxies = middles[:, None] + 0.5 * length * _CHEBYSHEV
        places = np.concatenate([angles[alone], proxies.ravel()])
        return _Groups(places, np.concatenate([weights[alone], masses.ravel()]), alone, basis, owner)

    def back(self, mean: np.ndarray, logs: np.ndarray) -> np.ndarray:
        """Means at the nodes from those at the places: sums are interpolated, since quotients have poles nearby."""
        found = np.empty((len(self.alone), 2))
        count = int(self.alone.sum())
        found[self.alone] = mean[:count]
        if count < len(found):
            heights = logs[count:].reshape(-1, _PROXIES)
            sums = np.exp(heights - heights.max(axis=1, keepdims=True))
            nodal = np.stack([*(mean[count:].T.reshape(2, -1, _PROXIES) * sums), sums])
            first, second, total = np.einsum("np,knp->kn", self.basis, nodal[:, self.owner])
            found[~self.alone] = np.stack([first / total, second / total], axis=1)
        return found


def _lagrange(places: np.ndarray) -> np.ndarray:
    """Lagrange polynomials of the Chebyshev points at places in [-1, 1], shape (places, proxies)."""
    gap = places[:, None] - _CHEBYSHEV
    exact = gap == 0
    terms = _BARYCENTRIC / np.where(exact, 1.0, gap)
    basis = terms / terms.sum(axis=1, keepdims=True)
    hit = exact.any(axis=1)
    basis[hit] = exact[hit]
    return np.asarray(basis)
