"""Triton kernels: fused searches and fused softmax rows. Compiled only where they can run."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec

import torch

from .canonical import pair_scores

__all__ = ["pair_scores", "usable"]


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
