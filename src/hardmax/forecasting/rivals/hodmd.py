"""Higher-order dynamic mode decomposition by PyDMD, made to forecast from any window."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Self

import numpy as np

from ..protocol import FloatArray
from .packages import rival_package
from .tuning import OneReadout, Trial, TunedRival

_PURPOSE = "higher-order DMD"
_WIDEST = 600
"""Rows of the delay matrix beyond which its decomposition takes too long."""


class HigherOrderDMD(TunedRival):
    """PyDMD's ``HODMD``: the number of delays and the rank are searched.

    PyDMD fits one trajectory; of several it gets the longest. Its default ``svd_rank_extra=0`` drops coordinates
    without a word, so -1 is passed.
    """

    name = "HODMD (PyDMD)"

    def _trials(self, trajectories: Sequence[FloatArray], dt: float, rng: np.random.Generator) -> Iterator[Trial]:
        package = _pydmd()
        channels = trajectories[0].shape[1]
        for rank in (0, -1, 0.999999, 0.9999, 8, 0.99, 4, 12):
            for delays in (20, 60, 8, 120, 40, 180, 3):
                if delays * channels <= _WIDEST:
                    yield _Hodmd(package, delays, rank)


def _pydmd() -> ModuleType:
    rival_package("pydmd.utils", _PURPOSE)
    return rival_package("pydmd", _PURPOSE)


@dataclass
class _Hodmd(OneReadout):
    package: ModuleType
    window: int
    rank: float

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        record = max(trajectories, key=len)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of conditions, and of settings it does not use
            model = self.package.HODMD(svd_rank=self.rank, d=self.window, svd_rank_extra=-1)
            model.fit(record.T)
            # PyDMD's modes are in coordinates turned by the left singular vectors of the snapshots.
            self._turn = np.asarray(self.package.utils.compute_svd(record.T, -1)[0])
        self._modes, self._eigenvalues = np.asarray(model.modes), np.asarray(model.eigs)
        self._amplitudes = np.linalg.pinv(self._modes)
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        starts, _, channels = windows.shape
        seen = (windows[:, -self.window :] @ self._turn).reshape(starts, -1)
        amplitudes = seen @ self._amplitudes.T
        latest = self._modes[-channels:]
        ahead = np.empty((1, starts, steps, channels))
        for k in range(steps):
            amplitudes = amplitudes * self._eigenvalues
            ahead[0, :, k] = (amplitudes @ latest.T).real @ self._turn.T
        return ahead
