"""Choice of a device for prediction and training, and a clear error if it cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from scipy import sparse

from ...errors import InputError


def is_accelerator(device: str | None) -> bool:
    """Whether ``device`` is other than the CPU, which has code of its own."""
    return device is not None and torch.device(device).type != "cpu"


def usable_device(name: str | None) -> torch.device:
    """The device of this name, the CPU by default; an InputError if tensors cannot be allocated on it."""
    try:
        torch.zeros(1, device=name or "cpu")
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(
            "device",
            repr(name),
            f"cannot be used here ({str(error).splitlines()[0]})",
            'pass "cuda" where torch has a GPU, or leave it out',
        ) from error
    return torch.device(name or "cpu")


@contextmanager
def working_on(device: torch.device, table: sparse.csr_matrix) -> Iterator[None]:
    """Make ``device`` the current one; running out of memory there becomes an InputError with the size of ``table``."""
    # Kernels and CUDA graphs use the current GPU, which need not be the requested one.
    current = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    try:
        with current:
            yield
    except torch.OutOfMemoryError as error:
        size = table.nnz * (table.indices.itemsize + table.data.itemsize) / 1e9
        raise InputError(
            "device",
            repr(str(device)),
            f"has too little memory for these documents, which take {size:.2g} GB, and for the computation",
            "leave it out to work on the CPU, or pass a smaller batch_size, fewer words (max_words) or fewer documents",
        ) from error
