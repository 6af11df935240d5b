r"""One transformer block with exact weights, the value that everything else here builds, evaluates and stores.

A block is feed-forward, then attention:

.. math::

   \mathrm{FF}(x) = \eta x + \sum_r w_r\,\mathrm{relu}(\langle u_r, x\rangle + b_r), \qquad
   \mathrm{SA}_i(X) = \rho x_i + V\,\mathrm{mean}\{x_l : l \in C_i\}, \quad
   C_i = \mathrm{argmax}_l \langle B x_i, x_l\rangle .

``B`` and ``V`` are sums of outer products :math:`\sum_k \ell_k r_k^T`; no terms is the zero matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from flint import fmpq

from .numbers import ONE, ZERO, Vector, unit


@dataclass(frozen=True, slots=True)
class Neuron:
    """``writing * relu(<reading, x> + bias)``."""

    reading: Vector
    bias: fmpq
    writing: Vector


@dataclass(frozen=True, slots=True)
class OuterProduct:
    """The rank-one matrix ``left right^T``."""

    left: Vector
    right: Vector


LowRank: TypeAlias = tuple[OuterProduct, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Feed-forward followed by attention, with rational weights."""

    eta: fmpq
    neurons: tuple[Neuron, ...]
    rho: fmpq = ONE
    B: LowRank = ()
    V: LowRank = ()
    stage: str = ""

    @property
    def attends(self) -> bool:
        """Whether the attention can move a token at all."""
        return bool(self.V)

    def numbers(self) -> Iterator[fmpq]:
        """Every weight, one after the other."""
        yield self.eta
        yield self.rho
        for neuron in self.neurons:
            yield from neuron.reading
            yield neuron.bias
            yield from neuron.writing
        for matrix in (self.B, self.V):
            for term in matrix:
                yield from term.left
                yield from term.right

    def parameters(self) -> int:
        """How many weights there are, counting zeros."""
        return sum(1 for _ in self.numbers())


def identity(dimension: int) -> LowRank:
    """The identity matrix as a sum of outer products."""
    return tuple(OuterProduct(unit(dimension, k), unit(dimension, k)) for k in range(dimension))


def dense(matrix: LowRank, dimension: int) -> list[list[fmpq]]:
    """The matrix written out, ``dimension`` rows of ``dimension``."""
    rows = [[ZERO] * dimension for _ in range(dimension)]
    for term in matrix:
        for i, a in enumerate(term.left):
            if a:
                for j, b in enumerate(term.right):
                    if b:
                        rows[i][j] += a * b
    return rows


def in_layers(neurons: list[Neuron], width: int) -> list[tuple[Neuron, ...]]:
    """Cut a list of neurons into layers of at most ``width``; one empty layer when there are none."""
    return [tuple(neurons[k : k + width]) for k in range(0, max(len(neurons), 1), width)]
