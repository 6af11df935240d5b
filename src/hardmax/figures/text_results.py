"""Figures of training on texts: accuracy by dimension and epoch, softmax and hardmax losses, faithfulness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from ..drawing.style import INK, PALETTE, axes_or_new, colour_of, rule_lines, style_axes, styled

_MARKERS = ("o", "s", "^", "D", "v", "P")
History = Sequence[Mapping[str, float]]


def draw_accuracy_by_dimension(
    series: Mapping[str, Mapping[int, float]],
    ax: Axes | None = None,
    *,
    published: Mapping[int, float] | None = None,
    note: str | None = None,
) -> Axes:
    """Test accuracy against the number of coordinates per word, one line per model.

    Parameters
    ----------
    series
        ``series[model][d]`` is the test accuracy with ``d`` coordinates.
    ax
        Axes to draw on; new ones when left out.
    published
        ``published[d]`` is the published accuracy, drawn dashed.
    note
        Text above the axes.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    with styled():
        ax = axes_or_new(ax, 5.6, 4.0)
        style_axes(ax)
        lines: dict[str, tuple[Mapping[int, float], Any, str]] = {
            name: (values, colour_of(k), "-") for k, (name, values) in enumerate(series.items())
        }
        if published is not None:
            lines = {"published": (published, INK, "--"), **lines}
        for marker, (name, (values, colour, style)) in zip(cycle(_MARKERS), lines.items(), strict=False):
            dims = sorted(values)
            heights = [values[d] for d in dims]
            ax.plot(dims, heights, marker=marker, color=colour, ls=style, lw=1.4, ms=6, label=name)
        if note is not None:
            ax.set_title("\n".join(wrap(note, 80)), fontsize=8, loc="left")
        ax.set_xscale("log", base=2)
        every = sorted({d for values, _, _ in lines.values() for d in values})
        ax.set_xticks(every, [str(d) for d in every])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("coordinates per word, d")
        ax.set_ylabel("test accuracy")
        rule_lines(ax)
        ax.legend()
    return ax


def draw_accuracy_by_epoch(histories: Mapping[str, History], ax: Axes | None = None) -> Axes:
    """Accuracy on test documents (lines) and training documents (dotted) after every epoch.

    Parameters
    ----------
    histories
        The history of each model, ``model.history_``, by its name.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    with styled():
        ax = axes_or_new(ax, 5.6, 4.0)
        style_axes(ax)
        for k, (name, history) in enumerate(histories.items()):
            epochs = [record["epoch"] for record in history]
            ax.plot(epochs, [r["held_out_accuracy"] for r in history], color=colour_of(k), lw=1.5, label=name)
            ax.plot(epochs, [r["accuracy"] for r in history], color=colour_of(k), lw=1.0, ls=":")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("epochs")
        ax.set_ylabel("accuracy: test (line), training (dots)")
        rule_lines(ax)
        ax.legend()
    return ax


def draw_softmax_and_hardmax(histories: Mapping[str, History], ax: Axes | None = None) -> Axes:
    """Training loss with softmax attention (lines), and of the same embedding with hardmax attention (marks), by epoch.

    Parameters
    ----------
    histories
        The history of each model, ``model.history_``, by its name.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    with styled():
        ax = axes_or_new(ax, 5.6, 4.0)
        style_axes(ax)
        for k, (name, history) in enumerate(histories.items()):
            ax.plot(
                [record["epoch"] for record in history],
                [record["loss"] for record in history],
                color=colour_of(k),
                lw=1.3,
                label=f"{name}, softmax",
            )
            both = [record for record in history if "hardmax_loss" in record]
            ax.plot(
                [record["epoch"] for record in both],
                [record["hardmax_loss"] for record in both],
                marker=_MARKERS[k % len(_MARKERS)],
                color=colour_of(k),
                ls="none",
                mfc="none",
                ms=7,
                label=f"{name}, hardmax",
            )
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("epochs")
        ax.set_ylabel("training loss")
        rule_lines(ax)
        ax.legend(ncols=2)
    return ax


def draw_faithfulness(rows: Sequence[tuple[str, float]], ax: Axes | None = None, *, target: float = 5.0) -> Axes:
    """Bars of the effect of deleting the words of an explanation, as a multiple of that of deleting random words.

    Parameters
    ----------
    rows
        Name and multiple of each explanation.
    ax
        Axes to draw on; new ones when left out.
    target
        Multiple at which a dashed line is drawn.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    with styled():
        ax = axes_or_new(ax, 5.6, 0.9 + 0.45 * max(len(rows), 2))
        style_axes(ax)
        places = np.arange(len(rows))
        ax.barh(places, [ratio for _, ratio in rows], color=PALETTE[0], height=0.6)
        for place, (_, ratio) in zip(places, rows, strict=True):
            ax.annotate(f"{ratio:.1f}", (ratio, place), xytext=(4, 0), textcoords="offset points", va="center")
        ax.axvline(target, color=INK, lw=1.0, ls="--")
        ax.set_yticks(places, [name for name, _ in rows])
        ax.invert_yaxis()
        ax.set_xlabel("effect of deleting the leaders over that of deleting random words")
        ax.margins(x=0.12)
    return ax
