r"""Densities on the circle, and on the sphere of any dimension with symmetry about an axis, as moving panels.

A law is a map :math:`X` from a fixed coordinate s to the angle of a point, with a mass :math:`g(s)\,ds` that stays with
s: along a flow :math:`X` changes and g does not. The coordinate is cut into panels with p Gauss-Lobatto nodes each, so

.. math:: \int f\,d\mu = \sum_{\text{panels}} \sum_{j=1}^{p} w_j\, f(X(s_j)), \qquad w_j = \gamma_j\, g(s_j),

is exact for polynomials of degree 2p - 3 in s, whatever has become of the density. The ends of a panel are nodes,
shared with its neighbours, so that X stays continuous. Where a flow stretches the law, a panel is split: X and g are
polynomials of degree p - 1 there, and the nodes of the halves integrate g exactly, so splitting changes no mass.
Derivation and order: ``docs/devdocs/mean-field.rst``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import legendre

from ..errors import InputError
from ..inputs import as_count
from ..outcomes import counted
from ..shapes import ArrayLike
from .measures import Measure, checked_values, on_circle

NODES = 16  # per panel: a Gaussian kernel across a panel of four of its widths is integrated to rounding
_LEAST_PANEL = 2.0**-40  # of the first panels; at a jump of the density the panels end here, with a mass of 1e-12
_FIRST_TAIL = 1e-13  # Legendre coefficients of the initial density beyond the panel's degree, relative to the largest


def _gauss_lobatto() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the quadrature on [-1, 1] that has both ends as nodes."""
    last = np.eye(NODES)[-1]
    inner = legendre.legroots(legendre.legder(last))
    places = np.concatenate([[-1.0], 0.5 * (inner - inner[::-1]), [1.0]])
    return places, 2 / (NODES * (NODES - 1) * legendre.legval(places, last) ** 2)


NODE_PLACES, NODE_WEIGHTS = _gauss_lobatto()
# Values at the nodes to Legendre coefficients, shape (nodes, nodes).
TO_LEGENDRE = np.linalg.inv(legendre.legvander(NODE_PLACES, NODES - 1))


def interpolation(places: np.ndarray) -> np.ndarray:
    """Matrix from values at the nodes of a panel to values at places in [-1, 1], shape (places, nodes)."""
    return np.asarray(legendre.legvander(places, NODES - 1) @ TO_LEGENDRE)


@dataclass(frozen=True, eq=False)
class SphereDensity:
    """Law with a density on the circle, or on the sphere and symmetric about an axis."""

    angles: np.ndarray
    """Angle of each quadrature node, shape (panels, nodes): on the circle, increasing over one turn; with an axis, the
    angle to the axis, from 0 to pi."""
    weights: np.ndarray
    """Mass of each node, shape (panels, nodes), summing to one."""
    dimension: int = 2
    """Coordinates per point, d."""
    axis: np.ndarray | None = None
    """Axis of symmetry, a unit vector of shape (d,); None on the circle."""

    @property
    def points(self) -> np.ndarray:
        """Nodes as points of the sphere, shape (panels * nodes, d); with an axis, on one meridian."""
        profile = on_circle(self.angles.ravel())
        return profile if self.axis is None else profile @ self.frame

    @property
    def masses(self) -> np.ndarray:
        """Mass of each of ``points``, shape (panels * nodes,)."""
        return self.weights.ravel()

    @cached_property
    def frame(self) -> np.ndarray:
        """The two directions of the plane in which ``points`` lie, shape (2, d): the axis and one orthogonal to it."""
        if self.axis is None:
            return np.eye(2)
        across = np.zeros(self.dimension)
        across[int(np.abs(self.axis).argmin())] = 1.0
        across -= (across @ self.axis) * self.axis
        return np.stack([self.axis, across / np.linalg.norm(across)])

    @property
    def mean(self) -> np.ndarray:
        """Mean point, shape (d,)."""
        profile = self.masses @ on_circle(self.angles.ravel())
        return np.asarray(profile if self.axis is None else profile[0] * self.axis)

    @property
    def second_moment(self) -> np.ndarray:
        """Mean of x x^T, shape (d, d)."""
        profile = on_circle(self.angles.ravel())
        if self.axis is None:
            return np.asarray((profile * self.masses[:, None]).T @ profile)
        along, across = self.masses @ profile**2
        turned = np.outer(self.axis, self.axis)
        return np.asarray(along * turned + across / (self.dimension - 1) * (np.eye(self.dimension) - turned))

    @property
    def lengths(self) -> np.ndarray:
        """Extent of each panel in radians, shape (panels,)."""
        return np.asarray(np.abs(self.angles[:, -1] - self.angles[:, 0]))

    def quantile(self, shares: ArrayLike) -> np.ndarray:
        """Angles below which these shares of the mass lie, shape (shares,).

        Parameters
        ----------
        shares
            Shares of the mass, shape (shares,). On the circle shares below 0 or above 1 continue over further turns.

        Returns
        -------
        array
            Angles, shape (shares,).
        """
        wanted = np.atleast_1d(np.asarray(shares, dtype=np.float64))
        if self.axis is not None and bool(((wanted < 0) | (wanted > 1)).any()):
            raise InputError("shares", f"{wanted.min():g} to {wanted.max():g}", "must lie in [0, 1]", "pass shares")
        turns, panel, place = self._located(wanted)
        angles = _evaluated(self.angles @ TO_LEGENDRE.T, panel, place)
        return np.asarray(angles + 2 * math.pi * turns)

    def quantiles(self, n: int) -> Measure:
        """Points of equal weight on the circle, shape (n, 2): the quantiles (i + 1/2)/n of this law.

        Parameters
        ----------
        n
            Number of points.

        Returns
        -------
        Measure
            n points with weights 1/n; with an axis, on one meridian.
        """
        count = as_count("n", n, least=1)
        profile = on_circle(self.quantile((np.arange(count) + 0.5) / count))
        return Measure(profile @ self.frame, np.full(count, 1 / count))

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Density with respect to the angle, at the nodes.

        Returns
        -------
        tuple of array
            Angles and the density per radian there, each of shape (panels * nodes,).
        """
        slope = self.angles @ _SLOPE.T
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.weights / NODE_WEIGHTS / np.abs(slope)
        return self.angles.ravel(), values.ravel()

    def integrals(self, shares: np.ndarray) -> np.ndarray:
        """Integrals over the mass from share 0 up to each share: of 1, the angle, its square, cos and sin.

        Parameters
        ----------
        shares
            Shares of the mass, shape (shares,), as in ``quantile``.

        Returns
        -------
        array
            Shape (shares, 5).
        """
        turns, panel, place = self._located(shares)
        density = self.weights / NODE_WEIGHTS
        values = np.stack(
            [np.ones_like(self.angles), self.angles, self.angles**2, np.cos(self.angles), np.sin(self.angles)]
        )
        upto = np.empty((5, len(shares)))
        whole = (values * self.weights).sum(axis=2)
        before = np.concatenate([np.zeros((5, 1)), np.cumsum(whole, axis=1)], axis=1)
        for k in range(5):
            inner = legendre.legint((values[k] * density @ TO_LEGENDRE.T).T, lbnd=-1.0).T
            upto[k] = before[k, panel] + _evaluated(inner, panel, place)
        # A full turn adds 2 pi to the angle.
        total, turn = before[:, -1], 2 * math.pi * turns
        angle, square = upto[1].copy(), upto[2].copy()
        upto[1] = angle + turn * upto[0] + turns * total[1] + 2 * math.pi * _triangular(turns)
        upto[2] = (
            square
            + 2 * turn * angle
            + turn**2 * upto[0]
            + turns * total[2]
            + 4 * math.pi * total[1] * _triangular(turns)
            + 4 * math.pi**2 * _pyramidal(turns)
        )
        upto[0] += turns
        upto[3:] += turns * total[3:, None]
        return upto.T

    def _located(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Full turns, panel and place in [-1, 1] at which the mass below is each share."""
        turns = np.floor(shares)
        if self.axis is not None:
            turns = np.zeros_like(shares)
        wanted = shares - turns
        sums = self.weights.sum(axis=1)
        edges = np.concatenate([[0.0], np.cumsum(sums)])
        panel = np.clip(np.searchsorted(edges, wanted, side="right") - 1, 0, len(sums) - 1)
        mass = legendre.legint((self.weights / NODE_WEIGHTS @ TO_LEGENDRE.T).T, lbnd=-1.0).T
        low, high = -np.ones(len(shares)), np.ones(len(shares))
        share = wanted - edges[panel]
        place = np.clip(2 * share / np.maximum(sums[panel], np.finfo(float).tiny) - 1, -1.0, 1.0)
        slope = legendre.legder(mass.T).T
        for _ in range(50):  # Newton inside a bracket: bisection where the density vanishes
            excess = _evaluated(mass, panel, place) - share
            low, high = np.where(excess < 0, place, low), np.where(excess < 0, high, place)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = place - excess / _evaluated(slope, panel, place)
            inside = (step >= low) & (step <= high)
            moved = np.where(inside, step, 0.5 * (low + high))
            change = float(np.abs(moved - place).max(initial=0.0))
            place = moved
            if change < 1e-9:  # convergence is quadratic
                break
        return turns, panel, place

    def split(self, chosen: np.ndarray, places: np.ndarray | None = None) -> SphereDensity:
        """The same law with some panels split in two.

        Parameters
        ----------
        chosen
            Whether each panel is split, shape (panels,).
        places
            Where each is split, in (-1, 1), shape (panels,); in the middle when left out.

        Returns
        -------
        SphereDensity
            Law with more panels.
        """
        at = np.zeros(len(self.angles)) if places is None else places
        angles: list[np.ndarray] = []
        weights: list[np.ndarray] = []
        last = 0
        for k in np.flatnonzero(chosen):
            angles.append(self.angles[last:k])
            weights.append(self.weights[last:k])
            for low, high in ((-1.0, at[k]), (at[k], 1.0)):
                half = 0.5 * (high - low)
                onto = interpolation(low + half * (NODE_PLACES + 1))
                density = np.maximum(onto @ (self.weights[k] / NODE_WEIGHTS), 0.0)
                angles.append((onto @ self.angles[k])[None])
                weights.append((half * density * NODE_WEIGHTS)[None])
            # Ends and the new edge are shared to the last bit.
            angles[-2][0, 0], angles[-1][0, -1] = self.angles[k, 0], self.angles[k, -1]
            angles[-2][0, -1] = angles[-1][0, 0]
            # Rounding, and a density of zero whose interpolation was cut off at zero, must not change the mass.
            halves = weights[-1].sum() + weights[-2].sum()
            if halves > 0:
                scale = self.weights[k].sum() / halves
                weights[-1], weights[-2] = weights[-1] * scale, weights[-2] * scale
            last = int(k) + 1
        angles.append(self.angles[last:])
        weights.append(self.weights[last:])
        return SphereDensity(np.concatenate(angles), np.concatenate(weights), self.dimension, self.axis)

    def split_at(self, angle: float) -> SphereDensity:
        """The same law with an edge between panels at an angle, where the angle is linear on panels, as at the start.

        Parameters
        ----------
        angle
            Angle in radians.

        Returns
        -------
        SphereDensity
            Law with one more panel, or itself if there is an edge already.
        """
        ends = self.angles[:, [0, -1]]
        turned = angle if self.axis is not None else ends[0, 0] + (angle - ends[0, 0]) % (2 * math.pi)
        k = int(np.clip(np.searchsorted(ends[:, 0], turned, side="right") - 1, 0, len(ends) - 1))
        place = 2 * (turned - ends[k, 0]) / (ends[k, 1] - ends[k, 0]) - 1
        if not -1 + 1e-12 < place < 1 - 1e-12:  # an edge is there already
            return self
        chosen = np.arange(len(ends)) == k
        return self.split(chosen, np.where(chosen, place, 0.0))

    def moved(self, angles: np.ndarray) -> SphereDensity:
        """The same masses at other angles.

        Parameters
        ----------
        angles
            Angles of the nodes, shape (panels, nodes).

        Returns
        -------
        SphereDensity
            Law with these angles.
        """
        return SphereDensity(angles, self.weights, self.dimension, self.axis)

    def __repr__(self) -> str:
        where = "on the circle" if self.axis is None else f"about an axis in {counted(self.dimension, 'dimension')}"
        return f"<SphereDensity {where}, {counted(self.angles.size, 'node')}>"


_SLOPE = legendre.legvander(NODE_PLACES, NODES - 2) @ legendre.legder(np.eye(NODES), axis=0) @ TO_LEGENDRE


def _triangular(turns: np.ndarray) -> np.ndarray:
    """Sum of 0, 1, ..., turns - 1, continued to negative turns."""
    return np.asarray(turns * (turns - 1) / 2)


def _pyramidal(turns: np.ndarray) -> np.ndarray:
    """Sum of the squares of 0, 1, ..., turns - 1, continued to negative turns."""
    return np.asarray((turns - 1) * turns * (2 * turns - 1) / 6)


def _evaluated(coefficients: np.ndarray, panel: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Values of the Legendre series of a panel at a place of it, shape (places,)."""
    return np.asarray(legendre.legval(place, coefficients[panel].T, tensor=False))


def circle_density(density: Callable[[np.ndarray], np.ndarray] | None = None, *, points: int = 256) -> SphereDensity:
    """Law on the circle with a density of the angle, to be followed by :func:`simulate_density`.

    Parameters
    ----------
    density
        Function from angles of shape (k,), in radians from 0 to 2 pi, to non-negative values of shape (k,); constant
        when left out. It need not be normalised.
    points
        Least number of quadrature nodes; more where the density needs them.

    Returns
    -------
    SphereDensity
        Nodes with weights that sum to one.

    Examples
    --------
    >>> law = circle_density(lambda angle: 1 + np.sin(angle) / 2)
    >>> round(float(law.mean[1]), 12)
    0.25
    """
    return SphereDensity(*_panels(density, lambda angle: np.ones_like(angle), 2 * math.pi, points))


def axial_density(
    dimension: int,
    density: Callable[[np.ndarray], np.ndarray] | None = None,
    *,
    axis: ArrayLike | None = None,
    points: int = 256,
) -> SphereDensity:
    """Law on the unit sphere in any dimension, symmetric about an axis, to be followed by :func:`simulate_density`.

    Parameters
    ----------
    dimension
        Coordinates per point, d, at least 2.
    density
        Function from u = <axis, x> in [-1, 1], shape (k,), to non-negative values of shape (k,), with respect to the
        uniform measure of the sphere; constant when left out. It need not be normalised.
    axis
        Axis of symmetry, d numbers, not all zero; the first coordinate axis when left out.
    points
        Least number of quadrature nodes; more where the density needs them.

    Returns
    -------
    SphereDensity
        Nodes with weights that sum to one.

    Examples
    --------
    >>> axial_density(5, lambda u: 1 + u).mean.round(12)
    array([0.2, 0. , 0. , 0. , 0. ])
    """
    d = as_count("dimension", dimension, least=2)
    direction = np.eye(d)[0] if axis is None else np.asarray(axis, dtype=np.float64)
    if direction.shape != (d,) or not np.isfinite(direction).all() or not direction.any():
        raise InputError("axis", axis, f"must be {d} numbers, not all zero", "leave it out for the first coordinate")
    direction = direction / np.abs(direction).max()
    of_angle = None if density is None else lambda angle: density(np.cos(angle))
    angles, weights = _panels(of_angle, lambda angle: np.sin(angle) ** (d - 2), math.pi, points)
    return SphereDensity(angles, weights, d, direction / np.linalg.norm(direction))


def _panels(
    density: Callable[[np.ndarray], np.ndarray] | None,
    area: Callable[[np.ndarray], np.ndarray],
    end: float,
    points: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Angles and weights of panels of equal length, halved until the density is a polynomial on each."""
    # An even number: the equator is then an edge.
    count = 2 * math.ceil(as_count("points", points, least=1) / (2 * NODES))
    low = end * np.arange(count) / count
    wide = np.full(count, end / count)
    while True:
        angles = low[:, None] + 0.5 * wide[:, None] * (1 + NODE_PLACES)
        values = np.ones_like(angles)
        if density is not None:
            values = checked_values(density, angles.ravel()).reshape(angles.shape)
        values = values * area(angles)
        top = float(values.max())
        if top == 0:
            raise InputError("density", "zero everywhere", "must be positive somewhere", "pass another density")
        tail = np.abs(values @ TO_LEGENDRE[-2:].T).max(axis=1)
        rough = (tail * wide > _FIRST_TAIL * top * end) & (wide > _LEAST_PANEL * end)
        if not rough.any():
            break
        half = 0.5 * wide[rough]
        low = np.concatenate([low[~rough], low[rough], low[rough] + half])
        wide = np.concatenate([wide[~rough], half, half])
        order = np.argsort(low)
        low, wide = low[order], wide[order]
    angles[1:, 0] = angles[:-1, -1]  # shared to the last bit
    angles[-1, -1] = end
    weights = values * wide[:, None] * NODE_WEIGHTS / top
    return angles, weights / weights.sum()
