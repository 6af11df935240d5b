"""Training on documents side by side, on any device: the published way, as softmax at a low temperature.

Needs nothing but torch and NumPy, so that it runs where only those are installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..progress import Progress, Ticker
from .adam import Adam
from .bounds import Bounds
from .losses import losses, winners
from .recipes import Recipe
from .softened import Shelf, SideBySide, logits_of
from .states import State

_JUDGED_AT_ONCE = 512
_NOTE_EVERY = 50
_LEAST_RATE = 0.02
_WORDS_KEPT = 30
_COMPARED_EVERY = 10


@dataclass(frozen=True)
class DenseRows:
    """Documents with the numbers of their classes and what each counts, all on one device."""

    documents: Shelf
    labels: torch.Tensor
    weights: torch.Tensor


def train_dense(
    parameters: dict[str, torch.Tensor],
    rows: DenseRows,
    held_out: DenseRows | None,
    recipe: Recipe,
    *,
    epochs: int,
    seed: int,
    resting_mass: float = 0.0,
    patience: int | None = None,
    progress: Progress = None,
    resume: Callable[[dict[str, torch.Tensor]], State],
    keep: Callable[[dict[str, torch.Tensor], State], None],
) -> State:
    """Fit the parameters in place; at the end they are those of the epoch that was best on ``held_out``.

    ``resume`` and ``keep`` are as for training on sparse rows. Every epoch is judged twice: with the attention that
    was trained, and as hardmax; the latter, which is what answers in the end, chooses the epoch. Every tenth epoch
    the loss of the training rows as hardmax is written down beside their loss in training.
    """
    learned = {
        name: part.requires_grad_(True)
        for name, part in parameters.items()
        if name != "raw_alpha" or recipe.learn_alpha
    }
    one_axis = len(parameters["decoder"]) == 1
    home = parameters["embedding"].detach().clone()
    bounds = Bounds(
        home, recipe.cone if one_axis else math.inf, recipe.tether if one_axis else math.inf, recipe.by_length
    )
    moments = Adam.moments_for(learned)
    state = resume({**{name: p.data for name, p in learned.items()}, **moments})
    steps = math.ceil(len(rows.labels) / recipe.batch_size)
    adam = Adam(learned, moments, state.epoch * steps)
    with Ticker("training", epochs * steps, progress=progress) as ticker:
        ticker.advance(state.epoch * steps)
        while state.epoch < epochs and (patience is None or held_out is None or state.waited < patience):
            rng = np.random.default_rng([seed, state.epoch])
            span = (state.epoch * steps, epochs * steps)
            record = _epoch(parameters, rows, recipe, resting_mass, adam, bounds, rng, span, ticker)
            state.epoch += 1
            score = float(state.epoch)  # without rows kept aside the last epoch is the best
            if held_out is not None:
                for name, temperature in (("held_out", recipe.temperature), ("held_out_hardmax", 0.0)):
                    loss, score = judged(parameters, held_out, recipe, temperature, resting_mass)
                    record |= {f"{name}_loss": loss, f"{name}_accuracy": score}
            if state.epoch % _COMPARED_EVERY == 1 or state.epoch == epochs:
                record["hardmax_loss"] = judged(parameters, rows, recipe, 0.0, resting_mass)[0]
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
    rows: DenseRows,
    recipe: Recipe,
    resting_mass: float,
    adam: Adam,
    bounds: Bounds,
    rng: np.random.Generator,
    span: tuple[int, int],
    ticker: Ticker,
) -> dict[str, float]:
    order = rng.permutation(len(rows.labels))
    device = rows.labels.device
    chance = torch.Generator(device=device).manual_seed(int(rng.integers(2**62)))
    total = torch.zeros(2, device=device)
    step, last = span
    seen, note = 0, ""
    for begin in range(0, len(order), recipe.batch_size):
        some = order[begin : begin + recipe.batch_size]
        place = torch.from_numpy(some).to(device)
        documents = _thinned(rows.documents.take(some), recipe.dropout, chance)
        logits = _logits(parameters, documents, recipe, recipe.temperature, resting_mass)
        labels, weights = rows.labels[place], rows.weights[place]
        loss = (losses(logits, labels) * weights).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step(recipe.learning_rate * (max(_LEAST_RATE, 1 - step / last) if recipe.decay else 1.0))
        _settle(parameters, bounds)
        step, seen = step + 1, seen + len(some)
        # Numbers stay on the device: asking for them would wait for it at every step.
        total += torch.stack([loss.detach() * len(some), (winners(logits.detach()) == labels).sum()])
        if begin // recipe.batch_size % _NOTE_EVERY == 0:
            loss_now, right_now = (total / seen).tolist()
            note = f"loss {loss_now:.3f}, accuracy {right_now:.3f}"
        ticker.advance(1, note)
    loss_now, right_now = (total / seen).tolist()
    return {"loss": loss_now, "accuracy": right_now}


@torch.no_grad()
def _settle(parameters: dict[str, torch.Tensor], bounds: Bounds) -> None:
    """All words to where they may lie."""
    if bounds.any:
        table = parameters["embedding"]
        rows = torch.arange(len(table), device=table.device)
        table.copy_(bounds.kept(table, rows, parameters["decoder"]))


def _thinned(documents: SideBySide, dropout: float, chance: torch.Generator) -> SideBySide:
    """Without some of the words: each goes with probability ``dropout``, but a document keeps about thirty."""
    if dropout == 0:
        return documents
    sizes = (documents.counts > 0).sum(dim=1, keepdim=True).clamp_min(1)
    rates = (1 - _WORDS_KEPT / sizes).clamp(0, dropout)
    stays = torch.rand(documents.counts.shape, generator=chance, device=rates.device) >= rates
    return SideBySide(documents.columns, documents.counts * stays)


@torch.no_grad()
def judged(
    parameters: dict[str, torch.Tensor],
    rows: DenseRows,
    recipe: Recipe,
    temperature: float,
    resting_mass: float = 0.0,
) -> tuple[float, float]:
    """Weighted log loss and accuracy with attention at this temperature."""
    found = torch.zeros(2, dtype=torch.float64, device=rows.labels.device)
    for begin in range(0, len(rows.labels), _JUDGED_AT_ONCE):
        some = np.arange(begin, min(begin + _JUDGED_AT_ONCE, len(rows.labels)))
        logits = _logits(parameters, rows.documents.take(some), recipe, temperature, resting_mass)
        labels, weights = (part[begin : begin + len(some)] for part in (rows.labels, rows.weights))
        right = winners(logits) == labels
        found += torch.stack([(losses(logits, labels) * weights).sum(), (right * weights).sum()])
    loss, accuracy = (found / rows.weights.sum()).tolist()
    return loss, accuracy


def _logits(
    parameters: dict[str, torch.Tensor],
    documents: SideBySide,
    recipe: Recipe,
    temperature: float,
    resting_mass: float,
) -> torch.Tensor:
    return logits_of(
        parameters,
        documents,
        least_alpha=recipe.least_alpha,
        depth=recipe.depth,
        temperature=temperature,
        norm_masses=recipe.masses == "norm",
        resting_mass=resting_mass,
    )
