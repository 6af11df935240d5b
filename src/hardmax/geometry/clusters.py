r"""Clusters of the tokens of a run: their points, members and rates of convergence.

Theorem 1.1: every token converges to a point of a finite set S, the leaders' positions (vertices of the
polytope K) and some points of faces of K. The distance of a token to its leader, or to the mean of the leaders between
which it is tied, decreases by the factor :math:`1/(1+\alpha)` per layer, which is the rate of the clusters. Only for a
token tied with followers that still move is there a further factor, linear in the layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..attention.layer import HardmaxLayer
from ..attention.moves import AbstractSteps
from ..dynamics.closed_form import grain_of, same_limits
from ..dynamics.equilibrium import equilibrium
from ..dynamics.trajectory import Trajectory
from ..inputs import plain
from ..threads import one_thread
from .result_arrays import Result, Roles, StoredStates, result, roles, stored_states

if TYPE_CHECKING:
    import pandas

Kind = Literal["vertex", "face", "short", "undecided"]

# Relative distances to the limit below this are mostly rounding: no rate is measured there.
_MEASURABLE = 1e-10
# The same for states that were rounded to a coarser dtype, in its rounding errors.
_MEASURABLE_UNITS = 1024


@dataclass(frozen=True, eq=False)
class Cluster:
    """Tokens that converge to one point."""

    centre: np.ndarray
    """Limit point, shape (d,)."""
    kind: Kind
    """``"vertex"`` at a leader, ``"face"`` between leaders that tie for ever or that the heads select (for a token at
    rest at zero the whole polytope), ``"short"`` where steps with a finite sum end before their target,
    ``"undecided"`` where the limit is not known yet."""
    leaders: np.ndarray
    """Index of the leader, or of the leaders in whose face the point lies."""
    members: np.ndarray
    """Indices of all tokens of the cluster, its leader included, ascending."""
    weight: float
    """Sum of the weights of the members."""
    rate: float
    r"""Measured factor per layer by which the cluster shrinks, to compare with :math:`1/(1+\alpha)`; NaN where it
    cannot be measured: a limit, no member that moves, or too few stored layers."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """All clusters of a run or a limit: those at leaders first, then on faces, then undecided tokens.

    A sequence: ``len(found)`` clusters, ``found[k]`` is a :class:`Cluster`.
    """

    centres: np.ndarray
    """Limit points, shape (clusters, d)."""
    kinds: tuple[Kind, ...]
    """Kind of each cluster; see :class:`Cluster`."""
    cluster_of: np.ndarray
    """Index of the cluster of each token, shape (tokens,)."""
    leaders: tuple[np.ndarray, ...]
    """Indices of the leaders of each cluster."""
    weights: np.ndarray
    """Sum of the weights of each cluster, shape (clusters,)."""
    rates: np.ndarray
    """Measured factor of convergence per layer of each cluster, shape (clusters,); see :class:`Cluster`."""
    theory: float
    r"""Factor per layer according to the theory, :math:`1/(1+\alpha)`; NaN where it has none."""

    def __len__(self) -> int:
        return len(self.centres)

    def __getitem__(self, k: int) -> Cluster:
        if not -len(self) <= k < len(self):
            raise IndexError(f"there are {len(self)} clusters, not {k}")
        k = k % len(self)
        members = self._order[self._starts[k] : self._starts[k + 1]]
        return Cluster(
            self.centres[k],
            self.kinds[k],
            self.leaders[k],
            members,
            float(self.weights[k]),
            float(self.rates[k]),
        )

    def __iter__(self) -> Iterator[Cluster]:
        return (self[k] for k in range(len(self)))

    @property
    def sizes(self) -> np.ndarray:
        """Number of tokens in each cluster, shape (clusters,)."""
        return np.diff(self._starts)

    def __str__(self) -> str:
        return str(self.to_pandas().to_string(index=False, max_rows=20))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self.to_pandas().to_html(index=False, max_rows=20))

    def to_pandas(self) -> pandas.DataFrame:
        """Table with one row per cluster.

        Returns
        -------
        pandas.DataFrame
            Columns ``kind``, ``leaders``, ``size``, ``weight``, ``rate``, ``theory`` and the coordinates ``x0``,
            ``x1``, …
        """
        import pandas

        names = [" ".join(str(leader) for leader in found) for found in self.leaders]
        table: dict[str, object] = {
            "kind": self.kinds,
            "leaders": names,
            "size": self.sizes,
            "weight": self.weights,
            "rate": self.rates,
            "theory": np.full(len(self), self.theory),
        }
        for k in range(self.centres.shape[1]):
            table[f"x{k}"] = self.centres[:, k]
        return pandas.DataFrame(table)

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.cluster_of, kind="stable")

    @cached_property
    def _starts(self) -> np.ndarray:
        counts = np.bincount(self.cluster_of, minlength=len(self.centres))
        return np.concatenate([[0], np.cumsum(counts)])


@one_thread()
def clusters(run: Result) -> Clusters:
    """Clusters that the tokens of a run or a limit form.

    Parameters
    ----------
    run
        Trajectory or Equilibrium of a layer that chooses: a :class:`HardmaxLayer` with V = I, with any mask and heads,
        or a layer with a method ``choose`` of its own, whose clusters are those at the last stored layer.

    Returns
    -------
    Clusters
        Points, members and, for a trajectory, measured rates of convergence.

    Examples
    --------
    >>> import hardmax as hm
    >>> tokens = [[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]]
    >>> found = clusters(hm.simulate(tokens, hm.HardmaxLayer(alpha=0.5), depth=20))
    >>> [(c.kind, c.members.tolist(), round(c.rate, 6)) for c in found]
    [('vertex', [0, 1], 0.666667), ('vertex', [2], nan)]
    """
    run = result("run", run)
    who = roles(run)
    if isinstance(run, Trajectory):
        found = stored_states(run)
        limits, exact, unit = *_limits(run, found, who), found.unit
    else:
        limits, exact = plain(run.positions).astype(np.float64), True
        unit = float(np.finfo(plain(run.positions).dtype).eps)
    apart = _apart(run, limits, unit, who)
    cluster_of, first = _group(limits, exact, unit, who, apart)
    kinds: list[Kind] = ["vertex"] * len(who.leaders)
    named = [who.leaders[k : k + 1] for k in range(len(who.leaders))]
    for token in first[len(named) :].tolist():
        short = apart[token] and _steps_are_finite(run)
        kinds.append("undecided" if who.follows[token] < 0 else "short" if short else "face")
        named.append(_leaders_of(run, who, token))
    mass = np.ones(len(limits)) if run.weights is None else plain(run.weights).astype(np.float64)
    centres = limits[first]
    rates = np.full(len(first), np.nan)
    if isinstance(run, Trajectory):
        rates = _rates(found, who, centres, cluster_of)
        rates[[kind == "undecided" for kind in kinds]] = np.nan
    return Clusters(
        centres=centres,
        kinds=tuple(kinds),
        cluster_of=cluster_of,
        leaders=tuple(named),
        weights=np.bincount(cluster_of, weights=mass, minlength=len(first)),
        rates=rates,
        theory=_theory(run),
    )


def _theory(run: Result) -> float:
    """Factor per layer of the theory; NaN where steps differ or the layer is not a hardmax layer."""
    layer = run.layer
    if not isinstance(layer, HardmaxLayer) or isinstance(layer.alpha, AbstractSteps):
        return float("nan")
    return 1.0 / (1.0 + float(layer.alpha))


def _limits(run: Trajectory, found: StoredStates, who: Roles) -> tuple[np.ndarray, bool]:
    """Limit of each token of a run, shape (tokens, d), and whether it is exact or the last stored state.

    Loyal tokens converge to their leader, which does not move. Tied ones converge to a point of a face, computed
    exactly from layer 0; without layer 0, and for undecided tokens, the last stored state is used.
    """
    from_start = int(run.layers[0]) == 0
    limits: np.ndarray = found.states[-1].copy()
    special = np.zeros(len(limits), dtype=bool)
    special[who.ties.tokens] = True
    special[who.leaders] = True
    if _ends_between(run):
        special |= who.follows >= 0
    if not who.proved:
        return limits, False
    if from_start and special.any():
        weights = None if run.weights is None else plain(run.weights)
        enough = int(who.decided_at[special].max())  # layers after which these were decided
        whole = equilibrium(found.states[0], _hardmax(run), weights=weights, max_layers=enough, progress=False)
        limits[special] = plain(whole.positions)[special]
    loyal = (who.follows >= 0) & ~special
    limits[loyal] = limits[who.follows[loyal]]
    return limits, from_start


def _hardmax(run: Trajectory) -> HardmaxLayer | None:
    return run.layer if isinstance(run.layer, HardmaxLayer) else None


def _steps_are_finite(run: Result) -> bool:
    """Whether the steps of the layers have a finite sum, so that tokens stop before they reach their targets."""
    layer = run.layer
    return isinstance(layer, HardmaxLayer) and isinstance(layer.alpha, AbstractSteps) and layer.alpha.remaining(0) > 0


def _ends_between(run: Result) -> bool:
    """Whether a decided token may end at another place than its leader: several heads, or steps with a finite sum."""
    several = isinstance(run.layer, HardmaxLayer) and len(run.layer.heads) > 1
    return several or _steps_are_finite(run)


def _apart(run: Result, limits: np.ndarray, unit: float, who: Roles) -> np.ndarray:
    """Mask of the decided tokens, not tied, whose limit is not the position of their leader in the first head."""
    if not who.proved or not _ends_between(run):
        return np.zeros(len(limits), dtype=bool)
    distance = np.abs(limits - limits[np.maximum(who.follows, 0)]).max(axis=1)
    apart = (distance > grain_of(float(np.abs(limits).max()), unit)) & (who.follows >= 0)
    apart[who.ties.tokens] = False
    return np.asarray(apart)


def _leaders_of(run: Result, who: Roles, token: int) -> np.ndarray:
    """Leaders of one token: those that it is tied with, or those of its heads as far as they are known."""
    if token in who.ties:
        return who.ties[token]
    if who.follows[token] < 0 or not _ends_between(run):
        return who.leaders[:0]
    if isinstance(run, Trajectory):
        return who.follows[token : token + 1]
    chosen = np.unique(plain(run.choices)[:, token])
    return chosen[chosen >= 0]


def _group(
    limits: np.ndarray, exact: bool, unit: float, who: Roles, apart: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster of each token, and one token of each cluster: leaders, ties, those apart from their leader, undecided."""
    count = len(limits)
    row = np.full(count, -1)
    row[who.leaders] = np.arange(len(who.leaders))
    cluster_of = np.where(who.follows >= 0, row[np.maximum(who.follows, 0)], -1)
    tied = np.zeros(count, dtype=bool)
    tied[who.ties.tokens] = True
    cluster_of[tied | apart] = -1
    firsts = [who.leaders]
    for others in (np.flatnonzero(tied), np.flatnonzero(apart), np.flatnonzero((cluster_of < 0) & ~tied & ~apart)):
        if len(others) == 0:
            continue
        if exact or not tied[others[0]]:
            first, which = same_limits(limits[others], float(np.abs(limits).max()), unit)
        else:  # tied tokens that still move: those between the same leaders are assumed to share their limit
            sets: dict[bytes, int] = {}
            which = np.array([sets.setdefault(who.ties[i].tobytes(), len(sets)) for i in others.tolist()])
            first = np.unique(which, return_index=True)[1]
        cluster_of[others] = sum(len(f) for f in firsts) + which
        firsts.append(others[first])
    return cluster_of, np.concatenate(firsts)


def _rates(found: StoredStates, who: Roles, centres: np.ndarray, cluster_of: np.ndarray) -> np.ndarray:
    """Factor per layer by which the radius of each cluster shrinks, once all members are decided."""
    measurable = max(_MEASURABLE, _MEASURABLE_UNITS * found.unit)
    size = max(float(np.abs(found.states).max()), float(np.finfo(np.float64).tiny))
    decided = np.zeros(len(centres), dtype=np.int64)
    np.maximum.at(decided, cluster_of, who.decided_at)
    first = np.full((2, len(centres)), np.nan)  # layer and radius at the first usable state
    rates = np.full(len(centres), np.nan)
    for k, state in enumerate(found.states):
        distance = np.sqrt((((state - centres[cluster_of]) / size) ** 2).sum(axis=1))
        radius = np.zeros(len(centres))
        np.maximum.at(radius, cluster_of, distance)
        usable = (decided <= found.layers[k]) & (radius > measurable)
        begin = usable & np.isnan(first[0])
        later = usable & ~np.isnan(first[0])
        first[0, begin], first[1, begin] = found.layers[k], radius[begin]
        rates[later] = (radius[later] / first[1, later]) ** (1.0 / (found.layers[k] - first[0, later]))
    return rates
