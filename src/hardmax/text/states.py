"""What training has come to: all that it needs to go on after an interruption."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch


@dataclass
class State:
    """Everything that training needs to go on after an interruption."""

    epoch: int = 0
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    best_score: float = -math.inf
    waited: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
