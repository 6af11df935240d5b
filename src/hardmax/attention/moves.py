r"""Moves of a token by the update of its heads: convex step, residual, no skip, implicit step, step on the sphere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from ..errors import InputError
from ..inputs import as_square
from ..shapes import ArrayLike, Square, Tokens
from .choice import apply
from .norms import UnitNorm
from .steps import AbstractSteps, as_step, step_size

Step = float | AbstractSteps


class AbstractMove(ABC):
    """Interface of a move: the next token from the token and the sum that its heads pass on."""

    @abstractmethod
    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        """Next tokens, shape (tokens, d).

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).
        update
            What the heads pass on to each token, shape (tokens, d).
        index
            Number of the layer in a run, from 0.

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """

    @property
    def is_convex(self) -> bool:
        """Whether the next token is a convex combination of the token and the update."""
        return False

    @property
    def on_sphere(self) -> bool:
        """Whether tokens of length one stay of length one."""
        return False


def _checked(alpha: Step) -> Step:
    step = as_step(alpha)
    return step if isinstance(step, AbstractSteps) else float(step)


@dataclass(frozen=True)
class ConvexStep(AbstractMove):
    r"""Step of the clustering paper: :math:`z' = (z + \alpha m)/(1 + \alpha)`.

    Parameters
    ----------
    alpha
        Step size, positive, or one per layer (:class:`hardmax.PowerSteps`).
    """

    alpha: Step = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _checked(self.alpha))

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        alpha = float(step_size(self.alpha, index))
        return (tokens + alpha * update) / (1 + alpha)

    @property
    def is_convex(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"convex step, alpha = {self.alpha}"


@dataclass(frozen=True)
class ResidualStep(AbstractMove):
    r"""Residual connection: :math:`z' = z + \alpha m`.

    Parameters
    ----------
    alpha
        Step size, positive, or one per layer (:class:`hardmax.PowerSteps`).
    """

    alpha: Step = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _checked(self.alpha))

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        return tokens + float(step_size(self.alpha, index)) * update

    def __str__(self) -> str:
        return f"residual, alpha = {self.alpha}"


@dataclass(frozen=True)
class NoSkip(AbstractMove):
    r"""Attention without a skip connection: :math:`z' = m`."""

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        return update

    @property
    def is_convex(self) -> bool:
        return True

    def __str__(self) -> str:
        return "no skip connection"


@dataclass(frozen=True, eq=False, init=False)
class ImplicitStep(AbstractMove):
    r"""Step with a general value matrix: :math:`z' = (I + V)^{-1}(z + V m)`.

    With :math:`V = \alpha I` this is the convex step. The heads pass on means of tokens: their value matrices are the
    identity.

    Parameters
    ----------
    V
        Value matrix of shape (d, d), of any rank, such that I + V is invertible.
    """

    V: Square

    def __init__(self, V: ArrayLike) -> None:
        matrix = as_square("V", V)
        identity = torch.eye(len(matrix), dtype=torch.float64)
        if (
            not float(torch.linalg.cond(identity + matrix)) <= 1e12
        ):  # fewer than four digits of the result would be right
            raise InputError("V", "I + V is singular", "must leave I + V invertible", "rescale V")
        object.__setattr__(self, "V", matrix)

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        V = as_square("V", self.V, tokens.shape[1]).to(tokens.device)
        identity = torch.eye(len(V), dtype=torch.float64, device=tokens.device)
        # z' = z + (I + V)^{-1} V (m - z): tokens that attend to themselves stay exactly where they are.
        gain = torch.linalg.solve(identity + V, V)
        return tokens + apply(gain, update - tokens)

    def __str__(self) -> str:
        return f"implicit step, V = {len(self.V)} x {len(self.V)}"


@dataclass(frozen=True)
class SphereStep(AbstractMove):
    r"""Residual step on the unit sphere: :math:`z' = (z + \alpha\,P_z m)/|z + \alpha\,P_z m|`.

    :math:`P_z` is the projection to the tangent space at z. Without it (``tangent=False``) the step is the residual
    connection with normalisation after it, as in a transformer.

    Parameters
    ----------
    alpha
        Step size, positive, or one per layer (:class:`hardmax.PowerSteps`).
    tangent
        Whether the update is projected to the tangent space first.
    """

    alpha: Step = 1.0
    tangent: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _checked(self.alpha))

    def __call__(self, tokens: Tokens, update: Tokens, index: int) -> Tokens:
        if self.tangent:
            update = update - (update * tokens).sum(dim=1, keepdim=True) * tokens
        return UnitNorm()(tokens + float(step_size(self.alpha, index)) * update)

    @property
    def on_sphere(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"step on the sphere, alpha = {self.alpha}"
