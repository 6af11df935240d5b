"""Normal form of tokens before a run: distinct points with summed weights, and scaling to numbers near one.

Repeated tokens are one point. The hardmax map commutes with ``z -> c z`` and does not change under ``A -> c A``
(c > 0), and scaling by a power of two causes no rounding, so that products of tokens of size 1e300 or 1e-300 neither
overflow nor underflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from ..errors import InputError
from ..shapes import Indices, PerToken, Tokens


@dataclass(frozen=True)
class Distinct:
    """The distinct points of a set of tokens, in the order in which they first appear."""

    points: Tokens
    first: Indices
    """Lowest token index of each point."""
    point_of: Indices | None
    """Point of each token; None when all tokens are distinct, so that points are tokens."""
    weights: PerToken
    """Sum of the weights of the tokens at each point."""

    def expand(self, per_point: torch.Tensor) -> torch.Tensor:
        """One row per token, from one row per point."""
        return per_point if self.point_of is None else per_point[self.point_of]


def projection(tokens: Tokens) -> PerToken:
    """One number per token, shape (tokens,), equal for equal tokens: the scalar product with a fixed direction."""
    direction = np.random.default_rng(0).uniform(0.5, 1.5, tokens.shape[1])
    total = tokens[:, 0] * float(direction[0])
    for k in range(1, tokens.shape[1]):
        total = total + tokens[:, k] * float(direction[k])
    return total


def _may_repeat(tokens: Tokens) -> bool:
    # Equal rows have equal projections, so distinct projections prove that all rows are distinct. One sort of
    # n numbers is much cheaper than sorting rows.
    total = projection(tokens)
    if total.device.type == "cpu":  # NumPy sorts values alone, torch always carries their places along
        ordered = np.sort(total.detach().numpy())
        return bool((ordered[1:] == ordered[:-1]).any())
    sorted_there = torch.sort(total).values
    return bool((sorted_there[1:] == sorted_there[:-1]).any())


def distinct(tokens: Tokens, weights: PerToken) -> Distinct:
    """Distinct points of ``tokens``, shape (points, d), and their summed weights, shape (points,).

    >>> found = distinct(torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]), torch.ones(3))
    >>> found.first.tolist(), found.point_of.tolist(), found.weights.tolist()
    ([0, 1], [0, 1, 0], [2.0, 1.0])
    """
    count = tokens.shape[0]
    every_token = torch.arange(count, device=tokens.device)
    if count == 1 or not _may_repeat(tokens):
        return Distinct(tokens, every_token, None, weights)
    # Adding zero turns -0.0 into 0.0, which are the same point but not the same bits.
    _, point_of = torch.unique(tokens.detach() + 0.0, dim=0, return_inverse=True)
    points = int(point_of.max()) + 1
    if points == count:
        return Distinct(tokens, every_token, None, weights)
    first = torch.full((points,), count, device=tokens.device)
    first = first.scatter_reduce(0, point_of, every_token, reduce="amin")
    order = torch.argsort(first)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(points, device=tokens.device)
    first, point_of = first[order], rank[point_of]
    summed = torch.zeros(points, dtype=weights.dtype, device=weights.device).index_add(0, point_of, weights)
    return Distinct(tokens[first], first, point_of, summed)


Scaled = TypeVar("Scaled", float, torch.Tensor)

# Below this share of the largest coordinate, a coordinate could lose digits when multiplied by another.
_LOWEST = 2.0**-960
# Exponent of the largest power of two in one step of a scaling: it and its inverse are normal numbers.
_LARGEST_FACTOR = 1000


def exponent_of(tensor: torch.Tensor) -> int:
    """Exponent of the power of two just above the largest entry (0 for a tensor of zeros)."""
    return math.frexp(float(tensor.detach().abs().max()))[1]


def scaled_down(argument: str, tensor: torch.Tensor, exponent: int | None = None) -> tuple[torch.Tensor, int]:
    """``(tensor * 2**-exponent, exponent)`` with entries at most 1; raises an InputError where digits would be lost.

    The exponent may be given, where the tensor is part of a larger one.

    >>> scaled_down("tokens", torch.tensor([[3e300, 1e290]], dtype=torch.float64))[1]
    999
    """
    exponent = exponent_of(tensor) if exponent is None else exponent
    scaled = scale(tensor, -exponent)
    size = scaled.detach().abs()
    if float(size.min()) >= _LOWEST:
        return scaled, exponent
    lost = (tensor != 0) & (size < _LOWEST)
    if bool(lost.any()):
        low = float(tensor.detach().abs()[lost].min())
        high = float(tensor.detach().abs().max())
        raise InputError(
            argument,
            f"sizes from {low:.3g} to {high:.3g}",
            "must not range over more than 288 orders of magnitude",
            "set the negligible coordinates to zero, or rescale them",
        )
    return scaled, exponent


def scale(tensor: Scaled, exponent: int) -> Scaled:
    """``tensor * 2**exponent`` of a tensor or a float, in exact factors that do not overflow themselves.

    >>> scale(torch.tensor([0.0, 1.0], dtype=torch.float64), 3000).tolist()
    [0.0, inf]
    """
    while exponent:
        part = max(-_LARGEST_FACTOR, min(_LARGEST_FACTOR, exponent))
        tensor = tensor * 2.0**part
        exponent -= part
    return tensor


def exponents_of(sizes: torch.Tensor) -> torch.Tensor:
    """Exponents of the powers of two just above these float64 sizes, as integers (0 for a size of zero)."""
    return torch.frexp(sizes).exponent.to(torch.int64)


def scale_rows(tensor: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
    """Each row of a float64 tensor times ``2**exponent`` of its own, exactly.

    >>> scale_rows(torch.tensor([[1.0], [3.0]], dtype=torch.float64), torch.tensor([2, -1])).tolist()
    [[4.0], [1.5]]
    """
    while bool(exponents.any()):
        part = exponents.clamp(-_LARGEST_FACTOR, _LARGEST_FACTOR)
        tensor = tensor * _power_of_two(part).reshape(-1, *[1] * (tensor.dim() - 1))
        exponents = exponents - part
    return tensor


def _power_of_two(exponents: torch.Tensor) -> torch.Tensor:
    """``2.0**exponent`` put together from its bits: functions such as ``exp2`` may round."""
    return ((exponents.to(torch.int64) + 1023) << 52).view(torch.float64)
