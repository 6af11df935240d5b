r"""Echo states: a fixed random recurrent layer whose state depends on the whole window.

.. math:: h_k = (1-\ell)\,h_{k-1} + \ell\,\tanh(\rho\,W h_{k-1} + s\,U z_k + b)

with a random :math:`W` of spectral radius one. Only the readout of :math:`h_k` is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..protocol import FloatArray


@dataclass(frozen=True)
class Reservoir:
    """Scaled recurrent weights, scaled input weights, bias, leak, and the number of warm-up samples."""

    recurrent: FloatArray
    inputs: FloatArray
    bias: FloatArray
    leak: float
    window: int

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.bias)

    def initial_state(self, rows: int) -> FloatArray:
        """Zero states, shape (rows, units)."""
        return np.zeros((rows, self.size))

    def step(self, state: FloatArray, sample: FloatArray) -> FloatArray:
        """States after one more sample, shape (rows, units)."""
        drive = np.tanh(state @ self.recurrent + sample @ self.inputs + self.bias)
        return np.asarray((1.0 - self.leak) * state + self.leak * drive)

    def run(self, trajectory: FloatArray) -> FloatArray:
        """State after each sample, shape (samples, units), from the zero state."""
        states = np.empty((len(trajectory), self.size))
        state = self.initial_state(1)
        driven = trajectory @ self.inputs + self.bias
        for k in range(len(trajectory)):
            state = (1.0 - self.leak) * state + self.leak * np.tanh(state @ self.recurrent + driven[k])
            states[k] = state[0]
        return states


@dataclass(frozen=True)
class ReservoirDraw:
    """One random draw of weights, from which reservoirs of several scales are made."""

    recurrent: FloatArray
    inputs: FloatArray
    bias: FloatArray

    def scaled(self, radius: float, strength: float, leak: float, window: int) -> Reservoir:
        """Reservoir of this spectral radius, input strength and leak."""
        return Reservoir(self.recurrent * radius, self.inputs * strength, self.bias, leak, window)


def draw_reservoir(
    channels: int, units: int, generator: np.random.Generator, connectivity: float = 0.1
) -> ReservoirDraw:
    """Random weights: sparse recurrent ones of spectral radius one, uniform input weights, uniform biases."""
    present = generator.random((units, units)) < max(connectivity, 2.0 / units)
    recurrent = generator.uniform(-1.0, 1.0, (units, units)) * present
    radius = float(np.abs(np.linalg.eigvals(recurrent)).max())
    recurrent /= max(radius, 1e-12)
    return ReservoirDraw(
        recurrent, generator.uniform(-1.0, 1.0, (channels, units)), generator.uniform(-1.0, 1.0, units)
    )
