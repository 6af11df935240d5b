"""The state of training after an epoch, and checkpoint files from which training resumes."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from ... import tensor_files
from ...errors import FileError
from ..recipes import Recipe
from ..words.counts import LabelledDocuments

_KIND = "training checkpoint"


@dataclass
class TrainingState:
    """Progress of training, apart from the current parameters and moments."""

    epoch: int = 0
    """Number of completed epochs."""
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    """Parameters of the best epoch, by name."""
    best_score: float = -math.inf
    waited: int = 0
    """Epochs since the best one."""
    history: list[dict[str, float]] = field(default_factory=list)


class Checkpoint:
    """A file with the state of training; without a path nothing is read or written."""

    def __init__(self, path: str | os.PathLike[str] | None, fingerprint: str) -> None:
        self._path = None if path is None else Path(path).expanduser()
        self._fingerprint = fingerprint

    def resume(self, tensors: dict[str, torch.Tensor]) -> TrainingState:
        """State of an earlier run, whose tensors are copied into ``tensors``; a new state if there is no file.

        The file must belong to the same data and settings.
        """
        if self._path is None or not self._path.exists():
            return TrainingState()
        header, arrays = tensor_files.read(self._path, _KIND)
        if header.get("fingerprint") != self._fingerprint:
            raise FileError(
                self._path,
                "belongs to a training with other documents, labels or settings",
                "remove the file, or pass another checkpoint",
            )
        for name, tensor in tensors.items():
            found = tensor_files.require(self._path, arrays, f"now.{name}", tuple(tensor.shape))
            tensor.copy_(torch.from_numpy(found))
        best = {
            name.removeprefix("best."): torch.from_numpy(part)
            for name, part in arrays.items()
            if name.startswith("best.")
        }
        return TrainingState(
            epoch=tensor_files.field(self._path, header, "epoch", int),
            best=best,
            best_score=tensor_files.field(self._path, header, "best_score", float),
            waited=tensor_files.field(self._path, header, "waited", int),
            history=tensor_files.field(self._path, header, "history", list),
        )

    def save(self, tensors: dict[str, torch.Tensor], state: TrainingState) -> None:
        """Write the current tensors and the state."""
        if self._path is None:
            return
        arrays: dict[str, np.ndarray] = {f"now.{name}": part.cpu().numpy() for name, part in tensors.items()}
        arrays |= {f"best.{name}": part.cpu().numpy() for name, part in state.best.items()}
        header = {
            "fingerprint": self._fingerprint,
            "epoch": state.epoch,
            "best_score": state.best_score,
            "waited": state.waited,
            "history": state.history,
        }
        tensor_files.write(self._path, _KIND, header, arrays)


def fingerprint(parts: list[LabelledDocuments], recipe: Recipe, seed: int) -> str:
    """Hash of everything that must be equal for a checkpoint to be resumed."""
    digest = hashlib.blake2b(repr((recipe, seed, [rows.table.shape for rows in parts])).encode(), digest_size=16)
    for rows in parts:
        for part in (rows.table.data, rows.table.indices, rows.table.indptr, rows.labels, rows.weights):
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
