"""The assumptions of Theorem 1.1, checked for given tokens and a given layer."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from ..shapes import Square, Tokens


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of Theorem 1.1, each true or false.

    Examples
    --------
    >>> print(Assumptions(symmetric=True, positive_definite=True, plain_values=True, nonzero=True, distinct=False))
    Theorem 1.1 does not apply: some tokens are repeated
    """

    symmetric: bool
    """A equals its transpose."""
    positive_definite: bool
    """The symmetric part of A has only positive eigenvalues."""
    plain_values: bool
    """The value matrix is the identity: tokens move towards tokens."""
    nonzero: bool
    """No token is the origin."""
    distinct: bool
    """No token is repeated."""
    basic: bool = True
    """The layer is that of the paper: one head, all tokens in sight, the same step in every layer."""

    @property
    def hold(self) -> bool:
        """Whether all assumptions hold, so that the theorem applies."""
        return all(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        sentences = {
            "symmetric": "A is not symmetric",
            "positive_definite": "A is not positive definite",
            "plain_values": "the value matrix V is not the identity",
            "nonzero": "some token is zero",
            "distinct": "some tokens are repeated",
            "basic": "the layer has a mask, several heads or steps that change",
        }
        broken = [text for name, text in sentences.items() if not getattr(self, name)]
        if not broken:
            return "Theorem 1.1 applies: A is symmetric positive definite, tokens are distinct and nonzero"
        return "Theorem 1.1 does not apply: " + "; ".join(broken)


def is_symmetric(A: Square) -> bool:
    """Whether A equals its transpose to rounding."""
    return bool(((A - A.T).abs() <= 8 * torch.finfo(A.dtype).eps * A.abs().max()).all())


def is_positive_definite(A: Square) -> bool:
    """Whether the symmetric part of A has a Cholesky factor, that is, only positive eigenvalues."""
    size = A.abs().max()
    if not bool(size > 0):
        return False
    _, failed = torch.linalg.cholesky_ex((A + A.T) / (2 * size))
    return not bool(failed)


def assumptions_of(A: Square, plain_values: bool, tokens: Tokens, distinct: bool) -> Assumptions:
    """Assumptions that hold for these tokens; ``distinct`` is computed by the caller."""
    return Assumptions(
        symmetric=is_symmetric(A),
        positive_definite=is_positive_definite(A),
        plain_values=plain_values,
        nonzero=not bool((tokens == 0).all(dim=1).any()),
        distinct=distinct,
    )
