"""The training loop over epochs, with early stopping and checkpoints, and the trainer on the CPU.

Every training step uses hardmax attention, as prediction does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from scipy import sparse

from ...distributed import ALONE, Processes
from ...progress import Progress, Ticker
from ..model.network import Network
from ..model.prediction import cpu_logits
from ..recipes import Recipe
from ..words.counts import LabelledDocuments, batch
from .adam import learning_rate_at
from .checkpoints import TrainingState
from .optimiser_step import Optimiser, losses, predicted

Resume: TypeAlias = Callable[[dict[str, torch.Tensor]], TrainingState]
"""Fills parameters and moments from a checkpoint and returns its state, or a new state if there is none."""
Save: TypeAlias = Callable[[dict[str, torch.Tensor], TrainingState], None]
"""Saves parameters and moments and the state after an epoch."""

# Optimiser steps that small data is trained for at least, by default: for two classes, and for more.
_LEAST_STEPS, _LEAST_STEPS_OF_MANY = 300, 1000
# A linear classifier is a good start: two epochs at twice the rate are as accurate as four or six.
_EPOCHS_FROM_REGRESSION = 2
WORDS_KEPT = 30
"""Number of words per document that word dropout leaves on average at least; shorter documents lose none."""


def number_of_epochs(recipe: Recipe, documents: int, outputs: int) -> int:
    """Number of epochs: as set, else the usual number, or more on small data for a minimum number of steps."""
    if recipe.epochs is not None:
        return recipe.epochs
    if recipe.start == "regression":
        return _EPOCHS_FROM_REGRESSION
    steps = _LEAST_STEPS if outputs == 1 else _LEAST_STEPS_OF_MANY
    return max(recipe.usual_epochs, math.ceil(steps / math.ceil(documents / recipe.batch_size)))


class Trainer(ABC):
    """Training of a network on one kind of device: parameters, epochs and evaluation on the validation rows."""

    parameters: dict[str, torch.Tensor]
    """Learned parameters by name."""

    @property
    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments by name, as saved in a checkpoint and filled from it."""

    @abstractmethod
    def prepare(self, epoch: int, epochs: int) -> None:
        """Prepare to resume after ``epoch`` epochs of ``epochs``."""

    @abstractmethod
    def epoch(self, number: int, ticker: Ticker) -> dict[str, float]:
        """Train on all documents once; the mean loss, accuracy and number of leaders."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Loss, accuracy and number of leaders on the validation rows, as ``held_out_…``; empty if there are none."""


def train(
    trainer: Trainer,
    *,
    epochs: int,
    steps: int,
    validation_rows: int,
    patience: int | None,
    progress: Progress,
    resume: Resume,
    save: Save,
) -> TrainingState:
    """State after training of the trainer's parameters in place, which are those of the best epoch at the end.

    An epoch has ``steps`` steps. It is evaluated on ``validation_rows`` documents; without any, the last epoch is the
    best.
    """
    state = resume(trainer.tensors)
    trainer.prepare(state.epoch, epochs)
    with Ticker("training", epochs * steps, progress=progress) as ticker:
        ticker.advance(state.epoch * steps)
        while state.epoch < epochs and (patience is None or not validation_rows or state.waited < patience):
            record = trainer.epoch(state.epoch, ticker)
            state.epoch += 1
            score = margin = 0.0
            if validation_rows:
                record |= trainer.validate()
                score = record["held_out_accuracy"]
                # The learning rate decays, so a later epoch is preferred unless its validation accuracy is lower by
                # more than one standard error.
                margin = math.sqrt(score * (1 - score) / validation_rows)
            if score >= state.best_score - margin:
                state.best = {name: p.detach().clone() for name, p in trainer.parameters.items()}
                state.best_score, state.waited = max(score, state.best_score), 0
            else:
                state.waited += 1
            state.history.append({"epoch": state.epoch, **record})
            save(trainer.tensors, state)
    for name, parameter in trainer.parameters.items():
        parameter.requires_grad_(False).copy_(state.best[name])
    return state


class CpuTrainer(Trainer):
    """Training on sparse rows on the CPU.

    Several processes, which all have the same rows, share every batch.
    """

    def __init__(
        self,
        network: Network,
        rows: LabelledDocuments,
        validation: LabelledDocuments | None,
        recipe: Recipe,
        *,
        seed: int,
        processes: Processes = ALONE,
    ) -> None:
        self._network, self._rows, self._validation, self._recipe = network, rows, validation, recipe
        self._seed, self._processes = seed, processes
        self._optimiser = Optimiser(network, recipe, processes)
        self.parameters = self._optimiser.parameters

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments by name, as saved in a checkpoint and filled from it."""
        return self._optimiser.tensors

    def prepare(self, epoch: int, epochs: int) -> None:
        """Prepare to resume after ``epoch`` epochs of ``epochs``."""
        documents, words = len(self._rows.labels), len(self._network.embedding)
        self._processes.agree(documents=documents, words=words, epoch=epoch, recipe=self._recipe)
        self._steps = math.ceil(documents / self._recipe.batch_size)
        self._last = epochs * self._steps
        self._optimiser.prepare(epoch * self._steps)

    def epoch(self, number: int, ticker: Ticker) -> dict[str, float]:
        """Train on all documents once; the mean loss, accuracy and number of leaders."""
        network, recipe, rows, processes = self._network, self._recipe, self._rows, self._processes
        rng = np.random.default_rng([self._seed, number])
        order = rng.permutation(len(rows.labels))
        step = number * self._steps
        total = {"loss": 0.0, "accuracy": 0.0, "leaders": 0.0}
        seen = 0
        for begin in range(0, len(order), recipe.batch_size):
            some = order[begin : begin + recipe.batch_size]
            part = rows.table[some]
            own = processes.part(len(some))
            documents = batch(part, keep=_dropout_mask(part, recipe.dropout, rng)).take(own)
            start = self._optimiser.requiring_gradient(network.initial_positions(documents))
            logits, path = network.forward(documents, start)
            labels = torch.from_numpy(rows.labels[some[own]])
            weights = torch.from_numpy(rows.weights[some[own]]).to(logits.dtype)
            loss = (losses(logits, labels) * weights).sum() / len(some)
            loss.backward()  # type: ignore[no-untyped-call]
            rate = learning_rate_at(step, self._last, recipe.learning_rate, recipe.decay)
            self._optimiser.step(rate, torch.from_numpy(documents.columns), start)
            step, seen = step + 1, seen + len(labels)
            total["loss"] += float(loss.detach()) * len(some)
            total["accuracy"] += float((predicted(logits.detach()) == labels).sum())
            total["leaders"] += float(path.leaders.sum())
            ticker.advance(1, progress_note({name: value / seen for name, value in total.items()}))
        self._optimiser.project_all()
        summed = torch.tensor([*total.values(), seen], dtype=torch.float64)
        processes.add(summed)
        return dict(zip(total, (summed[:-1] / summed[-1]).tolist(), strict=True))

    def validate(self) -> dict[str, float]:
        """Loss, accuracy and number of leaders on the validation rows, as ``held_out_…``; empty if there are none."""
        if self._validation is None:
            return {}
        return validation_metrics(*cpu_logits(self._network, self._validation.table), self._validation)


def progress_note(mean: dict[str, float]) -> str:
    """Text beside the progress bar."""
    return f"loss {mean['loss']:.3f}, accuracy {mean['accuracy']:.3f}, {mean['leaders']:.1f} leaders per document"


def dropout_rates(sizes: np.ndarray, dropout: float) -> np.ndarray:
    """Dropout probability per word of documents with these numbers of words, shape (documents,).

    It is ``dropout``, or less where a document would keep fewer than about thirty words.
    """
    rates: np.ndarray = np.minimum(dropout, np.maximum(0, 1 - WORDS_KEPT / np.maximum(sizes, 1))).astype(np.float32)
    return rates


def _dropout_mask(part: sparse.csr_matrix, dropout: float, rng: np.random.Generator) -> np.ndarray | None:
    """Mask of the entries that are not dropped in this step; None if none is dropped."""
    sizes = np.diff(part.indptr)
    rates = dropout_rates(sizes, dropout)
    return rng.random(part.nnz, dtype=np.float32) >= np.repeat(rates, sizes) if rates.any() else None


def validation_metrics(logits: np.ndarray, leaders: np.ndarray, validation: LabelledDocuments) -> dict[str, float]:
    """Loss, accuracy and number of leaders of these predictions, as ``held_out_…``."""
    labels, scores = torch.from_numpy(validation.labels), torch.from_numpy(logits)
    right = (predicted(scores) == labels).numpy()
    return {
        "held_out_loss": float(np.average(losses(scores, labels).numpy(), weights=validation.weights)),
        "held_out_accuracy": float(np.average(right, weights=validation.weights)),
        "held_out_leaders": float(leaders.mean()),
    }
