r"""Whether ties last when nothing but ties is left undecided.

Suppose every token but the tied ones is decided, and every tie is level and straight (see
:mod:`hardmax.dynamics.standing_ties`). If all ties last, then with :math:`s = (1+\alpha)^{-m}` every token j is at
:math:`t_j + s\,d_j` after m more layers and the tied token i at :math:`c + s\,(z_i - c)`, so what j scores above the
members l of the tie is a quadratic in s,

.. math:: q_j(s) = \langle A(c + s(z_i - c)),\; t_j - z_l + s\,d_j\rangle .

The ties do last if :math:`q_j \le 0` on [0, 1] for all i and j: by induction over the layers nobody ever joins or
beats a tie.
"""

from __future__ import annotations

import torch

from ..attention.choice import apply, length, score
from ..shapes import Points, Queries, Square, Tokens

_LARGEST_TABLE = 20_000_000


def all_ties_last(
    A: Square,
    tolerance: float,
    points: Tokens,
    targets: Tokens,
    askers: Queries,
    middles: Queries,
    heard: Queries,
) -> bool:
    """Whether no token ever rises above a tie.

    ``points`` and ``targets`` are where every token is and goes, should all ties last; ``askers`` the tied tokens,
    ``middles`` where each goes, ``heard`` the target of one of those it listens to.
    """
    if len(askers) * len(points) > _LARGEST_TABLE:
        return False
    middle, rest = apply(A, middles), apply(A, askers - middles)
    allowed = tolerance * (length(middle) + length(rest))[:, None] * float(length(points).max())
    steps: Points = points - targets
    constant = middle @ targets.T - score(middle, heard)[:, None]
    linear = middle @ steps.T + rest @ targets.T - score(rest, heard)[:, None]
    quadratic = rest @ steps.T
    concave = quadratic < 0
    bend = torch.where(concave, quadratic, -1.0)
    top = -linear / (2 * bend)
    rises = concave & (top > 0) & (top < 1) & (constant - linear**2 / (4 * bend) > allowed)
    return bool((constant <= allowed).all()) and not bool(rises.any())
