"""What a picture of tokens shows, as data: where they are, who leads, and whom everybody else listens to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.listening import attention_at
from ..geometry.result_arrays import Roles
from ..inputs import plain

NOBODY = -1
# Listening to more than this many at once is drawn like listening to nobody in particular.
_MOST_FAVOURITES = 6


@dataclass(frozen=True, eq=False)
class Scene:
    """Tokens at one moment."""

    positions: np.ndarray
    """Shape (token, coordinate)."""
    leads: np.ndarray
    """True for tokens that listen to themselves alone: the stars."""
    follows: np.ndarray
    """Whom each token listens to, the lowest where there are several; -1 for nobody in particular."""
    ties: Mapping[int, np.ndarray]
    """All that a token listens to, where there are several."""

    @property
    def followed(self) -> np.ndarray:
        """Everybody whom somebody listens to, ascending."""
        everybody = np.unique(np.concatenate([self.follows, *self.ties.values()]))
        return np.asarray(everybody[everybody >= 0])


def index_of_layer(run: Trajectory, layer: int | None) -> int:
    """Where ``layer`` is among the kept ones; the last one when None."""
    if len(run.layers) == 0:
        raise InputError("run", "no kept layers", "must hold tokens to draw", 'simulate with keep="all"')
    if layer is None:
        return len(run.layers) - 1
    place = np.flatnonzero(run.layers == layer)
    if len(place) == 0:
        shown = ", ".join(map(str, run.layers[:8])) + (", …" if len(run.layers) > 8 else "")
        raise InputError("layer", layer, "was not kept in this run", f"choose among {shown} or keep more layers")
    return int(place[0])


def scene_of_layer(run: Trajectory, k: int) -> Scene:
    """The tokens of a run at its k-th kept layer, and whom each listens to there."""
    positions = plain(run.tokens[k]).astype(np.float64)
    if not isinstance(run.layer, HardmaxLayer):
        return Scene(positions, np.zeros(len(positions), dtype=bool), np.full(len(positions), NOBODY), {})
    attention = attention_at(run, k)
    return _scene(positions, attention.leads, attention.follows, attention.ties, attention.hears_everyone)


def scene_of_limit(limit: Equilibrium) -> Scene:
    """The tokens at infinite depth."""
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
    return Scene(positions, leads & ~colourless, np.where(colourless, NOBODY, follows), few)
