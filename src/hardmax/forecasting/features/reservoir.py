r"""A fixed random recurrent layer (echo state): memory of the whole window as features.

.. math:: h_k = (1-\ell)\,h_{k-1} + \ell\,\tanh(\rho\,W h_{k-1} + s\,U z_k + b)

with :math:`W` of spectral radius one and never trained; only the readout is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..protocol import FloatArray


@dataclass(frozen=True)
class Reservoir:
    """Recurrent weights (scaled already), input weights, bias, leak, and how many samples it is warmed up with."""

    recurrent: FloatArray
    inputs: FloatArray
    bias: FloatArray
    leak: float
    window: int

    @property
    def size(self) -> int:
        """The number of units."""
        return len(self.bias)

    def rest(self, rows: int) -> FloatArray:
        """The state before anything was heard."""
        return np.zeros((rows, self.size))

    def listen(self, state: FloatArray, sample: FloatArray) -> FloatArray:
        """The state after one more sample."""
        drive = np.tanh(state @ self.recurrent + sample @ self.inputs + self.bias)
        return np.asarray((1.0 - self.leak) * state + self.leak * drive)

    def run(self, trajectory: FloatArray) -> FloatArray:
        """The state after each sample, from rest."""
        states = np.empty((len(trajectory), self.size))
        state = self.rest(1)
        heard = trajectory @ self.inputs + self.bias
        for k in range(len(trajectory)):
            state = (1.0 - self.leak) * state + self.leak * np.tanh(state @ self.recurrent + heard[k])
            states[k] = state[0]
        return states


@dataclass(frozen=True)
class ReservoirDraw:
    """One random draw of weights from which reservoirs of any strength are scaled."""

    recurrent: FloatArray
    inputs: FloatArray
    bias: FloatArray

    def scaled(self, radius: float, strength: float, leak: float, window: int) -> Reservoir:
        """The reservoir of this spectral radius, input strength and leak."""
        return Reservoir(self.recurrent * radius, self.inputs * strength, self.bias, leak, window)


def draw_reservoir(
    channels: int, units: int, generator: np.random.Generator, connectivity: float = 0.1
) -> ReservoirDraw:
    """Sparse recurrent weights of spectral radius one, uniform input weights, uniform biases."""
    present = generator.random((units, units)) < max(connectivity, 2.0 / units)
    recurrent = generator.uniform(-1.0, 1.0, (units, units)) * present
    radius = float(np.abs(np.linalg.eigvals(recurrent)).max())
    recurrent /= max(radius, 1e-12)
    return ReservoirDraw(
        recurrent, generator.uniform(-1.0, 1.0, (channels, units)), generator.uniform(-1.0, 1.0, units)
    )
