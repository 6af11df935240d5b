r"""The readout, solved exactly: ridge regression of increments on features for many ridges at once.

For features :math:`F` and increments :math:`D` over :math:`N` windows, :math:`B_\lambda` minimises
:math:`\|F B - D\|^2 + \lambda N\|B\|^2`. With :math:`F = QR` and :math:`R = U S V^\top` all :math:`\lambda` cost one
factorisation, and the leading columns of :math:`F` alone (a lower degree) cost a smaller one of a corner of
:math:`R`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .protocol import FloatArray

RIDGES: FloatArray = 10.0 ** np.array([-28.0, -24, -20, -17, -15, -13, -11, -9, -8, -7, -6, -5, -4, -3, -2])
BY_MODES = -1.0
"""In the place of a ridge: the readout of :func:`through_modes`."""
_ROUNDING = 1e-15
_GRAM_ROUNDING = 1e-14


def triangle(features: FloatArray, targets: FloatArray) -> FloatArray:
    r"""The triangular factor of ``[features, targets]``: all that the solution needs of the data."""
    both = np.concatenate([features, targets], axis=1)
    return np.asarray(np.linalg.qr(both, mode="r"))


def merge_triangles(triangles: Sequence[FloatArray]) -> FloatArray:
    """The factor of data stacked on top of each other."""
    stacked = np.concatenate(list(triangles), axis=0)
    return stacked if len(triangles) == 1 else np.asarray(np.linalg.qr(stacked, mode="r"))


def gram(features: FloatArray, targets: FloatArray) -> FloatArray:
    """The Gram matrix of ``[features, targets]``: cheaper than the factor, and precise enough for noisy windows."""
    both = np.concatenate([features, targets], axis=1)
    return np.asarray(both.T @ both)


def ridge_path_of_gram(products: FloatArray, size: int, outputs: int, rows: int, ridges: FloatArray) -> FloatArray:
    """As :func:`ridge_path`, from the Gram matrix; ridges below its rounding act as that."""
    values, vectors = np.linalg.eigh(products[:size, :size])
    seen = vectors.T @ products[:size, -outputs:]
    values = np.maximum(values, max(float(values[-1]), 1e-300) * _GRAM_ROUNDING)
    shrunk = 1.0 / (values + ridges[:, None] * rows)
    return np.asarray(vectors @ (shrunk[:, :, None] * seen))


def through_modes(coordinates: Sequence[FloatArray], latest: FloatArray, channels: int, outputs: int) -> FloatArray:
    r"""The readout on ``[1, latest sample, coordinates]`` that evolves a few coordinates of the window as a whole.

    With windows :math:`w_k \approx V a_k` the operator :math:`K` of :math:`a_{k+1} = K a_k` is found by least squares
    (as in higher-order DMD), and the next sample is the last block of :math:`V K a_k`. All samples of the window take
    part in :math:`K`, so it suffers less from noise than a regression on the next sample alone. ``latest`` is that
    last block of the pseudo-inverse map from coordinates to windows, ``(coordinates, channels)``.
    """
    before = np.concatenate([part[:-1] for part in coordinates])
    after = np.concatenate([part[1:] for part in coordinates])
    ones = np.ones((len(before), 1))
    operator = np.linalg.lstsq(np.concatenate([ones, before], axis=1), after, rcond=None)[0]
    readout = np.zeros((1 + channels + before.shape[1], outputs))
    readout[0] = operator[0] @ latest[:, :outputs]
    readout[1 : 1 + outputs] = -np.eye(outputs)
    readout[1 + channels :] = operator[1:] @ latest[:, :outputs]
    return readout


def ridge_path(factor: FloatArray, size: int, outputs: int, rows: int, ridges: FloatArray) -> FloatArray:
    """Readouts ``(ridges, size, outputs)`` on the first ``size`` features."""
    targets = factor[:, -outputs:]
    corner = factor[:size, :size]
    left, singular, right = np.linalg.svd(corner, full_matrices=False)
    seen = left.T @ targets[:size]
    usable = singular > max(float(singular[0]), 1e-300) * _ROUNDING
    squares = singular**2 + ridges[:, None] * rows
    shrunk = np.where(usable, singular / np.where(usable, squares, 1.0), 0.0)
    return np.asarray(right.T @ (shrunk[:, :, None] * seen))
