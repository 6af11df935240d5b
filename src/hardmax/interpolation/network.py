r"""A compiled network as data: transformer blocks with rational weights, and the data set they were built for.

A block is feed-forward, then attention:

.. math::

   \mathrm{FF}(x) = \eta x + \sum_r w_r\,\mathrm{relu}(\langle u_r, x\rangle + b_r), \qquad
   \mathrm{SA}_i(X) = \rho x_i + V\,\mathrm{mean}\{x_l : l \in C_i\}, \quad
   C_i = \mathrm{argmax}_l \langle B x_i, x_l\rangle .

``B`` and ``V`` are sums of outer products :math:`\sum_k \ell_k r_k^T`; no terms is the zero matrix.

The same weights as stacked float64 arrays: layers with fewer neurons, and matrices with fewer outer products, are
filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from flint import fmpq

from .arithmetic.numbers import ONE, ZERO, Vector, bits, scaled, to_float, unit
from .data import DataSet


@dataclass(frozen=True, slots=True)
class Neuron:
    """One neuron: ``writing * relu(<reading, x> + bias)``."""

    reading: Vector
    """Input weights, d rationals."""
    bias: fmpq
    """Bias."""
    writing: Vector
    """Output weights, d rationals."""


@dataclass(frozen=True, slots=True)
class OuterProduct:
    """Rank-one matrix ``left right^T``."""

    left: Vector
    """Column vector, d rationals."""
    right: Vector
    """Row vector, d rationals."""


LowRank: TypeAlias = tuple[OuterProduct, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Feed-forward layer followed by attention, with rational weights."""

    eta: fmpq
    """Factor of the residual connection of the feed-forward layer."""
    neurons: tuple[Neuron, ...]
    """Neurons of the feed-forward layer."""
    rho: fmpq = ONE
    """Factor of the residual connection of the attention."""
    B: LowRank = ()
    """Score matrix as a sum of outer products."""
    V: LowRank = ()
    """Value matrix as a sum of outer products."""
    stage: str = ""
    """Stage of the construction to which the block belongs."""

    @property
    def attends(self) -> bool:
        """Whether the value matrix is not zero, so that attention can move tokens."""
        return bool(self.V)

    def numbers(self) -> Iterator[fmpq]:
        """All weights of the block, zeros included.

        Yields
        ------
        fmpq
            One weight after the other.
        """
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
        """Number of weights, zeros included.

        Returns
        -------
        int
            Number of weights.
        """
        return sum(1 for _ in self.numbers())


def identity(dimension: int) -> LowRank:
    """Identity matrix as a sum of outer products."""
    return tuple(OuterProduct(unit(dimension, k), unit(dimension, k)) for k in range(dimension))


def dense(matrix: LowRank, dimension: int) -> list[list[fmpq]]:
    """Matrix as a list of ``dimension`` rows of ``dimension`` rationals."""
    rows = [[ZERO] * dimension for _ in range(dimension)]
    for term in matrix:
        for i, a in enumerate(term.left):
            if a:
                for j, b in enumerate(term.right):
                    if b:
                        rows[i][j] += a * b
    return rows


def in_layers(neurons: list[Neuron], width: int) -> list[tuple[Neuron, ...]]:
    """Layers of at most ``width`` neurons each; one empty layer when there are no neurons."""
    return [tuple(neurons[k : k + width]) for k in range(0, max(len(neurons), 1), width)]


NAMES = ("eta", "U", "b", "W", "rho", "B_left", "B_right", "V_left", "V_right")


def stacked(blocks: Sequence[Block], dimension: int, temperature: fmpq | None = None) -> dict[str, np.ndarray]:
    """Float64 weights by name: ``eta, rho`` (blocks,), ``U, b, W`` (blocks, h, d), (blocks, h), (blocks, d, h), and the
    factors of B and V (blocks, rank, d).

    With a temperature the scores are divided by it: ``B_left`` is the rounded quotient, which may be in the range of
    float64 where B or the temperature is not.
    """
    cold = ONE if temperature is None else 1 / temperature
    count, d = len(blocks), dimension
    width = max(len(block.neurons) for block in blocks)
    B_rank = max(len(block.B) for block in blocks)
    V_rank = max(len(block.V) for block in blocks)
    arrays = {
        "eta": np.array([to_float(block.eta) for block in blocks]),
        "U": np.zeros((count, width, d)),
        "b": np.zeros((count, width)),
        "W": np.zeros((count, d, width)),
        "rho": np.array([to_float(block.rho) for block in blocks]),
        "B_left": np.zeros((count, B_rank, d)),
        "B_right": np.zeros((count, B_rank, d)),
        "V_left": np.zeros((count, V_rank, d)),
        "V_right": np.zeros((count, V_rank, d)),
    }
    for k, block in enumerate(blocks):
        for r, neuron in enumerate(block.neurons):
            arrays["U"][k, r] = [to_float(c) for c in neuron.reading]
            arrays["b"][k, r] = to_float(neuron.bias)
            arrays["W"][k, :, r] = [to_float(c) for c in neuron.writing]
        _fill(arrays["B_left"][k], arrays["B_right"][k], block.B, cold)
        _fill(arrays["V_left"][k], arrays["V_right"][k], block.V, ONE)
    return arrays


def _fill(left: np.ndarray, right: np.ndarray, matrix: LowRank, factor: fmpq) -> None:
    for r, term in enumerate(matrix):
        left[r] = [to_float(c) for c in scaled(factor, term.left)]
        right[r] = [to_float(c) for c in term.right]


def stages(blocks: Sequence[Block]) -> list[tuple[str, int, int]]:
    """Runs of equal stages: (name, first block, one past the last)."""
    runs: list[tuple[str, int, int]] = []
    for k, block in enumerate(blocks):
        if runs and runs[-1][0] == block.stage:
            runs[-1] = (block.stage, runs[-1][1], k + 1)
        else:
            runs.append((block.stage, k, k + 1))
    return runs


@dataclass(frozen=True)
class Report:
    """Properties of the data that the construction measured while it built the network."""

    cuts: int
    """K: number of knots, queries or witnesses used to separate the sequences."""
    conditioning: float
    """Range over smallest gap of the items on the line; float64 loses about this many units in the last place."""
    gap: float
    """Smallest gap between items on the line, in units of the line stage."""
    flat: bool
    """Whether the output is locally constant around every token."""
    gain: fmpq | None = None
    """Factor on the attention scores (softmax with leaders), None for the other constructions."""


@dataclass(frozen=True)
class CompiledNetwork:
    """Blocks with rational weights, the data set they interpolate, and the options of the construction."""

    data: DataSet
    """The input and output sets for which the network was built."""
    blocks: tuple[Block, ...]
    """Feed-forward and attention layers with rational weights, first block first."""
    construction: str
    """Name of the construction: leaders, fewest, witness, conditioned or paper."""
    width: int
    """Largest number of neurons per feed-forward layer."""
    attention: str
    """``"hardmax"`` or ``"softmax"``."""
    temperature: fmpq | None
    """Softmax temperature, exact; None under hardmax."""
    report: Report
    """Cuts, conditioning and gap that the construction measured."""
    classes: tuple[object, ...] | None = None
    """Sorted class labels of a classification problem, otherwise None."""
    class_targets: tuple[tuple[fmpq, ...], ...] = field(default=())
    """Target of each class, in the order of ``classes``."""
    notes: tuple[str, ...] = ()
    """Remarks on the data, for example that repeated pairs were removed."""

    @property
    def dimension(self) -> int:
        """Coordinates per token, d."""
        return self.data.dimension

    @cached_property
    def longest_weight(self) -> int:
        """Number of binary digits of the longest weight, numerator and denominator together."""
        return max(bits(x) for block in self.blocks for x in block.numbers())

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.construction}, {self.attention}: {len(self.data)} sequences, "
            f"{len(self.blocks)} blocks of width {self.width}>"
        )
