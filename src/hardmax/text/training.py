"""Training: true hardmax in every step, early stopping on rows kept aside, checkpoints after every epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.optimize import minimize_scalar

from ..distributed import ALONE, Processes
from ..progress import Progress, Ticker
from .counts import batch
from .losses import losses, winners
from .moving import Mover
from .network import Network
from .recipes import Recipe
from .states import State

_LEAST_STEPS, _LEAST_STEPS_OF_MANY = 300, 1000
_LEAST_RATE = 0.02
_DOCUMENTS_AT_ONCE = 256
_WORDS_KEPT = 30


@dataclass
class Rows:
    """Documents with what is known of them; ``labels`` are numbers of classes."""

    table: sparse.csr_matrix
    labels: np.ndarray
    weights: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """Only these documents."""
        return Rows(self.table[rows], self.labels[rows], self.weights[rows])


def number_of_epochs(recipe: Recipe, documents: int, logits: int) -> int:
    """As asked, or what is usual, or as many as make enough steps; several classes need more."""
    if recipe.epochs is not None:
        return recipe.epochs
    steps = _LEAST_STEPS if logits == 1 else _LEAST_STEPS_OF_MANY
    return max(recipe.usual_epochs, math.ceil(steps / math.ceil(documents / recipe.batch_size)))


def train(
    network: Network,
    rows: Rows,
    held_out: Rows | None,
    recipe: Recipe,
    *,
    seed: int,
    patience: int | None,
    progress: Progress,
    resume: Callable[[dict[str, torch.Tensor]], State],
    keep: Callable[[dict[str, torch.Tensor], State], None],
    ranks: Processes = ALONE,
) -> State:
    """Fit the network in place; at the end it holds the parameters of the best epoch.

    ``resume`` may fill the tensors it is given (parameters and the optimiser's moments) with those of an earlier
    run; ``keep`` is called after every epoch. Of several processes, which all have the same rows, each does its share
    of every batch.
    """
    mover = Mover(network, recipe, ranks)
    state = resume(mover.tensors)
    ranks.agree(documents=len(rows.labels), words=len(network.embedding), epoch=state.epoch, recipe=recipe)
    epochs = number_of_epochs(recipe, len(rows.labels), len(network.bias))
    steps = math.ceil(len(rows.labels) / recipe.batch_size)
    mover.begin(state.epoch * steps)
    with Ticker("training", epochs * steps, progress=progress) as ticker:
        ticker.advance(state.epoch * steps)
        while state.epoch < epochs and (patience is None or held_out is None or state.waited < patience):
            rng = np.random.default_rng([seed, state.epoch])
            record = _epoch(network, rows, recipe, mover, rng, (state.epoch * steps, epochs * steps), ticker, ranks)
            mover.settle()
            state.epoch += 1
            score = margin = 0.0  # without rows kept aside the last epoch is the best
            if held_out is not None:
                record |= _judged(network, held_out)
                score = record["held_out_accuracy"]
                # The step size falls to zero, so a later epoch is better unless the rows kept aside say otherwise
                # by more than the standard error of their accuracy.
                margin = math.sqrt(score * (1 - score) / len(held_out.labels))
            if score >= state.best_score - margin:
                state.best = {name: p.detach().clone() for name, p in mover.parameters.items()}
                state.best_score, state.waited = max(score, state.best_score), 0
            else:
                state.waited += 1
            state.history.append({"epoch": state.epoch, **record})
            keep(mover.tensors, state)
    for name, parameter in mover.parameters.items():
        parameter.requires_grad_(False).copy_(state.best[name])
    return state


def _epoch(
    network: Network,
    rows: Rows,
    recipe: Recipe,
    mover: Mover,
    rng: np.random.Generator,
    span: tuple[int, int],
    ticker: Ticker,
    ranks: Processes,
) -> dict[str, float]:
    order = rng.permutation(len(rows.labels))
    step, last = span
    total = {"loss": 0.0, "accuracy": 0.0, "leaders": 0.0}
    seen = 0
    for begin in range(0, len(order), recipe.batch_size):
        some = order[begin : begin + recipe.batch_size]
        part = rows.table[some]
        mine = ranks.part(len(some))
        documents = batch(part, keep=_survivors(part, recipe.dropout, rng)).take(mine)
        start = mover.watch(network.starts(documents))
        logits, course = network.forward(documents, start)
        labels = torch.from_numpy(rows.labels[some[mine]])
        weights = torch.from_numpy(rows.weights[some[mine]]).to(logits.dtype)
        loss = (losses(logits, labels) * weights).sum() / len(some)
        loss.backward()  # type: ignore[no-untyped-call]
        rate = recipe.learning_rate * (max(_LEAST_RATE, 1 - step / last) if recipe.decay else 1.0)
        mover.step(rate, torch.from_numpy(documents.columns), start)
        step, seen = step + 1, seen + len(labels)
        total["loss"] += float(loss.detach()) * len(some)
        total["accuracy"] += float((winners(logits.detach()) == labels).sum())
        total["leaders"] += float(course.leaders.sum())
        mean = {name: value / seen for name, value in total.items()}
        ticker.advance(
            1, f"loss {mean['loss']:.3f}, accuracy {mean['accuracy']:.3f}, {mean['leaders']:.1f} leaders a document"
        )
    summed = torch.tensor([*total.values(), seen], dtype=torch.float64)
    ranks.add(summed)
    return dict(zip(total, (summed[:-1] / summed[-1]).tolist(), strict=True))


def _survivors(part: sparse.csr_matrix, dropout: float, rng: np.random.Generator) -> np.ndarray | None:
    """Which words stay in this step: each goes with probability ``dropout``, but a document keeps about thirty."""
    sizes = np.diff(part.indptr)
    rates = np.minimum(dropout, np.maximum(0, 1 - _WORDS_KEPT / np.maximum(sizes, 1))).astype(np.float32)
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


def _judged(network: Network, held_out: Rows) -> dict[str, float]:
    logits, leaders = logits_and_leaders(network, held_out.table)
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
