r"""The affine map that a feed-forward layer is at each token, decided rigorously.

On the tokens where a given set S of neurons is active the layer is the affine map
:math:`x \mapsto (\eta I + \sum_{r\in S} w_r u_r^T)\,x + \sum_{r\in S} b_r w_r`, formed exactly over the rationals.
The signs of the pre-activations are found with a floating-point filter: computed for all tokens at once in float64
with a rigorous bound on the error, and decided exactly where the bound does not exclude zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from flint import fmpq

from ..network import Block, Neuron
from .numbers import ONE, ZERO, Vector, to_float, to_floats

# Distance from one to the next float64: twice the relative error of a rounding.
_ULP = 2.0**-52
_TINY = 1e-290  # absorbs underflow in products


@dataclass(frozen=True)
class AffineMap:
    """``x -> M x + c`` by sparse rows: row i lists the pairs (j, M_ij) that are not zero."""

    rows: tuple[tuple[tuple[int, fmpq], ...], ...]
    shift: Vector

    def changed(self) -> list[int]:
        """Coordinates that the map does not copy."""
        return [i for i, row in enumerate(self.rows) if self.shift[i] != 0 or row != ((i, ONE),)]

    def reads(self) -> list[int]:
        """Coordinates that must be zero for a token to stay in place (when nothing is shifted)."""
        return sorted(
            {j for i, row in enumerate(self.rows) for j, m in row if i != j or m != 1}
            | {i for i, row in enumerate(self.rows) if not any(j == i for j, _ in row)}
        )


def affine_map(block: Block, active: Sequence[Neuron], dimension: int) -> AffineMap:
    """Exact affine map of the layer where exactly the neurons ``active`` are on."""
    total: dict[Vector, list[fmpq]] = {}
    shift = [ZERO] * dimension
    for neuron in active:
        sums = total.setdefault(neuron.reading, [ZERO] * dimension)
        for i, w in enumerate(neuron.writing):
            if w:
                sums[i] += w
                if neuron.bias:
                    shift[i] += w * neuron.bias
    rows = []
    for i in range(dimension):
        row = {i: block.eta} if block.eta else {}
        for reading, sums in total.items():
            if sums[i]:
                for j, u in enumerate(reading):
                    if u:
                        row[j] = row.get(j, ZERO) + sums[i] * u
        rows.append(tuple((j, m) for j, m in sorted(row.items()) if m))
    return AffineMap(tuple(rows), tuple(shift))


class SignFilter:
    """Signs of all pre-activations of one layer, for tokens known up to a radius."""

    def __init__(self, block: Block, dimension: int) -> None:
        self.neurons = block.neurons
        self.bias = np.array([to_float(n.bias) for n in block.neurons])
        readings: dict[Vector, list[int]] = {}
        for r, neuron in enumerate(block.neurons):
            readings.setdefault(neuron.reading, []).append(r)
        self.groups = [np.array(members) for members in readings.values()]
        self.readings = to_floats(readings, dimension)
        self.slack = (dimension + 6) * _ULP
        # Weights so small that rounding them is not relative any more: nothing is decided by floats then.
        self.blind = [
            any(c and abs(c) < _TINY for c in [*row, *self.bias[members]])
            for row, members in zip(self.readings.tolist(), self.groups, strict=True)
        ]

    def _levels(self, group: int, middle: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``<u, x>`` for one reading vector, and a bound on its error before the bias is added."""
        if self.blind[group]:
            return np.zeros(len(middle)), np.full(len(middle), np.inf)
        support = np.flatnonzero(self.readings[group])
        u = self.readings[group][support]
        x = middle[:, support]
        size = np.abs(x) @ np.abs(u)
        return x @ u, self.slack * size + (1 + self.slack) * (radius[:, support] @ np.abs(u)) + _TINY

    def possibly_active(self, middle: np.ndarray, radius: np.ndarray, *, exact: bool) -> tuple[np.ndarray, float]:
        """Indices of tokens at which some neuron may be on; at all others every neuron is off, for certain.

        With them comes the smallest distance from zero of a pre-activation at those others. ``exact`` says that all
        radii are zero.
        """
        if exact and len(self.groups) == 1 and not self.blind[0]:
            support = np.flatnonzero(self.readings[0])
            if len(support) == 1:
                return self._beyond(middle[:, support[0]], float(self.readings[0][support[0]]))
        maybe = np.zeros(len(middle), dtype=bool)
        nearest = np.full(len(middle), np.inf)
        for g, members in enumerate(self.groups):
            level, error = self._levels(g, middle, radius)
            top = self.bias[members].max()
            maybe |= ~(level + top + error + self.slack * abs(top) < 0)  # not-a-number counts as possible
            nearest = np.minimum(nearest, np.abs(level + top))
        return np.flatnonzero(maybe), float(nearest[~maybe].min(initial=np.inf))

    def _beyond(self, column: np.ndarray, factor: float) -> tuple[np.ndarray, float]:
        """Result of :meth:`possibly_active` where all neurons read one coordinate: one comparison with a safe knot.

        The knot -b/u and the coordinate are each off by a few units in the last place, relatively.
        """
        knot = -float(self.bias.max()) / factor
        if not np.isfinite(knot):
            return np.arange(len(column)), np.inf
        slack = 16 * _ULP * abs(knot) + _TINY
        far = column < knot - slack if factor > 0 else column > knot + slack
        return np.flatnonzero(~far), abs(factor) * float(np.abs(column[far] - knot).min(initial=np.inf))

    def active(
        self, middle: np.ndarray, radius: np.ndarray, decide: Callable[[int, Neuron], bool]
    ) -> tuple[np.ndarray, float]:
        """A row of truth values per token, and the smallest pre-activation that was not zero.

        ``decide(row, neuron)`` decides exactly where the filter does not.
        """
        on = np.zeros((len(middle), len(self.neurons)), dtype=bool)
        margin = np.inf
        for g, members in enumerate(self.groups):
            level, error = self._levels(g, middle, radius)
            for r in members:
                value = level + self.bias[r]
                bound = error + self.slack * abs(self.bias[r])
                on[:, r] = value - bound > 0
                sure = on[:, r] | (value + bound < 0)
                for row in np.flatnonzero(~sure):
                    on[row, r] = decide(int(row), self.neurons[r])
                if sure.any():
                    margin = min(margin, float(np.abs(value[sure]).min()))
        return on, margin


def patterns(on: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The distinct rows of a table of truth values, each with the indices of its rows."""
    if not len(on):
        return []
    packed = np.ascontiguousarray(np.packbits(on, axis=1)) if on.shape[1] else np.zeros((len(on), 1), np.uint8)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(first) + 1))
    return [(on[first[p]], order[bounds[p] : bounds[p + 1]]) for p in range(len(first))]
