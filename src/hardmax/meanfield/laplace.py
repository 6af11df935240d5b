r"""The Laplace principle for attention: how far the attended mean is from the direction of the query.

Let :math:`\mu` be a law on the sphere, b a unit vector, and :math:`m_\kappa` the mean of the law
:math:`\nu \propto e^{\kappa\langle b, y\rangle}\mu`. With :math:`D = 1 - \langle b, y\rangle = |y - b|^2/2`, Gibbs'
variational principle says :math:`\kappa E_\nu D + \mathrm{KL}(\nu|\mu) = -\log\int e^{-\kappa D}d\mu`, so that

.. math:: |m_\kappa - b|^2 \le 2 E_\nu D \le -\tfrac2\kappa\log\int e^{-\kappa D}d\mu
          \le \min_r\; r^2 + \tfrac2\kappa\log\frac1{\mu(B(b, r))}.

With :math:`\mu(B(b, r)) \ge c_0 r^q` this is :math:`O(\log\kappa/\kappa)`. For the uniform law
:math:`|m_\kappa - b| = 1 - R_d(\kappa)`, :math:`R_d = I_{d/2}/I_{d/2-1}`, known exactly. [derived]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial import ConvexHull, QhullError
from scipy.special import betainc, ive

from ..inputs import as_count, as_number, as_score_matrix, as_tokens, as_weights, plain
from ..shapes import ArrayLike
from .flow import SphereFlow
from .sphere import normalised, sized

_RADII = 400  # radii at which the minimum over r is looked for: each is an upper bound, the best is near the least
_MOST_FACETS_DIMENSION = 4  # the convex hull of many points in more dimensions has too many facets
_MOST_PAIRS = 1 << 24  # distances of tokens computed at a time


class BallMasses(ABC):
    """Lower bounds on the mass of every ball with centre on the sphere, by its radius (chordal)."""

    @abstractmethod
    def __call__(self, radius: np.ndarray) -> np.ndarray:
        """Lower bounds of the mass of every ball of these radii, in the shape of ``radius``."""

    @property
    @abstractmethod
    def resolved(self) -> bool:
        """Whether some ball smaller than a half sphere is known to have mass, wherever its centre."""

    @property
    def power(self) -> tuple[float, float] | None:
        """(q, c_0) with mass at least ``c_0 r^q`` for r up to 1; None where small balls may be empty."""
        return None

    def laplace(self, kappa: float, *, shrink: float = 1.0) -> float:
        r"""Bound on the distance of the attended mean to the direction of the query, at any query.

        Parameters
        ----------
        kappa
            Inverse temperature times the length of the query.
        shrink
            Balls of radius ``shrink * r`` have the mass that is known of balls of radius r.

        Returns
        -------
        float
            :math:`\min_r \sqrt{r^2 + (2/\kappa)\log(1/m(\mathrm{shrink}\cdot r))}`, at most 2.
        """
        radii = np.geomspace(min(0.1, 1e-2 / math.sqrt(kappa)), 2.0, _RADII)
        masses = np.minimum(self(radii * shrink), 1.0)
        with np.errstate(divide="ignore"):
            squares = radii**2 - 2 / kappa * np.log(masses)
        return min(2.0, math.sqrt(float(squares.min())))


@dataclass(frozen=True)
class CapMasses(BallMasses):
    """Masses of balls under a law with a density of at least ``floor`` times the uniform one."""

    dimension: int
    """Coordinates per token, d."""
    floor: float
    """Least value of the density with respect to the uniform law."""

    def __call__(self, radius: np.ndarray) -> np.ndarray:
        radius = np.minimum(np.asarray(radius, dtype=np.float64), 2.0)
        if self.dimension == 1:
            return np.asarray(self.floor * np.where(radius >= 2, 1.0, 0.5))
        # A cap of chordal radius r has sin^2(theta/2) = r^2/4.
        half = (self.dimension - 1) / 2
        return np.asarray(self.floor * betainc(half, half, radius**2 / 4))

    @property
    def resolved(self) -> bool:
        return self.floor > 0

    @property
    def power(self) -> tuple[float, float]:
        # The mass of a cap over r^(d-1) falls or rises monotonically, so its least value on (0, 1] is at an end.
        q = self.dimension - 1
        if q == 0:
            return 0.0, 0.5 * self.floor
        ends = np.array([1e-6, 1.0])
        return float(q), float((self(ends) / ends**q).min()) * (1 - 1e-6)

    def __str__(self) -> str:
        return f"the density is at least {self.floor:.4g} times the uniform one"


@dataclass(frozen=True, eq=False)
class TokenMasses(BallMasses):
    """Masses of balls of tokens with weights, known from the largest ball without a token."""

    hole: float
    """Chordal radius such that every ball of it contains a token."""
    radii: np.ndarray
    """Ascending radii, shape (k,)."""
    least: np.ndarray
    """Lower bound of the mass of every ball of those radii, shape (k,)."""

    def __call__(self, radius: np.ndarray) -> np.ndarray:
        # The bound at the largest tabulated radius that is not larger.
        place = np.searchsorted(self.radii, np.asarray(radius), side="right") - 1
        return np.where(place >= 0, self.least[np.maximum(place, 0)], 0.0)

    @property
    def resolved(self) -> bool:
        return self.hole < math.sqrt(2)

    def __str__(self) -> str:
        if self.resolved:
            return f"every ball of radius {self.hole:.3g} contains a token"
        return "the tokens are not known to have one in every half sphere: pass density_floor for the law they sample"


def ball_masses(points: np.ndarray, weights: np.ndarray) -> TokenMasses:
    """Lower bounds on ball masses of unit points with weights that sum to one."""
    n, d = points.shape
    radii = np.geomspace(1e-3, 2.0, 200)
    if d == 2:
        angle = np.sort(np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * math.pi))
        gaps = np.diff(np.append(angle, angle[0] + 2 * math.pi))
        hole = _chord(float(gaps.max()) / 2)
    else:
        hole = _largest_hole(points)
    around = np.maximum(radii - hole, 0.0) ** 2 * (1 - 1e-12)
    least = np.full(len(radii), 1.0)
    rows = max(1, _MOST_PAIRS // n)
    for top in range(0, n, rows):
        # Squared distances from products; each pair counts from the first radius that reaches it.
        squares = np.maximum(2 - 2 * (points[top : top + rows] @ points.T), 0.0)
        own = np.arange(len(squares))
        squares[own, top + own] = 0.0
        reached = np.searchsorted(around, squares) + (len(radii) + 1) * own[:, None]
        mass = np.broadcast_to(weights, squares.shape).ravel()
        counted = np.bincount(reached.ravel(), mass, minlength=(len(radii) + 1) * len(squares))
        masses = np.cumsum(counted.reshape(len(squares), -1)[:, :-1], axis=1)
        least = np.minimum(least, masses.min(axis=0) * (1 - 1e-12))
    least[radii < hole] = 0.0
    least[radii >= 2.0] = 1.0
    return TokenMasses(hole, radii, least)


def _chord(angle: float) -> float:
    return 2 * math.sin(min(angle, math.pi) / 2)


def _largest_hole(points: np.ndarray) -> float:
    """Chordal radius of the largest cap without a token: the facet of the convex hull nearest to the origin."""
    d = points.shape[1]
    if d == 1:
        return 0.0 if len(np.unique(np.sign(points))) == 2 else 2.0
    if d > _MOST_FACETS_DIMENSION or len(points) <= d:
        return 2.0
    try:
        offsets = -ConvexHull(points).equations[:, -1]
    except QhullError:  # flat: some half sphere is empty
        return 2.0
    return math.sqrt(max(0.0, 2 - 2 * float(np.clip(offsets.min(), -1.0, 1.0)))) * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class LaplaceCheck:
    """Distance of attended means to the directions of queries, beside its bound."""

    distances: np.ndarray
    r"""Distance of the attended mean to :math:`Bx/|Bx|` per query, shape (queries,)."""
    bounds: np.ndarray
    r"""Bound from the masses of balls around :math:`Bx/|Bx|`, per query, shape (queries,)."""
    kappa: np.ndarray
    r"""Inverse temperature times :math:`|Bx|` per query, shape (queries,)."""

    @property
    def holds(self) -> bool:
        """Whether no distance exceeds its bound."""
        return bool((self.distances <= self.bounds * (1 + 1e-12)).all())

    @property
    def looseness(self) -> float:
        """Least quotient of bound and distance."""
        with np.errstate(divide="ignore"):
            return float((self.bounds / self.distances).min())

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "VIOLATED"
        return f"{verdict} at {len(self.bounds)} queries; the bound is at least {self.looseness:.3g} times the distance"


def check_laplace(
    tokens: ArrayLike,
    B: ArrayLike | None = None,
    *,
    beta: float,
    weights: ArrayLike | None = None,
    queries: ArrayLike | None = None,
) -> LaplaceCheck:
    """Distance of the attended mean of each query to the direction of the query, shape (queries,), beside its bound.

    Parameters
    ----------
    tokens
        Shape (tokens, d); normalised to length one.
    B
        Score matrix of shape (d, d), regular; the identity when left out.
    beta
        Inverse temperature, positive and finite.
    weights
        Positive weight per token, shape (tokens,); all equal when left out.
    queries
        Points whose attention is evaluated, shape (queries, d); the tokens themselves when left out.

    Returns
    -------
    LaplaceCheck
        Distances and bounds per query.

    Examples
    --------
    >>> import hardmax as hm
    >>> print(check_laplace(hm.circle_quantiles(400).points, beta=50.0).holds)
    True
    """
    tensor, _ = as_tokens(tokens)
    points = normalised(tensor.detach().to(torch.float64).cpu())
    number = as_number("beta", beta, lambda x: x > 0, "must be positive and finite", "pass for example beta=100.0")
    mass = as_weights(weights, len(points), points.device)
    mass = mass / mass.sum()
    matrix = sized("B", as_score_matrix("B", B, None, None), points.shape[1])
    asking = points if queries is None else normalised(as_tokens(queries, argument="queries")[0].detach().to(points))
    flow = SphereFlow(matrix, beta=number, few_tokens="ignore")
    mean = plain(flow.attention(points, mass, queries=asking))
    asked = (asking @ matrix.T).numpy()
    lengths = np.linalg.norm(asked, axis=1)
    directions = asked / lengths[:, None]
    kappa = number * lengths
    bounds = np.empty(len(asked))
    for k, (direction, one) in enumerate(zip(directions, kappa, strict=True)):
        squares = np.maximum(2 - 2 * (points.numpy() @ direction), 0.0)
        order = np.argsort(squares)
        # The best radius is the distance of a token.
        bounds[k] = math.sqrt(
            float((squares[order] - 2 / one * np.log(np.minimum(np.cumsum(mass.numpy()[order]), 1.0))).min())
        )
    return LaplaceCheck(np.linalg.norm(mean - directions, axis=1), bounds, kappa)


def laplace_error(d: int, kappa: float) -> float:
    r"""Distance of the attended mean to the direction of the query for the uniform law, :math:`1 - R_d(\kappa)`.

    Parameters
    ----------
    d
        Coordinates per token.
    kappa
        Inverse temperature times the length of the query, positive.

    Returns
    -------
    float
        Between 0 and 1, about (d - 1)/(2 kappa) at low temperature.

    Examples
    --------
    >>> round(laplace_error(3, 10.0), 9)  # 1 - coth(10) + 1/10
    0.099999996
    """
    count = as_count("d", d, least=1)
    number = as_number("kappa", kappa, lambda x: x > 0, "must be positive and finite", "pass for example kappa=100.0")
    if number > 1e6 * count**2:  # the difference would cancel; the expansion is exact to rounding there
        return (count - 1) / (2 * number) * (1 - (count - 3) / (4 * number))
    return float(1 - ive(count / 2, number) / ive(count / 2 - 1, number))
