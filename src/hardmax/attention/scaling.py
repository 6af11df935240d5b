"""Numbers of any size: bring tokens and matrices near one by an exact power of two.

The hardmax map commutes with ``z -> c z`` and is blind to ``A -> c A`` (c > 0), and scaling by a power of two rounds
nothing, so tokens of size 1e300 or 1e-300 are answered like any others instead of overflowing in a product.
"""

from __future__ import annotations

import math

import torch

from ..errors import InputError

# Below 2**-960 of the largest coordinate, a coordinate could lose digits when multiplied by another.
_LOWEST_EXPONENT = -960


def exponent_of(tensor: torch.Tensor) -> int:
    """The power of two just above the largest entry (0 for a tensor of zeros)."""
    return math.frexp(float(tensor.detach().abs().max()))[1]


def scaled_down(argument: str, tensor: torch.Tensor, exponent: int | None = None) -> tuple[torch.Tensor, int]:
    """``(tensor * 2**-exponent, exponent)`` with entries at most 1 in size; refuse what would lose digits.

    The exponent may be given, where the tensor is a part of something larger.

    >>> scaled_down("tokens", torch.tensor([[3e300, 1e290]], dtype=torch.float64))[1]
    999
    """
    exponent = exponent_of(tensor) if exponent is None else exponent
    scaled = scale(tensor, -exponent)
    size = scaled.detach().abs()
    if float(size.min()) >= 2.0**_LOWEST_EXPONENT:
        return scaled, exponent
    lost = (tensor != 0) & (size < 2.0**_LOWEST_EXPONENT)
    if bool(lost.any()):
        low = float(tensor.detach().abs()[lost].min())
        high = float(tensor.detach().abs().max())
        raise InputError(
            argument,
            f"sizes from {low:.3g} to {high:.3g}",
            "must not range over more than 288 orders of magnitude",
            "set the negligible coordinates to zero, or rescale them",
        )
    return scaled, exponent


def scale(tensor: torch.Tensor, exponent: int) -> torch.Tensor:
    """``tensor * 2**exponent``, in two exact factors so that the factor itself does not overflow."""
    if exponent == 0:
        return tensor
    half = exponent // 2
    return tensor * 2.0**half * 2.0 ** (exponent - half)
