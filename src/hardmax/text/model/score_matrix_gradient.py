r"""A learned score matrix A, positive definite by construction, and its surrogate gradient.

.. math:: A = R R^\top, \qquad R \text{ lower triangular with the diagonal } e^{r_{kk}}.

Layers mix positions linearly, so layers with A are layers without A on :math:`z R`. A therefore adds nothing to the
attention itself; it changes the scores relative to the lengths that enter the masses.

The attended word is a discrete choice, so the loss has no gradient in A. Training uses the gradient of a surrogate:
each word at the mean of the leaders of its document, weighted by
:math:`\mathrm{softmax}_l \langle A z_i, z_l\rangle`. The value of the surrogate is
subtracted, so that the forward pass is unchanged.
"""

from __future__ import annotations

import numpy as np
import torch

from ..words.counts import Batch
from .hardmax_forward import AttentionPath


def factor_of(raw: torch.Tensor) -> torch.Tensor:
    """The factor R of A = R Rᵀ, shape (coordinates, coordinates).

    >>> factor_of(torch.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return torch.tril(raw, -1) + torch.diag(raw.diagonal().exp())


def batch_surrogate(start: torch.Tensor, factor: torch.Tensor, documents: Batch, path: AttentionPath) -> torch.Tensor:
    """Zero-valued surrogate whose gradient is that of A, for a batch on the CPU; shape (words, coordinates)."""
    leaders = np.flatnonzero(path.leaders)
    first = np.searchsorted(leaders, documents.starts)
    number = np.diff(first)[documents.document]
    word = np.repeat(np.arange(len(documents.columns)), number)
    within = np.arange(len(word)) - np.repeat(np.cumsum(number) - number, number)
    leader = leaders[np.repeat(first[:-1][documents.document], number) + within]
    return pair_surrogate(factor, start, torch.from_numpy(word), torch.from_numpy(leader))


def pair_surrogate(factor: torch.Tensor, start: torch.Tensor, word: torch.Tensor, leader: torch.Tensor) -> torch.Tensor:
    """Zero-valued surrogate whose gradient is that of A, given all pairs of a word and a leader of its document."""
    points = start.detach()
    seen = points @ factor
    scores = (seen[word] * seen[leader]).sum(dim=1)
    top = scores.new_full((len(points),), -torch.inf).scatter_reduce(0, word, scores.detach(), "amax")
    powers = (scores - top[word]).exp()
    total = torch.zeros_like(top).index_add(0, word, powers)
    mean = torch.zeros_like(points).index_add(0, word, (powers / total[word])[:, None] * points[leader])
    return mean - mean.detach()
