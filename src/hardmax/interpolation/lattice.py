"""The tokens over one common denominator, as arrays: what the searches for good directions compute with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from flint import fmpq

from .data import DataSet
from .numbers import Vector, dot

_SAFE = 2**62


class Lattice:
    """All tokens as integers over ``denominator``; int64 where products stay small, Python integers otherwise."""

    def __init__(self, data: DataSet) -> None:
        self.data = data
        self.denominator = math.lcm(*{int(c.q) for x in data.inputs for token in x for c in token})
        whole = [[int(c.p) * (self.denominator // int(c.q)) for c in token] for x in data.inputs for token in x]
        self.sizes = np.array([len(x) for x in data.inputs])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self.owner = np.repeat(np.arange(len(data)), self.sizes)
        self.largest = max(max(abs(c) for c in token) for token in whole)
        small = self.largest < 2**31
        self.points = np.array(whole, dtype=np.int64 if small else object)

    @cached_property
    def floats(self) -> np.ndarray:
        """The tokens in float64, scaled to about one, for ranking candidates only."""
        scale = max(self.largest, 1)
        if self.points.dtype == np.int64:
            return np.asarray(self.points / scale, dtype=np.float64)
        return np.array([[c / scale for c in row] for row in self.points.tolist()], dtype=np.float64)

    def project(self, direction: Sequence[int]) -> np.ndarray:
        """The integers ``<direction, point>``, exactly."""
        reach = self.largest * sum(abs(u) for u in direction)
        if reach < _SAFE and self.points.dtype == np.int64:
            return np.asarray(self.points @ np.array(direction, dtype=np.int64))
        return np.asarray(self.points.astype(object) @ np.array(direction, dtype=object))

    def levels(self, direction: Vector) -> list[list[fmpq]]:
        """``<direction, x>`` for every token, sequence by sequence."""
        return [[dot(direction, token) for token in x] for x in self.data.inputs]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of a value per token over each sequence (rows of tokens, any columns)."""
        if values.dtype == np.int64 and len(values) and int(np.abs(values).max()) * int(self.sizes.max()) >= _SAFE:
            values = values.astype(object)
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=0))
