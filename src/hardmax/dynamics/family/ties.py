r"""Tied tokens under masks, heads and steps, in floating point: which of them listen to the same sets for ever.

In head h token i listens to the set :math:`C_i^h`, in which a set that lies at the position of a token at rest is
replaced by that token. Over all heads, active members have the total share :math:`\sigma` and the mean u, decided ones
the mean d now and :math:`d_\infty` in the limit. The sets stay the same for ever when

1. every active member listens to the same sets as i, and every decided one goes straight to its target;
2. for each of the directions :math:`v \in \{z_i, u, d, d_\infty\}` the largest :math:`\langle A_h v, \cdot\rangle` in
   the sight of i is attained by every member, by its target if it is decided, and, in heads with active members, by u,
   d and :math:`d_\infty`.

Tokens whose members retreat from their faces are examined together, by rounds of listening: the mean that a token
listens to, the mean of the means of its members, and so on. If in every round the members have the largest scores, no
set ever changes.

The proofs and the closed forms are in ``docs/devdocs/attention-family.rst``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...attention.choice import apply, length, score
from ...attention.normal_form import Distinct, distinct
from ...shapes import Indices, Tokens
from .form import FamilySystem
from .view import HeadChoice, View

# Pairs of a tied token and a member that are examined at one layer; beyond that, ties wait for a later layer.
_MOST_PAIRS = 5_000_000
# Rounds of listening after which the mean that a token listens to must be constant.
_MOST_ROUNDS = 64
# Pairs of an active token and a candidate; beyond that, tokens are not examined together.
_LARGEST_TABLE = 50_000_000


@dataclass(frozen=True)
class LastingTies:
    """Tied tokens that listen to the same sets for ever."""

    rows: Indices
    """Rows of the view's tokens."""
    targets: Tokens
    share: torch.Tensor
    """Share of active members in what the token listens to."""
    slow: Tokens
    resonant: torch.Tensor
    """Terms q of the closed form, shape (rounds, tokens, d)."""
    bent: torch.Tensor
    """Whether ``slow`` or ``resonant`` is not negligible."""
    pairs: dict[int, list[list[int]]]
    """Members of each of these tokens in each head."""


def is_examined_together(layer: int) -> bool:
    """Whether all active tokens are examined together at this layer: at 2, 4, 8, …, since it costs several searches.

    >>> [layer for layer in range(20) if is_examined_together(layer)]
    [2, 4, 8, 16]
    """
    return layer > 1 and layer & (layer - 1) == 0


def lasting_together(
    system: FamilySystem, view: View, choices: list[HeadChoice], active: Indices, resting: Indices, bad: Indices
) -> LastingTies | None:
    """Active tokens in these rows that keep their sets if all that they see move as these sets say; None if none does.

    Tokens that see one of ``bad`` are left out.
    """
    if len(active) * len(view.candidates) > _LARGEST_TABLE or system.remaining(view.layer) > 0:
        return None
    pairs = _Pairs.of(system, view, choices, active, resting)
    return None if pairs is None else _Examined(system, view, active, pairs).together(bad)


def lasting_ties(
    system: FamilySystem, view: View, choices: list[HeadChoice], hard: Indices, resting: Indices
) -> LastingTies | None:
    """Those of the tokens in the rows ``hard`` that listen to the same sets for ever; None if none was examined.

    ``resting`` is the lowest token at rest at each point.
    """
    pairs = _Pairs.of(system, view, choices, hard, resting)
    return None if pairs is None else _Examined(system, view, hard, pairs).lasting()


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a tied token (by its place in ``hard``) and a member, per head."""

    row: Indices
    head: Indices
    member: Indices

    @staticmethod
    def of(
        system: FamilySystem, view: View, choices: list[HeadChoice], hard: Indices, resting: Indices
    ) -> _Pairs | None:
        tokens = view.tokens[hard]
        parts: list[tuple[Indices, Indices, Indices]] = []
        place = torch.full_like(view.tokens, -1)
        place[hard] = torch.arange(len(hard), device=hard.device)
        for h, choice in enumerate(choices):
            row = place[choice.rows]
            mine = row >= 0
            row, point = row[mine], choice.members[mine]
            alone = torch.nonzero(choice.single[hard])[:, 0]
            at = choice.first[hard[alone]]
            calm = view.sees(tokens[alone], resting[at])
            listed = [(alone[calm], resting[at[calm]])]
            row, point = torch.cat([row, alone[~calm]]), torch.cat([point, at[~calm]])
            if len(row) > _MOST_PAIRS:
                return None
            pair, member = view.tokens_at(tokens[row], point)
            listed.append((row[pair], member))
            zero = torch.nonzero(choice.everyone[hard])[:, 0]
            seen = tokens[zero] + 1 if system.causal else torch.full_like(zero, view.count)
            if int(seen.sum()) + len(pair) > _MOST_PAIRS:
                return None
            asks = torch.repeat_interleave(zero, seen)
            first = torch.repeat_interleave(seen.cumsum(0) - seen, seen)
            listed.append((asks, torch.arange(len(asks), device=asks.device) - first))
            rows, members = (torch.cat(some) for some in zip(*listed, strict=True))
            parts.append((rows, torch.full_like(rows, h), members))
        row, head, member = (torch.cat(some) for some in zip(*parts, strict=True))
        order = torch.argsort((row * len(choices) + head) * view.count + member)
        return _Pairs(row[order], head[order], member[order])


class _Examined:
    """The conditions on ties, tested for all pairs at once."""

    def __init__(self, system: FamilySystem, view: View, hard: Indices, pairs: _Pairs) -> None:
        self._system, self._view, self._hard, self._pairs = system, view, hard, pairs
        form, member, row = system.form, pairs.member, pairs.row
        self._decided = form.decided_at[member] >= 0
        self._target = form.target[member]
        places = form.positions(view.layer, member)
        apart = (places - self._target).abs().amax(dim=1)
        near = self._decided & (apart <= system.tolerance * system.sizes[member])
        self._place = torch.where(near[:, None], self._target, places)

        heads = len(system.matrices)
        key = row * heads + pairs.head
        mass = system.weights[member]
        total = mass.new_zeros(len(hard) * heads).index_add(0, key, mass)
        shares = torch.tensor(system.shares, dtype=mass.dtype, device=mass.device)
        part = self._part = shares[pairs.head] * mass / total[key]
        self._share = self._sum(part * ~self._decided)
        self._rest = self._sum(part * self._decided)
        moving, now, later = (
            self._sum((part * which)[:, None] * values) / weight.clamp_min(1e-300)[:, None]
            for which, values, weight in (
                (~self._decided, self._place, self._share),
                (self._decided, self._place, self._rest),
                (self._decided, self._target, self._rest),
            )
        )
        none = (self._rest == 0)[:, None]
        self._moving, self._now, self._later = moving, torch.where(none, moving, now), torch.where(none, moving, later)

    def lasting(self) -> LastingTies:
        """The tokens whose sets stay the same for ever."""
        system, view, share = self._system, self._view, self._share[:, None]
        gap = self._now - self._later
        odds = torch.where(share > 0, self._rest[:, None] / share.clamp_min(1e-300), 0.0)
        slow = torch.where(share > 0, self._moving - self._later + odds * gap, 0.0)
        resonant = torch.where(share > 0, 0.0, gap)
        negligible = system.tolerance * system.sizes[view.tokens[self._hard]]
        bent = (slow.abs().amax(dim=1) > negligible) | (resonant.abs().amax(dim=1) > negligible)
        stands = self._alike()
        if system.remaining(view.layer) > 0:  # without a closed form, where the steps have a finite sum
            stands &= ~bent
        stands = self._settled_together(self._attained(stands))
        rows = torch.nonzero(stands)[:, 0]
        return LastingTies(
            self._hard[rows], self._later[rows], self._share[rows], slow[rows], resonant[rows][None], bent[rows],
            self._members_of(rows),
        )  # fmt: skip

    def together(self, bad: Indices) -> LastingTies | None:
        """The tokens that keep their sets if all that they see do, by the positions of repeated listening."""
        system, view, hard = self._system, self._view, self._hard
        tokens = view.tokens[hard]
        place = torch.searchsorted(view.candidates, tokens)
        bent = view.candidates[~system.form.straight[view.candidates]]
        rounds, restless = self._rounds()
        directions = (rounds[0], rounds[1], rounds[-1])
        # Of decided tokens the rounds are the position, then the target.
        goals = system.form.target[view.candidates]
        clouds = [view.places] + [goals.clone() for _ in rounds[1:]]
        for cloud, means in zip(clouds[1:], rounds[1:], strict=True):
            cloud[place] = means
        out = torch.cat([bad, bent, tokens[restless]])
        rows = self._before_bad(out)
        for k, cloud in enumerate(clouds):
            merged = distinct(cloud, cloud.new_ones(len(cloud)))
            members = torch.where(self._decided[:, None], self._target, rounds[k][self._row_of_members()])
            members = self._place if k == 0 else members
            for direction in directions:
                if not len(rows):
                    return None
                missed = self._missed(rows, direction, merged, members, place)
                out = torch.cat([out, tokens[missed]])
                rows = self._before_bad(out)
        if not len(rows):
            return None
        last = rounds[-1][rows]
        corners = torch.stack([means[rows] - last for means in rounds[1:-1]] or [torch.zeros_like(last)])
        away = (corners.abs() > (system.tolerance * system.sizes[tokens[rows]])[None, :, None]).any(dim=0).any(dim=1)
        nothing = torch.zeros_like(last)
        return LastingTies(hard[rows], last, nothing[:, 0], nothing, corners, away, self._members_of(rows))

    def _rounds(self) -> tuple[list[Tokens], torch.Tensor]:
        """Positions of the tied tokens, then their means after 1, 2, … rounds of listening, until these are constant.

        The second value is a mask of the tokens whose means are not constant after the largest number of rounds, or
        leave the segment from the first to the last of them.
        """
        rows = self._row_of_members()
        tokens = self._view.tokens[self._hard]
        negligible = self._system.tolerance * self._system.sizes[tokens]
        rounds = [self._system.form.anchor[tokens], self._sum(self._part[:, None] * self._place)]
        while True:
            placed = torch.where(self._decided[:, None], self._target, rounds[-1][rows])
            following = self._sum(self._part[:, None] * placed)
            differs = (following - rounds[-1]).abs().amax(dim=1) > negligible
            following = torch.where(differs[:, None], following, rounds[-1])
            if not bool(differs.any()) or len(rounds) > _MOST_ROUNDS:
                return rounds, differs | self._leaves_segment(rounds[1:], negligible)
            rounds.append(following)

    @staticmethod
    def _leaves_segment(means: list[Tokens], negligible: torch.Tensor) -> torch.Tensor:
        """Mask of the tokens of which some round is off the segment from the first to the last one."""
        along = means[0] - means[-1]
        size = score(along, along).clamp_min(1e-300)
        leaves = torch.zeros_like(negligible, dtype=torch.bool)
        for each in means[1:-1]:
            part = (score(each - means[-1], along) / size).clamp(0, 1)
            off = (each - means[-1] - part[:, None] * along).abs().amax(dim=1)
            leaves |= off > 4 * negligible
        return leaves

    def _before_bad(self, bad: Indices) -> Indices:
        """Rows of the tokens that see none of these tokens."""
        tokens = self._view.tokens[self._hard]
        every = torch.arange(len(tokens), device=tokens.device)
        if not len(bad):
            return every
        return every[tokens < bad.min()] if self._system.causal else every[:0]

    def _missed(self, rows: Indices, directions: Tokens, cloud: Distinct, members: Tokens, place: Indices) -> Indices:
        """Those of the rows in which a member misses the largest score of the cloud, one point per candidate."""
        system, pairs = self._system, self._pairs
        stop = None
        if system.causal:
            stop = torch.searchsorted(cloud.first, place[rows], right=True)
        lengths = length(cloud.points)
        longest = lengths.max() if stop is None else lengths.cummax(dim=0).values[stop - 1]
        kept = torch.zeros(len(self._hard), dtype=torch.bool, device=rows.device)
        kept[rows] = True
        for h, matrix in enumerate(system.matrices):
            mine = (pairs.head == h) & kept[pairs.row]
            queries = apply(matrix, directions)
            least = torch.full_like(self._share, -torch.inf)
            best = system.search(queries[rows], cloud.points, tolerance=system.tolerance, stop=stop).best
            least[rows] = best - system.tolerance * length(queries[rows]) * longest
            row = pairs.row[mine]
            kept[row[score(queries[row], members[mine]) < least[row]]] = False
        return rows[~kept[rows]]

    def _sum(self, values: torch.Tensor) -> torch.Tensor:
        total = values.new_zeros((len(self._hard), *values.shape[1:]))
        return total.index_add(0, self._pairs.row, values)

    def _all(self, flags: torch.Tensor) -> torch.Tensor:
        found = torch.ones(len(self._hard), dtype=torch.bool, device=flags.device)
        found[self._pairs.row[~flags]] = False
        return found

    def _row_of_members(self) -> Indices:
        row_of = torch.full((self._view.count,), -1, device=self._hard.device)
        row_of[self._view.tokens[self._hard]] = torch.arange(len(self._hard), device=self._hard.device)
        return row_of[self._pairs.member]

    def _alike(self) -> torch.Tensor:
        """Mask of rows whose active members all listen to the same sets, and whose decided members go straight."""
        system, pairs = self._system, self._pairs
        generator = torch.Generator().manual_seed(0)
        shape = (len(system.matrices), self._view.count)
        keys = torch.randint(-(2**62), 2**62, shape, generator=generator).to(pairs.row.device)
        # A number per tuple of sets: equal ones get equal numbers, others differ but for odds of about 2^-60.
        name = self._sum(keys[pairs.head, pairs.member])
        theirs = self._row_of_members()
        same = (theirs >= 0) & (name[theirs] == name[pairs.row])
        alike = self._all(torch.where(self._decided, system.form.straight[pairs.member], same))
        if not system.definite and self._view.layer > 0:
            # Tokens that listen to one another alone may merely be closer together than floats resolve.
            alike &= self._rest > 0
        return alike

    def _settled_together(self, stands: torch.Tensor) -> torch.Tensor:
        """The mask without rows of which an active member is not settled with them."""
        theirs = self._row_of_members()
        while True:
            left = stands & self._all(self._decided | stands[theirs])
            if torch.equal(left, stands):
                return stands
            stands = left

    def _attained(self, stands: torch.Tensor) -> torch.Tensor:
        """The mask without rows of which a point on the face misses the largest score in some direction."""
        system, view, pairs = self._system, self._view, self._pairs
        own = system.form.anchor[view.tokens[self._hard]]
        towards = (self._moving, self._now, self._later)
        given = (self._share > 0, self._rest > 0, self._rest > 0)
        for h, matrix in enumerate(system.matrices):
            mine = pairs.head == h
            row, place, decided = pairs.row[mine], self._place[mine], self._decided[mine]
            target = torch.where(decided[:, None], self._target[mine], place)
            active = torch.zeros_like(stands)
            active[row[~decided]] = True
            asked = [(own, torch.ones_like(stands)), *zip(towards, given, strict=True)]
            for direction, applies in asked:
                rows = torch.nonzero(stands & applies)[:, 0]
                if not len(rows):
                    continue
                queries = apply(matrix, direction)
                stop = None if view.stop is None else view.stop[self._hard]
                sight = None if stop is None else stop[rows]
                least = torch.full_like(self._share, -torch.inf)
                best = system.search(queries[rows], view.points, tolerance=system.tolerance, stop=sight).best
                least[rows] = best - view.slack(queries[rows], system.tolerance, sight)
                for values in (place, target):
                    missed = score(queries[row], values) < least[row]
                    stands[row[missed]] = False
                for values, there in zip(towards, given, strict=True):
                    stands &= ~(active & there) | (score(queries, values) >= least)
        return stands

    def _members_of(self, rows: Indices) -> dict[int, list[list[int]]]:
        heads = len(self._system.matrices)
        wanted = torch.isin(self._pairs.row, rows)
        found: dict[int, list[list[int]]] = {
            token: [[] for _ in range(heads)] for token in self._view.tokens[self._hard[rows]].tolist()
        }
        asking = self._view.tokens[self._hard[self._pairs.row[wanted]]].tolist()
        for token, head, member in zip(
            asking, self._pairs.head[wanted].tolist(), self._pairs.member[wanted].tolist(), strict=True
        ):
            found[token][head].append(member)
        return found
