"""Points in sight of the active tokens of one layer, and in each head the points that they listen to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from ...attention.choice import Choice, length, score
from ...attention.normal_form import Distinct
from ...shapes import Indices, PerQuery, Queries, Square, Tokens, Values
from .form import FamilySystem

# Rounding errors that one layer adds to a coordinate: two products, a sum and a quotient, and one sum over the heads.
_UNITS_PER_LAYER = 6
# Sets are searched with a tolerance at most this many times larger than the rounding errors of their scores.
_STEP = 8.0
# Sets whose scores have larger errors, relative to the scores, count as uncertain without a search.
_HOPELESS = 0.05


class View:
    """Distinct points of one layer in the order of their first tokens, and how many of them each active token sees.

    ``tokens`` are the active tokens, ``candidates`` the tokens that they may listen to, at ``places``.
    """

    def __init__(
        self,
        layer: int,
        tokens: Indices,
        candidates: Indices,
        places: Tokens,
        found: Distinct,
        causal: bool,
        count: int,
    ) -> None:
        self.layer, self.tokens = layer, tokens
        self.candidates, self.places, self.points = candidates, places, found.points
        self.count = count
        self._found, self._causal = found, causal
        place = torch.searchsorted(candidates, tokens)
        self.stop = torch.searchsorted(found.first, place, right=True) if causal else None
        """Number of points that each active token sees, shape (active,); None where all see all."""

    @cached_property
    def longest(self) -> Values:
        """Length of the longest among the first points, shape (points,): entry k for the first k + 1."""
        lengths = length(self.points)
        return lengths.cummax(dim=0).values if self._causal else lengths.max().expand(len(lengths))

    def slack(self, queries: Queries, tolerance: float, stop: Indices | None = None) -> PerQuery:
        """Largest distance below the largest score at which a score still ties, shape (queries,)."""
        return tolerance * length(queries) * (self.longest[-1] if stop is None else self.longest[stop - 1])

    def point_of(self, tokens: Indices) -> Indices:
        """Point at which each of these candidates is."""
        place = torch.searchsorted(self.candidates, tokens)
        return place if self._found.point_of is None else self._found.point_of[place]

    def first_at_rest(self, rests: torch.Tensor) -> Indices:
        """Lowest token at rest at each point, shape (points,); the number of tokens where there is none."""
        mine = rests[self.candidates]
        first = torch.full((len(self.points),), self.count, device=mine.device)
        if self._found.point_of is None:
            return torch.where(mine, self.candidates, first)
        return first.scatter_reduce(0, self._found.point_of[mine], self.candidates[mine], "amin")

    def sees(self, tokens: Indices, others: Indices) -> torch.Tensor:
        """Whether each token sees the other one paired with it; there is no token with the number of tokens."""
        return others <= tokens if self._causal else others < self.count

    def tokens_at(self, tokens: Indices, points: Indices) -> tuple[Indices, Indices]:
        """All candidates at ``points[p]`` that ``tokens[p]`` sees, as pairs (p, candidate), ordered by p."""
        pairs = torch.arange(len(points), device=points.device)
        if self._found.point_of is None:
            return pairs, self.candidates[points]
        order, begin, sizes = self._sorted
        mine = sizes[points]
        pair = torch.repeat_interleave(pairs, mine)
        within = torch.arange(len(pair), device=pair.device) - (mine.cumsum(0) - mine)[pair]
        member = self.candidates[order[begin[points][pair] + within]]
        seen = self.sees(tokens[pair], member)
        return pair[seen], member[seen]

    @cached_property
    def _sorted(self) -> tuple[Indices, Indices, Indices]:
        """Candidates sorted by their point, with the start and the number of those at each point."""
        point_of = self._found.expand(torch.arange(len(self.points), device=self.points.device))
        sizes = torch.bincount(point_of, minlength=len(self.points))
        return torch.argsort(point_of, stable=True), sizes.cumsum(0) - sizes, sizes

    def mass(self, tokens: Indices, points: Indices, weights: torch.Tensor) -> torch.Tensor:
        """Sum of the weights of all candidates at ``points[p]`` that ``tokens[p]`` sees, shape (pairs,)."""
        if self._found.point_of is None or not self._causal:
            return self._found.weights[points]
        order, begin, sizes = self._sorted
        total = weights[self.candidates[self._found.first[points]]]
        for point in torch.unique(points[sizes[points] > 1]).tolist():
            members = self.candidates[order[int(begin[point]) : int(begin[point] + sizes[point])]].cpu().numpy()
            # A cumulative sum adds in the order of the sequence, so that the sum depends on what is seen alone.
            sums = np.cumsum(weights[torch.from_numpy(members)].cpu().numpy())
            here = points == point
            last = np.searchsorted(members, tokens[here].cpu().numpy(), side="right") - 1
            total[here] = torch.from_numpy(sums[last]).to(total)
        return total

    def attended_means(self, choices: list[HeadChoice], rows: Indices, system: FamilySystem) -> Tokens:
        """Mean, over members and heads, of what the active tokens in these rows listen to, shape (rows, d)."""
        means, asking = [], self.tokens[rows]
        for choice in choices:
            mean = self.points[choice.first[rows]]
            place = torch.full_like(choice.first, -1)
            place[rows] = torch.arange(len(rows), device=rows.device)
            row = place[choice.rows]
            mine = row >= 0
            row, members = row[mine], choice.members[mine]
            if len(row):
                mass = self.mass(asking[row], members, system.weights)
                total = mass.new_zeros(len(rows)).index_add(0, row, mass)
                summed = torch.zeros_like(mean).index_add(0, row, mass[:, None] * self.points[members])
                tied = total > 0
                mean[tied] = summed[tied] / total[tied, None]
            zero = choice.everyone[rows]
            if bool(zero.any()):
                mean[zero] = _mean_in_sight(system, self.layer, asking[zero])
            means.append(mean)
        return system.mean_of_heads(means)


def _mean_in_sight(system: FamilySystem, layer: int, tokens: Indices) -> Tokens:
    """Weighted mean of all that each of these tokens sees, shape (tokens, d)."""
    places, mass = system.form.positions(layer), system.weights[:, None]
    # A symmetric set has mean zero; its rounding error must not select a direction.
    negligible = system.tolerance * system.sizes[tokens][:, None]
    if system.causal:
        mean = ((mass * places).cumsum(dim=0) / mass.cumsum(dim=0))[tokens]
    else:
        mean = ((mass / mass.sum()) * places).sum(dim=0).expand(len(tokens), -1)
    return torch.where((mean.abs() <= negligible).all(dim=1, keepdim=True), 0.0, mean)


@dataclass(frozen=True)
class HeadChoice:
    """Points that the active tokens listen to in one head; zero queries listen to all that they see."""

    first: Indices
    """Lowest point of each set, shape (active,)."""
    single: torch.Tensor
    """Whether the set is a single point, shape (active,)."""
    everyone: torch.Tensor
    """Whether the query is zero and more than one point is in sight, shape (active,)."""
    rows: Indices
    """Active token of each entry of ``members``."""
    members: Indices
    """Points of the sets with several points, one set after the other, ascending."""
    certain: torch.Tensor
    """Whether the set is the same for all positions within rounding errors, shape (active,)."""

    @staticmethod
    def of(choice: Choice, view: View, certain: torch.Tensor) -> HeadChoice:
        """The sets of a search."""
        several = torch.tensor(len(view.points) > 1) if view.stop is None else view.stop > 1
        everyone = choice.everyone & several.to(choice.everyone.device)
        single = ~everyone
        single[choice.tied] = False
        return HeadChoice(choice.first, single, everyone, choice.rows, choice.members, certain)


def choose_certainly(system: FamilySystem, view: View, matrix: Square, queries: Queries) -> HeadChoice:
    """Sets of the active tokens in one head, and which of them do not depend on rounding errors.

    Each set is searched with a tolerance above the error of its scores, then reduced to the scores that tie by the
    tolerance of the system; where that removes a point, the set is not certain.
    """
    error = _relative_error(system, view, matrix, queries)
    tolerance, stop = system.tolerance, view.stop
    power = torch.ceil(torch.log(error.clamp_min(1e-300)) / math.log(_STEP))
    wanted = torch.where((error <= tolerance / 2) | (error >= _HOPELESS), -torch.inf, power)
    first, single = torch.zeros_like(view.tokens), torch.ones_like(error, dtype=torch.bool)
    everyone, certain = torch.zeros_like(single), error < _HOPELESS
    rows, members = [first[:0]], [first[:0]]
    for each in torch.unique(wanted).tolist():
        some = torch.nonzero(wanted == each)[:, 0]
        wide = max(tolerance, _STEP**each) if each > -math.inf else tolerance
        sight = None if stop is None else stop[some]
        choice = system.search(queries[some], view.points, tolerance=wide, stop=sight)
        first[some], everyone[some] = choice.first, choice.everyone
        row = choice.rows
        value = score(queries[some[row]], view.points[choice.members])
        slack = view.slack(queries[some], tolerance, sight)
        ties = value >= (choice.best - slack)[row]
        certain[some[row[~ties]]] = False
        rows.append(some[row[ties]])
        members.append(choice.members[ties])
    row, member = torch.cat(rows), torch.cat(members)
    order = torch.argsort(row, stable=True)
    row, member = row[order], member[order]
    size = torch.bincount(row, minlength=len(first))
    lowest = torch.full_like(first, len(view.points)).scatter_reduce(0, row, member, "amin")
    first = torch.where(size > 0, lowest, first)
    listed = size[row] > 1
    single[size > 1] = False
    several = torch.tensor(len(view.points) > 1, device=row.device) if stop is None else stop > 1
    everyone &= several
    # A query that became zero on the way may differ from zero by a rounding error.
    certain &= ~everyone | (view.layer == 0) | system.zero_at_start[view.tokens]
    return HeadChoice(first, single & ~everyone, everyone, row[listed], member[listed], certain)


def _relative_error(system: FamilySystem, view: View, matrix: Square, queries: Queries) -> PerQuery:
    """Bound on the error of a difference of two scores, relative to the largest score that the lengths allow."""
    d, eps = view.points.shape[1], torch.finfo(torch.float64).eps
    tokens = view.tokens
    position = _UNITS_PER_LAYER * eps * view.layer * system.sizes[tokens] * d**0.5
    asked, own = length(queries), length(system.form.anchor[tokens])
    of_query = float(torch.linalg.matrix_norm(matrix)) * (position + d * eps * own)
    longest = view.longest[-1] if view.stop is None else view.longest[view.stop - 1]
    error = 2 * (position / longest.clamp_min(1e-300) + of_query / asked.clamp_min(1e-300))
    return torch.where(asked > 0, error, 0.0)
