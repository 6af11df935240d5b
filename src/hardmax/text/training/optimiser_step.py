r"""Loss and predicted class, bounds on word positions, and one optimiser step on the CPU.

Training by the loss alone lets a word grow long without evidence: across the decoder's axis, which the decoder does not
read, or beyond what its frequencies in the classes support. Since long words become leaders, for two classes

- a word lies in the *cone* around the decoder's axis, :math:`|z_\perp| \le c\,|z_\parallel|`. For c < 1 the score of
  two words on different sides is negative, so that no word attends to a word of the other class;
- a word is *tethered* to its initial position, :math:`|z - z_{\text{start}}| \le r`: it may shrink or turn, but it
  leads only if the classes differ in how often it occurs.

For any number of classes words may be confined to the coordinates on which they start. N-grams of different lengths, or
at the end of a text, that start on separate coordinates then never attend to one another, and each kind has leaders of
its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch

from ...distributed import ALONE, Processes
from ..model.network import TINY, Network
from ..recipes import Recipe
from .adam import Adam, RowAdam


def losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Log loss of each document, shape (documents,)."""
    if logits.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits[:, 0], labels.to(logits.dtype), reduction="none"
        )
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none")


def predicted(logits: torch.Tensor) -> torch.Tensor:
    """Index of the predicted class of each document, shape (documents,)."""
    return (logits[:, 0] > 0).long() if logits.shape[1] == 1 else logits.argmax(dim=1)


@dataclass(frozen=True)
class Bounds:
    """Cone around the decoder's axis and tether to the initial position; infinite for no bound."""

    initial: torch.Tensor
    """Initial positions of all words, shape (words, coordinates)."""
    cone: float
    tether: float
    separate: bool = False
    """Whether a coordinate that is zero at the start stays zero."""

    @staticmethod
    def of(embedding: torch.Tensor, decoder: torch.Tensor, recipe: Recipe) -> Bounds:
        """Bounds of a recipe; cone and tether apply to two classes, whose decoder has a single axis."""
        one_axis = len(decoder) == 1
        cone, tether = (recipe.cone, recipe.tether) if one_axis else (math.inf, math.inf)
        return Bounds(embedding.detach().clone(), cone, tether, recipe.by_length)

    @property
    def active(self) -> bool:
        """Whether there is any bound."""
        return self.separate or math.isfinite(self.cone) or math.isfinite(self.tether)

    def project(self, points: torch.Tensor, rows: torch.Tensor, decoder: torch.Tensor) -> torch.Tensor:
        """Positions of the words ``rows``, moved from ``points`` first within the tether, then into the cone."""
        if self.separate:
            points = points * (self.initial.index_select(0, rows) != 0)
        if math.isfinite(self.tether):
            initial = self.initial.index_select(0, rows)
            away = points - initial
            points = initial + away * (self.tether / _lengths(away)).clamp_max(1)
        if math.isfinite(self.cone):
            axis = decoder[0] / decoder[0].norm().clamp_min(TINY)
            along = (points @ axis)[:, None]
            across = points - along * axis
            points = along * axis + across * (self.cone * along.abs() / _lengths(across)).clamp_max(1)
        return points

    @torch.no_grad()
    def project_all(self, embedding: torch.Tensor, decoder: torch.Tensor) -> None:
        """Move all words of the embedding, in place, to where the bounds allow them."""
        if self.active:
            rows = torch.arange(len(embedding), device=embedding.device)
            embedding.copy_(self.project(embedding, rows, decoder))


def _lengths(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.square().sum(dim=1, keepdim=True).sqrt().clamp_min(TINY)


class Optimiser:
    """Optimiser of the learned parameters of a network on the CPU.

    Gradients are summed over ``processes``, so that the parameters of all processes stay equal.
    """

    def __init__(self, network: Network, recipe: Recipe, processes: Processes = ALONE) -> None:
        self._network, self._processes = network, processes
        self._by_rows = not recipe.momentum
        self.parameters = {name: p for name, p in network.parameters().items() if name not in recipe.fixed}
        self._whole = {
            name: p.requires_grad_(True)
            for name, p in self.parameters.items()
            if not (self._by_rows and name == "embedding")
        }
        self._moments = Adam.zero_moments(self._whole)
        if self._by_rows:
            self._moments |= RowAdam.zero_moments(network.embedding)
        self._bounds = Bounds.of(network.embedding, network.decoder, recipe)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments by name, as saved in a checkpoint and filled from it."""
        return {**{name: p.detach() for name, p in self.parameters.items()}, **self._moments}

    def prepare(self, steps: int) -> None:
        """Prepare to resume after ``steps`` steps."""
        self._adam = Adam(self._whole, self._moments, steps, self._processes)
        self._row_adam = RowAdam(self._network.embedding, self._moments, steps) if self._by_rows else None

    def requiring_gradient(self, start: torch.Tensor) -> torch.Tensor:
        """Initial positions of the words of a step, with a gradient of their own if the embedding has none."""
        return start.requires_grad_(True) if self._by_rows else start

    def step(self, rate: float, columns: torch.Tensor, start: torch.Tensor) -> None:
        """Update all parameters; ``start`` is the value of :meth:`requiring_gradient` for the words ``columns``."""
        self._adam.step(rate)
        if self._row_adam is None:
            self.project_all()
            return
        assert start.grad is not None  # noqa: S101 (the loss has been differentiated)
        columns, gradient = self._processes.gather(columns), self._processes.gather(start.grad)
        decoder = self._network.decoder.detach()
        projection = partial(self._bounds.project, rows=columns, decoder=decoder) if self._bounds.active else None
        self._row_adam.step(rate, columns, gradient, projection)

    def project_all(self) -> None:
        """Move all words within the bounds; those of past steps may violate them if the decoder has turned since."""
        self._bounds.project_all(self._network.embedding, self._network.decoder)
