"""All features of a window that one readout weighs: lags, polynomials, attention, reservoir."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .attention import LagNetwork
from .delays import Embedding, flat_windows
from .polynomials import Monomials
from .protocol import FloatArray
from .reservoir import Reservoir


@dataclass(frozen=True)
class FeatureMap:
    """The constant, linear coordinates, monomials of coordinates, trained networks and a reservoir, side by side.

    With ``linear`` alone this is time-delayed DMD; with ``polynomial`` it is the next-generation reservoir; with
    ``networks`` the time-delayed transformer; with ``reservoir`` it contains the echo state network.
    """

    channels: int
    linear: Embedding | None = None
    polynomial: Embedding | None = None
    degree: int = 1
    tokens: Embedding | None = None
    networks: tuple[LagNetwork, ...] = ()
    scales: tuple[FloatArray, ...] = field(default=())
    token_lags: tuple[int, ...] = ()
    reservoir: Reservoir | None = None

    @cached_property
    def window(self) -> int:
        """How many samples these features look at."""
        parts = (self.linear, self.polynomial, self.tokens, self.reservoir)
        return max((part.window for part in parts if part is not None), default=1)

    @cached_property
    def _monomials(self) -> Monomials:
        size = 0 if self.polynomial is None else self.polynomial.size
        return Monomials(size, self.degree if size else 1)

    @cached_property
    def is_linear(self) -> bool:
        """Whether the features are the constant and linear coordinates only: TD-DMD."""
        return not self.networks and self.reservoir is None and (self.polynomial is None or self.degree == 1)

    @cached_property
    def size(self) -> int:
        """The number of features."""
        return (
            1
            + (self.linear.size if self.linear else 0)
            + (self.polynomial.size if self.polynomial else 0)
            + self._monomials.count
            + sum(network.size for network in self.networks)
            + (self.reservoir.size if self.reservoir else 0)
        )

    @property
    def inner_parameters(self) -> int:
        """Weights trained inside the features (the reservoir's are not)."""
        return sum(network.parameters for network in self.networks)

    def __call__(self, flat: FloatArray, states: FloatArray | None = None) -> FloatArray:
        """The features of each flattened window, with the reservoir's states where there is one."""
        parts = [np.ones((len(flat), 1))]
        if self.linear is not None:
            parts.append(self.linear(flat))
        if self.polynomial is not None:
            coordinates = self.polynomial(flat)
            parts += [coordinates, self._monomials(coordinates)]
        if self.tokens is not None and self.networks:
            tokens = self.tokens(flat)
            parts += [network(tokens) * scale for network, scale in zip(self.networks, self.scales, strict=True)]
        if states is not None:
            parts.append(states)
        return np.concatenate(parts, axis=1)

    def along(self, trajectory: FloatArray) -> FloatArray:
        """The features of every window of a trajectory that has a successor."""
        states = None
        if self.reservoir is not None:
            states = self.reservoir.run(trajectory)[self.window - 1 : -1]
        return self(flat_windows(trajectory, self.window), states)
