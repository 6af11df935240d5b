r"""Weightings of scores: softmax, top-k, sigmoid, linear, exponential, doubly stochastic, and hardmax.

Rows are evaluated in blocks of a fixed shape at fixed places of the sequence. Under a causal mask the result of a row
therefore depends, to the last bit, on the tokens that it sees alone, not on how many tokens come after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch

from ..errors import InputError
from ..inputs import as_number
from ..scalars import as_count
from ..shapes import Matrix, PerToken, Points, Projected, Tokens
from ..threads import in_order
from .choice import TIE_UNITS
from .heads import ROWS, AbstractBias, Head, Share, padded
from .masks import Mask

Tolerance = float | Literal["exact"] | None

# The exponential of a larger number, times a token, leaves float64.
_LARGEST_EXPONENT = 700.0
# A matrix of doubly stochastic weights is held whole; this many tokens take 0.8 GB in float64.
_MOST_SINKHORN = 10_000


class AbstractWeighting(ABC):
    """Interface of the rule by which the scores of a row become weights."""

    @abstractmethod
    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        """Weights of a block of rows, shape (rows, columns).

        Parameters
        ----------
        scores
            Scores, float64, shape (rows, columns).
        seen
            True where the row sees the column, shape (rows, columns).
        mass
            Positive weight per column, shape (columns,).

        Returns
        -------
        Tensor
            Shape (rows, columns), zero where a column is not seen.
        """

    @property
    def averages(self) -> bool:
        """Whether the weights of a row are not negative and sum to one, so that the result is a mean of tokens."""
        return False


@dataclass(frozen=True)
class Hardmax(AbstractWeighting):
    """All weight on the tokens of the largest score, shared by their masses.

    Parameters
    ----------
    tolerance
        Scores within this relative distance of the largest tie; ``"exact"`` uses rational arithmetic. The default is 64
        rounding errors of float64.
    """

    tolerance: Tolerance = None

    def __post_init__(self) -> None:
        if self.tolerance is not None and self.tolerance != "exact":
            number = as_number(
                "tolerance", self.tolerance, lambda x: 0 <= x < 0.1, "must lie in [0, 0.1)", 'or be "exact"'
            )
            object.__setattr__(self, "tolerance", number)

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        return _shared(_nearly_largest(scores, seen, 1), mass)

    @property
    def averages(self) -> bool:
        return True

    def __str__(self) -> str:
        return "hardmax"


@dataclass(frozen=True)
class Softmax(AbstractWeighting):
    r"""Weights :math:`p_{ik} \propto w_k \exp(\beta s_{ik})`.

    Parameters
    ----------
    beta
        Inverse temperature, not negative; 0 gives the mean of all tokens that are seen.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", as_inverse_temperature(self.beta))

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        return torch.softmax((self.beta * scores + mass.log()).masked_fill(~seen, -torch.inf), dim=1)

    @property
    def averages(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"softmax, beta = {self.beta:g}"


@dataclass(frozen=True)
class TopK(AbstractWeighting):
    r"""Softmax over the k largest scores; scores that tie with the k-th are included.

    Parameters
    ----------
    k
        Number of tokens that a token attends to, at least 1. Where fewer are seen, all of them are used.
    beta
        Inverse temperature, not negative; 0 gives the mean of the k tokens.
    """

    k: int
    beta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", as_count("k", self.k, 1))
        object.__setattr__(self, "beta", as_inverse_temperature(self.beta))

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        chosen = _nearly_largest(scores, seen, self.k)
        return torch.softmax((self.beta * scores + mass.log()).masked_fill(~chosen, -torch.inf), dim=1)

    @property
    def averages(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"top-{self.k} softmax, beta = {self.beta:g}"


@dataclass(frozen=True)
class Sigmoid(AbstractWeighting):
    r"""Weights :math:`p_{ik} = \sigma(\beta s_{ik} + b)`, which do not sum to one.

    Parameters
    ----------
    beta
        Inverse temperature, not negative.
    offset
        Number b; minus the logarithm of the number of tokens that the row sees when left out, so that the sum of the
        weights stays bounded.
    """

    beta: float = 1.0
    offset: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", as_inverse_temperature(self.beta))
        if self.offset is not None:
            number = as_number("offset", self.offset, lambda x: True, "must be finite", "pass a finite number")
            object.__setattr__(self, "offset", number)

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        count = seen.sum(dim=1, keepdim=True).clamp_min(1).to(scores.dtype)
        offset = -count.log() if self.offset is None else self.offset
        relative = mass * count / (seen * mass).sum(dim=1, keepdim=True).clamp_min(torch.finfo(mass.dtype).tiny)
        return torch.sigmoid(self.beta * scores + offset) * relative * seen

    def __str__(self) -> str:
        offset = "-log n" if self.offset is None else f"{self.offset:g}"
        return f"sigmoid, beta = {self.beta:g}, offset = {offset}"


@dataclass(frozen=True)
class Linear(AbstractWeighting):
    r"""Weights proportional to the scores: :math:`p_{ik} = \beta s_{ik} / |S(i)|` (linear attention).

    Parameters
    ----------
    beta
        Factor of the scores, not negative.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", as_inverse_temperature(self.beta))

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        total = (seen * mass).sum(dim=1, keepdim=True).clamp_min(torch.finfo(mass.dtype).tiny)
        return self.beta * scores * mass / total * seen

    def __str__(self) -> str:
        return f"linear, beta = {self.beta:g}"


@dataclass(frozen=True)
class Exponential(AbstractWeighting):
    r"""Softmax weights without their normalisation: :math:`p_{ik} = e^{\beta s_{ik}} / |S(i)|`.

    The sum of the weights of a row is the mean of :math:`e^{\beta s}`, not one (unnormalised self-attention).

    Parameters
    ----------
    beta
        Inverse temperature, not negative; 0 gives the mean of all tokens that are seen.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", as_inverse_temperature(self.beta))

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        total = (seen * mass).sum(dim=1, keepdim=True).clamp_min(torch.finfo(mass.dtype).tiny)
        exponents = (self.beta * scores).masked_fill(~seen, -torch.inf)
        largest = float(exponents.detach().max())
        if largest > _LARGEST_EXPONENT:
            problem, remedy = f"must stay below {_LARGEST_EXPONENT:g} in exp(beta * score)", "use Softmax(beta)"
            raise InputError("beta", f"beta * score = {largest:.3g}", problem, remedy)
        return torch.exp(exponents) * mass / total

    def __str__(self) -> str:
        return f"exponential without normalisation, beta = {self.beta:g}"


@dataclass(frozen=True)
class DoublyStochastic(AbstractWeighting):
    r"""Softmax weights whose columns have the same sums as their masses, by Sinkhorn's iteration (Sinkformer).

    Rows of :math:`w_k \exp(\beta s_{ik})` and columns are normalised in turn; rows come last, so that the result is a
    mean of tokens. Iteration stops when the columns agree to ``accuracy``.

    Parameters
    ----------
    beta
        Inverse temperature, not negative.
    iterations
        Largest number of times that rows and columns are normalised; 1 gives softmax.
    accuracy
        Relative error of the column sums at which the iteration stops.
    """

    beta: float = 1.0
    iterations: int = 1000
    accuracy: float = 1e-12

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", as_inverse_temperature(self.beta))
        object.__setattr__(self, "iterations", as_count("iterations", self.iterations, 1))
        problem = "must lie in (0, 1)"
        accuracy = as_number("accuracy", self.accuracy, lambda x: 0 < x < 1, problem, "pass for example 1e-12")
        object.__setattr__(self, "accuracy", accuracy)

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        log_mass = (mass / mass.sum()).log()
        log_kernel = self.beta * scores
        columns = torch.zeros_like(log_mass)
        for iteration in range(self.iterations):
            rows = -torch.logsumexp(log_kernel + log_mass + columns, dim=1)
            # With rows normalised, the mass that each column receives; one where it equals its own mass.
            received = torch.logsumexp(log_kernel + (rows + log_mass)[:, None], dim=0) + columns
            if iteration + 1 == self.iterations or float(received.abs().max()) <= self.accuracy:
                break
            columns = columns - received
        return torch.exp(log_kernel + log_mass + columns + rows[:, None])

    @property
    def averages(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"doubly stochastic, beta = {self.beta:g}"


def as_inverse_temperature(beta: object) -> float:
    """A finite inverse temperature that is not negative."""
    return as_number(
        "beta",
        beta,
        lambda x: x >= 0,
        "must be finite and not negative",
        "use HardmaxLayer for the limit beta = inf",
    )


def _nearly_largest(scores: Matrix, seen: torch.Tensor, k: int) -> torch.Tensor:
    """True for the ``k`` largest of the scores that a row sees, and for those that tie with the k-th."""
    hidden = scores.masked_fill(~seen, -torch.inf)
    kth = hidden.topk(min(k, scores.shape[1]), dim=1).values[:, -1:]
    # With fewer than k columns in sight the k-th is minus infinity and all that are seen are taken.
    slack = TIE_UNITS * torch.finfo(scores.dtype).eps * scores.masked_fill(~seen, 0.0).abs().amax(dim=1, keepdim=True)
    return seen & (hidden >= kth - slack)


def _shared(chosen: torch.Tensor, mass: PerToken) -> Matrix:
    weights = chosen * mass
    return weights / weights.sum(dim=1, keepdim=True).clamp_min(torch.finfo(mass.dtype).tiny)


def weighted_sums(
    weighting: AbstractWeighting,
    queries: Projected,
    keys: Projected,
    values: Points,
    mass: PerToken,
    mask: Mask,
    *,
    bias: AbstractBias | None = None,
    rows: slice = slice(None),
) -> tuple[Points, torch.Tensor]:
    """Weighted sums of values of shape (rows, d), and the sum of the weights of each row, shape (rows, 1).

    Parameters
    ----------
    weighting
        Rule by which scores become weights.
    queries, keys, values
        Float64 tensors of shapes (queries, p), (tokens, p) and (tokens, d).
    mass
        Positive weight per token, shape (tokens,).
    mask
        Tokens that each query sees; the i-th query is at place i of the sequence.
    bias
        Bias by position, added to the scores.
    rows
        Queries whose result is returned; all when left out.

    Returns
    -------
    tuple of tensors
        Sums and totals.
    """
    if isinstance(weighting, DoublyStochastic):
        return _whole_matrix(weighting, queries, keys, values, mass, mask, bias, rows)
    count, asked = len(keys), range(len(queries))[rows]
    whole = [padded(array) for array in (queries, keys, values)]
    masses = torch.cat([mass, mass.new_ones(len(whole[1]) - count)])
    blocks = range(asked.start // ROWS, -(-asked.stop // ROWS)) if len(asked) else range(0)

    def of_block(block: int) -> torch.Tensor:
        start, stop = _columns(mask, block, len(whole[1]))
        at = torch.arange(block * ROWS, (block + 1) * ROWS, device=queries.device)
        columns = torch.arange(start, stop, device=queries.device)
        seen = mask.visible(at, columns) & (columns < count)
        seen[:, :1] |= ~seen.any(dim=1, keepdim=True)  # padding, whose result is dropped
        scores = whole[0][block * ROWS : (block + 1) * ROWS] @ whole[1][start:stop].T
        if bias is not None:
            scores = scores + bias.at(at[:, None].clamp_max(len(queries) - 1), columns[None, :].clamp_max(count - 1))
        if not bool(torch.isfinite(scores.detach().masked_fill(~seen, 0.0)[: len(queries) - block * ROWS]).all()):
            size = float(keys.detach().abs().max())
            problem, remedy = "must keep <A z_i, z_k> within float64", "rescale the tokens or lower beta"
            raise InputError("tokens", f"largest size {size:.3g}", problem, remedy)
        weights = weighting.weights(scores, seen, masses[start:stop])
        return torch.cat([weights @ whole[2][start:stop], weights.sum(dim=1, keepdim=True)], dim=1)

    pairs = len(asked) * count if queries.device.type == "cpu" else 0
    took = pairs * (8e-9 + 4e-10 * queries.shape[1])  # seconds on one thread: the exponential, and both products
    done = (
        torch.cat([*in_order(of_block, blocks, seconds=took)])
        if len(blocks)
        else values.new_zeros((0, values.shape[1] + 1))
    )
    first = blocks.start * ROWS if len(blocks) else 0
    done = done[asked.start - first : asked.stop - first]
    return done[:, :-1], done[:, -1:]


def _whole_matrix(
    weighting: DoublyStochastic,
    queries: Projected,
    keys: Projected,
    values: Points,
    mass: PerToken,
    mask: Mask,
    bias: AbstractBias | None,
    rows: slice,
) -> tuple[Points, torch.Tensor]:
    if not mask.sees_all or len(queries) != len(keys):
        raise InputError(
            "mask",
            str(mask),
            "must be all tokens for doubly stochastic weights",
            "the only doubly stochastic causal matrix is the identity: leave out the mask",
        )
    if len(keys) > _MOST_SINKHORN:
        problem = f"must be at most {_MOST_SINKHORN} for doubly stochastic weights"
        raise InputError("tokens", f"{len(keys)} tokens", problem, "the whole matrix of weights is held in memory")
    scores = queries @ keys.T
    if bias is not None:
        at = torch.arange(len(keys), device=keys.device)
        scores = scores + bias.at(at[:, None], at[None, :])
    weights = weighting.weights(scores, torch.ones_like(scores, dtype=torch.bool), mass)[rows]
    return weights @ values, weights.sum(dim=1, keepdim=True)


def _columns(mask: Mask, block: int, count: int) -> tuple[int, int]:
    """First and last-plus-one of the columns that some row of a block sees, in whole blocks."""
    first = 0 if mask.before is None else max(0, block * ROWS - mask.before) // ROWS * ROWS
    if mask.after is None:
        return first, count
    return first, min(count, -(-((block + 1) * ROWS + mask.after) // ROWS) * ROWS)


def heads_sum(
    heads: tuple[Head, ...],
    shares: tuple[Share, ...],
    weighting: AbstractWeighting,
    mask: Mask,
    tokens: Tokens,
    weights: PerToken,
    rows: slice = slice(None),
    memory: Points | None = None,
) -> Points:
    """Sum over heads of the values that they pass on, weighed by their shares, shape (rows, d).

    ``memory`` holds the tokens that are attended to, shape (memory, d), where they are not the tokens themselves.
    """
    source = tokens if memory is None else memory
    mass = weights if memory is None else weights.new_ones(len(memory))
    mask.require_fit(len(source))
    total = torch.zeros_like(tokens[rows])
    for head, share in zip(heads, shares, strict=True):
        head.require_dimension(tokens.shape[1])
        queries, keys = head.queries(tokens, fast=True), head.keys(source, fast=True)
        sums, totals = weighted_sums(weighting, queries, keys, source, mass, mask, bias=head.bias, rows=rows)
        total = total + float(share) * head.values(sums, totals, fast=True)
    return total
