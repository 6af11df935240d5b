"""A multilayer perceptron on the same delay window: scikit-learn's, trained on increments by L-BFGS."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..delays import lag_spacing
from ..protocol import FloatArray
from .tuning import SMALLEST_SCALE, LagTrial, Trial, TunedRival

_MOST_ROWS = 4000


class Perceptron(TunedRival):
    """``sklearn.neural_network.MLPRegressor`` from a few lags to the next increment.

    The lags, the width, the weight decay and the noise added to the windows are searched.
    """

    name = "MLP"

    def _trials(self, trajectories: Sequence[FloatArray], dt: float, rng: np.random.Generator) -> Iterator[Trial]:
        channels, apart = trajectories[0].shape[1], lag_spacing(trajectories)
        counts = (4, 6, 3, 8) if channels == 1 else (2, 1, 3, 4)
        for noise in (1e-3, 0.0, 1e-2):
            for width, decay in ((32, 1e-6), (64, 1e-4), (16, 1e-8)):
                for count in counts:
                    for spacing in sorted({max(1, apart // 2), apart, 1}, reverse=True):
                        yield _Network(count, spacing, width, decay, noise, self.random_state)


@dataclass
class _Network(LagTrial):
    width: int
    decay: float
    noise: float
    seed: int

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        from sklearn.neural_network import MLPRegressor

        seen, next_ones = [], []
        for z in trajectories:
            rows = len(z) - self.window
            lags = [z[k * self.spacing : k * self.spacing + rows] for k in range(self.count)]
            seen.append(np.hstack(lags))
            next_ones.append(z[self.window :])
        x, y = np.concatenate(seen), np.concatenate(next_ones)
        rng = np.random.default_rng(self.seed)
        if len(x) > _MOST_ROWS:
            kept = rng.permutation(len(x))[:_MOST_ROWS]
            x, y = x[kept], y[kept]
        x = x + self.noise * rng.standard_normal(x.shape)
        increments = y - x[:, -y.shape[1] :]
        self._scale = increments.std(axis=0) + SMALLEST_SCALE
        model = MLPRegressor(
            hidden_layer_sizes=(self.width,),
            activation="tanh",
            solver="lbfgs",
            alpha=self.decay,
            max_iter=300,
            tol=1e-9,
            random_state=self.seed,
        )
        target = increments / self._scale
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says when it has used up its iterations
            model.fit(x, target[:, 0] if target.shape[1] == 1 else target)
        self._weights, self._biases = model.coefs_, model.intercepts_
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        starts, _, channels = windows.shape
        path = np.empty((starts, self.window + steps, channels))
        path[:, : self.window] = windows[:, -self.window :]
        for k in range(steps):
            seen = path[:, k : k + self.window : self.spacing].reshape(starts, -1)
            hidden = np.tanh(seen @ self._weights[0] + self._biases[0])
            step = (hidden @ self._weights[1] + self._biases[1]) * self._scale
            path[:, self.window + k] = np.clip(path[:, self.window + k - 1] + step, -1e4, 1e4)
        return path[None, :, self.window :]
