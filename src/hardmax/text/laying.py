"""Documents on a device as sparse rows, and the batches of many steps laid out there at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from scipy import sparse

from .segments import Pile


@dataclass(frozen=True)
class DeviceRows:
    """Documents one after another on a device; how many words each has is known off it too."""

    starts: torch.Tensor
    columns: torch.Tensor
    damped: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor
    sizes: np.ndarray

    @staticmethod
    def of(
        table: sparse.csr_matrix, labels: np.ndarray, weights: np.ndarray, device: torch.device, dtype: torch.dtype
    ) -> DeviceRows:
        """The documents of a table that holds what counts weigh, with the numbers of their classes."""
        starts = table.indptr.astype(np.int64)
        return DeviceRows(
            torch.from_numpy(starts).to(device),
            torch.from_numpy(table.indices.astype(np.int32, copy=False)).to(device),
            torch.from_numpy(table.data).to(device, dtype),
            torch.from_numpy(labels).to(device),
            torch.from_numpy(weights).to(device, dtype),
            np.diff(starts),
        )

    def pile(self, first: int, stop: int) -> Pile:
        """The documents from one to another, as they lie."""
        own = slice(*self.starts[[first, stop]].tolist())
        starts = (self.starts[first : stop + 1] - own.start).int()
        sizes = torch.from_numpy(self.sizes[first:stop]).to(self.starts.device)
        document = torch.repeat_interleave(
            torch.arange(stop - first, device=sizes.device), sizes, output_size=own.stop - own.start
        )
        return Pile(
            self.columns[own].long(), self.damped[own], document, starts[document], starts[document + 1], stop - first
        )


@dataclass(frozen=True)
class Laid:
    """The documents of several steps, a row for each, filled up to the same number of words and of documents."""

    columns: torch.Tensor
    damped: torch.Tensor
    document: torch.Tensor
    starts: torch.Tensor
    """Where each document of a step begins; the last two entries are where its words end."""
    labels: torch.Tensor
    weights: torch.Tensor
    """0 for documents that are none."""
    documents: torch.Tensor
    """How many documents a step really has."""

    def copy_(self, other: Laid) -> None:
        """Take over everything that another of the same shape holds."""
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(other, field.name))

    def pile(self, now: torch.Tensor) -> Pile:
        """The words of the step of this number, a tensor of one entry."""
        document, starts = self.document.index_select(0, now)[0], self.starts.index_select(0, now)[0]
        return Pile(
            self.columns.index_select(0, now)[0],
            self.damped.index_select(0, now)[0],
            document,
            starts.index_select(0, document),
            starts.index_select(0, document + 1),
            self.labels.shape[1],
        )


def laid(
    rows: DeviceRows,
    order: np.ndarray,
    size: int,
    draws: np.ndarray | None = None,
    rates: torch.Tensor | None = None,
    *,
    steps: int,
    multiple: int = 1,
) -> Laid:
    """The documents ``order``, ``size`` to a step, for at most so many ``steps``.

    With ``draws``, a number for each of their words, only words stay whose number is at least the rate of their
    document. The number of words is rounded up to a ``multiple``, so that few shapes occur. Waits for the device twice.
    """
    device = rows.starts.device
    chosen = torch.from_numpy(order).to(device)
    sizes = rows.starts[chosen + 1] - rows.starts[chosen]
    total = int(rows.sizes[order].sum())
    number = torch.repeat_interleave(torch.arange(len(order), device=device), sizes, output_size=total)
    entry = torch.arange(total, device=device) + (rows.starts[chosen] - (torch.cumsum(sizes, dim=0) - sizes))[number]
    if draws is not None:
        assert rates is not None  # noqa: S101 (there is one for every draw)
        kept = (torch.from_numpy(draws).to(device) >= rates[chosen][number]).nonzero()[:, 0]
        number, entry = number[kept], entry[kept]
    # Where each document begins among all words that stay; documents that are none have no words.
    border = torch.searchsorted(number, torch.arange(steps * size + 1, device=device))
    step_starts, step_stops = border[:-1:size], border[size::size]
    width = int((step_stops - step_starts).max())
    width = max(-(-width // multiple) * multiple, 1)
    words = rows.columns[entry].long()
    # Places without a word repeat the last word of their step: it moves anyway, and they add nothing to its gradient.
    last = words[(step_stops - 1).clamp_min(0)] if len(words) else border.new_zeros(steps)
    columns = last[:, None].repeat(1, width)
    damped = rows.damped.new_zeros(steps, width)
    document = border.new_full((steps, width), size)
    place = number // size * width + torch.arange(len(number), device=device) - step_starts[number // size]
    columns.view(-1)[place] = words
    damped.view(-1)[place] = rows.damped[entry]
    document.view(-1)[place] = number % size
    starts = (border[:-1].view(steps, size) - step_starts[:, None]).int()
    ends = (step_stops - step_starts).int()[:, None]
    labels, weights = rows.labels.new_zeros(steps * size), rows.weights.new_zeros(steps * size)
    labels[: len(order)], weights[: len(order)] = rows.labels[chosen], rows.weights[chosen]
    real = np.clip(len(order) - size * np.arange(steps), 0, size)
    return Laid(
        columns,
        damped,
        document,
        torch.cat([starts, ends, ends], dim=1),
        labels.view(steps, size),
        weights.view(steps, size),
        torch.from_numpy(real).to(device),
    )
