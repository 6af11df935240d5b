r"""Positions of decided tokens at any later layer and in the limit, in closed form.

With :math:`r = 1/(1+\alpha)` a token decided at layer k has, m layers later, the position

.. math:: z^{k+m} = t + r^m (z^k - t) + (\rho^m - r^m)\,p + m\,r^m q .

A token that follows one leader, or leaders at rest, has :math:`p = q = 0`. The other two terms occur only for tokens
tied for ever with tokens that still move (derivation in ``docs/devdocs/ties.rst``): :math:`\rho` is
the slower rate of tokens that listen to themselves among others, :math:`q` the resonance with followers that approach
at the same rate r.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ..shapes import Indices, Points, Tokens


def pick(rows: torch.Tensor, which: Indices) -> torch.Tensor:
    """``rows[which]`` for distinct, ascending ``which``, without a copy when ``which`` is all rows."""
    return rows if len(which) == len(rows) else rows[which]


class ClosedForm:
    """Positions of all tokens: for an active token its anchor, for a decided one the formula above."""

    def __init__(self, points: Tokens, alpha: float) -> None:
        count, device = points.shape[0], points.device
        self.anchor = points.clone()
        self.target = points.clone()
        self.decided_at = torch.full((count,), -1, device=device)
        self.special = torch.zeros(count, dtype=torch.bool, device=device)
        # The largest coordinate at the start: positions never leave its range, and rounding errors are relative to it.
        self.size = float(points.abs().max()) if count else 0.0
        self._alpha = alpha
        self._slow = torch.zeros(0, 0)
        self._resonant = torch.zeros(0, 0)
        self._rate = torch.zeros(0)

    def move(self, tokens: Indices, means: Tokens) -> float:
        """Largest change of a coordinate, after active tokens moved by one layer."""
        before = pick(self.anchor, tokens)
        after = (before + self._alpha * means) / (1 + self._alpha)
        # A token that moved to zero must not be left with the direction of a rounding error. (This takes an A that is
        # not positive definite: otherwise norms never decrease.)
        rounding = 4 * torch.finfo(after.dtype).eps * self.size
        lost = (after.abs().amax(dim=1) <= rounding) & (before.abs().amax(dim=1) > rounding)
        after = torch.where(lost[:, None], 0.0, after)
        step = float((after - before).abs().max())
        self.anchor[tokens] = after
        self.target[tokens] = after
        return step

    def settle(self, tokens: Indices, targets: Tokens, layer: int) -> None:
        """Set tokens that from this layer on converge to their targets with p = q = 0."""
        self.target[tokens] = targets
        self.decided_at[tokens] = layer

    def bend(self, tokens: Indices, rate: torch.Tensor, slow: Tokens, resonant: Tokens) -> None:
        """Give settled tokens the terms with :math:`\\rho` = ``rate``, p = ``slow`` and q = ``resonant``."""
        if not len(self._rate):
            self._rate = torch.ones_like(self.anchor[:, 0])
            self._slow, self._resonant = torch.zeros_like(self.anchor), torch.zeros_like(self.anchor)
        self._rate[tokens], self._slow[tokens], self._resonant[tokens] = rate, slow, resonant
        self.special[tokens] = True

    def positions(self, layer: int, which: Indices | None = None) -> Points:
        """Positions of some tokens (of all if None), shape (tokens, d), at a layer not before any decision."""
        anchor = self.anchor if which is None else self.anchor[which]
        if layer == 0:
            return anchor
        target = self.target if which is None else self.target[which]
        decided_at = self.decided_at if which is None else self.decided_at[which]
        since = (layer - decided_at).to(anchor.dtype)[:, None]
        share = torch.exp(-since * math.log1p(self._alpha))
        places = target + share * (anchor - target)
        if len(self._rate):
            chosen = torch.arange(len(self.anchor), device=anchor.device) if which is None else which
            slow = torch.exp(since * self._rate[chosen].log()[:, None]) - share
            bent = slow * self._slow[chosen] + since * share * self._resonant[chosen]
            places = torch.where(self.special[chosen][:, None], places + bent, places)
        return places


# Limits closer than this in every coordinate, relative to the largest coordinate, are one point: thousands of rounding
# errors of float64, which is more than the closed form makes and less than distinct limits are apart.
_GRAIN = 1e-12
# The same for limits that were rounded to a coarser dtype, in its rounding errors.
_GRAIN_UNITS = 8


def grain_of(size: float, unit: float) -> float:
    """Distance in a coordinate below which two limits are one point; see :func:`same_limits`."""
    return max(_GRAIN, _GRAIN_UNITS * unit) * size


def same_limits(points: np.ndarray, size: float, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each distinct limit, ascending, and for each row the number of its limit, shape (row,).

    Parameters
    ----------
    points
        Limits, shape (row, coordinate).
    size
        The largest coordinate of the whole system, which rounding is relative to.
    unit
        The rounding unit of the dtype that the limits were stored in.

    >>> first, which = same_limits(np.array([[1.0], [0.5], [1.0 - 1e-15]]), 1.0, 2.0**-52)
    >>> first.tolist(), which.tolist()
    ([0, 1], [0, 1, 0])
    """
    grain = grain_of(size, unit)
    # Along each coordinate a gap wider than the grain separates. Rounding to multiples of the grain would not do: it
    # also separates neighbours on either side of a boundary.
    labels = np.empty(points.shape, dtype=np.int64)
    for k in range(points.shape[1]):
        order = np.argsort(points[:, k], kind="stable")
        labels[order, k] = np.cumsum(np.diff(points[order, k], prepend=points[order[:1], k]) > grain)
    _, first, which = np.unique(labels, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.sort(first), rank[which.reshape(-1)]
