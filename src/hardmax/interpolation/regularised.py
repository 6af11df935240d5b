r"""The regularised-training experiment: exact interpolation bounds what weight decay can cost.

If parameters :math:`\theta^*` interpolate the data exactly, every minimiser of
:math:`\mathrm{loss}(\theta) + \varepsilon\|\theta\|^2` has loss at most :math:`\varepsilon\|\theta^*\|^2` and norm at
most :math:`\|\theta^*\|`. The paper trains on data made by one hidden block, whose parameters are known. A compiled
network is such a :math:`\theta^*` for any data set: it states the threshold for the user's own data, and is a
warm start.

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
from .blocks import Block, dense
from .network import CompiledNetwork

_RECORDED = 400


@dataclass(frozen=True)
class TrainingData:
    """Sequences (sequence, token, d), one target token each (sequence, d), and parameters that fit them exactly."""

    tokens: torch.Tensor
    targets: torch.Tensor
    exact: TrainableTransformer


class TrainableTransformer(nn.Module):
    """The model of the experiment: softmax attention at temperature one, then feed-forward, ``blocks`` times."""

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
        """Send (sequence, token, d) through all blocks."""
        x = tokens
        for k in range(self.U.shape[0]):
            score = (x @ self.Q[k].T) @ (x @ self.K[k].T).transpose(1, 2)
            x = self.rho[k] * x + torch.softmax(score, dim=-1) @ (x @ self.V[k].T)
            x = self.eta[k] * x + torch.relu(x @ self.U[k].T + self.b[k]) @ self.W[k].T
        return x

    def squared_norm(self) -> torch.Tensor:
        r""":math:`\|\theta\|^2` over all parameters."""
        return torch.stack([(p**2).sum() for p in self.parameters()]).sum()


def loss(model: TrainableTransformer, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over the sequences of the largest squared distance of an output token to the target."""
    moved: torch.Tensor = model(tokens)
    return ((moved - targets[:, None]) ** 2).sum(dim=-1).amax(dim=-1).mean()


def paper_data(seed: int = 0, *, sequences: int = 10, tokens: int = 100, dimension: int = 16) -> TrainingData:
    """Uniform tokens in the unit cube; targets from one hidden block with Q = K = 0, V = I, rho = 0, eta = 1."""
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
    r"""A compiled network as parameters of the model: a warm start, and a :math:`\theta^*` with a threshold.

    Attention comes first in the model, so L blocks become L+1: the first attends to nothing, the last only attends.
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
    """The data of a network compiled with softmax attention, to train on; its own parameters are the exact ones.

    Every sequence needs the same number of distinct tokens and one target.
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
    r""":math:`\varepsilon\|\theta^*\|^2`: what no minimiser of the regularised loss can exceed."""
    return as_positive("eps", eps) * float(model.squared_norm().detach())


@dataclass(frozen=True)
class RegularisedRun:
    """One training run from a fresh start."""

    eps: float
    seed: int
    epochs: np.ndarray
    losses: np.ndarray
    norms: np.ndarray
    threshold: float
    model: TrainableTransformer
    """The trained model, called with tokens (sequence, token, d)."""

    @property
    def least_loss(self) -> float:
        """The smallest loss seen."""
        return float(self.losses.min())

    @property
    def final_loss(self) -> float:
        """The loss where the training settled."""
        return float(self.losses[-1])

    @property
    def final_objective(self) -> float:
        r"""Loss plus :math:`\varepsilon\|\theta\|^2` where training settled; a minimiser is below the threshold."""
        return float(self.losses[-1] + self.eps * self.norms[-1])

    @property
    def reached_at(self) -> int | None:
        """The first recorded epoch whose loss is below the threshold."""
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
    r"""Minimise :math:`\mathrm{loss}+\varepsilon\|\theta\|^2` with Adam and a cosine schedule.

    From a fresh start drawn with ``seed``, or from a copy of ``start``, for example ``as_trainable(network)``.
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
    r"""The exponents in :math:`\varepsilon` of the final loss and of the final objective, fitted over several runs.

    The theorem bounds both by a line, :math:`\varepsilon\|\theta^*\|^2`.
    """
    if len(runs) < 2:
        raise InputError("runs", f"{len(runs)} runs", "must be at least two", "train with several values of eps")
    x = np.log([run.eps for run in runs])
    loss_slope = np.polyfit(x, np.log([run.final_loss for run in runs]), 1)[0]
    objective_slope = np.polyfit(x, np.log([run.final_objective for run in runs]), 1)[0]
    return float(loss_slope), float(objective_slope)
