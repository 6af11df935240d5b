r"""Attention as softmax at a low temperature, the way the published model was trained.

.. math:: z_i' = \frac{z_i + \alpha \sum_j p_{ij} z_j}{1+\alpha}, \qquad
          p_{ij} \propto c_j \exp\bigl(\langle z_i, z_j\rangle / T\bigr)

A word that occurs :math:`c_j` times is as many equal tokens. Documents are short here (the paper cuts them at 128
tokens), so they are laid side by side in one dense array.
"""

from __future__ import annotations

import numpy as np
import torch

from .counts import Batch


def softened(
    start: torch.Tensor, documents: Batch, alpha: torch.Tensor, *, depth: int, temperature: float
) -> torch.Tensor:
    """The words after ``depth`` softmax layers, differentiable in everything."""
    sizes = np.diff(documents.starts)
    place = torch.from_numpy(np.arange(len(documents.columns)) - documents.starts[:-1][documents.document])
    document = torch.from_numpy(documents.document)
    shape = (documents.size, int(sizes.max(initial=1)))
    words = start.new_zeros(*shape, start.shape[1]).index_put((document, place), start)
    counts = start.new_zeros(shape).index_put((document, place), torch.from_numpy(documents.damped).to(start.dtype))
    # Places without a word are never attended to; a document without any word attends to its own zeros.
    log_counts = torch.where(counts > 0, counts.clamp_min(1e-30).log(), -1e30)[:, None, :]
    for _ in range(depth):
        shares = torch.softmax(words @ words.transpose(1, 2) / temperature + log_counts, dim=2)
        words = (words + alpha * (shares @ words)) / (1 + alpha)
    return words[document, place]
