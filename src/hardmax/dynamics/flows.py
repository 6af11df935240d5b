"""Flows in continuous time: layers whose number grows while each does less.

A flow says how fast tokens move; an integrator turns it into a layer, and :func:`hardmax.simulate` repeats that layer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from ..shapes import PerToken, Tokens


class AbstractFlow(ABC):
    """What every flow can do: say where tokens may be, and how fast they move there."""

    @abstractmethod
    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """What pulls each token, before it is bent to the space where tokens live."""

    @abstractmethod
    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """How fast each token moves."""

    @abstractmethod
    def project(self, tokens: Tokens) -> Tokens:
        """The nearest points of the space where tokens live."""

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """What pulls some of the tokens; flows that can leave out the work for the others do."""
        return self.drift(tokens, weights)[rows]

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """How fast some of the tokens move."""
        return self.velocity(tokens, weights)[rows]

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> Tokens:
        """Check tokens that came in with precision ``dtype`` before a run; give back those to start from."""
        return tokens

    def fastest_decay(self, tokens: Tokens, weights: PerToken) -> float:
        """The largest rate at which a small displacement of one token shrinks; steps must resolve it."""
        return 0.0
