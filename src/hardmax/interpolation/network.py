"""A compiled network as data: rational weights, the data set they were built for, and how they were built."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from flint import fmpq

from .arithmetic.numbers import bits
from .blocks import Block
from .data import DataSet


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
