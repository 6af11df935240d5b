"""What a study of forecasters came to: how long each is right, on every system, in every setting."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ..errors import InputError
from ._style import INK, LINE, NOBODY, PALETTE, SOFT, new_figure, styled
from ._view import dress

SYSTEMS, MEAN = "systems", "mean"
"""Names (gid) by which the artists can be found again."""
_ACROSS = 2


def draw_study(
    settings: Mapping[str, Mapping[str, np.ndarray]],
    ranks: Mapping[str, Mapping[str, float]],
    *,
    ours: str | None = None,
    figure: Figure | None = None,
) -> Figure:
    """A panel a setting, a line a model: a dot is a system, the bar the mean, the number behind it the mean rank.

    ``settings[setting][model]`` are valid prediction times, one a system; ``ranks`` says the mean ranks. The best rank
    is on top; ``ours`` is drawn in colour.
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
            dress(ax)
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
