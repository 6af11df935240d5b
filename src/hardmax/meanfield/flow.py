r"""Attention flows on the unit sphere, by softmax at any temperature and by hardmax.

With logits :math:`\langle Q x_i, K x_j\rangle = \langle B x_i, x_j\rangle`, :math:`B = K^\top Q`, and
:math:`P_x = I - x x^\top`,

.. math:: \dot x_i = P_{x_i} V \sum_j \frac{w_j e^{\beta\langle B x_i, x_j\rangle}}{\sum_l w_l e^{\beta\langle B x_i,
          x_l\rangle}} x_j, \qquad\qquad \dot x = P_x V \frac{B x}{|B x|} \quad (\beta = \infty).

The second is the limit of the first when the law of the tokens has mass in every direction, so that there are tokens in
the direction Bx. Finitely many tokens have another limit, the hardmax rule :class:`SphereHardmaxFlow`.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch

from ..attention.argmax import attended_mean
from ..attention.choice import apply, default_tolerance
from ..attention.masks import as_mask
from ..attention.normal_form import distinct
from ..attention.search import attended
from ..attention.weighting import Softmax, weighted_sums
from ..dynamics.flows import AbstractFlow
from ..dynamics.spaces import UnitSphere
from ..errors import InputError
from ..inputs import as_number, as_score_matrix, as_square, as_tokens, as_weights
from ..shapes import Array, ArrayLike, PerToken, Queries, Square, Tokens
from .evaluation import METHODS, Evaluation, Method
from .measures import ENOUGH, FewTokensWarning, occupancy_of
from .sphere import decay_at_zero_temperature, decay_of_attention, direction_of, normalised, sized, tangent

_PRECISIONS = {"float32": torch.float32, "float64": torch.float64}
_ALL_ROWS = slice(None)


class _OnSphere(AbstractFlow):
    """Common parts of flows on the sphere: matrices, tangent projection, validation."""

    B: Square | None
    V: Square | None
    normalise: bool

    @abstractmethod
    def heard(self, tokens: Tokens, weights: PerToken, queries: Queries | None = None) -> Queries:
        """Mean that each query (the tokens themselves when None) attends to, shape (queries, d), before V."""

    def score_matrix(self, dimension: int) -> Square:
        """B for tokens of this dimension, shape (d, d)."""
        return sized("B", self.B, dimension)

    def value_matrix(self, dimension: int) -> Square:
        """V for tokens of this dimension, shape (d, d)."""
        return sized("V", self.V, dimension)

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.heard(tokens, weights) @ self.value_matrix(tokens.shape[1]).to(tokens.device).T

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return tangent(tokens, self.drift(tokens, weights))

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.heard(tokens, weights, tokens[rows]) @ self.value_matrix(tokens.shape[1]).to(tokens.device).T

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return tangent(tokens[rows], self.drift_of(rows, tokens, weights))

    @property
    def space(self) -> UnitSphere:
        """The unit sphere."""
        return UnitSphere()

    def project(self, tokens: Tokens) -> Tokens:
        return self.space.project(tokens)

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> Tokens:
        return self.on_sphere(tokens, dtype)

    def on_sphere(self, tokens: Tokens, dtype: torch.dtype) -> Tokens:
        """Tokens of length one, shape (tokens, d), validated to the precision ``dtype`` that the caller passed."""
        self.score_matrix(tokens.shape[1])
        self.value_matrix(tokens.shape[1])
        on_sphere = normalised(tokens)
        gap = (tokens - on_sphere).detach().abs().amax(dim=1)
        if not self.normalise and float(gap.max()) > 64 * torch.finfo(dtype).eps:
            worst = int(gap.argmax())
            raise InputError(
                "tokens",
                f"length {float(tokens[worst].detach().norm()):.6g} at index {worst}",
                "must lie on the unit sphere",
                "divide each by its length, or pass normalise=True to the flow",
            )
        return on_sphere

    def attention(
        self, tokens: ArrayLike, weights: ArrayLike | None = None, *, queries: ArrayLike | None = None
    ) -> Array:
        """Mean that each query attends to, before V, shape (queries, d).

        Parameters
        ----------
        tokens
            Tokens on the unit sphere, shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,); all equal when left out.
        queries
            Points whose attention is evaluated, shape (queries, d); the tokens themselves when left out.

        Returns
        -------
        array or tensor
            Shape (queries, d), of the kind of ``tokens``.
        """
        tensor, kind = as_tokens(tokens)
        mass = as_weights(weights, tensor.shape[0], tensor.device)
        points = self.on_sphere(tensor.to(torch.float64), kind.dtype)
        if queries is None:
            return kind.give_back(self.heard(points, mass))
        asking, _ = as_tokens(queries, argument="queries")
        if asking.shape[1] != points.shape[1]:
            raise InputError(
                "queries",
                f"{asking.shape[1]} coordinates",
                f"must have {points.shape[1]} as the tokens have",
                "queries are (query, coordinate)",
            )
        return kind.give_back(self.heard(points, mass, asking.to(points)))


@dataclass(frozen=True, eq=False, init=False)
class SphereFlow(_OnSphere):
    r"""Softmax attention on the sphere at inverse temperature :math:`\beta`, in continuous time.

    Parameters
    ----------
    B, V
        Score and value matrix of shape (d, d); the identity when left out.
    beta
        Inverse temperature, not negative. ``math.inf`` is the zero-temperature field of a law with mass in every
        direction, :math:`\dot x = P_x V B x/|B x|`.
    Q, K
        Query and key matrix instead of B: logits are :math:`\langle Q x_i, K x_j\rangle`, so :math:`B = K^\top Q`.
    normalise
        Scale tokens to length one before a run; otherwise tokens off the sphere are an error.
    few_tokens
        ``"warn"`` when fewer than ten tokens share an attention kernel, too few to represent a measure; ``"ignore"``
        when the finite set of tokens itself is of interest.
    evaluation
        Method of evaluation, which affects speed only: ``"auto"``, ``"rows"``, ``"symmetric"``, ``"sdpa"``,
        ``"circle"`` (d = 2) or ``"truncated"``.
    precision
        ``"float64"`` or ``"float32"``. In float32 logits are rounded by about ``6e-8 beta |B|``.
    causal
        Whether each token attends only to itself and the tokens before it. Attention is then evaluated by rows in
        float64, whatever ``evaluation`` and ``precision`` say, at a finite ``beta``.

    Examples
    --------
    >>> import numpy as np
    >>> flow = SphereFlow(B=np.diag([2.0, 1.0]), beta=5.0)
    >>> flow.attention([[1.0, 0.0], [0.0, 1.0]]).round(3)
    array([[1.   , 0.   ],
           [0.007, 0.993]])
    """

    B: Square | None
    V: Square | None
    beta: float
    normalise: bool
    few_tokens: str
    evaluation: Evaluation
    causal: bool

    def __init__(
        self,
        B: ArrayLike | None = None,
        V: ArrayLike | None = None,
        beta: float = 1.0,
        *,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        normalise: bool = False,
        few_tokens: Literal["warn", "ignore"] = "warn",
        evaluation: Method = "auto",
        precision: Literal["float32", "float64"] = "float64",
        causal: bool = False,
    ) -> None:
        if beta != math.inf:
            remedy = "pass beta >= 0, or math.inf for the zero-temperature field"
            beta = as_number("beta", beta, lambda x: x >= 0, "must not be negative or NaN", remedy)
        for argument, value, known in (
            ("evaluation", evaluation, METHODS),
            ("precision", precision, tuple(_PRECISIONS)),
            ("few_tokens", few_tokens, ("warn", "ignore")),
        ):
            if value not in known:
                raise InputError(argument, repr(value), "is not known", f"pass one of {', '.join(known)}")
        object.__setattr__(self, "B", as_score_matrix("B", B, Q, K))
        object.__setattr__(self, "V", None if V is None else as_square("V", V))
        object.__setattr__(self, "beta", float(beta))
        object.__setattr__(self, "normalise", bool(normalise))
        object.__setattr__(self, "few_tokens", few_tokens)
        object.__setattr__(self, "evaluation", Evaluation(evaluation, _PRECISIONS[precision]))
        object.__setattr__(self, "causal", bool(causal))
        if self.causal and self.at_zero_temperature:
            problem = "needs a finite beta: the zero-temperature field depends on no other token"
            raise InputError("causal", True, problem, "pass a finite beta, or AttentionFlow(weighting=Hardmax())")

    @property
    def at_zero_temperature(self) -> bool:
        """Whether this is the zero-temperature field."""
        return math.isinf(self.beta)

    def heard(self, tokens: Tokens, weights: PerToken, queries: Queries | None = None) -> Queries:
        B = self.score_matrix(tokens.shape[1]).to(tokens.device)
        if self.causal:
            if queries is not None:
                remedy = "leave out queries, or use a flow without a mask"
                raise InputError("queries", f"{len(queries)} points", "have no place in a causal sequence", remedy)
            return self._heard_causal(_ALL_ROWS, tokens, weights)
        if not self.at_zero_temperature:
            return self.evaluation.mean(tokens, self.beta * B, weights, queries)
        directions = (tokens if queries is None else queries) @ direction_of(B).T
        lengths: Tokens = torch.linalg.vector_norm(directions, dim=1, keepdim=True)
        if bool((lengths == 0).any()):
            raise InputError(
                "B",
                f"B x = 0 at token {int(lengths.argmin())}",
                "must be regular at zero temperature",
                "pass a regular B or a finite beta",
            )
        return directions / lengths

    def _heard_causal(self, rows: slice, tokens: Tokens, weights: PerToken) -> Queries:
        """Mean that some tokens attend to under the causal mask, shape (rows, d): the same bits with tokens after."""
        queries = tokens if self.B is None else apply(self.score_matrix(tokens.shape[1]).to(tokens.device), tokens)
        return weighted_sums(Softmax(self.beta), queries, tokens, tokens, weights, as_mask(True, None), rows=rows)[0]

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        if not self.causal:
            return super().drift_of(rows, tokens, weights)
        heard = self._heard_causal(rows, tokens, weights)
        return heard if self.V is None else apply(self.value_matrix(tokens.shape[1]).to(tokens.device), heard)

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.drift_of(_ALL_ROWS, tokens, weights) if self.causal else super().drift(tokens, weights)

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> Tokens:
        tokens = super().admit(tokens, weights, dtype)
        if self.few_tokens == "warn" and not self.at_zero_temperature:
            found = occupancy_of(tokens, self.score_matrix(tokens.shape[1]).to(tokens.device), self.beta)
            if found.smallest < (1 - 1e-9) * ENOUGH:
                warnings.warn(found.warning(), FewTokensWarning, stacklevel=4)  # the line that called simulate
        return tokens

    def fastest_decay(self, tokens: Tokens, weights: PerToken) -> float:
        d = tokens.shape[1]
        B, V = self.score_matrix(d).to(tokens.device), self.value_matrix(d).to(tokens.device)
        if self.at_zero_temperature:
            return decay_at_zero_temperature(tokens, B, V)
        return decay_of_attention(tokens, weights, self.beta * B, V, causal=self.causal)

    def __str__(self) -> str:
        return f"{'causal ' if self.causal else ''}attention flow on the sphere, beta = {self.beta:g}"


@dataclass(frozen=True, eq=False, init=False)
class SphereHardmaxFlow(_OnSphere):
    r"""Hardmax rule on the sphere, for finitely many tokens, in continuous time:

    .. math:: \dot x_i = P_{x_i} V \frac{1}{w(C_i)}\sum_{j\in C_i} w_j x_j,
              \qquad C_i = \arg\max_j \langle B x_i, x_j\rangle.

    This is the limit of :class:`SphereFlow` for fixed tokens and :math:`\beta\to\infty`; its zero-temperature field
    ``SphereFlow(beta=math.inf)`` is the limit when the number of tokens grows first.

    Parameters
    ----------
    B, V
        Score and value matrix of shape (d, d); the identity when left out.
    Q, K
        Query and key matrix instead of B: scores are :math:`\langle Q x_i, K x_j\rangle`, so :math:`B = K^\top Q`.
    normalise
        Scale tokens to length one before a run; otherwise tokens off the sphere are an error.
    tolerance
        Scores within this relative distance of the largest tie; 64 rounding errors of float64 when left out.
    """

    B: Square | None
    V: Square | None
    normalise: bool
    tolerance: float

    def __init__(
        self,
        B: ArrayLike | None = None,
        V: ArrayLike | None = None,
        *,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        normalise: bool = False,
        tolerance: float | None = None,
    ) -> None:
        if tolerance is None:
            tolerance = default_tolerance(torch.float64)
        remedy = "pass for example tolerance=1e-12"
        object.__setattr__(self, "B", as_score_matrix("B", B, Q, K))
        object.__setattr__(self, "V", None if V is None else as_square("V", V))
        object.__setattr__(self, "normalise", bool(normalise))
        accept = as_number("tolerance", tolerance, lambda x: 0 <= x < 0.1, "must lie in [0, 0.1)", remedy)
        object.__setattr__(self, "tolerance", accept)

    def heard(self, tokens: Tokens, weights: PerToken, queries: Queries | None = None) -> Queries:
        B = self.score_matrix(tokens.shape[1]).to(tokens.device)
        found = distinct(tokens, weights)
        asking = apply(B, found.points if queries is None else queries)
        mean = attended_mean(attended(asking, found.points, tolerance=self.tolerance), found.points, found.weights)
        return found.expand(mean) if queries is None else mean

    def __str__(self) -> str:
        return "hardmax flow on the sphere"
