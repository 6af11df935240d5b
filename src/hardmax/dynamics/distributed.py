r"""The hardmax process with tokens split over several operating-system processes.

**Hardmax.** In two and three dimensions few tokens can ever be listened to. Each process selects the candidates
among its own tokens, those that can lead, and sends them to the others; all processes find the leaders among the
candidates. A token that listens to one leader alone is decided for ever, and if it lies safely inside the hull of the
leaders no token will ever listen to it: such a token is **local**, stored by its own process alone. The other tokens
are **replicated** on every process and followed until they are decided (:mod:`hardmax.dynamics.process`); each process
does the search for its share of the queries. In more dimensions, where every token can lead, all tokens are replicated.
The same scores decide as in one process, so leaders are the same to the last bit (proof in
``docs/devdocs/many-processes.rst``).

**Other layers and flows** attend to all tokens: every process has all of them, moves its share, and sends it to the
others.

Bytes that each process receives, for n tokens of d coordinates, c candidates and k replicated tokens (measured by
``python -m benchmarks sharded``):

- hardmax, once: :math:`8 c (d + 1)` for the candidates, :math:`8 k (d + 2)` for the replicated tokens, :math:`8 n` to
  find repeated tokens; where all tokens are replicated :math:`8 n (d + 1)` alone;
- hardmax, per layer until all tokens are decided: 17 per undecided replicated token, and per tied token 16 and 8 per
  member of the tie;
- other layers and each evaluation of a flow: :math:`8 n d`;
- the result, and each stored state: :math:`8 n d`, and :math:`16 n` for leaders and followers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from ..attention.base import ALL_ROWS, FIRST, AbstractLayer, Block, Context
from ..attention.choice import Choice, apply, default_tolerance, length
from ..attention.layer import HardmaxLayer
from ..attention.normal_form import distinct, exponent_of, projection, scale, scaled_down
from ..attention.search import attended
from ..attention.search.cells import HIGHEST_DIMENSION
from ..attention.search.margins import UNIT64, tie_margin
from ..attention.search.pool import outer_points
from ..distributed import Processes
from ..errors import ProcessError
from ..inputs import Kind
from ..shapes import Indices, PerToken, Queries, Tokens
from .assumptions import Assumptions
from .certainty import safely_inside
from .closed_form import ClosedForm
from .exact import ExactProcess
from .family import ExactFamilyProcess, FamilyProcess, search_in_sight
from .flows import AbstractFlow, AbstractWrappedFlow
from .integrators import FlowStep
from .keep_and_stop_rules import InMemory, KeepRule
from .leadership import Leadership, give_back_leadership
from .process import HardmaxProcess
from .process_setup import PointProcess, start

# A search over fewer pairs takes less time than the exchange of its result.
_PAIRS_WORTH_SPLITTING = 1 << 22
# In few dimensions a query costs about as much as the scores of this many points, whatever their number.
_SEEN_IN_CELLS = 64
# If a larger share of the tokens can lead, all tokens are replicated at once.
_LARGEST_SHARE_OF_CANDIDATES = 0.25
# For this few candidates the search is cheap, and a further selection would not reduce them.
_ENOUGH_CANDIDATES = 8192
# An odd 64-bit constant: multiplication by it spreads the bits of a number over its upper half.
_MIXER = -7046029254386353131


@dataclass(frozen=True)
class SplitSearch:
    """The search for the points of the largest score, with the queries shared by the processes.

    With ``stop`` query i sees the points before ``stop[i]``, as in
    :func:`~hardmax.dynamics.family.search_in_sight`.
    """

    ranks: Processes
    worthwhile: int = _PAIRS_WORTH_SPLITTING

    def __call__(
        self,
        queries: Queries,
        points: Tokens,
        *,
        tolerance: float,
        hint: Indices | None = None,
        stop: Indices | None = None,
    ) -> Choice:
        ranks, count = self.ranks, len(queries)
        seen = len(points) if points.shape[1] > HIGHEST_DIMENSION else min(len(points), _SEEN_IN_CELLS)
        shared = count * seen >= self.worthwhile
        mine = ranks.part(count) if shared else slice(None)
        if stop is not None:
            own = search_in_sight(queries[mine], points, tolerance=tolerance, stop=stop[mine])
        else:
            own = attended(queries[mine], points, tolerance=tolerance, hint=None if hint is None else hint[mine])
        if not shared:
            return own
        first = ranks.gather(own.first)
        if len(first) != count:
            raise ProcessError(
                "the processes no longer have the same tokens", "run all of them with one version of torch, on the CPU"
            )
        sizes = ranks.gather(own.sizes)
        return Choice(
            first=first,
            best=ranks.gather(own.best),
            everyone=ranks.gather(own.everyone),
            tied=ranks.gather(own.tied + mine.start),
            offsets=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
            members=ranks.gather(own.members),
        )


@dataclass(frozen=True, eq=False)
class SplitLayer(AbstractLayer):
    """Layer whose rows are shared by the processes; every process has all tokens."""

    layer: AbstractLayer
    ranks: Processes

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.step_at(tokens, weights, FIRST)

    def step_at(self, tokens: Tokens, weights: PerToken, context: Context, rows: slice = ALL_ROWS) -> Tokens:
        layer = self.layer.at(context.index)
        if isinstance(layer, Block):
            for part in layer.layers:
                tokens = SplitLayer(part, self.ranks).step_at(tokens, weights, context)
            return tokens[rows]
        if isinstance(layer, FlowStep):
            split = replace(layer, flow=_SplitFlow(layer.flow, self.ranks))
            return split.step_at(tokens, weights, context)[rows]
        if layer.stochastic:  # random numbers are drawn for all tokens, so every process draws the same
            return layer.step_at(tokens, weights, context, rows)
        return self.ranks.gather(layer.step_at(tokens, weights, context, self.ranks.part(len(tokens))))[rows]


@dataclass(frozen=True, eq=False)
class _SplitFlow(AbstractWrappedFlow):
    flow: AbstractFlow
    ranks: Processes

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.ranks.gather(self.flow.drift_of(self.ranks.part(len(tokens)), tokens, weights))

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.ranks.gather(self.flow.velocity_of(self.ranks.part(len(tokens)), tokens, weights))

    def at(self, time: float) -> AbstractFlow:
        return _SplitFlow(self.flow.at(time), self.ranks)


class LastState(InMemory):
    """Keep rule of all processes but the first, which writes the run to disk: the last state only."""

    def __init__(self, rule: KeepRule) -> None:
        super().__init__()
        self._rule = rule

    def wants(self, layer: int, last: bool) -> bool:
        return self._rule.wants(layer, last)

    def store(self, layer: int, tokens: Tokens) -> None:
        self.layers, self.states = [layer], [tokens]


@dataclass(frozen=True, eq=False)
class SplitProcess:
    """Like :class:`~hardmax.dynamics.process_setup.PointProcess`, for tokens of which some are local."""

    ranks: Processes
    replicated: PointProcess
    """Process on the tokens replicated on every process."""
    names: Indices
    """Index among all tokens of each replicated token."""
    replicated_rows: Indices
    """Rows of this process's tokens that are replicated."""
    local_rows: Indices
    """Rows of this process's tokens that are local."""
    local: ClosedForm
    """Positions of the local tokens of this process."""
    leaders: Indices
    """Leader of each local token of this process, by index among all tokens."""
    exponent: int
    """Power of two by which positions were scaled down."""
    size: float
    """Largest coordinate at the start, after scaling."""
    assumptions: Assumptions

    @property
    def process(self) -> HardmaxProcess | ExactProcess | FamilyProcess | ExactFamilyProcess:
        """The process on the replicated tokens, which include all undecided ones."""
        return self.replicated.process

    @property
    def settled(self) -> bool:
        """Whether no token moves any more, local ones included."""
        if not self.process.settled:
            return False
        away = (self.local.positions(self.process.layer) - self.local.target).abs()
        largest = self.ranks.largest(float(away.max()) if away.numel() else 0.0)
        return largest <= torch.finfo(torch.float64).eps * self.size

    def positions(self, layer: int) -> Tokens:
        """Positions of all tokens at this layer, unscaled, shape (tokens, d)."""
        return self._whole(self.replicated.positions(layer), scale(self.local.positions(layer), self.exponent))

    def limit(self) -> Tokens:
        """Limit of every token, unscaled, shape (tokens, d)."""
        return self._whole(self.replicated.limit(), scale(self.local.target, self.exponent))

    def undecided(self) -> int:
        """Number of tokens whose future is not known yet."""
        return self.replicated.undecided()

    def leadership(self, kind: Kind) -> Leadership:
        """Leaders, followers and ties, by index among all tokens."""
        names = self.names
        found = self.replicated.leadership(Kind(False, torch.float64, names.device))
        follows, leaders = torch.as_tensor(found.follows), torch.as_tensor(found.leaders)
        follows = torch.where(follows >= 0, names[follows.clamp_min(0)], -1)
        decided_at = torch.as_tensor(found.decided_at)
        indices = names.tolist() if len(found.ties) else []
        return give_back_leadership(
            kind,
            leaders=names[leaders],
            emerged_at=torch.as_tensor(found.emerged_at),
            follows=self._whole(follows, self.leaders),
            decided_at=self._whole(decided_at, torch.zeros_like(self.local_rows)),
            ties={indices[token]: [indices[m] for m in members.tolist()] for token, members in found.ties.items()},
        )

    def choices(self) -> None:
        """Leaders per head, which are not stored where there is one head."""
        return None

    def reasons(self) -> torch.Tensor:
        """Code of the reason why each token is undecided, shape (tokens,); local tokens are decided."""
        return self._whole(self.replicated.reasons(), torch.zeros_like(self.local_rows))

    def _whole(self, replicated: torch.Tensor, local: torch.Tensor) -> torch.Tensor:
        """One row per token of all processes, from rows of the replicated tokens and of this process's local ones."""
        counts = self.ranks.counts(len(self.replicated_rows))
        begin = sum(counts[: self.ranks.rank])
        own = local.new_empty((len(self.replicated_rows) + len(self.local_rows), *local.shape[1:]))
        own[self.replicated_rows] = replicated[begin : begin + len(self.replicated_rows)]
        own[self.local_rows] = local
        return self.ranks.gather(own)


def start_split(ranks: Processes, own: Tokens, weights: PerToken, layer: HardmaxLayer) -> PointProcess | SplitProcess:
    """Process that decides the future of all tokens; ``own`` and their weights are those of this process."""
    search = SplitSearch(ranks)
    if layer.is_basic and layer.tolerance != "exact" and own.shape[1] in (2, 3):
        found = _local_tokens(ranks, own, layer)
        if found is not None:
            return _split_process(ranks, own, weights, layer, found, search)
    return start(ranks.gather(own), ranks.gather(weights), layer, search)


@dataclass(frozen=True, eq=False)
class _LocalTokens:
    """The tokens of this process that are decided at layer 0 and that no token will ever listen to."""

    mask: torch.Tensor
    """True for the local ones among this process's tokens."""
    leaders: Indices
    """Leader of each of them, by index among all tokens."""
    targets: Tokens
    """Position of that leader, scaled."""
    exponent: int
    size: float


def _local_tokens(ranks: Processes, own: Tokens, layer: HardmaxLayer) -> _LocalTokens | None:
    """Local tokens of this process; None where too many tokens can lead, or where a token listens to all."""
    d = own.shape[1]
    exponent = int(ranks.largest(exponent_of(own)))
    with ranks.together():
        scaled, _ = scaled_down("tokens", own, exponent)
        A, _ = scaled_down("A", layer.score_matrix(own))
    tolerance = default_tolerance(torch.float64) if layer.tolerance is None else float(layer.tolerance)
    longest = ranks.largest(float(length(scaled).max()))
    reach = (tie_margin(tolerance, d) + 8 * (d + 2) * UNIT64) * d**0.5 * longest
    outer = can_lead(scaled, reach)
    counts, sent = ranks.counts(len(own)), ranks.counts(len(outer))
    if sum(sent) > _LARGEST_SHARE_OF_CANDIDATES * sum(counts):
        return None
    names = ranks.gather(outer + sum(counts[: ranks.rank]))
    points = ranks.gather(scaled[outer])
    selected = can_lead(points, reach)  # the candidates of all processes rule out more than those of one
    names, points = names[selected], points[selected]
    found = distinct(points, points.new_ones(len(points)))
    choice = SplitSearch(ranks)(apply(A, found.points), found.points, tolerance=tolerance)
    alone = _alone(choice)
    leads = alone & (choice.first == torch.arange(len(found.points), device=own.device))

    choice = attended(apply(A, scaled), found.points, tolerance=tolerance)
    if ranks.largest(float(choice.everyone.any())):
        return None
    loyal = _alone(choice) & leads[choice.first]
    size = ranks.largest(float(scaled.abs().max()))
    stays = loyal & safely_inside(scaled, found.points[leads], 4 * tolerance * size * d)
    followed = choice.first[stays]
    return _LocalTokens(stays, names[found.first[followed]], found.points[followed], exponent, size)


def can_lead(points: Tokens, reach: float) -> Indices:
    """Indices of the points whose score can come within ``reach |q|`` of the largest for some query q.

    The selection uses a sample of the points, so it is repeated on its result while that shrinks.
    """
    values = points.detach().cpu().numpy()
    left = np.arange(len(values))
    while len(left) > _ENOUGH_CANDIDATES:
        outer = outer_points(values[left], reach)
        shrunk = 2 * len(outer) < len(left)
        left = left[outer]
        if not shrunk:
            break
    return torch.from_numpy(left).to(points.device)


def _alone(choice: Choice) -> torch.Tensor:
    """Mask of the queries that listen to one point alone."""
    alone = ~choice.everyone
    alone[choice.tied] = False
    return alone


def _split_process(
    ranks: Processes, own: Tokens, weights: PerToken, layer: HardmaxLayer, found: _LocalTokens, search: SplitSearch
) -> SplitProcess:
    shared_rows, local_rows = torch.nonzero(~found.mask)[:, 0], torch.nonzero(found.mask)[:, 0]
    before = sum(ranks.counts(len(own))[: ranks.rank])
    replicated = start(ranks.gather(own[shared_rows]), ranks.gather(weights[shared_rows]), layer, search)
    local = ClosedForm(scale(own[local_rows], -found.exponent), float(layer.alpha_at(0)))
    local.settle(torch.arange(len(local_rows), device=own.device), found.targets, 0)
    return SplitProcess(
        ranks=ranks,
        replicated=replicated,
        names=ranks.gather(shared_rows + before),
        replicated_rows=shared_rows,
        local_rows=local_rows,
        local=local,
        leaders=found.leaders,
        exponent=found.exponent,
        size=found.size,
        assumptions=replace(replicated.assumptions, distinct=_all_distinct(ranks, own)),
    )


def _all_distinct(ranks: Processes, own: Tokens) -> bool:
    """Whether no two tokens of all processes are equal; only tokens with equal projections are compared in full."""
    mine = projection(own) + 0.0  # turns -0.0 into 0.0
    # Equal numbers are in the same bucket, and each process sorts one bucket.
    bucket = ((mine.view(torch.int64) * _MIXER) >> 33) % ranks.count
    repeated = mine[:0]
    for rank in range(ranks.count):
        all_of_it = ranks.gather(mine[bucket == rank])
        if rank == ranks.rank:
            ordered = np.sort(all_of_it.cpu().numpy())
            repeated = torch.from_numpy(ordered[1:][ordered[1:] == ordered[:-1]]).to(own.device)
    repeated = ranks.gather(repeated)
    if not len(repeated):
        return True
    suspects = ranks.gather(own[torch.isin(mine, repeated)])
    return distinct(suspects, suspects.new_ones(len(suspects))).point_of is None


@dataclass(frozen=True, eq=False)
class SeveralProcesses:
    """A run whose tokens are split over the processes of a group; see :mod:`hardmax.dynamics.execution`."""

    ranks: Processes

    def start(self, tokens: Tokens, weights: PerToken, layer: HardmaxLayer) -> PointProcess | SplitProcess:
        return start_split(self.ranks, tokens, weights, layer)

    def split(self, layer: AbstractLayer) -> AbstractLayer:
        return SplitLayer(layer, self.ranks)

    def keeper(self, rule: KeepRule) -> KeepRule:
        return rule if self.ranks.first or isinstance(rule, InMemory) else LastState(rule)
