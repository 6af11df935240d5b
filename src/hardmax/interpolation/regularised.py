r"""Training with weight decay: exact interpolation bounds the regularised loss.

If parameters :math:`\theta^*` interpolate the data exactly, every minimiser of
:math:`\mathrm{loss}(\theta) + \varepsilon\|\theta\|^2` has loss at most :math:`\varepsilon\|\theta^*\|^2` and norm at
most :math:`\|\theta^*\|`. The paper trains on data made by one hidden block, whose parameters are known. A compiled
network is such a :math:`\theta^*` for any data set: it gives the threshold for that data set, and a warm start.

The model: blocks :math:`x_i \leftarrow \rho x_i + \sum_l \mathrm{softmax}_l(\langle Qx_i, Kx_l\rangle)\,Vx_l`, then
:math:`x \leftarrow \eta x + W\,\mathrm{relu}(Ux+b)`; heads of width one, hidden width four, :math:`\rho` and
:math:`\eta` from zero. The loss is the mean over the sequences of the largest squared distance of an output token to
the target.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from flint import fmpq
from torch import nn

from ..errors import InputError
from ..inputs import as_count, as_positive
from ..progress import Ticker
from .arithmetic.numbers import ONE, to_float, to_floats
from .network import Block, CompiledNetwork, dense

_RECORDED = 400  # epochs, spaced geometrically: enough for a smooth curve


@dataclass(frozen=True)
class TrainingData:
    """Sequences with one target each, and parameters that interpolate them exactly."""

    tokens: torch.Tensor
    """Input tokens, float64, shape (sequences, tokens, d)."""
    targets: torch.Tensor
    """Target of each sequence, float64, shape (sequences, d)."""
    exact: TrainableTransformer
    """Model whose parameters interpolate the data."""


class TrainableTransformer(nn.Module):
    """Model of the experiment: softmax attention at temperature one, then feed-forward, ``blocks`` times.

    Parameters
    ----------
    dimension
        Coordinates per token, d.
    blocks
        Number of blocks.
    width
        Neurons per feed-forward layer.
    generator
        Generator of the initial parameters; that of torch when left out.
    """

    def __init__(
        self, dimension: int, *, blocks: int = 1, width: int = 4, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()

        def drawn(*shape: int) -> nn.Parameter:
            bound = 1.0 / math.sqrt(shape[-1])
            return nn.Parameter((2 * torch.rand(blocks, *shape, generator=generator, dtype=torch.float64) - 1) * bound)

        self.Q, self.K = drawn(1, dimension), drawn(1, dimension)
        self.V = drawn(dimension, dimension)
        self.U, self.b, self.W = drawn(width, dimension), drawn(width), drawn(dimension, width)
        self.rho = nn.Parameter(torch.zeros(blocks, dtype=torch.float64))
        self.eta = nn.Parameter(torch.zeros(blocks, dtype=torch.float64))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Output of all tokens, shape (sequences, tokens, d).

        Parameters
        ----------
        tokens
            Shape (sequences, tokens, d), float64.

        Returns
        -------
        Tensor
            Shape (sequences, tokens, d).
        """
        x = tokens
        for k in range(self.U.shape[0]):
            score = (x @ self.Q[k].T) @ (x @ self.K[k].T).transpose(1, 2)
            x = self.rho[k] * x + torch.softmax(score, dim=-1) @ (x @ self.V[k].T)
            x = self.eta[k] * x + torch.relu(x @ self.U[k].T + self.b[k]) @ self.W[k].T
        return x

    def squared_norm(self) -> torch.Tensor:
        r"""Squared norm :math:`\|\theta\|^2` over all parameters.

        Returns
        -------
        Tensor
            Scalar with gradient.
        """
        return torch.stack([(p**2).sum() for p in self.parameters()]).sum()


def loss(model: TrainableTransformer, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over the sequences of the largest squared distance of an output token to the target."""
    moved: torch.Tensor = model(tokens)
    return ((moved - targets[:, None]) ** 2).sum(dim=-1).amax(dim=-1).mean()


def paper_data(seed: int = 0, *, sequences: int = 10, tokens: int = 100, dimension: int = 16) -> TrainingData:
    """Data of the paper: uniform tokens in the unit cube, targets from one block with Q = K = 0, V = I.

    Parameters
    ----------
    seed
        Seed of tokens and parameters.
    sequences
        Number of sequences.
    tokens
        Tokens per sequence.
    dimension
        Coordinates per token, d.

    Returns
    -------
    TrainingData
        Tokens, targets, and the block that computed them (rho = 0, eta = 1).
    """
    generator = torch.Generator().manual_seed(seed)
    exact = TrainableTransformer(dimension)
    with torch.no_grad():
        exact.Q.zero_()
        exact.K.zero_()
        exact.V.copy_(torch.eye(dimension, dtype=torch.float64)[None])
        exact.eta.fill_(1.0)
        for parameter in (exact.U, exact.b, exact.W):
            parameter.copy_(torch.rand(parameter.shape, generator=generator, dtype=torch.float64))
        x = torch.rand(sequences, tokens, dimension, generator=generator, dtype=torch.float64)
        return TrainingData(x, exact(x)[:, 0], exact)


def as_trainable(network: CompiledNetwork) -> TrainableTransformer:
    r"""Model with the parameters of a compiled network: a warm start, and a :math:`\theta^*` with a threshold.

    Attention comes first in the model, so L blocks become L+1: the first has no attention, the last only attention.

    Parameters
    ----------
    network
        Network compiled with ``attention="softmax"``.

    Returns
    -------
    TrainableTransformer
        Model with L+1 blocks.
    """
    if network.attention != "softmax":
        raise InputError(
            "network",
            repr(network),
            "must use softmax attention like the model that is trained",
            "compile it with attention='softmax', temperature=1",
        )
    heat = network.temperature or ONE
    d, blocks = network.dimension, network.blocks
    model = TrainableTransformer(d, blocks=len(blocks) + 1, width=network.width)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.rho[0] = 1.0
        model.eta[-1] = 1.0
        for k, block in enumerate(blocks):
            _copy(model, k, block, d, heat)
    return model


def training_data(network: CompiledNetwork) -> TrainingData:
    """Data of a compiled network to train on, with its own parameters as the exact ones.

    Parameters
    ----------
    network
        Network compiled with ``attention="softmax"`` for sequences with the same number of distinct tokens and one
        target each.

    Returns
    -------
    TrainingData
        Tokens, targets and exact parameters.
    """
    exact, data = as_trainable(network), network.data
    lengths = sorted({len(x) for x in data.inputs})
    if len(lengths) > 1 or data.targets != len(data) or data.token_level:
        raise InputError(
            "network",
            f"sequences of {', '.join(map(str, lengths))} tokens with {data.targets} targets for {len(data)}",
            "must have sequences of one length with one target each",
            "compile such data, or make TrainingData of tensors of your own",
        )
    d = data.dimension
    tokens = torch.from_numpy(np.stack([to_floats(x, d) for x in data.inputs]))
    return TrainingData(tokens, torch.from_numpy(np.concatenate([to_floats(y, d) for y in data.outputs])), exact)


def _copy(model: TrainableTransformer, k: int, block: Block, d: int, heat: fmpq) -> None:
    def tensor(rows: Sequence[float] | np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(rows, dtype=np.float64))

    model.eta[k] = to_float(block.eta)
    for r, neuron in enumerate(block.neurons):
        model.U[k, r] = tensor([to_float(c) for c in neuron.reading])
        model.b[k, r] = to_float(neuron.bias)
        model.W[k, :, r] = tensor([to_float(c) for c in neuron.writing])
    model.rho[k + 1] = to_float(block.rho)
    if block.V:
        model.V[k + 1] = tensor(to_floats(dense(block.V, d), d))
    if block.B:
        # Half of the scale on each side keeps the norm small: only the product of Q and K matters.
        query = tensor([to_float(c) for c in block.B[0].right])
        key = tensor([to_float(c / heat) for c in block.B[0].left])
        balance = math.sqrt(float(key.norm() / query.norm()))
        model.Q[k + 1, 0], model.K[k + 1, 0] = query * balance, key / balance


def threshold(model: TrainableTransformer, eps: float) -> float:
    r"""Upper bound :math:`\varepsilon\|\theta^*\|^2` on the loss of every minimiser of the regularised loss.

    Parameters
    ----------
    model
        Model that interpolates the data exactly.
    eps
        Factor of the squared norm, positive.

    Returns
    -------
    float
        The bound.
    """
    return as_positive("eps", eps) * float(model.squared_norm().detach())


@dataclass(frozen=True)
class RegularisedRun:
    """Result of one training run."""

    eps: float
    """Factor of the squared norm."""
    seed: int
    """Seed of the initial parameters."""
    epochs: np.ndarray
    """Recorded epochs."""
    losses: np.ndarray
    """Loss at the recorded epochs, without the squared norm."""
    norms: np.ndarray
    """Squared norm of the parameters at the recorded epochs."""
    threshold: float
    """Upper bound on the loss of every minimiser."""
    model: TrainableTransformer
    """Trained model, called with tokens of shape (sequences, tokens, d)."""

    @property
    def least_loss(self) -> float:
        """Smallest recorded loss."""
        return float(self.losses.min())

    @property
    def final_loss(self) -> float:
        """Loss at the last epoch."""
        return float(self.losses[-1])

    @property
    def final_objective(self) -> float:
        r"""Loss plus :math:`\varepsilon\|\theta\|^2` at the last epoch; a minimiser is below the threshold."""
        return float(self.losses[-1] + self.eps * self.norms[-1])

    @property
    def reached_at(self) -> int | None:
        """First recorded epoch whose loss is below the threshold; None if there is none."""
        below = np.flatnonzero(self.losses <= self.threshold)
        return int(self.epochs[below[0]]) if len(below) else None


def train(
    data: TrainingData,
    eps: float,
    epochs: int,
    *,
    seed: int = 0,
    rate: float = 1e-3,
    start: TrainableTransformer | None = None,
    progress: bool | None = None,
) -> RegularisedRun:
    r"""Run of Adam with a cosine schedule that minimises :math:`\mathrm{loss}+\varepsilon\|\theta\|^2`.

    Parameters
    ----------
    data
        Tokens, targets and exact parameters.
    eps
        Factor of the squared norm, positive.
    epochs
        Number of optimiser steps, each on all data.
    seed
        Seed of the initial parameters.
    rate
        Initial learning rate.
    start
        Model from a copy of which training starts, for example ``as_trainable(network)``; random when left out.
    progress
        Progress bar: True, False, or None (only when the run takes long and there is a terminal).

    Returns
    -------
    RegularisedRun
        Losses and norms at the recorded epochs, and the trained model.
    """
    eps, epochs = as_positive("eps", eps), as_count("epochs", epochs, 1)
    least = threshold(data.exact, eps)
    generator = torch.Generator().manual_seed(seed)
    model = copy.deepcopy(start) or TrainableTransformer(data.tokens.shape[-1], generator=generator)
    optimiser = torch.optim.Adam(model.parameters(), lr=as_positive("rate", rate), fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    kept = set(np.unique(np.geomspace(1, epochs, _RECORDED).round().astype(int)).tolist())
    record: list[tuple[int, float, float]] = []
    with Ticker("training", epochs, progress=progress) as ticker:
        for epoch in range(1, epochs + 1):
            optimiser.zero_grad(set_to_none=True)
            fit, size = loss(model, data.tokens, data.targets), model.squared_norm()
            torch.autograd.backward(fit + eps * size)
            if epoch in kept:
                record.append((epoch, float(fit.detach()), float(size.detach())))
            optimiser.step()
            schedule.step()
            ticker.advance()
    table = np.array(record)
    return RegularisedRun(eps, seed, table[:, 0].astype(int), table[:, 1], table[:, 2], least, model)


def decay_exponents(runs: Sequence[RegularisedRun]) -> tuple[float, float]:
    r"""Exponents in :math:`\varepsilon` of the final loss and of the final objective, fitted over several runs.

    The theorem bounds both by :math:`\varepsilon\|\theta^*\|^2`, which has exponent one.

    Parameters
    ----------
    runs
        At least two runs with different ``eps``.

    Returns
    -------
    tuple of float
        Exponent of the loss and exponent of the objective.
    """
    if len(runs) < 2:
        raise InputError("runs", f"{len(runs)} runs", "must be at least two", "train with several values of eps")
    x = np.log([run.eps for run in runs])
    loss_slope = np.polyfit(x, np.log([run.final_loss for run in runs]), 1)[0]
    objective_slope = np.polyfit(x, np.log([run.final_objective for run in runs]), 1)[0]
    return float(loss_slope), float(objective_slope)
