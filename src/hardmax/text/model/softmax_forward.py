r"""Attention on documents laid side by side, as softmax at a low temperature or as hardmax, on any device.

.. math:: z_i' = \frac{z_i + \alpha \sum_j p_{ij} z_j}{1+\alpha}, \qquad
          p_{ij} \propto c_j \exp\bigl(\langle z_i, z_j\rangle / T\bigr)

A word that occurs :math:`c_j` times is as many equal tokens. At :math:`T = 0` the word of the highest score takes all.
The published model was trained this way; its documents are short (128 tokens), so a dense array holds many of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .score_matrix_gradient import factor_of

_TINY = 1e-12
_NEVER = -1e30


@dataclass(frozen=True)
class SideBySide:
    """Documents as rows of one array: the columns of their distinct words, and what each counts.

    Where a document is over its counts are 0.
    """

    columns: torch.Tensor
    counts: torch.Tensor


@dataclass(frozen=True)
class Shelf:
    """Many documents one after another on a device, from which a few at a time are laid side by side."""

    starts: torch.Tensor
    columns: torch.Tensor
    counts: torch.Tensor
    sizes: np.ndarray
    """How many distinct words each has; kept off the device, so that nobody has to wait for it to answer."""

    @staticmethod
    def of(starts: np.ndarray, columns: np.ndarray, counts: np.ndarray, device: str = "cpu") -> Shelf:
        """From the three arrays of a sparse table of rows."""
        # One more entry than there are, so that the place after the last word can be looked at too.
        return Shelf(
            torch.from_numpy(np.asarray(starts, dtype=np.int64)).to(device),
            torch.from_numpy(np.append(columns, 0).astype(np.int64)).to(device),
            torch.from_numpy(np.append(counts, 0).astype(np.float32)).to(device),
            np.diff(starts),
        )

    def longest(self, rows: np.ndarray) -> int:
        """How many distinct words the longest of these documents has; at least one."""
        return max(int(self.sizes[rows].max(initial=1)), 1)

    def take(self, rows: np.ndarray) -> SideBySide:
        """Lay some of the documents side by side."""
        return self.lay(torch.from_numpy(rows).to(self.columns.device), self.longest(rows))

    def lay(self, chosen: torch.Tensor, places: int) -> SideBySide:
        """The same for rows known on the device, with so many places for the words of each."""
        place = torch.arange(places, device=self.columns.device)
        first = self.starts[chosen][:, None]
        inside = place < self.starts[chosen + 1][:, None] - first
        found = torch.where(inside, first + place, len(self.columns) - 1)
        return SideBySide(self.columns[found], self.counts[found])


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
        words = torch.lerp(words, followed, alpha / (1 + alpha))
    return words


def logits_of(
    parameters: dict[str, torch.Tensor],
    documents: SideBySide,
    *,
    least_alpha: float,
    depth: int,
    temperature: float,
    norm_masses: bool = False,
    resting_mass: float = 0.0,
) -> torch.Tensor:
    """Logits (documents, outputs): layers, the mean over all words by mass, the decoder."""
    table = parameters["embedding"]
    mass = documents.counts.to(table.dtype)
    words = table.index_select(0, documents.columns.reshape(-1)).view(*mass.shape, table.shape[1])
    alpha = least_alpha + parameters["raw_alpha"].exp()
    if "raw_factor" in parameters:
        # Layers mix positions linearly, so with A = R Rᵀ they run on z R as they do on z without it.
        factor = factor_of(parameters["raw_factor"])
        final = settled(words @ factor, mass, alpha, depth=depth, temperature=temperature)
        final = torch.linalg.solve_triangular(factor, final, upper=False, left=False)
    else:
        final = settled(words, mass, alpha, depth=depth, temperature=temperature)
    if norm_masses:
        mass = mass * (words.square().sum(dim=2) + _TINY).sqrt()
    total = (resting_mass + mass.sum(dim=1)).clamp_min(_TINY)
    pooled = (mass[:, None, :] @ final)[:, 0] / total[:, None]
    return parameters["bias"] + pooled @ parameters["decoder"].T
