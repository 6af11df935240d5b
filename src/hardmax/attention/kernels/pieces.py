"""Queries and points in two halves of 11 bits each, as the products of :mod:`.softmax` need them."""

# Triton compiles the source of these functions, in which Python types have no meaning.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

_LOG2E = tl.constexpr(1.4426950408889634)
# The bits of the exponent.
_EXPONENT = tl.constexpr(0x7F800000)


@triton.jit
def _size(largest):
    """A power of two that makes numbers up to ``largest`` less than 2^15; one for zero."""
    power = (largest.to(tl.int32, bitcast=True) & _EXPONENT).to(tl.float32, bitcast=True)
    return tl.where(power > 0, power * 2.0**-14, 1.0)


@triton.jit
def _halves(x):
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _of_points(
    tile, Z, HALVES, HIGHS, points, unit,
    D: tl.constexpr, HALF: tl.constexpr, NARROW: tl.constexpr, COUNTED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The rows of Z, divided by the unit, as halves, and the first halves alone; zeros fill up the last tile."""
    row = tile * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, HALF)
    inside = (row < points)[:, None] & (k < D)[None, :]
    high, low = _halves(tl.load(Z + row.to(tl.int64)[:, None] * D + k[None, :], mask=inside, other=0.0) / unit)
    if COUNTED:
        high = tl.where((k == D)[None, :], 1.0, high)
    place = HALVES + row.to(tl.int64)[:, None] * (2 * HALF) + k[None, :]
    tl.store(place, high)
    tl.store(place + HALF, low)
    if not NARROW:
        tl.store(HIGHS + row.to(tl.int64)[:, None] * HALF + k[None, :], high)


@triton.jit
def _of_queries(
    tile, Q, FIRST, SECOND, SIZE, queries, unit,
    D: tl.constexpr, HALF: tl.constexpr, NARROW: tl.constexpr, FLAT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The rows of Q in units of log 2, each divided by its size, as first and second halves.

    First halves are multiplied by both halves of a point, second halves by the first alone; a product has at least 16
    columns, so where a half is NARROW second halves are multiplied by both halves too.
    """
    row = tile * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, HALF)
    inside = (row < queries)[:, None] & (k < D)[None, :]
    q = tl.load(Q + row.to(tl.int64)[:, None] * D + k[None, :], mask=inside, other=0.0) * _LOG2E
    if FLAT:  # so that scores need no factor
        high, low = _halves(q * unit)
    else:
        size = _size(tl.max(tl.abs(q), 1))
        tl.store(SIZE + row, size)
        high, low = _halves(q / size[:, None])
    both = row.to(tl.int64)[:, None] * (2 * HALF) + k[None, :]
    tl.store(FIRST + both, high)
    tl.store(FIRST + both + HALF, high)
    if NARROW:
        tl.store(SECOND + both, low)
        tl.store(SECOND + both + HALF, low)
    else:
        tl.store(SECOND + row.to(tl.int64)[:, None] * HALF + k[None, :], low)


@triton.jit
def pieces(
    Q, Z, FIRST, SECOND, SIZE, HALVES, HIGHS, queries, points, tiles, unit,
    D: tl.constexpr, HALF: tl.constexpr, NARROW: tl.constexpr, COUNTED: tl.constexpr, FLAT: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Queries in the first ``tiles`` tiles, points in the others: one launch costs less than two."""
    tile = tl.program_id(0)
    if tile < tiles:
        _of_queries(tile, Q, FIRST, SECOND, SIZE, queries, unit, D, HALF, NARROW, FLAT, ROWS)
    else:
        _of_points(tile - tiles, Z, HALVES, HIGHS, points, unit, D, HALF, NARROW, COUNTED, ROWS)
