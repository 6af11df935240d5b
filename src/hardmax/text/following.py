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
    if positions.shape[1] == 1:
        choice = _on_the_line(positions[:, 0], starts)
        only = Stage(places, choice, ready=places, onward=places[:0])
        return Course((only,), choice, np.zeros(len(positions), dtype=np.int64))
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
