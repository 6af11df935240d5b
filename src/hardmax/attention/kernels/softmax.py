r"""Triton kernels for softmax rows in float32: the mean of points weighted by :math:`w_j e^{\langle q_i, z_j\rangle}`.

No row needs its running maximum: where exponents span a range that float32 can hold they are left as they are,
otherwise they are shifted by the row's maximum, known from the search. With very few coordinates the vector units do
everything. Otherwise both products run on the tensor cores with operands in two pieces, which keeps 22 bits of a score
and 16 bits of a weight.
"""

# Triton reads the source of these functions: it knows tensors, not types.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def few_coordinates(
    Q, Z, MASS, SHIFT, OUT, rows, padded,
    D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WEIGHTED: tl.constexpr, SHIFTED: tl.constexpr,
):  # fmt: skip
    """One to four coordinates. Q is (D, rows padded) in units of log 2, Z (D, padded); OUT (D, rows padded)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if SHIFTED:
        shift = tl.load(SHIFT + row)
    q0 = tl.load(Q + row)
    a0 = tl.zeros((ROWS, COLUMNS), tl.float32)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    a1, a2, a3 = a0, a0, a0
    q1, q2, q3 = q0, q0, q0
    if D > 1:
        q1 = tl.load(Q + rows + row)
    if D > 2:
        q2 = tl.load(Q + 2 * rows + row)
    if D > 3:
        q3 = tl.load(Q + 3 * rows + row)
    for start in range(0, padded, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        z0 = tl.load(Z + column)[None, :]
        s = q0[:, None] * z0
        if SHIFTED:
            s -= shift[:, None]
        if D > 1:
            z1 = tl.load(Z + padded + column)[None, :]
            s += q1[:, None] * z1
        if D > 2:
            z2 = tl.load(Z + 2 * padded + column)[None, :]
            s += q2[:, None] * z2
        if D > 3:
            z3 = tl.load(Z + 3 * padded + column)[None, :]
            s += q3[:, None] * z3
        if WEIGHTED:
            s += tl.load(MASS + column)[None, :]
        p = tl.exp2(s)
        total += p
        a0 += p * z0
        if D > 1:
            a1 += p * z1
        if D > 2:
            a2 += p * z2
        if D > 3:
            a3 += p * z3
    whole = tl.sum(total, 1)
    tl.store(OUT + row, tl.sum(a0, 1) / whole)
    if D > 1:
        tl.store(OUT + rows + row, tl.sum(a1, 1) / whole)
    if D > 2:
        tl.store(OUT + 2 * rows + row, tl.sum(a2, 1) / whole)
    if D > 3:
        tl.store(OUT + 3 * rows + row, tl.sum(a3, 1) / whole)


@triton.jit
def more_coordinates(
    QH, QL, ZH, ZL, VV, MASS, SHIFT, FACTOR, OUT, padded,
    K: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, WEIGHTED: tl.constexpr,
    SHIFTED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Up to K coordinates. QH, QL, ZH, ZL: high and low pieces, in half precision; VV: those of the points, together.

    Tensor cores cut off what does not fit when they add, always downwards: sums are taken over from them every CHUNK
    columns, before that shows.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, K)
    both = tl.arange(0, 2 * K)
    place = row[:, None] * K + k[None, :]
    high, low = tl.load(QH + place), tl.load(QL + place)
    if SHIFTED:
        shift, factor = tl.load(SHIFT + row), tl.load(FACTOR + row)
    mean = tl.zeros((ROWS, 2 * K), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for chunk in range(0, padded, CHUNK):
        part = tl.zeros((ROWS, 2 * K), tl.float32)
        for start in tl.range(chunk, chunk + CHUNK, COLUMNS, num_stages=STAGES):
            column = start + tl.arange(0, COLUMNS)
            there = column[:, None] * K + k[None, :]
            z_high = tl.trans(tl.load(ZH + there))
            s = tl.dot(high, z_high)
            s = tl.dot(high, tl.trans(tl.load(ZL + there)), acc=s)
            s = tl.dot(low, z_high, acc=s)
            if SHIFTED:
                s = s * factor[:, None] - shift[:, None]
            if WEIGHTED:
                s += tl.load(MASS + column)[None, :]
            p = tl.exp2(s)
            total += tl.sum(p, 1)
            v = tl.load(VV + column[:, None] * (2 * K) + both[None, :])
            p_high = p.to(VV.dtype.element_ty)
            p_low = (p - p_high.to(tl.float32)).to(VV.dtype.element_ty)
            part = tl.dot(p_high, v, acc=part)
            part = tl.dot(p_low, v, acc=part)
        mean += part
    tl.store(OUT + row[:, None] * (2 * K) + both[None, :], mean / total[:, None])
