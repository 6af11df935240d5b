"""Four starting configurations in the plane, one for each thing that can happen to tokens under hardmax.

They take the place of those in Figure 2 of the clustering paper, whose coordinates are not published; like there,
alpha = 0.5 and A is the identity. Coordinates that have to tie are exact in binary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ALPHA = 0.5


@dataclass(frozen=True, eq=False)
class Configuration:
    """Tokens to start from, what they show, and the layers at which to look."""

    name: str
    title: str
    says: str
    """What happens, in a sentence."""
    tokens: np.ndarray
    """Shape (token, 2)."""
    layers: tuple[int, ...]
    """Layers worth a panel; the last stands for the limit."""
    alpha: float = ALPHA


# The first token listens to the second when A is the identity and to the third when A = ((2, 1), (1, 1)).
_HALF_SPACES = (
    (0.3, 1.2), (-0.9, 2.0), (2.1, 0.4), (1.3, 1.3), (-0.2, 1.6), (-1.5, 0.3), (-0.8, -1.0), (1.0, -0.9), (-0.5, 0.6),
    (0.8, 0.2),
)  # fmt: skip

_CLOUD = (
    (2.4, 0.7), (-0.3, 1.9), (-2.1, 1.3), (-1.7, -3.0), (1.6, -1.1), (0.3, 1.6), (-0.2, 1.1), (1.0, 1.4), (1.6, 0.4),
    (2.1, 0.4), (-1.6, 0.6), (-1.0, 0.5), (-1.1, 0.1), (-1.0, 0.0), (-1.6, -0.3), (-1.4, -0.2), (-0.6, -0.4),
    (-0.4, -0.3), (0.7, -1.5), (-0.9, -2.5), (0.8, -0.8), (1.4, -0.7), (1.2, -1.4), (0.5, 0.2),
)  # fmt: skip

# Six leaders at the same distance from the origin; the tokens on a ray halfway between two of them listen to both.
_EQUALS = (
    (1.5, 2.0), (-1.5, 2.0), (-2.0, -1.5), (0.0, -2.5), (2.0, -1.5), (2.5, 0.0),
    (0.0, 1.25), (0.0, 0.5), (1.0, 0.5), (-1.75, 0.25), (-0.5, -1.0),
    (0.75, 1.5), (1.0, 1.0), (-0.75, 1.25), (-1.25, 1.0), (-1.0, -0.5), (-1.5, -0.75), (0.25, -1.5), (0.25, -0.75),
    (1.25, -1.25), (1.0, -0.75), (1.75, 0.0), (1.25, 0.0),
)  # fmt: skip

# The token (-1.3, 1.4) first listens to (-0.8, 1.9), which follows others to the right and leaves it the field.
_LATE = (
    (-1.2, -2.0), (0.0, 2.3), (0.6, -0.7), (0.1, -1.5), (0.4, -2.9), (1.7, 2.5), (-1.3, 1.4), (-0.8, 1.9), (1.9, 1.3),
    (-0.6, -0.4), (1.3, -2.0),
)  # fmt: skip

# Three leaders at different distances; the tokens on a ray of equal scores listen to two, at layer 0 only.
_BROKEN = (
    (2.0, 1.5), (-1.0, 3.0), (-0.5, -2.5),
    (0.5, 1.0), (0.25, 0.5), (-0.6875, -0.0625), (0.5, -0.3125),
    (1.5, 1.0), (1.0, 0.75), (0.75, 0.25), (-0.5, 1.75), (0.0, 1.5), (-0.5, 0.75), (-0.5, -1.0), (0.0, -1.0),
    (0.0, -1.5),
)  # fmt: skip


def _points(rows: tuple[tuple[float, float], ...]) -> np.ndarray:
    points = np.array(rows)
    points.setflags(write=False)
    return points


_ALL = (
    Configuration(
        "cloud",
        "Every token ends with a leader",
        "Five tokens lead from the start and stay; all others follow one of them to its vertex.",
        _points(_CLOUD),
        (0, 1, 3, 40),
    ),
    Configuration(
        "equals",
        "Some end on faces",
        "Six leaders are equally far from the origin; tokens halfway between two end in the middle of an edge.",
        _points(_EQUALS),
        (0, 1, 3, 40),
    ),
    Configuration(
        "late-leader",
        "A leader emerges late",
        "One token becomes a leader only at layer 3, when the token it listened to has gone elsewhere.",
        _points(_LATE),
        (0, 1, 3, 40),
    ),
    Configuration(
        "broken-ties",
        "Ties that break",
        "Between leaders of different norm a tie lasts one layer: then the larger one wins.",
        _points(_BROKEN),
        (0, 1, 3, 40),
    ),
)


def four_configurations() -> tuple[Configuration, ...]:
    """The configurations of Figure 2.

    >>> [c.name for c in four_configurations()]
    ['cloud', 'equals', 'late-leader', 'broken-ties']
    """
    return _ALL


def half_space_example() -> np.ndarray:
    """Ten tokens of the plane for Figure 1: whom the first listens to depends on A.

    >>> half_space_example().shape
    (10, 2)
    """
    return _points(_HALF_SPACES)
