r"""Spaces in which tokens move: projection onto the space, tangent vectors, and Brownian motion.

Brownian motion with amplitude :math:`\sigma` on a space is the process with the generator
:math:`\tfrac{\sigma^2}{2}\Delta`. On the unit sphere it is the solution of the Stratonovich equation
:math:`dX = \sigma P_X \circ dW`, with W a Brownian motion of the surrounding space and :math:`P_x = I - x x^\top`; the
derivation of its step is in ``docs/devdocs/noise.rst``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from ..errors import InputError
from ..shapes import Tokens

_LARGEST_ANGLE_SQUARED = 4.0  # mean square angle of a Brownian step, about 115 degrees


class AbstractSpace(ABC):
    """Interface of a space in which tokens move."""

    per_coordinate: ClassVar[bool] = False
    """Whether noise may have a different amplitude in each coordinate."""

    @abstractmethod
    def project(self, points: Tokens) -> Tokens:
        """Points of the space near the given ones, shape (tokens, d).

        Parameters
        ----------
        points
            Float64 tensor of shape (tokens, d).

        Returns
        -------
        Tensor
            Shape (tokens, d); points of the space are returned unchanged, up to rounding.
        """

    @abstractmethod
    def tangent(self, points: Tokens, vectors: Tokens) -> Tokens:
        """Tangential part of each vector at its point, shape (tokens, d).

        Parameters
        ----------
        points
            Points of the space, shape (tokens, d).
        vectors
            Vectors of the surrounding space, such as increments of its Brownian motion, shape (tokens, d).

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """

    @abstractmethod
    def brownian(self, points: Tokens, increments: Tokens, variance: float) -> Tokens:
        """Points after a step of Brownian motion, in law up to the third power of the variance, shape (tokens, d).

        Parameters
        ----------
        points
            Points of the space, shape (tokens, d).
        increments
            Independent normal numbers of this variance, shape (tokens, d).
        variance
            Variance of each increment: the square of the amplitude times the duration. Spaces that need one number
            ignore it where amplitudes differ between coordinates.

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """

    def largest_variance(self, dimension: int) -> float:
        """Largest variance of increments in one step of Brownian motion for which the step is accurate.

        Parameters
        ----------
        dimension
            Number of coordinates of a point.

        Returns
        -------
        float
            Infinite where every step is exact.
        """
        return math.inf

    @abstractmethod
    def curvature(self, points: Tokens, velocities: Tokens) -> Tokens:
        """Acceleration that keeps a freely moving point in the space, shape (tokens, d).

        Parameters
        ----------
        points
            Points of the space, shape (tokens, d).
        velocities
            Tangent vectors at the points, shape (tokens, d).

        Returns
        -------
        Tensor
            Second derivative of the geodesic through each point with this velocity, shape (tokens, d).
        """


@dataclass(frozen=True)
class EuclideanSpace(AbstractSpace):
    """All of R^d: nothing is projected, and Brownian motion adds its increments."""

    per_coordinate = True

    def project(self, points: Tokens) -> Tokens:
        return points

    def tangent(self, points: Tokens, vectors: Tokens) -> Tokens:
        return vectors

    def brownian(self, points: Tokens, increments: Tokens, variance: float) -> Tokens:
        return points + increments

    def curvature(self, points: Tokens, velocities: Tokens) -> Tokens:
        return torch.zeros_like(points)

    def __str__(self) -> str:
        return "Euclidean space"


@dataclass(frozen=True)
class UnitSphere(AbstractSpace):
    r"""Unit sphere of R^d.

    A Brownian step follows the geodesic in the direction of the tangential increment v, for the length
    :math:`|v|\, e^{-(d-2)s/12}` with s the variance. The factor compensates the curvature: the law is that of Brownian
    motion up to :math:`O(s^3)`, and exact on the circle.
    """

    def project(self, points: Tokens) -> Tokens:
        lengths: Tokens = torch.linalg.vector_norm(points, dim=1, keepdim=True)
        return points / lengths

    def tangent(self, points: Tokens, vectors: Tokens) -> Tokens:
        return vectors - (vectors * points).sum(dim=1, keepdim=True) * points

    def brownian(self, points: Tokens, increments: Tokens, variance: float) -> Tokens:
        # Devdocs, "Noise": twelve is twice the six of the second-order term of the heat kernel's mean square distance.
        steps = self.tangent(points, increments) * math.exp(-max(points.shape[1] - 2, 0) * variance / 12)
        lengths: Tokens = torch.linalg.vector_norm(steps, dim=1, keepdim=True)
        # sin(r)/r, with its limit 1 at a step of length zero; the projection removes rounding errors only.
        return self.project(torch.cos(lengths) * points + torch.sinc(lengths / math.pi) * steps)

    def largest_variance(self, dimension: int) -> float:
        # Measured: up to here the mean of <x_0, x_1> after two half steps is right to 0.02; beyond, tokens would be
        # spread over the whole sphere within one step.
        return _LARGEST_ANGLE_SQUARED / (dimension - 1) if dimension > 1 else math.inf

    def curvature(self, points: Tokens, velocities: Tokens) -> Tokens:
        return -(velocities**2).sum(dim=1, keepdim=True) * points

    def __str__(self) -> str:
        return "the unit sphere"


def directions_of(tokens: Tokens) -> Tokens:
    """Tokens of any size scaled to length one, shape (tokens, d); raises an InputError where a token is zero."""
    largest = tokens.abs().amax(dim=1, keepdim=True)
    if bool((largest == 0).any()):
        where = f"a zero token at index {int(largest[:, 0].argmin())}"
        raise InputError("tokens", where, "must not be zero: it has no direction on the sphere", "leave it out")
    return UnitSphere().project(tokens / largest)  # squares of scaled coordinates neither overflow nor vanish
