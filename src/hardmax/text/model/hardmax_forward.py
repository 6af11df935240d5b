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

from ...attention.search import attended

# A document of more distinct words is searched by the methods for large systems, which hold no n x n scores.
_LARGE = 3000


@dataclass(frozen=True)
class Stage:
    """One layer of the documents in which somebody was undecided before it. Numbers are within the stage."""

    places: np.ndarray
    """Where its words stand among all."""
    choice: np.ndarray
    """Whom each word follows at this layer."""
    ready: np.ndarray
    """Words of the documents that are decided here."""
    onward: np.ndarray
    """Words of the others, which take part in the next stage, in its order."""


@dataclass(frozen=True)
class Course:
    """Who follows whom in all documents, at each layer until everybody is decided."""

    stages: tuple[Stage, ...]
    follows: np.ndarray
    """The place of the word that each word follows at the end."""
    decided_at: np.ndarray
    """The first layer at which each word follows a leader; -1 where that has not happened."""

    @property
    def leaders(self) -> np.ndarray:
        """Whether each word leads: it follows itself."""
        return np.asarray(self.follows == np.arange(len(self.follows)))

    @property
    def choices(self) -> tuple[np.ndarray, ...]:
        """For each layer run, the place of the word that each word follows."""
        found: list[np.ndarray] = []
        for stage in self.stages:
            found.append(found[-1].copy() if found else np.empty(len(self.follows), dtype=np.int64))
            found[-1][stage.places] = stage.places[stage.choice]
        return tuple(found)


def course(positions: np.ndarray, starts: np.ndarray, *, alpha: float, depth: int) -> Course:
    """Follow the words through at most ``depth`` layers, until everybody follows a leader.

    >>> words = np.array([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2], [0.3, 0.3]])
    >>> found = course(words, np.array([0, 3, 4]), alpha=1.0, depth=8)
    >>> found.follows.tolist(), found.decided_at.tolist()
    ([0, 0, 2, 3], [0, 0, 0, 0])
    """
    places = np.arange(len(positions))
    if _all_on_axes(positions):
        choice = _on_the_axes(positions, starts)
        only = Stage(places, choice, ready=places, onward=places[:0])
        return Course((only,), choice, np.zeros(len(positions), dtype=np.int64))
    if positions.shape[1] == 2:
        choice, sure = _in_the_plane(positions, starts)
        _choose(positions, starts, np.flatnonzero(~sure), choice)
    else:
        choice = np.empty(len(positions), dtype=np.int64)
        _choose(positions, starts, places, choice)
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
        going_on = np.zeros(len(sizes), dtype=bool)
        going_on[np.searchsorted(starts, undecided, side="right") - 1] = True
        member = np.repeat(going_on, sizes)
        onward = np.flatnonzero(member)
        stages.append(Stage(places, choice, ready=np.flatnonzero(~member), onward=onward))
        positions = (positions[onward] + alpha * positions[choice[onward]]) / (1 + alpha)
        sizes, before = sizes[going_on], starts[:-1][going_on]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = places[onward]
        # Documents stay whole, so all words of one are renumbered by the same amount.
        choice = choice[onward] - np.repeat(before - starts[:-1], sizes)
        _choose(positions, starts, np.flatnonzero(~decided[onward]), choice)
        follows[places] = places[choice]
    return Course(tuple(stages), follows, decided_at)


def _all_on_axes(positions: np.ndarray) -> bool:
    """Whether every word has one coordinate that is not zero, or there is but one."""
    if positions.shape[1] == 1:
        return True
    # All are counted first, which is cheap and settles nearly every other case.
    return np.count_nonzero(positions) == len(positions) and bool((np.count_nonzero(positions, axis=1) == 1).all())


def _on_the_axes(positions: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Words on different axes have the score 0 and their own is positive, so each axis is a line by itself."""
    choice = _on_the_line(positions[:, 0], starts)
    for axis in range(1, positions.shape[1]):
        np.copyto(choice, _on_the_line(positions[:, axis], starts), where=positions[:, axis] != 0)
    return choice


def _on_the_line(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """In one dimension words on the positive side follow the largest, the others the smallest."""
    sizes = np.diff(starts)
    largest, smallest = (np.repeat(_extreme(sign * x, starts), sizes) for sign in (1, -1))
    return np.where(x >= 0, largest, smallest)


def _in_the_plane(positions: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Whom words follow in two dimensions, and for which of them that is certain.

    Let A be the word of a document that is farthest along some axis, and :math:`(a_j, p_j)` what word j has more than A
    along the axis and across it. A query at the angle :math:`\theta` to the axis follows A as long as
    :math:`a_j\cos\theta + p_j\sin\theta < 0` for all j, that is, while :math:`\tan\theta` lies between the largest
    :math:`-a_j/p_j` with negative :math:`p_j` and the smallest with positive :math:`p_j`. The same holds for the word
    farthest back. Where words are spread along the axis, which is the decoder's after training, few are left over.
    """
    if len(positions) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    # The axis along which the words of all documents are spread most.
    square = positions.T @ positions
    angle = 0.5 * np.arctan2(2 * square[0, 1], square[0, 0] - square[1, 1])
    axis = np.array([np.cos(angle), np.sin(angle)], dtype=positions.dtype)
    along, across = positions @ axis, positions @ np.array([-axis[1], axis[0]], dtype=positions.dtype)
    some = np.diff(starts) > 0
    sizes, first = np.diff(starts)[some], starts[:-1][some]
    with np.errstate(over="ignore"):  # an infinite slope compares as it should
        slope = across / np.where(along == 0, 1, along)
    choice, sure = np.empty(len(along), dtype=np.int64), np.zeros(len(along), dtype=bool)
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
        sure |= side & inside
    return choice, sure


def _extreme(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The place of the largest entry of each document, the first of equals; 0 for a document without words."""
    sizes = np.diff(starts)
    places = np.zeros(len(sizes), dtype=np.int64)
    some = np.flatnonzero(sizes)
    if len(some):
        best = np.flatnonzero(x == np.repeat(np.maximum.reduceat(x, starts[some]), sizes[some]))
        # From last to first, so that the first of equals is written last.
        places[np.searchsorted(starts, best[::-1], side="right") - 1] = best[::-1]
    return places


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
    pieces: list[torch.Tensor] = []
    for layer, stage in enumerate(path.stages):
        # Documents that are decided here jump to the end; at the last layer of all that is one plain step.
        heads = positions.index_select(0, torch.from_numpy(stage.choice[stage.ready]))
        ready = positions.index_select(0, torch.from_numpy(stage.ready)) if len(stage.onward) else positions
        pieces.append(heads + (ready - heads) * (1 + alpha) ** -(depth - layer))
        if len(stage.onward):
            followed = positions.index_select(0, torch.from_numpy(stage.choice[stage.onward]))
            positions = (positions.index_select(0, torch.from_numpy(stage.onward)) + alpha * followed) / (1 + alpha)
    if len(pieces) == 1:
        return pieces[0]
    order = np.concatenate([stage.places[stage.ready] for stage in path.stages])
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return torch.cat(pieces).index_select(0, torch.from_numpy(back))


def layers(positions: np.ndarray, path: Course, alpha: float, depth: int) -> np.ndarray:
    """The words at every layer, from 0 to ``depth``: shape (depth + 1, words, coordinates)."""
    states = [np.asarray(positions, dtype=np.float64)]
    choices = path.choices
    for layer in range(depth):
        choice = choices[min(layer, len(choices) - 1)]
        states.append((states[-1] + alpha * states[-1][choice]) / (1 + alpha))
    return np.stack(states)
