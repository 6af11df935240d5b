"""The published way of training: softmax at a low temperature, Adam at a constant rate, on any device.

Needs nothing but torch and NumPy, so that it runs where only those are installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..progress import Ticker
from .adam import Adam
from .losses import losses, winners
from .recipes import Recipe
from .softened import SideBySide, logits_of
from .states import State

_JUDGED_AT_ONCE = 1024
_NOTE_EVERY = 50


@dataclass(frozen=True)
class LabelledRows:
    """Documents side by side with the numbers of their classes and what each counts."""

    documents: SideBySide
    labels: torch.Tensor
    weights: torch.Tensor


def train_as_published(
    parameters: dict[str, torch.Tensor],
    rows: LabelledRows,
    held_out: LabelledRows | None,
    recipe: Recipe,
    *,
    seed: int,
    patience: int | None = None,
    progress: bool | None = None,
    resume: Callable[[dict[str, torch.Tensor]], State],
    keep: Callable[[dict[str, torch.Tensor], State], None],
) -> State:
    """Fit the parameters in place; at the end they are those of the epoch that was best on ``held_out``.

    ``resume`` and ``keep`` are as for training by hardmax. Every epoch is judged twice: with the attention that was
    trained, and as hardmax.
    """
    learned = {
        name: part.requires_grad_(True)
        for name, part in parameters.items()
        if name != "raw_alpha" or recipe.learn_alpha
    }
    moments = Adam.moments_for(learned)
    state = resume({**{name: p.data for name, p in learned.items()}, **moments})
    epochs = recipe.epochs or 100
    steps = math.ceil(len(rows.labels) / recipe.batch_size)
    adam = Adam(learned, moments, state.epoch * steps)
    with Ticker("training", epochs * steps, progress=progress) as ticker:
        ticker.advance(state.epoch * steps)
        while state.epoch < epochs and (patience is None or held_out is None or state.waited < patience):
            order = np.random.default_rng([seed, state.epoch]).permutation(len(rows.labels))
            record = _epoch(parameters, rows, recipe, adam, order, ticker)
            state.epoch += 1
            score = float(state.epoch)  # without rows kept aside the last epoch is the best
            if held_out is not None:
                for name, temperature in (("held_out", recipe.temperature), ("held_out_hardmax", 0.0)):
                    loss, score = judged(parameters, held_out, recipe, temperature)
                    record |= {f"{name}_loss": loss, f"{name}_accuracy": score}
            record["alpha"] = recipe.least_alpha + math.exp(float(parameters["raw_alpha"].detach()))
            if score > state.best_score:
                state.best = {name: p.detach().clone() for name, p in learned.items()}
                state.best_score, state.waited = score, 0
            else:
                state.waited += 1
            state.history.append({"epoch": state.epoch, **record})
            keep({**{name: p.detach() for name, p in learned.items()}, **moments}, state)
    for name, parameter in learned.items():
        parameter.requires_grad_(False).copy_(state.best[name])
    return state


def _epoch(
    parameters: dict[str, torch.Tensor],
    rows: LabelledRows,
    recipe: Recipe,
    adam: Adam,
    order: np.ndarray,
    ticker: Ticker,
) -> dict[str, float]:
    shuffled = torch.from_numpy(order).to(rows.labels.device)
    total = torch.zeros(2, device=rows.labels.device)
    seen = 0
    for begin in range(0, len(order), recipe.batch_size):
        some = shuffled[begin : begin + recipe.batch_size]
        logits = _logits(parameters, rows.documents.take(some), recipe, recipe.temperature)
        labels, weights = rows.labels[some], rows.weights[some]
        loss = (losses(logits, labels) * weights).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step(recipe.learning_rate)
        seen += len(some)
        # Numbers stay on the device: asking for them would wait for it at every step.
        total += torch.stack([loss.detach() * len(some), (winners(logits.detach()) == labels).sum()])
        if begin // recipe.batch_size % _NOTE_EVERY == 0:
            loss_now, right_now = (total / seen).tolist()
            note = f"loss {loss_now:.3f}, accuracy {right_now:.3f}"
        ticker.advance(1, note)
    loss_now, right_now = (total / seen).tolist()
    return {"loss": loss_now, "accuracy": right_now}


@torch.no_grad()
def judged(
    parameters: dict[str, torch.Tensor], rows: LabelledRows, recipe: Recipe, temperature: float
) -> tuple[float, float]:
    """Weighted log loss and accuracy with attention at this temperature."""
    found = torch.zeros(2, dtype=torch.float64, device=rows.labels.device)
    for begin in range(0, len(rows.labels), _JUDGED_AT_ONCE):
        some = slice(begin, begin + _JUDGED_AT_ONCE)
        logits = _logits(parameters, rows.documents.take(some), recipe, temperature)
        labels, weights = rows.labels[some], rows.weights[some]
        right = winners(logits) == labels
        found += torch.stack([(losses(logits, labels) * weights).sum(), (right * weights).sum()])
    loss, accuracy = (found / rows.weights.sum()).tolist()
    return loss, accuracy


def _logits(
    parameters: dict[str, torch.Tensor], documents: SideBySide, recipe: Recipe, temperature: float
) -> torch.Tensor:
    return logits_of(
        parameters, documents, least_alpha=recipe.least_alpha, depth=recipe.depth, temperature=temperature
    )
