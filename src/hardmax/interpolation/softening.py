r"""Construction B under genuine softmax attention, built from enclosures that are proved.

The first coordinate :math:`\tau_i` never changes, so all tents are switched at exact rational points; only the second
coordinate becomes irrational. With the scores multiplied by a gain :math:`\omega` the leader's value is off by at most
:math:`(n-1)\,\mathrm{range}(x_2)\,e^{-\omega\tau_{\min}g/T}`. The gain is doubled until the enclosures of
:math:`t'=2x_1+x_2` are separated; the flat line stage is then built around them, and on a flat piece the linear part
vanishes exactly, so the irrational numbers disappear from the output.
"""

from __future__ import annotations

import numpy as np
from flint import arb, ctx, fmpq

from ..errors import HardmaxError
from .identification import Identification
from .items import Interval, SeparationError, make_items
from .lattice import Lattice
from .leaders import leaders
from .line import Item
from .numbers import ONE
from .rationals import Number, State, UndecidedError, evaluate, is_exact, linear, sparse

_PRECISION = 128
_DOUBLINGS = 80


class SofteningError(HardmaxError):
    """The sequences did not separate under softmax within the gains tried."""


def hull(value: Number) -> Interval:
    """Rational ends of an enclosure."""
    if is_exact(value):
        return value, value
    return _dyadic(value.lower()), _dyadic(value.upper())


def _dyadic(value: arb) -> fmpq:
    mantissa, exponent = map(int, value.man_exp())
    return fmpq(mantissa * 2**exponent) if exponent >= 0 else fmpq(mantissa, 2**-exponent)


def soft_leaders(
    lattice: Lattice, u: tuple[int, ...], generator: np.random.Generator, width: int, heat: fmpq
) -> tuple[Identification, list[Item], fmpq]:
    """The identification, items that enclose where softmax puts the tokens, and the gain that separated them."""
    seed = int(generator.integers(2**32))
    gain = ONE
    for _ in range(_DOUBLINGS):
        found = leaders(lattice, u, np.random.default_rng(seed), width, gain)
        try:
            with ctx.workprec(_PRECISION):
                state = evaluate(found.blocks, lattice.data.inputs, heat)
                return found, _enclosed_items(lattice, state, found), gain
        except (UndecidedError, SeparationError):
            gain *= 2
    raise SofteningError(f"no gain up to {gain} separates the sequences at temperature {heat}")


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
