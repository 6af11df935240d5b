"""Setup of a hardmax process from tokens and a layer, and its results in terms of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..attention.choice import Choice, default_tolerance
from ..attention.distinct import Distinct, distinct
from ..attention.layer import HardmaxLayer
from ..attention.scaling import scale, scaled_down
from ..attention.search import attended
from ..errors import InputError
from ..inputs import Kind
from ..shapes import PerToken, Points, Tokens
from .assumptions import Assumptions, assumptions_of
from .exact import ExactProcess
from .leadership import Leadership, give_back_leadership
from .process import HardmaxProcess

# Beyond this many coordinates, fewer tokens than coordinates count as swapped axes unless A is given.
_SUSPICIOUS_DIMENSION = 64


def refuse_swapped_axes(tokens: Tokens, dimension_is_given: bool) -> None:
    """Raise an InputError for tokens that look transposed: many coordinates, and fewer tokens than coordinates."""
    n, d = tokens.shape
    if not dimension_is_given and d > _SUSPICIOUS_DIMENSION and d > n:
        raise InputError(
            "tokens",
            f"shape ({n}, {d})",
            "look transposed: tokens have shape (tokens, d)",
            f"pass tokens.T, or A=numpy.eye({d}) if {n} tokens of {d} coordinates are meant",
        )


@dataclass(frozen=True)
class PointProcess:
    """Process on the distinct points of some tokens, scaled by a power of two."""

    process: HardmaxProcess | ExactProcess
    found: Distinct
    exponent: int
    assumptions: Assumptions

    def positions(self, layer: int) -> Tokens:
        """Positions of the tokens at this layer, unscaled, shape (tokens, d)."""
        return self._at_size(self.process.positions(layer))

    def limit(self) -> Tokens:
        """Limit of every token, unscaled, shape (tokens, d)."""
        return self._at_size(self.process.limit())

    @property
    def settled(self) -> bool:
        """Whether no token moves any more, decided or not."""
        return self.process.settled

    def undecided(self) -> int:
        """Number of tokens whose future is not known yet."""
        return int(self.found.expand(self.process.decided_at < 0).sum())

    def leadership(self, kind: Kind) -> Leadership:
        """Leaders, followers and ties, by index of the token."""
        process, first = self.process, self.found.first
        leaders = torch.nonzero(process.emerged_at >= 0)[:, 0]
        follows = torch.where(process.follows >= 0, first[process.follows.clamp_min(0)], -1)
        names = first.tolist() if process.ties else []
        tied = {names[token]: [names[m] for m in members] for token, members in process.ties.items()}
        if tied and self.found.point_of is not None:
            tied = {
                token: tied[names[point]]
                for token, point in enumerate(self.found.point_of.tolist())
                if names[point] in tied
            }
        return give_back_leadership(
            kind,
            leaders=first[leaders],
            emerged_at=process.emerged_at[leaders],
            follows=self.found.expand(follows),
            decided_at=self.found.expand(process.decided_at),
            ties=tied,
        )

    def _at_size(self, points: Points) -> Tokens:
        return self.found.expand(scale(points, self.exponent))


def start(
    tokens: Tokens, weights: PerToken, layer: HardmaxLayer, search: Callable[..., Choice] = attended
) -> PointProcess:
    """Process that decides the future of ``tokens`` under ``layer`` (whose V is the identity)."""
    refuse_swapped_axes(tokens, layer.A is not None)
    A = layer.score_matrix(tokens)
    found = distinct(tokens.detach(), weights)
    assumptions = assumptions_of(A, layer.has_plain_values, tokens, distinct=found.point_of is None)
    if layer.tolerance == "exact":
        return PointProcess(ExactProcess(found.points, found.weights, A, layer.alpha_at(0)), found, 0, assumptions)
    points, exponent = scaled_down("tokens", found.points)
    matrix, _ = scaled_down("A", A)
    tolerance = default_tolerance(torch.float64) if layer.tolerance is None else layer.tolerance
    process = HardmaxProcess(points, found.weights, matrix, float(layer.alpha_at(0)), tolerance, search)
    return PointProcess(process, found, exponent, assumptions)
