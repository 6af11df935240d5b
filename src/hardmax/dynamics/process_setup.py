"""Setup of a hardmax process from tokens and a layer, and its results in terms of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import torch
from flint import fmpq_mat

from ..attention.choice import Choice, default_tolerance, score
from ..attention.heads import Head
from ..attention.layer import HardmaxLayer
from ..attention.moves import AbstractSteps
from ..attention.normal_form import Distinct, distinct, scale, scaled_down
from ..attention.rational import Rows, rational, rational_rows
from ..attention.search import attended
from ..errors import InputError
from ..inputs import Kind
from ..shapes import Indices, PerToken, Points, Square, Tokens
from .assumptions import Assumptions, assumptions_of
from .exact import ExactProcess
from .family import ExactFamilyProcess, FamilyProcess, search_in_sight
from .leadership import Leadership, Undecided, give_back_leadership
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

    process: HardmaxProcess | ExactProcess | FamilyProcess | ExactFamilyProcess
    found: Distinct
    exponent: int
    assumptions: Assumptions
    head_of: tuple[int, ...] = (0,)
    """For each head the number of its matrix among the distinct ones, with which the process runs."""

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

    def choices(self) -> torch.Tensor | None:
        """Leader of each token in each head, shape (heads, tokens), -1 while undecided; None where heads are alike."""
        if not isinstance(self.process, (FamilyProcess, ExactFamilyProcess)):
            return None
        chosen = self.process.choices[list(self.head_of)]
        named = torch.where(chosen >= 0, self.found.first[chosen.clamp_min(0)], -1)
        return named if self.found.point_of is None else named[:, self.found.point_of]

    def reasons(self) -> torch.Tensor:
        """Code of the reason why each token is undecided, shape (tokens,); 0 where it is decided."""
        if not isinstance(self.process, (FamilyProcess, ExactFamilyProcess)):
            return self.found.expand(torch.where(self.process.decided_at < 0, int(Undecided.MOVING), 0))
        codes = self.process.reasons
        heads = torch.tensor([self.head_of.index(h) for h in range(max(self.head_of) + 1)], device=codes.device)
        cone = codes - Undecided.OUTSIDE_CONE
        named = torch.where(cone >= 0, Undecided.OUTSIDE_CONE + heads[cone.clamp_min(0)], codes)
        return self.found.expand(named)

    def _at_size(self, points: Points) -> Tokens:
        return self.found.expand(scale(points, self.exponent))


def start(
    tokens: Tokens, weights: PerToken, layer: HardmaxLayer, search: Callable[..., Choice] | None = None
) -> PointProcess:
    """Process that decides the future of ``tokens`` under ``layer``, which must have a limit in closed form.

    ``search`` replaces the search for the points of the largest score, where several processes share it.
    """
    problem = layer.why_no_limit
    if problem is not None:
        raise InputError("layer", str(layer), problem, "use simulate(depth=…)")
    refuse_swapped_axes(tokens, layer.dimension is not None)
    if layer.is_basic:
        return _start_basic(tokens, weights, layer.score_matrix(tokens), layer, (0,), search or attended)
    for head in layer.heads:
        head.require_dimension(tokens.shape[1])
    layer.mask.require_fit(len(tokens))
    if layer.tolerance == "exact":
        return _start_exact(tokens, weights, layer)
    matrices = [_scaled_matrix(head, tokens) for head in layer.heads]
    kept, head_of = _distinct_heads([matrix.tolist() for matrix in matrices])
    if len(kept) == 1 and layer.mask.sees_all and not isinstance(layer.alpha, AbstractSteps):
        return _start_basic(tokens, weights, matrices[0], layer, head_of, search or attended)
    found = _found(tokens, weights, layer)
    points, exponent = scaled_down("tokens", found.points)
    process = FamilyProcess(
        points,
        found.weights,
        [matrices[h] for h in kept],
        [float(share) for share in _shares(layer, head_of)],
        layer.alpha_at,
        layer.alpha.remaining if isinstance(layer.alpha, AbstractSteps) else None,
        not layer.mask.sees_all,
        default_tolerance(torch.float64) if layer.tolerance is None else float(layer.tolerance),
        _itself if _sees_itself_alone(layer) else search or search_in_sight,
    )
    return PointProcess(process, found, exponent, _assumptions(matrices, tokens), head_of)


def _start_basic(
    tokens: Tokens,
    weights: PerToken,
    A: Square,
    layer: HardmaxLayer,
    head_of: tuple[int, ...],
    search: Callable[..., Choice],
) -> PointProcess:
    found = distinct(tokens.detach(), weights)
    assumptions = assumptions_of(A, layer.has_plain_values, tokens, distinct=found.point_of is None)
    if layer.tolerance == "exact":
        exact = ExactProcess(found.points, found.weights, A, layer.alpha_at(0))
        return PointProcess(exact, found, 0, assumptions, head_of)
    points, exponent = scaled_down("tokens", found.points)
    matrix, _ = scaled_down("A", A)
    tolerance = default_tolerance(torch.float64) if layer.tolerance is None else layer.tolerance
    process = HardmaxProcess(points, found.weights, matrix, float(layer.alpha_at(0)), tolerance, search)
    return PointProcess(process, found, exponent, assumptions, head_of)


def _start_exact(tokens: Tokens, weights: PerToken, layer: HardmaxLayer) -> PointProcess:
    exact = [_exact_matrix(head, tokens.shape[1]) for head in layer.heads]
    kept, head_of = _distinct_heads(exact)
    if len(kept) == 1 and layer.mask.sees_all and not isinstance(layer.alpha, AbstractSteps):
        return _start_basic(tokens, weights, _matrix(layer.heads[0], tokens), layer, head_of, attended)
    found = _found(tokens, weights, layer)
    assumptions = _assumptions([_scaled_matrix(head, tokens) for head in layer.heads], tokens)
    steps = layer.alpha if isinstance(layer.alpha, AbstractSteps) else None
    process = ExactFamilyProcess(
        found.points,
        found.weights,
        [exact[h] for h in kept],
        [rational(share) for share in _shares(layer, head_of)],
        layer.alpha_at,
        cache(steps.remaining) if steps is not None else _reaches_its_target,
        causal=not layer.mask.sees_all,
        itself_alone=_sees_itself_alone(layer),
    )
    return PointProcess(process, found, 0, assumptions, head_of)


def _found(tokens: Tokens, weights: PerToken, layer: HardmaxLayer) -> Distinct:
    """The points of a process: distinct where repeated tokens see the same, all tokens under a mask.

    Under a mask each token sees itself and earlier ones; where it sees later ones, the order is reversed.
    """
    tokens, count = tokens.detach(), len(tokens)
    if layer.mask.sees_all or _sees_itself_alone(layer):
        return distinct(tokens, weights)
    places = torch.arange(count, device=tokens.device)
    if layer.mask.causal:
        return Distinct(tokens, places, None, weights)
    return Distinct(tokens.flip(0), places.flip(0), places.flip(0), weights.flip(0))


def _sees_itself_alone(layer: HardmaxLayer) -> bool:
    return layer.mask.before == 0 and layer.mask.after == 0


def _itself(queries: Tokens, points: Tokens, *, tolerance: float, stop: Indices) -> Choice:
    """Sets of tokens that see nothing but themselves, the last of the points before ``stop``."""
    nothing = stop[:0]
    own = points[stop - 1]
    alone = torch.zeros(len(stop), dtype=torch.bool, device=stop.device)
    return Choice(stop - 1, score(queries, own), alone, nothing, stop.new_zeros(1), nothing)


def _reaches_its_target(layer: int) -> float:
    """Share of the distance to its target that a token never covers, where the steps have an infinite sum."""
    return 0.0


def _scaled_matrix(head: Head, tokens: Tokens) -> Square:
    """Score matrix of a head, brought near one by powers of two; products of Q and K are taken after that."""
    d = tokens.shape[1]
    if head.Q is not None and head.K is not None:
        (Q, _), (K, _) = scaled_down("Q", head.Q.detach()), scaled_down("K", head.K.detach())
        return scaled_down("A", (K.T @ Q).to(tokens.device))[0]
    A = torch.eye(d, dtype=torch.float64) if head.A is None else head.A.detach()
    return scaled_down("A", A.to(tokens.device))[0]


def _matrix(head: Head, tokens: Tokens) -> Square:
    """Score matrix of a head, detached: the argmax does not change under small changes of A."""
    given = head.matrix
    identity = torch.eye(tokens.shape[1], dtype=torch.float64)
    return (identity if given is None else given.detach().to(torch.float64)).to(tokens.device)


def _exact_matrix(head: Head, d: int) -> Rows:
    if head.Q is not None and head.K is not None:
        K, Q = (fmpq_mat(rational_rows(matrix.detach())) for matrix in (head.K, head.Q))
        product: Rows = (K.transpose() * Q).tolist()
        return product
    return rational_rows(torch.eye(d, dtype=torch.float64) if head.A is None else head.A.detach())


def _distinct_heads(matrices: Sequence[Sequence[Sequence[object]]]) -> tuple[list[int], tuple[int, ...]]:
    """First head with each distinct matrix, and for every head the number of its matrix among them."""
    kept: list[int] = []
    head_of = []
    for h, matrix in enumerate(matrices):
        same = [k for k, other in enumerate(kept) if matrices[other] == matrix]
        head_of.append(same[0] if same else len(kept))
        if not same:
            kept.append(h)
    return kept, tuple(head_of)


def _shares(layer: HardmaxLayer, head_of: tuple[int, ...]) -> list[float | Fraction]:
    """Share of each distinct matrix: the sum of the shares of its heads."""
    total: list[float | Fraction] = [Fraction(0)] * (max(head_of) + 1)
    for h, share in zip(head_of, layer.shares, strict=True):
        total[h] = total[h] + share
    return total


def _assumptions(matrices: Sequence[Square], tokens: Tokens) -> Assumptions:
    """The assumptions that hold for the matrices of all heads."""
    apart = distinct(tokens.detach(), tokens.new_ones(len(tokens))).point_of is None
    each = [assumptions_of(matrix, True, tokens, distinct=apart) for matrix in matrices]
    return replace(
        each[0],
        symmetric=all(one.symmetric for one in each),
        positive_definite=all(one.positive_definite for one in each),
        basic=False,
    )
