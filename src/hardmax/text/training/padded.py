r"""Training with softmax attention at a low temperature on padded batches, on any device, as published.

.. math:: z_i' = \frac{z_i + \alpha \sum_j p_{ij} z_j}{1+\alpha}, \qquad
          p_{ij} \propto c_j \exp\bigl(\langle z_i, z_j\rangle / T\bigr)

A word that occurs :math:`c_j` times counts as :math:`c_j` equal tokens. At :math:`T = 0` attention is hardmax, as in
prediction. Documents of the published model are short (128 tokens), so that padding is affordable.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch

from ...progress import Progress, Ticker
from ..model.device_batches import DeviceDocuments, PaddedBatch
from ..model.network import TINY, Network, mass_of_position
from ..model.score_matrix_gradient import factor_of
from ..recipes import Recipe
from .adam import Adam, learning_rate_at
from .capturable_adam import CapturableAdam, CapturedSteps, Schedule
from .checkpoints import TrainingState
from .loop import WORDS_KEPT, Resume, Save
from .optimiser_step import Bounds, losses, predicted

# A score that softmax and argmax never select, and that stays finite in single precision.
_MASKED = -1e30
# Documents per batch in evaluation: 512 documents of 128 words have 8 million scores per layer.
_EVALUATED_AT_ONCE = 512
# Steps whose order and learning rates are copied to the device at once.
_STEPS_AT_ONCE = 64
# Batches are padded to a multiple of 32 words, so that few shapes occur. Above 256 words steps are not captured: they
# keep the device busy without a graph, and every graph holds memory.
_PLACES, _LARGEST_CAPTURED = 32, 256
# Epochs between evaluations of the training rows with hardmax attention, which take as long as an epoch.
_COMPARED_EVERY = 10


def softmax_layers(
    words: torch.Tensor, counts: torch.Tensor, alpha: torch.Tensor, *, depth: int, temperature: float
) -> torch.Tensor:
    """Positions after ``depth`` layers, shape (documents, places, coordinates).

    ``words`` are the initial positions, of the same shape, and ``counts`` has shape (documents, places), with zero for
    padding. Differentiable in ``words`` and ``alpha``.
    """
    # Padding is never attended to; a document without words attends to its own zeros.
    logs = torch.where(counts > 0, counts.clamp_min(TINY).log(), _MASKED)[:, None, :]
    for _ in range(depth):
        columns = words.transpose(1, 2)
        if temperature > 0:
            shares = torch.softmax(torch.baddbmm(logs, words, columns, alpha=1 / temperature), dim=2)
            attended = shares @ words
        else:
            with torch.no_grad():
                choice = torch.where(counts[:, None, :] > 0, words @ columns, _MASKED).argmax(dim=2)
            attended = words.gather(1, choice[:, :, None].expand_as(words))
        words = torch.lerp(words, attended, alpha / (1 + alpha))
    return words


def padded_logits(network: Network, documents: PaddedBatch, temperature: float) -> torch.Tensor:
    """Logits of each document with attention at this temperature, shape (documents, outputs)."""
    table = network.embedding
    mass = documents.term_weights.to(table.dtype)
    words = table.index_select(0, documents.columns.reshape(-1)).view(*mass.shape, table.shape[1])
    layers = partial(softmax_layers, counts=mass, alpha=network.alpha, depth=network.depth, temperature=temperature)
    if network.raw_factor is None:
        final = layers(words)
    else:
        # Layers mix positions linearly, so layers with A = R Rᵀ are layers without A on z R.
        factor = factor_of(network.raw_factor)
        final = torch.linalg.solve_triangular(factor, layers(words @ factor), upper=False, left=False)
    if network.norm_masses:
        mass = mass * mass_of_position(words, network.mass_power)
    total = (network.resting_mass + mass.sum(dim=1)).clamp_min(TINY)
    pooled = (mass[:, None, :] @ final)[:, 0] / total[:, None]
    return network.bias + pooled @ network.decoder.T


def train_padded(
    network: Network,
    rows: DeviceDocuments,
    validation: DeviceDocuments | None,
    recipe: Recipe,
    *,
    epochs: int,
    seed: int,
    patience: int | None = None,
    progress: Progress = None,
    resume: Resume,
    save: Save,
) -> TrainingState:
    """State after training of the network in place, which is that of the best epoch at the end.

    The network and the documents are on one device. Every epoch is evaluated on the ``validation`` rows with the
    attention used in training and with hardmax; the latter selects the epoch, because prediction uses hardmax. Every
    tenth epoch the history also has the training loss with hardmax.
    """
    learned = {name: p.requires_grad_(True) for name, p in network.parameters().items() if name not in recipe.fixed}
    moments = Adam.zero_moments(learned)
    state = resume({**{name: p.data for name, p in learned.items()}, **moments})
    steps = math.ceil(len(rows.labels) / recipe.batch_size)
    steps_of = _PaddedSteps(network, learned, moments, rows, recipe, epochs * steps)
    with Ticker("training", epochs * steps, progress=progress) as ticker:
        ticker.advance(state.epoch * steps)
        while state.epoch < epochs and (patience is None or validation is None or state.waited < patience):
            record = steps_of.epoch(np.random.default_rng([seed, state.epoch]), state.epoch * steps, ticker)
            state.epoch += 1
            score = float(state.epoch)  # without validation rows the last epoch is the best
            if validation is not None:
                for name, temperature in (("held_out", recipe.temperature), ("held_out_hardmax", 0.0)):
                    loss, score = evaluate_padded(network, validation, temperature)
                    record |= {f"{name}_loss": loss, f"{name}_accuracy": score}
            if state.epoch % _COMPARED_EVERY == 1 or state.epoch == epochs:
                record["hardmax_loss"] = evaluate_padded(network, rows, 0.0)[0]
            record["alpha"] = network.least_alpha + math.exp(float(network.raw_alpha.detach()))
            if score > state.best_score:
                state.best = {name: p.detach().clone() for name, p in learned.items()}
                state.best_score, state.waited = score, 0
            else:
                state.waited += 1
            state.history.append({"epoch": state.epoch, **record})
            save({**{name: p.detach() for name, p in learned.items()}, **moments}, state)
    for name, parameter in learned.items():
        parameter.requires_grad_(False).copy_(state.best[name])
    return state


class _PaddedSteps:
    """Optimiser steps on padded batches; their inputs are copied to the device for several steps at a time."""

    def __init__(
        self,
        network: Network,
        learned: dict[str, torch.Tensor],
        moments: dict[str, torch.Tensor],
        rows: DeviceDocuments,
        recipe: Recipe,
        last: int,
    ) -> None:
        self._network, self._learned, self._rows, self._recipe = network, learned, rows, recipe
        self._last = last
        self._adam = CapturableAdam(learned, moments)
        self._bounds = Bounds.of(network.embedding, network.decoder, recipe)
        device = rows.labels.device
        self._order = torch.zeros(_STEPS_AT_ONCE, recipe.batch_size, dtype=torch.int64, device=device)
        self._documents = torch.zeros(_STEPS_AT_ONCE, dtype=torch.int64, device=device)
        self._schedule = Schedule.of([0.0] * _STEPS_AT_ONCE, 0, network.embedding)
        self._now = torch.zeros(1, dtype=torch.int64, device=device)
        self._total = torch.zeros(2, device=device)
        self._generator = torch.Generator(device=device)
        # Dropout draws random numbers on the device, and a captured graph would draw the same numbers again.
        self._steps_run = CapturedSteps(device, wanted=recipe.dropout == 0)

    def epoch(self, rng: np.random.Generator, first: int, ticker: Ticker) -> dict[str, float]:
        """Train on all documents once, after ``first`` steps; the mean loss and accuracy."""
        size, recipe = self._recipe.batch_size, self._recipe
        order = rng.permutation(len(self._rows.labels))
        self._generator.manual_seed(int(rng.integers(2**62)))
        self._total.zero_()
        mean: dict[str, float] = {}
        for begin in range(0, len(order), _STEPS_AT_ONCE * size):
            some = order[begin : begin + _STEPS_AT_ONCE * size]
            steps = math.ceil(len(some) / size)
            filled = np.zeros(self._order.shape, dtype=np.int64)
            filled.flat[: len(some)] = some
            self._order.copy_(torch.from_numpy(filled))
            self._documents.copy_(torch.from_numpy(np.clip(len(some) - size * np.arange(_STEPS_AT_ONCE), 0, size)))
            rates = [
                learning_rate_at(first + k, self._last, recipe.learning_rate, recipe.decay)
                for k in range(_STEPS_AT_ONCE)
            ]
            self._schedule.copy_(Schedule.of(rates, first, self._network.embedding))
            self._now.zero_()
            for step in range(steps):
                longest = self._rows.longest(some[step * size : (step + 1) * size])
                places = -(-longest // _PLACES) * _PLACES
                if self._steps_run.captures and places <= _LARGEST_CAPTURED:
                    self._steps_run.run(places, partial(self._step, places))
                else:
                    self._step(longest)
            first += steps
            # Read only here, because reading synchronises with the device.
            loss, right = (self._total / min(begin + len(some), len(order))).tolist()
            mean = {"loss": loss, "accuracy": right}
            ticker.advance(steps, f"loss {loss:.3f}, accuracy {right:.3f}")
        return mean

    def _step(self, places: int) -> None:
        """One optimiser step, whose index and inputs are all read on the device."""
        chosen, count = self._order.index_select(0, self._now)[0], self._documents.index_select(0, self._now)
        real = torch.arange(len(chosen), device=chosen.device) < count
        documents = _with_dropout(self._rows.padded(chosen, places), self._recipe.dropout, self._generator)
        logits = padded_logits(self._network, documents, self._recipe.temperature)
        labels, weights = self._rows.labels[chosen], self._rows.weights[chosen] * real
        loss = (losses(logits, labels) * weights).sum() / count[0]
        gradients = torch.autograd.grad(loss, list(self._learned.values()))
        self._adam.step(dict(zip(self._learned, gradients, strict=True)), self._schedule.at(self._now))
        self._bounds.project_all(self._network.embedding, self._network.decoder)
        right = ((predicted(logits.detach()) == labels) & real).sum()
        self._total += torch.stack([loss.detach() * count[0], right])
        self._now += 1


def _with_dropout(documents: PaddedBatch, dropout: float, generator: torch.Generator) -> PaddedBatch:
    """Documents in which each word is dropped with probability ``dropout``, or less in short documents."""
    if dropout == 0:
        return documents
    counts = documents.term_weights
    sizes = (counts > 0).sum(dim=1, keepdim=True).clamp_min(1)
    rates = (1 - WORDS_KEPT / sizes).clamp(0, dropout)
    stays = torch.rand(counts.shape, generator=generator, device=rates.device) >= rates
    return PaddedBatch(documents.columns, counts * stays)


@torch.no_grad()
def evaluate_padded(network: Network, rows: DeviceDocuments, temperature: float) -> tuple[float, float]:
    """Weighted log loss and accuracy with attention at this temperature."""
    found = torch.zeros(2, dtype=torch.float64, device=rows.labels.device)
    for begin in range(0, len(rows.labels), _EVALUATED_AT_ONCE):
        some = np.arange(begin, min(begin + _EVALUATED_AT_ONCE, len(rows.labels)))
        logits = padded_logits(network, rows.padded_to_longest(some), temperature)
        labels, weights = (part[begin : begin + len(some)] for part in (rows.labels, rows.weights))
        right = predicted(logits) == labels
        found += torch.stack([(losses(logits, labels) * weights).sum(), (right * weights).sum()])
    loss, accuracy = (found / rows.weights.sum()).tolist()
    return loss, accuracy
