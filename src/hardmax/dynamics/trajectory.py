"""What a simulation gives back: tokens at the layers that were kept, and what became of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, cast

import numpy as np

from ..attention.layer import AbstractLayer
from ..inputs import plain
from ..outcomes import Outcome, counted
from ..shapes import ArrayT_co
from .assumptions import Assumptions
from .leadership import Leadership

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Trajectory(Generic[ArrayT_co]):
    """Tokens through the layers.

    ``tokens[k]`` are the tokens, ``(token, coordinate)``, at layer ``layers[k]`` (or at time ``times[k]`` of a flow).
    """

    tokens: ArrayT_co
    """Shape (kept, token, coordinate)."""
    layers: np.ndarray
    """The layer of each kept state; layer 0 is the input."""
    outcome: Outcome
    layer: AbstractLayer
    """The layer that was repeated."""
    times: np.ndarray | None = None
    """The time of each kept state, for flows in continuous time."""
    weights: ArrayT_co | None = None
    """The weight of each token, when weights were given."""
    leadership: Leadership[ArrayT_co] | None = None
    """Who leads and who follows as far as the run went, for layers that decide (see :class:`HardmaxLayer`)."""
    assumptions: Assumptions | None = None
    """Which assumptions of Theorem 1.1 hold for these tokens and this layer."""

    @property
    def final(self) -> ArrayT_co:
        """The tokens at the last kept layer."""
        return cast(ArrayT_co, self.tokens[-1])

    def __len__(self) -> int:
        return len(self.layers)

    def __str__(self) -> str:
        kept, n, d = self.tokens.shape
        size = f"{counted(n, 'token')} in {counted(d, 'dimension')}, {counted(kept, 'state')} kept"
        return f"Trajectory of {size}; {self.outcome}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def to_xarray(self) -> xarray.Dataset:
        """The run as an :class:`xarray.Dataset` with labelled axes ``layer``, ``token`` and ``coordinate``."""
        import xarray

        values = plain(self.tokens)
        data: dict[str, tuple[tuple[str, ...], np.ndarray]] = {"tokens": (("layer", "token", "coordinate"), values)}
        coordinates: dict[str, object] = {
            "layer": self.layers,
            "token": np.arange(values.shape[1]),
            "coordinate": np.arange(values.shape[2]),
        }
        if self.times is not None:
            coordinates["time"] = ("layer", self.times)
        if self.weights is not None:
            data["weights"] = (("token",), plain(self.weights))
        if self.leadership is not None:
            data["follows"] = (("token",), plain(self.leadership.follows))
            data["decided_at"] = (("token",), plain(self.leadership.decided_at))
            data["emerged_at"] = (("leader",), plain(self.leadership.emerged_at))
            coordinates["leader"] = plain(self.leadership.leaders)
        attributes = {**self.outcome.attributes(), "rule": str(self.layer)}
        return xarray.Dataset(data, coords=coordinates, attrs=attributes)
