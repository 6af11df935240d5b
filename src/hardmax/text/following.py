r"""Hardmax layers on the distinct words of many documents at once, without padding and without masks.

The words of all documents lie one after another in a single array; ``starts`` says where each document begins.
Attention never leaves a document. Who follows whom is found without a gradient; positions are then a linear
function of the starting ones, through which gradients flow.

A word that follows a leader (a word that follows itself) does so for ever, so its future is closed form:

.. math:: z_i^{K} = z_l + (1+\alpha)^{-(K-k)} (z_i^k - z_l).

Only words that follow somebody who is not yet a leader need another layer; as a rule they are few.
A tie goes to the first word of the document; words are distinct, so ties have no influence beyond rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..attention.search import attended

# A document of more distinct words is searched by the methods for large systems, which hold no n x n scores.
_LARGE = 3000


@dataclass(frozen=True)
class Course:
    """Who follows whom in all documents, at each layer until everybody is decided."""

    choices: tuple[np.ndarray, ...]
    """For each layer run, the place of the word that each word follows."""
    decided_at: np.ndarray
    """The first layer at which each word follows a leader; -1 where that has not happened."""

    @property
    def follows(self) -> np.ndarray:
        """Whom each word follows at the end."""
        return self.choices[-1]

    @property
    def leaders(self) -> np.ndarray:
        """Whether each word leads: it follows itself."""
        return np.asarray(self.follows == np.arange(len(self.follows)))


def course(positions: np.ndarray, starts: np.ndarray, *, alpha: float, depth: int) -> Course:
    """Follow the words through at most ``depth`` layers, until everybody follows a leader.

    >>> words = np.array([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2], [0.3, 0.3]])
    >>> found = course(words, np.array([0, 3, 4]), alpha=1.0, depth=8)
    >>> found.follows.tolist(), found.decided_at.tolist()
    ([0, 0, 2, 3], [0, 0, 0, 0])
    """
    count = len(positions)
    places = np.arange(count)
    if positions.shape[1] == 1:
        follows = _on_the_line(positions[:, 0], starts)
        return Course((follows,), np.zeros(count, dtype=np.int64))
    follows = np.empty(count, dtype=np.int64)
    _choose(positions, starts, places, follows)
    choices = [follows]
    decided_at = np.full(count, -1, dtype=np.int64)
    for layer in range(depth):
        decided = follows[follows] == follows
        decided_at[decided & (decided_at < 0)] = layer
        undecided = np.flatnonzero(~decided)
        if len(undecided) == 0 or layer + 1 == depth:
            break
        positions = (positions + alpha * positions[follows]) / (1 + alpha)
        follows = follows.copy()
        _choose(positions, starts, undecided, follows)
        choices.append(follows)
    return Course(tuple(choices), decided_at)


def _on_the_line(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """In one dimension words on the positive side follow the largest, the others the smallest."""
    follows = np.empty(len(x), dtype=np.int64)
    some = np.diff(starts) > 0
    first = starts[:-1][some]
    sizes = np.diff(starts)[some]
    if len(first) == 0:
        return follows
    ends = []
    for sign in (1.0, -1.0):
        best = np.repeat(np.maximum.reduceat(sign * x, first), sizes)
        # The first word that reaches the extreme: all others are moved out of the way of the minimum.
        place = np.where(sign * x == best, np.arange(len(x)), len(x))
        ends.append(np.repeat(np.minimum.reduceat(place, first), sizes))
    np.copyto(follows, np.where(x >= 0, ends[0], ends[1]))
    return follows


def _choose(positions: np.ndarray, starts: np.ndarray, asking: np.ndarray, follows: np.ndarray) -> None:
    """Write into ``follows`` whom the words at the places ``asking`` (increasing) attend to."""
    borders = np.searchsorted(asking, starts)
    # A transposed copy, because a product of an array with its own transpose takes a much slower way in BLAS.
    columns = np.ascontiguousarray(positions.T)
    for document in np.flatnonzero(np.diff(borders)):
        start, stop = starts[document], starts[document + 1]
        words = positions[start:stop]
        some = asking[borders[document] : borders[document + 1]]
        whole = len(some) == stop - start
        if stop - start <= _LARGE:
            best = ((words if whole else positions[some]) @ columns[:, start:stop]).argmax(axis=1)
        else:
            points = torch.from_numpy(np.ascontiguousarray(words, dtype=np.float64))
            queries = points if whole else points[torch.from_numpy(some - start)]
            best = attended(queries, points, tolerance=0.0).first.numpy()
        follows[some] = best + start


def after(positions: torch.Tensor, path: Course, alpha: torch.Tensor | float, depth: int) -> torch.Tensor:
    """The words after ``depth`` layers; differentiable in the positions and in ``alpha``."""
    done = len(path.choices) - 1
    for choice in path.choices[:done]:
        positions = (positions + alpha * positions.index_select(0, torch.from_numpy(choice))) / (1 + alpha)
    heads = positions.index_select(0, torch.from_numpy(path.follows))
    # At the last layer run everybody is decided, or it is the last layer of all.
    return heads + (positions - heads) * (1 + alpha) ** -(depth - done)


def layers(positions: np.ndarray, path: Course, alpha: float, depth: int) -> np.ndarray:
    """The words at every layer, from 0 to ``depth``: shape (depth + 1, words, coordinates)."""
    states = [np.asarray(positions, dtype=np.float64)]
    for layer in range(depth):
        choice = path.choices[min(layer, len(path.choices) - 1)]
        states.append((states[-1] + alpha * states[-1][choice]) / (1 + alpha))
    return np.stack(states)
