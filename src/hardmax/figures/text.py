"""Figures of words over many documents: the map of all words, and how often and how many words lead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..drawing.style import NOBODY, PALETTE, axes_or_new, colour_of, style_axes, styled
from ..drawing.words import (
    LEADERS,
    boundary_position,
    decoder_plane,
    draw_boundary,
    draw_dots,
    label_words,
    name_axes,
    spread,
)
from ..errors import InputError
from ..text.explaining.corpus_statistics import Survey

BARS = "bars"
"""Name (gid) by which the bars can be found again."""
_MOST_DOTS = 20_000
"""Words drawn as dots; more hide each other."""


@dataclass(frozen=True)
class WordMap:
    """Starting positions of the words of many documents, in two coordinates."""

    positions: np.ndarray
    """Position of every word of the model, shape (words, 2)."""
    seen: np.ndarray
    """Indices of the words that occur in the documents."""
    leaders: np.ndarray
    """Indices of the words that lead most documents, most frequent first."""
    leads: np.ndarray
    """Number of documents that each word leads, shape (words,)."""
    boundary: float | None
    """Horizontal position of the boundary between two classes; None for more classes."""


def word_map(survey: Survey, *, top: int = 30) -> WordMap:
    """Positions of all words of a model in the plane of the decoder, and the ``top`` leaders of the survey."""
    seen = np.flatnonzero(survey.present > 0)
    if len(seen) == 0:
        raise InputError("survey", "no known words", "must hold words", "survey other documents")
    reading = survey.decoder[0]
    placed = spread(survey.positions @ decoder_plane(survey.positions[seen], reading), survey.positions.shape[1])
    total = survey.leading.sum(axis=0)
    leaders = np.argsort(-total, kind="stable")[:top]
    return WordMap(
        positions=placed,
        seen=seen,
        leaders=leaders[total[leaders] > 0],
        leads=total,
        boundary=boundary_position(reading, survey.bias, survey.classes),
    )


def draw_word_map(survey: Survey, ax: Axes | None = None, *, top: int = 30) -> Axes:
    """Starting positions of all words, the boundary of the decoder, and the words that lead most documents by name.

    Parameters
    ----------
    survey
        What :func:`hardmax.text.survey` returned.
    ax
        Axes to draw on; new ones when left out.
    top
        Number of words with a name.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    found = word_map(survey, top=top)
    placed, seen, leaders, total = found.positions, found.seen, found.leaders, found.leads
    with styled():
        ax = axes_or_new(ax, 7.2, 5.2)
        style_axes(ax)
        dots = seen[np.unique(np.linspace(0, len(seen) - 1, _MOST_DOTS).astype(int))]
        draw_dots(ax, placed[dots], s=3, c=NOBODY, alpha=0.35, linewidths=0, rasterized=True)
        if len(survey.classes) == 2:
            colour: list[Any] = [
                PALETTE[0] if value > 0 else PALETTE[4] for value in survey.positions[leaders] @ survey.decoder[0]
            ]
        else:
            colour = [colour_of(int(k)) for k in survey.leading[:, leaders].argmax(axis=0)]
        draw_dots(
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
        draw_boundary(ax, found.boundary, survey.classes)
        ax.margins(0.14, 0.1)
        if len(survey.classes) > 2:
            _class_key(ax, survey.classes)
        label_words(ax, placed[leaders], [survey.words[k] for k in leaders], bold=0, colours=colour)
        ax.set_title(f"{len(seen):,} words, and the {len(leaders)} that lead most documents")
        name_axes(ax, survey.positions.shape[1], survey.classes, 0)
    return ax


def _class_key(ax: Axes, classes: np.ndarray) -> None:
    """Legend of the colours of the classes, for as many classes as there are colours."""
    for k, label in enumerate(classes[: len(PALETTE)]):
        ax.scatter([], [], marker="*", s=60, color=colour_of(k), label=str(label).replace("$", r"\$"))
    more = f", of {len(classes):,}" if len(classes) > len(PALETTE) else ""
    ax.legend(title=f"leads most documents of{more}", loc="lower right", fontsize=8, title_fontsize=8, alignment="left")


def draw_leader_histogram(survey: Survey, ax: Axes | None = None, *, top: int = 25) -> Axes:
    """Bars of the number of documents that the most frequent leaders lead, by the class predicted for the documents.

    Parameters
    ----------
    survey
        What :func:`hardmax.text.survey` returned.
    ax
        Axes to draw on; new ones when left out.
    top
        Number of bars.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    total = survey.leading.sum(axis=0)
    order = np.argsort(-total, kind="stable")[:top]
    order = order[total[order] > 0]
    with styled():
        ax = axes_or_new(ax, 6.4, 0.9 + 0.24 * max(len(order), 4))
        style_axes(ax)
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
        ax.legend(title="predicted class")
        ax.grid(axis="x")
    return ax


def draw_leader_counts(survey: Survey, ax: Axes | None = None) -> Axes:
    """Bars of the number of leaders per document, as shares of the documents of each predicted class.

    Parameters
    ----------
    survey
        What :func:`hardmax.text.survey` returned.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    with styled():
        ax = axes_or_new(ax, 5.4, 3.4)
        style_axes(ax)
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
        ax.legend(title="predicted class")
        ax.grid(axis="y")
    return ax
