"""The data of a figure of tokens: positions, leaders, and the token that each token listens to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..dynamics.equilibrium import Equilibrium
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.listening import attention_at
from ..geometry.result_arrays import Roles
from ..inputs import plain

# In place of the index of a token; no index is negative.
NO_TOKEN = -1
# A token that listens to more than this many is drawn in grey: more colours in one dot cannot be told apart.
_MOST_FAVOURITES = 6


@dataclass(frozen=True, eq=False)
class Scene:
    """Tokens at one layer, with the tokens that each listens to."""

    positions: np.ndarray
    """Shape (token, coordinate)."""
    leads: np.ndarray
    """True for tokens that listen to themselves alone, shape (token,); they are drawn as stars."""
    follows: np.ndarray
    """The token that each token listens to, the lowest of several, shape (token,); -1 for too many."""
    ties: Mapping[int, np.ndarray]
    """For tokens that listen to several: all of these."""

    @property
    def followed(self) -> np.ndarray:
        """Indices of the tokens that some token listens to, ascending."""
        found = np.unique(np.concatenate([self.follows, *self.ties.values()]))
        return np.asarray(found[found >= 0])


def index_of_layer(run: Trajectory, layer: int | None) -> int:
    """Index of ``layer`` among the stored ones; the last one when None."""
    if len(run.layers) == 0:
        raise InputError("run", "no stored layers", "must hold tokens to draw", 'simulate with keep="all"')
    if layer is None:
        return len(run.layers) - 1
    place = np.flatnonzero(run.layers == layer)
    if len(place) == 0:
        shown = ", ".join(map(str, run.layers[:8])) + (", …" if len(run.layers) > 8 else "")
        raise InputError(
            "layer", layer, "was not stored in this run", f"choose among {shown} or store more layers with keep"
        )
    return int(place[0])


def scene_of_layer(run: Trajectory, k: int) -> Scene:
    """The scene of a run at its k-th stored layer."""
    positions = plain(run.tokens[k]).astype(np.float64)
    if not run.layer.chooses:
        return Scene(positions, np.zeros(len(positions), dtype=bool), np.full(len(positions), NO_TOKEN), {})
    attention = attention_at(run, k)
    return _scene(positions, attention.leads, attention.follows, attention.ties, attention.hears_everyone)


def scene_of_limit(limit: Equilibrium) -> Scene:
    """The scene of an equilibrium."""
    who = Roles.of(limit.leadership)
    positions = plain(limit.positions).astype(np.float64)
    leads = np.zeros(len(positions), dtype=bool)
    leads[who.leaders] = True
    return _scene(positions, leads, who.follows, who.ties, np.zeros_like(leads))


def _scene(
    positions: np.ndarray,
    leads: np.ndarray,
    follows: np.ndarray,
    ties: Mapping[int, np.ndarray],
    everyone: np.ndarray,
) -> Scene:
    several = dict(ties)
    many = [token for token, members in several.items() if len(members) > _MOST_FAVOURITES]
    colourless = everyone.copy()
    colourless[many] = True
    few = {token: members for token, members in several.items() if not colourless[token]}
    return Scene(positions, leads & ~colourless, np.where(colourless, NO_TOKEN, follows), few)
