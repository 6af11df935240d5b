"""Monomials of a few coordinates, degree by degree, each from one of the degree below."""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from .protocol import FloatArray

_Recipe = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def monomial_count(coordinates: int, degree: int) -> int:
    """How many monomials of degree 0 … ``degree`` there are."""
    return comb(coordinates + degree, degree)


def _recipe(coordinates: int, degree: int) -> _Recipe:
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
    """All monomials of degree 2 … ``degree``, ordered by degree; those of a lower degree come first."""

    def __init__(self, coordinates: int, degree: int) -> None:
        self.coordinates = coordinates
        self.degree = degree
        self._steps = _recipe(coordinates, degree)

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(parents) for parents, _ in self._steps)

    def __call__(self, coordinates: FloatArray) -> FloatArray:
        """The monomials of each row."""
        parts, current = [], coordinates
        for parents, factors in self._steps:
            current = current[:, parents] * coordinates[:, factors]
            parts.append(current)
        return np.concatenate(parts, axis=1) if parts else np.empty((len(coordinates), 0))
