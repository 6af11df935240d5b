r"""Triton kernels for softmax rows in float32: the mean of points weighted by :math:`w_j e^{\langle q_i, z_j\rangle}`.

Both products run on the tensor cores, with all numbers in two halves of 11 bits each, :math:`q = q_1 + q_2`,
:math:`z = z_1 + z_2`, :math:`p = p_1 + p_2` for the weights. A row of points is stored as :math:`z_1, z_2` side by side
and serves both products: scores are :math:`\langle (q_1, q_1), (z_1, z_2)\rangle + \langle q_2, z_1\rangle`, means come
from the sums of :math:`p_1 (z_1, z_2)` and of :math:`p_2 z_1`. What is left out is :math:`2^{-23}` of a product. Where
there is room for one more column it holds ones, and the sum of the weights comes with their means.

No row needs a maximum beforehand. Its weights are :math:`2^{s - r}` with a reference *r* that lies 11 below a score
that was met: halves hold all weights up to :math:`2^{16}`, and what they cut off below, :math:`2^{-25}` at most from a
weight, is :math:`2^{-36}` of the largest weight. When a larger score makes a weight overflow, so do the sums: the chunk
of columns is looked at again with a new reference.

**Flat** scores, between plus and minus 15.9, need neither factor nor reference: halves hold all their weights. What is
cut off from n weights is :math:`2^{-25} n` at most, and their sum is at least :math:`n 2^{\langle q, \bar z\rangle}`
with the mean :math:`\bar z` of the points, so the caller must check that :math:`\langle q, \bar z\rangle` is not much
below zero.

Points with one or two coordinates do not fill the tensor cores and are computed on the vector units.
"""

# Triton compiles the source of these functions, in which Python types have no meaning.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

# How far below a score that was met a row's reference lies, and a reference below all scores.
_HEADROOM = tl.constexpr(11.0)
_NO_REFERENCE = tl.constexpr(-1e30)
# The sign, the exponent and the leading 11 bits of a number.
_LEADING = tl.constexpr(-8192)


@triton.jit
def _places(Z, HIGHS, MASS, begin, HALF: tl.constexpr, COLUMNS: tl.constexpr):
    """Addresses of both halves, of the first halves and of the masses of the tile of points from ``begin`` on."""
    column = tl.arange(0, COLUMNS)
    start = begin.to(tl.int64)
    both = Z + start * (2 * HALF) + column[:, None] * (2 * HALF) + tl.arange(0, 2 * HALF)[None, :]
    highs = HIGHS + start * HALF + column[:, None] * HALF + tl.arange(0, HALF)[None, :]
    return both, highs, MASS + begin + column


@triton.jit
def _points(both, highs, NARROW: tl.constexpr):
    """Both halves of some points, and the first alone, or again both."""
    z = tl.load(both)
    if NARROW:
        return z, z
    else:
        return z, tl.load(highs)


@triton.jit
def _scores(first, second, z, z_first, factor, reference, mass, FLAT: tl.constexpr, WEIGHTED: tl.constexpr):
    s = tl.dot(first, tl.trans(z))
    s = tl.dot(second, tl.trans(z_first), acc=s)
    if not FLAT:
        s = s * factor[:, None] - reference[:, None]
    if WEIGHTED:
        s += tl.load(mass)[None, :]
    return s


@triton.jit
def _largest(
    first, second, Z, HIGHS, MASS, begin, factor,
    HALF: tl.constexpr, NARROW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
    WEIGHTED: tl.constexpr,
):  # fmt: skip
    """The largest score of each row in a chunk of columns."""
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    both, highs, mass = _places(Z, HIGHS, MASS, begin, HALF, COLUMNS)
    for _ in range(0, CHUNK, COLUMNS):
        z, z_first = _points(both, highs, NARROW)
        s = _scores(first, second, z, z_first, factor, factor * 0.0, mass, False, WEIGHTED)
        largest = tl.maximum(largest, tl.max(s, 1))
        both, highs, mass = both + COLUMNS * 2 * HALF, highs + COLUMNS * HALF, mass + COLUMNS
    return largest


@triton.jit
def _sums(
    first, second, Z, HIGHS, MASS, begin, factor, reference, fine,
    HALF: tl.constexpr, NARROW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
    FLAT: tl.constexpr, WEIGHTED: tl.constexpr, COUNTED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Sums over a chunk of columns: first halves of weights times points; second halves, on top of ``fine``; weights.

    The weights are left out where they are counted by a column of the points.
    """
    coarse = tl.zeros((ROWS, 2 * HALF), tl.float32)
    total = tl.zeros((ROWS, 8), tl.float32)
    both, highs, mass = _places(Z, HIGHS, MASS, begin, HALF, COLUMNS)
    for _ in tl.range(0, CHUNK, COLUMNS, num_stages=STAGES):
        z, z_first = _points(both, highs, NARROW)
        both, highs = both + COLUMNS * 2 * HALF, highs + COLUMNS * HALF
        p = tl.exp2(_scores(first, second, z, z_first, factor, reference, mass, FLAT, WEIGHTED))
        mass += COLUMNS
        if not COUNTED:  # a thread has columns that are the same modulo 8, so it adds its own
            total += tl.sum(tl.reshape(p, (ROWS, COLUMNS // 8, 8)), 1)
        # Cut off by its bits: rounding to a half and back takes the unit that the exponentials need.
        high = (p.to(tl.int32, bitcast=True) & _LEADING).to(tl.float32, bitcast=True)
        coarse = tl.dot(high.to(tl.float16), z, acc=coarse)
        fine = tl.dot((p - high).to(tl.float16), z_first, acc=fine)
    return coarse, fine, total


@triton.jit
def more_coordinates(
    FIRST, SECOND, SIZE, Z, HIGHS, MASS, OUT, rows, padded, unit,
    D: tl.constexpr, HALF: tl.constexpr, NARROW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr, FLAT: tl.constexpr, WEIGHTED: tl.constexpr, COUNTED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Up to HALF coordinates, from the pieces of queries and points, first pieces once more in HIGHS; OUT is (rows, D).

    Tensor cores round sums downwards: sums of first halves are moved to float32 registers every CHUNK columns, before
    the error matters. A program begins with the columns of its own rows, where a token often has its largest score.
    """
    meets: tl.constexpr = 2 * HALF if NARROW else HALF
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    first = tl.load(FIRST + row.to(tl.int64)[:, None] * (2 * HALF) + tl.arange(0, 2 * HALF)[None, :])
    second = tl.load(SECOND + row.to(tl.int64)[:, None] * meets + tl.arange(0, meets)[None, :])
    factor = tl.full((ROWS,), 1.0, tl.float32)
    if not FLAT:
        factor = tl.load(SIZE + row) * unit
    mean = tl.zeros((ROWS, 2 * HALF), tl.float32)
    fine = tl.zeros((ROWS, meets), tl.float32)
    total = tl.zeros((ROWS, 8), tl.float32)
    own = tl.program_id(0) * ROWS // CHUNK * CHUNK
    reference = tl.full((ROWS,), 0.0, tl.float32)
    if not FLAT:
        largest = _largest(
            first, second, Z, HIGHS, MASS, own % padded, factor, HALF, NARROW, ROWS, COLUMNS, CHUNK, WEIGHTED
        )
        reference = tl.maximum(largest - _HEADROOM, _NO_REFERENCE)
    for step in range(0, padded, CHUNK):
        begin = (own + step) % padded
        coarse, finer, more = _sums(
            first, second, Z, HIGHS, MASS, begin, factor, reference, fine,
            HALF, NARROW, ROWS, COLUMNS, CHUNK, FLAT, WEIGHTED, COUNTED, STAGES,
        )  # fmt: skip
        overflows = 0
        if not FLAT:
            overflows = tl.max(tl.max((coarse - coarse != 0).to(tl.int32), 1), 0)
        if overflows > 0:
            largest = _largest(
                first, second, Z, HIGHS, MASS, begin, factor, HALF, NARROW, ROWS, COLUMNS, CHUNK, WEIGHTED
            )
            raised = tl.maximum(reference, largest - _HEADROOM)
            shrunk = tl.exp2(reference - raised)[:, None]
            reference = raised
            mean, total = mean * shrunk, total * shrunk
            coarse, finer, more = _sums(
                first, second, Z, HIGHS, MASS, begin, factor, reference, fine * shrunk,
                HALF, NARROW, ROWS, COLUMNS, CHUNK, FLAT, WEIGHTED, COUNTED, STAGES,
            )  # fmt: skip
        mean, fine, total = mean + coarse, finer, total + more
    whole = tl.sum(tl.reshape(mean, (ROWS, 2, HALF)), 1)
    if NARROW:
        whole += tl.sum(tl.reshape(fine, (ROWS, 2, HALF)), 1)
    else:
        whole += fine
    coordinate = tl.arange(0, HALF)
    weight = tl.sum(total, 1)
    if COUNTED:
        weight = tl.sum(tl.where((coordinate == D)[None, :], whole, 0.0), 1)
    inside = (row < rows)[:, None] & (coordinate < D)[None, :]
    tl.store(OUT + row.to(tl.int64)[:, None] * D + coordinate[None, :], whole / weight[:, None] * unit, mask=inside)


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


@triton.jit
def spread(
    Q, Z, OUT, queries, points,
    D: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Partial sizes of one program, over rows at a constant stride, as a row of OUT.

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
