r"""The attention layer made of independent parts: score, mask, weighting, value, move, normalisation.

.. math:: m_i = \sum_h w_h V_h \sum_{k \in S(i)} p^h_{ik}\, x_k, \qquad x = N_1(z), \qquad
          z_i' = N_3\bigl(\mathrm{move}(z_i, N_2(m_i))\bigr) .

The normalisations :math:`N_1, N_2, N_3` are the identity when left out: the first alone is pre-norm, the third alone
post-norm, the first and second together peri-norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..errors import InputError
from ..inputs import as_tokens
from ..scalars import shown
from ..shapes import ArrayLike, PerToken, Tokens, Values
from .argmax import choice_of_head, selected_sum
from .base import ALL_ROWS, FIRST, AbstractLayer, Context
from .choice import Choice
from .heads import Head, Share, as_heads, as_shares, as_vector, dimension_of
from .masks import Mask, as_mask
from .moves import AbstractMove, ConvexStep
from .norms import AbstractNorm
from .weighting import AbstractWeighting, Hardmax, Softmax, heads_sum


@dataclass(frozen=True, eq=False, init=False)
class AttentionLayer(AbstractLayer):
    """One attention layer, composed of heads, a mask, a weighting of scores, a move and normalisations.

    Parameters
    ----------
    heads
        Heads, or score matrices of shape (d, d); one head with A = I when left out.
    weighting
        How scores become weights: ``Hardmax()``, ``Softmax(beta)``, ``TopK(k)``, ``Sigmoid()``, ``Linear()``,
        ``Exponential(beta)`` or ``DoublyStochastic()``; ``Softmax(1.0)`` when left out.
    move
        How a token moves: ``ConvexStep(alpha)``, ``ResidualStep(alpha)``, ``NoSkip()``, ``ImplicitStep(V)`` or
        ``SphereStep(alpha)``; ``ConvexStep(0.5)`` when left out.
    causal
        Whether each token sees only itself and the tokens before it.
    window
        Number of tokens in sight, the token itself included; see :class:`HardmaxLayer`.
    shares
        Factor of each head; equal and summing to one when left out. A convex step needs positive shares that sum to
        one; other moves take any numbers, for example one each.
    pre_norm, update_norm, post_norm
        Normalisation of the tokens before attention, of the update, and of the result.
    update_bias
        Vector of shape (d,) added to the update.
    memory
        Tokens of shape (memory, d) that are attended to instead of the tokens themselves (cross-attention).

    Examples
    --------
    >>> import numpy as np
    >>> import hardmax as hm
    >>> layer = hm.AttentionLayer(weighting=hm.TopK(2, beta=0.0), move=hm.ResidualStep(1.0), causal=True)
    >>> layer(np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]]))
    array([[2. , 0. ],
           [5. , 0. ],
           [4.5, 0. ]])
    """

    heads: tuple[Head, ...]
    weighting: AbstractWeighting
    move: AbstractMove
    mask: Mask
    """Tokens that each token sees."""
    shares: tuple[Share, ...]
    pre_norm: AbstractNorm | None
    update_norm: AbstractNorm | None
    post_norm: AbstractNorm | None
    update_bias: Values | None
    memory: Tokens | None

    def __init__(
        self,
        heads: Sequence[Head | ArrayLike] | None = None,
        *,
        weighting: AbstractWeighting | None = None,
        move: AbstractMove | None = None,
        causal: bool = False,
        window: int | None = None,
        shares: Sequence[Share] | None = None,
        pre_norm: AbstractNorm | None = None,
        update_norm: AbstractNorm | None = None,
        post_norm: AbstractNorm | None = None,
        update_bias: ArrayLike | None = None,
        memory: ArrayLike | None = None,
    ) -> None:
        for name, part, kind in (
            ("weighting", weighting, AbstractWeighting),
            ("move", move, AbstractMove),
            ("pre_norm", pre_norm, AbstractNorm),
            ("update_norm", update_norm, AbstractNorm),
            ("post_norm", post_norm, AbstractNorm),
        ):
            if part is not None and not isinstance(part, kind):
                remedy = {AbstractWeighting: "Softmax(2.0)", AbstractMove: "ResidualStep(1.0)"}.get(kind, "LayerNorm()")
                raise InputError(name, shown(part), f"must be a {name.replace('_', ' ')}", f"pass for example {remedy}")
        made = (Head(),) if heads is None else as_heads(heads)
        step = ConvexStep() if move is None else move
        object.__setattr__(self, "heads", made)
        object.__setattr__(self, "weighting", Softmax() if weighting is None else weighting)
        object.__setattr__(self, "move", step)
        object.__setattr__(self, "mask", as_mask(causal, window))
        object.__setattr__(self, "shares", as_shares(shares, len(made), sum_to_one=step.is_convex))
        object.__setattr__(self, "pre_norm", pre_norm)
        object.__setattr__(self, "update_norm", update_norm)
        object.__setattr__(self, "post_norm", post_norm)
        object.__setattr__(self, "update_bias", as_vector("update_bias", update_bias))
        tokens = None if memory is None else as_tokens(memory, argument="memory")[0].to(torch.float64)
        object.__setattr__(self, "memory", tokens)
        if tokens is not None and (not self.mask.sees_all or isinstance(self.weighting, Hardmax)):
            raise InputError(
                "memory", f"shape {tuple(tokens.shape)}", "takes no mask and no hardmax", "leave them out with memory"
            )

    @property
    def dimension(self) -> int | None:
        return dimension_of(self.heads)

    @property
    def stays_in_hull(self) -> bool:
        plain = all(head.has_plain_values for head in self.heads) and self.update_bias is None
        norms = (self.pre_norm, self.update_norm, self.post_norm)
        inside = self.weighting.averages and self.move.is_convex and self.memory is None
        return plain and inside and all(norm is None for norm in norms)

    @property
    def chooses(self) -> bool:
        return isinstance(self.weighting, Hardmax)

    @property
    def has_leaders(self) -> bool:
        return self.chooses and self.stays_in_hull

    def choose(self, tokens: Tokens, queries: slice = ALL_ROWS) -> Choice:
        if len(self.heads) > 1:
            raise InputError(
                "layer", str(self), "has several heads, each with choices of its own", "use layer.choose_heads(tokens)"
            )
        return self.choose_heads(tokens, queries)[0]

    def choose_heads(self, tokens: Tokens, queries: slice = ALL_ROWS) -> tuple[Choice, ...]:
        if not isinstance(self.weighting, Hardmax):
            return super().choose_heads(tokens, queries)
        self.mask.require_fit(len(tokens))
        inputs, tolerance = self._inputs(tokens), self.weighting.tolerance
        return tuple(choice_of_head(head, inputs, self.mask, tolerance, queries) for head in self.heads)

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST)

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST, rows)

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        inputs = self._inputs(tokens)
        if isinstance(self.weighting, Hardmax):
            tolerance = self.weighting.tolerance
            update = selected_sum(self.heads, self.shares, self.mask, tolerance, inputs, weights, rows)
        else:
            memory = None if self.memory is None else self.memory.to(tokens.device)
            update = heads_sum(self.heads, self.shares, self.weighting, self.mask, inputs, weights, rows, memory)
        if self.update_bias is not None:
            update = update + self.update_bias.to(tokens.device)
        update = update if self.update_norm is None else self.update_norm(update)
        moved = self.move(tokens[rows], update, context.index)
        return moved if self.post_norm is None else self.post_norm(moved)

    def _inputs(self, tokens: Tokens) -> Tokens:
        return tokens if self.pre_norm is None else self.pre_norm(tokens)

    def __str__(self) -> str:
        parts = [f"attention: {self.weighting}", str(self.move)]
        parts.append("1 head" if len(self.heads) == 1 else f"{len(self.heads)} heads")
        if not self.mask.sees_all:
            parts.append(str(self.mask))
        for name in ("pre_norm", "update_norm", "post_norm"):
            norm = getattr(self, name)
            if norm is not None:
                parts.append(f"{name.replace('_', '-')} {type(norm).__name__}")
        return ", ".join(parts)
