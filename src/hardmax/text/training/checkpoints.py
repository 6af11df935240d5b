"""The state of training, and checkpoints from which training resumes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import torch

from ...errors import FileError
from ...tensor_files import field, read, require, write
from ..recipes import Recipe
from .state import Rows, State

_KIND = "training checkpoint"


class Checkpoint:
    """A file that holds the training so far; does nothing without a path."""

    def __init__(self, path: str | os.PathLike[str] | None, fingerprint: str) -> None:
        self._path = None if path is None else Path(path).expanduser()
        self._fingerprint = fingerprint

    def resume(self, tensors: dict[str, torch.Tensor]) -> State:
        """Fill the tensors with what an earlier run left, if there is one on the same data with the same settings."""
        if self._path is None or not self._path.exists():
            return State()
        header, arrays = read(self._path, _KIND)
        if header.get("fingerprint") != self._fingerprint:
            raise FileError(
                self._path,
                "belongs to a training with other documents, labels or settings",
                "remove the file, or pass another checkpoint",
            )
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(require(self._path, arrays, f"now.{name}", tuple(tensor.shape))))
        best = {
            name.removeprefix("best."): torch.from_numpy(part)
            for name, part in arrays.items()
            if name.startswith("best.")
        }
        return State(
            epoch=field(self._path, header, "epoch", int),
            best=best,
            best_score=field(self._path, header, "best_score", float),
            waited=field(self._path, header, "waited", int),
            history=field(self._path, header, "history", list),
        )

    def keep(self, tensors: dict[str, torch.Tensor], state: State) -> None:
        """Write everything down."""
        if self._path is None:
            return
        arrays: dict[str, np.ndarray] = {f"now.{name}": part.cpu().numpy() for name, part in tensors.items()}
        arrays |= {f"best.{name}": part.cpu().numpy() for name, part in state.best.items()}
        recipe = {
            "fingerprint": self._fingerprint,
            "epoch": state.epoch,
            "best_score": state.best_score,
            "waited": state.waited,
            "history": state.history,
        }
        write(self._path, _KIND, recipe, arrays)


def fingerprint(parts: list[Rows], recipe: Recipe, seed: int) -> str:
    """What must be the same for a checkpoint to be taken up again."""
    digest = hashlib.blake2b(repr((recipe, seed, [rows.table.shape for rows in parts])).encode(), digest_size=16)
    for rows in parts:
        for part in (rows.table.data, rows.table.indices, rows.table.indptr, rows.labels, rows.weights):
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
