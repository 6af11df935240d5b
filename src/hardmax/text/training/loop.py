"""Training: true hardmax in every step, early stopping on rows kept aside, checkpoints after every epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.optimize import minimize_scalar

from ...distributed import ALONE, Processes
from ...progress import Progress, Ticker
from ..model.network import Network
from ..recipes import Recipe
from ..words.counts import batch
from .adam import rate_at
from .optimiser_step import Mover, losses, winners
from .state import Rows, State

_LEAST_STEPS, _LEAST_STEPS_OF_MANY = 300, 1000
_DOCUMENTS_AT_ONCE = 256
_WORDS_KEPT = 30


def number_of_epochs(recipe: Recipe, documents: int, logits: int) -> int:
    """As asked, or what is usual, or as many as make enough steps; several classes need more."""
    if recipe.epochs is not None:
        return recipe.epochs
    steps = _LEAST_STEPS if logits == 1 else _LEAST_STEPS_OF_MANY
    return max(recipe.usual_epochs, math.ceil(steps / math.ceil(documents / recipe.batch_size)))


class Trainer(ABC):
    """One way to train a network: what is learned, an epoch of it, and a look at the rows kept aside."""

    parameters: dict[str, torch.Tensor]

    @property
    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments, to be kept or filled."""

    @abstractmethod
    def begin(self, epoch: int, epochs: int) -> None:
        """Get ready for the epoch after so many."""

    @abstractmethod
    def epoch(self, number: int, ticker: Ticker) -> dict[str, float]:
        """Go through all documents once; the mean loss, accuracy and number of leaders."""

    @abstractmethod
    def judged(self) -> dict[str, float]:
        """The same of the documents kept aside, by the names ``held_out_…``; empty where there are none."""


def train(
    trainer: Trainer,
    *,
    epochs: int,
    steps: int,
    held_out: int,
    patience: int | None,
    progress: Progress,
    resume: Callable[[dict[str, torch.Tensor]], State],
    keep: Callable[[dict[str, torch.Tensor], State], None],
) -> State:
    """Fit the trainer's parameters in place, ``steps`` to an epoch; at the end they are those of the best epoch.

    ``resume`` may fill the tensors it is given (parameters and the optimiser's moments) with those of an earlier
    run; ``keep`` is called after every epoch. So many documents are ``held_out`` to judge it on.
    """
    state = resume(trainer.tensors)
    trainer.begin(state.epoch, epochs)
    with Ticker("training", epochs * steps, progress=progress) as ticker:
        ticker.advance(state.epoch * steps)
        while state.epoch < epochs and (patience is None or not held_out or state.waited < patience):
            record = trainer.epoch(state.epoch, ticker)
            state.epoch += 1
            score = margin = 0.0  # without rows kept aside the last epoch is the best
            if held_out:
                record |= trainer.judged()
                score = record["held_out_accuracy"]
                # The step size falls to zero, so a later epoch is better unless the rows kept aside say otherwise
                # by more than the standard error of their accuracy.
                margin = math.sqrt(score * (1 - score) / held_out)
            if score >= state.best_score - margin:
                state.best = {name: p.detach().clone() for name, p in trainer.parameters.items()}
                state.best_score, state.waited = max(score, state.best_score), 0
            else:
                state.waited += 1
            state.history.append({"epoch": state.epoch, **record})
            keep(trainer.tensors, state)
    for name, parameter in trainer.parameters.items():
        parameter.requires_grad_(False).copy_(state.best[name])
    return state


class RowsTrainer(Trainer):
    """On sparse rows, on the CPU.

    Of several processes, which all have the same rows, each does its share of every batch.
    """

    def __init__(
        self,
        network: Network,
        rows: Rows,
        held_out: Rows | None,
        recipe: Recipe,
        *,
        seed: int,
        ranks: Processes = ALONE,
    ) -> None:
        self._network, self._rows, self._held_out, self._recipe = network, rows, held_out, recipe
        self._seed, self._ranks = seed, ranks
        self._mover = Mover(network, recipe, ranks)
        self.parameters = self._mover.parameters

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments, to be kept or filled."""
        return self._mover.tensors

    def begin(self, epoch: int, epochs: int) -> None:
        """Get ready for the epoch after so many."""
        documents, words = len(self._rows.labels), len(self._network.embedding)
        self._ranks.agree(documents=documents, words=words, epoch=epoch, recipe=self._recipe)
        self._steps = math.ceil(documents / self._recipe.batch_size)
        self._last = epochs * self._steps
        self._mover.begin(epoch * self._steps)

    def epoch(self, number: int, ticker: Ticker) -> dict[str, float]:
        """Go through all documents once; the mean loss, accuracy and number of leaders."""
        network, recipe, rows, ranks = self._network, self._recipe, self._rows, self._ranks
        rng = np.random.default_rng([self._seed, number])
        order = rng.permutation(len(rows.labels))
        step = number * self._steps
        total = {"loss": 0.0, "accuracy": 0.0, "leaders": 0.0}
        seen = 0
        for begin in range(0, len(order), recipe.batch_size):
            some = order[begin : begin + recipe.batch_size]
            part = rows.table[some]
            mine = ranks.part(len(some))
            documents = batch(part, keep=_survivors(part, recipe.dropout, rng)).take(mine)
            start = self._mover.watch(network.starts(documents))
            logits, course = network.forward(documents, start)
            labels = torch.from_numpy(rows.labels[some[mine]])
            weights = torch.from_numpy(rows.weights[some[mine]]).to(logits.dtype)
            loss = (losses(logits, labels) * weights).sum() / len(some)
            loss.backward()  # type: ignore[no-untyped-call]
            rate = rate_at(step, self._last, recipe.learning_rate, recipe.decay)
            self._mover.step(rate, torch.from_numpy(documents.columns), start)
            step, seen = step + 1, seen + len(labels)
            total["loss"] += float(loss.detach()) * len(some)
            total["accuracy"] += float((winners(logits.detach()) == labels).sum())
            total["leaders"] += float(course.leaders.sum())
            ticker.advance(1, noted({name: value / seen for name, value in total.items()}))
        self._mover.settle()
        summed = torch.tensor([*total.values(), seen], dtype=torch.float64)
        ranks.add(summed)
        return dict(zip(total, (summed[:-1] / summed[-1]).tolist(), strict=True))

    def judged(self) -> dict[str, float]:
        """The same of the documents kept aside, by the names ``held_out_…``; empty where there are none."""
        if self._held_out is None:
            return {}
        return judged(*logits_and_leaders(self._network, self._held_out.table), self._held_out)


def noted(mean: dict[str, float]) -> str:
    """What is said of the training so far."""
    return f"loss {mean['loss']:.3f}, accuracy {mean['accuracy']:.3f}, {mean['leaders']:.1f} leaders a document"


def rates_of(sizes: np.ndarray, dropout: float) -> np.ndarray:
    """With which probability each word of a document goes: ``dropout``, but a document keeps about thirty words."""
    rates: np.ndarray = np.minimum(dropout, np.maximum(0, 1 - _WORDS_KEPT / np.maximum(sizes, 1))).astype(np.float32)
    return rates


def _survivors(part: sparse.csr_matrix, dropout: float, rng: np.random.Generator) -> np.ndarray | None:
    """Which words stay in this step."""
    sizes = np.diff(part.indptr)
    rates = rates_of(sizes, dropout)
    return rng.random(part.nnz, dtype=np.float32) >= np.repeat(rates, sizes) if rates.any() else None


@torch.no_grad()
def logits_and_leaders(network: Network, table: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Logits of all documents, and how many leaders each has; a few documents at a time, to stay in the cache."""
    logits = np.empty((table.shape[0], network.bias.shape[0]))
    leaders = np.zeros(table.shape[0], dtype=np.int64)
    for begin in range(0, table.shape[0], _DOCUMENTS_AT_ONCE):
        some = slice(begin, min(begin + _DOCUMENTS_AT_ONCE, table.shape[0]))
        documents = batch(table[some])
        found, course = network.forward(documents)
        logits[some] = found.numpy()
        leaders[some] = np.bincount(documents.document[course.leaders], minlength=documents.size)
    return logits, leaders


def judged(logits: np.ndarray, leaders: np.ndarray, held_out: Rows) -> dict[str, float]:
    """How good these answers are."""
    labels, scores = torch.from_numpy(held_out.labels), torch.from_numpy(logits)
    right = (winners(scores) == labels).numpy()
    return {
        "held_out_loss": float(np.average(losses(scores, labels).numpy(), weights=held_out.weights)),
        "held_out_accuracy": float(np.average(right, weights=held_out.weights)),
        "held_out_leaders": float(leaders.mean()),
    }


def temperature_of(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """The number by which logits must be divided to be the best probabilities on these rows."""
    scores, truth = torch.from_numpy(logits), torch.from_numpy(labels)

    def loss(log_temperature: Any) -> float:
        return float(np.average(losses(scores / math.exp(log_temperature), truth).numpy(), weights=weights))

    found = minimize_scalar(loss, bounds=(-3.0, 5.0), method="bounded")
    return math.exp(float(found.x))
