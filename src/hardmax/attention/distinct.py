"""Repeated tokens are one point with a multiplicity: find the distinct points, cheaply when there are no repeats."""

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
    """The lowest token index of each point."""
    point_of: Indices | None
    """The point of each token; None when all tokens are distinct and so points are tokens."""
    weights: PerToken
    """The summed weight of the tokens at each point."""

    def expand(self, per_point: torch.Tensor) -> torch.Tensor:
        """From one row per point to one row per token."""
        return per_point if self.point_of is None else per_point[self.point_of]


def projection(tokens: Tokens) -> PerToken:
    """One number for each token, the same for equal tokens: the score with a fixed direction."""
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
    """The distinct points of ``tokens`` and their summed weights.

    >>> found = distinct(torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]), torch.ones(3))
    >>> found.first.tolist(), found.point_of.tolist(), found.weights.tolist()
    ([0, 1], [0, 1, 0], [2.0, 1.0])
    """
    count = tokens.shape[0]
    everybody = torch.arange(count, device=tokens.device)
    if count == 1 or not _may_repeat(tokens):
        return Distinct(tokens, everybody, None, weights)
    # Adding zero turns -0.0 into 0.0, which are the same point but not the same bits.
    _, point_of = torch.unique(tokens.detach() + 0.0, dim=0, return_inverse=True)
    points = int(point_of.max()) + 1
    if points == count:
        return Distinct(tokens, everybody, None, weights)
    first = torch.full((points,), count, device=tokens.device)
    first = first.scatter_reduce(0, point_of, everybody, reduce="amin")
    order = torch.argsort(first)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(points, device=tokens.device)
    first, point_of = first[order], rank[point_of]
    summed = torch.zeros(points, dtype=weights.dtype, device=weights.device).index_add(0, point_of, weights)
    return Distinct(tokens[first], first, point_of, summed)
