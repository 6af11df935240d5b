"""Documents on a device, and the batches that are made of them: flat, padded, or flat for several steps at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from scipy import sparse


@dataclass(frozen=True)
class FlatBatch:
    """Documents on a device, their distinct words one after another.

    Filler words, which round up the length of the arrays, belong to the document ``size``: their weight is zero and
    their ``begin`` equals their ``end``.
    """

    columns: torch.Tensor
    """Column of each word in the embedding, shape (words,)."""
    term_weights: torch.Tensor
    """Weighted count of each word, shape (words,)."""
    document: torch.Tensor
    """Document of each word, shape (words,)."""
    begin: torch.Tensor
    """Index of the first word of the document of each word, shape (words,)."""
    end: torch.Tensor
    """Index after the last word of the document of each word, shape (words,)."""
    size: int
    """Number of documents."""

    @staticmethod
    def of(table: sparse.csr_matrix, device: torch.device, dtype: torch.dtype) -> FlatBatch:
        """All documents of a table of weighted counts."""
        starts = torch.from_numpy(table.indptr.astype(np.int32)).to(device)
        sizes = torch.from_numpy(np.diff(table.indptr).astype(np.int64)).to(device)
        documents = torch.arange(table.shape[0], device=device)
        document = torch.repeat_interleave(documents, sizes, output_size=table.nnz)
        return FlatBatch(
            torch.from_numpy(table.indices.astype(np.int64)).to(device),
            torch.from_numpy(table.data).to(device, dtype),
            document,
            starts[document],
            starts[document + 1],
            table.shape[0],
        )


@dataclass(frozen=True)
class PaddedBatch:
    """Documents on a device as rows of one array; the weights of padding are zero."""

    columns: torch.Tensor
    """Column of each distinct word in the embedding, shape (documents, places)."""
    term_weights: torch.Tensor
    """Weighted count of each word, shape (documents, places)."""


@dataclass(frozen=True)
class DeviceDocuments:
    """Labelled documents on a device, as the arrays of a sparse table; at least one has a word."""

    starts: torch.Tensor
    """Index of the first word of each document, and the number of words, shape (documents + 1,)."""
    columns: torch.Tensor
    term_weights: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor
    """Sample weight of each document, shape (documents,)."""
    sizes: np.ndarray
    """Number of distinct words of each document, on the CPU, so that reading it needs no synchronisation."""

    @staticmethod
    def of(
        table: sparse.csr_matrix, labels: np.ndarray, weights: np.ndarray, device: torch.device, dtype: torch.dtype
    ) -> DeviceDocuments:
        """The documents of a table of weighted counts, with the indices of their classes."""
        starts = table.indptr.astype(np.int64)
        return DeviceDocuments(
            torch.from_numpy(starts).to(device),
            torch.from_numpy(table.indices.astype(np.int32, copy=False)).to(device),
            torch.from_numpy(table.data).to(device, dtype),
            torch.from_numpy(labels).to(device),
            torch.from_numpy(weights).to(device, dtype),
            np.diff(starts),
        )

    def longest(self, rows: np.ndarray) -> int:
        """Number of distinct words in the longest of these documents; at least one."""
        return max(int(self.sizes[rows].max(initial=1)), 1)

    def padded(self, rows: torch.Tensor, places: int) -> PaddedBatch:
        """The documents at ``rows``, padded to ``places`` words each; needs no synchronisation."""
        place = torch.arange(places, device=self.columns.device)
        first = self.starts[rows][:, None]
        inside = place < self.starts[rows + 1][:, None] - first
        entry = torch.where(inside, first + place, 0)
        return PaddedBatch(
            torch.where(inside, self.columns[entry], 0).long(), torch.where(inside, self.term_weights[entry], 0)
        )

    def padded_to_longest(self, rows: np.ndarray) -> PaddedBatch:
        """The documents at ``rows``, padded to the longest of them."""
        return self.padded(torch.from_numpy(rows).to(self.columns.device), self.longest(rows))


@dataclass(frozen=True)
class StepBatches:
    """Flat batches of several training steps, one row each, filled to the same number of words and of documents."""

    columns: torch.Tensor
    """Shape (steps, words), like ``term_weights`` and ``document``."""
    term_weights: torch.Tensor
    document: torch.Tensor
    starts: torch.Tensor
    """Index of the first word of each document; the last two entries of a row are its number of words."""
    labels: torch.Tensor
    """Shape (steps, documents), like ``weights``."""
    weights: torch.Tensor
    """Sample weights; zero for filler documents."""
    documents: torch.Tensor
    """Number of documents of each step without fillers, shape (steps,)."""

    def copy_(self, other: StepBatches) -> None:
        """Copy the contents of another value of the same shape in place."""
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(other, field.name))

    def at(self, step: torch.Tensor) -> FlatBatch:
        """The batch of one step, whose index is a tensor with one entry."""
        document, starts = self.document.index_select(0, step)[0], self.starts.index_select(0, step)[0]
        return FlatBatch(
            self.columns.index_select(0, step)[0],
            self.term_weights.index_select(0, step)[0],
            document,
            starts.index_select(0, document),
            starts.index_select(0, document + 1),
            self.labels.shape[1],
        )


def step_batches(
    documents: DeviceDocuments,
    order: np.ndarray,
    size: int,
    draws: np.ndarray | None = None,
    rates: torch.Tensor | None = None,
    *,
    steps: int,
    multiple: int = 1,
) -> StepBatches:
    """Batches of ``size`` documents each, in the given order, for at most ``steps`` steps.

    ``draws`` holds a uniform number for each word of these documents; a word is dropped if its number is below the
    dropout rate of its document. The number of words is rounded up to a ``multiple``, so that few shapes occur.
    Synchronises with the device twice.
    """
    device = documents.starts.device
    chosen = torch.from_numpy(order).to(device)
    sizes = documents.starts[chosen + 1] - documents.starts[chosen]
    total = int(documents.sizes[order].sum())
    number = torch.repeat_interleave(torch.arange(len(order), device=device), sizes, output_size=total)
    shift = documents.starts[chosen] - (torch.cumsum(sizes, dim=0) - sizes)
    entry = torch.arange(total, device=device) + shift[number]
    if draws is not None:
        assert rates is not None  # noqa: S101 (draws come with rates)
        kept = (torch.from_numpy(draws).to(device) >= rates[chosen][number]).nonzero()[:, 0]
        number, entry = number[kept], entry[kept]
    # First index of each document among the remaining words; filler documents have no words.
    border = torch.searchsorted(number, torch.arange(steps * size + 1, device=device))
    step_starts, step_stops = border[:-1:size], border[size::size]
    width = int((step_stops - step_starts).max())
    width = max(-(-width // multiple) * multiple, 1)
    words = documents.columns[entry].long()
    # Filler words repeat the last word of their step: it is updated anyway, and they add zero to its gradient.
    last = words[(step_stops - 1).clamp_min(0)] if len(words) else border.new_zeros(steps)
    columns = last[:, None].repeat(1, width)
    term_weights = documents.term_weights.new_zeros(steps, width)
    document = border.new_full((steps, width), size)
    place = number // size * width + torch.arange(len(number), device=device) - step_starts[number // size]
    columns.view(-1)[place] = words
    term_weights.view(-1)[place] = documents.term_weights[entry]
    document.view(-1)[place] = number % size
    starts = (border[:-1].view(steps, size) - step_starts[:, None]).int()
    ends = (step_stops - step_starts).int()[:, None]
    labels, weights = documents.labels.new_zeros(steps * size), documents.weights.new_zeros(steps * size)
    labels[: len(order)], weights[: len(order)] = documents.labels[chosen], documents.weights[chosen]
    real = np.clip(len(order) - size * np.arange(steps), 0, size)
    return StepBatches(
        columns,
        term_weights,
        document,
        torch.cat([starts, ends, ends], dim=1),
        labels.view(steps, size),
        weights.view(steps, size),
        torch.from_numpy(real).to(device),
    )
