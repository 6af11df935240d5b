r"""Tokens that represent a law on the sphere, and the number of tokens per attention kernel.

Around the direction of a query, attention has the weights :math:`e^{-\kappa|y|^2/2}`, :math:`\kappa = \beta|Bx|`, on
a (d-1)-dimensional tangent space. Of n tokens spread evenly over the sphere of area
:math:`2\pi^{d/2}/\Gamma(d/2)` the number that have weight is therefore about

.. math:: N_k = n\,(2\pi/\kappa)^{(d-1)/2}\,\frac{\Gamma(d/2)}{2\pi^{d/2}}
              = n\,\frac{\Gamma(d/2)\,2^{d/2-1}}{\sqrt{2\pi}}\,\kappa^{-(d-1)/2}.

The limits of many tokens and of low temperature do not commute. Below about ten tokens per kernel the run shows the
hardmax rule among few tokens, not the mean field; some tokens attend only to themselves and never move.

Deterministic quantiles on the circle and Fibonacci points on the sphere have no sampling noise, so a few hundred of
them resolve what thousands of random tokens do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.polynomial import legendre

from ..errors import InputError
from ..inputs import as_count, as_number, as_score_matrix, as_tokens
from ..outcomes import counted
from ..randomness import seeded
from ..shapes import ArrayLike, Square, Tokens
from .sphere import normalised, sized

ENOUGH = 10.0  # tokens per kernel; with fewer, runs show the hardmax rule among few tokens


class FewTokensWarning(UserWarning):
    """Warning that fewer than ten tokens share an attention kernel, too few to represent a measure."""


@dataclass(frozen=True)
class Occupancy:
    """Number of tokens per attention kernel, for tokens spread evenly over the sphere."""

    tokens: int
    """Number of tokens, n."""
    dimension: int
    """Coordinates per token, d."""
    beta: float
    """Inverse temperature."""
    smallest: float
    """N_k at the token whose kernel is narrowest."""
    median: float
    """Median of N_k over the tokens."""

    @property
    def enough(self) -> int:
        """Number of tokens with which the narrowest kernel contains ten."""
        return math.ceil(self.tokens * ENOUGH / self.smallest * (1 - 1e-12))

    def warning(self) -> str:
        """Text of the warning for too few tokens.

        Returns
        -------
        str
            One sentence with the numbers and what to change.
        """
        return (
            f"only {self.smallest:.3g} tokens share an attention kernel (n = {self.tokens}, d = {self.dimension}, "
            f"beta = {self.beta:g}): the run shows few tokens, not the mean field; use n >= {self.enough}, "
            'lower beta, or pass few_tokens="ignore" to study these tokens themselves'
        )


def occupancy_of(tokens: Tokens, B: Square, beta: float) -> Occupancy:
    """Occupancy of validated tokens."""
    n, d = tokens.shape
    kappa = (beta * (tokens @ B.T).norm(dim=1)).clamp_min(1e-300)
    log_count = math.log(n) + math.lgamma(d / 2) + (d / 2 - 1) * math.log(2) - 0.5 * math.log(2 * math.pi)
    counts = torch.exp(log_count - 0.5 * (d - 1) * kappa.log())
    # At high temperature the Gaussian is wider than the sphere; no kernel contains more than all tokens.
    counts = counts.clamp_max(n)
    counts = counts.detach()
    smallest = max(float(counts.min()), 1e-300)
    return Occupancy(n, d, beta, smallest, float(counts.median()))


def kernel_occupancy(tokens: ArrayLike, B: ArrayLike | None = None, *, beta: float) -> Occupancy:
    """Number of tokens per attention kernel at inverse temperature ``beta``.

    Parameters
    ----------
    tokens
        Shape (tokens, d); normalised to length one.
    B
        Score matrix of shape (d, d); the identity when left out.
    beta
        Inverse temperature, positive and finite.

    Returns
    -------
    Occupancy
        Smallest and median number over the tokens, and how many tokens would suffice.

    Examples
    --------
    >>> import numpy as np
    >>> found = kernel_occupancy(np.eye(2), beta=100.0)
    >>> round(found.smallest, 4), found.enough
    (0.0798, 251)
    """
    tensor, _ = as_tokens(tokens)
    points = normalised(tensor.to(torch.float64))
    number = as_number("beta", beta, lambda x: x > 0, "must be positive and finite", "pass for example beta=100.0")
    matrix = sized("B", as_score_matrix("B", B, None, None), points.shape[1]).to(points.device)
    return occupancy_of(points, matrix, number)


Density = Callable[[np.ndarray], np.ndarray]

_PANELS, _NODES = 512, 8  # Gauss panels of the circle and nodes per panel
_MOST_PROPOSALS = 200_000_000  # of rejection sampling; a density that needs more is refused


@dataclass(frozen=True, eq=False)
class Measure:
    """Points on the sphere with weights that sum to one."""

    points: np.ndarray
    """Shape (points, d)."""
    weights: np.ndarray
    """Shape (points,), summing to one."""
    seed: int | None = None
    """Seed of a random sample; None for deterministic points."""

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        even = "equal" if bool(np.ptp(self.weights) <= 1e-12 * self.weights.max()) else "different"
        n, d = self.points.shape
        return f"<Measure of {counted(n, 'point')} of {even} weights in {counted(d, 'dimension')}>"

    def reweighted(self, density: Density) -> Measure:
        """Measure with weights multiplied by a density and normalised; points of density zero are left out.

        Parameters
        ----------
        density
            Function from points of shape (n, d) to non-negative values of shape (n,).

        Returns
        -------
        Measure
            Points of positive density.
        """
        values = checked_values(density, self.points)
        kept = values > 0
        if not kept.any():
            raise InputError("density", "zero at every point", "must be positive somewhere", "pass another density")
        mass = self.weights[kept] * values[kept]
        return Measure(self.points[kept], mass / mass.sum(), self.seed)


def checked_values(density: Density, at: np.ndarray) -> np.ndarray:
    """Values of a density at all points at once, shape (points,), finite and not negative."""
    values = np.asarray(density(at), dtype=np.float64)
    count = at.shape[0]
    if values.shape != (count,) or not np.isfinite(values).all() or bool((values < 0).any()):
        raise InputError(
            "density",
            f"values of shape {values.shape}",
            f"must give {count} finite values that are not negative",
            "it is called with all points at once: angles (n,) on the circle, points (n, d) elsewhere",
        )
    return values


def _even(points: np.ndarray, seed: int | None = None) -> Measure:
    return Measure(points, np.full(len(points), 1 / len(points)), seed)


def on_circle(angles: np.ndarray) -> np.ndarray:
    """Points of the unit circle at these angles, shape (n, 2)."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def circle_quantiles(n: int, density: Density | None = None) -> Measure:
    """Points of equal weight on the circle, shape (n, 2): the quantiles (i + 1/2)/n of a density of the angle.

    Parameters
    ----------
    n
        Number of points.
    density
        Function from angles of shape (k,), in radians from 0 to 2 pi, to non-negative values of shape (k,); constant
        when left out. It need not be normalised.

    Returns
    -------
    Measure
        n points with weights 1/n.

    Examples
    --------
    >>> import numpy as np
    >>> circle_quantiles(4).points.round(3).tolist()[0]
    [0.707, 0.707]
    >>> half = circle_quantiles(1000, lambda angle: 1 + np.sin(angle) / 2).points[:, 1] > 0
    >>> round(float(half.mean()), 3)  # 1/2 + 1/(2 pi)
    0.659
    """
    count = as_count("n", n, least=1)
    wanted = (np.arange(count) + 0.5) / count
    if density is None:
        return _even(on_circle(2 * math.pi * wanted))
    width = 2 * math.pi / _PANELS
    nodes, quadrature = legendre.leggauss(_NODES)
    angles = width * (np.arange(_PANELS)[:, None] + 0.5 * (1 + nodes))
    values = checked_values(density, angles.ravel()).reshape(_PANELS, _NODES)
    masses = 0.5 * width * (values @ quadrature)
    total = float(masses.sum())
    if total <= 0:
        raise InputError("density", "zero everywhere", "must be positive somewhere", "pass another density")
    edges = np.concatenate([[0.0], np.cumsum(masses)]) / total
    panel = np.clip(np.searchsorted(edges, wanted, side="right") - 1, 0, _PANELS - 1)
    # Inside a panel the density is a polynomial to rounding; its integral is inverted by bisection, then Newton.
    analysis = legendre.legvander(nodes, _NODES - 1).T * quadrature * (np.arange(_NODES) + 0.5)[:, None]
    mass = legendre.legint(analysis @ values[panel].T, lbnd=-1.0) * (0.5 * width / total)
    low, high = -np.ones(count), np.ones(count)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = edges[panel] + legendre.legval(middle, mass, tensor=False) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return _even(on_circle(width * (panel + 0.5 * (1 + 0.5 * (low + high)))))


def fibonacci_sphere(n: int, *, axis: ArrayLike = (0.0, 0.0, 1.0)) -> Measure:
    """Points spread evenly over the sphere in three dimensions, shape (n, 3), along a spiral with the golden angle.

    A spiral around an axis of symmetry of the matrices is more regular than a sample; tilt it a little where the flow
    should break the symmetry.

    Parameters
    ----------
    n
        Number of points.
    axis
        Axis of the spiral, three numbers, not all zero.

    Returns
    -------
    Measure
        n points with weights 1/n.

    Examples
    --------
    >>> points = fibonacci_sphere(1000).points
    >>> bool(abs(points.mean(axis=0)).max() < 1e-3)
    True
    """
    count = as_count("n", n, least=1)
    height = 1 - (2 * np.arange(count) + 1) / count
    angle = math.pi * (3 - math.sqrt(5)) * np.arange(count)
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    direction = np.asarray(axis, dtype=np.float64)
    if direction.shape != (3,) or not np.isfinite(direction).all() or not direction.any():
        raise InputError("axis", axis, "must be three numbers, not all zero", "pass for example axis=(0, 0, 1)")
    if direction[0] == 0 and direction[1] == 0:
        return _even(points * np.sign(direction[2]))
    # The rotation in the plane of both axes that takes the third coordinate axis to ``direction``.
    x, y, z = direction / np.linalg.norm(direction)
    turn = np.array([[z, 0, x], [0, z, y], [-x, -y, z]])
    turn[:2, :2] += np.outer([-y, x], [-y, x]) / (1 + z) if z > -1 else 0.0
    return _even(points @ turn.T)


def sphere_quadrature(rings: int, around: int) -> Measure:
    """Quadrature on the sphere in three dimensions: Gauss points in height times equal angles.

    Polynomials of degree up to ``min(2 * rings, around) - 1`` are integrated exactly.

    Parameters
    ----------
    rings
        Number of Gauss points in height.
    around
        Number of equal angles per ring.

    Returns
    -------
    Measure
        ``rings * around`` points with the weights of the quadrature.

    Examples
    --------
    >>> rule = sphere_quadrature(8, 16)
    >>> bool(abs((rule.weights * rule.points[:, 2] ** 4).sum() - 1 / 5) < 1e-15)
    True
    """
    height, weight = legendre.leggauss(as_count("rings", rings, least=1))
    angle = 2 * math.pi * np.arange(as_count("around", around, least=1)) / around
    radius = np.sqrt(1 - height**2)[:, None]
    across = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    points = np.concatenate([across, np.repeat(height[:, None, None], around, axis=1)], axis=2)
    return Measure(points.reshape(-1, 3), np.repeat(weight / (2 * around), around))


def sphere_sample(
    n: int,
    d: int,
    density: Density | None = None,
    *,
    random_state: int | np.random.Generator | None = None,
) -> Measure:
    """Random points on the unit sphere in d dimensions, shape (n, d): uniform, or by a density.

    Parameters
    ----------
    n
        Number of points.
    d
        Dimension.
    density
        Function from points of shape (k, d) to non-negative values of shape (k,), sampled by rejection; constant when
        left out. It need not be normalised.
    random_state
        Seed or generator; a seed is drawn and recorded when left out.

    Returns
    -------
    Measure
        n points with weights 1/n, and the seed.
    """
    count, dimension = as_count("n", n, least=1), as_count("d", d, least=1)
    source = seeded(random_state)
    rng = source.generator
    if density is None:
        return _even(_random_directions(rng, count, dimension), source.seed)
    # The largest value is estimated, and raised if a later proposal exceeds it; accepted points are then discarded.
    highest = 1.2 * float(checked_values(density, _random_directions(rng, 4096, dimension)).max())
    found: list[np.ndarray] = []
    have = proposed = 0
    while have < count:
        points = _random_directions(rng, max(1024, 2 * (count - have)), dimension)
        values = checked_values(density, points)
        if values.max() > highest:
            highest, found, have = 1.2 * float(values.max()), [], 0
            continue
        kept = points[rng.random(len(points)) * highest < values]
        found.append(kept)
        have += len(kept)
        proposed += len(points)
        if proposed > _MOST_PROPOSALS:
            raise InputError(
                "density",
                f"{have} of {proposed} proposals accepted",
                "is too narrow to sample by rejection",
                "pass a smoother density, or sphere_sample(n, d).reweighted(density)",
            )
    return _even(np.concatenate(found)[:count], source.seed)


def _random_directions(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    vectors = rng.standard_normal((count, dimension))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
