"""Exact numbers: rationals from the values that a caller passes, and operations on them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import fmpq

from ...errors import InputError
from ...scalars import shown

Vector: TypeAlias = tuple[fmpq, ...]

ZERO, ONE, TWO = fmpq(0), fmpq(1), fmpq(2)
# The smallest positive float64: a positive rational never becomes zero.
_SMALLEST = 5e-324
_SHORT = 20  # digits of a rational that a line of a report has room for
_LONGEST = 4_000  # digits of a number in a string: more is a mistake or an attack, not data


def rational(argument: str, value: object) -> fmpq:
    """Exact rational of one number: ints, floats (their binary value), Fractions, Decimals and strings such as "3/8".

    >>> rational("x", 0.5), rational("x", "3/8"), rational("x", "1e-2")
    (1/2, 3/8, 1/100)
    """
    if isinstance(value, fmpq):
        return value
    if isinstance(value, (bool, np.bool_)):
        raise InputError(argument, repr(value), "must be a number", "truth values are not coordinates: use 0 and 1")
    if isinstance(value, (int, np.integer)):
        return fmpq(int(value))
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise InputError(
                argument, repr(value), "must be finite", "remove or impute the tokens that are NaN or infinite"
            )
        return fmpq(*float(value).as_integer_ratio())
    if isinstance(value, numbers.Rational):
        return fmpq(int(value.numerator), int(value.denominator))
    try:
        if isinstance(value, str):
            if len(value) > _LONGEST or abs(_exponent(value)) > _LONGEST:
                raise ValueError("too long")
            exact = Fraction(value.strip())
        elif isinstance(value, Decimal):
            exact = Fraction(value)
        else:
            raise TypeError(type(value).__name__)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        raise InputError(
            argument,
            shown(value),
            "must be a finite number",
            'pass ints, floats, Fractions or strings such as "3/8" and "0.125"',
        ) from None
    return fmpq(exact.numerator, exact.denominator)


def _exponent(text: str) -> int:
    _, mark, tail = text.lower().partition("e")
    return int(tail) if mark else 0


def as_fraction(value: fmpq) -> Fraction:
    """The same number as a :class:`fractions.Fraction`."""
    return Fraction(int(value.p), int(value.q))


def brief(value: fmpq) -> str:
    """Number as text: exact where that is short, otherwise with six digits.

    >>> brief(fmpq(3, 8)), brief(fmpq(*(1e-300).as_integer_ratio()))
    ('3/8', '1e-300')
    """
    text = str(value)
    if len(text) <= _SHORT:
        return text
    digits, exponent = f"{Decimal(int(value.p)) / Decimal(int(value.q)):.5e}".split("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def to_float(value: fmpq) -> float:
    """The nearest float64; huge numbers become infinite, and a number that is not zero never becomes zero."""
    numerator, denominator = int(value.p), int(value.q)
    try:
        nearest = numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
    if nearest == 0.0 and numerator:
        return _SMALLEST if numerator > 0 else -_SMALLEST
    return nearest


def to_floats(rows: Iterable[Iterable[fmpq]], columns: int) -> np.ndarray:
    """A float64 matrix of the nearest floats."""
    return np.array([[to_float(x) for x in row] for row in rows], dtype=np.float64).reshape(-1, columns)


def dot(left: Sequence[fmpq], right: Sequence[fmpq]) -> fmpq:
    """The inner product, over the entries where neither factor is zero."""
    total = ZERO
    for a, b in zip(left, right, strict=True):
        if a and b:
            total += a * b
    return total


def scaled(factor: fmpq, vector: Sequence[fmpq]) -> Vector:
    """``factor * vector``."""
    return tuple(factor * x for x in vector)


def unit(dimension: int, axis: int, length: fmpq = ONE) -> Vector:
    """``length`` times the basis vector of ``axis``."""
    return tuple(length if k == axis else ZERO for k in range(dimension))


def power_of_two_at_most(value: fmpq) -> fmpq:
    """The largest power of two that is at most a positive ``value``.

    >>> power_of_two_at_most(fmpq(3, 8)), power_of_two_at_most(fmpq(8))
    (1/4, 8)
    """
    numerator, denominator = int(value.p), int(value.q)
    exponent = numerator.bit_length() - denominator.bit_length()
    power = power_of_two(exponent)
    if power > value:
        power /= 2
    elif power * 2 <= value:
        power *= 2
    return power


def power_of_two_at_least(value: fmpq) -> fmpq:
    """The smallest power of two that is at least a positive ``value``."""
    below = power_of_two_at_most(value)
    return below if below == value else below * 2


def power_of_two(exponent: int) -> fmpq:
    """2 to an integer power, exactly."""
    return fmpq(2**exponent) if exponent >= 0 else fmpq(1, 2**-exponent)


def round_down(value: fmpq, step: fmpq) -> fmpq:
    """The largest multiple of ``step`` that is at most ``value``."""
    return fmpq((value / step).floor()) * step


def round_up(value: fmpq, step: fmpq) -> fmpq:
    """The smallest multiple of ``step`` that is at least ``value``."""
    return fmpq((value / step).ceil()) * step


def bits(value: fmpq) -> int:
    """Length of the numerator plus length of the denominator, in binary digits."""
    return int(value.p).bit_length() + int(value.q).bit_length()
