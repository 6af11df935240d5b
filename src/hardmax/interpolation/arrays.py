"""The weights of a network as stacked float64 arrays: what PyTorch, ONNX and the safetensors file share.

Layers with fewer neurons, and matrices with fewer outer products, are filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import fmpq

from .blocks import Block, LowRank
from .numbers import ONE, scaled, to_float

NAMES = ("eta", "U", "b", "W", "rho", "B_left", "B_right", "V_left", "V_right")


def stacked(blocks: Sequence[Block], dimension: int, temperature: fmpq | None = None) -> dict[str, np.ndarray]:
    """``eta, rho`` (block); ``U, b, W`` (block, h, d), (block, h), (block, d, h); factors (block, rank, d).

    With a temperature the scores are divided by it: ``B_left`` is the rounded quotient, which a float holds also where
    it holds neither B nor the temperature.
    """
    cold = ONE if temperature is None else 1 / temperature
    count, d = len(blocks), dimension
    width = max(len(block.neurons) for block in blocks)
    B_rank = max(len(block.B) for block in blocks)
    V_rank = max(len(block.V) for block in blocks)
    arrays = {
        "eta": np.array([to_float(block.eta) for block in blocks]),
        "U": np.zeros((count, width, d)),
        "b": np.zeros((count, width)),
        "W": np.zeros((count, d, width)),
        "rho": np.array([to_float(block.rho) for block in blocks]),
        "B_left": np.zeros((count, B_rank, d)),
        "B_right": np.zeros((count, B_rank, d)),
        "V_left": np.zeros((count, V_rank, d)),
        "V_right": np.zeros((count, V_rank, d)),
    }
    for k, block in enumerate(blocks):
        for r, neuron in enumerate(block.neurons):
            arrays["U"][k, r] = [to_float(c) for c in neuron.reading]
            arrays["b"][k, r] = to_float(neuron.bias)
            arrays["W"][k, :, r] = [to_float(c) for c in neuron.writing]
        _fill(arrays["B_left"][k], arrays["B_right"][k], block.B, cold)
        _fill(arrays["V_left"][k], arrays["V_right"][k], block.V, ONE)
    return arrays


def _fill(left: np.ndarray, right: np.ndarray, matrix: LowRank, factor: fmpq) -> None:
    for r, term in enumerate(matrix):
        left[r] = [to_float(c) for c in scaled(factor, term.left)]
        right[r] = [to_float(c) for c in term.right]
