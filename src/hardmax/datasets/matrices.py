"""Score matrices A by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import InputError
from ..randomness import seeded

MATRICES: dict[str, str] = {
    "identity": "the identity",
    "paper": "((2, 1), (1, 1)), of Figure 1 of the clustering paper; two coordinates only",
    "random-spd": "a random rotation with eigenvalues from 1/4 to 4: symmetric positive definite",
    "anisotropic": "diagonal, from 1 down to 1/10: the first coordinate counts most",
    "random": "independent standard normal entries: not symmetric, outside of the theorem",
    "rotation": "a quarter turn in each pair of coordinates; even numbers of coordinates, outside of the theorem",
}
"""The matrices by name, each with a sentence."""


def make_matrix(name: str, d: int, random_state: int | np.random.Generator | None) -> np.ndarray:
    """The named score matrix for ``d`` coordinates (see :data:`MATRICES`), in float64.

    >>> make_matrix("paper", 2, random_state=None)
    array([[2., 1.],
           [1., 1.]])
    """
    from ..inputs import as_count  # imports torch, which the command line's help must not

    if name not in _MATRIX_MAKERS:
        raise InputError("name", repr(name), "is not a known matrix", f"choose among {', '.join(MATRICES)}")
    return _MATRIX_MAKERS[name](seeded(random_state).generator, as_count("d", d, least=1))


def _identity(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.eye(d)


def _paper(rng: np.random.Generator, d: int) -> np.ndarray:
    if d != 2:
        raise InputError("d", d, "must be 2 for the paper's matrix", 'pass d=2, or name="random-spd"')
    return np.array([[2.0, 1.0], [1.0, 1.0]])


def _random_spd(rng: np.random.Generator, d: int) -> np.ndarray:
    rotation, triangle = np.linalg.qr(rng.standard_normal((d, d)))
    rotation = rotation * np.sign(np.diag(triangle))  # uniform over all rotations
    product = (rotation * 4.0 ** rng.uniform(-1.0, 1.0, d)) @ rotation.T
    return np.asarray((product + product.T) / 2)


def _anisotropic(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.diag(np.geomspace(1.0, 0.1, d))


def _random(rng: np.random.Generator, d: int) -> np.ndarray:
    return rng.standard_normal((d, d))


def _rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    if d % 2:
        raise InputError("d", d, "must be even for a quarter turn", 'pass an even d, or name="random"')
    return np.kron(np.eye(d // 2), np.array([[0.0, -1.0], [1.0, 0.0]]))


_MATRIX_MAKERS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "identity": _identity,
    "paper": _paper,
    "random-spd": _random_spd,
    "anisotropic": _anisotropic,
    "random": _random,
    "rotation": _rotation,
}
