"""Figures of the mean field: distance of tokens to their limit law by time and beta."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from ..drawing.style import INK, LINE, PALETTE, SOFT, axes_or_new, rule_lines, style_axes, styled
from ..errors import InputError
from ..meanfield.phases import Phases

MEASURED, THEORY, APPROACH = "measured", "theory", "approach"
"""Names (gid) by which the artists can be found again."""
_DASHED = (0, (5, 3))


def shades(count: int) -> np.ndarray:
    """Colours from dark to light for an ordered family of curves, shape (count, 3)."""
    return np.asarray(mpl.colormaps["viridis"](np.linspace(0.0, 0.82, count)))[:, :3]


def _some(found: Phases | Sequence[Phases]) -> list[Phases]:
    several = [found] if isinstance(found, Phases) else sorted(found, key=lambda one: one.beta)
    if not several:
        raise InputError("found", "no runs", "must hold the phases of at least one run", "pass [phases(run), …]")
    return several


def draw_distances(
    found: Phases | Sequence[Phases], ax: Axes | None = None, *, trimmed: bool = False, shape: bool = True
) -> Axes:
    r""":math:`W_2` to the limit law by time, a curve per beta, with a dot at the closest approach.

    Parameters
    ----------
    found
        What :func:`hardmax.phases` returned, for one run or several.
    ax
        Axes to draw on; new ones when left out.
    trimmed
        Draw the distances without the share of mass that is farthest off.
    shape
        Add the two branches that bound the curve: the decay :math:`e^{-ct}` at zero temperature, and the growth
        :math:`\beta^{-1/2}e^{(v_{top}-v_1)(t-t_\beta)}` of a cluster that attends to itself.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    several = _some(found)
    with styled():
        ax = axes_or_new(ax, 6.2, 4.0)
        style_axes(ax)
        for one, colour in zip(several, shades(len(several)), strict=True):
            curve = one.trimmed if trimmed else one.distances
            ax.semilogy(one.times, curve, color=colour, lw=1.8, label=_called(one.beta), gid=MEASURED)
            dot = {"color": colour, "mec": "white", "ms": 7, "zorder": 4}
            least = int(np.argmin(curve))
            ax.plot(one.times[least], curve[least], "o", gid=APPROACH, **dot)
        if shape and all(one.distance_name == "W2" for one in several):  # the theory is one of W_2
            _draw_shape(ax, several)
        low = min(float((one.trimmed if trimmed else one.distances).min()) for one in several)
        ax.set_ylim(0.45 * max(low, 1e-12), 2.4)
        ax.set_xlim(0, max(float(one.times[-1]) for one in several))
        ax.set_xlabel("time")
        ax.set_ylabel(_distance_label(several) + (", trimmed" if trimmed else ""))
        _colour_labels(ax)
        ax.legend(loc="lower right", ncols=2 if len(several) > 4 else 1)
        rule_lines(ax)
    return ax


def _distance_label(several: Sequence[Phases]) -> str:
    sliced = any(one.distance_name != "W2" for one in several)
    return ("sliced " if sliced else "") + r"$W_2$ to the limit law"


def _called(beta: float) -> str:
    return r"$\beta = \infty$" if math.isinf(beta) else rf"$\beta = {beta:g}$"


def _draw_shape(ax: Axes, several: list[Phases]) -> None:
    theory, last = several[-1].theory, several[-1]
    rate = theory.wasserstein
    if not math.isfinite(rate):
        return
    times = np.linspace(0, last.approach_time, 50)
    decay = last.distances[0] * 0.62 * np.exp(-rate * times)  # shifted to be visible beside the curves
    visible = decay > 0.4 * last.distances.min()
    ax.semilogy(times[visible], decay[visible], color=INK, lw=1.2, ls=_DASHED, gid=THEORY)
    ax.annotate(
        rf"$e^{{-{rate:.3g}\,t}}$",
        (float(times[24]), float(decay[24])),
        xytext=(-7, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=11,
    )
    # Clusters that drift have a speed, not a rate.
    if theory.escape and not theory.terminal.drifts and last.escape_time is not None:
        rise = np.linspace(last.escape_time - 2.2 / theory.escape, last.escape_time, 30)
        # To the right of the last curve, where the figure is empty.
        growth = 0.26 * last.distances.max() * np.exp(theory.escape * (rise - last.escape_time))
        ax.semilogy(rise, growth, color=INK, lw=1.2, ls=_DASHED, gid=THEORY)
        ax.annotate(
            rf"$e^{{{'' if theory.escape == 1 else format(theory.escape, '.3g')}\,t}}$",
            (float(rise[22]), float(growth[22])),
            xytext=(7, -3),
            textcoords="offset points",
            va="top",
            fontsize=11,
        )


def draw_scaling(betas: Sequence[float], errors: Sequence[float], time: float, ax: Axes | None = None) -> Axes:
    r"""Error at a fixed time against beta, with its slope and the theorem's :math:`\sqrt{\log(\beta+1)/\beta}`.

    Parameters
    ----------
    betas
        Inverse temperatures, at least two.
    errors
        The error at each of them, positive.
    time
        The time at which the errors were measured.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    x, y = np.asarray(betas, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if len(x) < 2 or len(x) != len(y) or bool((x <= 0).any()) or bool((y <= 0).any()):
        raise InputError(
            "errors", f"{len(y)} values", "must be positive, one for each of two betas or more", "run more"
        )
    slope, height = np.polyfit(np.log(x), np.log(y), 1)
    fine = np.geomspace(x.min() * 0.8, x.max() * 1.25, 60)
    with styled():
        ax = axes_or_new(ax, 5.2, 4.0)
        style_axes(ax)
        bound = np.sqrt(np.log(fine + 1) / fine)
        bound *= 2.2 * y[0] / np.sqrt(np.log(x[0] + 1) / x[0])
        ax.loglog(fine, bound, color=SOFT, lw=1.2, ls=":", gid=THEORY)
        ax.loglog(fine, np.exp(height) * fine**slope, color=PALETTE[0], lw=1.4, gid=THEORY)
        ax.loglog(x, y, "o", color=PALETTE[0], mec="white", ms=7.5, gid=MEASURED)
        ax.annotate(
            r"the theorem's shape $\sqrt{\log(\beta+1)/\beta}$",
            (float(fine[-1]), float(bound[30])),
            xytext=(0, 9),
            textcoords="offset points",
            ha="right",
            color=SOFT,
        )
        middle = len(x) // 2
        ax.annotate(
            f"slope {slope:.2f}",
            (float(x[middle]), float(y[middle])),
            xytext=(-12, -20),
            textcoords="offset points",
            ha="right",
            color=PALETTE[0],
        )
        ax.set_xticks(x, [f"{beta:g}" for beta in x])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_ylim(top=2.2 * float(bound.max()))
        ax.set_xlabel(r"$\beta$")
        ax.set_ylabel(rf"error at $t = {time:g}$, root mean square")
        _colour_labels(ax)
        rule_lines(ax)
    return ax


def draw_durations(found: Sequence[Phases], ax: Axes | None = None) -> Axes:
    """Times of the closest approach and of the escape against log beta, with fitted slopes.

    Parameters
    ----------
    found
        What :func:`hardmax.phases` returned, for runs at two values of beta above 1 or more.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    several = [one for one in _some(found) if one.beta > 1]
    if len(several) < 2:
        raise InputError("found", f"{len(several)} runs", "must hold runs at two betas above 1 or more", "run more")
    logs = np.log([one.beta for one in several])
    theory = several[-1].theory
    families = (
        ("escape", [one.escape_time for one in several], theory.escape_time(math.e), PALETTE[4], "s"),
        ("closest approach", [one.approach_time for one in several], theory.approach_time(math.e), PALETTE[0], "o"),
    )
    with styled():
        ax = axes_or_new(ax, 5.2, 4.0)
        style_axes(ax)
        for name, times, expected, colour, marker in families:
            known = np.array([time is not None for time in times])
            if known.sum() < 2:
                continue
            t = np.array([time for time in times if time is not None])
            slope, height = np.polyfit(logs[known], t, 1)
            ends = np.array([logs[0] - 0.3, logs[-1] + 0.3])
            label = f"{name}: slope {slope:.2f}" + ("" if expected is None else f", theory {expected:.3g}")
            ax.plot(ends, height + slope * ends, color=colour, lw=1.4, gid=THEORY)
            ax.plot(logs[known], t, marker, color=colour, mec="white", ms=7.5, label=label, gid=MEASURED)
        ax.set_xticks(logs, [f"{one.beta:.4g}" for one in several])
        ax.set_xlabel(r"$\beta$, on a logarithmic axis")
        ax.set_ylabel("time")
        ax.set_ylim(bottom=0)
        _colour_labels(ax)
        ax.legend(loc="upper left")
        rule_lines(ax)
    return ax


def draw_least_distances(
    found: Sequence[Phases], ax: Axes | None = None, *, tokens: Mapping[int, Sequence[float]] | None = None
) -> Axes:
    r"""Least :math:`W_2` to the limit law against beta, with its fitted slope, and that of tokens beside it.

    Parameters
    ----------
    found
        What :func:`hardmax.phases` returned, for densities or runs at two values of beta or more.
    ax
        Axes to draw on; new ones when left out.
    tokens
        Least :math:`W_2` of runs with a number of tokens (key), one value per beta in ascending order.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    several = _some(found)
    betas, least = (np.array([getattr(one, name) for one in several]) for name in ("beta", "approach_distance"))
    if len(several) < 2 or bool((least <= 0).any()):
        raise InputError("found", f"{len(several)} runs", "must hold positive distances at two betas", "run more")
    for count, values in (tokens or {}).items():
        if len(values) != len(several):
            problem = f"must have {len(several)} values for each number of tokens"
            raise InputError("tokens", f"{len(values)} for {count}", problem, "pass one value per beta")
    slope, height = np.polyfit(np.log(betas), np.log(least), 1)
    with styled():
        ax = axes_or_new(ax, 5.6, 4.0)
        style_axes(ax)
        families = sorted((tokens or {}).items())
        for (count, values), colour in zip(families, shades(max(2, len(families) + 1))[1:], strict=False):
            label = f"{count:,} tokens"
            ax.loglog(betas, values, "o-", color=colour, mec="white", ms=6, lw=1.1, label=label, gid=MEASURED)
        if len(families) > 1:  # bars over all numbers of tokens
            table = np.array([row for _, row in families])
            ax.vlines(betas, table.min(axis=0), table.max(axis=0), color=SOFT, lw=1.0, zorder=1)
        fine = np.geomspace(betas.min() * 0.85, betas.max() * 1.18, 20)
        ax.loglog(fine, np.exp(height) * fine**slope, color=INK, lw=1.4, gid=THEORY)
        ax.loglog(betas, least, "D", color=INK, mec="white", ms=7, label="density", gid=APPROACH)
        ax.annotate(
            f"slope {slope:.2f}",
            (float(betas[len(betas) // 2]), float(least[len(betas) // 2])),
            xytext=(-10, -16),
            textcoords="offset points",
            ha="right",
        )
        ax.set_xticks(betas, [f"{beta:.4g}" for beta in betas])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.set_xlabel(r"$\beta$")
        ax.set_ylabel(r"least $W_2$ to the limit law")
        _colour_labels(ax)
        ax.legend(loc="lower left" if families else "best")
        rule_lines(ax)
    return ax


def draw_phase_diagram(found: Sequence[Phases], ax: Axes | None = None) -> Axes:
    """:math:`W_2` to the limit law as a shade over beta and time, with lines for closest approach and escape.

    Parameters
    ----------
    found
        What :func:`hardmax.phases` returned, for runs at two values of beta or more.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    several = _some(found)
    if len(several) < 2:
        raise InputError("found", "one run", "must hold runs at two betas or more", "sweep over beta")
    logs = np.log10([one.beta for one in several])
    end = min(float(one.times[-1]) for one in several)
    times = np.linspace(0, end, 300)
    field = np.array([np.interp(times, one.times, one.distances) for one in several])
    with styled():
        ax = axes_or_new(ax, 6.2, 4.2)
        style_axes(ax)
        norm = LogNorm(vmin=max(float(field.min()), 1e-6), vmax=float(field.max()))
        # Between the runs log W_2 is linear in log beta; triangles of unlike sides would show as stripes.
        fine = np.linspace(logs[0], logs[-1], 200)
        filled = np.exp(np.array([np.interp(fine, logs, column) for column in np.log(np.maximum(field, 1e-300)).T])).T
        shade = ax.pcolormesh(times, fine, filled, cmap="viridis_r", norm=norm, shading="gouraud", rasterized=True)
        _draw_ridge(ax, several, [one.approach_time for one in several], "closest approach", "-", "right")
        _draw_ridge(ax, several, [one.escape_time for one in several], "escape", "--", "left")
        round_betas = [m * 10.0**k for k in range(math.floor(logs[0]), math.ceil(logs[-1]) + 1) for m in (1, 2, 5)]
        shown = [beta for beta in round_betas if logs[0] - 1e-9 <= math.log10(beta) <= logs[-1] + 1e-9]
        ax.set_yticks(np.log10(shown), [f"{beta:g}" for beta in shown])
        ax.set_xlim(0, end)
        ax.set_ylim(logs[0], logs[-1])
        ax.set_xlabel("time")
        ax.set_ylabel(r"$\beta$")
        _colour_labels(ax)
        bar = ax.figure.colorbar(shade, ax=ax, pad=0.02)
        bar.outline.set_edgecolor(LINE)
        bar.set_label(_distance_label(several), color=SOFT)
    return ax


def _colour_labels(ax: Axes) -> None:
    """Set the colour of the labels, also on axes of the caller."""
    ax.xaxis.label.set_color(SOFT)
    ax.yaxis.label.set_color(SOFT)


def _draw_ridge(
    ax: Axes, several: list[Phases], times: Sequence[float | None], name: str, dashes: str, side: str
) -> None:
    known = [(time, math.log10(one.beta)) for one, time in zip(several, times, strict=True) if time is not None]
    if len(known) < 2:
        return
    x, y = np.array(known).T
    ax.plot(x, y, color="white", lw=3.4, ls="-", alpha=0.85)
    ax.plot(x, y, color=INK, lw=1.5, ls=dashes, gid=APPROACH)
    k = int(0.5 * len(x))
    shift = -9 if side == "right" else 9
    outline = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "boxstyle": "round,pad=0.2"}
    ax.annotate(name, (x[k], y[k]), xytext=(shift, 0), textcoords="offset points", ha=side, va="center", bbox=outline)
