"""Softmax rows of points with one or two coordinates: the vector units do everything, see :mod:`.softmax`."""

# Triton reads the source of these functions: it knows tensors, not types.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def few_coordinates(
    Q, Z, MASS, OUT, rows, padded,
    D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """One or two coordinates. Q is (D, rows padded) in units of log 2, Z (D, padded); OUT (D, rows padded)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    q0 = tl.load(Q + row)
    q1 = q0
    if D > 1:
        q1 = tl.load(Q + rows + row)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    a0, a1 = total, total
    for start in range(0, padded, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        z0 = tl.load(Z + column)[None, :]
        s = q0[:, None] * z0
        if D > 1:
            z1 = tl.load(Z + padded + column)[None, :]
            s += q1[:, None] * z1
        if WEIGHTED:
            s += tl.load(MASS + column)[None, :]
        p = tl.exp2(s)
        total += p
        a0 += p * z0
        if D > 1:
            a1 += p * z1
    whole = tl.sum(total, 1)
    tl.store(OUT + row, tl.sum(a0, 1) / whole)
    if D > 1:
        tl.store(OUT + rows + row, tl.sum(a1, 1) / whole)
