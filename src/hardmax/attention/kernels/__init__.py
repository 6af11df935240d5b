"""Triton kernels: fused searches and fused softmax rows, compiled only where they can run; and scores of pairs."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec

import torch

# Pairs per program, one per thread of four warps.
_ROWS = 128


def usable(device: torch.device) -> bool:
    """Whether Triton kernels can run on tensors of this device.

    Setting ``HARDMAX_KERNELS=0`` turns them off, to compare with plain torch or to get around a broken installation.
    """
    return device.type == "cuda" and _triton_is_there() and _has_tensor_cores(device.index)


@lru_cache
def _triton_is_there() -> bool:
    return os.environ.get("HARDMAX_KERNELS", "1") != "0" and find_spec("triton") is not None


@lru_cache
def _has_tensor_cores(index: int | None) -> bool:
    return torch.cuda.get_device_capability(index) >= (8, 0)


def pair_scores(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Scores of paired rows on a GPU, float64, shape (pairs,); the bits of :func:`hardmax.attention.choice.score`."""
    from . import search

    left, right = left.contiguous(), right.contiguous()
    total = torch.empty(len(left), dtype=torch.float64, device=left.device)
    if len(left):
        search.pair_scores[(-(-len(left) // _ROWS),)](
            left, right, total, len(left), left.shape[1], ROWS=_ROWS, enable_fp_fusion=False
        )
    return total
