r"""Losses, bounds on word positions, and one optimiser step.

Training by the loss alone lets a word grow long although it says little: across the decoder's axis, where the decoder
does not see it, or beyond what its frequencies in the classes bear out. Long words lead. So for two classes

- a word lies in the *cone* around the decoder's axis, :math:`|z_\perp| \le c\,|z_\parallel|`. For c < 1 two words on
  different sides have a negative score, so nobody follows a word that speaks for the other class;
- a word is *tethered* to where the evidence put it, :math:`|z - z_{\text{start}}| \le r`: it may shrink or turn, but it
  leads only if the classes differ in how often it occurs.

For any number of classes words may have to stay *apart*: on the coordinates on which they start. N-grams of different
lengths, or at the end of a text, that start on coordinates of their own then never follow one another, and each kind
has its own leaders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch

from ...distributed import ALONE, Processes
from ..model.network import Network
from ..recipes import Recipe
from .adam import Adam, RowAdam


def losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The log loss of each document."""
    if logits.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits[:, 0], labels.to(logits.dtype), reduction="none"
        )
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none")


def winners(logits: torch.Tensor) -> torch.Tensor:
    """The number of the class that each row of logits names."""
    return (logits[:, 0] > 0).long() if logits.shape[1] == 1 else logits.argmax(dim=1)


_TINY = 1e-12


@dataclass(frozen=True)
class Bounds:
    """A cone around the decoder's axis and a tether to the start; infinite where there is none.

    ``apart``: a coordinate that is zero at the start stays zero.
    """

    home: torch.Tensor
    """Where all words start."""
    cone: float
    tether: float
    apart: bool = False

    @staticmethod
    def of(embedding: torch.Tensor, decoder: torch.Tensor, recipe: Recipe) -> Bounds:
        """Those of a recipe for words that start here; cone and tether need the one axis that two classes have."""
        one_axis = len(decoder) == 1
        cone, tether = (recipe.cone, recipe.tether) if one_axis else (math.inf, math.inf)
        return Bounds(embedding.detach().clone(), cone, tether, recipe.by_length)

    @property
    def any(self) -> bool:
        """Whether there is something to keep to."""
        return self.apart or math.isfinite(self.cone) or math.isfinite(self.tether)

    def kept(self, points: torch.Tensor, rows: torch.Tensor, decoder: torch.Tensor) -> torch.Tensor:
        """The words ``rows`` at ``points``, moved to where they may lie: first by the tether, then into the cone."""
        if self.apart:
            points = points * (self.home.index_select(0, rows) != 0)
        if math.isfinite(self.tether):
            home = self.home.index_select(0, rows)
            away = points - home
            points = home + away * (self.tether / _lengths(away)).clamp_max(1)
        if math.isfinite(self.cone):
            axis = decoder[0] / decoder[0].norm().clamp_min(_TINY)
            along = (points @ axis)[:, None]
            across = points - along * axis
            points = along * axis + across * (self.cone * along.abs() / _lengths(across)).clamp_max(1)
        return points


def _lengths(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.square().sum(dim=1, keepdim=True).sqrt().clamp_min(_TINY)


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
