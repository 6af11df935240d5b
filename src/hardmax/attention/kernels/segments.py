"""Triton kernel for many small systems at once: the token of its own system that each token attends to."""

# Triton compiles the source of these functions, in which Python types have no meaning.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def best_in_segment(
    Q, Z, BEGIN, END, PREVIOUS, CHOICE, n, d,
    FIRST: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The first place j in [BEGIN_i, END_i) with the largest <q_i, z_j>, for every row i of Q (n, d).

    Unless FIRST, rows that by PREVIOUS attend to a leader still attend to it. A row whose range is empty attends to
    itself. Rows of neighbouring systems share a program, which searches the union of their ranges.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = row < n
    begin = tl.load(BEGIN + row, mask=there, other=0)
    end = tl.load(END + row, mask=there, other=0)
    chosen = row.to(tl.int64)
    if not FIRST:
        chosen = tl.load(PREVIOUS + row, mask=there, other=0)
        decided = tl.load(PREVIOUS + chosen, mask=there, other=0) == chosen
        end = tl.where(decided, 0, end)
    begin = tl.where(begin < end, begin, n)
    end = tl.where(begin < end, end, 0)
    best = tl.full((ROWS,), float("-inf"), Z.dtype.element_ty)
    for start in range(tl.min(begin, axis=0), tl.max(end, axis=0), COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        total = tl.zeros((ROWS, COLUMNS), Z.dtype.element_ty)
        for k in range(d):
            q = tl.load(Q + row * d + k, mask=there, other=0.0)
            z = tl.load(Z + column * d + k, mask=column < n, other=0.0)
            total += q[:, None] * z[None, :]
        own = (column[None, :] >= begin[:, None]) & (column[None, :] < end[:, None])
        total = tl.where(own, total, float("-inf"))
        top = tl.max(total, axis=1)
        place = tl.min(tl.where(total == top[:, None], column[None, :], n), axis=1)
        better = top > best
        chosen = tl.where(better, place.to(tl.int64), chosen)
        best = tl.where(better, top, best)
    tl.store(CHOICE + row, chosen, mask=there)
