r"""The half-plane of points that can attract a token: Figure 1 of the clustering paper.

Token i is attracted by tokens whose score is at least its own,
:math:`\langle A z_i, y\rangle \ge \langle A z_i, z_i\rangle`: a half-space whose boundary goes through :math:`z_i` and
is normal to :math:`A z_i`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Polygon
from matplotlib.patheffects import withStroke

from ..attention.layer import HardmaxLayer
from ..drawing.style import INK, LINE, NOBODY, PALETTE, SHADE, SOFT, axes_or_new, style_axes, styled
from ..dynamics.simulate import choose
from ..errors import InputError
from ..inputs import as_tokens
from ..shapes import ArrayLike

REGION, BOUNDARY, ATTRACTING, OTHERS, ATTENDED = "region", "boundary", "attracting", "others", "attended"
"""Names (gid) by which the artists can be found again."""

_MOST_NAMED = 6
"""Members of C with a name; more would overlap."""
_HALO = [withStroke(linewidth=3.0, foreground="white")]


def draw_attention_geometry(tokens: ArrayLike, layer: HardmaxLayer, token: int = 0, ax: Axes | None = None) -> Axes:
    """Axes with the half-plane of points that can attract one token, and the tokens that it listens to.

    The shaded points y score at least as high as the token itself. The token listens to those farthest in the
    direction of :math:`A z_i`, the set :math:`C_i`, ringed and named. Tokens are numbered from 1 as in the paper.

    Parameters
    ----------
    tokens
        Tokens of two coordinates, shape (token, 2).
    layer
        The hardmax layer, which has the score matrix A.
    token
        Index of the token, from 0.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    points = as_tokens(tokens)[0].detach().cpu().numpy().astype(np.float64)
    if points.shape[1] != 2:
        raise InputError(
            "tokens", f"{points.shape[1]} coordinates", "must have two coordinates", "draw a projection of them"
        )
    if not isinstance(layer, HardmaxLayer) or len(layer.heads) > 1:
        problem = "must be a HardmaxLayer with one head: the picture shows its score matrix"
        raise InputError("layer", str(layer), problem, "pass for example HardmaxLayer(alpha=0.5)")
    if isinstance(token, bool) or not isinstance(token, (int, np.integer)) or not 0 <= token < len(points):
        raise InputError("token", token, f"must be one of 0 … {len(points) - 1}", "pass the index of a token")
    A = layer.score_matrix(torch.from_numpy(points)).numpy()
    choice = choose(points, layer)
    everyone = bool(choice.everyone[token])
    attended = np.arange(len(points)) if everyone else choice[int(token)].numpy()
    with styled():
        ax = axes_or_new(ax, 5.0, 4.6)
        _draw(ax, points, A @ points[token], int(token), attended)
    return ax


def _draw(ax: Axes, points: np.ndarray, normal: np.ndarray, token: int, attended: np.ndarray) -> None:
    here = points[token]
    shown = np.vstack([points, np.zeros(2)])
    middle = (shown.max(axis=0) + shown.min(axis=0)) / 2
    reach = 0.62 * max(float((shown.max(axis=0) - shown.min(axis=0)).max()), 1e-300)
    ax.set_xlim(middle[0] - reach, middle[0] + reach)
    ax.set_ylim(middle[1] - reach, middle[1] + reach)
    ax.set_aspect("equal")
    style_axes(ax)
    length = float(np.hypot(*normal))
    unit = normal / length if length > 0 else np.array([0.0, 0.0])
    _shade(ax, here, unit, 8 * reach)
    attracts = (points - here) @ unit >= -1e-12 * np.abs(points).max()
    attracts[token] = False
    dots: dict[str, Any] = {"s": 46, "linewidths": 0.6, "zorder": 3}
    others = ~attracts
    others[token] = False
    ax.scatter(points[others, 0], points[others, 1], c=NOBODY, edgecolors=SOFT, gid=OTHERS, **dots)
    ax.scatter(points[attracts, 0], points[attracts, 1], c=PALETTE[3], edgecolors=INK, gid=ATTRACTING, **dots)
    ring: dict[str, Any] = {"s": 190, "facecolors": "none", "edgecolors": PALETTE[4], "linewidths": 2.0, "zorder": 4}
    ax.scatter(points[attended, 0], points[attended, 1], gid=ATTENDED, **ring)
    ax.scatter(here[0], here[1], s=60, c=PALETTE[0], edgecolors=INK, linewidths=0.7, zorder=5)
    ax.plot([0, here[0]], [0, here[1]], color=SOFT, lw=0.9, ls=(0, (4, 3)), zorder=1.5)
    ax.scatter(0, 0, s=18, c=INK, marker="+", linewidths=1.0, zorder=2)
    _name(ax, np.zeros(2), "0", (-9, -9))
    _name(ax, here, f"$z_{{{token + 1}}}$", tuple((15 * np.array([-unit[1], unit[0]]) - 10 * unit).tolist()))
    for other in attended[:_MOST_NAMED]:
        if other != token:
            _name(ax, points[other], f"$z_{{{other + 1}}}$", tuple((17 * unit).tolist()))
    ax.set_xlabel(f"shaded: can attract $z_{{{token + 1}}}$  ·  rings: {_set(token, attended)}", color=SOFT)
    if length > 0:
        tip = here + 0.42 * reach * unit
        arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.3, "shrinkA": 4, "shrinkB": 0, "mutation_scale": 13}
        ax.annotate("", tip, here, arrowprops=arrow, zorder=4)
        _name(ax, tip, f"$A z_{{{token + 1}}}$", tuple((13 * unit).tolist()))


def _set(token: int, attended: np.ndarray) -> str:
    """The set C of a token in LaTeX, at most six members."""
    numbers = [str(other + 1) for other in attended[:_MOST_NAMED]]
    shown = ",\\,".join(numbers + (["\\ldots"] if len(attended) > _MOST_NAMED else []))
    return f"$C_{{{token + 1}}} = \\{{{shown}\\}}$"


def _shade(ax: Axes, here: np.ndarray, unit: np.ndarray, far: float) -> None:
    """Shade the half-plane beyond ``here`` in the direction ``unit``, or the whole plane for a token at zero."""
    along = np.array([-unit[1], unit[0]])
    corners = [here + far * along, here + far * (along + unit), here + far * (unit - along), here - far * along]
    if not unit.any():
        corners = [here + far * np.array(corner) for corner in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    ax.add_patch(Polygon(corners, facecolor=SHADE, edgecolor="none", zorder=0, gid=REGION))
    ax.plot(*np.array([here - far * along, here + far * along]).T, color=SOFT, lw=1.0, zorder=1, gid=BOUNDARY)
    ax.axhline(0, color=LINE, lw=0.6, zorder=0.5)
    ax.axvline(0, color=LINE, lw=0.6, zorder=0.5)


def _name(ax: Axes, point: np.ndarray, words: str, shift: tuple[float, ...]) -> None:
    style: dict[str, Any] = {"fontsize": 12, "ha": "center", "va": "center", "zorder": 6, "path_effects": _HALO}
    ax.annotate(words, (point[0], point[1]), xytext=(shift[0], shift[1]), textcoords="offset points", **style)
