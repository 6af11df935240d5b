"""Sizes of queries and points, in one pass over both."""

# Triton reads the source of these functions: it knows tensors, not types.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def spread(
    Q, Z, OUT, queries, points,
    D: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Partial sizes of one program, over every so many rows, as a row of OUT.

    The largest squared length of a query and of a point, the largest coordinate of a point, the sum of the lengths of
    points, and the sums of their coordinates.
    """
    program, stride = tl.program_id(0), tl.num_programs(0) * ROWS
    rows, k = tl.arange(0, ROWS), tl.arange(0, WIDE)
    longest = tl.zeros((ROWS,), tl.float32)
    for begin in range(program * ROWS, queries, stride):
        row = begin + rows
        inside = (row < queries)[:, None] & (k < D)[None, :]
        q = tl.load(Q + row.to(tl.int64)[:, None] * D + k[None, :], mask=inside, other=0.0)
        longest = tl.maximum(longest, tl.sum(q * q, 1))
    farthest, lengths = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    largest, sums = tl.zeros((ROWS, WIDE), tl.float32), tl.zeros((ROWS, WIDE), tl.float32)
    for begin in range(program * ROWS, points, stride):
        row = begin + rows
        inside = (row < points)[:, None] & (k < D)[None, :]
        z = tl.load(Z + row.to(tl.int64)[:, None] * D + k[None, :], mask=inside, other=0.0)
        square = tl.sum(z * z, 1)
        farthest = tl.maximum(farthest, square)
        lengths += tl.sqrt(square)
        largest = tl.maximum(largest, tl.abs(z))
        sums += z
    seen = OUT + program * (4 + WIDE)
    tl.store(seen, tl.max(longest, 0))
    tl.store(seen + 1, tl.max(farthest, 0))
    tl.store(seen + 2, tl.max(tl.max(largest, 1), 0))
    tl.store(seen + 3, tl.sum(lengths, 0))
    tl.store(seen + 4 + k, tl.sum(sums, 0))
