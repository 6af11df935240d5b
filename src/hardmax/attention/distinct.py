"""Distinct points of a set of tokens: repeated tokens are one point with their summed weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

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
