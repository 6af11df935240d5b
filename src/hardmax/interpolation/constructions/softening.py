r"""Construction B under softmax attention, built from rigorous enclosures.

The first coordinate :math:`\tau_i` never changes, so all tents are switched at exact rational points; only the second
coordinate becomes irrational. With the scores multiplied by a gain :math:`\omega` and by the temperature T, which
softmax divides by again, the leader's value is off by at most
:math:`(n-1)\,\mathrm{range}(x_2)\,e^{-\omega\tau_{\min}g}`: the same at every temperature. The gain is raised until
the enclosures of :math:`t'=2x_1+x_2` are separated; the flat line stage is then built around them, and on a flat piece
the linear part vanishes exactly, so the irrational numbers disappear from the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from flint import arb, ctx, fmpq

from ...errors import InputError
from ..arithmetic.directions import Lattice
from ..arithmetic.exact_evaluation import Number, State, UndecidedError, evaluate, is_exact, linear, sparse
from ..arithmetic.numbers import ONE, ZERO, power_of_two, power_of_two_at_most, scaled
from ..blocks import Block, OuterProduct
from .identification import Identification, Interval, SeparationError, make_items
from .leaders import leaders
from .line import Item

_PRECISION = 128  # bits of the balls for the first gains
_START = fmpq(64)  # the first gain, over the squared extent: not close to hardmax, and mostly enough to separate
_DOUBLINGS = 40  # gains that are doubled before their exponent is doubled
_LAST_EXPONENT = 8192  # of a gain; larger ratios of distances are refused
_FINEST = 1 << 17
"""Ends of enclosures are multiples of 2 to minus this power, which bounds their memory."""


def hull(value: Number) -> Interval:
    """Rational ends of an enclosure."""
    if is_exact(value):
        return value, value
    if not value.is_finite():
        raise UndecidedError("an enclosure has no end")
    return _dyadic(value.lower(), up=False), _dyadic(value.upper(), up=True)


def _dyadic(value: arb, *, up: bool) -> fmpq:
    """Exact ball as a rational; a number below the finest multiple is rounded outwards."""
    mantissa, exponent = map(int, value.man_exp())
    if exponent < -_FINEST:
        away_from_zero = (mantissa > 0) == up
        return power_of_two(-_FINEST) * (1 if mantissa > 0 else -1) if mantissa and away_from_zero else ZERO
    return mantissa * power_of_two(exponent)


def with_gain(blocks: tuple[Block, ...], gain: fmpq) -> tuple[Block, ...]:
    """Blocks with all attention scores multiplied by ``gain``."""
    return tuple(
        replace(block, B=tuple(OuterProduct(scaled(gain, term.left), term.right) for term in block.B))
        for block in blocks
    )


def _attempts() -> Iterator[tuple[int, int]]:
    """Exponents of the gains to try, with their precision: the gain is doubled, and later squared."""
    for exponent in range(_DOUBLINGS):
        yield exponent, _PRECISION
    exponent = _DOUBLINGS
    while exponent < _LAST_EXPONENT:
        exponent *= 2
        # Only data on very different scales need these, with bits for all scales at once.
        yield exponent, _PRECISION + 2 * exponent


def soft_leaders(
    lattice: Lattice, u: tuple[int, ...], generator: np.random.Generator, width: int, heat: fmpq
) -> tuple[Identification, list[Item], fmpq]:
    """Identification, items that enclose the tokens after softmax attention, and the factor on its scores."""
    found = leaders(lattice, u, generator, width)
    heights = [t for own in lattice.levels(tuple(fmpq(c) for c in u)) for t in own]
    extent = max(heights) - min(heights)
    # Scores have the size of the squared extent, so this start is the same for data in any unit.
    start = power_of_two_at_most(_START / (extent * extent))
    for exponent, precision in _attempts():
        gain = start * power_of_two(exponent)
        try:
            with ctx.workprec(precision):
                state = evaluate(with_gain(found.blocks, gain), lattice.data.inputs, ONE)
                items = _enclosed_items(lattice, state, found)
        except (UndecidedError, SeparationError):
            continue
        return replace(found, blocks=with_gain(found.blocks, gain * heat)), items, gain * heat
    raise InputError(
        "inputs",
        f"tokens whose distances differ by a factor of more than 2^{_LAST_EXPONENT}",
        "must be closer in scale for construction='leaders' under softmax attention",
        "use construction='fewest'",
    )


def _enclosed_items(lattice: Lattice, state: State, found: Identification) -> list[Item]:
    data = lattice.data
    row = sparse(found.reading)
    positions: list[list[Interval]] = []
    aligned: list[list[int]] = []
    for tokens in state.sequences():
        ends = [hull(linear(row, x)) for x in tokens]
        order = sorted(range(len(ends)), key=ends.__getitem__)
        merged: list[Interval] = []
        for i in order:
            low, high = ends[i]
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        if data.token_level and len(merged) < len(tokens):
            raise SeparationError("two tokens of a sequence are not separated")
        positions.append(merged)
        aligned.append(order)
    return make_items(data, positions, aligned if data.token_level else None)
