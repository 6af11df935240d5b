r"""How many tokens share an attention kernel: whether finitely many tokens stand for a measure at this temperature.

Around the direction it asks for, a query sees the Gaussian :math:`e^{-\kappa|y|^2/2}`, :math:`\kappa = \beta|Bx|`, on
a (d-1)-dimensional tangent space. Of n tokens spread evenly over the sphere of area
:math:`2\pi^{d/2}/\Gamma(d/2)` it therefore hears about

.. math:: N_k = n\,(2\pi/\kappa)^{(d-1)/2}\,\frac{\Gamma(d/2)}{2\pi^{d/2}}
              = n\,\frac{\Gamma(d/2)\,2^{d/2-1}}{\sqrt{2\pi}}\,\kappa^{-(d-1)/2}.

The limits of many tokens and of low temperature do not commute. Below about ten tokens a kernel the run shows the
hardmax rule among few tokens, not the mean field; some tokens hear only themselves and never leave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..inputs import as_number, as_score_matrix, as_tokens
from ..shapes import ArrayLike, Square, Tokens

ENOUGH = 10.0


class FewTokensWarning(UserWarning):
    """So few tokens share an attention kernel that they do not stand for a measure."""


@dataclass(frozen=True)
class Occupancy:
    """Tokens per attention kernel, were they spread evenly."""

    tokens: int
    dimension: int
    beta: float
    smallest: float
    """N_k at the token whose kernel is narrowest."""
    median: float

    @property
    def enough(self) -> int:
        """The number of tokens with which the narrowest kernel holds ten."""
        return math.ceil(self.tokens * ENOUGH / self.smallest * (1 - 1e-12))

    def warning(self) -> str:
        """What to say when there are too few."""
        return (
            f"only {self.smallest:.3g} tokens share an attention kernel (n = {self.tokens}, d = {self.dimension}, "
            f"beta = {self.beta:g}): the run shows few tokens, not the mean field; use n >= {self.enough}, "
            'lower beta, or pass few_tokens="ignore" if these tokens are meant'
        )


def occupancy_of(tokens: Tokens, B: Square, beta: float) -> Occupancy:
    """N_k of checked tokens."""
    n, d = tokens.shape
    kappa = (beta * (tokens @ B.T).norm(dim=1)).clamp_min(1e-300)
    log_count = math.log(n) + math.lgamma(d / 2) + (d / 2 - 1) * math.log(2) - 0.5 * math.log(2 * math.pi)
    counts = torch.exp(log_count - 0.5 * (d - 1) * kappa.log())
    # At high temperature the Gaussian is wider than the sphere; nobody hears more than all.
    counts = counts.clamp_max(n)
    counts = counts.detach()
    smallest = max(float(counts.min()), 1e-300)
    return Occupancy(n, d, beta, smallest, float(counts.median()))


def kernel_occupancy(tokens: ArrayLike, B: ArrayLike | None = None, *, beta: float) -> Occupancy:
    """How many tokens share an attention kernel at inverse temperature ``beta``.

    >>> import numpy as np
    >>> found = kernel_occupancy(np.eye(2), beta=100.0)
    >>> round(found.smallest, 4), found.enough
    (0.0798, 251)
    """
    from .flow import normalised, sized

    tensor, _ = as_tokens(tokens)
    points = normalised(tensor.to(torch.float64))
    number = as_number("beta", beta, lambda x: x > 0, "must be positive and finite", "pass for example beta=100.0")
    matrix = sized("B", as_score_matrix("B", B, None, None), points.shape[1]).to(points.device)
    return occupancy_of(points, matrix, number)
