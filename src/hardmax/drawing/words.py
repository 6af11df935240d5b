"""The words of one document in the plane of the decoder: positions from plain arrays, and the figure.

The horizontal axis is always the direction that the decoder reads, so the boundary between two classes is a vertical
line; the vertical axis is the direction across it in which the words differ most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from ..errors import InputError
from .style import INK, LINE, SOFT, axes_or_new, colour_of, colours_of, style_axes, styled

BOUNDARY, LEADERS, TRAILS, MEAN = "boundary", "leaders", "trails", "mean"
"""Names (gid) by which the artists can be found again."""
_FOLLOWERS_NAMED = 12  # more names than this overlap in a figure of the default size
# Multiples of the golden ratio, modulo one, spread evenly for any number of words.
_GOLDEN = (np.sqrt(5) - 1) / 2


class LeaderWord(Protocol):
    """A leader of a document."""

    @property
    def word(self) -> str: ...


class ExplainedDocument(Protocol):
    """The fields of :class:`hardmax.Explanation` that are drawn; see there."""

    @property
    def classes(self) -> np.ndarray: ...
    @property
    def bias(self) -> np.ndarray: ...
    @property
    def words(self) -> tuple[str, ...]: ...
    @property
    def shares(self) -> np.ndarray: ...
    @property
    def follows(self) -> np.ndarray: ...
    @property
    def leaders(self) -> Sequence[LeaderWord]: ...
    @property
    def path(self) -> np.ndarray: ...
    @property
    def decoder(self) -> np.ndarray: ...
    @property
    def known(self) -> bool: ...
    @property
    def prediction(self) -> Any: ...
    @property
    def output(self) -> int: ...
    def sentence(self) -> str: ...


@dataclass(frozen=True)
class WordsInPlane:
    """The words of one document at every layer, in two coordinates."""

    path: np.ndarray
    """Positions of the words at every layer, shape (layers + 1, words, 2)."""
    mean: np.ndarray
    """Mean of the words weighted by their shares, at every layer, shape (layers + 1, 2)."""
    ranks: np.ndarray
    """Rank of the leader that each word follows, in the order of the explanation's leaders, shape (words,)."""
    leads: np.ndarray
    """True for words that are leaders, shape (words,)."""
    boundary: float | None
    """Horizontal position of the boundary; None for more than two classes, whose boundary is not a line here."""


def words_in_plane(explanation: ExplainedDocument) -> WordsInPlane:
    """Positions of the words of a document in the plane of the decoder, from any number of coordinates."""
    if not explanation.known:
        raise InputError("explanation", "a text without a known word", "must hold words", "explain another text")
    dimension = explanation.path.shape[2]
    reading = explanation.decoder[explanation.output]
    path = spread(explanation.path @ decoder_plane(explanation.path[0], reading), dimension)
    mean = np.einsum("w,lwc->lc", explanation.shares, path)
    if dimension == 1:
        mean[:, 1] = 0.0
    rank = {leader.word: place for place, leader in enumerate(explanation.leaders)}
    heads = explanation.follows
    return WordsInPlane(
        path=path,
        mean=mean,
        ranks=np.array([rank[explanation.words[head]] for head in heads]),
        leads=heads == np.arange(len(heads)),
        boundary=boundary_position(reading, explanation.bias, explanation.classes),
    )


def decoder_plane(points: np.ndarray, reading: np.ndarray) -> np.ndarray:
    """Two orthonormal directions as columns: that of the decoder, and the main one of ``points`` across it."""
    size = np.linalg.norm(reading)
    along = reading / size if size > 0 else np.eye(len(reading))[0]
    if len(reading) == 1:
        return np.array([[1.0, 0.0]])
    across = points - np.outer(points @ along, along)
    second = np.linalg.svd(across, full_matrices=False)[2][0]
    second -= (second @ along) * along
    if np.linalg.norm(second) < 1e-6:  # all words on one line: any orthogonal direction serves
        second = np.linalg.svd(along[None])[2][-1]
    return np.column_stack([along, second / np.linalg.norm(second)])


def spread(placed: np.ndarray, dimension: int) -> np.ndarray:
    """``placed``, with heights that keep words of one coordinate apart; these heights have no other meaning."""
    if dimension == 1:
        placed = placed.copy()
        placed[..., 1] = ((np.arange(placed.shape[-2]) * _GOLDEN) % 1.0) - 0.5
    return placed


def boundary_position(reading: np.ndarray, bias: np.ndarray, classes: np.ndarray) -> float | None:
    """Horizontal position of the boundary between two classes; None where there is no such line."""
    size = float(np.linalg.norm(reading))
    if size == 0 or len(classes) > 2:
        return None  # among several classes the boundary depends on two logits at once
    return -float(bias[0]) / size


def draw_explanation(explanation: ExplainedDocument, ax: Axes | None = None) -> Axes:
    """Axes with the words of a document on their way to their leaders.

    Stars are leaders, the dashed line is the boundary between the classes, the diamond is the mean that is classified.

    Parameters
    ----------
    explanation
        What :meth:`hardmax.LeaderClassifier.explain` returned.
    ax
        Axes to draw on; new ones when left out.

    Returns
    -------
    Axes
        The axes that were drawn on.
    """
    placed = words_in_plane(explanation)
    path, ranks, follower = placed.path, placed.ranks, ~placed.leads
    with styled():
        ax = axes_or_new(ax, 6.8, 4.6)
        style_axes(ax)
        colours = colours_of(ranks)
        ax.add_collection(
            LineCollection(list(path.transpose(1, 0, 2)), colors=colours, linewidths=0.7, alpha=0.35, gid=TRAILS)
        )
        sizes = 10 + 160 * explanation.shares / explanation.shares.max()
        draw_dots(ax, path[0][follower], s=sizes[follower], c=colours[follower], alpha=0.8, linewidths=0, zorder=3)
        own = np.flatnonzero(~follower)
        draw_dots(
            ax, path[0][own], s=240, marker="*", c=colours[own], edgecolors=INK, linewidths=0.8, zorder=5, gid=LEADERS
        )
        draw_dots(ax, placed.mean[-1:], s=70, marker="D", c="white", edgecolors=INK, linewidths=1.4, zorder=6, gid=MEAN)
        draw_boundary(ax, placed.boundary, explanation.classes)
        ax.autoscale_view()
        ax.margins(0.12)
        heavy = [k for k in np.argsort(-explanation.shares, kind="stable") if follower[k]][:_FOLLOWERS_NAMED]
        named = [*own, *heavy]
        label_words(
            ax,
            path[0][named],
            [explanation.words[k] for k in named],
            bold=len(own),
            colours=[colour_of(int(ranks[k])) for k in named],
        )
        title = explanation.sentence() if len(explanation.sentence()) < 70 else f"{explanation.prediction}"
        ax.set_title(title, parse_math=False)  # names of classes are not formulas, whatever they hold
        name_axes(ax, explanation.path.shape[2], explanation.classes, explanation.output)
        ax.annotate(
            "star: leader  ·  dot: start of a word, larger with its share  ·  diamond: mean that is classified",
            (0, 0),
            xycoords="axes fraction",
            xytext=(0, -42),
            textcoords="offset points",
            color=SOFT,
            fontsize=8,
        )
    return ax


def draw_dots(ax: Axes, points: np.ndarray, **style: Any) -> None:
    """Scatter points of shape (point, 2)."""
    ax.scatter(points[:, 0], points[:, 1], **style)


def draw_boundary(ax: Axes, place: float | None, classes: np.ndarray) -> None:
    """The boundary between two classes, with the name of each class on its side; nothing where ``place`` is None."""
    if place is None:
        return
    ax.axvline(place, color=INK, lw=1.1, ls=(0, (5, 3)), gid=BOUNDARY, zorder=1)
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


def label_words(
    ax: Axes,
    places: np.ndarray,
    names: Sequence[str],
    *,
    bold: int,
    colours: Sequence[Any],
) -> None:
    """Name points in order of importance, leaving out names that would overlap earlier ones; the first are bold."""
    figure = ax.get_figure(root=True)
    if figure is None:
        return
    figure.draw_without_rendering()  # the layout decides where the points are
    points = ax.transData.transform(places) * 72 / figure.dpi
    edge = ax.bbox.x0 * 72 / figure.dpi  # names do not lie on the numbers of the axis
    # Names do not cover marks either.
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
                    color=INK if k < bold else dark(colours[k]),
                    zorder=7,
                    parse_math=False,
                )
                break


def dark(colour: Any) -> tuple[float, float, float]:
    """Colour of the name beside a point of this colour."""
    red, green, blue = to_rgb(colour)
    return (0.6 * red, 0.6 * green, 0.6 * blue)


def name_axes(ax: Axes, d: int, classes: np.ndarray, shown: int) -> None:
    """Label the axes of the plane of words of ``d`` coordinates; ``shown`` is the class whose logit is drawn."""
    along = "along the decoder" if len(classes) == 2 else f"along the decoder of {classes[shown]}"
    ax.set_xlabel(along, parse_math=False)
    if d == 1:
        ax.set_yticks([])
        ax.set_ylabel("")
    else:
        ax.set_ylabel("across it" if d == 2 else "main direction across it")
        ax.axhline(0, color=LINE, lw=0.6, zorder=0)
