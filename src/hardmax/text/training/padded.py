"""Training on documents side by side, on any device: the published way, as softmax at a low temperature.

Needs nothing but torch and NumPy, so that it runs where only those are installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from ...progress import Progress, Ticker
from ..model.softmax_forward import Shelf, SideBySide, logits_of
from ..recipes import Recipe
from .adam import Adam, rate_at
from .capturable_adam import PacedAdam, Paces, Replays
from .optimiser_step import Bounds, losses, winners
from .state import State

_JUDGED_AT_ONCE = 512
_STEPS_AT_ONCE = 64
# Documents are laid out with a multiple of so many places, so that few shapes occur.
_PLACES, _FEW_PLACES = 32, 256
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
    learned = {name: part.requires_grad_(True) for name, part in parameters.items() if name not in recipe.fixed}
    moments = Adam.moments_for(learned)
    state = resume({**{name: p.data for name, p in learned.items()}, **moments})
    steps = math.ceil(len(rows.labels) / recipe.batch_size)
    course = _Course(parameters, learned, moments, rows, recipe, resting_mass, epochs * steps)
    with Ticker("training", epochs * steps, progress=progress) as ticker:
        ticker.advance(state.epoch * steps)
        while state.epoch < epochs and (patience is None or held_out is None or state.waited < patience):
            record = course.epoch(np.random.default_rng([seed, state.epoch]), state.epoch * steps, ticker)
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


class _Course:
    """The steps of a training; what a step needs to know lies on the device before it, some steps at a time."""

    def __init__(
        self,
        parameters: dict[str, torch.Tensor],
        learned: dict[str, torch.Tensor],
        moments: dict[str, torch.Tensor],
        rows: DenseRows,
        recipe: Recipe,
        resting_mass: float,
        last: int,
    ) -> None:
        self._parameters, self._learned, self._rows, self._recipe = parameters, learned, rows, recipe
        self._resting_mass, self._last = resting_mass, last
        self._adam = PacedAdam(learned, moments)
        self._bounds = Bounds.of(parameters["embedding"], parameters["decoder"], recipe)
        device = rows.labels.device
        self._order = torch.zeros(_STEPS_AT_ONCE, recipe.batch_size, dtype=torch.int64, device=device)
        self._documents = torch.zeros(_STEPS_AT_ONCE, dtype=torch.int64, device=device)
        self._paces = Paces.of([0.0] * _STEPS_AT_ONCE, 0, parameters["embedding"])
        self._now = torch.zeros(1, dtype=torch.int64, device=device)
        self._total = torch.zeros(2, device=device)
        self._chance = torch.Generator(device=device)
        # What is drawn on the device differs from one time to the next, and a recording would draw the same again.
        self._replays = Replays(device, wanted=recipe.dropout == 0)

    def epoch(self, rng: np.random.Generator, first: int, ticker: Ticker) -> dict[str, float]:
        """Go through all documents once, after so many steps."""
        size, recipe = self._recipe.batch_size, self._recipe
        order = rng.permutation(len(self._rows.labels))
        self._chance.manual_seed(int(rng.integers(2**62)))
        self._total.zero_()
        mean: dict[str, float] = {}
        for begin in range(0, len(order), _STEPS_AT_ONCE * size):
            some = order[begin : begin + _STEPS_AT_ONCE * size]
            steps = math.ceil(len(some) / size)
            filled = np.zeros(self._order.shape, dtype=np.int64)
            filled.flat[: len(some)] = some
            self._order.copy_(torch.from_numpy(filled))
            self._documents.copy_(torch.from_numpy(np.clip(len(some) - size * np.arange(_STEPS_AT_ONCE), 0, size)))
            rates = [rate_at(first + k, self._last, recipe.learning_rate, recipe.decay) for k in range(_STEPS_AT_ONCE)]
            self._paces.copy_(Paces.of(rates, first, self._parameters["embedding"]))
            self._now.zero_()
            for step in range(steps):
                longest = self._rows.documents.longest(some[step * size : (step + 1) * size])
                places = -(-longest // _PLACES) * _PLACES
                if self._replays.records and places <= _FEW_PLACES:
                    self._replays.run(places, partial(self._step, places))
                else:  # long documents keep the device busy enough, and every recording holds memory
                    self._step(longest)
            first += steps
            # Asked for only now: doing so would wait for the device at every step.
            loss, right = (self._total / min(begin + len(some), len(order))).tolist()
            mean = {"loss": loss, "accuracy": right}
            ticker.advance(steps, f"loss {loss:.3f}, accuracy {right:.3f}")
        return mean

    def _step(self, places: int) -> None:
        """One step, with everything about it found on the device."""
        chosen, count = self._order.index_select(0, self._now)[0], self._documents.index_select(0, self._now)
        real = torch.arange(len(chosen), device=chosen.device) < count
        documents = _thinned(self._rows.documents.lay(chosen, places), self._recipe.dropout, self._chance)
        logits = _logits(self._parameters, documents, self._recipe, self._recipe.temperature, self._resting_mass)
        labels, weights = self._rows.labels[chosen], self._rows.weights[chosen] * real
        loss = (losses(logits, labels) * weights).sum() / count[0]
        gradients = torch.autograd.grad(loss, list(self._learned.values()))
        self._adam.step(dict(zip(self._learned, gradients, strict=True)), self._paces.at(self._now))
        _settle(self._parameters, self._bounds)
        right = ((winners(logits.detach()) == labels) & real).sum()
        self._total += torch.stack([loss.detach() * count[0], right])
        self._now += 1


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
