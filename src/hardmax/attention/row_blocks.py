"""Functions of each row by itself, evaluated in blocks of a fixed shape.

A matrix product of another shape may round differently. In blocks of one shape, at fixed places of the sequence, the
result of a row does not depend, to the last bit, on how many rows come after it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

# Rows per block: with 1e5 tokens the scores of a block take 100 MB.
ROWS = 128


def in_blocks(function: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
    """A function of each row by itself, evaluated block by block, shape (rows, …)."""
    return torch.cat([function(block) for block in torch.split(padded(rows), ROWS)])[: len(rows)]


def padded(rows: torch.Tensor) -> torch.Tensor:
    """Rows with zeros below, up to a multiple of the rows of a block, contiguous in memory.

    A product of rows that are stored by columns rounds differently.
    """
    missing = -len(rows) % ROWS
    return torch.cat([rows, rows.new_zeros((missing, rows.shape[1]))]) if missing else rows.contiguous()
