"""Temporary dense search in intervals."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ...shapes import Indices, Queries, Tokens
from ..choice import Choice, length, score, zero_rows


def attended_in(
    queries: Queries,
    points: Tokens,
    start: Indices,
    stop: Indices,
    *,
    tolerance: float,
    bias: Callable[[Indices, Indices], torch.Tensor] | None = None,
    hint: Indices | None = None,
) -> Choice:
    everyone = zero_rows(queries) if bias is None else torch.zeros(len(queries), dtype=torch.bool)
    lengths = length(points)
    first, best, tied, sizes, members = [], [], [], [], []
    for i in range(len(queries)):
        a, b = int(start[i]), int(stop[i])
        at = torch.arange(a, b)
        values = score(queries[i].expand(b - a, -1).contiguous(), points[a:b])
        if bias is not None:
            values = values + bias(torch.full_like(at, i), at)
        top = values.max()
        slack = tolerance * length(queries[i : i + 1])[0] * lengths[a:b].max()
        chosen = at[values >= top - slack]
        if bool(everyone[i]):
            first.append(a)
            best.append(0.0)
            continue
        first.append(int(chosen[0]))
        best.append(float(top))
        if len(chosen) > 1:
            tied.append(i)
            sizes.append(len(chosen))
            members.append(chosen)
    return Choice(
        torch.tensor(first),
        torch.tensor(best, dtype=torch.float64),
        everyone,
        torch.tensor(tied, dtype=torch.int64),
        torch.tensor([0, *sizes]).cumsum(0),
        torch.cat(members) if members else torch.zeros(0, dtype=torch.int64),
    )
