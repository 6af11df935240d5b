r"""The hardmax process with tokens split over several operating-system processes.

**Hardmax.** In the plane and in space hardly any token can ever be listened to. Each process screens its own tokens
and sends the few that can lead; everybody finds the leaders among these. A token that listens to one leader alone is
decided for ever, and if it lies safely inside the hull of the leaders nobody will ever listen to it: it belongs to
the **crowd** and stays at home. The rest is the **court**, which every process has and follows to the end
(:mod:`hardmax.dynamics.process`), each doing the search for its share of the queries. In more dimensions, where every
token can lead, the court is everybody. The canonical score decides as it does in one process, so leaders are the
same to the last bit (proof in ``docs/devdocs/many-processes.rst``).

**Other layers and flows** listen to all tokens: every process has all of them, moves its share, and tells the others.

What each process receives, in bytes, for n tokens of d coordinates, c of which can lead and k of which are at court
(measured by ``python -m benchmarks sharded``):

- hardmax, once: :math:`8 c (d + 1)` for the candidates, :math:`8 k (d + 2)` for the court, :math:`8 n` to see whether
  tokens repeat; where everybody is at court :math:`8 n (d + 1)` alone;
- hardmax, each layer until all is decided: 17 for each undecided token of the court, and for each that ties 16 and 8
  for each member of the tie;
- other layers and each evaluation of a flow: :math:`8 n d`;
- the result, and each state that is kept: :math:`8 n d`, and :math:`16 n` for who follows whom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from ..attention.choice import Choice, apply, default_tolerance, length
from ..attention.distinct import distinct, projection
from ..attention.layer import AbstractLayer, Block, HardmaxLayer
from ..attention.scaling import exponent_of, scale, scaled_down
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
from .flows import AbstractFlow
from .integrators import FlowStep
from .keep_and_stop_rules import InMemory, KeepRule
from .leadership import Leadership, give_back_leadership
from .process import HardmaxProcess
from .process_setup import PointProcess, start

# For fewer pairs than this a search is over before its answer could be told.
_PAIRS_WORTH_SPLITTING = 1 << 22
# In few dimensions a query costs about as much as looking at so many points, however many there are.
_SEEN_IN_CELLS = 64
# If more of the tokens than this can lead, they all go to court at once.
_LARGEST_SHARE_OF_CANDIDATES = 0.25
# So few candidates cost nothing, and the screen would leave them as they are.
_ENOUGH_CANDIDATES = 8192
# An odd number without pattern: multiplying by it spreads the bits of a number over its upper half.
_MIXER = -7046029254386353131


@dataclass(frozen=True)
class SplitSearch:
    """The search of :func:`~hardmax.attention.search.attended`, each process doing its share of the queries."""

    ranks: Processes
    worthwhile: int = _PAIRS_WORTH_SPLITTING

    def __call__(self, queries: Queries, points: Tokens, *, tolerance: float, hint: Indices | None = None) -> Choice:
        ranks, count = self.ranks, len(queries)
        seen = len(points) if points.shape[1] > HIGHEST_DIMENSION else min(len(points), _SEEN_IN_CELLS)
        if count * seen < self.worthwhile:
            return attended(queries, points, tolerance=tolerance, hint=hint)
        mine = ranks.part(count)
        own = attended(queries[mine], points, tolerance=tolerance, hint=None if hint is None else hint[mine])
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
    """A layer whose rows are shared out; every process has all tokens."""

    layer: AbstractLayer
    ranks: Processes

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        if isinstance(self.layer, Block):
            for layer in self.layer.layers:
                tokens = SplitLayer(layer, self.ranks).step(tokens, weights)
            return tokens
        if isinstance(self.layer, FlowStep):
            return replace(self.layer, flow=_SplitFlow(self.layer.flow, self.ranks)).step(tokens, weights)
        return self.ranks.gather(self.layer.step_of(self.ranks.part(len(tokens)), tokens, weights))


@dataclass(frozen=True, eq=False)
class _SplitFlow(AbstractFlow):
    flow: AbstractFlow
    ranks: Processes

    def drift(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.ranks.gather(self.flow.drift_of(self.ranks.part(len(tokens)), tokens, weights))

    def velocity(self, tokens: Tokens, weights: PerToken) -> Tokens:
        return self.ranks.gather(self.flow.velocity_of(self.ranks.part(len(tokens)), tokens, weights))

    def project(self, tokens: Tokens) -> Tokens:
        return self.flow.project(tokens)


class LastState(InMemory):
    """What a process keeps of a run that another one writes to disk: the last state."""

    def __init__(self, rule: KeepRule) -> None:
        super().__init__()
        self._rule = rule

    def wants(self, layer: int, last: bool) -> bool:
        return self._rule.wants(layer, last)

    def store(self, layer: int, tokens: Tokens) -> None:
        self.layers, self.states = [layer], [tokens]


@dataclass(frozen=True, eq=False)
class SplitProcess:
    """Like :class:`~hardmax.dynamics.process_setup.PointProcess`, for tokens of which some stay at home."""

    ranks: Processes
    court: PointProcess
    names: Indices
    """The token that each member of the court is."""
    at_court: Indices
    """Which of this process's tokens are at court; the others are its crowd."""
    crowd: Indices
    home: ClosedForm
    """Where the crowd of this process is."""
    leaders: Indices
    """Whom the crowd of this process follows."""
    exponent: int
    size: float
    """The largest coordinate at the start, after scaling."""
    assumptions: Assumptions

    @property
    def process(self) -> HardmaxProcess | ExactProcess:
        """What is still undecided goes on at court."""
        return self.court.process

    @property
    def settled(self) -> bool:
        """Whether nothing moves any more; the crowd too must have arrived."""
        if not self.process.settled:
            return False
        away = (self.home.positions(self.process.layer) - self.home.target).abs()
        largest = self.ranks.largest(float(away.max()) if away.numel() else 0.0)
        return largest <= torch.finfo(torch.float64).eps * self.size

    def positions(self, layer: int) -> Tokens:
        """The tokens at this layer, at their true size."""
        return self._whole(self.court.positions(layer), scale(self.home.positions(layer), self.exponent))

    def limit(self) -> Tokens:
        """The limit of every token, at true size."""
        return self._whole(self.court.limit(), scale(self.home.target, self.exponent))

    def undecided(self) -> int:
        """Number of tokens whose future is not known yet."""
        return self.court.undecided()

    def leadership(self, kind: Kind) -> Leadership:
        """Who leads and who follows, in terms of tokens."""
        names = self.names
        found = self.court.leadership(Kind(False, torch.float64, names.device))
        follows, leaders = torch.as_tensor(found.follows), torch.as_tensor(found.leaders)
        follows = torch.where(follows >= 0, names[follows.clamp_min(0)], -1)
        decided_at = torch.as_tensor(found.decided_at)
        called = names.tolist() if len(found.ties) else []
        return give_back_leadership(
            kind,
            leaders=names[leaders],
            emerged_at=torch.as_tensor(found.emerged_at),
            follows=self._whole(follows, self.leaders),
            decided_at=self._whole(decided_at, torch.zeros_like(self.crowd)),
            ties={called[token]: [called[m] for m in members.tolist()] for token, members in found.ties.items()},
        )

    def _whole(self, of_court: torch.Tensor, of_crowd: torch.Tensor) -> torch.Tensor:
        """One row for each token of every process, from the court's rows and those of this process's crowd."""
        counts = self.ranks.counts(len(self.at_court))
        begin = sum(counts[: self.ranks.rank])
        own = of_crowd.new_empty((len(self.at_court) + len(self.crowd), *of_crowd.shape[1:]))
        own[self.at_court] = of_court[begin : begin + len(self.at_court)]
        own[self.crowd] = of_crowd
        return self.ranks.gather(own)


def start_split(ranks: Processes, own: Tokens, weights: PerToken, layer: HardmaxLayer) -> PointProcess | SplitProcess:
    """Set up the process that decides the future of all tokens; ``own`` and their weights are this process's."""
    search = SplitSearch(ranks)
    if layer.tolerance != "exact" and own.shape[1] in (2, 3):
        found = _crowd(ranks, own, layer)
        if found is not None:
            return _started(ranks, own, weights, layer, found, search)
    return start(ranks.gather(own), ranks.gather(weights), layer, search)


@dataclass(frozen=True, eq=False)
class _Crowd:
    """The tokens of this process that are decided at once and that nobody will ever listen to."""

    tokens: torch.Tensor
    """Which they are, as a mask of this process's tokens."""
    leaders: Indices
    """Whom each of them follows."""
    targets: Tokens
    exponent: int
    size: float


def _crowd(ranks: Processes, own: Tokens, layer: HardmaxLayer) -> _Crowd | None:
    """This process's crowd; None where the split does not pay: too many can lead, or somebody listens to everybody."""
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
    known = can_lead(points, reach)  # what one process could not rule out, all together may
    names, points = names[known], points[known]
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
    return _Crowd(stays, names[found.first[followed]], found.points[followed], exponent, size)


def can_lead(points: Tokens, reach: float) -> Indices:
    """The few of these points whose score can come within ``reach |q|`` of the best for some query q.

    A screen sees a sample, so that of what it leaves the next can leave out more.
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
    """Which queries listen to one point alone."""
    alone = ~choice.everyone
    alone[choice.tied] = False
    return alone


def _started(
    ranks: Processes, own: Tokens, weights: PerToken, layer: HardmaxLayer, found: _Crowd, search: SplitSearch
) -> SplitProcess:
    at_court, crowd = torch.nonzero(~found.tokens)[:, 0], torch.nonzero(found.tokens)[:, 0]
    before = sum(ranks.counts(len(own))[: ranks.rank])
    court = start(ranks.gather(own[at_court]), ranks.gather(weights[at_court]), layer, search)
    home = ClosedForm(scale(own[crowd], -found.exponent), float(layer.alpha))
    home.settle(torch.arange(len(crowd), device=own.device), found.targets, 0)
    return SplitProcess(
        ranks=ranks,
        court=court,
        names=ranks.gather(at_court + before),
        at_court=at_court,
        crowd=crowd,
        home=home,
        leaders=found.leaders,
        exponent=found.exponent,
        size=found.size,
        assumptions=replace(court.assumptions, distinct=_all_distinct(ranks, own)),
    )


def _all_distinct(ranks: Processes, own: Tokens) -> bool:
    """Whether no two tokens of all processes are the same; only those that might be are compared in full."""
    mine = projection(own) + 0.0  # which makes -0.0 the same number as 0.0
    # Equal numbers fall into the same bucket, and each process sorts one bucket.
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
