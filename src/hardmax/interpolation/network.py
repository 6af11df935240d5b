"""The value handed out: a network with rational weights, its data, and everything one can ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from flint import fmpq

from .arithmetic.exact_evaluation import Progress
from .arithmetic.numbers import bits
from .blocks import Block
from .data import DataSet
from .evaluation.counts import Counts, block_bound, necessary_blocks, published_bound

if TYPE_CHECKING:
    import torch

    from ..shapes import Array
    from .evaluation.certificate import Certificate
    from .evaluation.running import Fractions
    from .export.torch_module import TorchTransformer


@dataclass(frozen=True)
class Report:
    """What the construction found out about the data on the way."""

    cuts: int
    """K: knots, queries or witnesses used to tell the sequences apart."""
    conditioning: float
    """range/gap of the items on the line: float64 loses about this many units in the last place."""
    gap: float
    """Smallest gap between items on the line, in units of the line stage."""
    flat: bool
    gain: fmpq | None = None
    """Factor on the attention scores (softmax with leaders)."""


@dataclass(frozen=True)
class ExactTransformer:
    """A transformer with rational weights that sends every input set of its data to its output set, exactly.

    Made by :func:`hardmax.interpolate` or :func:`hardmax.classify_exactly`.
    """

    data: DataSet
    blocks: tuple[Block, ...]
    construction: str
    width: int
    attention: str
    temperature: fmpq | None
    report: Report
    classes: tuple[object, ...] | None = None
    class_targets: tuple[tuple[fmpq, ...], ...] = field(default=())
    notes: tuple[str, ...] = ()

    @property
    def dimension(self) -> int:
        """Coordinates of a token."""
        return self.data.dimension

    @cached_property
    def counts(self) -> Counts:
        """Blocks and parameters beside our formula, the published bound and the lower bounds."""
        arguments = (self.data, self.construction)
        flat = self.report.flat
        return Counts(
            blocks=len(self.blocks),
            neurons=sum(len(block.neurons) for block in self.blocks),
            parameters=sum(block.parameters() for block in self.blocks),
            cuts=self.report.cuts,
            formula=block_bound(*arguments, self.report.cuts, self.width, flat=flat),
            worst_case=block_bound(*arguments, len(self.data) - 1, self.width, flat=flat),
            published=published_bound(self.data, softmax=self.attention == "softmax"),
            necessary_blocks=necessary_blocks(self.data, self.width),
            necessary_parameters=self.data.targets * self.dimension,
        )

    @cached_property
    def longest_weight(self) -> int:
        """Binary digits of the longest weight, numerator and denominator together."""
        return max(bits(x) for block in self.blocks for x in block.numbers())

    def certify(self, *, workers: int = 1, progress: Progress = None) -> Certificate:
        """Prove, in exact arithmetic, that every input of the data goes to its output."""
        from .evaluation.certificate import certify

        return certify(self, workers=workers, progress=progress)

    def to_torch(self, dtype: torch.dtype | None = None) -> TorchTransformer:
        """The same network as an ``nn.Module`` in float64 (default) or float32."""
        from .export.torch_module import TorchTransformer

        return TorchTransformer.from_network(self, dtype)

    @overload
    def __call__(self, tokens: object, *, exact: Literal[False] = False) -> Array | list[Array]: ...

    @overload
    def __call__(self, tokens: object, *, exact: Literal[True]) -> Fractions | list[Fractions]: ...

    def __call__(self, tokens: object, *, exact: bool = False) -> Array | list[Array] | Fractions | list[Fractions]:
        """Where every token of a sequence ends: computed without rounding, and rounded once at the end.

        ``tokens`` is one sequence, (token, coordinate), or several: an array (sequence, token, coordinate) or a list of
        sequences of any lengths. NumPy and lists give NumPy, tensors give tensors; with ``exact`` tuples of Fractions
        come back. A token that is repeated in a sequence counts once, as in the data. For gradients, batches on a GPU
        or training, use :meth:`to_torch`.

        >>> from hardmax import interpolate
        >>> net = interpolate([[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[["1/3", 1]], [[2, 2]]])
        >>> net([[0, 0], [0, 1]])
        array([[2., 2.],
               [2., 2.]])
        >>> net([[0, 0], [1, 0]], exact=True)
        [(Fraction(1, 3), Fraction(1, 1)), (Fraction(1, 3), Fraction(1, 1))]
        """
        from .evaluation.running import run

        return run(self, tokens, exact=exact)

    def predict(self, inputs: object) -> list[object]:
        """The class of each sequence, by the target nearest to its exact output (classification only)."""
        from .constructions.interpolate import predict

        return predict(self, inputs)

    def save(self, path: str | Path) -> Path:
        """Write ``network.json`` and ``network.safetensors`` into the folder ``path``."""
        from .export.files import save

        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> ExactTransformer:
        """Read a network back; nothing is taken on trust by :func:`hardmax.verify`, this only reads."""
        from .export.files import load

        return load(Path(path))

    def to_onnx(self, path: str | Path, *, single_precision: bool = False) -> Path:
        """Write the network as an ONNX file (needs the extra ``onnx``)."""
        from .export.onnx_graph import write_onnx

        return write_onnx(self, Path(path), single_precision=single_precision)

    def summary(self) -> str:
        """Counts, ratios to the published bound, margins, conditioning, and which construction suits the data."""
        from .evaluation.counts import summary

        return summary(self)

    def __repr__(self) -> str:
        return (
            f"<ExactTransformer {self.construction}, {self.attention}: {len(self.data)} sequences, "
            f"{len(self.blocks)} blocks of width {self.width}>"
        )
