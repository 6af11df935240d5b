"""Plots of words: those of one text through the layers, and the map of all words of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, CustomJS, HoverTool, LabelSet, Range1d, Span

from ...drawing.words import WordsInPlane, words_in_plane
from ...figures.text import word_map
from ...text.explaining.corpus_statistics import Survey
from ...text.explaining.explanation import Explanation
from ..layout import readable
from ..look import FONT, SIZE, Light, on_first_screen
from ..stage import empty_frames, path_frames, register_stage
from .view import class_colours, colours_of_contributions

if TYPE_CHECKING:
    from ..session import Session


# Labels that can be read, and dots that a browser draws without delay.
_NAMED = 30
_MOST_DOTS = 4000
_PIXELS = (340.0, 300.0)
"""About the size of a plot on a laptop; on wider screens names have more room than they need."""
_AROUND = 520
"""Pixels of the first screen around the plot: the header, the heading of the page, and the player."""

_NAME_STYLE: dict[str, Any] = {
    "x_offset": 12,
    "text_baseline": "middle",
    "text_font_size": "12px",
    "text_font": value(FONT),
}


def _plane(session: Session, height: int, name: str) -> tuple[Any, Span]:
    """A plot for words, and the boundary between two classes in it."""
    plot = session.figure(
        height=height,
        x_range=Range1d(-1, 1),
        y_range=Range1d(-1, 1),
        x_axis_label="along the decoder",
        y_axis_label="across it",
        name=name,
    )
    boundary = Span(location=0, dimension="height", line_dash="dashed", line_width=1.5, visible=False)
    plot.add_layout(boundary)
    return plot, boundary


_ROOM_FOR_NAMES = (
    SIZE
    + """
const {x, word} = source.data;
if (x.length && width > 120) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  const taken = (name) => offset + 4 + pen.measureText(name).width, most = 0.6 * width;
  const fitted = (name) => {
    let kept = name.length;
    const cut = () => name.slice(0, kept).trimEnd() + (kept < name.length ? "…" : "");
    while (kept > 1 && taken(cut()) > most) { kept -= 1; }
    return cut();
  };
  const low = Math.min(...x);
  const ends = word.map((name, k) => low + (x[k] - low) * width / (width - (name ? taken(fitted(name)) : 0)));
  plot.x_range.setv({start: low, end: Math.max(...ends)});
  const shown = names.data.word.map(fitted);
  if (shown.some((name, k) => name !== names.data.shown[k])) {
    names.data.shown = shown;
    names.change.emit();
  }
}
"""
)
"""Sets the range of the first axis so that the names, to the right of their points, fit into the plot at any width; a
name that takes more than most of the width ends in an ellipsis."""


def _room_for_names(plot: Any, names: ColumnDataSource) -> ColumnDataSource:
    """A source of names and the largest first coordinates that they take; rows without a name are edges of the plot.

    ``names`` has the words that are written, in full, and in its column ``shown`` as far as they fit.
    """
    source = ColumnDataSource({"x": [], "word": []})
    font = f"{_NAME_STYLE['text_font_size']} {FONT}"
    code = CustomJS(
        args={"plot": plot, "source": source, "names": names, "font": font, "offset": _NAME_STYLE["x_offset"]},
        code=_ROOM_FOR_NAMES,
    )
    plot.js_on_change("inner_width", code)
    source.js_on_change("data", code)
    names.js_on_change("data", code)
    return source


_POINTED_AT = """
const rows = cb_data.index.indices;
if (window.hardmaxLinked) { window.hardmaxLinked.show(rows.length ? source.data.word[rows[0]] : null, true); }
"""


def _pointed_at(source: ColumnDataSource) -> CustomJS:
    """A callback that shows the word of a dot in all views (static/linked.js)."""
    return CustomJS(args={"source": source}, code=_POINTED_AT)


def _halo(plot: Any, name: str) -> Any:
    """Rings around the words that are pointed at, filled by static/linked.js."""
    source = ColumnDataSource({"x": [], "y": []}, name=name)
    return plot.scatter("x", "y", size=26, fill_alpha=0, line_width=2.5, source=source)


class WordPlane:
    """The words of one text at a layer, their paths, and the mean that is classified."""

    def __init__(self, session: Session) -> None:
        self._placed: WordsInPlane | None = None
        columns = ("x", "y", "token", "word", "colour", "size", "share", "leader")
        self._words = ColumnDataSource({name: [] for name in columns}, name="words")
        self._stars = ColumnDataSource({name: [] for name in ("x", "y", "token", "word", "colour")})
        self._names = ColumnDataSource({name: [] for name in ("x", "y", "token", "word", "shown")}, name="plane names")
        self._trails = ColumnDataSource({name: [] for name in ("xs", "ys", "colour")})
        self._mean = ColumnDataSource({"x": [], "y": [], "token": []})
        self._frames = empty_frames("word-frames")
        self.plot, self._boundary = _plane(session, 400, "word-plane")
        on_first_screen(self.plot, around=_AROUND)
        self._room = _room_for_names(self.plot, self._names)
        self.plot.multi_line(xs="xs", ys="ys", color="colour", alpha=0.4, line_width=1.2, source=self._trails)
        dots = self.plot.scatter("x", "y", size="size", color="colour", alpha=0.85, source=self._words)
        stars = self.plot.scatter(
            "x", "y", marker="star", size=22, fill_color="colour", line_width=1.2, source=self._stars
        )
        mean = self.plot.scatter("x", "y", marker="diamond", size=15, line_width=2, source=self._mean)
        halo = _halo(self.plot, "plane halo")
        # The words that are struck out: written by static/linked.js, drawn nowhere.
        self.struck = ColumnDataSource({"word": []}, name="struck")
        self.plot.scatter(x=0, y=0, source=self.struck, visible=False)
        # A glyph, because a LabelSet leaves letters behind when it gets fewer names.
        names = self.plot.text("x", "y", "shown", source=self._names, **_NAME_STYLE)
        self.plot.add_tools(
            HoverTool(
                renderers=[dots],
                tooltips=[("", "@word"), ("follows", "@leader"), ("share", "@share{0.0%}")],
                callback=_pointed_at(self._words),
            ),
            HoverTool(renderers=[stars], tooltips=[("", "@word"), ("", "leads")], callback=_pointed_at(self._stars)),
        )

        def repaint(light: Light) -> None:
            self._boundary.line_color = light.soft
            halo.glyph.line_color = light.ink
            stars.glyph.line_color = mean.glyph.line_color = light.ink
            mean.glyph.fill_color = light.card
            names.glyph.text_color = light.ink

        session.lighting.follow(repaint)
        parts = [self._words, self._stars, self._names, self._mean]
        models = {"plot": self.plot, "frames": self._frames, "trails": self._trails, "parts": parts}
        register_stage(self.plot, "points", models | {"names": self._names, "resting": [halo]})

    @property
    def layers(self) -> int:
        """The last layer that can be shown."""
        return 0 if self._placed is None else len(self._placed.path) - 1

    def show(self, explanation: Explanation, layer: int) -> None:
        """Draw the words of another text at this layer."""
        placed = self._placed = words_in_plane(explanation)
        given = np.array([leader.contribution[explanation.output] for leader in explanation.leaders])
        colours = colours_of_contributions(explanation, given[placed.ranks])  # a word has the colour of its leader
        leaders = np.flatnonzero(placed.leads)
        shares = explanation.shares
        self._heavy = np.argsort(-shares, kind="stable")
        named = [*leaders, *(k for k in self._heavy if not placed.leads[k])][:_NAMED]
        self._named = np.array(named, dtype=int)
        heads = [explanation.words[k] for k in explanation.follows]
        with np.errstate(all="ignore"):
            sizes = np.where(placed.leads, 0, 6 + 13 * np.sqrt(shares / shares.max()))
        self._trails.data = {"xs": [[]] * len(colours), "ys": [[]] * len(colours), "colour": colours}
        self._words.data = {
            "x": placed.path[0, :, 0],
            "y": placed.path[0, :, 1],
            "token": np.arange(len(colours)),
            "word": list(explanation.words),
            "colour": colours,
            "size": sizes,
            "share": shares,
            "leader": heads,
        }
        self._stars.data = {
            "x": placed.path[0, leaders, 0],
            "y": placed.path[0, leaders, 1],
            "token": leaders,
            "word": [explanation.words[k] for k in leaders],
            "colour": [colours[k] for k in leaders],
        }
        self._boundary.visible = placed.boundary is not None
        self._boundary.location = placed.boundary or 0.0
        # The ranges stay while the words move, so that the motion is visible.
        for axis, values in ((self.plot.x_range, placed.path[..., 0]), (self.plot.y_range, placed.path[..., 1])):
            low, high = float(values.min()), float(values.max())
            if axis is self.plot.x_range and placed.boundary is not None:
                low, high = min(low, placed.boundary), max(high, placed.boundary)
            air = 0.12 * (high - low) or 1.0
            axis.update(start=low - air, end=high + air)
        edges = [self.plot.x_range.start, self.plot.x_range.end]
        self._room.data = {
            "x": [*placed.path[:, self._named, 0].max(axis=0), *edges],
            "word": [*(explanation.words[k] for k in self._named), "", ""],
        }
        self.show_layer(layer)
        moved = np.concatenate([placed.path[..., :2], placed.mean[:, None, :2]], axis=1)  # the mean is the last one
        trailed = np.arange(len(colours))
        self._frames.data = path_frames(moved, min(layer, self.layers), chosen=trailed, tints=colours)

    def show_layer(self, layer: int) -> None:
        """Move the words to this layer."""
        if self._placed is None:
            return
        path = self._placed.path[: min(layer, self.layers) + 1]
        now = path[-1]
        self._words.data = {**self._words.data, "x": now[:, 0], "y": now[:, 1]}
        self._trails.data = {
            **self._trails.data,
            "xs": list(path[:, :, 0].T),
            "ys": list(path[:, :, 1].T),
        }
        mean = self._placed.mean[len(path) - 1]
        self._mean.data = {"x": [mean[0]], "y": [mean[1]], "token": [len(now)]}
        leads = self._stars.data["token"]
        self._stars.data = {**self._stars.data, "x": now[leads, 0], "y": now[leads, 1]}
        # A word that has reached its leader has no name of its own.
        view = self.plot.x_range, self.plot.y_range
        low, high = np.array([axis.start for axis in view]), np.array([axis.end for axis in view])
        words = [self._words.data["word"][k] for k in self._named]
        leading = len(leads)  # these come first
        shown = self._named[readable(now[self._named, :2], words, low, high, _PIXELS, dots=now[:, :2], leading=leading)]
        written = [self._words.data["word"][k] for k in shown]
        self._names.data = {"x": now[shown, 0], "y": now[shown, 1], "token": shown, "word": written, "shown": written}


class WordMap:
    """Starting positions of all words that occur, with the names of those that lead most documents."""

    def __init__(self, session: Session) -> None:
        self._dots = ColumnDataSource({name: [] for name in ("x", "y", "word")})
        columns = ("x", "y", "word", "colour", "size", "leads")
        self._stars = ColumnDataSource({name: [] for name in columns}, name="map")
        self._named = ColumnDataSource({name: [] for name in ("x", "y", "word", "shown")})
        self.plot, self._boundary = _plane(session, 440, "word-map")
        self._room = _room_for_names(self.plot, self._named)
        dots = self.plot.scatter("x", "y", size=4, alpha=0.45, line_color=None, source=self._dots)
        stars = self.plot.scatter(
            "x", "y", marker="star", size="size", fill_color="colour", line_width=0.6, source=self._stars
        )
        # The words of the text on the map: drawn when they are pointed at.
        self._own = ColumnDataSource({name: [] for name in ("x", "y", "word")}, name="own words")
        self.plot.scatter("x", "y", source=self._own, visible=False)
        self._map: tuple[dict[str, int], np.ndarray] = ({}, np.empty((0, 2)))
        halo = _halo(self.plot, "map halo")
        names = LabelSet(x="x", y="y", text="shown", source=self._named, **_NAME_STYLE)
        self.plot.add_layout(names)
        self.plot.add_tools(
            HoverTool(renderers=[dots], tooltips=[("", "@word")]),
            HoverTool(renderers=[stars], tooltips=[("", "@word"), ("leads", "@leads documents")]),
        )

        def repaint(light: Light) -> None:
            self._boundary.line_color = light.soft
            dots.glyph.fill_color, halo.glyph.line_color = light.grey, light.ink
            stars.glyph.line_color = light.card
            names.text_color = light.ink

        session.lighting.follow(repaint)

    def show_text(self, explanation: Explanation | None) -> None:
        """Find the words of another text on the map."""
        numbers, positions = self._map
        words = [] if explanation is None else [word for word in explanation.words if word in numbers]
        spots = positions[[numbers[word] for word in words]]
        self._own.data = {"x": spots[:, 0], "y": spots[:, 1], "word": words}

    def show(self, survey: Survey) -> None:
        """Draw the words of another survey."""
        found = word_map(survey, top=24)
        self._map = ({word: k for k, word in enumerate(survey.words)}, found.positions)
        some = found.seen[np.unique(np.linspace(0, len(found.seen) - 1, _MOST_DOTS).astype(int))]
        self._dots.data = {
            "x": found.positions[some, 0],
            "y": found.positions[some, 1],
            "word": [survey.words[k] for k in some],
        }
        own = found.leaders
        logits = survey.positions[own] @ survey.decoder.T  # of each word alone, at its starting position
        several = len(survey.classes) > 2
        spoken_for = logits.argmax(axis=1) if several else (logits[:, 0] > 0).astype(int)
        colours = [class_colours(len(survey.classes))[k] for k in spoken_for]
        self._stars.data = {
            "x": found.positions[own, 0],
            "y": found.positions[own, 1],
            "word": [survey.words[k] for k in own],
            "colour": colours,
            "size": 10 + 18 * np.sqrt(found.leads[own] / found.leads[own].max()) if len(own) else [],
            "leads": found.leads[own],
        }
        spots, words = found.positions[own], [survey.words[k] for k in own]
        low, high = found.positions[some].min(axis=0), found.positions[some].max(axis=0)
        low, high = np.minimum(low, spots.min(axis=0, initial=0)), np.maximum(high, spots.max(axis=0, initial=0))
        air = 0.06 * (high - low) + 1e-9
        low, high = low - air, high + air
        for axis, start, end in zip((self.plot.x_range, self.plot.y_range), low, high, strict=True):
            axis.update(start=float(start), end=float(end))
        shown = readable(spots, words, low, high, _PIXELS, dots=spots)
        written = [words[k] for k in shown]
        self._named.data = {"x": spots[shown, 0], "y": spots[shown, 1], "word": written, "shown": written}
        self._room.data = {
            "x": [*spots[shown, 0], float(low[0]), float(high[0])],
            "word": [*(words[k] for k in shown), "", ""],
        }
        self._boundary.visible = found.boundary is not None
        self._boundary.location = found.boundary or 0.0
        thinned = f"{len(some):,} of " if len(some) < len(found.seen) else ""
        self.plot.title.text = f"{thinned}{len(found.seen):,} words, {len(own)} leaders"  # as wide as a phone
