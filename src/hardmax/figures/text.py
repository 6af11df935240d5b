"""Pictures of words: one document's words moving to their leaders, the map of all words, and who leads how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator

from ..text.explaining.corpus_statistics import Survey
from ..text.explaining.explanation import Explanation
from ._style import INK, LINE, NOBODY, PALETTE, SOFT, axes_or_new, colour_of, colours_of, styled
from ._view import dress
from .word_plane import word_map, words_in_plane

BOUNDARY, LEADERS, TRAILS, MEAN, BARS = "boundary", "leaders", "trails", "mean", "bars"
"""Names (gid) by which the artists can be found again."""
_FOLLOWERS_NAMED = 12
_MOST_DOTS = 20_000


def draw_explanation(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """A document's words on their way to their leaders (stars), with the boundary and the mean that is classified."""
    placed = words_in_plane(explanation)
    path, ranks, follower = placed.path, placed.ranks, ~placed.leads
    with styled():
        ax = axes_or_new(ax, 6.8, 4.6)
        dress(ax)
        colours = colours_of(ranks)
        ax.add_collection(
            LineCollection(list(path.transpose(1, 0, 2)), colors=colours, linewidths=0.7, alpha=0.35, gid=TRAILS)
        )
        sizes = 10 + 160 * explanation.shares / explanation.shares.max()
        _dots(ax, path[0][follower], s=sizes[follower], c=colours[follower], alpha=0.8, linewidths=0, zorder=3)
        own = np.flatnonzero(~follower)
        _dots(
            ax, path[0][own], s=240, marker="*", c=colours[own], edgecolors=INK, linewidths=0.8, zorder=5, gid=LEADERS
        )
        _dots(ax, placed.mean[-1:], s=70, marker="D", c="white", edgecolors=INK, linewidths=1.4, zorder=6, gid=MEAN)
        _boundary(ax, placed.boundary, explanation.classes)
        ax.autoscale_view()
        ax.margins(0.12)
        heavy = [k for k in np.argsort(-explanation.shares, kind="stable") if follower[k]][:_FOLLOWERS_NAMED]
        named = [*own, *heavy]
        _label(
            ax,
            path[0][named],
            [explanation.words[k] for k in named],
            bold=len(own),
            colours=[colour_of(int(ranks[k])) for k in named],
        )
        title = explanation.sentence() if len(explanation.sentence()) < 70 else f"{explanation.prediction}"
        ax.set_title(title, parse_math=False)  # names of classes are not formulas, whatever they hold
        _name_axes(ax, explanation.path.shape[2], explanation.classes, explanation.output)
        _note(ax, "star: leader  ·  dot: where a word starts, larger with its share  ·  diamond: the mean that is read")
    return ax


def _dots(ax: Axes, points: np.ndarray, **style: Any) -> None:
    ax.scatter(points[:, 0], points[:, 1], **style)


def _boundary(ax: Axes, place: float | None, classes: np.ndarray) -> None:
    if place is not None:
        ax.axvline(place, color=INK, lw=1.1, ls=(0, (5, 3)), gid=BOUNDARY, zorder=1)
        _sides(ax, place, classes)


def _sides(ax: Axes, place: float, classes: np.ndarray) -> None:
    for text, align, shift in ((f"← {classes[0]}", "right", -6), (f"{classes[1]} →", "left", 6)):
        ax.annotate(
            text,
            (place, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(shift, -4),
            textcoords="offset points",
            ha=align,
            va="top",
            color=SOFT,
            fontsize=9,
            parse_math=False,
        )


def draw_word_map(survey: Survey, ax: Axes | None = None, *, top: int = 30) -> Axes:
    """Where all words start, the boundary of the decoder, and the words that lead most documents by name."""
    found = word_map(survey, top=top)
    placed, seen, leaders, total = found.positions, found.seen, found.leaders, found.leads
    with styled():
        ax = axes_or_new(ax, 7.2, 5.2)
        dress(ax)
        dots = seen[np.unique(np.linspace(0, len(seen) - 1, _MOST_DOTS).astype(int))]
        _dots(ax, placed[dots], s=3, c=NOBODY, alpha=0.35, linewidths=0, rasterized=True)
        if len(survey.classes) == 2:
            colour: list[Any] = [
                PALETTE[0] if value > 0 else PALETTE[4] for value in survey.positions[leaders] @ survey.decoder[0]
            ]
        else:
            colour = [colour_of(int(k)) for k in survey.leading[:, leaders].argmax(axis=0)]
        _dots(
            ax,
            placed[leaders],
            s=30 + 220 * total[leaders] / total.max(),
            marker="*",
            c=colour,
            edgecolors="white",
            linewidths=0.4,
            zorder=4,
            gid=LEADERS,
        )
        _boundary(ax, found.boundary, survey.classes)
        ax.margins(0.14, 0.1)
        if len(survey.classes) > 2:
            _class_key(ax, survey.classes)
        _label(ax, placed[leaders], [survey.words[k] for k in leaders], bold=0, colours=colour)
        ax.set_title(f"{len(seen):,} words, and the {len(leaders)} that lead most documents")
        _name_axes(ax, survey.positions.shape[1], survey.classes, 0)
    return ax


def _class_key(ax: Axes, classes: np.ndarray) -> None:
    """Which colour leads documents of which class, for as many classes as there are colours."""
    for k, label in enumerate(classes[: len(PALETTE)]):
        ax.scatter([], [], marker="*", s=60, color=colour_of(k), label=str(label).replace("$", r"\$"))
    more = f", of {len(classes):,}" if len(classes) > len(PALETTE) else ""
    ax.legend(title=f"leads most documents of{more}", loc="lower right", fontsize=8, title_fontsize=8, alignment="left")


def draw_leader_histogram(survey: Survey, ax: Axes | None = None, *, top: int = 25) -> Axes:
    """How many documents the most frequent leaders lead, by the class that those documents are given."""
    total = survey.leading.sum(axis=0)
    order = np.argsort(-total, kind="stable")[:top]
    order = order[total[order] > 0]
    with styled():
        ax = axes_or_new(ax, 6.4, 0.9 + 0.24 * max(len(order), 4))
        dress(ax)
        left = np.zeros(len(order))
        for k, label in enumerate(survey.classes):
            colour = (PALETTE[4], PALETTE[0])[k] if len(survey.classes) == 2 else colour_of(k)
            ax.barh(
                np.arange(len(order)),
                survey.leading[k, order],
                left=left,
                color=colour,
                height=0.74,
                label=str(label),
                gid=BARS,
            )
            left += survey.leading[k, order]
        ax.set_yticks(np.arange(len(order)), [survey.words[k] for k in order])
        ax.invert_yaxis()
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(f"documents led, of {len(survey.predicted):,}")
        ax.legend(title="class given")
        ax.grid(axis="x")
    return ax


def draw_leader_counts(survey: Survey, ax: Axes | None = None) -> Axes:
    """How many leaders documents have, as shares of the documents of each class given."""
    with styled():
        ax = axes_or_new(ax, 5.4, 3.4)
        dress(ax)
        most = int(survey.leaders.max(initial=1))
        width = 0.8 / len(survey.classes)
        for k, label in enumerate(survey.classes):
            some = survey.leaders[survey.predicted == k]
            if len(some) == 0:
                continue
            share = 100 * np.bincount(some, minlength=most + 1) / len(some)
            colour = (PALETTE[4], PALETTE[0])[k] if len(survey.classes) == 2 else colour_of(k)
            places = np.arange(most + 1) + (k - (len(survey.classes) - 1) / 2) * width
            ax.bar(places, share, width=width, color=colour, label=f"{label} (mean {some.mean():.2f})", gid=BARS)
        ax.set_xlabel("leaders of a document")
        ax.set_ylabel("share of documents, %")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend(title="class given")
        ax.grid(axis="y")
    return ax


def _label(
    ax: Axes,
    places: np.ndarray,
    names: Sequence[str],
    *,
    bold: int,
    colours: Sequence[Any],
) -> None:
    """Name points in order of importance, leaving out names that would lie on earlier ones."""
    figure = ax.get_figure(root=True)
    if figure is None:
        return
    figure.draw_without_rendering()  # the layout decides where the points are
    points = ax.transData.transform(places) * 72 / figure.dpi
    edge = ax.bbox.x0 * 72 / figure.dpi  # names do not lie on the numbers of the axis
    # The marks themselves are in the way too.
    boxes = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    for k, (x, y) in enumerate(points):
        width, height = 5.0 * len(names[k]) + 4, 10.0
        for side, rise in ((1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            left = x + 6 if side > 0 else x - 6 - width
            if left < edge:
                continue
            box = (left, y - height / 2 + rise * height, left + width, y + height / 2 + rise * height)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
                boxes.append(box)
                ax.annotate(
                    names[k],
                    places[k],
                    xytext=((10 if k < bold else 7) * side, rise * height),  # the marks of leaders are larger
                    textcoords="offset points",
                    ha="left" if side > 0 else "right",
                    va="center",
                    fontsize=9 if k < bold else 8,
                    fontweight="bold" if k < bold else "normal",
                    color=INK if k < bold else _dark(colours[k]),
                    zorder=7,
                    parse_math=False,
                )
                break


def _dark(colour: Any) -> tuple[float, float, float]:
    red, green, blue = to_rgb(colour)
    return (0.6 * red, 0.6 * green, 0.6 * blue)


def _name_axes(ax: Axes, d: int, classes: np.ndarray, shown: int) -> None:
    along = "along the decoder" if len(classes) == 2 else f"along the decoder of {classes[shown]}"
    ax.set_xlabel(along, parse_math=False)
    if d == 1:
        ax.set_yticks([])
        ax.set_ylabel("")
    else:
        ax.set_ylabel("across it" if d == 2 else "main direction across it")
        ax.axhline(0, color=LINE, lw=0.6, zorder=0)


def _note(ax: Axes, words: str) -> None:
    ax.annotate(
        words, (0, 0), xycoords="axes fraction", xytext=(0, -42), textcoords="offset points", color=SOFT, fontsize=8
    )
