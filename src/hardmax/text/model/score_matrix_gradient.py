r"""A learned score matrix A, positive definite by construction, and its gradient.

.. math:: A = R R^\top, \qquad R \text{ lower triangular with the diagonal } e^{r_{kk}}.

Layers mix positions linearly, so they run with A exactly as without it on :math:`z R`: A adds nothing to what layers
can do, only to which length of a word counts in its mass.

Whom a word follows is a discrete choice, so the loss has no gradient in A. Training takes that of a stand-in: each word
at the mean of its document's leaders, weighted by :math:`\mathrm{softmax}_l \langle A z_i, z_l\rangle`, added in such a
way that values stay as they are.
"""

from __future__ import annotations

import numpy as np
import torch

from ..words.counts import Batch
from .hardmax_forward import Course


def factor_of(raw: torch.Tensor) -> torch.Tensor:
    """The factor R of A = R Rᵀ.

    >>> factor_of(torch.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return torch.tril(raw, -1) + torch.diag(raw.diagonal().exp())


def stand_in(start: torch.Tensor, factor: torch.Tensor, documents: Batch, path: Course) -> torch.Tensor:
    """Nothing, with a gradient in the factor: that of softmax attention to the leaders of each document."""
    leaders = np.flatnonzero(path.leaders)
    first = np.searchsorted(leaders, documents.starts)
    number = np.diff(first)[documents.document]
    word = np.repeat(np.arange(len(documents.columns)), number)
    within = np.arange(len(word)) - np.repeat(np.cumsum(number) - number, number)
    place = leaders[np.repeat(first[:-1][documents.document], number) + within]
    return with_gradient_in(factor, start, torch.from_numpy(word), torch.from_numpy(place))


def with_gradient_in(
    factor: torch.Tensor, start: torch.Tensor, asking: torch.Tensor, place: torch.Tensor
) -> torch.Tensor:
    """The same, given the place of each word that asks and beside it that of a leader whom it may follow."""
    points = start.detach()
    seen = points @ factor
    scores = (seen[asking] * seen[place]).sum(dim=1)
    top = scores.new_full((len(points),), -torch.inf).scatter_reduce(0, asking, scores.detach(), "amax")
    powers = (scores - top[asking]).exp()
    total = torch.zeros_like(top).index_add(0, asking, powers)
    mean = torch.zeros_like(points).index_add(0, asking, (powers / total[asking])[:, None] * points[place])
    return mean - mean.detach()
