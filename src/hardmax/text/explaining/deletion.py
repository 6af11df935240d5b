r"""Exact effect of deleting words from a document on its logits.

A word that no other word attends to in any layer can be deleted without changing the path of the others. With masses
:math:`m_i`, the values :math:`v_i` of the decoder at the final positions and the total mass M (the resting mass
included), the logits then become

.. math:: b + \frac{\sum_j m_j v_j - m_i v_i}{M - m_i}.

All these effects come from one forward pass. Only for attended words, which are few, the document is evaluated again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from ..model.network import Network
from ..model.prediction import cpu_logits
from ..words.counts import batch


@dataclass(frozen=True, eq=False)
class Deletion:
    """One document, and its logits without some of its words."""

    network: Network
    """In double precision."""
    row: sparse.csr_matrix
    """Weighted counts of the document, shape (1, words of the model)."""
    prior_logits: np.ndarray
    """Logits of a document without any word, shape (logits,)."""

    @property
    def count(self) -> int:
        """Number of distinct words of the document."""
        return int(self.row.nnz)

    def logits(self, deleted: list[np.ndarray]) -> np.ndarray:
        """Logits without each set of words, given by their indices; shape (sets, logits)."""
        keep = np.ones((len(deleted), self.count), dtype=bool)
        for mask, some in zip(keep, deleted, strict=True):
            mask[some] = False
        sizes = keep.sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        place = np.nonzero(keep)[1]
        table = sparse.csr_matrix(
            (self.row.data[place], self.row.indices[place], starts), shape=(len(deleted), self.row.shape[1])
        )
        found, _ = cpu_logits(self.network, table)
        found[sizes == 0] = self.prior_logits
        return found

    def effects(self, deleted: np.ndarray | None = None) -> np.ndarray:
        """Logits with each word minus those without it, shape (words, logits); zero for words deleted already."""
        gone = np.zeros(self.count, dtype=bool)
        if deleted is not None:
            gone[deleted] = True
        here = np.flatnonzero(~gone)
        found = np.zeros((self.count, len(self.network.bias)))
        if len(here) == 0:
            return found
        with torch.no_grad():
            row = sparse.csr_matrix((self.row.data[here], self.row.indices[here], [0, len(here)]), shape=self.row.shape)
            documents = batch(row)
            *tensors, path = self.network.shares_and_values(documents)
        logits, shares, values = (tensor.numpy() for tensor in tensors)
        without = logits - self.network.bias.numpy()
        rest = np.maximum(1 - shares, np.finfo(float).tiny)[:, None]
        without = self.network.bias.numpy() + (without - shares[:, None] * values) / rest
        attended = np.zeros(len(here), dtype=bool)
        for choice in path.choices:
            attended[choice[choice != np.arange(len(here))]] = True
        again = np.flatnonzero(attended | (len(here) == 1))
        if len(again):
            without[again] = self.logits([np.append(np.flatnonzero(gone), here[k]) for k in again])
        found[here] = logits - without
        return found
