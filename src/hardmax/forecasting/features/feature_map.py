"""Features of a delay window for one readout: lags, monomials, attention, reservoir."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import comb

import numpy as np
import numpy.typing as npt

from ..data.delay_windows import Embedding, flat_windows
from ..protocol import FloatArray
from .lag_network import LagNetwork
from .reservoir import Reservoir

_Recipe = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def monomial_count(coordinates: int, degree: int) -> int:
    """Number of monomials of degree 0 to ``degree``."""
    return comb(coordinates + degree, degree)


def _recipe(coordinates: int, degree: int) -> _Recipe:
    """Index pairs per degree: each monomial is one of the previous degree times one coordinate."""
    recipe: _Recipe = []
    previous: list[tuple[int, ...]] = [(j,) for j in range(coordinates)]
    for _ in range(2, degree + 1):
        parents, factors, current = [], [], []
        for parent, exponents in enumerate(previous):
            for j in range(exponents[-1], coordinates):
                parents.append(parent)
                factors.append(j)
                current.append((*exponents, j))
        recipe.append((np.array(parents, dtype=np.int64), np.array(factors, dtype=np.int64)))
        previous = current
    return recipe


class Monomials:
    """Monomials of degree 2 to ``degree``, in increasing degree."""

    def __init__(self, coordinates: int, degree: int) -> None:
        self.coordinates = coordinates
        self.degree = degree
        self._steps = _recipe(coordinates, degree)

    @property
    def count(self) -> int:
        """Number of monomials."""
        return sum(len(parents) for parents, _ in self._steps)

    def __call__(self, coordinates: FloatArray) -> FloatArray:
        """Monomials of each row, shape (rows, count)."""
        parts, current = [], coordinates
        for parents, factors in self._steps:
            current = current[:, parents] * coordinates[:, factors]
            parts.append(current)
        return np.concatenate(parts, axis=1) if parts else np.empty((len(coordinates), 0))


@dataclass(frozen=True)
class FeatureMap:
    """Concatenation of a constant, linear coordinates, monomials of coordinates, networks and a reservoir.

    With ``linear`` alone this is time-delayed DMD; with ``polynomial`` next-generation reservoir computing; with
    ``networks`` the time-delayed transformer; with ``reservoir`` it contains the echo state network.
    """

    channels: int
    linear: Embedding | None = None
    polynomial: Embedding | None = None
    degree: int = 1
    tokens: Embedding | None = None
    networks: tuple[LagNetwork, ...] = ()
    scales: tuple[FloatArray, ...] = field(default=())
    token_lags: tuple[int, ...] = ()
    reservoir: Reservoir | None = None

    @cached_property
    def window(self) -> int:
        """Number of samples in the window of these features."""
        parts = (self.linear, self.polynomial, self.tokens, self.reservoir)
        return max((part.window for part in parts if part is not None), default=1)

    @cached_property
    def _monomials(self) -> Monomials:
        size = 0 if self.polynomial is None else self.polynomial.size
        return Monomials(size, self.degree if size else 1)

    @cached_property
    def is_linear(self) -> bool:
        """Whether the features are the constant and linear coordinates only: TD-DMD."""
        return not self.networks and self.reservoir is None and (self.polynomial is None or self.degree == 1)

    @cached_property
    def is_polynomial_of_lags(self) -> bool:
        """Whether the features are monomials of lags only: NG-RC."""
        only = not self.networks and self.reservoir is None and self.polynomial is not None and self.degree > 1
        return only and self.polynomial is not None and self.polynomial.matrix is None

    @cached_property
    def size(self) -> int:
        """Number of features."""
        return (
            1
            + (self.linear.size if self.linear else 0)
            + (self.polynomial.size if self.polynomial else 0)
            + self._monomials.count
            + sum(network.size for network in self.networks)
            + (self.reservoir.size if self.reservoir else 0)
        )

    @property
    def inner_parameters(self) -> int:
        """Number of trained weights inside the features; those of a reservoir are random."""
        return sum(network.parameters for network in self.networks)

    def __call__(self, flat: FloatArray, states: FloatArray | None = None) -> FloatArray:
        """Features of each flattened window, shape (rows, size); ``states`` are those of the reservoir."""
        parts = [np.ones((len(flat), 1))]
        if self.linear is not None:
            parts.append(self.linear(flat))
        if self.polynomial is not None:
            coordinates = self.polynomial(flat)
            parts += [coordinates, self._monomials(coordinates)]
        if self.tokens is not None and self.networks:
            tokens = self.tokens(flat)
            parts += [network(tokens) * scale for network, scale in zip(self.networks, self.scales, strict=True)]
        if states is not None:
            parts.append(states)
        return np.concatenate(parts, axis=1)

    def along(self, trajectory: FloatArray) -> FloatArray:
        """Features of every window of a trajectory that has a successor, shape (samples - window, size)."""
        states = None
        if self.reservoir is not None:
            states = self.reservoir.run(trajectory)[self.window - 1 : -1]
        return self(flat_windows(trajectory, self.window), states)
