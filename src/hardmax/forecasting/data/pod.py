"""Proper orthogonal decomposition (POD) of fields into a few coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..protocol import FloatArray
from .series import Gaps, as_array, as_list, fill_gaps


@dataclass(frozen=True)
class Pod:
    """Mean field (points,), orthonormal modes (rank, points), shape of a field, and share of energy in the modes.

    ``left_over`` is the root mean square residual per point, shape (points,); None in files of earlier versions.
    """

    mean: FloatArray
    modes: FloatArray
    shape: tuple[int, ...]
    energy: float
    left_over: FloatArray | None = None

    @property
    def rank(self) -> int:
        """Number of modes."""
        return len(self.modes)

    def fields(self, argument: str, series: object) -> list[FloatArray]:
        """Records of fields, each of shape (samples, *shape); other shapes are refused."""
        found = [as_array(argument, part) for part in as_list(series)]
        for part in found:
            if part.shape[1:] != self.shape:
                raise InputError(
                    argument, f"shape {part.shape}", f"must be (samples, *{self.shape})", "pass fields as in fit"
                )
        return found

    def reduce(self, fields: FloatArray) -> FloatArray:
        """Coefficients, shape (..., rank), of fields (..., *shape)."""
        leading = fields.shape[: fields.ndim - len(self.shape)]
        flat = fields.reshape(*leading, -1)
        return np.asarray((flat - self.mean) @ self.modes.T)

    def reconstruct(self, coefficients: FloatArray) -> FloatArray:
        """Fields, shape (..., *shape), of coefficients (..., rank)."""
        flat = coefficients @ self.modes + self.mean
        return np.asarray(flat.reshape(*coefficients.shape[:-1], *self.shape))

    def reconstruct_spread(self, spread: FloatArray) -> FloatArray:
        """Spread per point, shape (..., *shape), from that of the coefficients (..., rank).

        The errors of different coefficients, and the residual of the modes, are taken as uncorrelated: squares add.
        """
        squares = spread**2 @ self.modes**2
        if self.left_over is not None:
            squares = squares + self.left_over**2
        return np.asarray(np.sqrt(squares).reshape(*spread.shape[:-1], *self.shape))


def read_fields(series: object, gaps: Gaps) -> tuple[list[FloatArray], tuple[str, ...]]:
    """Records of fields, each of shape (samples, *shape), with gaps filled per point, and notes on the filling."""
    fields = [as_array("series", part) for part in as_list(series)]
    shapes = {part.shape[1:] for part in fields}
    if len(shapes) != 1 or fields[0].ndim < 2:
        raise InputError(
            "series", f"shapes {[part.shape for part in fields]}", "must be (samples, …) of one field", "align them"
        )
    notes: list[str] = []
    filled = [fill_gaps("series", part.reshape(len(part), -1), gaps, notes).reshape(part.shape) for part in fields]
    return filled, tuple(notes)


def fit_pod(series: object, pod: int | float) -> tuple[Pod, list[FloatArray]]:
    """POD of fields, with ``pod`` modes or with this share of the energy, and the coefficients per record."""
    fields, _ = read_fields(series, "refuse")
    shape = fields[0].shape[1:]
    data = np.concatenate([part.reshape(len(part), -1) for part in fields])
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
    modes = np.ascontiguousarray(modes[:rank])
    left_over = np.sqrt(((centred - (centred @ modes.T) @ modes) ** 2).mean(axis=0))
    decomposition = Pod(mean, modes, shape, float(squares[:rank].sum() / total), left_over)
    return decomposition, [decomposition.reduce(part) for part in fields]


def _rank(pod: int | float, squares: FloatArray, total: float) -> int:
    available = int((squares > total * 1e-14).sum())
    if isinstance(pod, (int, np.integer)) and not isinstance(pod, bool) and pod >= 1:
        return min(int(pod), available)
    if isinstance(pod, float) and 0 < pod < 1:
        return int(np.searchsorted(np.cumsum(squares) / total, pod) + 1)
    raise InputError("pod", repr(pod), "must be a rank or a share of energy below one", "pass pod=8 or pod=0.999")
