"""Canonical scores on a GPU in one launch, see :func:`hardmax.attention.choice.score`."""

from __future__ import annotations

import torch

# Pairs per program, one per thread of four warps.
_ROWS = 128


def pair_scores(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The scores of paired rows as float64, with products and sums rounded one by one in order."""
    from . import search

    left, right = left.contiguous(), right.contiguous()
    total = torch.empty(len(left), dtype=torch.float64, device=left.device)
    if len(left):
        search.pair_scores[(-(-len(left) // _ROWS),)](
            left, right, total, len(left), left.shape[1], ROWS=_ROWS, enable_fp_fusion=False
        )
    return total
