r"""The hardmax map, run until the future of every token is known in closed form.

Facts used (proofs in ``docs/devdocs/``; none needs more of A than that it is square, but if A is not symmetric positive
definite tokens may shrink to a point, and :mod:`hardmax.dynamics.certainty` tests what floats decide):

- a token that listens to itself alone is a **leader**: it never moves again;
- a token that listens to one leader alone is **loyal**: :math:`z^{k+m} = z_l + (1+\alpha)^{-m}(z^k - z_l)`;
- a token that listens to several stays **tied** with them for ever when the conditions of
  :mod:`hardmax.dynamics.ties` hold; then it has a closed form too;
- tokens that listen to exactly one another are **joint leaders** and meet at their mean.

All other tokens are active and are moved layer by layer. Usually a few layers suffice, and only the first involves all
tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..attention.argmax import attended_mean
from ..attention.choice import Choice, apply
from ..attention.search import attended
from ..shapes import Indices, PerToken, Square, Tokens
from .certainty import Certainty, safely_inside
from .closed_form import ClosedForm, pick
from .ties import StandingTies, all_ties_last

# With a smaller alpha fewer than twelve bits of a step survive its addition to a position in float64.
SMALLEST_ALPHA = 2.0**-40


class HardmaxProcess:
    """Distinct points under the hardmax map, advanced one layer at a time until all are decided.

    ``points`` and ``A`` are float64 and of size about one (see :mod:`hardmax.attention.normal_form`). ``search`` finds
    the tokens that active tokens listen to; several processes share that work (see
    :mod:`hardmax.dynamics.distributed`).
    """

    def __init__(
        self,
        points: Tokens,
        weights: PerToken,
        A: Square,
        alpha: float,
        tolerance: float,
        search: Callable[..., Choice] = attended,
    ) -> None:
        count, device = points.shape[0], points.device
        self.layer = 0
        self.settled = self.recurring = False
        self.active = torch.arange(count, device=device)
        self.emerged_at = torch.full((count,), -1, device=device)
        self.follows = torch.full((count,), -1, device=device)
        self.ties: dict[int, list[int]] = {}
        self._weights, self._A, self._alpha, self._tolerance = weights, A, alpha, tolerance
        self._search = search
        self._form = ClosedForm(points, alpha)
        self._certainty = Certainty(A, alpha, tolerance, self._form, search)
        self._home = torch.full((count,), -1, device=device)  # leader at whose position a token rests
        self._joint = torch.zeros(count, dtype=torch.bool, device=device)
        self._candidates = self.active  # points that an active token might still listen to
        self._means: Tokens = points[:0]
        self._last_choice: Indices | None = None
        self._decide()

    @property
    def done(self) -> bool:
        """Whether every token's future is known."""
        return len(self.active) == 0

    @property
    def stuck(self) -> bool:
        """Whether alpha is so small that steps are lost in rounding, so that more layers decide nothing."""
        return self._alpha < SMALLEST_ALPHA

    @property
    def certain(self) -> bool:
        """Whether every choice so far was certain; after one that was not, nothing more is decided."""
        return self._certainty.holds(self.layer)

    @property
    def decided_at(self) -> Indices:
        """Layer of each token's decision, shape (tokens,); -1 while it is active."""
        return self._form.decided_at

    def positions(self, layer: int | None = None) -> Tokens:
        """Positions at this layer, or at any later one once every token is decided, shape (tokens, d)."""
        return self._form.positions(self.layer if layer is None else layer)

    def limit(self) -> Tokens:
        """Limit of every token, shape (tokens, d); for an undecided one its position."""
        return self._form.target

    def move(self) -> None:
        """Move the active tokens by one layer, then decide those whose future is known."""
        step = self._form.move(self.active, self._means)
        self.layer += 1
        self._decide()
        # An active token may rest for one layer while the tokens that it listens to still move.
        rounding = torch.finfo(torch.float64).eps * self._form.size
        if step <= self._alpha * rounding:
            self.settled = float((self.positions() - self._form.target).abs().max()) <= rounding

    def _decide(self) -> None:
        whole = len(self._candidates) == len(self.follows)
        points = self._form.positions(self.layer, None if whole else self._candidates)
        choice = self._choose(points)
        first = choice.first if whole else self._candidates[choice.first]
        # A single point at zero listens to itself alone; otherwise a zero token listens to every token.
        everyone = choice.everyone & (len(self.follows) > 1)
        several = torch.zeros(len(self.active), dtype=torch.bool, device=points.device)
        several[choice.tied] = True
        alone = ~several & ~everyone

        alone &= self._certainty.of_choices(self.active, choice, alone, points, self.layer)
        leads = alone & (first == self.active)
        self._lead(self.active[leads])
        follows = alone & ~leads & (self._home[first] >= 0)
        leaders = self._home[first[follows]]
        self._settle(self.active[follows], self._form.target[leaders], leaders)
        settled = leads | follows
        if len(choice.tied):
            only_ties_left = bool((settled | several).all())
            settled[choice.tied] = self._decide_ties(choice, points, only_ties_left)
        has_zero = bool(everyone.any())
        if has_zero:
            settled |= everyone & self._zero_stays(self.active[everyone], bool((settled | everyone).all()))
        rest = torch.nonzero(~settled)[:, 0]
        self.active = self.active[rest]
        if self.done:
            return
        self._last_choice = first[rest]
        self._means = attended_mean(choice.among(rest), points, pick(self._weights, self._candidates))
        if has_zero:
            self._means = torch.where(everyone[rest][:, None], self._mean_of_all(), self._means)
        self._forget_candidates(points)

    def _choose(self, points: Tokens) -> Choice:
        hint = None
        if self._last_choice is not None:
            place = torch.zeros(len(self.follows), dtype=torch.int64, device=points.device)
            place[self._candidates] = torch.arange(len(self._candidates), device=points.device)
            hint = place[self._last_choice]
        queries = apply(self._A, pick(self._form.anchor, self.active))
        return self._search(queries, points, tolerance=self._tolerance, hint=hint)

    def _lead(self, tokens: Indices) -> None:
        self.emerged_at[tokens] = self.layer
        self._home[tokens] = tokens
        self._settle(tokens, self._form.anchor[tokens], tokens)

    def _settle(self, tokens: Indices, targets: Tokens, leaders: Indices) -> None:
        self._form.settle(tokens, targets, self.layer)
        self.follows[tokens] = leaders

    def _decide_ties(self, choice: Choice, points: Tokens, only_ties_left: bool) -> torch.Tensor:
        """Mask of the tied queries that could be settled, after settling them."""
        tied, members = self.active[choice.tied], self._candidates[choice.members]
        arrived, leader = self._arrived(tied, members, choice)
        arrived &= self._certainty.of_near_leaders(self.layer)
        self._settle(tied[arrived], self._form.target[leader[arrived]], leader[arrived])
        found = StandingTies(
            form=self._form,
            weights=self._weights,
            A=self._A,
            alpha=self._alpha,
            tolerance=self._tolerance,
            points=points,
            layer=self.layer,
            queries=tied,
            members=members,
            offsets=choice.offsets,
            leads=self.emerged_at >= 0,
        )
        known = self._certainty.of_ties(tied, members, choice.offsets, found.joint & found.alike, points, self.layer)
        stays = found.stands & known & ~arrived
        if (
            only_ties_left
            and bool(known.all())
            and not bool((stays | arrived).all())
            and self._all_last(found, arrived, points, choice)
        ):
            stays = ~arrived
        found.settle(stays)
        first = members[choice.offsets[:-1]]
        joint = stays & found.joint
        self.follows[tied[joint]] = first[joint]
        self._joint[tied[joint & found.hears_itself]] = True
        self.emerged_at[first[joint]] = self.layer
        for t in torch.nonzero(stays & ~joint)[:, 0].tolist():
            leaders = self._leaders_behind(members[int(choice.offsets[t]) : int(choice.offsets[t + 1])])
            self.follows[tied[t]] = leaders[0]
            if len(leaders) > 1:
                self.ties[int(tied[t])] = leaders
        return stays | arrived

    def _leaders_behind(self, members: Indices) -> list[int]:
        """Leaders among these tokens and leaders that they follow, ascending."""
        leaders = set(self.follows[members].tolist()) - {-1}
        for token in self.ties.keys() & members.tolist() if self.ties else ():
            leaders.update(self.ties[token])
        return sorted(leaders)

    def _all_last(self, found: StandingTies, arrived: torch.Tensor, points: Tokens, choice: Choice) -> bool:
        """Whether all ties last, given that nothing but these ties is undecided."""
        rest = torch.nonzero(~arrived)[:, 0]
        if bool((found.slowed | ~found.alike)[rest].any()) or bool(self._form.special.any()):
            return False
        goal, drift = self._form.target.clone(), torch.zeros_like(self._form.target)
        tied = self.active[choice.tied[rest]]
        goal[tied], drift[tied] = found.targets[rest], found.resonant[rest]
        mine = choice.among(choice.tied[rest])
        return all_ties_last(
            A=self._A,
            alpha=self._alpha,
            tolerance=self._tolerance,
            points=points,
            goals=goal[self._candidates],
            drifts=drift[self._candidates],
            tied=torch.searchsorted(self._candidates, tied),
            members=mine.members,
            rows=mine.rows,
        )

    def _arrived(self, tied: Indices, members: Indices, choice: Choice) -> tuple[torch.Tensor, Indices]:
        """Mask of the tied queries within the tolerance of a leader that they listen to, and that leader."""
        row = torch.repeat_interleave(torch.arange(len(tied), device=tied.device), choice.sizes)
        distance = (self._form.anchor[tied[row]] - self._form.anchor[members]).abs().amax(dim=1)
        there = (self._home[members] >= 0) & (distance <= self._tolerance * self._form.size)
        leader = torch.full_like(tied, -1)
        leader[row[there]] = self._home[members[there]]
        return leader >= 0, leader

    def _mean_of_all(self) -> torch.Tensor:
        mass = self._weights[:, None] / self._weights.sum()
        mean = (mass * self.positions()).sum(dim=0)
        # A symmetric set has mean zero; its rounding error must not select a direction.
        return torch.zeros_like(mean) if float(mean.abs().max()) <= self._tolerance * self._form.size else mean

    def _zero_stays(self, tokens: Indices, others_decided: bool) -> bool:
        """Settle zero tokens, which move by the mean of all, when that mean is zero now and for ever."""
        mass = self._weights[:, None] / self._weights.sum()
        goals = self._form.target.clone()
        goals[tokens] = 0.0  # a token with A z = 0 need not be at zero, but goes there if the mean stays zero
        later = (mass * goals).sum(dim=0)
        if (
            not others_decided
            or not self._certainty.holds(self.layer)
            or float(later.abs().max()) > self._tolerance * self._form.size
        ):
            return False
        now = self._mean_of_all()
        if bool(now.any()):
            return False
        leaders = torch.nonzero(self.emerged_at >= 0)[:, 0]
        if not len(leaders):  # there is no leader, so the zero tokens lead jointly
            leaders = tokens[:1]
            self.emerged_at[leaders] = self.layer
        self._settle(tokens, now.expand(len(tokens), -1), leaders[0].expand(len(tokens)))
        if len(leaders) > 1:
            self.ties.update((int(token), leaders.tolist()) for token in tokens)
        return True

    def _forget_candidates(self, points: Tokens) -> None:
        """Drop points that no active token can ever listen to again; mark those that rest at a leader."""
        candidates = self._candidates
        leads = pick(self._home, candidates) == candidates
        margin = 4 * self._tolerance * self._form.size * points.shape[1]
        stays = leads | pick(self._joint, candidates) | (pick(self._form.decided_at, candidates) < 0)
        stays |= ~safely_inside(points, points[leads], margin)
        if self.ties:
            stays |= torch.isin(candidates, torch.tensor(list(self.ties), device=candidates.device))
        kept = torch.nonzero(stays)[:, 0]
        candidates, points, leads = candidates[kept], points[kept], leads[kept]

        decided = self._form.decided_at[candidates] >= 0
        apart = (points - self._form.target[candidates]).abs().amax(dim=1)
        near = decided & (apart <= self._tolerance * self._form.size)
        joint = self._joint[candidates]
        met = candidates[near & joint]
        self._home[met] = self.follows[met]
        # A loyal follower this close to its leader would count as tied with it, which it never is.
        at_leader = near & ~leads & ~joint & (self._home[self.follows[candidates].clamp_min(0)] >= 0)
        if self.ties:
            at_leader &= ~torch.isin(candidates, torch.tensor(list(self.ties), device=candidates.device))
        self._candidates = candidates[~at_leader] if bool(at_leader.any()) else candidates
