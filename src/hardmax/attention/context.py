"""What a layer may know besides the tokens: its number, a seeded generator, labels of the tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Context:
    """Place of a layer in a run, passed to :meth:`hardmax.AbstractLayer.step_at`."""

    index: int = 0
    """Number of the layer, from 0."""
    generator: torch.Generator | None = None
    """Generator seeded by ``simulate(random_state=…)``, on the CPU; None where the layer is not stochastic."""
    labels: torch.Tensor | None = None
    """Fixed label per token, shape (tokens,) or (tokens, k), from ``simulate(labels=…)``; None where there are none."""


FIRST = Context()
"""Context of a layer that is called outside a run."""
