"""Choices that floating-point arithmetic decides with certainty.

For symmetric positive definite A the A-norm of a token never decreases, so rounding errors stay small relative to the
tokens, and tokens that listen to exactly one another lie within the tolerance of a leader. For any other A the tokens
may shrink to a point without any of them ever leading. Positions are known up to some rounding errors of the
**starting** size; where the resulting errors of scores exceed their difference, a choice is rounding noise. For such A

- a token is decided by listening to one point alone only if no position within the error would change that;
- tokens that listen to exactly one another are joint leaders if they did so at layer 0, where positions are those
  given, or if their scores were far from the largest one layer before: otherwise they may merely be closer together
  than floats resolve;
- a token close to zero is not decided by a tie: its scores tie because its query is short;
- after the first choice that was not certain, positions may differ from those of the true system and nothing more is
  decided. The undecided tokens move on until they settle.

Leaders never move, so a decided token inside their hull stays inside it and scores less than some leader for every
query. In the plane and in space the hull is cheap and this drops almost all tokens after the first layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.spatial import ConvexHull, QhullError

from ..attention.choice import Choice, apply, length, score
from ..shapes import Indices, Mask, Points, Queries, Square, Tokens
from .assumptions import is_positive_definite, is_symmetric
from .closed_form import ClosedForm, pick

# Rounding errors that one layer adds to a coordinate: two products, a sum and a quotient.
_UNITS_PER_LAYER = 4
# Choices are searched again with a tolerance at most this many times larger than necessary.
_STEP = 8.0
# Choices with larger errors, relative to the scores, are not searched again; for ties, whose scores agree to the
# tolerance, the limit is much smaller.
_HOPELESS = 0.05
_HOPELESS_FOR_TIES = 1e-6
# Relative to the largest score: a score this far below the largest that ties with it one layer later did not approach
# it gradually.
_SUDDEN = 1e-8


class Certainty:
    """Test of the choices of a process: whether they hold for all positions within the rounding errors."""

    def __init__(
        self, A: Square, alpha: float, tolerance: float, form: ClosedForm, search: Callable[..., Choice]
    ) -> None:
        self._definite = is_symmetric(A) and is_positive_definite(A)
        self._A, self._tolerance, self._form, self._search = A, tolerance, form, search
        # The scores of tokens that approach one another differ by a term that is quadratic in their distance.
        self._sudden = _SUDDEN * (1 + alpha) ** 2
        self._size_of_matrix = float(torch.linalg.matrix_norm(A))
        self._lost_at: int | None = None
        self._before: Tokens = form.anchor[:0]
        self._now: Tokens = form.anchor[:0]
        self._best_before = self._best_now = form.anchor[:0, 0]

    def holds(self, layer: int) -> bool:
        """Whether all choices of earlier layers were certain."""
        return self._lost_at is None or layer <= self._lost_at

    def of_choices(
        self, active: Indices, choice: Choice, alone: torch.Tensor, points: Tokens, layer: int
    ) -> torch.Tensor:
        """Mask of the active tokens among ``alone`` that certainly listen to one point alone."""
        if self._definite:
            return alone
        if not self.holds(layer):
            return torch.zeros_like(alone)
        self._remember(active, choice)
        queries = apply(self._A, pick(self._form.anchor, active))
        error = self._relative_error(active, queries, points, layer)
        certain = alone & (error <= self._tolerance / 2)
        doubtful = alone & ~certain & (error < _HOPELESS)
        needed = torch.ceil(torch.log(error.clamp_min(1e-300)) / math.log(_STEP))
        for power in torch.unique(needed[doubtful]).tolist():
            rows = torch.nonzero(doubtful & (needed == power))[:, 0]
            again = self._search(queries[rows], points, tolerance=max(self._tolerance, _STEP**power))
            same = again.first == choice.first[rows]
            same[again.tied] = False
            certain[rows] = same
        self._note(bool((alone & ~certain).any()), layer)
        return certain

    def of_near_leaders(self, layer: int) -> bool:
        """Whether a token within the tolerance of a leader counts as its follower."""
        return self._definite or layer == 0

    def of_ties(
        self, tied: Indices, members: Indices, offsets: Indices, joint: torch.Tensor, points: Tokens, layer: int
    ) -> torch.Tensor:
        """Mask of the tied tokens whose tie is not an effect of tokens too close together or to zero.

        ``joint`` marks those that listen to a set of active tokens that all listen to exactly that set.
        """
        if self._definite:
            return torch.ones_like(joint)
        if not self.holds(layer):
            return torch.zeros_like(joint)
        error = self._relative_error(tied, apply(self._A, self._form.anchor[tied]), points, layer)
        known = error < _HOPELESS_FOR_TIES
        if layer > 0 and bool(joint.any()):
            row = torch.repeat_interleave(torch.arange(len(tied), device=tied.device), offsets.diff())
            known &= ~joint | self._came_at_once(tied, members, row, joint, points)
        self._note(not bool(known.all()), layer)
        return known

    def _came_at_once(
        self, tied: Indices, members: Indices, row: Indices, joint: torch.Tensor, points: Tokens
    ) -> torch.Tensor:
        """Mask of the joint ties of which a member certainly listened to other tokens one layer before."""
        queries = apply(self._A, self._before[tied])
        pairs = torch.nonzero(joint[row])[:, 0]
        scores = score(queries[row[pairs]], self._before[members[pairs]])
        lowest = torch.full_like(queries[:, 0], torch.inf).scatter_reduce(0, row[pairs], scores, "amin")
        gap = self._best_before[tied] - lowest
        sizes = length(queries)  # a token that was at zero listened to every token
        sudden = joint & ((gap > self._sudden * sizes * length(points).max()) | (sizes == 0))
        # Members of a joint tie all listen to the same set, so its first member identifies the set.
        first = torch.full_like(tied, len(self._before)).scatter_reduce(0, row, members, "amin")
        return torch.isin(first, first[sudden])

    def _remember(self, active: Indices, choice: Choice) -> None:
        self._before, self._best_before = self._now, self._best_now
        self._now = self._form.anchor.clone()
        self._best_now = torch.zeros_like(self._now[:, 0])
        self._best_now[active] = choice.best

    def _note(self, uncertain: bool, layer: int) -> None:
        if uncertain and self._lost_at is None:
            self._lost_at = layer

    def _relative_error(self, asking: Indices, queries: Queries, points: Tokens, layer: int) -> torch.Tensor:
        """Bound on the error of a difference of two scores, relative to the largest score that the lengths allow."""
        d, eps = points.shape[1], torch.finfo(points.dtype).eps
        position = _UNITS_PER_LAYER * eps * layer * self._form.size * d**0.5
        asked, own = length(queries), length(pick(self._form.anchor, asking))
        of_query = self._size_of_matrix * (position + d * eps * own)
        error = 2 * (position / length(points).max().clamp_min(1e-300) + of_query / asked.clamp_min(1e-300))
        return torch.where(asked > 0, error, 0.0)


_WORTHWHILE = 256  # fewer points than this are searched faster than a hull is built
_LARGEST_TABLE = 50_000_000  # entries, 400 MB of float64; larger tables are not built


def safely_inside(points: Tokens, leaders: Points, margin: float) -> Mask:
    """Mask of points at least ``margin`` inside the convex hull of ``leaders``; false where the test is expensive.

    Sums are taken in the order of the coordinates, so that equal points get equal results, whatever the other points.
    """
    count, d = points.shape
    inside = torch.zeros(count, dtype=torch.bool, device=points.device)
    if count < _WORTHWHILE or d not in (2, 3) or len(leaders) <= d:
        return inside
    try:
        hull = ConvexHull(leaders.cpu().numpy())
    except QhullError:  # the leaders lie in a plane or on a line
        return inside
    normals = torch.from_numpy(np.ascontiguousarray(hull.equations[:, :-1])).to(points.device)
    offsets = torch.from_numpy(np.ascontiguousarray(hull.equations[:, -1])).to(points.device)
    inscribed = float((-offsets).min()) - margin
    if inscribed > 0:
        inside = score(points, points) < inscribed**2 * (1 - 1e-12)
    rest = torch.nonzero(~inside)[:, 0]
    if len(rest) * len(normals) <= _LARGEST_TABLE:
        beyond = offsets + points[rest, :1] * normals[:, 0]
        for k in range(1, d):
            beyond += points[rest, k : k + 1] * normals[:, k]
        inside[rest] = beyond.amax(dim=1) <= -margin
    return inside
