r"""Attention in continuous time, from the parts of a layer: heads, mask, weighting, values.

.. math:: \dot x_i = P_{x_i}\Bigl(c \sum_h w_h V_h \sum_{k \in S(i)} p^h_{ik}\, x_k\Bigr)

On the unit sphere :math:`P_x = I - x x^\top`; in Euclidean space :math:`P_x` is the identity. Under a causal mask the
velocity of a token depends, to the last bit, on the tokens before it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..attention.argmax import attended_mean, choice_of_head
from ..attention.heads import Head, Share, as_heads, as_shares
from ..attention.masks import Mask, as_mask
from ..attention.weighting import AbstractWeighting, Exponential, Hardmax, Softmax, heads_sum
from ..errors import InputError
from ..inputs import as_number
from ..scalars import shown
from ..shapes import ArrayLike, PerToken, States, Tokens
from .flows import AbstractFlow
from .spaces import AbstractSpace, EuclideanSpace, UnitSphere, directions_of

_ALL_ROWS = slice(None)


@dataclass(frozen=True, eq=False, init=False)
class AttentionFlow(AbstractFlow):
    """Attention in continuous time, on the unit sphere or in Euclidean space.

    Parameters
    ----------
    heads
        Heads, or score matrices of shape (d, d); one head with A = V = I when left out.
    weighting
        How scores become weights: ``Softmax(beta)``, ``Hardmax()``, ``TopK(k)``, ``Sigmoid()``, ``Linear()``,
        ``Exponential(beta)`` or ``DoublyStochastic(beta)``; ``Softmax(1.0)`` when left out.
    causal
        Whether each token sees only itself and the tokens before it.
    window
        Number of tokens in sight, the token itself included; see :class:`HardmaxLayer`.
    shares
        Factor of each head; equal and summing to one when left out. Any numbers are accepted.
    sphere
        Whether tokens move on the unit sphere; they are scaled to length one before a run.
    coupling
        Factor of the velocity; negative numbers repel.

    Examples
    --------
    >>> import hardmax as hm
    >>> flow = hm.AttentionFlow(weighting=hm.Softmax(4.0), causal=True)
    >>> run = hm.simulate([[1.0, 0.0], [0.0, 1.0]], flow, time=40.0, integrator="rk4")
    >>> run.final.round(4)
    array([[1., 0.],
           [1., 0.]])
    """

    heads: tuple[Head, ...]
    weighting: AbstractWeighting
    mask: Mask
    """Tokens that each token sees."""
    shares: tuple[Share, ...]
    sphere: bool
    coupling: float

    def __init__(
        self,
        heads: Sequence[Head | ArrayLike] | None = None,
        weighting: AbstractWeighting | None = None,
        *,
        causal: bool = False,
        window: int | None = None,
        shares: Sequence[Share] | None = None,
        sphere: bool = True,
        coupling: float = 1.0,
    ) -> None:
        if weighting is not None and not isinstance(weighting, AbstractWeighting):
            raise InputError("weighting", shown(weighting), "must be a weighting", "pass for example Softmax(2.0)")
        made = (Head(),) if heads is None else as_heads(heads)
        object.__setattr__(self, "heads", made)
        object.__setattr__(self, "weighting", Softmax() if weighting is None else weighting)
        object.__setattr__(self, "mask", as_mask(causal, window))
        object.__setattr__(self, "shares", as_shares(shares, len(made), sum_to_one=False))
        object.__setattr__(self, "sphere", bool(sphere))
        remedy = "pass a finite number, negative to repel"
        object.__setattr__(self, "coupling", as_number("coupling", coupling, lambda x: True, "must be finite", remedy))

    @property
    def space(self) -> AbstractSpace:
        """The unit sphere, or Euclidean space."""
        return UnitSphere() if self.sphere else EuclideanSpace()

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.drift_of(_ALL_ROWS, tokens, weights)

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        if isinstance(self.weighting, Hardmax):
            return self.coupling * self._selected(rows, tokens, weights, self.weighting)
        if self._attends_alike:
            return self.coupling * self._mean(rows, tokens, weights)
        total = heads_sum(self.heads, self.shares, self.weighting, self.mask, tokens, weights, rows)
        return self.coupling * total

    @property
    def _attends_alike(self) -> bool:
        """Whether all tokens attend to the mean of all tokens, so that the cost is linear in their number."""
        hot = isinstance(self.weighting, (Softmax, Exponential)) and self.weighting.beta == 0
        return hot and self.mask.sees_all and all(head.has_plain_scores for head in self.heads)

    def _mean(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """Sum over heads of the values of the mean token, shape (rows, d)."""
        mean = ((weights / weights.sum()) @ tokens)[None, :]
        total = torch.zeros_like(mean)
        for head, share in zip(self.heads, self.shares, strict=True):
            head.require_dimension(tokens.shape[1])
            total = total + float(share) * head.values(mean)
        return total.expand(len(tokens[rows]), -1)

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.velocity_of(_ALL_ROWS, tokens, weights)

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.space.tangent(tokens[rows], self.drift_of(rows, tokens, weights))

    def project(self, tokens: Tokens) -> Tokens:
        return self.space.project(tokens)

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> States:
        for head in self.heads:
            head.require_dimension(tokens.shape[1])
        self.mask.require_fit(len(tokens))
        return directions_of(tokens) if self.sphere else tokens

    def _selected(self, rows: slice, tokens: Tokens, weights: PerToken, weighting: Hardmax) -> Tokens:
        """Sum over heads of the mean of the tokens with the largest score, shape (rows, d)."""
        self.mask.require_fit(len(tokens))
        positions = torch.arange(len(tokens), device=tokens.device)[rows]
        intervals = None if self.mask.sees_all else self.mask.interval(positions, len(tokens))
        total = torch.zeros_like(tokens[rows])
        for head, share in zip(self.heads, self.shares, strict=True):
            head.require_dimension(tokens.shape[1])
            choice = choice_of_head(head, tokens, self.mask, weighting.tolerance, rows)
            total = total + float(share) * head.values(attended_mean(choice, tokens, weights, intervals))
        return total

    def __str__(self) -> str:
        parts = [f"attention flow in {self.space}: {self.weighting}"]
        parts.append("1 head" if len(self.heads) == 1 else f"{len(self.heads)} heads")
        if not self.mask.sees_all:
            parts.append(str(self.mask))
        if self.coupling != 1:
            parts.append(f"coupling = {self.coupling:g}")
        return ", ".join(parts)
