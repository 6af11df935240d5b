"""Figures of fitted forecasters, of backtests and of the forecasting study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from ..drawing.style import INK, LINE, NOBODY, PALETTE, SOFT, axes_or_new, new_figure, rule_lines, style_axes, styled
from ..errors import InputError
from ..forecasting.diagnostics.backtest import Backtest
from ..forecasting.diagnostics.skill import THRESHOLD
from ..forecasting.forecaster import TimeDelayedTransformer
from ._stage import corner_note

EIGENVALUES, LOCAL, SHARES, CURVE = "eigenvalues", "local eigenvalues", "shares", "curve"
"""Names (gid) by which the artists can be found again."""
# Errors are drawn on a logarithmic axis, where zero has no place.
_FLOOR = 1e-12
_LASTING = 0.999
"""A mode of this modulus decays to a third over a thousand steps."""
_STYLES: tuple[dict[str, Any], ...] = (
    {"color": PALETTE[0], "lw": 2.0},
    {"color": SOFT, "lw": 1.4, "ls": ":"},
    {"color": PALETTE[1], "lw": 1.6, "ls": "--"},
    {"color": PALETTE[2], "lw": 1.6, "ls": "-."},
)


def draw_eigenvalues(model: TimeDelayedTransformer, *, window: object = None, ax: Axes | None = None) -> Axes:
    """Eigenvalues of the linear path of a model in the complex plane, with the unit circle.

    A mode on the unit circle persists, one inside decays, one outside grows; the angle is its frequency.

    Parameters
    ----------
    model
        A fitted forecaster.
    window
        A window of samples, shape (samples, channels): the eigenvalues of the learned map at that window are drawn
        too. Left out, only those of the linear path.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    values = np.asarray(model.eigenvalues())
    with styled():
        ax = axes_or_new(ax, 5.0, 5.0)
        style_axes(ax)
        ax.add_patch(Circle((0, 0), 1.0, fill=False, color=LINE, lw=1.2))
        ax.axhline(0, color=LINE, lw=0.6)
        ax.axvline(0, color=LINE, lw=0.6)
        if window is not None:
            local = np.asarray(model.local_eigenvalues(window))
            style: dict[str, Any] = {"marker": "x", "s": 30, "color": PALETTE[4], "lw": 1.2, "gid": LOCAL}
            ax.scatter(local.real, local.imag, label="learned map, at the window", **style)
        lasting = np.abs(values) > _LASTING
        for chosen, face, name in ((lasting, PALETTE[0], "linear path, persistent"), (~lasting, "white", "decaying")):
            if chosen.any():
                some = values[chosen]
                ax.scatter(
                    some.real,
                    some.imag,
                    s=34,
                    facecolor=face,
                    edgecolor=PALETTE[0],
                    lw=1.0,
                    gid=EIGENVALUES,
                    label=name,
                )
        reach = 1.15 * max(1.0, min(2.0, float(np.abs(values).max())))
        ax.set_xlim(-reach, reach)
        ax.set_ylim(-reach, 1.25 * reach)  # room for the legend
        ax.set_aspect("equal")
        ax.set_xlabel("real part")
        ax.set_ylabel("imaginary part")
        ax.legend(loc="upper left", ncols=1, borderaxespad=0.1)
        beyond = int((np.abs(values) > 1 + 1e-9).sum())
        if beyond:
            corner_note(ax, f"{beyond} outside the unit circle")
    return ax


def draw_lag_attention(model: TimeDelayedTransformer, windows: object = None, ax: Axes | None = None) -> Axes:
    """Bars of the attention of the latest sample to each lag: mean over windows, with the middle half as lines.

    Attention weights describe the model and are no causal statement; the dotted line is uniform attention.

    Parameters
    ----------
    model
        A fitted forecaster.
    windows
        Windows of samples, shape (windows, samples, channels); the last window of the training data when left
        out.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    found = model.attention(windows)
    shares = np.atleast_2d(found.shares)
    order = np.argsort(found.lags)
    lags, shares = np.asarray(found.lags)[order], shares[:, order]
    with styled():
        ax = axes_or_new(ax, 5.6, 3.4)
        style_axes(ax)
        places = np.arange(len(lags))
        ax.bar(places, shares.mean(axis=0), color=PALETTE[0], width=0.7, gid=SHARES)
        if len(shares) > 1:
            low, high = np.quantile(shares, [0.25, 0.75], axis=0)
            ax.vlines(places, low, high, color=INK, lw=1.6)
        ax.axhline(1 / len(lags), color=SOFT, ls=":", lw=1.2)
        ax.set_xticks(places, [str(lag) for lag in lags])
        ax.set_ylim(0, min(1.0, 1.15 * max(float(shares.max()), 1.5 / len(lags))))
        ax.set_xlabel("lag, samples before the latest")
        ax.set_ylabel("share of attention")
        rule_lines(ax)
        if not found.used:
            corner_note(ax, "of the best network; the selected model has none")
    return ax


def draw_backtest(backtest: Backtest, figure: Figure | None = None) -> Figure:
    """Figure of the error of every model over the horizon, with a table below.

    Parameters
    ----------
    backtest
        What :meth:`hardmax.TimeDelayedTransformer.backtest` returned.
    figure
        Figure to draw on; a new one when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    if not backtest.rows:
        raise InputError("backtest", "no rows", "must have models", "call model.backtest() first")
    with styled():
        if figure is None:
            figure = new_figure(7.6, 3.6 + 0.3 * len(backtest.rows))
        top, below = figure.subplots(2, 1, height_ratios=(3.0, 0.35 + 0.3 * len(backtest.rows)))
        style_axes(top)
        for k, row in enumerate(backtest.rows):
            curve = np.maximum(np.minimum(backtest.curves[row.model], 1e3), _FLOOR)
            top.semilogy(backtest.times, curve, gid=CURVE, label=row.model, **_STYLES[k % len(_STYLES)])
        top.axhline(THRESHOLD, color=LINE, lw=1.0)
        top.text(
            1.005, THRESHOLD, f"{THRESHOLD:g}", transform=top.get_yaxis_transform(), va="center", fontsize=8, color=SOFT
        )
        highest = max(float(np.minimum(c, 10.0).max()) for c in backtest.curves.values())
        top.set_ylim(top=3 * highest)
        top.set_xlabel("time ahead")
        top.set_ylabel("error, standard deviations")
        top.legend(loc="lower right", ncols=2)
        rule_lines(top)
        below.axis("off")
        columns = ["model", "mean error", "median error", "valid time", "diverged"]
        cells = [
            [
                r.model,
                f"{r.error:.3g}",
                f"{r.median_error:.3g}",
                f"{r.valid_time:.4g}",
                f"{r.diverged} of {backtest.starts}",
            ]
            for r in backtest.rows
        ]
        table = below.table(cells, colLabels=columns, loc="center", cellLoc="right", edges="horizontal")
        table.auto_set_font_size(False)
        table.set_fontsize(9)
        table.scale(1.0, 1.35)
        for (row_number, column), cell in table.get_celld().items():
            cell.set_edgecolor(LINE)
            cell.set_linewidth(0.6)
            if column == 0:
                cell.set_text_props(ha="left")
            if row_number == 0:
                cell.set_text_props(color=SOFT)
    return figure


SYSTEMS, MEAN = "systems", "mean"
"""Names (gid) by which the artists can be found again."""
_ACROSS = 2  # panels in a row, so that labels of ticks stay readable


def draw_study(
    settings: Mapping[str, Mapping[str, np.ndarray]],
    ranks: Mapping[str, Mapping[str, float]],
    *,
    ours: str | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Figure of a forecasting study: a panel per setting, a line per model, a dot per system.

    The bar is the mean over systems, the number beside it the mean rank; the best rank is on top.

    Parameters
    ----------
    settings
        ``settings[setting][model]`` are valid prediction times, one per system, shape (systems,).
    ranks
        ``ranks[setting][model]`` is the mean rank.
    ours
        The model to draw in colour.
    figure
        Figure to draw on; a new one when left out.

    Returns
    -------
    Figure
        The figure that was drawn on.
    """
    if not settings:
        raise InputError("settings", "none", "must hold at least one setting", "run the study first")
    across = min(_ACROSS, len(settings))
    down = math.ceil(len(settings) / across)
    most = max(len(models) for models in settings.values())
    with styled():
        if figure is None:
            figure = new_figure(4.9 * across, down * (1.15 + 0.31 * most))
        panels = figure.subplots(down, across, squeeze=False, sharex=True).ravel()
        for ax in panels[len(settings) :]:
            ax.set_visible(False)
        for ax, (setting, models) in zip(panels, settings.items(), strict=False):
            style_axes(ax)
            rank = ranks[setting]
            order = sorted(models, key=rank.__getitem__, reverse=True)
            for height, model in enumerate(order):
                times = np.asarray(models[model], dtype=np.float64)
                colour = PALETTE[0] if model == ours else NOBODY
                ax.plot([times.min(), times.max()], [height, height], color=LINE, lw=0.8, zorder=1)
                ax.plot(times, np.full(len(times), height), "o", ms=4.5, color=colour, alpha=0.55, mew=0, gid=SYSTEMS)
                ax.plot([times.mean()], [height], "|", ms=15, mew=2.4, color=INK, zorder=4, gid=MEAN)
                ax.annotate(
                    f"{rank[model]:.2f}",
                    (1.01, height),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    fontsize=9,
                    color=INK if model == ours else SOFT,
                )
            ax.annotate("rank", (1.01, len(order) - 0.35), xycoords=("axes fraction", "data"), fontsize=8, color=SOFT)
            ax.set_yticks(range(len(order)), order)
            ax.set_ylim(-0.6, len(order) - 0.3)
            ax.tick_params(axis="y", length=0)
            ax.set_title(setting)
        for ax in panels[max(0, len(settings) - across) : len(settings)]:
            ax.set_xlabel("valid prediction time, Lyapunov times")
            ax.tick_params(axis="x", labelbottom=True)
    return figure
