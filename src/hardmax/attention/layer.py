r"""The two layers of the papers: hardmax and softmax attention with a convex step.

Both are short names for :class:`~hardmax.AttentionLayer` with their weighting and the convex step
:math:`z' = (z + \alpha m)/(1 + \alpha)`, and add what is special to them: hardmax its choices and exact limit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import torch

from ..errors import InputError
from ..inputs import as_square
from ..shapes import ArrayLike, PerToken, Queries, Square, Tokens
from ..threads import in_order
from .argmax import attended_mean, choice_of_head, selected_sum
from .base import ALL_ROWS, FIRST, Context
from .base import AbstractLayer as AbstractLayer
from .base import Block as Block
from .choice import Choice, apply, default_tolerance
from .feed_forward import FeedForwardLayer as FeedForwardLayer
from .heads import Head, Share, as_heads, as_shares, dimension_of
from .masks import Mask, as_mask
from .moves import AbstractSteps, as_step, step_size
from .normal_form import distinct, scale, scaled_down
from .rational import exact_choice
from .search import attended
from .weighting import Hardmax, Softmax, Tolerance, as_inverse_temperature, heads_sum


def _heads_of(
    A: ArrayLike | None,
    Q: ArrayLike | None,
    K: ArrayLike | None,
    V: ArrayLike | None,
    heads: Sequence[Head | ArrayLike] | None,
    shares: Sequence[Share] | None,
) -> tuple[tuple[Head, ...], tuple[Share, ...]]:
    """Heads of a layer, from its own matrices or from a list, and their shares."""
    if heads is None:
        if shares is not None:
            raise InputError("shares", shares, "is for several heads", "pass heads=[A1, A2] too")
        return (Head(A, Q=Q, K=K, V=V),), (Fraction(1),)
    given = [name for name, matrix in (("A", A), ("Q", Q), ("K", K), ("V", V)) if matrix is not None]
    if given:
        raise InputError(given[0], "with heads", "must not be given together with heads", "pass it inside a Head")
    made = as_heads(heads)
    return made, as_shares(shares, len(made), sum_to_one=True)


def _checked_dimension(name: str, matrix: Square | None, tokens: Tokens) -> Square:
    d = tokens.shape[1]
    if matrix is None:
        return torch.eye(d, dtype=tokens.dtype, device=tokens.device)
    return as_square(name, matrix, d).to(tokens.device)


def _towards(tokens: Tokens, mean: Tokens, value: Square | None, alpha: float) -> Tokens:
    if value is not None:
        mean = mean @ _checked_dimension("V", value, tokens).T
    return (tokens + alpha * mean) / (1 + alpha)


def _matrices(heads: tuple[Head, ...]) -> str:
    """Score and value matrices of the heads, as a phrase."""
    if len(heads) > 1:
        return f"{len(heads)} heads"
    head = heads[0]
    matrix = "I" if head.matrix is None else f"{head.matrix.shape[0]} x {head.matrix.shape[0]}"
    return f"A = {matrix}{'' if head.V is None else ', with V'}"


def _sight(mask: Mask) -> str:
    return "" if mask.sees_all else f", {mask}"


@dataclass(frozen=True, eq=False, init=False)
class HardmaxLayer(AbstractLayer):
    r"""Pure attention by argmax, equation (1.1) of the clustering paper:

    .. math:: z_i' = \frac{1}{1+\alpha}\Bigl(z_i + \alpha \frac{1}{|C_i|}\sum_{j\in C_i} z_j\Bigr), \qquad
              C_i = \arg\max_j \langle A z_i, z_j\rangle.

    Parameters
    ----------
    alpha
        Step size towards the mean of the selected tokens, positive. A :class:`fractions.Fraction` is used exactly with
        ``tolerance="exact"``; :class:`hardmax.PowerSteps` and :class:`hardmax.GeometricSteps` give each layer its own.
    A
        Score matrix of shape (d, d); the identity when left out. Theorem 1.1 assumes symmetric positive definite.
    Q, K
        Query and key matrices instead of A: scores are :math:`\langle Q z_i, K z_j\rangle`.
    V
        Value matrix of shape (d, d); the identity when left out. With another V there is no closed form and no
        equilibrium.
    tolerance
        Scores within this relative distance of the largest score tie. The default is 64 rounding errors of float64, in
        which scores are computed whatever the dtype of the tokens; ``"exact"`` uses rational arithmetic, for small
        numbers of tokens.
    causal
        Whether each token sees only itself and the tokens before it, as in a decoder.
    window
        Number of tokens in sight, the token itself included: the last ones with ``causal``, otherwise those fewer than
        ``window`` places away. No limit when left out.
    heads
        Several heads instead of A, Q, K and V: score matrices, or :class:`hardmax.Head` objects. The token moves
        towards the sum of what the heads select, weighed by ``shares``.
    shares
        Positive share of each head; they sum to one. Equal when left out.

    Examples
    --------
    >>> import numpy as np
    >>> HardmaxLayer(alpha=1.0)(np.array([[1.0, 0.0], [3.0, 0.0]]))
    array([[2., 0.],
           [3., 0.]])
    >>> HardmaxLayer(alpha=1.0, causal=True)(np.array([[1.0, 0.0], [3.0, 0.0]]))
    array([[1., 0.],
           [3., 0.]])
    """

    alpha: float | Fraction | AbstractSteps
    A: Square | None
    V: Square | None
    tolerance: Tolerance
    mask: Mask
    """Tokens that each token sees."""
    heads: tuple[Head, ...]
    shares: tuple[Share, ...]

    def __init__(
        self,
        alpha: float | Fraction | AbstractSteps = 0.5,
        A: ArrayLike | None = None,
        *,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        V: ArrayLike | None = None,
        tolerance: Tolerance = None,
        causal: bool = False,
        window: int | None = None,
        heads: Sequence[Head | ArrayLike] | None = None,
        shares: Sequence[Share] | None = None,
    ) -> None:
        made, parts = _heads_of(A, Q, K, V, heads, shares)
        single = len(made) == 1
        object.__setattr__(self, "alpha", as_step(alpha))
        object.__setattr__(self, "A", made[0].matrix if single else None)
        object.__setattr__(self, "V", made[0].V if single else None)
        object.__setattr__(self, "tolerance", Hardmax(tolerance).tolerance)
        object.__setattr__(self, "mask", as_mask(causal, window))
        object.__setattr__(self, "heads", made)
        object.__setattr__(self, "shares", parts)

    @property
    def has_plain_values(self) -> bool:
        """Whether V is the identity in every head, left out or given, so that tokens move towards tokens."""
        return all(head.has_plain_values for head in self.heads)

    @property
    def has_leaders(self) -> bool:
        return self.has_plain_values

    @property
    def trains(self) -> bool:
        """Whether a value matrix requires gradients, which the closed form does not have."""
        return any(head.V is not None and head.V.requires_grad for head in self.heads)

    @property
    def is_basic(self) -> bool:
        """Whether this is the layer of the paper: one head, all tokens in sight, one step size, no bias."""
        one = len(self.heads) == 1 and self.heads[0].has_plain_scores and self.heads[0].value_bias is None
        return one and self.mask.sees_all and not isinstance(self.alpha, AbstractSteps)

    @property
    def dimension(self) -> int | None:
        return dimension_of(self.heads)

    @property
    def stays_in_hull(self) -> bool:
        return self.has_plain_values

    @property
    def why_no_limit(self) -> str | None:
        if not self.has_plain_values:
            return "must have V = identity for a closed form"
        if not all(head.has_plain_scores for head in self.heads):
            return "has scores with a bias, for which there is no closed form"
        if not self.mask.nested:
            return f"has a {self.mask}: the hull of what a token sees may grow, so nothing is decided"
        return None

    def with_tolerance(self, tolerance: Tolerance) -> HardmaxLayer:
        """The same layer with another tolerance of ties.

        Parameters
        ----------
        tolerance
            As in the constructor.

        Returns
        -------
        HardmaxLayer
            New layer.
        """
        changed = copy.copy(self)
        object.__setattr__(changed, "tolerance", Hardmax(tolerance).tolerance)
        return changed

    def alpha_at(self, index: int) -> float | Fraction:
        """Step size of the layer with this number in a run.

        Parameters
        ----------
        index
            Number of the layer, from 0.

        Returns
        -------
        float or Fraction
            Positive step size.
        """
        return step_size(self.alpha, index)

    def score_matrix(self, tokens: Tokens) -> Square:
        """Score matrix A, shape (d, d), detached: the argmax does not change under small changes of A.

        Parameters
        ----------
        tokens
            Tokens of shape (tokens, d), for their dimension, dtype and device.

        Returns
        -------
        Tensor
            A, or the identity where the layer has none.
        """
        if len(self.heads) > 1:
            raise InputError("layer", str(self), "has several heads, each with a score matrix", "use layer.heads[h]")
        if self.V is not None:
            as_square("V", self.V, tokens.shape[1])
        return _checked_dimension("A", self.A, tokens).detach()

    def choose(self, tokens: Tokens, queries: slice = ALL_ROWS) -> Choice:
        """Tokens of the largest score for each query: the sets C_i.

        Parameters
        ----------
        tokens
            Validated float64 tensor of shape (tokens, d).
        queries
            Rows of the tokens that are queries; all when left out.

        Returns
        -------
        Choice
            The set C_i of each query, in the order of the rows.
        """
        if len(self.heads) > 1:
            raise InputError(
                "layer", str(self), "has several heads, each with choices of its own", "use layer.choose_heads(tokens)"
            )
        return self.choose_heads(tokens, queries)[0]

    def choose_heads(self, tokens: Tokens, queries: slice = ALL_ROWS) -> tuple[Choice, ...]:
        self.mask.require_fit(len(tokens))
        if self.is_basic:
            return (self._choose_basic(tokens, queries),)
        return tuple(choice_of_head(head, tokens, self.mask, self.tolerance, queries) for head in self.heads)

    def _choose_basic(self, tokens: Tokens, queries: slice) -> Choice:
        if self.tolerance == "exact":
            choice = exact_choice(self.score_matrix(tokens), tokens)
            rows = torch.arange(len(tokens), device=tokens.device)
            return choice if queries == ALL_ROWS else choice.among(rows[queries])
        with torch.no_grad():
            scaled, exponent = scaled_down("tokens", tokens)
            A, exponent_of_matrix = scaled_down("A", self.score_matrix(tokens))
            tolerance = default_tolerance(torch.float64) if self.tolerance is None else self.tolerance
            choice = attended(apply(A, scaled[queries]), scaled, tolerance=tolerance)
            return replace(choice, best=scale(choice.best, 2 * exponent + exponent_of_matrix))

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST)

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST, rows)

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        alpha = float(self.alpha_at(context.index))
        if not self.is_basic:
            selected = selected_sum(self.heads, self.shares, self.mask, self.tolerance, tokens, weights, rows)
            return (tokens[rows] + alpha * selected) / (1 + alpha)
        found = distinct(tokens, weights)
        if rows == ALL_ROWS or found.point_of is not None:
            mean = attended_mean(self._choose_basic(found.points, ALL_ROWS), found.points, found.weights)
            return found.expand(_towards(found.points, mean, self.V, alpha))[rows]
        mean = attended_mean(self._choose_basic(tokens, rows), tokens, weights)
        return _towards(tokens[rows], mean, self.V, alpha)

    def __str__(self) -> str:
        alpha = "step" if isinstance(self.alpha, AbstractSteps) else "alpha"
        return f"hardmax attention, {alpha} = {self.alpha}, {_matrices(self.heads)}{_sight(self.mask)}"


@dataclass(frozen=True, eq=False, init=False)
class SoftmaxLayer(AbstractLayer):
    r"""Softmax attention at inverse temperature :math:`\beta`; its limit for large beta is :class:`HardmaxLayer`:

    .. math:: z_i' = \frac{1}{1+\alpha}\Bigl(z_i + \alpha \sum_j p_{ij} V z_j\Bigr), \qquad
              p_{ij} \propto w_j \exp(\beta \langle A z_i, z_j\rangle).

    Weights enter as logarithms and the largest exponent is subtracted first, so no beta overflows.

    Parameters
    ----------
    alpha
        Step size towards the weighted mean, positive.
    A
        Score matrix of shape (d, d); the identity when left out.
    beta
        Inverse temperature, not negative.
    Q, K
        Query and key matrices instead of A: scores are :math:`\langle Q z_i, K z_j\rangle`.
    V
        Value matrix of shape (d, d); the identity when left out.
    causal
        Whether each token sees only itself and the tokens before it, as in a decoder.
    window
        Number of tokens in sight, as in :class:`HardmaxLayer`.
    heads
        Several heads instead of A, Q, K and V, as in :class:`HardmaxLayer`.
    shares
        Positive share of each head; they sum to one. Equal when left out.
    """

    alpha: float | AbstractSteps
    beta: float
    A: Square | None
    V: Square | None
    mask: Mask
    """Tokens that each token sees."""
    heads: tuple[Head, ...]
    shares: tuple[Share, ...]

    def __init__(
        self,
        alpha: float | AbstractSteps = 0.5,
        A: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        V: ArrayLike | None = None,
        causal: bool = False,
        window: int | None = None,
        heads: Sequence[Head | ArrayLike] | None = None,
        shares: Sequence[Share] | None = None,
    ) -> None:
        made, parts = _heads_of(A, Q, K, V, heads, shares)
        single = len(made) == 1
        step = as_step(alpha)
        object.__setattr__(self, "alpha", step if isinstance(step, AbstractSteps) else float(step))
        object.__setattr__(self, "beta", as_inverse_temperature(beta))
        object.__setattr__(self, "A", made[0].matrix if single else None)
        object.__setattr__(self, "V", made[0].V if single else None)
        object.__setattr__(self, "mask", as_mask(causal, window))
        object.__setattr__(self, "heads", made)
        object.__setattr__(self, "shares", parts)

    @property
    def dimension(self) -> int | None:
        return dimension_of(self.heads)

    @property
    def stays_in_hull(self) -> bool:
        return all(head.has_plain_values for head in self.heads)

    @property
    def is_basic(self) -> bool:
        """Whether there is one head without a bias, and all tokens are in sight."""
        one = len(self.heads) == 1 and self.heads[0].has_plain_scores and self.heads[0].value_bias is None
        return one and self.mask.sees_all

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST)

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST, rows)

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        alpha = float(step_size(self.alpha, context.index))
        if self.is_basic:
            return self._step_basic(tokens, weights, alpha, rows)
        mean = heads_sum(self.heads, self.shares, Softmax(self.beta), self.mask, tokens, weights, rows)
        return (tokens[rows] + alpha * mean) / (1 + alpha)

    def _step_basic(self, tokens: Tokens, weights: PerToken, alpha: float, rows: slice) -> Tokens:
        asking = tokens[rows]
        queries = self.beta * (asking @ _checked_dimension("A", self.A, tokens).T)
        mass = weights.log()
        at_once = max(4, 2**20 // tokens.shape[0])  # logits of a block of rows stay near 8 MB, and several are held

        def weighted_means(some: Queries) -> Tokens:
            logits = some @ tokens.T + mass
            if not bool(torch.isfinite(logits.detach().amax(dim=1)).all()):
                raise InputError(
                    "tokens",
                    f"largest size {float(tokens.detach().abs().max()):.3g}",
                    "must keep beta <A z_i, z_j> within float64",
                    "rescale the tokens or lower beta",
                )
            return torch.softmax(logits, dim=1) @ tokens

        pairs = queries.shape[0] * tokens.shape[0] if tokens.device.type == "cpu" else 0
        took = pairs * (8e-9 + 4e-10 * tokens.shape[1])  # seconds on one thread: the exponential, and both products
        mean = torch.cat([*in_order(weighted_means, torch.split(queries, at_once), seconds=took)])
        return _towards(asking, mean, self.V, alpha)

    def __str__(self) -> str:
        matrix = _matrices(self.heads).removesuffix(", with V")
        return f"softmax attention, alpha = {self.alpha}, beta = {self.beta}, {matrix}{_sight(self.mask)}"
