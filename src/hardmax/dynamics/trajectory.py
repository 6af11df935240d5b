"""The result of a simulation: tokens at the stored layers, and how the run ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, cast

import numpy as np

from ..attention.base import AbstractLayer
from ..inputs import plain
from ..outcomes import Outcome, counted
from ..shapes import ArrayT_co
from .assumptions import Assumptions
from .leadership import Leadership

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Trajectory(Generic[ArrayT_co]):
    """Tokens at the stored layers of a run, returned by :func:`hardmax.simulate`.

    ``tokens[k]`` are the tokens, shape (tokens, d), at layer ``layers[k]`` (or at time ``times[k]`` of a flow).
    """

    tokens: ArrayT_co
    """Stored states, shape (states, tokens, d)."""
    layers: np.ndarray
    """Layer of each stored state, shape (states,); layer 0 is the input."""
    outcome: Outcome
    """How the run ended."""
    layer: AbstractLayer
    """Layer that was repeated; a :class:`hardmax.LayerSequence` where layers differed along depth."""
    times: np.ndarray | None = None
    """Time of each stored state, shape (states,), for flows in continuous time; otherwise None."""
    weights: ArrayT_co | None = None
    """Weight per token, shape (tokens,), when weights were given; otherwise None."""
    leadership: Leadership[ArrayT_co] | None = None
    """Leaders and followers up to the last layer, for a :class:`HardmaxLayer` with V = I; otherwise None."""
    assumptions: Assumptions | None = None
    """Which assumptions of Theorem 1.1 hold for these tokens and this layer; None where there is no leadership."""
    seed: int | None = None
    """Seed of the random numbers of a stochastic layer or flow, which reproduces the run; otherwise None."""

    @property
    def final(self) -> ArrayT_co:
        """Tokens at the last stored layer, shape (tokens, d)."""
        return cast(ArrayT_co, self.tokens[-1])

    def __len__(self) -> int:
        return len(self.layers)

    def __str__(self) -> str:
        states, n, d = self.tokens.shape
        size = f"{counted(n, 'token')} in {counted(d, 'dimension')}, {counted(states, 'state')} stored"
        return f"Trajectory of {size}; {self.outcome}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def to_xarray(self) -> xarray.Dataset:
        """Run as an :class:`xarray.Dataset` with labelled axes ``layer``, ``token`` and ``coordinate``.

        Returns
        -------
        xarray.Dataset
            Variable ``tokens``, and weights and leadership where the run has them; the outcome is in the attributes.
        """
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
