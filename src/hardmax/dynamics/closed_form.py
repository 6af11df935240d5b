r"""Where a decided token is at any later layer.

With :math:`r = 1/(1+\alpha)` a token decided at layer k has, m layers later, the position

.. math:: z^{k+m} = t + r^m (z^k - t) + (\rho^m - r^m)\,p + m\,r^m q .

A token that follows one leader, or leaders at rest, has :math:`p = q = 0`. The other two terms occur only for tokens
tied for ever with tokens that are themselves on their way (derivation in ``docs/devdocs/ties.rst``): :math:`\rho` is
the slower rate of tokens that hear themselves among others, :math:`q` the resonance with followers that approach at
the same rate r.
"""

from __future__ import annotations

import math

import torch

from ..shapes import Indices, Tokens


class ClosedForm:
    """The positions of all tokens: an active token is where its anchor is, a decided one follows the formula."""

    def __init__(self, points: Tokens, alpha: float) -> None:
        count, device = points.shape[0], points.device
        self.anchor = points.clone()
        self.target = points.clone()
        self.decided_at = torch.full((count,), -1, device=device)
        self.special = torch.zeros(count, dtype=torch.bool, device=device)
        self._alpha = alpha
        self._slow = torch.zeros(0, 0)
        self._resonant = torch.zeros(0, 0)
        self._rate = torch.zeros(0)

    @property
    def size(self) -> float:
        """The largest coordinate: what rounding errors are relative to."""
        return float(self.anchor.abs().max())

    def move(self, tokens: Indices, heard: Tokens) -> float:
        """Take active tokens one layer further; the largest change of a coordinate."""
        before = self.anchor[tokens]
        after = (before + self._alpha * heard) / (1 + self._alpha)
        self.anchor[tokens] = after
        self.target[tokens] = after
        return float((after - before).abs().max())

    def settle(self, tokens: Indices, targets: Tokens, layer: int) -> None:
        """Tokens that from this layer on go straight to their targets."""
        self.target[tokens] = targets
        self.decided_at[tokens] = layer

    def bend(self, tokens: Indices, rate: torch.Tensor, slow: Tokens, resonant: Tokens) -> None:
        """Give settled tokens the terms with :math:`\\rho` = ``rate``, p = ``slow`` and q = ``resonant``."""
        if not len(self._rate):
            self._rate = torch.ones_like(self.anchor[:, 0])
            self._slow, self._resonant = torch.zeros_like(self.anchor), torch.zeros_like(self.anchor)
        self._rate[tokens], self._slow[tokens], self._resonant[tokens] = rate, slow, resonant
        self.special[tokens] = True

    def positions(self, layer: int, which: Indices | slice = slice(None)) -> Tokens:
        """The positions at a layer that is not before any decision."""
        anchor, target = self.anchor[which], self.target[which]
        if layer == 0:
            return anchor
        since = (layer - self.decided_at[which]).to(anchor.dtype)[:, None]
        share = torch.exp(-since * math.log1p(self._alpha))
        places = target + share * (anchor - target)
        if len(self._rate):
            special = self.special[which][:, None]
            slow = torch.exp(since * self._rate[which].log()[:, None]) - share
            bent = slow * self._slow[which] + since * share * self._resonant[which]
            places = torch.where(special, places + bent, places)
        return places
