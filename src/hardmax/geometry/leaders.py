"""The leaders of a run or a limit, their followers, and the tokens that each token listens to at one layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..attention.choice import TIE_UNITS, Choice, apply, default_tolerance
from ..attention.layer import HardmaxLayer
from ..attention.normal_form import distinct, scaled_down
from ..attention.search import attended
from ..dynamics.assumptions import is_positive_definite
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.leadership import Ties
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..inputs import plain
from ..shapes import Indices, Tokens
from ..threads import one_thread
from .result_arrays import (
    Result,
    Roles,
    choices_at,
    near_one,
    result,
    roles,
    score_matrix,
    states,
    stored_states,
    ties_of,
)

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Leaders:
    """Leaders of a run, in the order of their indices."""

    index: np.ndarray
    """Index of the token (the lowest where tokens are repeated), shape (leaders,)."""
    emerged_at: np.ndarray
    """First layer at which the leader listens to itself alone, shape (leaders,)."""
    positions: np.ndarray
    """Position in the limit, or at the last stored layer of a run, shape (leaders, d)."""
    followers: np.ndarray
    """Number of other tokens that follow the leader, shape (leaders,); tokens with several leaders count for each."""
    a_norms: np.ndarray | None
    r"""Length :math:`\sqrt{\langle A z, z\rangle}`, shape (leaders,); None without one positive definite A."""

    def __len__(self) -> int:
        return len(self.index)

    def __str__(self) -> str:
        if len(self) == 0:
            return "no leaders"
        return str(self.to_pandas().to_string(index=False, max_rows=20))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self.to_pandas().to_html(index=False, max_rows=20))

    def to_pandas(self) -> pandas.DataFrame:
        """Table with one row per leader.

        Returns
        -------
        pandas.DataFrame
            Columns ``leader``, ``emerged_at``, ``followers``, ``a_norm`` where it is defined, and the coordinates
            ``x0``, …
        """
        import pandas

        table = {"leader": self.index, "emerged_at": self.emerged_at, "followers": self.followers}
        if self.a_norms is not None:
            table["a_norm"] = self.a_norms
        for k in range(self.positions.shape[1]):
            table[f"x{k}"] = self.positions[:, k]
        return pandas.DataFrame(table)


def leaders(run: Result) -> Leaders:
    """Leaders of a run or of a limit.

    Parameters
    ----------
    run
        Trajectory or Equilibrium of a layer that chooses: a :class:`HardmaxLayer` with V = I, with any mask and heads,
        or a layer with a method ``choose`` of its own. Where the run does not prove which tokens lead for ever, these
        are the tokens that listen to themselves alone in every head at the last stored layer.

    Returns
    -------
    Leaders
        Index, layer of emergence, position and number of followers of each leader.

    Examples
    --------
    >>> import hardmax as hm
    >>> found = leaders(hm.equilibrium([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5)))
    >>> found.index.tolist(), found.emerged_at.tolist(), found.followers.tolist()
    ([0, 2], [0, 0], [1, 0])
    """
    run = result("run", run)
    who = roles(run)
    everywhere = plain(run.positions) if isinstance(run, Equilibrium) else states(run)[-1]
    positions = everywhere[who.leaders].astype(np.float64)
    return Leaders(
        index=who.leaders,
        emerged_at=who.emerged_at,
        positions=positions,
        followers=_followers(run, who),
        a_norms=_a_norms(run, positions),
    )


def _a_norms(run: Result, positions: np.ndarray) -> np.ndarray | None:
    """A-norms of the leaders; None where there is no one A, or it is not positive definite."""
    layer = run.layer
    if not isinstance(layer, HardmaxLayer) or len(layer.heads) > 1 or not layer.heads[0].has_plain_scores:
        return None
    A = score_matrix(layer, positions.shape[1])
    return a_norms(A, positions) if is_positive_definite(torch.from_numpy(A)) else None


def a_norms(A: np.ndarray, points: np.ndarray) -> np.ndarray:
    r"""A-norms :math:`\sqrt{\langle A z, z\rangle}` of points, shape (points,), without intermediate overflow."""
    matrix, power = near_one(A)
    scaled, exponent = near_one(points)
    squared = np.maximum(((scaled @ matrix.T) * scaled).sum(axis=1), 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(np.sqrt(squared), exponent + power // 2))


def _followers(run: Result, who: Roles) -> np.ndarray:
    """Number of other tokens that follow each leader; a token counts once for each leader of its heads or ties."""
    count = len(who.follows)
    if isinstance(run, Equilibrium) and run.head_choices is not None and len(run.head_choices) > 1:
        chosen = plain(run.head_choices)
        pairs = np.unique(np.stack([chosen, np.broadcast_to(np.arange(count), chosen.shape)]).reshape(2, -1), axis=1)
        others = (pairs[0] >= 0) & (pairs[0] != pairs[1]) & ~np.isin(pairs[1], who.ties.tokens)
        found = np.bincount(pairs[0, others], minlength=count) + np.bincount(who.ties.members, minlength=count)
        return np.asarray(found[who.leaders])
    alone = (who.follows >= 0) & (who.follows != np.arange(count))
    alone[who.ties.tokens] = False
    heads = np.bincount(who.follows[alone], minlength=count) + np.bincount(who.ties.members, minlength=count)
    return np.asarray(heads[who.leaders])


@dataclass(frozen=True, eq=False)
class Attention:
    """The tokens that each token listens to at one layer."""

    layer: int
    """Number of the layer."""
    follows: np.ndarray
    """Token that each token listens to, shape (tokens,); the lowest index where there are several."""
    ties: Ties
    """All of them, for the tokens that listen to several."""
    leads: np.ndarray
    """True for tokens that listen to themselves alone, shape (tokens,): the leaders that have emerged by this layer (of
    repeated tokens the lowest)."""
    hears_everyone: np.ndarray
    """True for tokens at zero that are not at rest there, shape (tokens,): they listen to all tokens."""


@one_thread()
def attention_at(run: Trajectory, k: int, head: int = 0) -> Attention:
    """Tokens that each token listens to in the ``k``-th stored state of a run of a layer that chooses.

    Decided tokens listen to their leaders, which is known from the run; scores are computed for the other tokens only.
    At deep layers a follower is so close to its leader that scores could not separate the two. A token tied for ever
    with followers that approach several leaders is reported to listen to those leaders.

    Parameters
    ----------
    run
        Trajectory of a :class:`HardmaxLayer`, or of a layer with a method ``choose`` of its own.
    k
        Index of the stored state; negative indices count from the last.
    head
        Index of the head, for layers with several.

    Returns
    -------
    Attention
        Arrays of shape (tokens,), and all members of ties.

    Examples
    --------
    >>> import hardmax as hm
    >>> run = hm.simulate([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5), depth=1)
    >>> attention_at(run, 0).follows.tolist(), attention_at(run, 0).leads.tolist()
    ([0, 0, 2], [True, False, True])
    """
    count = len(states(_trajectory(run)))
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not -count <= k < count:
        remedy = f"pass k from 0 to {count - 1}, or -1 for the last"
        raise InputError("k", repr(k), "must be the index of a stored state", remedy)
    found = stored_states(run)
    state, number = found.states[k], int(run.layers[k])
    layer = run.layer
    if not isinstance(layer, HardmaxLayer) or not layer.is_basic:
        return _of_head(choices_at(run, found, int(k)), head, number)
    if head != 0:
        raise InputError("head", head, "must be 0: the layer has one head", "leave out head")
    layer = found.rule(layer, int(k))
    known = None if run.leadership is None else Roles.of(run.leadership)
    decided = np.zeros(len(state), dtype=bool)
    if known is not None:
        decided = (known.decided_at >= 0) & (known.decided_at <= number)
    searched = _search(layer, state, np.flatnonzero(~decided))
    if known is None:
        return Attention(number, searched.follows, ties_of(searched.ties), searched.leads, searched.everyone)

    alias = _leader_if_arrived(state, known, decided, TIE_UNITS * found.unit)
    leads = np.zeros(len(state), dtype=bool)
    leads[known.leaders[known.emerged_at <= number]] = True
    ties = {i: np.unique(alias[members]) for i, members in searched.ties.items()}
    ties |= {i: known.ties[i] for i in known.ties if decided[i]}
    return Attention(
        layer=number,
        follows=np.where(decided, known.follows, alias[searched.follows]),
        ties=ties_of({i: members for i, members in ties.items() if len(members) > 1}),
        leads=leads,
        hears_everyone=searched.everyone,
    )


def _of_head(choices: tuple[Choice, ...], head: int, number: int) -> Attention:
    """The choices of one head of a layer at the layer with this number; leaders lead in every head."""
    if isinstance(head, bool) or not isinstance(head, (int, np.integer)) or not 0 <= head < len(choices):
        raise InputError("head", repr(head), f"must be one of 0 … {len(choices) - 1}", "pass the index of a head")
    itself = torch.arange(len(choices[0]))
    leads = torch.ones(len(itself), dtype=torch.bool)
    for choice in choices:
        leads &= (choice.first == itself) & ~choice.everyone
        leads[choice.tied] = False
    chosen = choices[int(head)]
    several = {token: chosen[token].numpy() for token in chosen.tied.tolist()}
    return Attention(number, chosen.first.numpy(), ties_of(several), leads.numpy(), chosen.everyone.numpy())


@dataclass(frozen=True, eq=False)
class _Found:
    """Result of the search for some of the tokens; the others listen to themselves."""

    follows: np.ndarray
    ties: dict[int, np.ndarray]
    leads: np.ndarray
    everyone: np.ndarray


def _search(layer: HardmaxLayer, state: np.ndarray, tokens: np.ndarray) -> _Found:
    found = distinct(torch.from_numpy(state), torch.ones(len(state), dtype=torch.float64))
    first = found.first.numpy()
    point_of = np.arange(len(state)) if found.point_of is None else found.point_of.numpy()
    follows, everyone = first[point_of], np.zeros(len(state), dtype=bool)
    ties: dict[int, np.ndarray] = {}
    if len(tokens):
        queries, row = np.unique(point_of[tokens], return_inverse=True)
        choice = _choose(layer, found.points, torch.from_numpy(queries))
        follows[tokens] = first[choice.first.numpy()][row]
        everyone[tokens] = choice.everyone.numpy()[row]
        tied = choice.tied.numpy()
        place = np.searchsorted(tied, row)
        several = (place < len(tied)) & (np.append(tied, -1)[np.minimum(place, len(tied))] == row)
        for i, t in zip(tokens[several].tolist(), place[several].tolist(), strict=True):
            members = choice.members[int(choice.offsets[t]) : int(choice.offsets[t + 1])].numpy()
            ties[i] = np.sort(first[members])
            follows[i] = ties[i][0]
    leads = np.zeros(len(state), dtype=bool)
    leads[tokens] = follows[tokens] == tokens
    leads[everyone] = False
    leads[list(ties)] = False
    return _Found(follows, ties, leads, everyone)


def _choose(layer: HardmaxLayer, points: Tokens, queries: Indices) -> Choice:
    """Sets C_i of some of the points; like ``layer.choose`` without the search for the other points."""
    if layer.tolerance == "exact":
        return layer.choose(points).among(queries)
    scaled, _ = scaled_down("tokens", points)
    A, _ = scaled_down("A", layer.score_matrix(points))
    tolerance = default_tolerance(torch.float64) if layer.tolerance is None else layer.tolerance
    return attended(apply(A, scaled[queries]), scaled, tolerance=tolerance)


def _leader_if_arrived(state: np.ndarray, known: Roles, decided: np.ndarray, tolerance: float) -> np.ndarray:
    """Index of each token, or of its leader where a loyal token is within the tolerance of its leader."""
    itself = np.arange(len(state))
    leader = np.where(decided, known.follows, itself)
    distance = np.abs(state - state[leader]).max(axis=1)
    return np.where(distance <= tolerance * np.abs(state).max(), leader, itself)


def _trajectory(run: object) -> Trajectory:
    if not isinstance(run, Trajectory):
        raise InputError(
            "run",
            type(run).__name__,
            "must be a Trajectory",
            "a limit has no layers: pass the result of hm.simulate",
        )
    return run
