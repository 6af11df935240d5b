"""Echo state network by reservoirpy, with many readouts solved and rolled out at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..protocol import FloatArray
from .tuning import Trial, TunedBaseline, baseline_package

UNITS = 300
"""Units of the reservoir: as many as the largest reservoirs of the time-delayed transformer."""
_WARM_UP = 100
"""States after rest that are not fitted, because they depend on the initial state."""
# Ridge parameters that are tried, over ten orders of magnitude.
_RIDGES = tuple(10.0**k for k in (-13, -11, -9, -8, -7, -6, -5, -4, -3))
_CENTRE = ((0.9, 0.4, 1.0, 1e-3), (0.4, 0.4, 1.0, 1e-3), (0.9, 0.1, 0.3, 1e-3), (1.2, 1.0, 0.3, 1e-2))
"""Usual settings, which are tried first: spectral radius, input scaling, leak and noise."""


class EchoState(TunedBaseline):
    """Echo state network: reservoirpy's ``Reservoir`` of 300 leaky tanh units with a ridge readout.

    Spectral radius, input scaling, leak, the noise added to the training inputs and the ridge are tuned: four usual
    settings first, random ones after.

    Parameters
    ----------
    seconds
        Budget of processor time for tuning; the setting in progress is finished.
    horizon
        Number of steps of the validation rollouts; None takes that of the time-delayed transformer.
    random_state
        Seed of the random numbers.
    """

    name = "ESN (reservoirpy)"

    def _trials(self, trajectories: Sequence[FloatArray], dt: float, rng: np.random.Generator) -> Iterator[Trial]:
        channels = trajectories[0].shape[1]
        window = min(150, max(2, min(len(z) for z in trajectories) // 4))
        for radius, scaling, leak, noise in _CENTRE:
            yield _reservoir(channels, radius, scaling, leak, noise, window, self.random_state)
        while True:
            radius, leak = rng.uniform(0.1, 1.4), rng.uniform(0.1, 1.0)
            scaling, noise = 10 ** rng.uniform(-1.5, 0.3), rng.choice([0.0, 1e-4, 1e-3, 1e-2])
            yield _reservoir(channels, radius, scaling, leak, float(noise), window, self.random_state)


def _reservoir(
    channels: int, radius: float, scaling: float, leak: float, noise: float, window: int, seed: int
) -> _Echo:
    node = baseline_package("reservoirpy.nodes", "the echo state network").Reservoir(
        UNITS,
        lr=leak,
        sr=radius,
        input_scaling=scaling,
        rc_connectivity=0.1,
        input_connectivity=1.0,
        bias=1.0,
        seed=seed,
    )
    node.initialize(np.zeros((2, channels)))
    bias = np.broadcast_to(_dense(node.bias).reshape(-1), (UNITS,))
    return _Echo(_dense(node.W).T.copy(), _dense(node.Win).T.copy(), bias, leak, noise, window, seed, _RIDGES)


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.todense() if hasattr(matrix, "todense") else matrix, dtype=np.float64)


@dataclass
class _Echo:
    recurrent: FloatArray
    inputs: FloatArray
    bias: FloatArray
    leak: float
    noise: float
    window: int
    seed: int
    ridges: tuple[float, ...]

    def only(self, readout: int) -> Self:
        return replace(self, ridges=(self.ridges[readout],))

    def step(self, state: FloatArray, sample: FloatArray) -> FloatArray:
        """States of the reservoir after one more sample, shape (rows, units)."""
        drive = np.tanh(state @ self.recurrent + sample @ self.inputs + self.bias)
        return np.asarray((1 - self.leak) * state + self.leak * drive)

    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        rng = np.random.default_rng(self.seed)
        gram = np.zeros((UNITS + 1, UNITS + 1))
        cross = np.zeros((UNITS + 1, trajectories[0].shape[1]))
        rows = 0
        for z in trajectories:
            noisy = z[:-1] + self.noise * rng.standard_normal(z[:-1].shape)
            states = np.empty((len(noisy), UNITS + 1))
            states[:, 0] = 1.0
            drive, state = noisy @ self.inputs + self.bias, np.zeros(UNITS)
            for k in range(len(noisy)):
                state = (1 - self.leak) * state + self.leak * np.tanh(state @ self.recurrent + drive[k])
                states[k, 1:] = state
            skip = min(_WARM_UP, len(noisy) // 5)
            gram += states[skip:].T @ states[skip:]
            cross += states[skip:].T @ z[1 + skip :]
            rows += len(noisy) - skip
        values, vectors = np.linalg.eigh(gram / rows)
        rotated = vectors.T @ (cross / rows)
        self._readouts = np.stack([vectors @ (rotated / (np.maximum(values, 0) + r)[:, None]) for r in self.ridges])
        return self

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        starts, _, channels = windows.shape
        state = np.zeros((starts, UNITS))
        for sample in np.moveaxis(windows[:, -self.window :], 1, 0):
            state = self.step(state, sample)
        copies = len(self._readouts)
        states = np.tile(state, (copies, 1, 1))
        ahead = np.empty((copies, starts, steps, channels))
        for k in range(steps):
            ahead[:, :, k] = np.clip(states @ self._readouts[:, 1:] + self._readouts[:, :1], -1e4, 1e4)
            flat = self.step(states.reshape(-1, UNITS), ahead[:, :, k].reshape(-1, channels))
            states = flat.reshape(copies, starts, UNITS)
        return ahead
