"""A hardmax run in fractions, written from the definitions alone, and the systems that it is tried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np
from hypothesis import strategies as st

import hardmax as hm
from hardmax.attention import reference

ALPHAS = [Fraction(1, 20), Fraction(1, 7), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3)]

Point = tuple[Fraction, ...]


def fractions(array: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in np.asarray(array, dtype=float).tolist()]


def dot(u: Sequence[Fraction], v: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(u, v, strict=True)), Fraction(0))


@dataclass(frozen=True, eq=False)
class System:
    """Tokens, A and alpha, and some layers of the map in fractions."""

    tokens: np.ndarray
    A: np.ndarray
    alpha: Fraction
    depth: int

    def layer(self, *, exact: bool) -> hm.HardmaxLayer:
        if exact:
            return hm.HardmaxLayer(self.alpha, self.A, tolerance="exact")
        return hm.HardmaxLayer(float(self.alpha), self.A)

    @cached_property
    def matrix(self) -> list[list[Fraction]]:
        return fractions(self.A)

    @cached_property
    def states(self) -> list[list[Point]]:
        """The tokens at layers 0 … depth."""
        found = [fractions(self.tokens)]
        for _ in range(self.depth):
            found.append(reference.hardmax_step(self.matrix, found[-1], self.alpha))
        return [[tuple(z) for z in state] for state in found]

    @cached_property
    def heard(self) -> list[list[list[int]]]:
        """The sets C_i at layers 0 … depth."""
        return [[reference.attended(self.matrix, Z, i) for i in range(len(Z))] for Z in self.states]

    def query(self, z: Point) -> Point:
        return tuple(dot(row, z) for row in self.matrix)

    def squared_norm(self, z: Point) -> Fraction:
        return dot(self.query(z), z)

    def leads(self, k: int, i: int) -> bool:
        """Definition 1.1 for points with a multiplicity: all attended points are at the position of i."""
        Z = self.states[k]
        return all(Z[j] == Z[i] for j in self.heard[k][i])

    def points_heard(self, k: int, i: int) -> set[Point]:
        return {self.states[k][j] for j in self.heard[k][i]}

    def __repr__(self) -> str:
        return f"System({self.tokens.tolist()}, A={self.A.tolist()}, alpha={self.alpha}, depth={self.depth})"


def _grid(d: int, least: int, most: int) -> st.SearchStrategy[np.ndarray]:
    point = st.lists(st.integers(-3, 3), min_size=d, max_size=d)
    return st.lists(point, min_size=least, max_size=most).map(lambda rows: np.array(rows, dtype=float))


@st.composite
def _tie_rich_tokens(draw: st.DrawFn, d: int) -> np.ndarray:
    tokens = draw(_grid(d, 1, 5))
    for change in draw(st.lists(st.sampled_from(["both signs", "mirror", "orders", "repeat", "zero"]), max_size=3)):
        if change == "both signs":
            tokens = np.concatenate([tokens, -tokens])
        elif change == "mirror":
            tokens = np.concatenate([tokens, tokens * np.where(np.arange(d) == 0, -1.0, 1.0)])
        elif change == "orders":
            tokens = np.concatenate([tokens[:, list(order)] for order in permutations(range(d))])
        elif change == "repeat":
            tokens = np.concatenate([tokens, tokens[:2]])
        else:
            tokens = np.concatenate([tokens, np.zeros((1, d))])
        tokens = tokens[:14]
    return tokens


@st.composite
def positive_definite(draw: st.DrawFn, d: int) -> np.ndarray:
    """Symmetric positive definite with small rational entries: the identity, diagonal, or B B^T + c I."""
    shape = draw(st.sampled_from(["identity", "diagonal", "full"]))
    if shape == "identity":
        return np.eye(d)
    if shape == "diagonal":
        return np.diag(draw(st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]), min_size=d, max_size=d)))
    root = draw(_grid(d, d, d)) / draw(st.sampled_from([1.0, 2.0, 4.0]))
    return root @ root.T + draw(st.sampled_from([0.25, 1.0])) * np.eye(d)


@st.composite
def tie_rich(draw: st.DrawFn, depth: int = 6) -> System:
    """Small integers, often symmetric, with repeats and the zero token."""
    d = draw(st.integers(1, 3))
    return System(draw(_tie_rich_tokens(d)), draw(positive_definite(d)), draw(st.sampled_from(ALPHAS)), depth)


@st.composite
def generic(draw: st.DrawFn, depth: int = 6) -> System:
    """Tokens with few binary digits in no particular position, and a random A."""
    d = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tokens = np.round(rng.normal(size=(draw(st.integers(1, 12)), d)) * 1024) / 1024
    return System(tokens, draw(positive_definite(d)), draw(st.sampled_from(ALPHAS)), depth)
