"""Queries and points in two halves of 11 bits each, as the products of :mod:`.softmax` need them."""

# Triton reads the source of these functions: it knows tensors, not types.
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
def _unit(LARGEST, FLAT: tl.constexpr):
    """What points are divided by: they come to less than 2^15, or to less than 2."""
    unit = _size(tl.load(LARGEST))
    if FLAT:
        unit *= 2.0**14
    return unit


@triton.jit
def _halves(x):
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def pieces_of_points(
    Z, LARGEST, UNIT, HALVES, rows,
    D: tl.constexpr, HALF: tl.constexpr, COUNTED: tl.constexpr, FLAT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The rows of Z, divided by UNIT, the size of the largest coordinate, as halves; zeros fill up the last tile."""
    unit = _unit(LARGEST, FLAT)
    tl.store(UNIT, unit)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, HALF)
    inside = (row < rows)[:, None] & (k < D)[None, :]
    high, low = _halves(tl.load(Z + row.to(tl.int64)[:, None] * D + k[None, :], mask=inside, other=0.0) / unit)
    if COUNTED:
        high = tl.where((k == D)[None, :], 1.0, high)
    place = HALVES + row.to(tl.int64)[:, None] * (2 * HALF) + k[None, :]
    tl.store(place, high)
    tl.store(place + HALF, low)


@triton.jit
def pieces_of_queries(
    Q, LARGEST, FIRST, SECOND, SIZE, rows,
    D: tl.constexpr, HALF: tl.constexpr, NARROW: tl.constexpr, FLAT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The rows of Q in units of log 2, each divided by its size, as halves that meet both halves of a point or one.

    A product has at least 16 columns: where a half is NARROW the second halves meet both halves of a point too.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, HALF)
    inside = (row < rows)[:, None] & (k < D)[None, :]
    q = tl.load(Q + row.to(tl.int64)[:, None] * D + k[None, :], mask=inside, other=0.0) * _LOG2E
    size = _size(tl.max(tl.abs(q), 1))
    if FLAT:  # so that scores need no factor
        size = size * 0.0 + 1.0 / _unit(LARGEST, FLAT)
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
