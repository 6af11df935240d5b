"""Delay windows of trajectories, and linear coordinates of such windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..protocol import FloatArray


def flat_windows(trajectory: FloatArray, length: int) -> FloatArray:
    """Windows that have a successor, shape (samples - length, length * channels), oldest sample first; a view.

    Row ``k`` holds samples ``k … k+length-1``; the sample that follows it is ``trajectory[length + k]``.
    """
    flat = np.ascontiguousarray(trajectory).reshape(-1)
    channels = trajectory.shape[1]
    rows = max(0, len(trajectory) - length)
    if rows == 0:
        return np.empty((0, length * channels))
    views = np.lib.stride_tricks.sliding_window_view(flat, length * channels)[::channels]
    return np.asarray(views[:rows])


@dataclass(frozen=True)
class Embedding:
    """Linear coordinates of a window: chosen lags, or a projection of its last samples.

    ``columns`` are positions in the flattened window counted from its end (negative), so that one embedding serves
    windows of any sufficient length; ``matrix`` projects them, or is None.
    """

    window: int
    columns: npt.NDArray[np.int64]
    matrix: FloatArray | None = None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.columns) if self.matrix is None else self.matrix.shape[1]

    def __call__(self, flat: FloatArray) -> FloatArray:
        """Coordinates of each row, shape (rows, size)."""
        if self.matrix is None:
            return np.asarray(flat[:, self.columns])
        return np.asarray(flat[:, self.columns[0] :] @ self.matrix)


def lags(channels: int, count: int, spacing: int = 1) -> Embedding:
    """Embedding by ``count`` lags, ``spacing`` samples apart, the latest last."""
    starts = -channels * (1 + spacing * np.arange(count)[::-1])
    columns = (starts[:, None] + np.arange(channels)).reshape(-1)
    return Embedding((count - 1) * spacing + 1, columns.astype(np.int64))


def principal(trajectories: Sequence[FloatArray], length: int, rank: int) -> Embedding:
    """Embedding by the leading ``rank`` right singular vectors of the windows of ``length`` samples, scaled alike.

    These are the coordinates of singular spectrum analysis, which average noise over the window.
    """
    channels = trajectories[0].shape[1]
    rows = [flat_windows(z, length) for z in trajectories]
    gram = sum(np.asarray(r.T @ r) for r in rows)
    count = sum(len(r) for r in rows)
    values, vectors = np.linalg.eigh(gram)
    leading = vectors[:, ::-1][:, :rank]
    scale = np.sqrt(max(float(values[-1]), 1e-300) / max(count, 1))
    columns = np.arange(-length * channels, 0)
    return Embedding(length, columns, np.ascontiguousarray(leading) * (np.sqrt(2.0) / scale))


def autocorrelation_time(signal: FloatArray) -> int:
    """First lag, in samples, at which the autocorrelation falls below 1/e."""
    centred = signal - signal.mean()
    count = len(centred)
    power = np.abs(np.fft.rfft(centred, 2 * count)) ** 2
    correlation = np.fft.irfft(power)[: max(2, count // 2)]
    if correlation[0] <= 0:
        return 1
    below = np.flatnonzero(correlation < correlation[0] / np.e)
    return int(below[0]) if len(below) else max(1, count // 10)


def information_time(signal: FloatArray, longest: int = 80, bins: int = 16) -> int:
    """First minimum, in samples, of the average mutual information between the signal and the delayed signal."""
    longest = min(longest, len(signal) // 4)
    if longest < 6:
        return max(1, longest)
    edges = np.quantile(signal, np.linspace(0, 1, bins + 1)[1:-1])
    cells = np.searchsorted(edges, signal)
    information = []
    for lag in range(1, longest):
        joint = np.bincount(cells[:-lag] * bins + cells[lag:], minlength=bins * bins).reshape(bins, bins)
        share = joint / joint.sum()
        independent = np.outer(share.sum(1), share.sum(0))
        seen = share > 0
        information.append(float((share[seen] * np.log(share[seen] / independent[seen])).sum()))
    smooth = np.convolve(information, np.ones(5) / 5, "valid")
    rises = np.flatnonzero(np.diff(smooth) > 0)
    return int(rises[0]) + 3 if len(rises) else longest


def lag_spacing(trajectories: Sequence[FloatArray]) -> int:
    """Spacing of lags from the time scale of the data.

    The smaller of the 1/e autocorrelation time and the first minimum of the average mutual information, as the median
    over the channels of the longest trajectory, between 1 and 30 samples.

    Parameters
    ----------
    trajectories
        Arrays (samples, channels).

    Returns
    -------
    int
        Spacing in samples.
    """
    record = max(trajectories, key=len)
    times = [min(autocorrelation_time(record[:, j]), information_time(record[:, j])) for j in range(record.shape[1])]
    return int(np.clip(round(float(np.median(times))), 1, 30))
