"""Words of a text in the layers of a model, one head as lines, and the tables of the page."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np
import pandas
from bokeh.core.properties import value
from bokeh.models import ColorBar, ColumnDataSource, HoverTool, LinearColorMapper, Range1d
from matplotlib import colormaps
from matplotlib.colors import to_hex

from ...figures.transformers import Targets
from ..layout import noted, readable
from ..look import FONT, Light, rank_colours
from ..session import Session
from ..stage import empty_frames, path_frames, register_stage
from .state import Computed, Effect

# Names that can be read in the plane, and its size in pixels on a laptop.
_NAMED = 60
_PIXELS = (400.0, 340.0)
# Letters of a word beside the lines of a head.
_LETTERS = 14
# Pixels of a token in the picture of a head.
_ROW = 19
# Rows of a table on the page; the download has all.
_MOST_ROWS = 400
SINK = "#8a96a0"
"""Colour of what goes to a sink, readable on light and dark cards."""


class PlaneView:
    """Words at one layer on the plane, with their paths and lines to the words that they attend to."""

    def __init__(self, session: Session) -> None:
        self._light = session.lighting.light
        self._shown: tuple[Computed, int, int] | None = None
        columns = ("x", "y", "token", "word", "colour", "size", "shape", "target", "weight")
        self.words = ColumnDataSource({name: [] for name in columns}, name="real-words")
        self._names = ColumnDataSource({name: [] for name in ("x", "y", "token", "word")})
        self._frames = empty_frames("real-frames")
        self._trails = ColumnDataSource({name: [] for name in ("xs", "ys", "colour")})
        self._lines = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1", "colour", "alpha")})
        plot = self.figure = session.figure(height=440, x_range=Range1d(-1, 1), y_range=Range1d(-1, 1), name="plane")
        plot.multi_line("xs", "ys", source=self._trails, line_color="colour", line_alpha=0.45, line_width=1.3)
        attending = plot.segment(
            "x0", "y0", "x1", "y1", source=self._lines, line_color="colour", line_alpha="alpha", line_dash=[4, 3]
        )
        self._dots = plot.scatter(
            "x", "y", source=self.words, size="size", marker="shape", fill_color="colour", line_width=0.8
        )
        # A glyph, because a LabelSet leaves letters behind when it gets fewer names.
        self._labels = plot.text(
            "x",
            "y",
            "word",
            source=self._names,
            x_offset=9,
            text_baseline="middle",
            text_font_size="12px",
            text_font=value(FONT),
        )
        tips = [("", "@word"), ("attends to", "@target"), ("weight", "@weight{0.000}")]
        plot.add_tools(HoverTool(renderers=[self._dots], tooltips=tips))
        session.lighting.follow(self._repaint)
        parts = {
            "trails": self._trails,
            "parts": [self.words, self._names],
            "names": self._names,
            "resting": [attending],
        }
        register_stage(plot, "points", {"plot": plot, "frames": self._frames, **parts})

    def _repaint(self, light: Light) -> None:
        self._light = light
        # Some colours of leaders are as dark as the card at night.
        self._dots.glyph.line_color, self._labels.glyph.text_color = light.soft, light.ink
        if self._shown is not None:
            self.show(*self._shown)

    def show(self, computed: Computed, layer: int, head: int) -> None:
        """Draw the tokens at a layer and what they attend to in a head."""
        self._shown = computed, layer, head
        path, targets = computed.placed.path, computed.targets(layer, head)
        now, k = path[layer], computed.attention_layer(layer)
        weights, words = computed.who.weights[k, head], computed.words
        colours = rank_colours(targets.colours, self._light)
        sinks = targets.leads & targets.sinks
        self.words.data = {
            "x": now[:, 0],
            "y": now[:, 1],
            "token": np.arange(len(now)),
            "word": list(words),
            "colour": colours,
            "size": np.where(sinks, 14, np.where(targets.leads, 19, 9)),
            "shape": np.where(sinks, "square", np.where(targets.leads, "star", "circle")).tolist(),
            "target": [named(computed, one) if one >= 0 else "none" for one in targets.attended.tolist()],
            "weight": weights,
        }
        trail = path[: layer + 1]
        self._trails.data = {"xs": list(trail[:, :, 0].T), "ys": list(trail[:, :, 1].T), "colour": colours}
        self._show_lines(now, targets, weights, drawn=layer < computed.layers)
        self._fit(path)
        self._frames.data = path_frames(path[..., :2], layer, chosen=np.arange(len(now)), tints=colours)
        first = [*np.flatnonzero(targets.leads), *np.flatnonzero(~targets.leads)][:_NAMED]
        low, high = (np.array([getattr(axis, end) for axis in self._ranges]) for end in ("start", "end"))
        names = [words[one] for one in first]
        chosen = [first[one] for one in readable(now[first, :2], names, low, high, _PIXELS, dots=now[:, :2])]
        self._names.data = {
            "x": now[chosen, 0],
            "y": now[chosen, 1],
            "token": chosen,
            "word": [words[one] for one in chosen],
        }
        shares = computed.placed.variance
        self.figure.xaxis.axis_label = f"first principal axis ({shares[0]:.0%} of the variance)"
        self.figure.yaxis.axis_label = f"second principal axis ({shares[1]:.0%})"

    def _show_lines(self, now: np.ndarray, targets: Targets, weights: np.ndarray, drawn: bool) -> None:
        """Lines to the tokens attended to; none after the last layer, whose tokens attend to nothing any more."""
        other = targets.attended != np.arange(len(now))
        some = np.flatnonzero((targets.attended >= 0) & other & drawn)
        ends = now[targets.attended[some]]
        self._lines.data = {
            "x0": now[some, 0],
            "y0": now[some, 1],
            "x1": ends[:, 0],
            "y1": ends[:, 1],
            "colour": rank_colours(targets.ranks[some], self._light),
            "alpha": 0.25 + 0.6 * weights[some],  # small weights can be seen at night too
        }

    @property
    def _ranges(self) -> tuple[Any, Any]:
        return self.figure.x_range, self.figure.y_range

    def _fit(self, path: np.ndarray) -> None:
        """Ranges that hold every layer, so that they stay while the words move."""
        for axis, values, right in zip(self._ranges, np.moveaxis(path, 2, 0), (2.2, 1.0), strict=True):
            low, high = float(values.min()), float(values.max())
            air = 0.08 * (high - low) or 1.0
            axis.update(start=low - air, end=high + right * air)  # names stand to the right of their points


class HeatMap:
    """One figure of every head of a report, layers downwards."""

    def __init__(self, session: Session) -> None:
        self._cells = ColumnDataSource({name: [] for name in ("head", "layer", "value", "verdict", "mark", "ink")})
        palette = [to_hex(colormaps["viridis"](k / 63)) for k in range(64)]
        self._mapper = LinearColorMapper(palette=palette, low=0, high=1, nan_color="#8a96a0")
        self.figure = session.figure(
            height=260,
            x_range=Range1d(-0.5, 0.5),
            y_range=Range1d(0.5, -0.5),
            x_axis_label="head",
            y_axis_label="layer",
            name="heads",
        )
        self.figure.grid.visible = False
        cells = self.figure.rect(
            "head",
            "layer",
            0.96,
            0.96,
            source=self._cells,
            fill_color={"field": "value", "transform": self._mapper},
            line_color=None,
        )
        self.figure.text(
            "head", "layer", "mark", source=self._cells, text_color="ink", text_align="center", text_baseline="middle",
            text_font_size="12px", text_font=value(FONT),
        )  # fmt: skip
        tips = [("head", "@layer.@head"), ("value", "@value{0.0000}"), ("verdict", "@verdict")]
        self.figure.add_tools(HoverTool(renderers=[cells], tooltips=tips))
        bar = ColorBar(color_mapper=self._mapper, width=10, background_fill_color=None, border_line_color=None)
        self.figure.add_layout(bar, "right")
        session.lighting.follow(lambda light: setattr(bar, "major_label_text_color", light.soft))

    def show(self, heads: pandas.DataFrame, column: str) -> None:
        """Draw a column of the table of heads; several texts are averaged."""
        table = heads.groupby(["layer", "head"], as_index=False).agg({column: "mean"})
        verdicts = [""] * len(table)
        if "verdict" in heads.columns:
            each = heads.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])["verdict"]
            verdicts = [str(each[one]) for one in zip(table["layer"], table["head"], strict=True)]
        values = table[column].to_numpy(dtype=np.float64)
        finite = values[np.isfinite(values)]
        if finite.size:
            self._mapper.update(low=float(finite.min()), high=float(finite.max()) + 1e-12)
        self._cells.data = {
            "head": table["head"].to_numpy(),
            "layer": table["layer"].to_numpy(),
            "value": values,
            "verdict": verdicts,
            "mark": [_MARKS.get(one, "") for one in verdicts],
            "ink": np.where(values > 0.5 * (self._mapper.low + self._mapper.high), "#1d2730", "#ffffff").tolist(),
        }
        self.figure.x_range.end = float(table["head"].max()) + 0.5
        self.figure.y_range.start = float(table["layer"].max()) + 0.5
        self.figure.height = 90 + 22 * int(table["layer"].nunique())


_MARKS = {"hard": "H", "idle": "i", "sink": "s"}
KEY = "Marks: H hard, i idle, s sink; no mark: soft or untested."
"""Key to the marks of the heat map."""


def head_svg(computed: Computed, layer: int, head: int, light: Light) -> str:
    """One head as HTML: a line from each token to the token that it attends to most, with a table as alternative."""
    k, targets = computed.attention_layer(layer), computed.targets(layer, head)
    weights, numbers = computed.who.weights[k, head], computed.who.attended[k, head]
    words, colours = computed.words, rank_colours(targets.ranks, light)
    own = rank_colours(targets.own, light)
    rows, ends = [], []
    for i, (word, target) in enumerate(zip(words, targets.attended.tolist(), strict=True)):
        y = _ROW * (i + 0.5)
        name = html.escape(_short(word))
        line = ""
        if target >= 0:
            told = (
                f"{named(computed, i)} attends to {named(computed, target)} with weight {weights[i]:.3f}; "
                f"{numbers[i]:.1f} tokens in effect"
            )
            end = _ROW * (target + 0.5)
            line = (
                f'<title>{html.escape(told)}</title><line x1="31%" x2="69%" y1="{y:.1f}" y2="{end:.1f}" '
                f'stroke="{colours[i]}" stroke-width="{1 + 2.2 * weights[i]:.2f}" '
                f'stroke-opacity="{0.35 + 0.65 * weights[i]:.2f}"/>'
            )
        rows.append(f'<g>{line}<text x="30%" y="{y + 4:.1f}" text-anchor="end">{name}</text></g>')
        lead = targets.leads[i]
        mark = "■" if targets.sinks[i] else "★"
        style = f' class="lead"><tspan fill="{own[i]}">{mark}</tspan> ' if lead else ' class="quiet">'
        ends.append(f'<text x="70%" y="{y + 4:.1f}"{style}{name}</text>')
    tall = _ROW * len(words) + 4
    label = html.escape(f"Layer {k}, head {head}. {targets_sentence(computed, layer, head)}", quote=True)
    return (
        f"{_SVG_STYLE}<div class='scroll' tabindex='0'>"
        f"<svg role='img' aria-label='{label}' width='100%' height='{tall}'>"
        f"{''.join(rows)}{''.join(ends)}</svg></div>{_rows_table(computed, layer, head)}"
    )


_SVG_STYLE = """<style>
.scroll{max-height:500px;overflow-y:auto;scrollbar-gutter:stable}
svg text{font-size:12px;fill:var(--hm-ink)} svg text.quiet{fill:var(--hm-soft);opacity:.8}
svg text.lead{font-weight:650}
svg g:hover line{stroke-width:4;stroke-opacity:1} details{margin-top:4px} summary{cursor:pointer;color:var(--hm-soft)}
</style>"""


def _rows_table(computed: Computed, layer: int, head: int) -> str:
    k, targets = computed.attention_layer(layer), computed.targets(layer, head)
    weights, numbers = computed.who.weights[k, head], computed.who.attended[k, head]
    cells = [
        f"<tr><td>{html.escape(word)}</td><td>{html.escape(computed.words[one]) if one >= 0 else '–'}</td>"
        f"<td>{weight:.3f}</td><td>{number:.1f}</td></tr>"
        for word, one, weight, number in zip(computed.words, targets.attended, weights, numbers, strict=True)
    ]
    top = "<tr><th>token</th><th>attends to</th><th>weight</th><th>tokens in effect</th></tr>"
    table = f"<div class='scroll'><table>{top}{''.join(cells)}</table></div>"
    return f"<details><summary>As a table</summary>{table}</details>"


def targets_sentence(computed: Computed, layer: int, head: int) -> str:
    """The tokens that are attended to most in a head, in words."""
    targets = computed.targets(layer, head)
    counts = np.bincount(targets.attended[targets.attended >= 0], minlength=len(computed.words))
    order = [int(one) for one in np.argsort(-counts, kind="stable") if counts[one] > 0]
    if not order:
        return "No token attends to any other: all weights are zero."
    told = [f"“{computed.words[one]}” ({counts[one]}{', a sink' if targets.sinks[one] else ''})" for one in order[:5]]
    more = f" and {len(order) - 5} others" if len(order) > 5 else ""
    return f"Attended to most, by how many of {len(computed.words)} tokens: {', '.join(told)}{more}."


def named(computed: Computed, token: int) -> str:
    """A token in quotes, with its place where the text has the same word again."""
    word = computed.words[token]
    return f"“{word}” at place {token}" if computed.words.count(word) > 1 else f"“{word}”"


def _short(word: str) -> str:
    """A word for the picture of a head: not too long, and visible where it is only white space."""
    word = word if word.strip() else word.replace("\n", "⏎").replace(" ", "␣").replace("\t", "⇥") or "∅"
    return word if len(word) <= _LETTERS else word[: _LETTERS - 1] + "…"


def heads_table(computed: Computed, layer: int, head: int) -> str:
    """Figures of all heads of the layer, as HTML; the chosen head is marked."""
    rows = []
    for row in computed.who.heads(computed.attention_layer(layer)).itertuples():
        marked = " aria-current='true' style='font-weight:650;background:var(--hm-shade)'" if row.head == head else ""
        rows.append(
            f"<tr{marked}><td>{row.head}</td><td>{row.largest_weight:.3f}</td><td>{row.attended:.1f}</td>"
            f"<td>{row.special_share:.0%}</td><td>{row.distinct_targets}</td></tr>"
        )
    top = "<tr><th>head</th><th>largest weight</th><th>tokens in effect</th><th>to sinks</th><th>targets</th></tr>"
    words = "Means over tokens. Tokens in effect: exponential of the entropy. Sinks: the first and special tokens."
    return f"<div style='overflow-x:auto'><table>{top}{''.join(rows)}</table></div>{noted(words)}"


_RULES = {"softmax": "as trained", "zero": "no attention (control)", "hardmax": "hardmax"}


def effects_table(computed: Computed) -> str:
    """What the temperature changes, beside the model as trained and without attention, as HTML."""
    causal = computed.model.causal
    rows = [_effect_row(effect, causal) for effect in computed.effects]
    top = (
        "<th>perplexity</th><th>likeliest next tokens</th>" if causal else "<th>cosine with the trained embedding</th>"
    )
    table = f"<table><tr><th>attention</th>{top}</tr>{''.join(rows)}</table>"
    changed = computed.state.rule != "softmax"
    same = f"{computed.same:.0%} of all rows (layers, heads, tokens) attend most to the same token as before."
    return f"<div style='overflow-x:auto'>{table}</div>" + (noted(same) if changed else "")


def _effect_row(effect: Effect, causal: bool) -> str:
    name = _RULES.get(effect.rule, effect.rule.replace("beta=", "β × "))
    if not causal:
        shown = "–" if effect.cosine is None or math.isnan(effect.cosine) else f"{effect.cosine:.4f}"
        return f"<tr><td>{html.escape(name)}</td><td>{shown}</td></tr>"
    perplexity = "–" if effect.perplexity is None else f"{effect.perplexity:,.1f}"
    words = ", ".join(f"{html.escape(repr(word))} {share:.1%}" for word, share in effect.following)
    return f"<tr><td>{html.escape(name)}</td><td>{perplexity}</td><td>{words}</td></tr>"


def frame_table(table: pandas.DataFrame) -> str:
    """A table as HTML, its first rows where it is long."""
    shown = table.head(_MOST_ROWS)
    top = "".join(f"<th>{html.escape(str(name).replace('_', ' '))}</th>" for name in shown.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{_cell(one)}</td>' for one in row)}</tr>" for row in shown.itertuples(index=False)
    )
    left = f"The first {len(shown)} of {len(table):,} rows; the download has all." if len(shown) < len(table) else ""
    box = "<div tabindex='0' style='overflow:auto;max-height:380px'>"
    return f"{box}<table><tr>{top}</tr>{rows}</table></div>{noted(left) if left else ''}"


def _cell(one: Any) -> str:
    if isinstance(one, (float, np.floating)):
        return "–" if math.isnan(one) else f"{one:.4g}"
    return html.escape(str(one))
