"""Figures of trained transformers: paths of words, attention of one head, all heads, and clusters by depth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from ..drawing.style import INK, LINE, NOBODY, PALETTE, SOFT, axes_or_new, colours_of, rule_lines, style_axes, styled
from ..drawing.words import draw_dots, label_words
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..scalars import shown
from ..shapes import ArrayLike

WORDS, LEADERS, SINKS, TRAILS, ARROWS, MARKS = "words", "leaders", "sinks", "trails", "arrows", "marks"
"""Names (gid) by which the artists can be found again."""

# Names in the picture of words; more would overlap.
_NAMED = 60
# Verdicts that are marked in the picture of heads; soft heads have no mark.
_VERDICTS = {"hard": "H", "idle": "i", "sink": "s"}


@dataclass(frozen=True, eq=False)
class WordPaths:
    """Tokens of every layer on one plane."""

    path: np.ndarray
    """Tokens on the plane, shape (states, tokens, 2)."""
    variance: tuple[float, float]
    """Share of the variance over all layers along each axis of the plane."""

    def sentence(self) -> str:
        """Share of the variance in the plane, as a sentence."""
        return f"The plane holds {sum(self.variance):.0%} of the variance of all layers together."


def word_paths(run: Trajectory, *, unit_length: bool = False) -> WordPaths:
    """Tokens of every layer on the plane of their two principal axes, fitted to all stored states together.

    Parameters
    ----------
    run
        Trajectory of a transformer, ``hm.simulate(model.tokens(text), model.layers)``.
    unit_length
        Divide every token by its length first, as the normalisation of pre-norm models does before each layer.

    Returns
    -------
    WordPaths
        Positions of shape (states, tokens, 2) and the share of the variance along each axis.
    """
    tokens = _tokens(run)
    if unit_length:
        lengths = np.linalg.norm(tokens, axis=2, keepdims=True)
        tokens = tokens / np.where(lengths > 0, lengths, 1.0)
    cloud = tokens.reshape(-1, tokens.shape[2])
    centred = cloud - cloud.mean(axis=0)
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] if len(axes) > 1 else np.concatenate([axes, np.zeros_like(axes)])
    # A principal axis has two directions; the one with the larger extreme coordinate is taken.
    axes = axes * np.where(axes[np.arange(2), np.abs(axes).argmax(axis=1)] < 0, -1.0, 1.0)[:, None]
    squares = np.pad(values**2, (0, 2))
    total = float(squares.sum()) or 1.0
    path = (centred @ axes.T).reshape(*tokens.shape[:2], 2)
    return WordPaths(path, (float(squares[0]) / total, float(squares[1]) / total))


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of the tokens of one head, with their ranks for colours."""

    attended: np.ndarray
    """Token that each token attends to most, shape (tokens,); -1 for none."""
    sinks: np.ndarray
    """True for sinks, shape (tokens,)."""
    leads: np.ndarray
    """True for tokens that some token attends to most, shape (tokens,)."""
    ranks: np.ndarray
    """Rank of the target of each token, by how many attend to it, shape (tokens,); -1 for sinks and for none."""
    own: np.ndarray
    """Rank of each token as a target, shape (tokens,); -1 for sinks and for tokens that are no target."""

    @staticmethod
    def of(attended: np.ndarray, sinks: np.ndarray) -> Targets:
        """Targets ranked by the number of tokens that attend to them."""
        counts = np.bincount(attended[attended >= 0], minlength=len(attended))
        order = np.argsort(-np.where(sinks, 0, counts), kind="stable")
        order = order[(counts[order] > 0) & ~sinks[order]]
        own = np.full(len(attended) + 1, -1)  # the last entry is for tokens that attend to none
        own[order] = np.arange(len(order))
        return Targets(attended, sinks, counts > 0, own[attended], own[:-1])

    @property
    def colours(self) -> np.ndarray:
        """Rank of the colour of each token: its own where it is a target, else that of its target."""
        return np.where(self.leads, self.own, self.ranks)


def draw_word_paths(
    run: Trajectory,
    words: Sequence[str],
    layer: int | None = None,
    *,
    follows: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    unit_length: bool = False,
    trails: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Axes with the words of a text at one layer of a transformer, and their paths up to it.

    The plane is that of the two principal axes of all layers together, so that layers can be compared.

    Parameters
    ----------
    run
        Trajectory of a transformer, ``hm.simulate(model.tokens(text), model.layers)``.
    words
        One word per token, ``model.tokenise(text).words``.
    layer
        Index of the stored state; the last when left out.
    follows
        Token that each token attends to, shape (tokens,), for example
        ``hm.models.attention_targets(model, text).targets[3, 2]``: words get the colour of what they attend to, and
        the tokens attended to are stars.
    sinks
        True for tokens that are drawn as sinks, grey squares, shape (tokens,).
    unit_length
        Divide every token by its length first, as for pre-norm models.
    trails
        Draw the paths from layer 0.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    placed = word_paths(run, unit_length=unit_length)
    states, count, _ = placed.path.shape
    names = _names(words, count)
    k = states - 1 if layer is None else layer
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 0 <= k < states:
        raise InputError("layer", shown(layer), f"must be a stored state from 0 to {states - 1}", "pass layer=0")
    attended = np.full(count, -1) if follows is None else _targets("follows", follows, count)
    heads = Targets.of(attended, _flags("sinks", sinks, count))
    leads, sink = heads.leads, heads.leads & heads.sinks
    colours = colours_of(heads.colours if follows is not None else np.zeros(count, dtype=np.int64))
    now = placed.path[k]
    with styled():
        ax = axes_or_new(ax, 7.2, 5.2)
        style_axes(ax)
        if trails and k:
            paths = list(placed.path[: k + 1].transpose(1, 0, 2))
            ax.add_collection(LineCollection(paths, colors=colours, linewidths=0.8, alpha=0.35, gid=TRAILS))
        draw_dots(ax, now[~leads], s=26, c=colours[~leads], linewidths=0, zorder=3, gid=WORDS)
        for marked, mark, size, gid in ((leads & ~sink, "*", 170, LEADERS), (sink, "s", 60, SINKS)):
            draw_dots(
                ax, now[marked], s=size, marker=mark, c=colours[marked], edgecolors=INK, lw=0.7, zorder=5, gid=gid
            )
        flat = placed.path.reshape(-1, 2)
        low, high = flat.min(axis=0), flat.max(axis=0)
        air = 0.08 * (high - low) + 1e-9
        ax.set_xlim(low[0] - air[0], high[0] + 1.5 * air[0])
        ax.set_ylim(low[1] - air[1], high[1] + air[1])
        ax.set_xlabel(f"first principal axis ({placed.variance[0]:.0%} of the variance)")
        ax.set_ylabel(f"second principal axis ({placed.variance[1]:.0%})")
        ax.set_title(f"layer {int(run.layers[k])} of {int(run.layers[-1])}")
        order = [*np.flatnonzero(leads), *np.flatnonzero(~leads)][:_NAMED]
        label_words(
            ax,
            now[order],
            [names[i] for i in order],
            bold=int(leads.sum()),
            colours=[SOFT] * len(order),
        )
    return ax


def draw_who_attends(
    words: Sequence[str],
    follows: ArrayLike,
    weights: ArrayLike,
    *,
    sinks: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Axes with one head of a transformer: a line from each token to the token that it attends to most.

    Parameters
    ----------
    words
        One word per token, ``model.tokenise(text).words``.
    follows
        Token that each token attends to, shape (tokens,); -1 for none.
    weights
        Weight of that token, shape (tokens,); lines are as strong as their weights.
    sinks
        True for tokens that are drawn as sinks, in grey, shape (tokens,).
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    count = len(words)
    names = _names(words, count)
    attended = _targets("follows", follows, count)
    strength = _numbers("weights", weights, count)
    heads = Targets.of(attended, _flags("sinks", sinks, count))
    listening = np.flatnonzero(attended >= 0)
    with styled():
        ax = axes_or_new(ax, 5.0, max(2.4, 0.2 * count + 0.6))
        lines = [[(0.0, i), (1.0, attended[i])] for i in listening]
        alphas = 0.15 + 0.85 * strength[listening]
        colours = np.column_stack([colours_of(heads.ranks[listening]), alphas])
        ax.add_collection(LineCollection(lines, colors=colours, linewidths=0.8 + 1.8 * strength[listening], gid=ARROWS))
        leads, sink = heads.leads, heads.sinks
        for i, name in enumerate(names):
            ax.annotate(name, (0, i), (-5, 0), textcoords="offset points", ha="right", va="center", **_PLAIN)
            style = {**_PLAIN, "color": INK if leads[i] else NOBODY, "fontweight": "bold" if leads[i] else "normal"}
            ax.annotate(name, (1, i), (9, 0), textcoords="offset points", ha="left", va="center", **style)
        for marked, mark, gid in ((leads & ~sink, "*", LEADERS), (leads & sink, "s", SINKS)):
            at = np.flatnonzero(marked)
            ax.scatter(
                np.ones(len(at)), at, s=90 if mark == "*" else 34, marker=mark, c=colours_of(heads.own[at]),
                edgecolors=INK, linewidths=0.6, zorder=4, gid=gid,
            )  # fmt: skip
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(count - 0.5, -0.5)
        ax.set_axis_off()
        ax.set_title(f"attends to: mean weight {strength.mean():.2f}", loc="left")
    return ax


_PLAIN: dict[str, Any] = {"fontsize": 8, "color": SOFT, "parse_math": False}


def draw_heads(heads: pandas.DataFrame, column: str = "tau", *, ax: Axes | None = None) -> Axes:
    """Axes with a heat map of one figure of every head, layers downwards; hard, idle and sink heads are marked.

    Parameters
    ----------
    heads
        Table with the columns ``layer``, ``head`` and ``column``, for example ``report.heads``; several rows of one
        head, as for several texts, are averaged. Letters mark the values of a column ``verdict`` where there is one.
    column
        Column of numbers to draw.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    if not isinstance(heads, pandas.DataFrame):
        raise InputError("heads", type(heads).__name__, "must be a table", "pass report.heads")
    numeric = [str(name) for name in heads.columns if pandas.api.types.is_numeric_dtype(heads[name])]
    for name in ("layer", "head", column):
        if name not in numeric:
            have = ", ".join(one for one in numeric if one not in ("layer", "head"))
            raise InputError("column", shown(name), "is not a column of numbers of the table", f"choose among {have}")
    if heads.empty:
        raise InputError("heads", "an empty table", "must have at least one head", "pass report.heads")
    table = heads.groupby(["layer", "head"])[column].mean().unstack("head")
    with styled():
        ax = axes_or_new(ax, max(4.0, 0.42 * table.shape[1] + 1.8), max(2.2, 0.3 * table.shape[0] + 1.1))
        values = table.to_numpy(dtype=np.float64)
        image = ax.imshow(values, cmap="viridis", aspect="auto", gid=column)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
        bar.outline.set_visible(False)
        bar.ax.tick_params(color=LINE, labelcolor=SOFT, labelsize=8)
        across, down = (range(0, size, 1 + size // 24) for size in reversed(table.shape))
        ax.set_xticks(across, [str(table.columns[k]) for k in across])
        ax.set_yticks(down, [str(table.index[k]) for k in down])
        ax.set_xlabel("head")
        ax.set_ylabel("layer")
        ax.spines[:].set_visible(False)
        marked = _mark_verdicts(ax, heads, table, values)
        ax.set_title(column.replace("_", " ") + (f"  ({marked})" if marked else ""), loc="left")
    return ax


def _mark_verdicts(ax: Axes, heads: pandas.DataFrame, table: pandas.DataFrame, values: np.ndarray) -> str:
    """Write the letter of each verdict; the key to the letters is returned."""
    if "verdict" not in heads.columns:
        return ""
    finite = values[np.isfinite(values)]
    middle = 0.5 * (finite.min() + finite.max()) if finite.size else 0.0
    found = set()
    rows, places = ({one: k for k, one in enumerate(index)} for index in (table.index, table.columns))
    each = heads.drop_duplicates(["layer", "head"])
    for layer, head, verdict in zip(each["layer"], each["head"], each["verdict"], strict=True):
        if verdict in _VERDICTS:
            found.add(str(verdict))
            row, place = rows[layer], places[head]
            dark = values[row, place] < middle
            ax.text(
                place, row, _VERDICTS[verdict], ha="center", va="center", fontsize=9, fontweight="bold",
                color="white" if dark else INK, gid=MARKS,
            )  # fmt: skip
    return ", ".join(f"{letter}: {verdict}" for verdict, letter in _VERDICTS.items() if verdict in found)


def draw_depth(
    clusters: Mapping[str, Mapping[int, float]], *, trained: int | None = None, ax: Axes | None = None
) -> Axes:
    """Axes with the number of clusters against depth, one line per run, on logarithmic scales.

    Parameters
    ----------
    clusters
        Number of clusters by depth, for each label, for example ``{"with feed-forward": {0: 62, 12: 58, 48: 40}}``.
    trained
        Depth to which the model was trained, drawn as a line.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    if (
        not isinstance(clusters, Mapping)
        or not clusters
        or not all(isinstance(one, Mapping) for one in clusters.values())
    ):
        remedy = 'pass {"with feed-forward": {0: 62, 12: 58}}'
        raise InputError("clusters", shown(clusters), "must be numbers of clusters by depth, for each label", remedy)
    with styled():
        ax = axes_or_new(ax, 6.4, 4.0)
        style_axes(ax)
        rule_lines(ax)
        for k, (label, found) in enumerate(clusters.items()):
            depths = sorted(found)
            counts = [float(found[depth]) for depth in depths]
            if not depths or min(depths) < 0 or not all(math.isfinite(one) and one > 0 for one in counts):
                problem = "must have depths from 0 on and positive numbers of clusters"
                raise InputError("clusters", f"{label!r}: {shown(found)}", problem, "pass {0: 62, 12: 58}")
            ax.plot(depths, counts, marker="o", ms=4, lw=1.6, color=PALETTE[k % len(PALETTE)], label=label)
        if trained is not None:
            ax.axvline(trained, color=NOBODY, lw=1.2, ls=(0, (5, 3)), zorder=0)
            ax.annotate("trained depth", (trained, 1), (4, -3), xycoords=("data", "axes fraction"), va="top",
                        textcoords="offset points", color=SOFT, fontsize=8)  # fmt: skip
        ax.set_xscale("symlog", linthresh=1)
        ax.set_yscale("log")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.yaxis.set_minor_formatter(lambda _, __: "")
        ax.set_xlim(left=-0.2)
        ax.set_xlabel("depth (layers)")
        ax.set_ylabel("clusters")
        if len(clusters) > 1:
            ax.legend()
    return ax


def _tokens(run: object) -> np.ndarray:
    if not isinstance(run, Trajectory):
        remedy = "pass hm.simulate(model.tokens(text), model.layers)"
        raise InputError("run", type(run).__name__, "must be a trajectory", remedy)
    return np.asarray(run.tokens, dtype=np.float64)


def _names(words: Sequence[str], count: int) -> list[str]:
    names = [str(word) for word in words]
    if isinstance(words, str) or len(names) != count or count == 0:
        remedy = "pass model.tokenise(text).words"
        raise InputError("words", shown(words), f"must be one word per token, {count}", remedy)
    return names


def _targets(argument: str, given: ArrayLike, count: int) -> np.ndarray:
    found = np.asarray(given)
    if found.shape != (count,) or found.dtype.kind not in "iu" or found.min() < -1 or found.max() >= count:
        problem = f"must be the number of a token, from 0 to {count - 1}, for each of {count} tokens"
        remedy = "pass hm.models.attention_targets(model, text).targets[layer, head]"
        raise InputError(argument, shown(given), problem, remedy)
    return found.astype(np.int64)


def _flags(argument: str, given: ArrayLike | None, count: int) -> np.ndarray:
    found = np.zeros(count, dtype=bool) if given is None else np.asarray(given)
    if found.shape != (count,) or found.dtype != bool:
        raise InputError(argument, shown(given), f"must be True or False for each of {count} tokens", "leave it out")
    return found


def _numbers(argument: str, given: ArrayLike, count: int) -> np.ndarray:
    found = np.asarray(given, dtype=np.float64)
    if found.shape != (count,) or not ((found >= 0) & (found <= 1 + 1e-6)).all():
        problem = f"must be a weight from 0 to 1 for each of {count} tokens"
        raise InputError(
            argument, shown(given), problem, "pass hm.models.attention_targets(model, text).weights[layer, head]"
        )
    return np.minimum(found, 1.0)
