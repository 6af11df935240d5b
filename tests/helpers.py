"""Lists of everything that shares a contract: a new layer is tested by adding one line here. Sizes of properties."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import settings

import hardmax as hm
from hardmax.attention import reference

SHEARED = [[2.0, 1.0], [1.0, 1.0]]

PLANE_LAYERS: list[hm.AbstractLayer] = [
    hm.HardmaxLayer(alpha=0.5),
    hm.HardmaxLayer(alpha=2.0, A=SHEARED),
    hm.HardmaxLayer(alpha=0.5, A=[[0.0, 1.0], [-1.0, 0.0]]),
    hm.HardmaxLayer(alpha=Fraction(1, 3), tolerance="exact"),
    hm.HardmaxLayer(alpha=0.5, Q=[[1.0, 0.5]], K=[[2.0, -1.0]]),
    hm.HardmaxLayer(alpha=1.0, V=[[0.0, -1.0], [1.0, 0.0]]),
    hm.SoftmaxLayer(alpha=0.5, beta=3.0),
    hm.SoftmaxLayer(alpha=1.5, A=SHEARED, beta=1e6, V=[[0.5, 0.0], [0.0, 2.0]]),
    hm.FeedForwardLayer(U=[[1.0, -1.0], [0.5, 2.0], [1.0, 1.0]], b=[0.1, -0.2, 0.0], W=[[1.0, 0, 2], [0, 1, -1]]),
    hm.Block(hm.SoftmaxLayer(beta=2.0), hm.FeedForwardLayer(U=[[1.0, 0.0]], b=[0.0], W=[[0.0], [1.0]], eta=0.5)),
]


def examples(number: int) -> int:
    """Number of examples of a slow property: a third in `make test`, all of them in `make slow` and plain `pytest`."""
    return -(-number // 3) if settings().derandomize else number


def spd(rng: np.random.Generator, d: int) -> np.ndarray:
    """A random symmetric positive definite matrix."""
    root = rng.normal(size=(d, d)) / np.sqrt(d)
    return root @ root.T + 0.3 * np.eye(d)


def exact_layers(tokens: np.ndarray, A: np.ndarray, alpha: float, depth: int) -> list[np.ndarray]:
    """The plain-loop oracle in rationals: the tokens at layers 0 … depth, rounded once."""
    Z = [[Fraction(x) for x in row] for row in np.asarray(tokens, dtype=float).tolist()]
    matrix = [[Fraction(x) for x in row] for row in np.asarray(A, dtype=float).tolist()]
    states = []
    for _ in range(depth + 1):
        states.append(np.array([[float(x) for x in row] for row in Z]))
        Z = reference.hardmax_step(matrix, Z, Fraction(alpha))
    return states
