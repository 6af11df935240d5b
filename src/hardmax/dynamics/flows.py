"""Flows in continuous time: the limit of many layers with small steps.

A flow defines the velocity of tokens. An integrator turns it into a layer, which :func:`hardmax.simulate` repeats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from ..shapes import PerToken, Tokens


class AbstractFlow(ABC):
    """Interface of a flow: the velocity of tokens, and the projection onto the space in which they move."""

    @abstractmethod
    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """Drift of each token before its projection to the tangent space, shape (tokens, d).

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """

    @abstractmethod
    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        """Velocity of each token, shape (tokens, d).

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).

        Returns
        -------
        Tensor
            Tangent vectors, shape (tokens, d).
        """

    @abstractmethod
    def project(self, tokens: Tokens) -> Tokens:
        """Nearest points of the space in which tokens move, shape (tokens, d).

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """Drift of some of the tokens; flows override it where that saves work.

        Parameters
        ----------
        rows
            Rows to return.
        tokens
            All tokens, shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).

        Returns
        -------
        Tensor
            ``drift(tokens, weights)[rows]``.
        """
        return self.drift(tokens, weights)[rows]

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        """Velocity of some of the tokens; flows override it where that saves work.

        Parameters
        ----------
        rows
            Rows to return.
        tokens
            All tokens, shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).

        Returns
        -------
        Tensor
            ``velocity(tokens, weights)[rows]``.
        """
        return self.velocity(tokens, weights)[rows]

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> Tokens:
        """Validated tokens from which a run starts, shape (tokens, d).

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).
        dtype
            Precision of the tokens that the caller passed; rounding to it is accepted.

        Returns
        -------
        Tensor
            Tokens, projected where the flow does so.
        """
        return tokens

    def fastest_decay(self, tokens: Tokens, weights: PerToken) -> float:
        """Largest rate at which a small displacement of one token decays; it limits the step.

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        weights
            Positive weight per token, shape (tokens,).

        Returns
        -------
        float
            Rate per unit of time; 0 where no displacement decays.
        """
        return 0.0
