"""One step of training: every parameter moves by its gradient, and words stay where they may lie."""

from __future__ import annotations

from functools import partial

import torch

from ..distributed import ALONE, Processes
from .adam import Adam, RowAdam
from .bounds import Bounds
from .network import Network
from .recipes import Recipe


class Mover:
    """Moves the learned parameters of a network; ``tensors`` is all that must be kept to go on later.

    Gradients are summed over the processes ``ranks``, so all of them move alike.
    """

    def __init__(self, network: Network, recipe: Recipe, ranks: Processes = ALONE) -> None:
        self._network, self._ranks = network, ranks
        self._by_rows = not recipe.momentum
        self.parameters = {name: p for name, p in network.parameters().items() if name not in recipe.fixed}
        self._whole = {
            name: p.requires_grad_(True) for name, p in self.parameters.items() if not self._is_by_rows(name)
        }
        self._moments = Adam.moments_for(self._whole)
        if self._by_rows:
            self._moments |= RowAdam.moments_for(network.embedding)
        self._bounds = Bounds.of(network.embedding, network.decoder, recipe)

    def _is_by_rows(self, name: str) -> bool:
        return self._by_rows and name == "embedding"

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments, to be kept or filled."""
        return {**{name: p.detach() for name, p in self.parameters.items()}, **self._moments}

    def begin(self, steps: int) -> None:
        """Get ready to go on after so many steps."""
        self._adam = Adam(self._whole, self._moments, steps, self._ranks)
        self._row_adam = RowAdam(self._network.embedding, self._moments, steps) if self._by_rows else None

    def watch(self, start: torch.Tensor) -> torch.Tensor:
        """Where the words of a step start, such that gradients reach them."""
        return start.requires_grad_(True) if self._by_rows else start

    def step(self, rate: float, columns: torch.Tensor, start: torch.Tensor) -> None:
        """Move everything; ``start`` are the words ``columns`` as :meth:`watch` gave them."""
        self._adam.step(rate)
        if self._row_adam is None:
            self.settle()
            return
        assert start.grad is not None  # noqa: S101 (a loss has been differentiated)
        columns, gradient = self._ranks.gather(columns), self._ranks.gather(start.grad)
        decoder = self._network.decoder.detach()
        within = partial(self._bounds.kept, rows=columns, decoder=decoder) if self._bounds.any else None
        self._row_adam.step(rate, columns, gradient, within)

    @torch.no_grad()
    def settle(self) -> None:
        """All words to where they may lie; those of a step are there already, unless the decoder has turned since."""
        if self._bounds.any:
            table = self._network.embedding
            table.copy_(self._bounds.kept(table, torch.arange(len(table)), self._network.decoder))
