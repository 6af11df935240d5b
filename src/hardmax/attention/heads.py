r"""Attention heads: scores of pairs of tokens, and the values that are passed on.

Head h scores the pair (i, k) by :math:`\langle Q_h z_i + q_h,\, K_h z_k + k_h\rangle + b_h(i, k)`, or by
:math:`\langle A_h z_i, z_k\rangle + b_h(i, k)`, and passes on :math:`V_h z_k + v_h`.

Queries, keys and values are computed in blocks of rows of a fixed shape (:func:`in_blocks`). A matrix product of
another shape may round differently; in blocks of one shape, at fixed places of the sequence, the result of a row does
not depend, to the last bit, on how many rows come after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch

from ..errors import InputError
from ..inputs import as_number, as_score_matrix, as_square, as_tensor
from ..scalars import shown
from ..shapes import ArrayLike, Indices, Matrix, Projected, Square, Tokens, Values
from .choice import apply

# Rows per block: with 1e5 tokens the scores of a block take 100 MB.
ROWS = 128


def in_blocks(function: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
    """A function of each row by itself, evaluated block by block, shape (rows, …)."""
    return torch.cat([function(block) for block in torch.split(padded(rows), ROWS)])[: len(rows)]


def padded(rows: torch.Tensor) -> torch.Tensor:
    """Rows with zeros below, up to a multiple of the rows of a block, contiguous in memory.

    A product of rows that are stored by columns rounds differently.
    """
    missing = -len(rows) % ROWS
    return torch.cat([rows, rows.new_zeros((missing, rows.shape[1]))]) if missing else rows.contiguous()


class AbstractBias(ABC):
    """Interface of a bias by position: a number added to the score of a pair of tokens."""

    @abstractmethod
    def at(self, rows: Indices, columns: Indices) -> torch.Tensor:
        """Bias of pairs of tokens, of the shape to which the arguments broadcast.

        Parameters
        ----------
        rows
            Places of the tokens that attend.
        columns
            Places of the tokens that are attended to.

        Returns
        -------
        Tensor
            Float64.
        """


@dataclass(frozen=True)
class LinearBias(AbstractBias):
    r"""Bias that falls with the distance: :math:`b(i, k) = -s\,|i - k|` (ALiBi).

    Parameters
    ----------
    slope
        Slope s; positive prefers near tokens.
    """

    slope: float

    def __post_init__(self) -> None:
        value = as_number("slope", self.slope, lambda x: True, "must be finite", "pass for example slope=0.5")
        object.__setattr__(self, "slope", value)

    def at(self, rows: Indices, columns: Indices) -> torch.Tensor:
        return -self.slope * (rows - columns).abs().to(torch.float64)


@dataclass(frozen=True, eq=False)
class TableBias(AbstractBias):
    """Bias given for every pair of tokens.

    Parameters
    ----------
    table
        Biases of shape (tokens, tokens): row i, column k for the pair in which i attends to k.
    """

    table: Matrix

    def __init__(self, table: ArrayLike) -> None:
        object.__setattr__(self, "table", as_square("table", table))

    def at(self, rows: Indices, columns: Indices) -> torch.Tensor:
        if int(rows.max()) >= len(self.table) or int(columns.max()) >= len(self.table):
            raise InputError(
                "bias",
                f"shape {tuple(self.table.shape)}",
                "has fewer rows than there are tokens",
                "pass a bias for every pair of tokens",
            )
        return self.table.to(rows.device)[rows, columns]


@dataclass(frozen=True, eq=False, init=False)
class Head:
    r"""One attention head.

    Parameters
    ----------
    A
        Score matrix of shape (d, d); the identity when left out.
    Q, K
        Query and key matrices of shape (p, d) instead of A.
    V
        Value matrix of shape (d, d); the identity when left out.
    bias
        Bias by position, :class:`LinearBias` or :class:`TableBias`, or a table of shape (tokens, tokens).
    query_bias, key_bias
        Vectors of shape (p,) added to queries and keys; only with Q and K.
    value_bias
        Vector of shape (d,) added to values.

    Examples
    --------
    >>> Head(A=[[2.0, 0.0], [0.0, 1.0]]).dimension
    2
    """

    A: Square | None
    Q: Matrix | None
    K: Matrix | None
    V: Square | None
    bias: AbstractBias | None
    query_bias: Values | None
    key_bias: Values | None
    value_bias: Values | None

    def __init__(
        self,
        A: ArrayLike | None = None,
        *,
        Q: ArrayLike | None = None,
        K: ArrayLike | None = None,
        V: ArrayLike | None = None,
        bias: AbstractBias | ArrayLike | None = None,
        query_bias: ArrayLike | None = None,
        key_bias: ArrayLike | None = None,
        value_bias: ArrayLike | None = None,
    ) -> None:
        product = as_score_matrix("A", A, Q, K)
        object.__setattr__(self, "A", product if Q is None else None)
        for name, given in (("Q", Q), ("K", K)):
            object.__setattr__(self, name, None if given is None else as_tensor(name, given)[0].to(torch.float64))
        object.__setattr__(self, "V", None if V is None else as_square("V", V))
        table = bias if bias is None or isinstance(bias, AbstractBias) else TableBias(bias)
        object.__setattr__(self, "bias", table)
        width = None if self.Q is None else len(self.Q)
        for name, given in (("query_bias", query_bias), ("key_bias", key_bias)):
            if given is not None and width is None:
                raise InputError(name, shown(given), "needs Q and K", "pass Q and K instead of A")
            object.__setattr__(self, name, as_vector(name, given, width))
        dimension = self.dimension
        object.__setattr__(self, "value_bias", as_vector("value_bias", value_bias, dimension))
        if self.V is not None and dimension is not None and len(self.V) != dimension:
            raise InputError(
                "V", f"shape {tuple(self.V.shape)}", f"must be {dimension} x {dimension}", "it acts on the same tokens"
            )

    @property
    def dimension(self) -> int | None:
        """Number of coordinates of the tokens that this head takes; None where no matrix fixes it."""
        for matrix in (self.A, self.Q, self.V):
            if matrix is not None:
                return int(matrix.shape[1])
        return None

    @property
    def has_plain_values(self) -> bool:
        """Whether V is the identity and there is no value bias, so that tokens move towards tokens."""
        identity = self.V is None or torch.equal(self.V, torch.eye(len(self.V)).to(self.V))
        return identity and self.value_bias is None

    @property
    def has_plain_scores(self) -> bool:
        """Whether scores are bilinear in the tokens: no bias of any kind."""
        return self.bias is None and self.query_bias is None and self.key_bias is None

    @property
    def matrix(self) -> Square | None:
        """Score matrix A, or :math:`K^T Q`, shape (d, d); None stands for the identity."""
        return self.A if self.Q is None or self.K is None else self.K.T @ self.Q

    def queries(self, tokens: Tokens, *, fast: bool = False) -> Projected:
        """Query of each token, shape (tokens, p), each computed in the order of the coordinates.

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        fast
            Whether matrix products may be used, which add in another order.

        Returns
        -------
        Tensor
            ``A z_i``, or ``Q z_i`` with its bias.
        """
        if self.Q is None:
            return tokens if self.A is None else _product(self.A, tokens, fast)
        return _shifted(_product(self.Q, tokens, fast), self.query_bias)

    def keys(self, tokens: Tokens, *, fast: bool = False) -> Projected:
        """Key of each token, shape (tokens, p), each computed in the order of the coordinates.

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        fast
            Whether matrix products may be used, which add in another order.

        Returns
        -------
        Tensor
            The tokens themselves, or ``K z_k`` with its bias.
        """
        return tokens if self.K is None else _shifted(_product(self.K, tokens, fast), self.key_bias)

    def values(self, sums: Tokens, totals: torch.Tensor | None = None, *, fast: bool = False) -> Tokens:
        """Value of each weighted sum of tokens, shape (tokens, d): V times the sum, plus the value bias.

        Parameters
        ----------
        sums
            Weighted sums of tokens, shape (tokens, d).
        totals
            Sum of the weights of each, shape (tokens, 1), which multiplies the value bias; one when left out.
        fast
            Whether matrix products may be used, which add in another order.

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """
        moved = sums if self.V is None else _product(self.V, sums, fast)
        if self.value_bias is None:
            return moved
        bias = self.value_bias.to(sums.device)
        return moved + (bias if totals is None else totals * bias)

    def require_dimension(self, d: int) -> None:
        """Raise an InputError where the matrices do not fit tokens of ``d`` coordinates.

        Parameters
        ----------
        d
            Number of coordinates of the tokens.
        """
        for name, matrix in (("A", self.A), ("Q", self.Q), ("V", self.V)):
            if matrix is not None and matrix.shape[1] != d:
                raise InputError(
                    name,
                    f"shape {tuple(matrix.shape)}",
                    f"must have {d} columns to match the tokens",
                    "tokens are (token, coordinate); transpose them if the axes are swapped",
                )


def _product(matrix: Matrix, rows: Tokens, fast: bool) -> Projected:
    """The matrix times each row, shape (rows, p), by products of one shape (``fast``) or coordinate by coordinate."""
    there = matrix.to(rows.device)
    return in_blocks(lambda some: some @ there.T, rows) if fast else apply(there, rows)


def as_vector(name: str, value: ArrayLike | None, length: int | None = None) -> Values | None:
    """A finite vector of this length, float64; None stays None."""
    if value is None:
        return None
    tensor = as_tensor(name, value)[0].to(torch.float64)
    if tensor.ndim != 1 or (length is not None and len(tensor) != length):
        wanted = "one number per coordinate" if length is None else f"shape ({length},)"
        raise InputError(name, f"shape {tuple(tensor.shape)}", f"must have {wanted}", "pass a vector")
    if not bool(torch.isfinite(tensor).all()):
        raise InputError(name, "NaN or infinity", "must be finite", "remove the entries that are not finite")
    return tensor


def _shifted(rows: Projected, by: Values | None) -> Projected:
    return rows if by is None else rows + by.to(rows.device)


def as_heads(heads: Sequence[Head | ArrayLike]) -> tuple[Head, ...]:
    """Heads from heads or score matrices, all for tokens of the same number of coordinates.

    >>> len(as_heads([[[1.0, 0.0], [0.0, 2.0]], Head()]))
    2
    """
    if isinstance(heads, (str, int, float)) or not isinstance(heads, Sequence) or len(heads) == 0:
        remedy = "pass for example heads=[A1, A2] or heads=[Head(Q=Q1, K=K1), Head(A2)]"
        raise InputError("heads", shown(heads), "must be a list of heads or of score matrices", remedy)
    made = tuple(head if isinstance(head, Head) else Head(head) for head in heads)
    dimensions = {head.dimension for head in made} - {None}
    if len(dimensions) > 1:
        found = ", ".join(str(d) for d in sorted(d for d in dimensions if d is not None))
        raise InputError("heads", f"for tokens of {found} coordinates", "must all have the same d", "use one d")
    return made


def dimension_of(heads: Sequence[Head]) -> int | None:
    """Number of coordinates of the tokens that heads take; None where no matrix fixes it."""
    return next((head.dimension for head in heads if head.dimension is not None), None)


Share = float | Fraction


def as_shares(shares: Sequence[Share] | None, count: int, *, sum_to_one: bool) -> tuple[Share, ...]:
    """Share of each head; equal ones where None.

    >>> as_shares(None, 4, sum_to_one=True)
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4))
    """
    if shares is None:
        return (Fraction(1, count),) * count
    if isinstance(shares, (str, int, float)) or len(shares) != count:
        raise InputError(
            "shares", shown(shares), f"must be {count} numbers, one per head", "leave it out for equal shares"
        )
    for share in shares:
        as_number("shares", share, lambda x: not sum_to_one or x > 0, "must be positive and finite", "pass shares > 0")
    made = tuple(share if isinstance(share, Fraction) else float(share) for share in shares)
    # Shares typed as decimals, such as three times 0.333, are refused; sums of rounded fractions pass.
    if sum_to_one and abs(float(sum(made)) - 1) > 1e-12:
        raise InputError(
            "shares", shown(shares), f"sum to {float(sum(made)):g}, not to one", "divide them by their sum"
        )
    return made
