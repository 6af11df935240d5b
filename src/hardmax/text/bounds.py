r"""Where words may lie, so that leaders are words that a person agrees with.

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

import torch

from .recipes import Recipe

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
