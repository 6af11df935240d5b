"""The tokens that each token listens to at one layer of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..attention.choice import TIE_UNITS, Choice, apply, default_tolerance
from ..attention.distinct import distinct
from ..attention.layer import HardmaxLayer
from ..attention.scaling import scaled_down
from ..attention.search import attended
from ..dynamics.leadership import Ties
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..shapes import Indices, Tokens
from ..threads import one_thread
from .result_arrays import Roles, choices_at, states, stored_states, ties_of


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
