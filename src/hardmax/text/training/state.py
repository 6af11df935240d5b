"""Training data as rows, and the state of training that a checkpoint stores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy import sparse


@dataclass
class Rows:
    """Documents with what is known of them; ``labels`` are numbers of classes."""

    table: sparse.csr_matrix
    labels: np.ndarray
    weights: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """Only these documents."""
        return Rows(self.table[rows], self.labels[rows], self.weights[rows])


@dataclass
class State:
    """Everything that training needs to go on after an interruption."""

    epoch: int = 0
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    best_score: float = -math.inf
    waited: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
