"""What a layer is told about the run that it is part of: its index, a random generator, labels of the tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Context:
    """Place of a layer in a run, passed to ``step_at`` by :func:`hardmax.simulate`."""

    index: int = 0
    """Number of the layer in the run, from 0."""
    generator: torch.Generator | None = None
    """Generator on the CPU, seeded by ``random_state``; None where the run has no random numbers."""
    labels: torch.Tensor | None = None
    """Fixed label per token, shape (tokens,) or (tokens, k); None where there are none."""


FIRST = Context()
"""Context of a layer that is called alone."""
