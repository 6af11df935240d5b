r"""Vectors on the unit sphere, and the largest stable step of an attention flow.

With all other tokens held still, the field :math:`x \mapsto P_x V m(x)` has, on the tangent space, the derivative
:math:`P_x V\,Dm\,P_x - \langle x, V m\rangle`, and for softmax attention :math:`Dm = \beta\,\mathrm{Cov}_x B`, where
:math:`\mathrm{Cov}_x` is the covariance of the tokens under the attention of x. Where attention restores (two modes a
distance D apart that x is pushed between) the covariance reaches :math:`D^2/4` and the rate
:math:`\beta |V||B| D^2/4`: Euler then needs :math:`h < 2/(\beta|V||B|D^2/4)`. Where attention attracts, displacements
grow instead of decaying and no step is too long for stability, whatever :math:`\beta`.
"""

from __future__ import annotations

import torch

from ..attention.normal_form import exponent_of, scale
from ..dynamics.spaces import UnitSphere
from ..errors import InputError
from ..inputs import as_square
from ..shapes import PerToken, Square, Tokens

# Eigenvalues are computed at no more tokens than this, which bounds the cost.
_MOST_QUERIES = 256


def sized(name: str, matrix: Square | None, dimension: int) -> Square:
    """Matrix for tokens of this dimension, shape (d, d); the identity when none was given."""
    if matrix is None:
        return torch.eye(dimension, dtype=torch.float64)
    return as_square(name, matrix, dimension)


def tangent(tokens: Tokens, vectors: Tokens) -> Tokens:
    """Tangential part of each vector at its token, shape (tokens, d)."""
    return UnitSphere().tangent(tokens, vectors)


def normalised(tokens: Tokens, argument: str = "tokens") -> Tokens:
    """Tokens scaled to length one, shape (tokens, d); a zero token raises an InputError."""
    largest = tokens.abs().amax(dim=1, keepdim=True)
    zero = torch.nonzero(largest[:, 0] == 0)
    if len(zero):
        raise InputError(
            argument,
            f"a zero token at index {int(zero[0])}",
            "must not be zero: it has no direction on the sphere",
            "leave it out",
        )
    scaled = tokens / largest  # squares of scaled coordinates neither overflow nor vanish
    return torch.nn.functional.normalize(scaled, dim=1)


def _some(tokens: Tokens) -> Tokens:
    """All tokens when they are few, otherwise evenly spaced rows."""
    if len(tokens) <= _MOST_QUERIES:
        return tokens
    return tokens[torch.linspace(0, len(tokens) - 1, _MOST_QUERIES, device=tokens.device).long()]


def _fastest(at: Tokens, pulled: Tokens, derivative: torch.Tensor) -> float:
    """Largest decay rate: the most negative real part of an eigenvalue on the tangent spaces, with opposite sign."""
    onto = torch.eye(at.shape[1], dtype=at.dtype, device=at.device) - at[:, :, None] * at[:, None, :]
    growth = torch.linalg.eigvals(onto @ derivative @ onto).real.amin(dim=1)
    # Along x itself the projected derivative is zero, so the least eigenvalue is never above zero.
    return max(0.0, float(((at * pulled).sum(dim=1) - growth).detach().max()))


def decay_of_attention(tokens: Tokens, weights: PerToken, scores: Square, V: Square, *, causal: bool = False) -> float:
    """Largest decay rate for softmax attention with logits ``<scores x, y>``."""
    at = _some(tokens.detach())
    logits = at @ scores.T @ tokens.detach().T + weights.log()
    if causal:
        places = torch.arange(len(tokens), device=tokens.device)
        later = places[None, :] > _some(places[:, None].to(tokens.dtype))
        logits = logits.masked_fill(later, -torch.inf)
    shares = torch.softmax(logits, dim=1)
    mean = shares @ tokens.detach()
    covariance = torch.einsum("qn,ni,nj->qij", shares, tokens.detach(), tokens.detach())
    covariance = covariance - mean[:, :, None] * mean[:, None, :]
    return _fastest(at, mean @ V.T, V @ covariance @ scores)


def direction_of(B: Square) -> Square:
    """B scaled near one by a power of two: at zero temperature its size has no effect, and squares do not overflow."""
    return scale(B, -exponent_of(B))


def decay_at_zero_temperature(tokens: Tokens, B: Square, V: Square) -> float:
    """Largest decay rate for the field ``P_x V B x / |B x|``."""
    at, B = _some(tokens.detach()), direction_of(B)
    lengths = (at @ B.T).norm(dim=1)
    mean = (at @ B.T) / lengths[:, None]
    across = torch.eye(at.shape[1], dtype=at.dtype, device=at.device) - mean[:, :, None] * mean[:, None, :]
    return _fastest(at, mean @ V.T, V @ across @ B / lengths[:, None, None])
