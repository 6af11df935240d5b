"""Initial configurations in the plane: Figure 2 of the clustering paper, and four larger ones.

In all of them alpha = 0.5 and A is the identity. Coordinates that have to tie are exact in binary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ALPHA = 0.5  # the step of the figures of the paper


@dataclass(frozen=True, eq=False)
class Configuration:
    """Initial tokens in the plane, with a description and the layers to draw.

    Attributes
    ----------
    name
        A short name without blanks.
    title
        A title for a figure.
    says
        What happens, in a sentence.
    tokens
        The tokens, shape (token, 2).
    layers
        Layers worth a panel; the last stands for the limit.
    alpha
        The step of the layer.
    """

    name: str
    title: str
    says: str
    tokens: np.ndarray
    layers: tuple[int, ...]
    alpha: float = ALPHA


# The first token listens to the second and the third alike when A is the identity, and to the third alone when
# A = ((2, 1), (1, 1)).
_HALF_SPACES = (
    (0.5, 1.0), (-0.75, 2.125), (1.75, 0.875), (0.75, 1.125), (-0.25, 1.5), (-1.5, 0.25), (-0.75, -1.0), (1.0, -0.875),
    (-0.5, 0.5), (0.875, 0.25),
)  # fmt: skip

# Figure 2 of the paper. The authors' notebook (dynamics.ipynb of DCN-FAU-AvH/clustering-hardmax-transformers on GitHub,
# CC0) gives some tokens and draws the others at random without a seed; these are read off the figure that it wrote
# (plots/dyn_panels.pdf there, commit f46b3c2), to four digits.
_PAPER_LAYERS = (0, 1, 2, 5, 30)
_PAPER_TRIANGLE = (
    (1.0, 1.0), (0.5, -0.5), (-1.0, -1.0), (0.8776, 0.9784), (0.0989, 0.4935), (-0.2030, -0.9591), (-0.3824, -0.9243),
    (0.3, -0.2), (0.1, -0.2),
)  # fmt: skip
_PAPER_EMERGING = (
    (1.0, 4 / 12), (-1 / 12, 1 / 12), (-1.0, -1.0), (0.0, 3 / 12), (-0.3, -0.7), (-0.6, -0.9), (0.8, 0.1), (0.6, 0.15),
)  # fmt: skip
_PAPER_SQUARE = (
    (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0), (0.0689, -0.0899), (-0.0178, -0.0386), (0.3279, -0.0376),
    (-0.0516, -0.4739), (-0.0025, 0.4866), (0.4185, -0.1927),
)  # fmt: skip
_PAPER_FACES = (
    (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0), (-0.5, 0.0), (0.5, 0.0), (-0.3821, 0.3152), (-0.4013, 0.1119),
    (-0.0112, -0.2064), (-0.4155, -0.2359),
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

# The token (-1.3, 1.4) first listens to (-0.8, 1.9), which moves away to the right; then it leads.
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
        "One token becomes a leader only at layer 3, after the token that it listened to has moved away.",
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


_PAPER = (
    Configuration(
        "triangle",
        "Triangular polytope",
        "Three tokens lead from the start, the corners of a triangle; one token first follows a token that follows "
        "a leader.",
        _points(_PAPER_TRIANGLE),
        _PAPER_LAYERS,
    ),
    Configuration(
        "emerging-leader",
        "Emerging leader",
        "The token near the origin first listens to a neighbour; the neighbour leaves, and from layer 1 on it leads.",
        _points(_PAPER_EMERGING),
        _PAPER_LAYERS,
    ),
    Configuration(
        "square",
        "Square polytope",
        "The corners of a square lead; every other token follows one of them to its corner.",
        _points(_PAPER_SQUARE),
        _PAPER_LAYERS,
    ),
    Configuration(
        "non-leader-clusters",
        "Clusters that are not at leaders",
        "Two tokens have the same distance from two corners, listen to both for ever and end in the middle of a side.",
        _points(_PAPER_FACES),
        _PAPER_LAYERS,
    ),
)


def paper_configurations() -> tuple[Configuration, ...]:
    """The four configurations of Figure 2 of the clustering paper, in the order of its rows.

    Returns
    -------
    tuple of Configuration
        The configurations.

    Examples
    --------
    >>> [(c.name, len(c.tokens)) for c in paper_configurations()]
    [('triangle', 9), ('emerging-leader', 8), ('square', 10), ('non-leader-clusters', 10)]
    """
    return _PAPER


def four_configurations() -> tuple[Configuration, ...]:
    """Four larger configurations, one for each kind of behaviour of tokens under hardmax.

    Returns
    -------
    tuple of Configuration
        The configurations.

    Examples
    --------
    >>> [c.name for c in four_configurations()]
    ['cloud', 'equals', 'late-leader', 'broken-ties']
    """
    return _ALL


def half_space_example() -> np.ndarray:
    """Ten tokens in the plane for Figure 1 of the clustering paper, shape (10, 2).

    With A = I the first token listens to the second and the third alike, as in the paper; with A = ((2, 1), (1, 1)) it
    listens to the third alone.

    Returns
    -------
    numpy.ndarray
        The tokens, shape (10, 2).

    Examples
    --------
    >>> half_space_example().shape
    (10, 2)
    """
    return _points(_HALF_SPACES)
