"""The factor of a positive definite matrix, from numbers that may be anything."""

from __future__ import annotations

import torch


def factor_of(raw: torch.Tensor) -> torch.Tensor:
    """The factor R of A = R Rᵀ.

    >>> factor_of(torch.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return torch.tril(raw, -1) + torch.diag(raw.diagonal().exp())
