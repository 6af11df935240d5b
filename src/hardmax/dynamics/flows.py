r"""Flows in continuous time: the limit of many layers with small steps.

A flow defines the velocity of tokens, and optionally noise. An integrator turns it into a layer, which
:func:`hardmax.simulate` repeats. With the velocity f, the amplitude :math:`\sigma` and a Brownian motion B of the space
in which the tokens move, for each token on its own,

.. math:: dX_i = f_i(t, X)\, dt + \sigma\, dB_i .
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

from ..errors import InputError
from ..scalars import shown
from ..shapes import PerToken, States, Tokens, Values
from .spaces import AbstractSpace, EuclideanSpace, UnitSphere, directions_of


class AbstractFlow(ABC):
    """Interface of a flow: the velocity of tokens, and the projection onto the space in which they move.

    A flow in Euclidean space is a subclass of :class:`hardmax.EuclideanFlow` with one method, or a
    :class:`hardmax.CallableFlow`.
    """

    @property
    def space(self) -> AbstractSpace:
        """Space in which tokens move; noise and momentum need it."""
        raise InputError(
            "flow",
            str(self),
            "does not say in which space tokens move",
            "give it a property space, such as hardmax.dynamics.EuclideanSpace() or UnitSphere()",
        )

    @property
    def stochastic(self) -> bool:
        """Whether the flow has noise; see :class:`hardmax.NoisyFlow`."""
        return False

    @property
    def diffusion(self) -> float | Values:
        """Amplitude of the noise: one number, or one per coordinate, shape (d,); 0 where there is none."""
        return 0.0

    def at(self, time: float) -> AbstractFlow:
        """Flow with the velocity at a time; flows that depend on time override it.

        Parameters
        ----------
        time
            Time since the start of the run.

        Returns
        -------
        AbstractFlow
            A flow that does not depend on time; this flow itself where it does not.
        """
        return self

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

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> States:
        """Validated states from which a run starts, shape (tokens, d), or wider where tokens carry extra coordinates.

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
            Tokens, projected where the flow does so; with initial momenta behind them in :class:`hardmax.MomentumFlow`.
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

    def __repr__(self) -> str:
        return type(self).__name__


class EuclideanFlow(AbstractFlow):
    """Interface of a flow in R^d: a subclass defines :meth:`velocity` alone.

    Examples
    --------
    >>> import hardmax as hm
    >>> class Contraction(hm.EuclideanFlow):
    ...     def velocity(self, tokens, weights):
    ...         return tokens.mean(dim=0) - tokens
    >>> hm.simulate([[0.0, 1.0], [2.0, 1.0]], Contraction(), time=1.0, integrator="rk4").final.round(4)
    array([[0.6321, 1.    ],
           [1.3679, 1.    ]])
    """

    @property
    def space(self) -> AbstractSpace:
        """Euclidean space."""
        return EuclideanSpace()

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.velocity(tokens, weights)

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.velocity_of(rows, tokens, weights)

    def project(self, tokens: Tokens) -> Tokens:
        return tokens


class CallableFlow(AbstractFlow):
    """Flow whose velocity is a function, in R^d or on the unit sphere.

    Parameters
    ----------
    function
        Called as ``function(tokens, weights)`` with float64 tensors of shapes (tokens, d) and (tokens,); returns the
        velocity of each token, shape (tokens, d). On the sphere its tangential part is used.
    sphere
        Whether tokens move on the unit sphere; they are scaled to length one before a run.

    Examples
    --------
    >>> import hardmax as hm
    >>> hm.simulate([[1.0, 2.0]], hm.CallableFlow(lambda z, w: -z), time=1.0, integrator="rk4").final.round(4)
    array([[0.3679, 0.7358]])
    """

    def __init__(self, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], sphere: bool = False) -> None:
        if not callable(function):
            raise InputError("function", shown(function), "must be a function", "pass for example lambda z, w: -z")
        self._function = function
        self._space = UnitSphere() if sphere else EuclideanSpace()

    @property
    def space(self) -> AbstractSpace:
        """Euclidean space, or the unit sphere."""
        return self._space

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        found = self._function(tokens, weights)
        if not isinstance(found, torch.Tensor) or found.shape != tokens.shape:
            got = f"shape {tuple(found.shape)}" if isinstance(found, torch.Tensor) else shown(found)
            remedy = "return one velocity per token"
            raise InputError("function", got, f"must return a tensor of shape {tuple(tokens.shape)}", remedy)
        return found

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self._space.tangent(tokens, self.drift(tokens, weights))

    def project(self, tokens: Tokens) -> Tokens:
        return self._space.project(tokens)

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> States:
        return directions_of(tokens) if isinstance(self._space, UnitSphere) else tokens

    def __str__(self) -> str:
        return f"flow of {getattr(self._function, '__name__', type(self._function).__name__)} in {self._space}"


class AbstractWrappedFlow(AbstractFlow):
    """Interface of a flow that changes one property of another flow and takes over all others."""

    flow: AbstractFlow
    """The flow whose properties are taken over."""

    @property
    def space(self) -> AbstractSpace:
        """Space of the wrapped flow."""
        return self.flow.space

    @property
    def stochastic(self) -> bool:
        """Whether the wrapped flow has noise."""
        return self.flow.stochastic

    @property
    def diffusion(self) -> float | Values:
        """Amplitude of the noise of the wrapped flow."""
        return self.flow.diffusion

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.flow.drift(tokens, weights)

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.flow.velocity(tokens, weights)

    def project(self, tokens: Tokens) -> Tokens:
        return self.flow.project(tokens)

    def drift_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.flow.drift_of(rows, tokens, weights)

    def velocity_of(self, rows: slice, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.flow.velocity_of(rows, tokens, weights)

    def admit(self, tokens: Tokens, weights: PerToken, dtype: torch.dtype) -> States:
        return self.flow.admit(tokens, weights, dtype)

    def fastest_decay(self, tokens: Tokens, weights: PerToken) -> float:
        return self.flow.fastest_decay(tokens, weights)
