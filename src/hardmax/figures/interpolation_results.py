"""Figures of results on compiled networks: blocks, float errors, and regularised training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from ..drawing.style import INK, NOBODY, PALETTE, SOFT, axes_or_new, style_axes, styled
from ..errors import InputError
from ..interpolation.regularised import RegularisedRun

_COLOURS = {
    "published bound": INK,
    "paper": PALETTE[4],
    "witness": PALETTE[6],
    "conditioned": PALETTE[2],
    "leaders": PALETTE[0],
    "fewest": PALETTE[1],
    "necessary": NOBODY,
}
_SHAPES = {"paper": "s", "witness": "v", "conditioned": "D", "leaders": "o", "fewest": "^"}
_DASHED = ("published bound", "necessary")
_EXACT = 1e-17
"""Height at which an error of exactly zero is drawn: below the rounding errors of float64."""


def draw_block_counts(
    counts: Mapping[str, Mapping[int, int]], *, along: str = "sequences N", ax: Axes | None = None
) -> Axes:
    """Number of blocks of each construction against the number of sequences or targets, on logarithmic axes.

    Parameters
    ----------
    counts
        ``counts[name][size]`` is the number of blocks; the names "published bound" and "necessary" are drawn as
        dashed lines.
    along
        Label of the horizontal axis.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    if not counts or any(not row for row in counts.values()):
        raise InputError("counts", "nothing", "must hold at least one size for each name", "compile some networks")
    with styled():
        ax = axes_or_new(ax, 5.6, 4.0)
        style_axes(ax)
        for name, row in counts.items():
            _curve(ax, name, sorted(row), [row[size] for size in sorted(row)])
        ax.set(xscale="log", yscale="log", xlabel=along, ylabel="blocks")
        _tick_at(ax, sorted({size for row in counts.values() for size in row}))
        ax.grid(which="major", axis="y")
        _name_at_the_end(ax)
    return ax


def draw_float_errors(errors: Mapping[str, Mapping[int, float]], ax: Axes | None = None) -> Axes:
    """Largest float64 error over all outputs against the number of sequences, on logarithmic axes.

    Parameters
    ----------
    errors
        ``errors[construction][N]`` is the error; zero is drawn at the bottom.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    if not errors or any(not row for row in errors.values()):
        raise InputError("errors", "nothing", "must hold at least one size for each name", "compile some networks")
    with styled():
        ax = axes_or_new(ax, 5.6, 4.0)
        style_axes(ax)
        for name, row in errors.items():
            _curve(ax, name, sorted(row), [max(row[size], _EXACT) for size in sorted(row)])
        ax.set(xscale="log", yscale="log", xlabel="sequences N", ylabel="largest float64 error")
        _tick_at(ax, sorted({size for row in errors.values() for size in row}))
        ax.set_ylim(_EXACT / 3, None)
        ax.grid(which="major", axis="y")
        if any(value == 0 for row in errors.values() for value in row.values()):
            ax.axhline(_EXACT, color=NOBODY, lw=0.8, ls=":")
            ax.annotate(
                "exact", (0.01, _EXACT), xycoords=("axes fraction", "data"), va="bottom", fontsize=8, color=SOFT
            )
        _name_at_the_end(ax)
    return ax


def _curve(ax: Axes, name: str, sizes: Sequence[int], values: Sequence[float]) -> None:
    colour = _COLOURS.get(name, INK)
    if name in _DASHED:
        ax.plot(sizes, values, color=colour, lw=1.3, ls="--", label=name)
    else:
        ax.plot(
            sizes, values, color=colour, lw=1.6, marker=_SHAPES.get(name, "o"), ms=5, mec="white", mew=0.5, label=name
        )


def _tick_at(ax: Axes, sizes: list[int]) -> None:
    """Set ticks at the sizes instead of powers of ten."""
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set_xticks([], minor=True)


def _name_at_the_end(ax: Axes) -> None:
    """Write names beside the last point of each curve, moved apart where they would overlap."""
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    ends = sorted(((float(np.log10(line.get_ydata()[-1])), line) for line in lines), key=lambda pair: pair[0])  # type: ignore[index]
    low, high = np.log10(ax.get_ylim())
    apart = 0.055 * (high - low)
    heights: list[float] = []
    for height, _ in ends:
        heights.append(max(height, heights[-1] + apart) if heights else height)
    ax.set_ylim(top=10 ** max(high, heights[-1] + apart))
    right = max(float(np.max(line.get_xdata())) for line in lines)
    left = min(float(np.min(line.get_xdata())) for line in lines)
    for height, (_, line) in zip(heights, ends, strict=True):
        x = right * (right / left) ** 0.02
        ax.text(x, 10**height, str(line.get_label()), va="center", fontsize=9, color=line.get_color())
    ax.set_xlim(left * (left / right) ** 0.03, right * (right / left) ** 0.32)


def draw_training_loss(run: RegularisedRun, ax: Axes | None = None, *, judged: bool = True) -> Axes:
    r"""Loss of one training run by epoch, with the threshold :math:`\varepsilon\|\theta^*\|^2`.

    Parameters
    ----------
    run
        A run of training with weight decay.
    ax
        Axes to draw on; new ones when left out.
    judged
        Draw the threshold; False for a run too short to be compared with it, which the title then says.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    with styled():
        ax = axes_or_new(ax, 5.6, 3.6)
        style_axes(ax)
        ax.plot(run.epochs, run.losses, color=PALETTE[0], lw=1.6)
        ax.set(xscale="log", yscale="log", xlabel="epoch", ylabel="loss")
        ax.set_title(rf"weight decay $\varepsilon$ = {run.eps:g}")
        if judged:
            _draw_threshold(ax, run)
        else:
            _note_not_evaluated(ax)
        ax.grid(which="major", axis="y")
    return ax


def _draw_threshold(ax: Axes, run: RegularisedRun) -> None:
    ax.axhline(run.threshold, color=PALETTE[4], lw=1.2, ls="--")
    ax.annotate(
        r"threshold $\varepsilon\,\|\theta^*\|^2$", (0.02, run.threshold), xycoords=("axes fraction", "data"),
        ha="left", va="bottom", fontsize=9, color=PALETTE[4],
    )  # fmt: skip
    if run.reached_at is not None:
        k = int(np.flatnonzero(run.epochs == run.reached_at)[0])
        ax.plot(run.reached_at, run.losses[k], "o", color=PALETTE[0], mec=INK, ms=6)
        ax.annotate(
            f"epoch {run.reached_at:,}", (run.reached_at, run.losses[k]), textcoords="offset points",
            xytext=(-8, -4), ha="right", va="top", fontsize=9, color=INK,
        )  # fmt: skip


def draw_loss_against_decay(runs: Sequence[RegularisedRun], ax: Axes | None = None, *, judged: bool = True) -> Axes:
    r"""Loss and objective after training against the weight decay :math:`\varepsilon`, with the thresholds.

    Parameters
    ----------
    runs
        Runs with different weight decays, at least two, each from a fresh start.
    ax
        Axes to draw on; new ones when left out.
    judged
        Draw loss and objective; False for runs too short to be compared, which the title then says.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    if len(runs) < 2:
        raise InputError("runs", f"{len(runs)} runs", "must be at least two", "train with several values of eps")
    runs = sorted(runs, key=lambda run: run.eps)
    eps = [run.eps for run in runs]
    with styled():
        ax = axes_or_new(ax, 5.2, 3.8)
        style_axes(ax)
        ax.plot(eps, [run.threshold for run in runs], color=PALETTE[4], lw=1.2, ls="--")
        ax.annotate(
            r"threshold $\varepsilon\,\|\theta^*\|^2$", (eps[-1], runs[-1].threshold), textcoords="offset points",
            xytext=(-8, 4), ha="right", fontsize=9, color=PALETTE[4],
        )  # fmt: skip
        if judged:
            _draw_final_losses(ax, runs)
        else:
            _note_not_evaluated(ax)
        ax.set(xscale="log", yscale="log", xlabel=r"weight decay $\varepsilon$", ylabel="loss")
        ax.grid(which="major", axis="y")
    return ax


def _draw_final_losses(ax: Axes, runs: Sequence[RegularisedRun]) -> None:
    eps = [run.eps for run in runs]
    ax.plot(eps, [run.final_objective for run in runs], color=PALETTE[2], lw=1.4, marker="s", ms=5, mec=INK)
    ax.annotate(
        r"loss + $\varepsilon\,\|\theta\|^2$", (eps[-1], runs[-1].final_objective), textcoords="offset points",
        xytext=(0, -20), ha="right", fontsize=9, color=PALETTE[2],
    )  # fmt: skip
    ax.plot(eps, [run.final_loss for run in runs], color=PALETTE[0], lw=1.6, marker="o", ms=6, mec=INK)
    ax.annotate(
        "loss after training", (eps[-1], runs[-1].final_loss), textcoords="offset points",
        xytext=(-6, -14), ha="right", fontsize=9, color=PALETTE[0],
    )  # fmt: skip


def _note_not_evaluated(ax: Axes) -> None:
    ax.set_title("not evaluated in a quick run", loc="right", fontsize=9, color=SOFT)
