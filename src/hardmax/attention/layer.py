r"""Layers: pure functions from tokens to the next tokens.

A layer is called with tokens of shape ``(..., tokens, d)``, a tensor or a NumPy array, and returns the same kind of
array, with the same dtype and device. Gradients flow through tensors: the argmax has no gradient, the mean of the
selected tokens has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, overload

import numpy as np
import torch

from ..errors import InputError
from ..inputs import as_number, as_positive, as_score_matrix, as_square, as_tensor, as_tokens, as_weights
from ..shapes import Array, ArrayLike, Matrix, PerToken, Points, Queries, Square, Tokens, Values
from ..threads import in_order, one_thread
from .choice import Choice, apply, default_tolerance
from .distinct import distinct
from .rational import exact_choice
from .scaling import scale, scaled_down
from .search import attended

Tolerance = float | Literal["exact"] | None
_ALL = slice(None)


class AbstractLayer(ABC):
    """Interface of a layer: a map from tokens to the next tokens, implemented by :meth:`step`."""

    @abstractmethod
    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """Tokens after one layer, shape (tokens, d).

        Parameters
        ----------
        tokens
            Validated float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, float64, shape (tokens,).

        Returns
        -------
        Tensor
            Float64 tensor of shape (tokens, d).
        """

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """Some rows of the tokens after one layer; layers override it where that saves work.

        Parameters
        ----------
        rows
            Rows to return.
        tokens
            All tokens, float64, shape (tokens, d).
        weights
            Positive weight per token, float64, shape (tokens,).

        Returns
        -------
        Tensor
            ``step(tokens, weights)[rows]``.
        """
        return self.step(tokens, weights)[rows]

    @overload
    def __call__(  # type: ignore[overload-overlap]  # all but tensors come back as NumPy arrays
        self, tokens: torch.Tensor, weights: ArrayLike | None = None
    ) -> torch.Tensor: ...

    @overload
    def __call__(self, tokens: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray: ...

    @one_thread()
    def __call__(self, tokens: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Tokens after one layer, with the shape, kind, dtype and device of the input.

        Parameters
        ----------
        tokens
            Array or tensor of shape (..., tokens, d); entries of a batch do not attend to each other.
        weights
            Positive weight per token, shape (tokens,); all equal when left out.

        Returns
        -------
        array or tensor
            Shape (..., tokens, d).
        """
        tensor, kind = as_tokens(tokens, batch=True)
        mass = as_weights(weights, tensor.shape[-2], tensor.device)
        flat = tensor.to(torch.float64).reshape(math.prod(tensor.shape[:-2]), *tensor.shape[-2:])
        if len(flat) == 0:
            self.step(flat.new_zeros((1, tensor.shape[-1])), mass[:1])  # refuses coordinates that do not fit the layer
            return kind.give_back(flat.reshape(tensor.shape))
        moved = torch.stack([self.step(one, mass) for one in flat]).reshape(tensor.shape)
        return kind.give_back(moved)


def _matrices(
    A: ArrayLike | None, Q: ArrayLike | None, K: ArrayLike | None, V: ArrayLike | None
) -> tuple[Square | None, Square | None]:
    """Score matrix (``A``, or ``K^T Q``) and value matrix, each of shape (d, d); None stands for the identity."""
    return as_score_matrix("A", A, Q, K), None if V is None else as_square("V", V)


def _checked_dimension(name: str, matrix: Square | None, tokens: Tokens) -> Square:
    d = tokens.shape[1]
    if matrix is None:
        return torch.eye(d, dtype=tokens.dtype, device=tokens.device)
    return as_square(name, matrix, d).to(tokens.device)


def _towards(tokens: Tokens, heard: Tokens, value: Square | None, alpha: float) -> Tokens:
    if value is not None:
        heard = heard @ _checked_dimension("V", value, tokens).T
    return (tokens + alpha * heard) / (1 + alpha)


def heard_mean(choice: Choice, points: Tokens, weights: PerToken) -> Points:
    """Weighted mean of the points that each query attends to, shape (queries, d)."""
    heard = points[choice.first]
    if len(choice.tied):
        rows = torch.repeat_interleave(torch.arange(len(choice.tied), device=points.device), choice.sizes)
        mass = weights[choice.members]
        total = torch.zeros(len(choice.tied), dtype=points.dtype, device=points.device)
        total = total.index_add(0, rows, mass)
        summed = torch.zeros(len(choice.tied), points.shape[1], dtype=points.dtype, device=points.device)
        summed = summed.index_add(0, rows, mass[:, None] * points[choice.members])
        heard = heard.index_copy(0, choice.tied, summed / total[:, None])
    if bool(choice.everyone.any()):
        average = (weights[:, None] * points).sum(dim=0) / weights.sum()
        heard = torch.where(choice.everyone[:, None], average, heard)
    return heard


@dataclass(frozen=True, eq=False, init=False)
class HardmaxLayer(AbstractLayer):
    r"""Pure attention by argmax, equation (1.1) of the clustering paper:

    .. math:: z_i' = \frac{1}{1+\alpha}\Bigl(z_i + \alpha \frac{1}{|C_i|}\sum_{j\in C_i} z_j\Bigr), \qquad
              C_i = \arg\max_j \langle A z_i, z_j\rangle.

    Parameters
    ----------
    alpha
        Step size towards the mean of the selected tokens, positive. A :class:`fractions.Fraction` is used exactly with
        ``tolerance="exact"``.
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

    Examples
    --------
    >>> import numpy as np
    >>> HardmaxLayer(alpha=1.0)(np.array([[1.0, 0.0], [3.0, 0.0]]))
    array([[2., 0.],
           [3., 0.]])
    """

    alpha: float | Fraction
    A: Square | None
    V: Square | None
    tolerance: Tolerance

    def __init__(
        self,
        alpha: float | Fraction = 0.5,
        A: ArrayLike | None = None,
        *,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        V: ArrayLike | None = None,
        tolerance: Tolerance = None,
    ) -> None:
        as_positive("alpha", alpha)
        score, value = _matrices(A, Q, K, V)
        if tolerance is not None and tolerance != "exact":
            tolerance = as_number(
                "tolerance", tolerance, lambda x: 0 <= x < 0.1, "must lie in [0, 0.1)", 'or be "exact"'
            )
        object.__setattr__(self, "alpha", alpha if isinstance(alpha, Fraction) else float(alpha))
        object.__setattr__(self, "A", score)
        object.__setattr__(self, "V", value)
        object.__setattr__(self, "tolerance", tolerance)

    @property
    def has_plain_values(self) -> bool:
        """Whether V is the identity, left out or given, so that tokens move towards tokens."""
        return self.V is None or torch.equal(self.V, torch.eye(len(self.V)).to(self.V))

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
        if self.V is not None:
            as_square("V", self.V, tokens.shape[1])
        return _checked_dimension("A", self.A, tokens).detach()

    def choose(self, tokens: Tokens, queries: slice = _ALL) -> Choice:
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
        if self.tolerance == "exact":
            choice = exact_choice(self.score_matrix(tokens), tokens)
            return choice if queries == _ALL else choice.among(torch.arange(len(tokens), device=tokens.device)[queries])
        with torch.no_grad():
            scaled, exponent = scaled_down("tokens", tokens)
            A, exponent_of_matrix = scaled_down("A", self.score_matrix(tokens))
            tolerance = default_tolerance(torch.float64) if self.tolerance is None else self.tolerance
            choice = attended(apply(A, scaled[queries]), scaled, tolerance=tolerance)
            return replace(choice, best=scale(choice.best, 2 * exponent + exponent_of_matrix))

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        found = distinct(tokens, weights)
        heard = heard_mean(self.choose(found.points), found.points, found.weights)
        return found.expand(_towards(found.points, heard, self.V, float(self.alpha)))

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        found = distinct(tokens, weights)
        if found.point_of is not None:
            return self.step(tokens, weights)[rows]
        heard = heard_mean(self.choose(tokens, rows), tokens, weights)
        return _towards(tokens[rows], heard, self.V, float(self.alpha))

    def __str__(self) -> str:
        matrix = "I" if self.A is None else f"{self.A.shape[0]} x {self.A.shape[0]}"
        value = "" if self.V is None else ", with V"
        return f"hardmax attention, alpha = {self.alpha}, A = {matrix}{value}"


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
    """

    alpha: float
    beta: float
    A: Square | None
    V: Square | None

    def __init__(
        self,
        alpha: float = 0.5,
        A: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        V: ArrayLike | None = None,
    ) -> None:
        score, value = _matrices(A, Q, K, V)
        object.__setattr__(self, "alpha", as_positive("alpha", alpha))
        object.__setattr__(
            self,
            "beta",
            as_number(
                "beta",
                beta,
                lambda x: x >= 0,
                "must be finite and not negative",
                "use HardmaxLayer for the limit beta = inf",
            ),
        )
        object.__setattr__(self, "A", score)
        object.__setattr__(self, "V", value)

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_of(_ALL, tokens, weights)

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        asking = tokens[rows]
        queries = self.beta * (asking @ _checked_dimension("A", self.A, tokens).T)
        mass = weights.log()
        at_once = max(4, 2**20 // tokens.shape[0])  # logits of a block of rows stay near 8 MB, and several are held

        def heard_by(some: Queries) -> Tokens:
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
        took = pairs * (8e-9 + 4e-10 * tokens.shape[1])  # on one thread: the exponential, and both products
        heard = torch.cat([*in_order(heard_by, torch.split(queries, at_once), seconds=took)])
        return _towards(asking, heard, self.V, self.alpha)

    def __str__(self) -> str:
        matrix = "I" if self.A is None else f"{self.A.shape[0]} x {self.A.shape[0]}"
        return f"softmax attention, alpha = {self.alpha}, beta = {self.beta}, A = {matrix}"


@dataclass(frozen=True, eq=False, init=False)
class FeedForwardLayer(AbstractLayer):
    r"""Feed-forward layer, applied per token: :math:`z' = \eta z + W\,\mathrm{relu}(U z + b)`.

    Parameters
    ----------
    U
        Input weights of shape (h, d), with h hidden units.
    b
        Biases of shape (h,).
    W
        Output weights of shape (d, h).
    eta
        Factor of the residual connection.
    """

    U: Matrix
    b: Values
    W: Matrix
    eta: float

    def __init__(self, U: ArrayLike, b: ArrayLike, W: ArrayLike, eta: float = 1.0) -> None:
        inner, _ = as_tensor("U", U)
        bias, _ = as_tensor("b", b)
        outer, _ = as_tensor("W", W)
        hidden = tuple(inner.shape)[:1]
        if inner.ndim != 2 or tuple(bias.shape) != hidden or tuple(outer.shape) != tuple(inner.shape)[::-1]:
            raise InputError(
                "U, b, W",
                f"shapes {tuple(inner.shape)}, {tuple(bias.shape)}, {tuple(outer.shape)}",
                "must have shapes (h, d), (h,), (d, h)",
                "U reads d coordinates into h units, W writes them back",
            )
        for name, tensor in (("U", inner), ("b", bias), ("W", outer)):
            if not bool(torch.isfinite(tensor).all()):
                raise InputError(name, "NaN or infinity", "must be finite", "remove the entries that are not finite")
            object.__setattr__(self, name, tensor.to(torch.float64))
        object.__setattr__(self, "eta", as_number("eta", eta, lambda x: True, "must be finite", "pass a finite eta"))

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        if tokens.shape[1] != self.U.shape[1]:
            raise InputError(
                "tokens",
                f"{tokens.shape[1]} coordinates",
                f"must have {self.U.shape[1]} coordinates to match U",
                "tokens are (token, coordinate); transpose them if the axes are swapped",
            )
        device = tokens.device
        hidden = torch.relu(tokens @ self.U.to(device).T + self.b.to(device))
        return self.eta * tokens + hidden @ self.W.to(device).T

    def step_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step(tokens[rows], weights[rows])

    def __str__(self) -> str:
        return f"feed-forward, {self.U.shape[0]} units, eta = {self.eta}"


@dataclass(frozen=True, eq=False, init=False)
class Block(AbstractLayer):
    """Several layers applied one after the other and counted as one layer.

    Parameters
    ----------
    *layers
        Layers in the order in which they are applied.
    """

    layers: tuple[AbstractLayer, ...]

    def __init__(self, *layers: AbstractLayer) -> None:
        if not layers or not all(isinstance(layer, AbstractLayer) for layer in layers):
            raise InputError("layers", repr(layers)[:60], "must be one or more layers", "Block(HardmaxLayer(), …)")
        object.__setattr__(self, "layers", layers)

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        for layer in self.layers:
            tokens = layer.step(tokens, weights)
        return tokens

    def __str__(self) -> str:
        return "; then ".join(str(layer) for layer in self.layers)
