"""Training with hardmax attention on sparse rows on a device, without synchronisation at any step.

The model, the batches and the dropped words are those of ``loop.CpuTrainer``: permutations and dropout masks come from
the same generator on the CPU, so that the steps agree up to rounding. The documents stay on the device; only the
dropout masks are copied to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch

from ...progress import Ticker
from ..model.device_batches import DeviceDocuments, StepBatches, step_batches
from ..model.device_forward import logits_and_follows
from ..model.network import Network
from ..model.prediction import device_logits
from ..recipes import Recipe
from ..words.counts import LabelledDocuments
from .adam import Adam, RowAdam, learning_rate_at
from .capturable_adam import CapturableAdam, CapturableRowAdam, CapturedSteps, Schedule
from .loop import Trainer, dropout_rates, progress_note, validation_metrics
from .optimiser_step import Bounds, losses, predicted

# Steps whose batches are prepared at once: more of them means fewer synchronisations, and more memory for batches.
_STEPS_AT_ONCE = 64
# Words of the steps that are prepared at once: their columns, weights and documents take about 300 MB.
_WORDS_AT_ONCE = 2**24


class DeviceTrainer(Trainer):
    """Training of a copy of a network on a device."""

    def __init__(
        self,
        network: Network,
        rows: LabelledDocuments,
        validation: LabelledDocuments | None,
        recipe: Recipe,
        *,
        seed: int,
        device: torch.device,
    ) -> None:
        self._recipe, self._seed, self._validation = recipe, seed, validation
        self._network = network.to(device)
        table, dtype = self._network.embedding, network.embedding.dtype
        self.parameters = {name: p for name, p in self._network.parameters().items() if name not in recipe.fixed}
        self._rows = DeviceDocuments.of(rows.table, rows.labels, rows.weights, device, dtype)
        self._rates = dropout_rates(self._rows.sizes, recipe.dropout)
        self._device_rates = torch.from_numpy(self._rates).to(device)
        # The gradient of the embedding is the sum of those of the words of a step, so it needs none of its own.
        self._differentiated = {
            name: p.requires_grad_(True) for name, p in self.parameters.items() if name != "embedding"
        }
        whole = self.parameters if recipe.momentum else self._differentiated
        self._moments = Adam.zero_moments({name: p.detach() for name, p in whole.items()})
        self._adam = CapturableAdam(whole, self._moments)
        self._row_adam = None
        if not recipe.momentum:
            self._moments |= RowAdam.zero_moments(table)
            self._row_adam = CapturableRowAdam(table, self._moments)
        self._bounds = Bounds.of(table, self._network.decoder, recipe)
        self._total = torch.zeros(3, dtype=torch.float64, device=device)
        self._now = torch.zeros(1, dtype=torch.int64, device=device)
        self._buffers: dict[tuple[int, ...], tuple[StepBatches, Schedule]] = {}
        # With a learned matrix the number of pairs of words and leaders must be read from the device.
        self._steps_run = CapturedSteps(device, wanted=self._network.raw_factor is None)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments by name, as saved in a checkpoint and filled from it."""
        return {**{name: p.detach() for name, p in self.parameters.items()}, **self._moments}

    def prepare(self, epoch: int, epochs: int) -> None:
        """Prepare to resume after ``epoch`` epochs of ``epochs``."""
        self._steps = math.ceil(len(self._rows.sizes) / self._recipe.batch_size)
        self._last = epochs * self._steps

    def epoch(self, number: int, ticker: Ticker) -> dict[str, float]:
        """Train on all documents once; the mean loss, accuracy and number of leaders."""
        size, first = self._recipe.batch_size, number * self._steps
        rng = np.random.default_rng([self._seed, number])
        order = rng.permutation(len(self._rows.sizes))
        # As many steps at once as the limit on words allows; a power of two, so that few shapes occur.
        words = np.add.reduceat(self._rows.sizes[order], np.arange(0, len(order), size)).max()
        steps = 1 << (int(np.clip(_WORDS_AT_ONCE // words, 1, _STEPS_AT_ONCE)).bit_length() - 1)
        self._total.zero_()
        seen, mean = 0, {}
        for some, draws in self._with_draws(order, size, steps, rng):
            count = math.ceil(len(some) / size)
            shape = self._fill_buffers(some, draws, steps, first)
            for _ in range(count):
                self._steps_run.run(shape, partial(self._step, *self._buffers[shape]))
            first, seen = first + count, seen + len(some)
            mean = dict(zip(("loss", "accuracy", "leaders"), (self._total / seen).tolist(), strict=True))
            ticker.advance(count, progress_note(mean))
        self._bounds.project_all(self._network.embedding, self._network.decoder)
        return mean

    def _with_draws(
        self, order: np.ndarray, size: int, steps: int, rng: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Documents of ``steps`` steps at a time and the dropout draws of their words, made while the device works."""

        def draws(some: np.ndarray) -> np.ndarray | None:
            if not self._rates.any():
                return None
            sizes = self._rows.sizes[some]
            numbers = np.zeros(sizes.sum(), dtype=np.float32)
            borders = np.concatenate([[0], np.cumsum(sizes)])
            for begin in range(0, len(some), size):
                stop = min(begin + size, len(some))
                if self._rates[some[begin:stop]].any():  # as on the CPU, where a step without dropout draws nothing
                    rng.random(out=numbers[borders[begin] : borders[stop]], dtype=np.float32)
            return numbers

        parts = [order[begin : begin + steps * size] for begin in range(0, len(order), steps * size)]
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(draws, parts[0])
            for k, part in enumerate(parts):
                ready = coming.result()
                if k + 1 < len(parts):
                    coming = pool.submit(draws, parts[k + 1])
                yield part, ready

    def _fill_buffers(self, some: np.ndarray, draws: np.ndarray | None, steps: int, first: int) -> tuple[int, ...]:
        """Copy the batches of the next steps to the buffers of their shape, which is returned."""
        recipe = self._recipe
        words = int(self._rows.sizes[some].sum()) // math.ceil(len(some) / recipe.batch_size)
        # Rounded up to one of eight sizes between a power of two and the next, so that few graphs are captured.
        multiple = max(64, 1 << max(words.bit_length() - 4, 0))
        fresh = step_batches(
            self._rows, some, recipe.batch_size, draws, self._device_rates, steps=steps, multiple=multiple
        )
        rates = [learning_rate_at(first + k, self._last, recipe.learning_rate, recipe.decay) for k in range(steps)]
        schedule = Schedule.of(rates, first, self._network.embedding)
        shape = tuple(fresh.columns.shape)
        if shape in self._buffers:
            batches, numbers = self._buffers[shape]
            batches.copy_(fresh)
            numbers.copy_(schedule)
        else:
            self._buffers[shape] = fresh, schedule
        self._now.zero_()
        return shape

    def _step(self, batches: StepBatches, schedule: Schedule) -> None:
        """One optimiser step, whose index and inputs are all read on the device."""
        documents, numbers = batches.at(self._now), schedule.at(self._now)
        labels, weights = (part.index_select(0, self._now)[0] for part in (batches.labels, batches.weights))
        count = batches.documents.index_select(0, self._now)
        table = self._network.embedding
        start = table.index_select(0, documents.columns).requires_grad_(True)
        logits, follows = logits_and_follows(self._network, documents, start)
        loss = (losses(logits, labels) * weights).sum() / count[0]
        found = torch.autograd.grad(loss, [start, *self._differentiated.values()])
        gradients = dict(zip(self._differentiated, found[1:], strict=True))
        if self._row_adam is None:
            whole = torch.zeros_like(table).index_add_(0, documents.columns, found[0])
            self._adam.step({**gradients, "embedding": whole}, numbers)
            self._bounds.project_all(table, self._network.decoder)
        else:
            self._adam.step(gradients, numbers)
            decoder = self._network.decoder.detach()
            projection = (
                partial(self._bounds.project, rows=documents.columns, decoder=decoder) if self._bounds.active else None
            )
            self._row_adam.step(documents.columns, found[0], numbers, projection)
        places = torch.arange(len(follows), device=follows.device)
        right = (predicted(logits.detach()) == labels) & (torch.arange(len(labels), device=labels.device) < count)
        leads = (follows == places) & (documents.begin < documents.end)
        self._total += torch.stack([loss.detach() * count[0], right.sum(), leads.sum()])
        self._now += 1

    def validate(self) -> dict[str, float]:
        """Loss, accuracy and number of leaders on the validation rows, as ``held_out_…``; empty if there are none."""
        if self._validation is None:
            return {}
        return validation_metrics(*device_logits(self._network, self._validation.table), self._validation)
