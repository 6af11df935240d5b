"""The data of a figure of tokens (positions, leaders, attended tokens), and the projection of d coordinates to it.

The projection is a strip for d = 1, the plane, space, and principal directions for more coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..drawing.style import SOFT, is_space, new_figure, style_axes
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.leaders import attention_at
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


# Outside of this range coordinates are drawn in a unit of their own: Matplotlib axes cannot span 1e300.
_PLAIN_SIZES = (1e-90, 1e90)
# Half the shorter side of the axes, at least this share of the longer one, so that tokens on a line are readable.
_SLIMMEST = 0.125
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class View:
    """A projection of tokens to two or three drawing coordinates."""

    dimension: int
    basis: np.ndarray | None
    """Principal directions as columns, where there are more coordinates than can be drawn."""
    centre: np.ndarray
    unit: float
    labels: tuple[str, ...]
    in_space: bool

    @property
    def is_strip(self) -> bool:
        """Whether tokens have one coordinate; the second drawing coordinate then only separates them."""
        return self.dimension == 1

    def place(self, points: np.ndarray, *, spread: bool = False) -> np.ndarray:
        """Drawing coordinates of ``points``, shape (point, 2 or 3); on a strip, ``spread`` separates them "
        "vertically."""
        scaled = points / self.unit
        if self.is_strip:
            height: np.ndarray = np.zeros(len(points))
            if spread and len(points) > 1:
                # Multiples of the golden ratio are evenly spread for any number of tokens.
                height = 0.8 * ((np.arange(len(points)) * _GOLDEN) % 1.0 - 0.5)
            return np.column_stack([scaled[:, 0], height])
        if self.basis is None:
            return np.asarray(scaled)
        return np.asarray((scaled - self.centre) @ self.basis)


def view_of(points: np.ndarray, ax: Axes | None) -> View:
    """The projection of ``points`` for ``ax``, or for new axes; d = 3 on flat axes is projected."""
    d = points.shape[1]
    if ax is not None and is_space(ax) and d != 3:
        raise InputError(
            "ax",
            "three-dimensional axes",
            f"cannot show tokens of {d} coordinates",
            "pass flat axes or ax=None",
        )
    in_space = d == 3 and (ax is None or is_space(ax))
    size = float(np.abs(points).max())
    plain = size == 0 or _PLAIN_SIZES[0] < size < _PLAIN_SIZES[1]
    unit = 1.0 if plain else 10.0 ** math.floor(math.log10(size))
    if d <= 2 or in_space:
        names = [f"coordinate {k + 1}" for k in range(d)] if d > 1 else ["coordinate"]
        return View(d, None, np.zeros(d), unit, _labels(names, unit), in_space)
    scaled = points / unit
    centre = scaled.mean(axis=0)
    centred = scaled - centre
    spreads, directions = np.linalg.eigh(centred.T @ centred)
    spreads = np.maximum(spreads[::-1], 0.0)
    basis = directions[:, ::-1][:, :2]
    # The sign of an eigenvector is arbitrary: the largest entry is made positive.
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), [0, 1]])
    shares = spreads / spreads.sum() if spreads.sum() > 0 else np.zeros(d)
    names = [f"principal direction {k + 1} ({100 * shares[k]:.0f} % of the variance)" for k in range(2)]
    return View(d, basis, centre, unit, _labels(names, unit), False)


def _labels(names: list[str], unit: float) -> tuple[str, ...]:
    return tuple(name if unit == 1.0 else f"{name}, in units of {unit:.0e}" for name in names)


def axes_for(view: View) -> Axes:
    """New axes for the projection."""
    figure = new_figure(6.0, 2.0 if view.is_strip else 5.4)
    axes: Axes = figure.add_subplot(projection="3d") if view.in_space else figure.add_subplot()
    return axes


def frame(ax: Axes, view: View, placed: np.ndarray) -> None:
    """Set labels and limits of the axes so that all ``placed`` points are visible at equal scales, with a margin."""
    low, high = placed.min(axis=0), placed.max(axis=0)
    reach = float((high - low).max())
    if not view.is_strip and not view.in_space:  # tokens on a line still need some height
        middle, half = 0.5 * low + 0.5 * high, np.maximum(0.5 * high - 0.5 * low, _SLIMMEST * reach)
        low, high = middle - half, middle + half
    air = 0.08 * (reach or max(1.0, float(np.abs(placed).max())))
    style_axes(ax)
    words: dict[str, Any] = {"color": SOFT, "fontsize": 10}
    ax.set_xlabel(view.labels[0], **words)
    ax.set_xlim(low[0] - air, high[0] + air)
    if view.is_strip:
        ax.set_ylim(-0.6, 0.6)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        return
    ax.set_ylabel(view.labels[1], **words)
    ax.set_ylim(low[1] - air, high[1] + air)
    if view.in_space:
        ax.set_zlim(low[2] - air, high[2] + air)  # type: ignore[attr-defined]
        ax.set_zlabel(view.labels[2], **words)  # type: ignore[attr-defined]
        ax.set_box_aspect((high - low + 2 * air).tolist())
        return
    ax.set_aspect("equal", adjustable="box")
