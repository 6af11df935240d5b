r"""Whether ties last when nothing but ties is left undecided.

Suppose every token but the tied ones is decided. If all ties last, then with :math:`s = 1/(1+\alpha)` every token j is
at :math:`t_j + s^m (d_j + m\,g_j)` after m more layers (g is zero but for tokens tied with tokens on their way). What j
then scores above a member l of the set that i listens to is

.. math:: G_j(m) = a_0 + m s^m a_1 + s^m a_2 + m^2 s^{2m} a_3 + m s^{2m} a_4 + s^{2m} a_5,

with coefficients from scalar products. The ties last, by induction over the layers, if and only if :math:`G_j(m) = 0`
for members and :math:`G_j(m) < 0` for the others, at every m.
"""

from __future__ import annotations

import math

import torch

from ..attention.choice import apply, length
from ..shapes import Indices, Square, Tokens

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
    askers: Indices,
    members: Indices,
    rows: Indices,
) -> bool:
    """Whether no token ever leaves, joins or beats a tie.

    ``points``, ``goals`` and ``drifts`` are :math:`t + d`, t and g of every token, should all ties last. The tied
    tokens are ``askers``; the p-th pair says that ``askers[rows[p]]`` listens to ``members[p]``.
    """
    negligible = math.log(1 / torch.finfo(points.dtype).eps)
    last = negligible / math.log1p(alpha)  # from then on, what the steps add is below rounding
    if len(askers) * len(points) > _LARGEST_TABLE or last > _MOST_LAYERS:
        return False
    steps = points - goals
    still, moving, drifting = (apply(A, part[askers]) for part in (goals, steps, drifts))
    first = torch.zeros(len(askers), dtype=torch.int64, device=points.device)
    first[rows.flip(0)] = members.flip(0)

    def above(*pairs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        table = torch.stack([asked @ heard.T for asked, heard in pairs]).sum(dim=0)
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
    # At the last of these layers what is left of the sum is a0, so the limit is looked at too.
    for m in range(1, math.ceil(last) + 1):
        s = (1 + alpha) ** -m
        if bool((a0 + s * (m * a1 + a2) + s * s * (m * m * a3 + m * a4 + a5) > allowed).any()):
            return False
    return True
