"""Words as points of the plane, for pictures on paper and on screen.

The horizontal axis is always the direction that the decoder reads, so the boundary between two classes is a vertical
line; the vertical axis is the direction across it in which the words differ most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..text.explaining.corpus_statistics import Survey
from ..text.explaining.explanation import Explanation

_GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class WordsInPlane:
    """The words of one document on their way to their leaders."""

    path: np.ndarray
    """Where the words are at every layer, shape (layers + 1, words, 2)."""
    mean: np.ndarray
    """The mean that the decoder would read at every layer, shape (layers + 1, 2)."""
    ranks: np.ndarray
    """The rank of the leader that each word follows, in the order of the explanation's leaders."""
    leads: np.ndarray
    """Which words are leaders."""
    boundary: float | None
    """Where the vertical line between the classes is; None for several classes, whose boundary is no line here."""


def words_in_plane(explanation: Explanation) -> WordsInPlane:
    """Place the words of a document; their number of coordinates may be any."""
    if not explanation.known:
        raise InputError("explanation", "a text without a known word", "must hold words", "explain another text")
    dimension = explanation.path.shape[2]
    reading = explanation.decoder[explanation.output]
    path = _spread(explanation.path @ _plane(explanation.path[0], reading), dimension)
    mean = np.einsum("w,lwc->lc", explanation.shares, path)
    if dimension == 1:
        mean[:, 1] = 0.0
    rank = {leader.word: place for place, leader in enumerate(explanation.leaders)}
    heads = explanation.follows
    return WordsInPlane(
        path=path,
        mean=mean,
        ranks=np.array([rank[explanation.words[head]] for head in heads]),
        leads=heads == np.arange(len(heads)),
        boundary=_boundary(reading, explanation.bias, explanation.classes),
    )


@dataclass(frozen=True)
class WordMap:
    """Where the words of many documents start."""

    positions: np.ndarray
    """One row for every word of the model, shape (words, 2)."""
    seen: np.ndarray
    """The words that occur in the documents."""
    leaders: np.ndarray
    """The words that lead most documents, most frequent first."""
    leads: np.ndarray
    """How many documents each word leads."""
    boundary: float | None


def word_map(survey: Survey, *, top: int = 30) -> WordMap:
    """Place all words of a model, and name the ``top`` that lead most of the documents surveyed."""
    seen = np.flatnonzero(survey.present > 0)
    if len(seen) == 0:
        raise InputError("survey", "no known words", "must hold words", "survey other documents")
    reading = survey.decoder[0]
    placed = _spread(survey.positions @ _plane(survey.positions[seen], reading), survey.positions.shape[1])
    total = survey.leading.sum(axis=0)
    leaders = np.argsort(-total, kind="stable")[:top]
    return WordMap(
        positions=placed,
        seen=seen,
        leaders=leaders[total[leaders] > 0],
        leads=total,
        boundary=_boundary(reading, survey.bias, survey.classes),
    )


def _plane(points: np.ndarray, reading: np.ndarray) -> np.ndarray:
    """Two orthonormal directions as columns: what the decoder reads, and the main one across it."""
    size = np.linalg.norm(reading)
    along = reading / size if size > 0 else np.eye(len(reading))[0]
    if len(reading) == 1:
        return np.array([[1.0, 0.0]])
    across = points - np.outer(points @ along, along)
    second = np.linalg.svd(across, full_matrices=False)[2][0]
    second -= (second @ along) * along
    if np.linalg.norm(second) < 1e-6:  # all words on one line: any direction across will do
        second = np.linalg.svd(along[None])[2][-1]
    return np.column_stack([along, second / np.linalg.norm(second)])


def _spread(placed: np.ndarray, dimension: int) -> np.ndarray:
    """On a line the height means nothing and only tells words apart."""
    if dimension == 1:
        placed = placed.copy()
        placed[..., 1] = ((np.arange(placed.shape[-2]) * _GOLDEN) % 1.0) - 0.5
    return placed


def _boundary(reading: np.ndarray, bias: np.ndarray, classes: np.ndarray) -> float | None:
    size = float(np.linalg.norm(reading))
    if size == 0 or len(classes) > 2:
        return None  # among several classes the boundary depends on two logits at once
    return -float(bias[0]) / size
