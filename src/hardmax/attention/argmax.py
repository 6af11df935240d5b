"""Hardmax of one head: the tokens of the largest score in sight of each token, and their mean."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..shapes import Indices, PerToken, Points, Tokens
from .base import ALL_ROWS
from .choice import Choice, default_tolerance
from .heads import Head, Share
from .masks import Mask
from .normal_form import scale, scaled_down
from .rational import exact_choice_in, rational_rows
from .search import attended
from .search.masked import attended_in
from .weighting import Tolerance


def choice_of_head(head: Head, tokens: Tokens, mask: Mask, tolerance: Tolerance, rows: slice = ALL_ROWS) -> Choice:
    """Sets C_i of some tokens in one head, under a mask.

    Scores of heads without biases are computed on tokens scaled by a power of two, so numbers of any size are allowed.
    """
    count = len(tokens)
    head.require_dimension(tokens.shape[1])
    positions = torch.arange(count, device=tokens.device)[rows]
    start, stop = mask.interval(positions, count)
    if tolerance == "exact":
        return _exact(head, tokens, positions, start, stop)
    relative = default_tolerance(torch.float64) if tolerance is None else tolerance
    with torch.no_grad():
        if not head.has_plain_scores:
            bias = head.bias
            pairs = None if bias is None else lambda query, column: bias.at(positions[query], column)
            return attended_in(
                head.queries(tokens[rows]), head.keys(tokens), start, stop, tolerance=relative, bias=pairs
            )
        scaled, exponent = scaled_down("tokens", tokens)
        reduced, power = _scaled_head(head)
        queries, keys = reduced.queries(scaled[rows]), reduced.keys(scaled)
        if mask.sees_all:
            choice = attended(queries, keys, tolerance=relative)
        else:
            choice = attended_in(queries, keys, start, stop, tolerance=relative)
        return replace(choice, best=scale(choice.best, 2 * exponent + power))


def _scaled_head(head: Head) -> tuple[Head, int]:
    """The head with its score matrices brought near one by powers of two, and the exponent of the scores."""
    if head.Q is not None and head.K is not None:
        (Q, first), (K, second) = scaled_down("Q", head.Q.detach()), scaled_down("K", head.K.detach())
        return Head(Q=Q, K=K), first + second
    if head.A is None:
        return Head(), 0
    A, exponent = scaled_down("A", head.A.detach())
    return Head(A), exponent


def _exact(head: Head, tokens: Tokens, positions: Indices, start: Indices, stop: Indices) -> Choice:
    d, device = tokens.shape[1], tokens.device
    identity = torch.eye(d, dtype=torch.float64)
    left, right = identity if head.A is None else head.A, identity
    if head.Q is not None and head.K is not None:
        left, right = head.Q, head.K
    bias = head.bias
    table = None
    if bias is not None:
        everyone = torch.arange(len(tokens), device=device)
        table = rational_rows(bias.at(positions[:, None], everyone[None, :]))
    return exact_choice_in(
        left,
        right,
        tokens,
        positions.tolist(),
        list(zip(start.tolist(), stop.tolist(), strict=True)),
        shifts=(head.query_bias, head.key_bias),
        table=table,
    )


def attended_mean(
    choice: Choice, points: Tokens, weights: PerToken, intervals: tuple[Indices, Indices] | None = None
) -> Points:
    """Weighted mean of the points that each query attends to, shape (queries, d).

    ``intervals`` holds the first and last-plus-one of the points that each query sees, under a mask; a zero query
    attends to all of them.
    """
    means = points[choice.first]
    if len(choice.tied):
        rows = torch.repeat_interleave(torch.arange(len(choice.tied), device=points.device), choice.sizes)
        mass = weights[choice.members]
        total = torch.zeros(len(choice.tied), dtype=points.dtype, device=points.device)
        total = total.index_add(0, rows, mass)
        summed = torch.zeros(len(choice.tied), points.shape[1], dtype=points.dtype, device=points.device)
        summed = summed.index_add(0, rows, mass[:, None] * points[choice.members])
        means = means.index_copy(0, choice.tied, summed / total[:, None])
    if bool(choice.everyone.any()) and intervals is None:
        average = (weights[:, None] * points).sum(dim=0) / weights.sum()
        means = torch.where(choice.everyone[:, None], average, means)
    elif bool(choice.everyone.any()) and intervals is not None:
        rows = torch.nonzero(choice.everyone)[:, 0]
        averages = [_mean(points, weights, int(intervals[0][i]), int(intervals[1][i])) for i in rows]
        means = means.index_copy(0, rows, torch.stack(averages))
    return means


def _mean(points: Tokens, weights: PerToken, start: int, stop: int) -> torch.Tensor:
    mass = weights[start:stop]
    # A cumulative sum adds in the order of the sequence, so that the mean depends on what is seen alone.
    return (mass[:, None] * points[start:stop]).cumsum(dim=0)[-1] / mass.cumsum(dim=0)[-1]


def selected_sum(
    heads: tuple[Head, ...],
    shares: tuple[Share, ...],
    mask: Mask,
    tolerance: Tolerance,
    tokens: Tokens,
    weights: PerToken,
    rows: slice = ALL_ROWS,
) -> Points:
    """Sum over heads of the values of what they select, weighed by their shares, shape (rows, d).

    Counterpart for hardmax of :func:`hardmax.attention.weighting.heads_sum`.
    """
    mask.require_fit(len(tokens))
    positions = torch.arange(len(tokens), device=tokens.device)[rows]
    intervals = None if mask.sees_all else mask.interval(positions, len(tokens))
    total = torch.zeros_like(tokens[rows])
    for head, share in zip(heads, shares, strict=True):
        choice = choice_of_head(head, tokens, mask, tolerance, rows)
        total = total + float(share) * head.values(attended_mean(choice, tokens, weights, intervals))
    return total
