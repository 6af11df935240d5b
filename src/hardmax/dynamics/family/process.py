r"""Hardmax attention with a mask, several heads and steps, run until the future of every token is known.

Facts used (proofs in ``docs/devdocs/attention-family.rst``), for masks under which each token sees all that the tokens
in its sight see:

- a token that listens to its own position alone, in every head, never moves again: it is **fixed**;
- a token that in every head listens to the position of a token at rest, and would do so at the mean
  :math:`z^* = \sum_h w_h l_h` of these positions too, moves straight to :math:`z^*` for ever;
- a token that is tied, or listens to tokens that move, is decided where :mod:`hardmax.dynamics.family.ties` proves that
  its sets stay the same.

All other tokens are active and are moved layer by layer; each has a reason why it is not decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import torch

from ...attention.choice import Choice, apply, length, score
from ...attention.normal_form import distinct
from ...attention.search import attended
from ...attention.search.masked import attended_in
from ...shapes import Indices, PerToken, Queries, Square, Tokens
from ..certainty import safely_inside
from ..leadership import Undecided, leaders_of_groups
from ..process import SMALLEST_ALPHA
from .form import FamilySystem
from .ties import is_examined_together, lasting_ties, lasting_together
from .view import HeadChoice, View, choose_certainly

# Searches that narrow down where a token stops leading; followers that remain are searched one by one.
_NARROWINGS = 24
# Runs shorter than this are not tested for choices that repeat.
_REPEATS_FROM = 64
# The end of a segment is placed a little further on, so that rounding of the infinite product does not matter.
_SAFELY = 1 - 2.0**-40


def search_in_sight(queries: Queries, points: Tokens, *, tolerance: float, stop: Indices | None = None) -> Choice:
    """Sets of the largest score: of query i among the points before ``stop[i]``, or among all if ``stop`` is None."""
    if stop is None:
        return attended(queries, points, tolerance=tolerance)
    return attended_in(queries, points, torch.zeros_like(stop), stop, tolerance=tolerance)


class FamilyProcess:
    """Tokens under hardmax attention with a mask, heads and steps, advanced one layer at a time until all are decided.

    ``points`` and ``matrices`` (one per head) are float64 and of size about one. Under ``causal`` token i sees the
    tokens up to i, otherwise all; then points are distinct. ``search`` is :func:`search_in_sight`, or the same with the
    queries shared by several processes.
    """

    def __init__(
        self,
        points: Tokens,
        weights: PerToken,
        matrices: Sequence[Square],
        shares: Sequence[float],
        alpha_at: Callable[[int], float | Fraction],
        remaining: Callable[[int], float] | None,
        causal: bool,
        tolerance: float,
        search: Callable[..., Choice] = search_in_sight,
    ) -> None:
        count, device = points.shape[0], points.device
        self.layer = 0
        self.settled = self.recurring = False
        self.active = torch.arange(count, device=device)
        self.emerged_at = torch.full((count,), -1, device=device)
        self.follows = torch.full((count,), -1, device=device)
        self.choices = torch.full((len(matrices), count), -1, device=device)
        self.reasons = torch.zeros(count, dtype=torch.int64, device=device)
        self.ties: dict[int, list[int]] = {}
        self._system = FamilySystem.of(
            points,
            weights,
            matrices,
            shares,
            alpha_at,
            _nothing if remaining is None else remaining,
            causal,
            tolerance,
            search,
        )
        self._form, self._constant, self._causal = self._system.form, remaining is None, causal
        self._rests = torch.zeros(count, dtype=torch.bool, device=device)
        self._fixed = torch.zeros_like(self._rests)
        self._doubtful_from = count
        """Lowest token whose position may differ from the true one by more than rounding."""
        self._candidates = self.active
        self._means: Tokens = points[:0]
        self._mark: tuple[Tokens, Tokens, Indices] | None = None
        self._before: Tokens | None = None
        self._decide()

    @property
    def done(self) -> bool:
        """Whether every token's future is known."""
        return len(self.active) == 0

    @property
    def stuck(self) -> bool:
        """Whether alpha is so small that steps are lost in rounding, so that more layers decide nothing."""
        return self._constant and self._form.step(0) < SMALLEST_ALPHA

    @property
    def certain(self) -> bool:
        """Whether every choice so far was certain; tokens that see one that was not are not decided."""
        return self._doubtful_from == len(self.follows)

    @property
    def decided_at(self) -> Indices:
        """Layer of each token's decision, shape (tokens,); -1 while it is active."""
        return self._form.decided_at

    def positions(self, layer: int | None = None) -> Tokens:
        """Positions at this layer, or at any later one once every token is decided, shape (tokens, d)."""
        return self._form.positions(self.layer if layer is None else layer)

    def limit(self) -> Tokens:
        """Limit of every token, shape (tokens, d); for an undecided one its position."""
        return self._form.limit()

    def move(self) -> None:
        """Move the active tokens by one layer, then decide those whose future is known."""
        self._form.move(self.active, self._means, self.layer, self._system.sizes[self.active])
        self.layer += 1
        self._decide()

    def _decide(self) -> None:
        view = self._view()
        choices = [self._choose(view, matrix) for matrix in self._system.matrices]
        certain = choices[0].certain.clone()
        single = choices[0].single.clone()
        for choice in choices[1:]:
            certain &= choice.certain
            single &= choice.single
        tokens = self.active
        allowed = certain & (tokens < self._doubtful_from)
        self.reasons[tokens] = torch.where(single, int(Undecided.MOVING), int(Undecided.TIED))

        own = view.point_of(tokens)
        leads = single & allowed
        for choice in choices:
            leads &= choice.first == own
        self._fix(tokens[leads], own[leads], view)

        resting = view.first_at_rest(self._rests)
        settled = leads | self._follow(view, choices, single & allowed & ~leads, resting)
        hard = torch.nonzero(~single & allowed)[:, 0]
        if len(hard):
            settled |= self._tie(view, choices, hard, resting)
        if is_examined_together(self.layer) and not bool(settled.all()):
            settled |= self._settle_together(view, choices, settled, allowed, resting)
        rest = torch.nonzero(~settled)[:, 0]
        if not self._system.definite and not bool(certain[rest].all()):
            doubtful = int(tokens[rest][~certain[rest]].min()) if self._causal else 0
            self._doubtful_from = min(self._doubtful_from, doubtful)
        self.active = tokens[rest]
        if self.done:
            return
        self._means = view.attended_means(choices, rest, self._system)
        self._watch(view)
        self._forget(view)

    def _view(self) -> View:
        candidates = self._candidates
        places = self._form.positions(self.layer, None if len(candidates) == len(self.follows) else candidates)
        decided = self._form.decided_at[candidates] >= 0
        if self.layer:
            apart = (places - self._form.target[candidates]).abs().amax(dim=1)
            near = decided & (apart <= self._system.tolerance * self._system.sizes[candidates])
            places = torch.where(near[:, None], self._form.target[candidates], places)
            self._rests[candidates[near]] = True
            self._form.straight[candidates[near]] = True
        found = distinct(places, self._system.weights[candidates])
        if self._constant:
            self.settled = self._before is not None and torch.equal(self._before, places)
        else:  # what all later steps together move is below rounding
            self.settled = 1 - self._system.remaining(self.layer) < 2.0**-53
        return View(self.layer, self.active, candidates, places, found, self._causal, len(self.follows))

    def _choose(self, view: View, matrix: Square) -> HeadChoice:
        queries = apply(matrix, self._form.anchor[self.active])
        if self._system.definite:
            choice = self._system.search(queries, view.points, tolerance=self._system.tolerance, stop=view.stop)
            return HeadChoice.of(choice, view, torch.ones_like(choice.everyone))
        return choose_certainly(self._system, view, matrix, queries)

    def _fix(self, tokens: Indices, points: Indices, view: View) -> None:
        if not len(tokens):
            return
        self._rests[tokens] = self._fixed[tokens] = True
        self._form.settle(tokens, self._form.anchor[tokens], self.layer)
        home = view.first_at_rest(self._rests)[points]
        self.follows[tokens] = tokens
        self.follows[tokens] = self.follows[home]
        self.choices[:, tokens] = self.follows[tokens]
        self.emerged_at[tokens[self.follows[tokens] == tokens]] = self.layer
        self.reasons[tokens] = 0

    def _follow(self, view: View, choices: list[HeadChoice], maybe: torch.Tensor, resting: Indices) -> torch.Tensor:
        """Mask of the active tokens that follow tokens at rest for ever, after settling them."""
        tokens = self.active
        for choice in choices:
            maybe = maybe & view.sees(tokens, resting[choice.first])
        rows = torch.nonzero(maybe)[:, 0]
        done = torch.zeros_like(maybe)
        if not len(rows):
            return done
        first = torch.stack([choice.first[rows] for choice in choices])
        group, group_of = torch.unique(first, dim=1, return_inverse=True) if len(choices) > 1 else _unique(first)
        targets = self._system.mean_of_heads([view.points[points] for points in group])
        stop = None if view.stop is None else view.stop[rows]
        ends, short = targets, self._system.remaining(self.layer)
        if short > 0:  # steps of a finite sum end before the target, at a point of each token's own
            group, targets = group[:, group_of], targets[group_of]
            group_of = torch.arange(len(rows), device=rows.device)
            ends = targets + short * _SAFELY * (self._form.anchor[tokens[rows]] - targets)
        follows = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        for h, matrix in enumerate(self._system.matrices):
            # A fixed token leads among all that it sees, which without a mask is everything.
            if len(choices) == 1 and not self._causal and bool(self._fixed[resting[group[0]]].all()):
                break
            left = torch.nonzero(follows)[:, 0]
            sight = None if stop is None else stop[left]
            reached = self._reached(view, apply(matrix, ends), group[h], group_of[left], sight)
            reason = Undecided.OUTSIDE_CONE + h if len(choices) > 1 else Undecided.NOT_LEADING_IN_SIGHT
            self.reasons[tokens[rows[left[~reached]]]] = int(reason)
            follows[left[~reached]] = False
        rows, group_of = rows[follows], group_of[follows]
        done[rows] = True
        settled = tokens[rows]
        self._form.settle(settled, targets[group_of], self.layer)
        for h in range(len(choices)):
            self.choices[h, settled] = self.follows[resting[group[h]]][group_of]
        self.follows[settled] = self.choices[0, settled]
        self.reasons[settled] = 0
        return done

    def _tie(self, view: View, choices: list[HeadChoice], hard: Indices, resting: Indices) -> torch.Tensor:
        """Mask of the active tokens that are tied for ever, after settling them."""
        done = torch.zeros_like(view.tokens, dtype=torch.bool)
        found = lasting_ties(self._system, view, choices, hard, resting)
        if found is None or not len(found.rows):
            return done
        done[found.rows] = True
        tokens = view.tokens[found.rows]
        behind = {token: [self._leaders_behind(some) for some in sets] for token, sets in found.pairs.items()}
        self._form.settle(tokens, found.targets, self.layer)
        bent = found.bent
        self._form.bend(tokens[bent], found.share[bent], found.slow[bent], found.resonant[:, bent])
        for token, leaders in behind.items():
            everyone = sorted({leader for some in leaders for leader in some})
            if not everyone:  # the members listen to one another alone and meet at their mean
                everyone = [min(member for members in found.pairs[token] for member in members)]
                self.emerged_at[everyone[0]] = self.layer
            for h, some in enumerate(leaders):
                self.choices[h, token] = some[0] if some else everyone[0]
            if len(leaders[0]) > 1:
                self.ties[token] = leaders[0]
        self.follows[tokens] = self.choices[0, tokens]
        self.reasons[tokens] = 0
        return done

    def _settle_together(
        self, view: View, choices: list[HeadChoice], settled: torch.Tensor, allowed: torch.Tensor, resting: Indices
    ) -> torch.Tensor:
        """Mask of the active tokens that keep their sets if all that they see do, after settling them."""
        done = torch.zeros_like(settled)
        waiting = torch.nonzero(~settled)[:, 0]
        doubtful = view.tokens[waiting[~allowed[waiting]]]
        found = lasting_together(self._system, view, choices, waiting, resting, doubtful)
        if found is None:
            return done
        done[found.rows] = True
        tokens = view.tokens[found.rows]
        self._form.settle(tokens, found.targets, self.layer)
        bent = found.bent
        self._form.bend(tokens[bent], found.share[bent], found.slow[bent], found.resonant[:, bent])
        for token, leaders, first in leaders_of_groups(tokens.tolist(), found.pairs, self.follows, self.ties):
            if first is not None:
                self.emerged_at[first] = self.layer
            for h, some in enumerate(leaders):
                self.choices[h, token] = some[0]
            self.follows[token] = self.choices[0, token]
            if len(leaders[0]) > 1:
                self.ties[token] = leaders[0]
        self.reasons[tokens] = 0
        return done

    def _leaders_behind(self, members: Sequence[int]) -> list[int]:
        """Leaders among these tokens and leaders that they follow, ascending."""
        leaders = set(self.follows[torch.tensor(members)].tolist()) - {-1}
        return sorted(leaders.union(*(self.ties[token] for token in members if token in self.ties)))

    def _reached(
        self, view: View, queries: Queries, leaders: Indices, group_of: Indices, stop: Indices | None
    ) -> torch.Tensor:
        """Mask of the followers in whose sight the point of their group has the largest score for its query."""
        own = score(queries, view.points[leaders])
        if stop is None:
            best = self._system.search(queries, view.points, tolerance=self._system.tolerance).best
            return (own >= best - view.slack(queries, self._system.tolerance))[group_of]
        reached = torch.zeros(len(group_of), dtype=torch.bool, device=stop.device)
        most = self._system.tolerance * length(queries) * view.longest[-1]
        pending, singly = torch.arange(len(group_of), device=stop.device), [group_of[:0]]
        for _ in range(_NARROWINGS):
            if not len(pending):
                break
            groups, place = torch.unique(group_of[pending], return_inverse=True)
            furthest = torch.zeros_like(groups).scatter_reduce(0, place, stop[pending], "amax")
            found = self._system.search(queries[groups], view.points, tolerance=self._system.tolerance, stop=furthest)
            wins = found.best <= own[groups]  # and then in every smaller sight too
            reached[pending[wins[place]]] = True
            beaten_by = score(queries[groups], view.points[found.first])
            clear = ~wins & (beaten_by > own[groups] + most[groups])
            # Scores that differ by less than the tolerance depend on the sight of each follower.
            singly.append(pending[(~wins & ~clear)[place]])
            pending = pending[clear[place] & (stop[pending] <= found.first[place])]
        rest = torch.cat([*singly, pending])
        if len(rest):
            asked = queries[group_of[rest]]
            best = self._system.search(asked, view.points, tolerance=self._system.tolerance, stop=stop[rest]).best
            reached[rest] = own[group_of[rest]] >= best - view.slack(asked, self._system.tolerance, stop[rest])
        return reached

    def _watch(self, view: View) -> None:
        """Note whether the state repeats, so that no further token will be decided."""
        self._before = view.places.clone()  # those of layer 0 are the anchors themselves
        if self.layer < _REPEATS_FROM or not self._constant:
            return
        decided = self._form.decided_at[view.candidates] >= 0
        others = view.places[decided]
        if self._mark is None or self.layer & (self.layer - 1) == 0 or len(self._mark[1]) != len(others):
            self._mark = (self._form.anchor.clone(), others, self.active)
            return
        anchors, before, waiting = self._mark
        if not torch.equal(before, others):
            self._mark = None
            return
        waiting = waiting[(self._form.anchor[waiting] != anchors[waiting]).any(dim=1)]
        self._mark = (anchors, before, waiting)
        self.recurring = not len(waiting)

    def _forget(self, view: View) -> None:
        """Drop points that no active token can ever listen to again."""
        candidates, places = view.candidates, view.places
        active = self._form.decided_at[candidates] < 0
        fixed = self._fixed[candidates]
        stays = active | fixed | ~self._form.straight[candidates]
        margin = 4 * self._system.tolerance * float(self._system.sizes[-1]) * places.shape[1]
        if not self._causal:
            inside = safely_inside(places, places[fixed], margin)
        else:
            inside = torch.zeros_like(stays)
            # A point is dropped if it is inside the hull of fixed tokens before it: tokens that see it see these too.
            begin = 1
            while begin < len(self.follows):
                ends = torch.tensor([begin, 2 * begin], device=candidates.device)
                low, high = (int(x) for x in torch.searchsorted(candidates, ends))
                leaders = places[:low][fixed[:low]]
                inside[low:high] = safely_inside(places[low:high], leaders, margin)
                begin *= 2
        # A follower that has reached the position of its leader is never tied with it.
        alone = (
            (self.choices[:, candidates] == self.follows[candidates]).all(dim=0) if len(self.choices) > 1 else ~active
        )
        arrived = self._rests[candidates] & ~fixed & alone & self._form.straight[candidates]
        if self.ties:
            arrived &= ~torch.isin(candidates, torch.tensor(list(self.ties), device=candidates.device))
        arrived &= self._fixed[self.follows[candidates].clamp_min(0)]
        keep = (stays | ~inside) & ~arrived
        if self._causal:
            keep &= candidates <= int(self.active[-1])
        if not bool(keep.all()):
            self._candidates = candidates[keep]
            self._before, self._mark = None, None


def _nothing(layer: int) -> float:
    """Share of the distance that is never covered where the steps have an infinite sum."""
    return 0.0


def _unique(rows: torch.Tensor) -> tuple[torch.Tensor, Indices]:
    group, group_of = torch.unique(rows[0], return_inverse=True)
    return group[None], group_of
