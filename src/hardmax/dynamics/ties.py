r"""Ties in floating point: which of them persist for all later layers, and where tied tokens converge.

A token i listens to the set C of points on a face of the hull. Split C into the decided members D and the active
members U, and let :math:`d_k \to d_\infty` be the weighted mean of D now and in the limit, u the mean of U, and s the
share of U in the weight of C. The tie is **standing** when

1. every active member listens to exactly C as well, and every decided one goes straight to a target that is on the
   face too, that is, attains :math:`\max_y \langle A z_i, y\rangle`;
2. every member and every target attains :math:`\max_y \langle A d_k, y\rangle` and
   :math:`\max_y \langle A d_\infty, y\rangle`.

These conditions are sufficient and local; once nothing but ties is undecided, :func:`all_ties_last` decides the others.

A standing tie stays the same for ever, and the mean of its members solves a linear recursion
(``docs/devdocs/ties.rst``): with :math:`e = d_k - d_\infty`,

.. math:: u_m = d_\infty + \rho^m (u_0 - d_\infty) + \tfrac{1-s}{s}\,(\rho^m - r^m)\,e, \quad \rho = r(1+\alpha s),
          \qquad z_{i,m} = u_m + r^m (z_i - u_0).

Without active members (s = 0) this is :math:`z_{i,m} = d_\infty + r^m (z_i - d_\infty + m \alpha e)`; without decided
ones (s = 1) the members are joint leaders, which meet at u.

Suppose every token but the tied ones is decided. If all ties last, then with :math:`s = 1/(1+\alpha)` every token j is
at :math:`t_j + s^m (d_j + m\,g_j)` after m more layers (g is zero except for tokens tied with tokens that still move).
The score of j then exceeds that of a member l of the set that i listens to by

.. math:: G_j(m) = a_0 + m s^m a_1 + s^m a_2 + m^2 s^{2m} a_3 + m s^{2m} a_4 + s^{2m} a_5,

with coefficients from scalar products. The ties last, by induction over the layers, if and only if :math:`G_j(m) = 0`
for members and :math:`G_j(m) < 0` for the others, at every m.
"""

from __future__ import annotations

import math

import torch

from ..attention.choice import apply, length, score, slack
from ..attention.search import attended
from ..shapes import Indices, PerToken, Points, Square, Tokens, Values
from .closed_form import ClosedForm


class StandingTies:
    """The tied queries of one layer, with a mask of the standing ones."""

    def __init__(
        self,
        *,
        form: ClosedForm,
        weights: PerToken,
        A: Square,
        alpha: float,
        tolerance: float,
        points: Points,
        layer: int,
        queries: Indices,
        members: Indices,
        offsets: Indices,
        leads: torch.Tensor,
    ) -> None:
        self._form, self._alpha, self._layer, self._queries = form, alpha, layer, queries
        self._A, self._tolerance, self._points = A, tolerance, points
        self._members, self._rows = members, len(queries)
        row = torch.repeat_interleave(torch.arange(len(queries), device=queries.device), offsets.diff())
        self._row = row
        decided = form.decided_at[members] >= 0
        places = form.positions(layer, members)
        targets = form.target[members]
        mass = weights[members]

        heavy_decided, self._now = self._weighted(mass * decided, places)
        _, self.targets = self._weighted(mass * decided, targets)
        heavy_active, self._active_mean = self._weighted(mass * ~decided, places)
        self._share = heavy_active / (heavy_active + heavy_decided)
        all_active = (heavy_decided == 0)[:, None]  # joint leaders: the set has no decided member
        self._now = torch.where(all_active, self._active_mean, self._now)
        self.targets = torch.where(all_active, self._active_mean, self.targets)

        self.joint = heavy_decided == 0
        self.hears_itself = self._any(members == queries[row])
        self.alike = self._alike(row, decided)
        self.stands = self.alike & (self.joint | self._any(leads[members]))
        self._check_attained(decided, places, targets)
        self._find_terms()

    def settle(self, which: torch.Tensor) -> None:
        """Set the closed form of these queries."""
        self._form.settle(self._queries[which], self.targets[which], self._layer)
        bent = which & ~self.straight
        if bool(bent.any()):
            rate = (1 + self._alpha * self._share[bent]) / (1 + self._alpha)
            self._form.bend(self._queries[bent], rate, self._slow[bent], self.resonant[bent])

    def _find_terms(self) -> None:
        """Terms p and q of the closed form, and a mask of the queries that need neither."""
        share, gap = self._share[:, None], self._now - self.targets
        odds = torch.where(share > 0, (1 - share) / share.clamp_min(1e-300), 0.0)
        self._slow = torch.where(share > 0, self._active_mean - self.targets + odds * gap, 0.0)
        self.resonant = torch.where(share > 0, 0.0, self._alpha * gap)
        negligible = self._tolerance * self._form.size
        self.slowed = self._slow.abs().amax(dim=1) > negligible
        self.straight = ~self.slowed & (self.resonant.abs().amax(dim=1) <= negligible)

    def _check_attained(self, decided: torch.Tensor, places: Tokens, targets: Tokens) -> None:
        asks = [
            apply(self._A, self._form.anchor[self._queries]),
            apply(self._A, self._now),
            apply(self._A, self.targets),
        ]
        for number, ask in enumerate(asks):
            if not bool(self.stands.any()):
                return
            best = attended(ask, self._points, tolerance=self._tolerance).best
            least = (best - slack(ask, self._points, self._tolerance))[self._row]
            reached = score(ask[self._row], targets) >= least
            if number:
                reached &= score(ask[self._row], places) >= least
            else:
                reached |= ~decided
            self.stands &= self._all(reached)

    def _alike(self, row: Indices, decided: torch.Tensor) -> torch.Tensor:
        """Mask of rows whose active members all listen to the same set, and whose decided members have p = q = 0."""
        generator = torch.Generator().manual_seed(0)
        keys = torch.randint(-(2**62), 2**62, (len(self._form.anchor),), generator=generator).to(row.device)
        # A number per set: equal sets get equal numbers, others differ but for odds of about 2^-60.
        name = torch.zeros_like(self._queries).index_add(0, row, keys[self._members])
        row_of = torch.full((len(self._form.anchor),), -1, device=row.device)
        row_of[self._queries] = torch.arange(self._rows, device=row.device)
        theirs = row_of[self._members]
        same = (theirs >= 0) & (name[theirs] == name[row])
        return self._all(torch.where(decided, ~self._form.special[self._members], same))

    def _weighted(self, mass: PerToken, values: Tokens) -> tuple[Values, Points]:
        total = torch.zeros(self._rows, dtype=values.dtype, device=values.device).index_add(0, self._row, mass)
        summed = torch.zeros(self._rows, values.shape[1], dtype=values.dtype, device=values.device)
        summed = summed.index_add(0, self._row, mass[:, None] * values)
        return total, summed / torch.where(total > 0, total, 1.0)[:, None]

    def _any(self, flags: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(self._rows, dtype=torch.bool, device=flags.device)
        found[self._row[flags]] = True
        return found

    def _all(self, flags: torch.Tensor) -> torch.Tensor:
        return ~self._any(~flags)


# Entries of a table of scores, 16 MB in float64.
_LARGEST_TABLE = 2_000_000
# Ties that would have to be followed for longer, because alpha is tiny, are left undecided.
_MOST_LAYERS = 100_000


def all_ties_last(
    *,
    A: Square,
    alpha: float,
    tolerance: float,
    points: Tokens,
    goals: Tokens,
    drifts: Tokens,
    tied: Indices,
    members: Indices,
    rows: Indices,
) -> bool:
    """Whether no token ever leaves, joins or exceeds a tie.

    ``points``, ``goals`` and ``drifts`` are :math:`t + d`, t and g of every token, should all ties last. The tied
    tokens are ``tied``; the p-th pair says that ``tied[rows[p]]`` listens to ``members[p]``.
    """
    negligible = math.log(1 / torch.finfo(points.dtype).eps)
    last = negligible / math.log1p(alpha)  # from then on, the change per step is below rounding
    if len(tied) * len(points) > _LARGEST_TABLE or last > _MOST_LAYERS:
        return False
    steps = points - goals
    still, moving, drifting = (apply(A, part[tied]) for part in (goals, steps, drifts))
    first = torch.zeros(len(tied), dtype=torch.int64, device=points.device)
    first[rows.flip(0)] = members.flip(0)

    def above(*pairs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        table = torch.stack([asked @ scored.T for asked, scored in pairs]).sum(dim=0)
        return table - table.gather(1, first[:, None])

    a0 = above((still, goals))
    a1 = above((still, drifts), (drifting, goals))
    a2 = above((still, steps), (moving, goals))
    a3 = above((drifting, drifts))
    a4 = above((moving, drifts), (drifting, steps))
    a5 = above((moving, steps))

    size = float(length(points).max()) + float(length(drifts).max())
    allowed = 4 * tolerance * size * (length(still) + length(moving) + length(drifting))[:, None]
    largest = torch.stack([a.abs() for a in (a0, a1, a2, a3, a4, a5)]).amax(dim=0)
    if bool((largest > allowed)[rows, members].any()):
        return False
    # At the last of these layers the sum has converged to a0, so the limit is checked too.
    for m in range(1, math.ceil(last) + 1):
        s = (1 + alpha) ** -m
        if bool((a0 + s * (m * a1 + a2) + s * s * (m * m * a3 + m * a4 + a5) > allowed).any()):
            return False
    return True
