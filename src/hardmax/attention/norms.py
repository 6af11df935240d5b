"""Normalisations of a token: to zero mean and unit variance, to unit root mean square, to unit length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from ..errors import InputError
from ..inputs import as_number
from ..shapes import ArrayLike, Tokens, Values
from .heads import as_vector


class AbstractNorm(ABC):
    """Interface of a normalisation, applied to each token by itself."""

    @abstractmethod
    def __call__(self, tokens: Tokens) -> Tokens:
        """Normalised tokens, shape (tokens, d).

        Parameters
        ----------
        tokens
            Float64 tensor of shape (tokens, d).

        Returns
        -------
        Tensor
            Shape (tokens, d).
        """


def _as_epsilon(value: object) -> float:
    return as_number("epsilon", value, lambda x: x >= 0, "must not be negative", "pass for example 1e-5")


@dataclass(frozen=True, eq=False, init=False)
class LayerNorm(AbstractNorm):
    r"""Layer normalisation: :math:`g\,(z - \bar z)/\sqrt{\mathrm{var}(z) + \epsilon} + b` over the coordinates.

    Parameters
    ----------
    gain
        Factor per coordinate g, shape (d,); one when left out.
    bias
        Offset per coordinate b, shape (d,); zero when left out.
    epsilon
        Number added to the variance.
    """

    gain: Values | None
    bias: Values | None
    epsilon: float

    def __init__(self, gain: ArrayLike | None = None, bias: ArrayLike | None = None, epsilon: float = 1e-5) -> None:
        object.__setattr__(self, "gain", as_vector("gain", gain))
        object.__setattr__(self, "bias", as_vector("bias", bias))
        object.__setattr__(self, "epsilon", _as_epsilon(epsilon))

    def __call__(self, tokens: Tokens) -> Tokens:
        centred = tokens - tokens.mean(dim=1, keepdim=True)
        scaled = centred / (centred.square().mean(dim=1, keepdim=True) + self.epsilon).sqrt()
        scaled = scaled if self.gain is None else scaled * _fitting("gain", self.gain, tokens)
        return scaled if self.bias is None else scaled + _fitting("bias", self.bias, tokens)


@dataclass(frozen=True, eq=False, init=False)
class RmsNorm(AbstractNorm):
    r"""Root-mean-square normalisation: :math:`g\,z/\sqrt{\overline{z^2} + \epsilon}` over the coordinates.

    Parameters
    ----------
    gain
        Factor per coordinate g, shape (d,); one when left out.
    epsilon
        Number added to the mean square.
    """

    gain: Values | None
    epsilon: float

    def __init__(self, gain: ArrayLike | None = None, epsilon: float = 1e-6) -> None:
        object.__setattr__(self, "gain", as_vector("gain", gain))
        object.__setattr__(self, "epsilon", _as_epsilon(epsilon))

    def __call__(self, tokens: Tokens) -> Tokens:
        scaled = tokens / (tokens.square().mean(dim=1, keepdim=True) + self.epsilon).sqrt()
        return scaled if self.gain is None else scaled * _fitting("gain", self.gain, tokens)


@dataclass(frozen=True)
class UnitNorm(AbstractNorm):
    """Projection to the unit sphere: each token divided by its length. A zero token stays at zero."""

    def __call__(self, tokens: Tokens) -> Tokens:
        # The largest coordinate first: squares of very large or small numbers leave the range of float64.
        size = tokens.abs().amax(dim=1, keepdim=True)
        near_one = tokens / torch.where(size > 0, size, 1.0)
        length = near_one.norm(dim=1, keepdim=True)
        return near_one / torch.where(length > 0, length, 1.0)


def _fitting(name: str, vector: Values, tokens: Tokens) -> Values:
    if len(vector) != tokens.shape[1]:
        raise InputError(
            name,
            f"{len(vector)} numbers",
            f"must have one number per coordinate, {tokens.shape[1]}",
            "tokens are (token, coordinate); transpose them if the axes are swapped",
        )
    return vector.to(tokens.device)
