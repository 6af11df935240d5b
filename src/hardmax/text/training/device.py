"""Training as hardmax on sparse rows on a device, without waiting for it at any step.

The model, the batches and the dropped words are those of ``loop.RowsTrainer``: permutations and dropout masks come from
the same generator on the CPU, so both do the same steps up to rounding. The documents stay on the device; only the
dropout masks are copied to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from scipy import sparse

from ...progress import Ticker
from ..model.device_batches import DeviceRows, Laid, Shape, laid, logits_and_follows
from ..model.network import Network
from ..recipes import Recipe
from .adam import Adam, RowAdam, rate_at
from .capturable_adam import PacedAdam, PacedRowAdam, Paces, Replays
from .loop import Trainer, judged, noted, rates_of
from .optimiser_step import Bounds, losses, winners
from .state import Rows

_STEPS_AT_ONCE = 64
_WORDS_AT_ONCE = 2**24
_WORDS_JUDGED_AT_ONCE = 2**22


class DeviceTrainer(Trainer):
    """Trains copies of a network's parameters on a device."""

    def __init__(
        self, network: Network, rows: Rows, held_out: Rows | None, recipe: Recipe, *, seed: int, device: str
    ) -> None:
        self._recipe, self._seed, self._shape, self._held_out = recipe, seed, shape_of(network), held_out
        place, dtype = torch.device(device), network.embedding.dtype
        self._all = {name: part.detach().to(place, copy=True) for name, part in network.parameters().items()}
        self.parameters = {name: p for name, p in self._all.items() if name not in recipe.fixed}
        table = self._all["embedding"]
        self._rows = DeviceRows.of(rows.table, rows.labels, rows.weights, place, dtype)
        self._rates = rates_of(self._rows.sizes, recipe.dropout)
        self._rates_there = torch.from_numpy(self._rates).to(place)
        # Gradients of the table are summed from those of a step's words, so it needs none of its own.
        watched = {name: p.requires_grad_(True) for name, p in self.parameters.items() if name != "embedding"}
        self._watched = watched
        whole = self.parameters if recipe.momentum else watched
        self._moments = Adam.moments_for({name: p.detach() for name, p in whole.items()})
        self._adam = PacedAdam(whole, self._moments)
        self._row_adam = None
        if not recipe.momentum:
            self._moments |= RowAdam.moments_for(table)
            self._row_adam = PacedRowAdam(table, self._moments)
        self._bounds = Bounds.of(table, self._all["decoder"], recipe)
        self._total = torch.zeros(3, dtype=torch.float64, device=place)
        self._now = torch.zeros(1, dtype=torch.int64, device=place)
        self._places: dict[tuple[int, ...], tuple[Laid, Paces]] = {}
        # With a learned matrix the number of pairs of words and leaders has to be asked for.
        self._replays = Replays(place, wanted="raw_factor" not in self._all)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments, to be kept or filled."""
        return {**{name: p.detach() for name, p in self.parameters.items()}, **self._moments}

    def begin(self, epoch: int, epochs: int) -> None:
        """Get ready for the epoch after so many."""
        self._steps = math.ceil(len(self._rows.sizes) / self._recipe.batch_size)
        self._last = epochs * self._steps

    def epoch(self, number: int, ticker: Ticker) -> dict[str, float]:
        """Go through all documents once; the mean loss, accuracy and number of leaders."""
        size, first = self._recipe.batch_size, number * self._steps
        rng = np.random.default_rng([self._seed, number])
        order = rng.permutation(len(self._rows.sizes))
        # So many steps at once that their words fit; a power of two, so that few shapes occur.
        words = np.add.reduceat(self._rows.sizes[order], np.arange(0, len(order), size)).max()
        steps = 1 << (int(np.clip(_WORDS_AT_ONCE // words, 1, _STEPS_AT_ONCE)).bit_length() - 1)
        self._total.zero_()
        seen, mean = 0, {}
        for some, draws in self._drawn(order, size, steps, rng):
            count = math.ceil(len(some) / size)
            kind = self._put(some, draws, steps, first)
            for _ in range(count):
                self._replays.run(kind, partial(self._step, *self._places[kind]))
            first, seen = first + count, seen + len(some)
            mean = dict(zip(("loss", "accuracy", "leaders"), (self._total / seen).tolist(), strict=True))
            ticker.advance(count, noted(mean))
        self._settle()
        return mean

    def _drawn(
        self, order: np.ndarray, size: int, steps: int, rng: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """The documents of some steps at a time and the numbers drawn for their words, while the device is busy."""

        def draws(some: np.ndarray) -> np.ndarray | None:
            if not self._rates.any():
                return None
            sizes = self._rows.sizes[some]
            numbers = np.zeros(sizes.sum(), dtype=np.float32)
            borders = np.concatenate([[0], np.cumsum(sizes)])
            for begin in range(0, len(some), size):
                stop = min(begin + size, len(some))
                if self._rates[some[begin:stop]].any():  # else nothing is drawn for this step
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

    def _put(self, some: np.ndarray, draws: np.ndarray | None, steps: int, first: int) -> tuple[int, ...]:
        """Lay the documents of the next steps out where the step of their shape looks for them; which shape it is."""
        recipe = self._recipe
        words = int(self._rows.sizes[some].sum()) // math.ceil(len(some) / recipe.batch_size)
        # Rounded up to one of eight sizes between a power of two and the next.
        multiple = max(64, 1 << max(words.bit_length() - 4, 0))
        fresh = laid(self._rows, some, recipe.batch_size, draws, self._rates_there, steps=steps, multiple=multiple)
        rates = [rate_at(first + k, self._last, recipe.learning_rate, recipe.decay) for k in range(steps)]
        paces = Paces.of(rates, first, self._all["embedding"])
        kind = tuple(fresh.columns.shape)
        if kind in self._places:
            there = self._places[kind]
            there[0].copy_(fresh)
            there[1].copy_(paces)
        else:
            self._places[kind] = fresh, paces
        self._now.zero_()
        return kind

    def _step(self, documents: Laid, paces: Paces) -> None:
        """One step, with everything about it found on the device."""
        pile, pace = documents.pile(self._now), paces.at(self._now)
        labels, weights = (part.index_select(0, self._now)[0] for part in (documents.labels, documents.weights))
        count = documents.documents.index_select(0, self._now)
        start = self._all["embedding"].index_select(0, pile.columns).requires_grad_(True)
        logits, follows = logits_and_follows(self._all, pile, start, self._shape)
        loss = (losses(logits, labels) * weights).sum() / count[0]
        found = torch.autograd.grad(loss, [start, *self._watched.values()])
        gradients = dict(zip(self._watched, found[1:], strict=True))
        if self._row_adam is None:
            table = torch.zeros_like(self._all["embedding"]).index_add_(0, pile.columns, found[0])
            self._adam.step({**gradients, "embedding": table}, pace)
            self._settle()
        else:
            self._adam.step(gradients, pace)
            decoder = self._all["decoder"].detach()
            within = partial(self._bounds.kept, rows=pile.columns, decoder=decoder) if self._bounds.any else None
            self._row_adam.step(pile.columns, found[0], pace, within)
        places = torch.arange(len(follows), device=follows.device)
        right = (winners(logits.detach()) == labels) & (torch.arange(len(labels), device=labels.device) < count)
        leads = (follows == places) & (pile.begin < pile.end)
        self._total += torch.stack([loss.detach() * count[0], right.sum(), leads.sum()])
        self._now += 1

    @torch.no_grad()
    def _settle(self) -> None:
        """All words to where they may lie."""
        if self._bounds.any:
            table = self._all["embedding"]
            rows = torch.arange(len(table), device=table.device)
            table.copy_(self._bounds.kept(table, rows, self._all["decoder"]))

    def judged(self) -> dict[str, float]:
        """The same of the documents kept aside, by the names ``held_out_…``; empty where there are none."""
        if self._held_out is None:
            return {}
        return judged(*_answers(self._all, self._shape, self._held_out.table), self._held_out)


def shape_of(network: Network) -> Shape:
    """What of a network is not learned."""
    return Shape(network.least_alpha, network.depth, network.norm_masses, network.resting_mass)


def answers_on(device: str, network: Network, table: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Logits of all documents and how many leaders each has, as on the CPU up to rounding."""
    parameters = {name: part.to(device) for name, part in network.parameters().items()}
    return _answers(parameters, shape_of(network), table)


@torch.no_grad()
def _answers(
    parameters: dict[str, torch.Tensor], shape: Shape, table: sparse.csr_matrix
) -> tuple[np.ndarray, np.ndarray]:
    words, bias = parameters["embedding"], parameters["bias"]
    logits, leaders = np.empty((table.shape[0], len(bias))), np.zeros(table.shape[0], dtype=np.int64)
    borders = np.searchsorted(table.indptr, np.arange(0, table.nnz + 1, _WORDS_JUDGED_AT_ONCE))
    for first, stop in zip(borders, [*borders[1:], table.shape[0]], strict=True):
        if first == stop:
            continue
        part, none = table[first:stop], np.zeros(stop - first)
        rows = DeviceRows.of(part, none, none, words.device, words.dtype)
        pile = rows.pile(0, int(stop - first))
        found, follows = logits_and_follows(parameters, pile, words.index_select(0, pile.columns), shape)
        leads = (follows == torch.arange(len(follows), device=follows.device)).long()
        logits[first:stop] = found.cpu().numpy()
        leaders[first:stop] = found.new_zeros(pile.size).long().index_add(0, pile.document, leads).cpu().numpy()
    return logits, leaders
