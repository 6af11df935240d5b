"""Tokens drawn from named laws, and score matrices by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import InputError
from ..randomness import seeded
from ..scalars import as_count

LAWS: dict[str, str] = {
    "gaussian": "independent standard normal coordinates",
    "uniform-cube": "uniform in the cube [-1, 1]^d",
    "ball": "uniform in the unit ball",
    "sphere": "uniform on the unit sphere",
    "circle": "evenly spaced on the unit circle from a random angle, two coordinates only",
    "grid": "distinct non-zero points of an integer grid, with many exact ties",
    "clusters": "a mixture of eight tight normal clouds",
    "heavy-tails": "Student's t with three degrees of freedom, so that a few tokens are far out",
}
"""The laws by name, each with a sentence."""

# Clusters that a figure can show apart: narrow against the distances of their standard normal centres.
_CLOUDS = 8
_CLOUD_WIDTH = 0.12


def make_tokens(law: str, n: int, d: int, random_state: int | np.random.Generator | None) -> np.ndarray:
    """Tokens drawn from a named law, shape (n, d), float64.

    Parameters
    ----------
    law
        One of :data:`LAWS`.
    n
        Number of tokens.
    d
        Number of coordinates per token.
    random_state
        A seed or a NumPy generator; None draws a seed.

    Returns
    -------
    numpy.ndarray
        The tokens, shape (n, d).

    Examples
    --------
    >>> make_tokens("sphere", 3, 2, random_state=0).shape
    (3, 2)
    """
    if law not in _LAW_MAKERS:
        raise InputError("law", repr(law), "is not a known law", f"choose among {', '.join(LAWS)}")
    n, d = as_count("n", n, least=1), as_count("d", d, least=1)
    return _LAW_MAKERS[law](seeded(random_state).generator, n, d)


def _gaussian(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.standard_normal((n, d))


def _cube(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, (n, d))


def _sphere(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    points = rng.standard_normal((n, d))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def _ball(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return np.asarray(_sphere(rng, n, d) * rng.random((n, 1)) ** (1.0 / d))


def _circle(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    if d != 2:
        raise InputError("d", d, "must be 2 for the circle", 'pass d=2, or law="sphere" for other dimensions')
    angles = 2 * np.pi * (np.arange(n) + rng.random()) / n
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _grid(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Distinct non-zero integer points from the smallest centred cube that has twice as many as needed."""
    reach = 1
    while (2 * reach + 1) ** d < 2 * n + 1:
        reach += 1
    points = np.empty((0, d), dtype=np.int64)
    while len(points) < n:
        drawn = rng.integers(-reach, reach + 1, (2 * n, d))
        points = np.concatenate([points, drawn[drawn.any(axis=1)]])
        _, first = np.unique(points, axis=0, return_index=True)
        points = points[np.sort(first)]
    return points[:n].astype(np.float64)


def _clusters(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    centres = rng.standard_normal((_CLOUDS, d))
    return np.asarray(centres[rng.integers(_CLOUDS, size=n)] + _CLOUD_WIDTH * rng.standard_normal((n, d)))


def _heavy_tails(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return np.asarray(rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(3, (n, 1)) / 3))


_LAW_MAKERS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "gaussian": _gaussian,
    "uniform-cube": _cube,
    "ball": _ball,
    "sphere": _sphere,
    "circle": _circle,
    "grid": _grid,
    "clusters": _clusters,
    "heavy-tails": _heavy_tails,
}


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
    """Named score matrix, shape (d, d), float64.

    Parameters
    ----------
    name
        One of :data:`MATRICES`.
    d
        Number of coordinates.
    random_state
        A seed or a NumPy generator; None draws a seed.

    Returns
    -------
    numpy.ndarray
        The matrix, shape (d, d).

    Examples
    --------
    >>> make_matrix("paper", 2, random_state=None)
    array([[2., 1.],
           [1., 1.]])
    """
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
