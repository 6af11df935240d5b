r"""Attention on documents laid side by side, as softmax at a low temperature or as hardmax, on any device.

.. math:: z_i' = \frac{z_i + \alpha \sum_j p_{ij} z_j}{1+\alpha}, \qquad
          p_{ij} \propto c_j \exp\bigl(\langle z_i, z_j\rangle / T\bigr)

A word that occurs :math:`c_j` times is as many equal tokens. At :math:`T = 0` the word of the highest score takes all.
The published model was trained this way; its documents are short (128 tokens), so one dense array holds many of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

_TINY = 1e-12
_NEVER = -1e30


@dataclass(frozen=True)
class SideBySide:
    """Documents as rows of one array: the columns of their distinct words, and how often each occurs.

    Where a document is over its counts are 0.
    """

    columns: torch.Tensor
    counts: torch.Tensor

    @staticmethod
    def of(starts: np.ndarray, columns: np.ndarray, counts: np.ndarray, device: str = "cpu") -> SideBySide:
        """From the three arrays of a sparse table of rows."""
        sizes = np.diff(starts)
        row = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(columns)) - np.repeat(starts[:-1], sizes)
        width = max(int(sizes.max(initial=1)), 1)
        laid, amounts = np.zeros((len(sizes), width), dtype=np.int64), np.zeros((len(sizes), width), dtype=np.float32)
        laid[row, place], amounts[row, place] = columns, counts
        return SideBySide(torch.from_numpy(laid).to(device), torch.from_numpy(amounts).to(device))

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, rows: torch.Tensor | slice) -> SideBySide:
        """Some of the documents."""
        return SideBySide(self.columns[rows], self.counts[rows])


def settled(
    words: torch.Tensor, counts: torch.Tensor, alpha: torch.Tensor, *, depth: int, temperature: float
) -> torch.Tensor:
    """The words, shape (documents, places, d), after ``depth`` layers; differentiable in words and ``alpha``."""
    # Places without a word are never attended to; a document without any word attends to its own zeros.
    logs = torch.where(counts > 0, counts.clamp_min(_TINY).log(), _NEVER)[:, None, :]
    for _ in range(depth):
        columns = words.transpose(1, 2)
        if temperature > 0:
            shares = torch.softmax(torch.baddbmm(logs, words, columns, alpha=1 / temperature), dim=2)
            followed = shares @ words
        else:
            with torch.no_grad():
                choice = torch.where(counts[:, None, :] > 0, words @ columns, _NEVER).argmax(dim=2)
            followed = words.gather(1, choice[:, :, None].expand_as(words))
        words = (words + alpha * followed) / (1 + alpha)
    return words


def logits_of(
    parameters: dict[str, torch.Tensor],
    documents: SideBySide,
    *,
    least_alpha: float,
    depth: int,
    temperature: float,
) -> torch.Tensor:
    """Logits (documents, outputs): layers, the mean over all tokens, the decoder."""
    table = parameters["embedding"]
    words = table.index_select(0, documents.columns.reshape(-1)).view(*documents.columns.shape, table.shape[1])
    alpha = least_alpha + parameters["raw_alpha"].exp()
    final = settled(words, documents.counts, alpha, depth=depth, temperature=temperature)
    total = documents.counts.sum(dim=1).clamp_min(_TINY)
    pooled = (documents.counts[:, None, :] @ final)[:, 0] / total[:, None]
    return parameters["bias"] + pooled @ parameters["decoder"].T
