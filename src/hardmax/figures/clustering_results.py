"""Figures of clustering results: layers until decided, sizes of clusters, convergence of tokens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..drawing.style import (
    INK,
    NOBODY,
    PALETTE,
    SOFT,
    axes_or_new,
    colours_of,
    new_figure,
    rule_lines,
    style_axes,
    styled,
)
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.clusters import clusters
from ..geometry.result_arrays import roles, states
from ..inputs import plain
from ._marks import Ranks
from ._stage import corner_note

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
