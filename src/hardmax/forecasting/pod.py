"""Proper orthogonal decomposition: fields as a few coefficients, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .protocol import FloatArray
from .series import as_array, as_list


@dataclass(frozen=True)
class Pod:
    """The mean field, orthonormal modes ``(rank, points)``, the shape of a field and the energy kept."""

    mean: FloatArray
    modes: FloatArray
    shape: tuple[int, ...]
    energy: float

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self.modes)

    def fields(self, argument: str, series: object) -> list[FloatArray]:
        """One record of fields or several, each checked against the shape of a field."""
        found = [as_array(argument, part) for part in as_list(series)]
        for part in found:
            if part.shape[1:] != self.shape:
                raise InputError(
                    argument, f"shape {part.shape}", f"must be (samples, *{self.shape})", "pass fields as in fit"
                )
        return found

    def reduce(self, fields: FloatArray) -> FloatArray:
        """Coefficients ``(..., rank)`` of fields ``(..., *shape)``."""
        leading = fields.shape[: fields.ndim - len(self.shape)]
        flat = fields.reshape(*leading, -1)
        return np.asarray((flat - self.mean) @ self.modes.T)

    def reconstruct(self, coefficients: FloatArray) -> FloatArray:
        """Fields ``(..., *shape)`` of coefficients ``(..., rank)``."""
        flat = coefficients @ self.modes + self.mean
        return np.asarray(flat.reshape(*coefficients.shape[:-1], *self.shape))


def fit_pod(series: object, pod: int | float) -> tuple[Pod, list[FloatArray]]:
    """Modes of the fields, as many as asked for or as hold this share of the energy, and all coefficients."""
    fields = [as_array("series", part) for part in as_list(series)]
    shapes = {part.shape[1:] for part in fields}
    if len(shapes) != 1 or fields[0].ndim < 2:
        raise InputError(
            "series", f"shapes {[part.shape for part in fields]}", "must be (samples, …) of one field", "align them"
        )
    shape = fields[0].shape[1:]
    flat = [part.reshape(len(part), -1) for part in fields]
    data = np.concatenate(flat)
    if not np.isfinite(data).all():
        raise InputError("series", "NaN or infinity", "must be finite for a decomposition", "fill the gaps first")
    mean = data.mean(axis=0)
    centred = data - mean
    if min(centred.shape) > 0 and centred.shape[1] > centred.shape[0]:
        # Method of snapshots: the smaller Gram matrix has the same spectrum.
        squares, left = np.linalg.eigh(centred @ centred.T)
        squares, left = np.maximum(squares[::-1], 0.0), left[:, ::-1]
        right = left.T @ centred
        modes = right / np.maximum(np.linalg.norm(right, axis=1, keepdims=True), 1e-300)
    else:
        squares, right = np.linalg.eigh(centred.T @ centred)
        squares, modes = np.maximum(squares[::-1], 0.0), right[:, ::-1].T
    total = float(squares.sum())
    if total <= 0:
        raise InputError("series", "fields that never change", "must vary", "there is nothing to decompose")
    rank = _rank(pod, squares, total)
    kept = Pod(mean, np.ascontiguousarray(modes[:rank]), shape, float(squares[:rank].sum() / total))
    return kept, [kept.reduce(part.reshape(len(part), *shape)) for part in fields]


def _rank(pod: int | float, squares: FloatArray, total: float) -> int:
    available = int((squares > total * 1e-14).sum())
    if isinstance(pod, (int, np.integer)) and not isinstance(pod, bool) and pod >= 1:
        return min(int(pod), available)
    if isinstance(pod, float) and 0 < pod < 1:
        return int(np.searchsorted(np.cumsum(squares) / total, pod) + 1)
    raise InputError("pod", repr(pod), "must be a rank or a share of energy below one", "pass pod=8 or pod=0.999")
