r"""Hypotheses of the theorems on the weights of each head: symmetric scores and positive values.

The theorems on leaders and clusters assume a score matrix A (queries and keys) that is symmetric and positive definite,
and values that pull tokens towards what they attend to. With A = S + N, symmetric and antisymmetric, a head has

.. math:: \text{antisymmetry} = \frac{\|N\|_F}{\|S\|_F}, \qquad
          \text{positivity} = \frac{\sum_k \mathrm{Re}\,\lambda_k}{\sum_k |\lambda_k|} ,

with the eigenvalues :math:`\lambda_k` of its value matrix, output projection included.
"""

from __future__ import annotations

import numpy as np
import torch

from ..layer import TransformerLayer
from ..transformer import Transformer

# Random matrices drawn for the chance level of each shape: the mean over a few is stable to two digits.
_DRAWS = 8


def weight_figures(model: Transformer, random_state: int) -> dict[str, np.ndarray]:
    """Antisymmetry of the scores and positivity of the values of every head, with their values for random weights.

    Parameters
    ----------
    model
        The model.
    random_state
        Seed of the random weights.

    Returns
    -------
    dict of ndarray
        ``antisymmetry``, ``ov_positivity``, ``antisymmetry_random`` and ``ov_positivity_random``, each of shape
        (layers, heads).
    """
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for layer in model.layers:
        if id(layer) not in found:
            found[id(layer)] = _of_layer(layer)
    shape = (len(model.layers), model.heads)
    anti, positive = _random_level(model, random_state)
    return {
        "antisymmetry": np.stack([found[id(layer)][0] for layer in model.layers]),
        "ov_positivity": np.stack([found[id(layer)][1] for layer in model.layers]),
        "antisymmetry_random": np.full(shape, anti),
        "ov_positivity_random": np.full(shape, positive),
    }


def _of_layer(layer: TransformerLayer) -> tuple[np.ndarray, np.ndarray]:
    own = layer.attention
    shared = layer.heads // own.key_heads
    queries = _split(own.query, layer.heads)
    keys = _split(own.key, own.key_heads).repeat_interleave(shared, dim=0)
    values = _split(own.value, own.key_heads).repeat_interleave(shared, dim=0)
    outputs = _split(own.output.T, layer.heads)
    pairs = range(layer.heads)
    return (
        np.array([antisymmetry(queries[head], keys[head]) for head in pairs]),
        np.array([positivity(values[head], outputs[head]) for head in pairs]),
    )


def _split(matrix: torch.Tensor, heads: int) -> torch.Tensor:
    return matrix.detach().to("cpu", torch.float64).reshape(heads, len(matrix) // heads, matrix.shape[1])


def antisymmetry(query: torch.Tensor, key: torch.Tensor) -> float:
    r"""Ratio of the antisymmetric to the symmetric part of :math:`A = K^T Q`; infinite without a symmetric part.

    From products of size (width, width): :math:`\|A\|^2 = \mathrm{tr}(K K^T Q Q^T)` and
    :math:`\mathrm{tr} A^2 = \mathrm{tr} (Q K^T)^2`.
    """
    square = float(((key @ key.T) * (query @ query.T)).sum())
    cross = query @ key.T
    turned = float((cross * cross.T).sum())
    if square == 0:
        return float("nan")
    symmetric = max(0.0, square + turned)
    return float("inf") if symmetric == 0 else (max(0.0, square - turned) / symmetric) ** 0.5


def positivity(value: torch.Tensor, output: torch.Tensor) -> float:
    """Sum of the real parts over the sum of the sizes of the eigenvalues of the value matrix; NaN where all are zero.

    The nonzero eigenvalues of output times value, shape (d, d), are those of value times output, shape (width, width).
    """
    eigenvalues = torch.linalg.eigvals(value @ output.T)
    size = float(eigenvalues.abs().sum())
    return float("nan") if size == 0 else float(eigenvalues.real.sum()) / size


def _random_level(model: Transformer, random_state: int) -> tuple[float, float]:
    generator = np.random.default_rng([random_state, 1])
    shape = (model.layers[0].attention.width, model.dimension)
    drawn = [[torch.from_numpy(generator.normal(size=shape)) for _ in range(4)] for _ in range(_DRAWS)]
    return (
        float(np.mean([antisymmetry(one[0], one[1]) for one in drawn])),
        float(np.mean([positivity(one[2], one[3]) for one in drawn])),
    )


QK_PREDICTION = "chains of argmaxes need not end in a leader: cycles of three or more tokens are possible"
OV_PREDICTION = "what the head adds points away from the token that is attended to, more than from a random one"


def qk_seen(causal: bool, ends_in_cycle: float) -> str:
    """Whether cycles are seen, in words."""
    if causal:
        return "cannot occur under a causal mask"
    if np.isnan(ends_in_cycle):
        return "not measured"
    return f"yes: {ends_in_cycle:.1%} of rows" if ends_in_cycle > 0 else "no"


def ov_seen(pull: float, chance: float) -> str:
    """Whether a head pushes tokens away from what they attend to, in words."""
    if np.isnan(pull) or np.isnan(chance):
        return "not measured"
    return f"{'yes' if pull < chance else 'no'}: {pull:+.3f} beside {chance:+.3f}"
