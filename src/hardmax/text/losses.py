"""What an answer costs, and which class it names."""

from __future__ import annotations

import torch


def losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The log loss of each document."""
    if logits.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits[:, 0], labels.to(logits.dtype), reduction="none"
        )
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none")


def winners(logits: torch.Tensor) -> torch.Tensor:
    """The number of the class that each row of logits names."""
    return (logits[:, 0] > 0).long() if logits.shape[1] == 1 else logits.argmax(dim=1)
