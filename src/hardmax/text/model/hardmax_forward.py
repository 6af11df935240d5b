r"""Hardmax layers on the distinct words of many documents at once, on the CPU, without padding and without masks.

The words of all documents lie one after another in a single array; ``starts`` holds the first index of each document.
Attention is restricted to the words of the same document. The attended words are found without a gradient; final
positions are then a linear function of the initial ones, through which gradients flow.

A word that attends to a leader (a word that attends to itself) does so at all later layers, so that its final position
is closed form:

.. math:: z_i^{K} = z_l + (1+\alpha)^{-(K-k)} (z_i^k - z_l).

Only words that attend to a word that is not a leader yet need another layer; these are usually few.
A tie goes to the first word of the document; words are distinct, so ties have no influence beyond rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ...attention.search import attended

# Above this number of distinct words a document is searched by the methods for large systems, which never store the
# n x n scores: 3000 x 3000 scores in double precision take 72 MB.
_LARGE = 3000


@dataclass(frozen=True)
class Stage:
    """One layer of the documents that had undecided words before it. Indices are within the stage."""

    places: np.ndarray
    """Index of each word of the stage among all words."""
    choice: np.ndarray
    """Index of the word that each word attends to at this layer."""
    ready: np.ndarray
    """Indices of the words in documents that are decided at this layer."""
    onward: np.ndarray
    """Indices of the words in all other documents, which form the next stage, in its order."""


@dataclass(frozen=True)
class AttentionPath:
    """Attended words of all documents at each layer, until every word attends to a leader."""

    stages: tuple[Stage, ...]
    follows: np.ndarray
    """Index of the word that each word attends to at the end, shape (words,)."""
    decided_at: np.ndarray
    """First layer at which each word attends to a leader, shape (words,); -1 if it never does."""

    @property
    def leaders(self) -> np.ndarray:
        """Mask of the leaders, which attend to themselves, shape (words,)."""
        return np.asarray(self.follows == np.arange(len(self.follows)))

    @property
    def choices(self) -> tuple[np.ndarray, ...]:
        """Index of the word that each word attends to, one array of shape (words,) per computed layer."""
        found: list[np.ndarray] = []
        for stage in self.stages:
            found.append(found[-1].copy() if found else np.empty(len(self.follows), dtype=np.int64))
            found[-1][stage.places] = stage.places[stage.choice]
        return tuple(found)


def attention_path(positions: np.ndarray, starts: np.ndarray, *, alpha: float, depth: int) -> AttentionPath:
    """Attended words through at most ``depth`` layers, until every word attends to a leader.

    >>> words = np.array([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2], [0.3, 0.3]])
    >>> found = attention_path(words, np.array([0, 3, 4]), alpha=1.0, depth=8)
    >>> found.follows.tolist(), found.decided_at.tolist()
    ([0, 0, 2, 3], [0, 0, 0, 0])
    """
    places = np.arange(len(positions))
    if _all_on_axes(positions):
        choice = _attended_on_axes(positions, starts)
        only = Stage(places, choice, ready=places, onward=places[:0])
        return AttentionPath((only,), choice, np.zeros(len(positions), dtype=np.int64))
    if positions.shape[1] == 2:
        choice, certain = _attended_in_plane(positions, starts)
        _attend(positions, starts, np.flatnonzero(~certain), choice)
    else:
        choice = np.empty(len(positions), dtype=np.int64)
        _attend(positions, starts, places, choice)
    follows, decided_at = choice.copy(), np.full(len(positions), -1, dtype=np.int64)
    stages: list[Stage] = []
    for layer in range(depth):
        decided = choice[choice] == choice
        decided_at[places[decided & (decided_at[places] < 0)]] = layer
        undecided = np.flatnonzero(~decided)
        if layer + 1 == depth or len(undecided) == 0:
            stages.append(Stage(places, choice, ready=np.arange(len(places)), onward=places[:0]))
            break
        sizes = np.diff(starts)
        undecided_documents = np.zeros(len(sizes), dtype=bool)
        undecided_documents[np.searchsorted(starts, undecided, side="right") - 1] = True
        member = np.repeat(undecided_documents, sizes)
        onward = np.flatnonzero(member)
        stages.append(Stage(places, choice, ready=np.flatnonzero(~member), onward=onward))
        positions = (positions[onward] + alpha * positions[choice[onward]]) / (1 + alpha)
        sizes, before = sizes[undecided_documents], starts[:-1][undecided_documents]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = places[onward]
        # Whole documents are removed, so all indices within one document shift by the same amount.
        choice = choice[onward] - np.repeat(before - starts[:-1], sizes)
        _attend(positions, starts, np.flatnonzero(~decided[onward]), choice)
        follows[places] = places[choice]
    return AttentionPath(tuple(stages), follows, decided_at)


def _all_on_axes(positions: np.ndarray) -> bool:
    """Whether every word has exactly one nonzero coordinate, or there is only one coordinate."""
    if positions.shape[1] == 1:
        return True
    # The total is counted first because it is cheap and excludes nearly every other case.
    return np.count_nonzero(positions) == len(positions) and bool((np.count_nonzero(positions, axis=1) == 1).all())


def _attended_on_axes(positions: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Attended word of each word, shape (words,), if all words lie on coordinate axes.

    Scores between different axes are zero and the score of a word with itself is positive, so axes are independent.
    """
    choice = _attended_on_line(positions[:, 0], starts)
    for axis in range(1, positions.shape[1]):
        np.copyto(choice, _attended_on_line(positions[:, axis], starts), where=positions[:, axis] != 0)
    return choice


def _attended_on_line(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Attended word of each word in one dimension: the largest for x >= 0, else the smallest; shape (words,)."""
    sizes = np.diff(starts)
    largest, smallest = (np.repeat(_extreme(sign * x, starts), sizes) for sign in (1, -1))
    return np.where(x >= 0, largest, smallest)


def _attended_in_plane(positions: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Attended word of each word in two dimensions, and a mask of the words for which it is certain.

    Let A be the word of a document that is farthest along some axis, and :math:`(a_j, p_j)` the components of
    :math:`z_j - z_A` along the axis and across it. A query at the angle :math:`\theta` to the axis attends to A if
    :math:`a_j\cos\theta + p_j\sin\theta < 0` for all j, that is, if :math:`\tan\theta` lies between the largest
    :math:`-a_j/p_j` with negative :math:`p_j` and the smallest with positive :math:`p_j`. The same holds for the word
    farthest in the opposite direction. After training words spread along the decoder's axis, so few remain uncertain.
    """
    if len(positions) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    # The principal axis of the words of all documents.
    square = positions.T @ positions
    angle = 0.5 * np.arctan2(2 * square[0, 1], square[0, 0] - square[1, 1])
    axis = np.array([np.cos(angle), np.sin(angle)], dtype=positions.dtype)
    along, across = positions @ axis, positions @ np.array([-axis[1], axis[0]], dtype=positions.dtype)
    some = np.diff(starts) > 0
    sizes, first = np.diff(starts)[some], starts[:-1][some]
    with np.errstate(over="ignore"):  # an infinite slope still compares correctly
        slope = across / np.where(along == 0, 1, along)
    choice, certain = np.empty(len(along), dtype=np.int64), np.zeros(len(along), dtype=bool)
    for sign in (1, -1):
        head = _extreme(sign * along, starts)[some]
        more = sign * (along - np.repeat(along[head], sizes))
        aside = sign * (across - np.repeat(across[head], sizes))
        with np.errstate(over="ignore"):
            bound = -more / np.where(aside == 0, 1, aside)
        highest = np.minimum.reduceat(np.where(aside > 0, bound, np.inf), first)
        lowest = np.maximum.reduceat(np.where(aside < 0, bound, -np.inf), first)
        side = sign * along > 0
        inside = (slope < np.repeat(highest, sizes)) & (slope > np.repeat(lowest, sizes))
        np.copyto(choice, np.repeat(head, sizes), where=side)
        certain |= side & inside
    return choice, certain


def _extreme(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Index of the largest entry of each document, the first of equals; 0 for a document without words."""
    sizes = np.diff(starts)
    places = np.zeros(len(sizes), dtype=np.int64)
    some = np.flatnonzero(sizes)
    if len(some):
        best = np.flatnonzero(x == np.repeat(np.maximum.reduceat(x, starts[some]), sizes[some]))
        # In reverse order, so that the first of equals is written last.
        places[np.searchsorted(starts, best[::-1], side="right") - 1] = best[::-1]
    return places


def _attend(positions: np.ndarray, starts: np.ndarray, queries: np.ndarray, choice: np.ndarray) -> None:
    """Write the attended words of the words at the increasing indices ``queries`` into ``choice``."""
    borders = np.searchsorted(queries, starts)
    # A transposed copy, because BLAS is much slower for the product of an array with its own transpose.
    columns = np.ascontiguousarray(positions.T)
    for document in np.flatnonzero(np.diff(borders)):
        start, stop = starts[document], starts[document + 1]
        words = positions[start:stop]
        some = queries[borders[document] : borders[document + 1]]
        whole = len(some) == stop - start
        if stop - start <= _LARGE:
            best = ((words if whole else positions[some]) @ columns[:, start:stop]).argmax(axis=1)
        else:
            points = torch.from_numpy(np.ascontiguousarray(words, dtype=np.float64))
            asked = points if whole else points[torch.from_numpy(some - start)]
            best = attended(asked, points, tolerance=0.0).first.numpy()
        choice[some] = best + start


def final_positions(
    positions: torch.Tensor, path: AttentionPath, alpha: torch.Tensor | float, depth: int
) -> torch.Tensor:
    """Positions after ``depth`` layers, shape (words, coordinates); differentiable in positions and ``alpha``."""
    pieces: list[torch.Tensor] = []
    for layer, stage in enumerate(path.stages):
        # Decided documents take all remaining layers at once; at the last layer that is a single layer.
        heads = positions.index_select(0, torch.from_numpy(stage.choice[stage.ready]))
        ready = positions.index_select(0, torch.from_numpy(stage.ready)) if len(stage.onward) else positions
        pieces.append(heads + (ready - heads) * (1 + alpha) ** -(depth - layer))
        if len(stage.onward):
            target = positions.index_select(0, torch.from_numpy(stage.choice[stage.onward]))
            positions = (positions.index_select(0, torch.from_numpy(stage.onward)) + alpha * target) / (1 + alpha)
    if len(pieces) == 1:
        return pieces[0]
    order = np.concatenate([stage.places[stage.ready] for stage in path.stages])
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return torch.cat(pieces).index_select(0, torch.from_numpy(back))


def positions_by_layer(positions: np.ndarray, path: AttentionPath, alpha: float, depth: int) -> np.ndarray:
    """Positions at every layer from 0 to ``depth``, shape (depth + 1, words, coordinates)."""
    states = [np.asarray(positions, dtype=np.float64)]
    choices = path.choices
    for layer in range(depth):
        choice = choices[min(layer, len(choices) - 1)]
        states.append((states[-1] + alpha * states[-1][choice]) / (1 + alpha))
    return np.stack(states)
