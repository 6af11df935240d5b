"""The public network: a compiled network with the functions that evaluate, prove, save and export it as methods."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from ..progress import Progress
from .evaluation.certificate import Certificate, certify
from .evaluation.counts import Counts, count_blocks, summary
from .evaluation.running import Fractions, predict, run
from .export.files import load, save
from .export.onnx_graph import write_onnx
from .export.torch_module import TorchTransformer
from .network import CompiledNetwork

if TYPE_CHECKING:
    import torch

    from ..shapes import Array


@dataclass(frozen=True, repr=False)
class ExactTransformer(CompiledNetwork):
    """Transformer with rational weights that maps every input set of its data exactly to its output set.

    Returned by :func:`hardmax.interpolate`, :func:`hardmax.classify_exactly` and :meth:`load`.
    """

    @cached_property
    def counts(self) -> Counts:
        """Numbers of blocks and parameters, with the formula, the published bound and the lower bounds."""
        return count_blocks(self)

    def certify(self, *, workers: int = 1, progress: Progress = None) -> Certificate:
        """Certificate, proved in exact arithmetic, that the network maps every input of the data to its output.

        Parameters
        ----------
        workers
            Number of processes that share the sequences.
        progress
            True, False, None (a bar when the work turns out to be long), or a function called as
            ``progress(stage, done, total)``.

        Returns
        -------
        Certificate
            True in a boolean context when everything was proved; otherwise it lists the sequences that fail.
        """
        return certify(self, workers=workers, progress=progress)

    def to_torch(self, dtype: torch.dtype | None = None) -> TorchTransformer:
        """Network with the same weights, rounded, as a trainable ``torch.nn.Module``.

        Parameters
        ----------
        dtype
            ``torch.float64`` (default) or ``torch.float32``.

        Returns
        -------
        TorchTransformer
            Module for batches of sequences, on any device, with gradients.
        """
        return TorchTransformer.from_network(self, dtype)

    @overload
    def __call__(self, tokens: object, *, exact: Literal[False] = False) -> Array | list[Array]: ...

    @overload
    def __call__(self, tokens: object, *, exact: Literal[True]) -> Fractions | list[Fractions]: ...

    def __call__(self, tokens: object, *, exact: bool = False) -> Array | list[Array] | Fractions | list[Fractions]:
        """Output of every token, shape (tokens, d) per sequence, computed exactly and rounded once at the end.

        Parameters
        ----------
        tokens
            One sequence, shape (tokens, d), or several: an array of shape (sequences, tokens, d) or a list of sequences
            of any lengths. A token that is repeated in a sequence counts once, as in the data.
        exact
            Return tuples of Fractions instead of floats.

        Returns
        -------
        array or list
            NumPy arrays for NumPy arrays and lists, tensors for tensors; a list where several sequences were passed as
            a list. For gradients, batches on a GPU or training, use :meth:`to_torch`.

        Examples
        --------
        >>> from hardmax import interpolate
        >>> net = interpolate([[[0, 0], [1, 0]], [[0, 0], [0, 1]]], [[["1/3", 1]], [[2, 2]]])
        >>> net([[0, 0], [0, 1]])
        array([[2., 2.],
               [2., 2.]])
        >>> net([[0, 0], [1, 0]], exact=True)
        [(Fraction(1, 3), Fraction(1, 1)), (Fraction(1, 3), Fraction(1, 1))]
        """
        return run(self, tokens, exact=exact)

    def predict(self, inputs: object) -> list[object]:
        """Class label of each sequence: that of the target nearest to its exact output (classification only).

        Parameters
        ----------
        inputs
            Sequences of tokens, each of shape (tokens, d).

        Returns
        -------
        list
            One label per sequence.
        """
        return predict(self, inputs)

    def save(self, path: str | Path) -> Path:
        """Folder to which ``network.json`` (exact weights) and ``network.safetensors`` (float64) were written.

        Parameters
        ----------
        path
            Folder; it is created where it does not exist.

        Returns
        -------
        Path
            The folder.
        """
        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> ExactTransformer:
        """Network read from files; its claims are not checked here but by :func:`hardmax.verify`.

        Parameters
        ----------
        path
            Folder written by :meth:`save`, or its ``network.json``.

        Returns
        -------
        ExactTransformer
            Network with the saved weights, data and report.
        """
        saved = load(Path(path))
        return cls(**{field.name: getattr(saved, field.name) for field in fields(saved)})

    def to_onnx(self, path: str | Path, *, single_precision: bool = False) -> Path:
        """File to which the network was written as an ONNX graph (needs the extra ``onnx``).

        Parameters
        ----------
        path
            File to write.
        single_precision
            Weights in float32 instead of float64.

        Returns
        -------
        Path
            The file. The graph has inputs ``tokens`` of shape (batch, tokens, d) and ``mask`` of shape (batch, tokens),
            and the output ``moved`` of shape (batch, tokens, d).
        """
        return write_onnx(self, Path(path), single_precision=single_precision)

    def summary(self) -> str:
        """Text with counts, ratios to the published bound, conditioning, and the construction that suits the data.

        Returns
        -------
        str
            Several lines, one quantity per line.
        """
        return summary(self)
