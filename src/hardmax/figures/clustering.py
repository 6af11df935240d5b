r"""Figures of clustering: the half-plane that attracts a token, layers until decided, cluster sizes, convergence.

Figure 1 of the clustering paper: token i is attracted by tokens whose score is at least its own,
:math:`\langle A z_i, y\rangle \ge \langle A z_i, z_i\rangle`: a half-space whose boundary goes through :math:`z_i` and
is normal to :math:`A z_i`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from ..attention.layer import HardmaxLayer
from ..drawing.style import (
    INK,
    LINE,
    NOBODY,
    PALETTE,
    SHADE,
    SOFT,
    axes_or_new,
    colours_of,
    new_figure,
    rule_lines,
    style_axes,
    styled,
)
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.simulate import choose
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.clusters import clusters
from ..geometry.result_arrays import roles, states
from ..inputs import as_tokens, plain
from ..shapes import ArrayLike
from ._stage import Ranks, corner_note

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


MEASURED, THEORY, BARS = "measured", "theory", "bars"
"""Names (gid) by which the artists can be found again."""
_MOST_BARS = 24  # readable in one figure
_MOST_CURVES = 400  # more curves cannot be told apart
_FLOOR = 1e-15  # smaller distances are rounding errors
_LAST_BIN = 10  # few systems need more layers


def draw_layers_until_decided(layers: Mapping[tuple[int, int], np.ndarray], figure: Figure | None = None) -> Figure:
    """Figure of the number of layers that systems need until every token is decided: a panel per d, a line per n.

    Ten layers and more share the last place of the horizontal axis.

    Parameters
    ----------
    layers
        ``layers[n, d]`` are the numbers of layers of the systems of ``n`` tokens with ``d`` coordinates, shape
        (systems,).
    figure
        Figure to draw on; a new one when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    if not layers or any(len(np.atleast_1d(found)) == 0 for found in layers.values()):
        raise InputError("layers", "no systems", "must hold at least one system each", "run some systems first")
    counts, dimensions = sorted({n for n, _ in layers}), sorted({d for _, d in layers})
    latest = min(int(max(np.max(found) for found in layers.values())), _LAST_BIN)
    with styled():
        if figure is None:
            figure = new_figure(max(2.7 * len(dimensions), 4.0), 3.2)
        axes = figure.subplots(1, len(dimensions), sharey=True, squeeze=False)[0]
        for ax, d in zip(axes, dimensions, strict=True):
            style_axes(ax)
            for k, n in enumerate(counts):
                if (n, d) not in layers:
                    continue
                binned = np.minimum(np.asarray(layers[n, d], dtype=np.int64), latest)
                share = np.bincount(binned, minlength=latest + 1)
                style = {"color": PALETTE[k % len(PALETTE)], "marker": "os^Dv"[k % 5], "ms": 4.5, "lw": 1.4}
                ax.plot(100 * share / share.sum(), label=f"n = {n:,}", gid=MEASURED, **style)
            ax.set_title(f"d = {d}")
            ax.set_xticks(range(0, latest + 1, 2 if latest > 5 else 1))
            rule_lines(ax)
            if latest == _LAST_BIN:
                ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0f}+" if x == _LAST_BIN else f"{x:.0f}")
        axes[0].set_ylabel("share of systems, %")
        axes[0].set_ylim(0, 104)
        axes[-1].legend()
        figure.supxlabel("layers until every token is decided", fontsize=10, color=SOFT)
    return figure


def draw_cluster_sizes(run_or_limit: Trajectory | Equilibrium, ax: Axes | None = None) -> Axes:
    """Bars of the number of tokens that end at each limit point, largest first, in the colours of their leaders.

    A bar of two colours is a limit point between two leaders.

    Parameters
    ----------
    run_or_limit
        A run, or its limit of infinite depth.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    found = clusters(run_or_limit)
    order = np.argsort(-found.sizes, kind="stable")[:_MOST_BARS]
    with styled():
        ax = axes_or_new(ax, 5.4, 0.9 + 0.3 * len(order))
        style_axes(ax)
        leaders = plain(run_or_limit.leadership.leaders)  # type: ignore[union-attr]
        places = np.zeros((found.cluster_of.shape[0], found.centres.shape[1]))
        places[leaders] = found.centres[: len(leaders)]
        ranks = Ranks(leaders, places, leaders)
        longest = int(found.sizes.max())
        for row, k in enumerate(order):
            cluster, size = found[int(k)], int(found.sizes[k])
            owners = ranks.of(cluster.leaders) if 0 < len(cluster.leaders) <= 6 else np.array([-1])
            for part, colour in enumerate(colours_of(owners)):
                width = size / len(owners)
                ax.barh(row, width, left=part * width, height=0.72, color=colour, gid=BARS)
            ax.text(size + 0.012 * longest, row, f"{size:,}", va="center", fontsize=9, color=INK)
        ax.set_yticks(range(len(order)), [_called(found[int(k)].kind, found[int(k)].leaders) for k in order])
        ax.invert_yaxis()
        ax.set_xlim(0, 1.14 * longest)
        ax.set_xlabel("tokens", color=SOFT)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(found) > len(order):
            corner_note(ax, f"the {len(order)} largest of {len(found):,} clusters")
    return ax


def _called(kind: str, leaders: np.ndarray) -> str:
    if kind == "vertex":
        return f"leader {leaders[0]}"
    if kind == "undecided":
        return "undecided"
    return "between " + " and ".join(map(str, leaders)) if len(leaders) <= 3 else f"between {len(leaders)} leaders"


def draw_convergence(run: Trajectory, ax: Axes | None = None) -> Axes:
    r"""Distance of every token to its limit, by layer, on a logarithmic axis, beside the theory.

    Once decided, a token approaches its limit by the factor :math:`1/(1+\alpha)` per layer; the dashed line has that
    slope. Before that its curve is grey.

    Parameters
    ----------
    run
        A run of a hardmax layer with at least two stored layers.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    who, stored = roles(run), states(run)
    found = clusters(run)
    moves = np.flatnonzero((who.follows >= 0) & (np.abs(stored[0] - found.centres[found.cluster_of]).max(axis=1) > 0))
    chosen = moves[np.unique(np.linspace(0, len(moves) - 1, _MOST_CURVES).astype(np.int64))] if len(moves) else moves
    if len(chosen) == 0 or len(run) < 2:
        raise InputError("run", str(run), "must have decided tokens that move, at two stored layers", "simulate deeper")
    gaps = np.linalg.norm(stored[:, chosen] - found.centres[found.cluster_of[chosen]], axis=2) / np.abs(stored).max()
    gaps[gaps < _FLOOR] = np.nan  # nothing but rounding
    alpha = float(run.layer.alpha)  # type: ignore[attr-defined]
    with styled():
        ax = axes_or_new(ax, 5.4, 3.8)
        style_axes(ax)
        leader_rank = Ranks(who.leaders, stored[-1], who.leaders).of(who.follows[chosen])
        for column, token in enumerate(chosen):
            since = int(np.searchsorted(run.layers, who.decided_at[token]))
            ax.semilogy(run.layers[: since + 1], gaps[: since + 1, column], color=NOBODY, lw=0.9, alpha=0.8)
            if not np.isfinite(gaps[since:, column]).any():
                continue  # a late leader, which is at its limit when it emerges
            colour = colours_of(leader_rank[column : column + 1])[0]
            ax.semilogy(run.layers[since:], gaps[since:, column], color=colour, lw=0.9, alpha=0.75, gid=MEASURED)
        factor = (1 + alpha) ** -(run.layers - run.layers[0]).astype(np.float64)
        theory = 2.0 * np.nanmax(gaps / factor[:, None]) * factor  # shifted to be visible beside the curves
        visible = theory > _FLOOR
        ax.semilogy(run.layers[visible], theory[visible], color=INK, lw=1.4, ls=(0, (5, 3)), gid=THEORY)
        ax.annotate(
            rf"$(1+\alpha)^{{-k}},\ \alpha = {alpha:g}$",
            (float(run.layers[visible][visible.sum() // 2]), float(theory[visible][visible.sum() // 2])),
            xytext=(8, 8),
            textcoords="offset points",
        )
        ax.set_xlabel("layer", color=SOFT)
        ax.set_ylabel("distance to the limit, relative", color=SOFT)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        rule_lines(ax)
        if len(moves) > len(chosen):
            corner_note(ax, f"{len(chosen)} of {len(moves):,} moving tokens drawn")
    return ax
