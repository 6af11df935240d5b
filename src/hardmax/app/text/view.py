"""An explanation on the page: verdict, marked text, leaders, contributions, class colours."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJS, FactorRange, HoverTool, Range1d, Span

from ...drawing.style import INK
from ...drawing.words import words_in_plane
from ...text.explaining.explanation import Explanation
from ..layout import beside_bars
from ..look import PALETTE, SIZE, leader_colours
from .reasons import Words, effect_in_words, percent, signed

if TYPE_CHECKING:
    from ..session import Session


OTHERS = "#8a96a0"
"""Colour of contributions that lower the logit of one class among several."""


def class_colours(count: int) -> tuple[str, ...]:
    """The colours of ``count`` classes in their order; two are vermilion and blue, the most different pair."""
    if count == 2:
        return PALETTE[4], PALETTE[0]
    known = leader_colours()
    return tuple(known[k % len(known)] for k in range(count))


def raising_and_lowering(explanation: Explanation) -> tuple[str, str]:
    """The colours of contributions that raise and lower the explained logit."""
    colours = class_colours(len(explanation.classes))
    return (colours[1], colours[0]) if len(colours) == 2 else (colours[explanation.output], OTHERS)


def colours_of_contributions(explanation: Explanation, contributions: Sequence[float] | np.ndarray) -> list[str]:
    """One colour per contribution to the explained logit."""
    raising, lowering = raising_and_lowering(explanation)
    return [raising if value > 0 else lowering for value in contributions]


def in_class_colours(ax: Any, explanation: Explanation) -> None:
    """Give the words of a figure of :meth:`Explanation.draw` the colours that they have on the page."""
    placed = words_in_plane(explanation)
    given = np.array([leader.contribution[explanation.output] for leader in explanation.leaders])
    colours = np.array(colours_of_contributions(explanation, given[placed.ranks]))
    trails, followers, leaders = ax.collections[:3]  # in the order in which they are drawn
    trails.set_color(list(colours))
    followers.set_facecolor(list(colours[~placed.leads]))
    leaders.set_facecolor(list(colours[placed.leads]))
    for name in ax.texts:
        if name.get_text() in explanation.words:
            name.set_color(INK)


def translucent(colour: str, alpha: float) -> str:
    """A translucent colour in CSS notation."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:.2f})"


_UNDERLINED = ";font-weight:700;text-decoration:underline;text-decoration-thickness:2px;text-underline-offset:3px"
_SWATCH = (
    "<span class='swatch' style='background:{};border-radius:4px;padding:1px 7px;color:var(--hm-ink);"
    "white-space:nowrap'>{}</span>"
)


def key_to_directions(explanation: Explanation) -> str:
    """Legend of the two directions of the explained logit, as HTML."""
    names = (explanation.classes[1], explanation.classes[0])
    if len(explanation.classes) > 2:
        names = (explanation.prediction, "other classes")
    swatch = _SWATCH.format("{}", "towards {}")
    return " ".join(
        swatch.format(translucent(colour, 0.45), html.escape(str(name)))
        for name, colour in zip(names, raising_and_lowering(explanation), strict=True)
    )


def key_to_classes(classes: Sequence[object] | np.ndarray) -> str:
    """Legend of the classes, as HTML."""
    swatch = _SWATCH.format("{}", "{}")
    return " ".join(
        swatch.format(translucent(colour, 0.45), html.escape(str(label)))
        for label, colour in zip(classes, class_colours(len(classes)), strict=True)
    )


# Bars that can be labelled legibly.
_BARS = 10


_ROOM_FOR_NUMBERS = (
    SIZE
    + """
const ends = [...source.data.left, ...source.data.right];
if (ends.length && width > 120) {
  const low = Math.min(...ends), high = Math.max(...ends), span = (high - low) || 1;
  plot.x_range.setv({start: low - 0.04 * span, end: high + 1.04 * span * 54 / (width - 54)});
}
"""
)
"""Leaves the 54 pixels that a number needs to the right of the longest bar, at any width."""


class Staircase:
    """Waterfall chart of the leaders' contributions and the bias, which add up to the logit."""

    def __init__(self, session: Session, *, linked: bool = True) -> None:
        self._source = ColumnDataSource(
            {"bar": [], "left": [], "right": [], "colour": [], "label": [], "at": []},
            name="contributions" if linked else "contributions of the second text",
        )
        self._bars = FactorRange()
        self.plot = session.figure(
            height=300, y_range=self._bars, x_range=Range1d(-1, 1), x_axis_label="contribution to the logit"
        )
        self.plot.ygrid.grid_line_color = None
        self.plot.add_layout(Span(location=0, dimension="height", line_color="#8a96a0", line_width=1))
        bars = self.plot.hbar(
            y="bar", left="left", right="right", height=0.62, color="colour", alpha=0.85, source=self._source
        )
        # The bars of the leaders of the word that is pointed at (static/linked.js).
        halo = ColumnDataSource({"bar": [], "left": [], "right": []}, name="bar halo" if linked else "")
        around = self.plot.hbar(
            y="bar", left="left", right="right", height=0.78, fill_alpha=0, line_width=2.5, source=halo
        )
        session.lighting.follow(lambda light: setattr(around.glyph, "line_color", light.ink))
        beside_bars(session, self.plot, self._source, x="at", text="label")
        room = CustomJS(args={"plot": self.plot, "source": self._source}, code=_ROOM_FOR_NUMBERS)
        self.plot.js_on_change("inner_width", room)
        self._source.js_on_change("data", room)
        self.plot.add_tools(HoverTool(renderers=[bars], tooltips=[("", "@bar"), ("contributes", "@label")]))

    def show(self, explanation: Explanation) -> None:
        """Draw another explanation."""
        rows = staircase(explanation)
        self._bars.factors = [row[0] for row in reversed(rows)]
        self.plot.height = 96 + 26 * len(rows)
        ends = [end for _, start, stop in rows for end in (start, stop)]
        span = (max(ends) - min(ends)) or 1.0
        # Room for the number to the right of the longest bar.
        self.plot.x_range.update(start=min(ends) - 0.04 * span, end=max(ends) + 0.2 * span)
        self._source.data = {
            "bar": [name for name, _, _ in rows],
            "left": [min(start, end) for _, start, end in rows],
            "right": [max(start, end) for _, start, end in rows],
            "at": [max(start, end) for _, start, end in rows],
            "colour": colours_of_contributions(explanation, [end - start for _, start, end in rows]),
            "label": [f"{end - start:+.2f}".replace("-", "−") for _, start, end in rows],
        }


def staircase(explanation: Explanation) -> list[tuple[str, float, float]]:
    """Name, start and end of every bar; leaders beyond the first nine share one bar."""
    out = explanation.output
    steps = [(f"★ {leader.word}", float(leader.contribution[out])) for leader in explanation.leaders]
    if len(steps) > _BARS:
        rest = steps[_BARS - 1 :]
        steps = [*steps[: _BARS - 1], (f"{len(rest)} more leaders", sum(step for _, step in rest))]
    steps.append(("bias", float(explanation.bias[out])))
    rows, reached = [], 0.0
    for name, step in steps:
        rows.append((name, reached, reached + step))
        reached += step
    return [*rows, ("logit (the sum)", 0.0, float(explanation.logits[out]))]


# What fits in a line and in a card.
_FOLLOWERS_SHOWN = 6
_LEADERS_SHOWN = 12


def verdict(explanation: Explanation) -> str:
    """The predicted class with its probability, and a bar per class, as HTML."""
    rows = []
    colours = class_colours(len(explanation.classes))
    for label, chance, colour in zip(explanation.classes, explanation.probabilities, colours, strict=True):
        name = html.escape(str(label))
        rows.append(
            f"<tr><td>{name}</td><td style='width:60%'><div class='chance' style='height:9px;border-radius:5px;"
            f"background:{colour};width:{100 * chance:.1f}%;min-width:2px'></div></td>"
            f"<td style='text-align:right'>{percent(chance, 1)}</td></tr>"
        )
    name = html.escape(str(explanation.prediction))
    chance = float(explanation.probabilities.max())
    head = (
        f"<p style='font-size:26px;font-weight:650;line-height:1.2;margin:0 0 6px'>{name} "
        f"<span class='soft' style='font-weight:400'>{percent(chance)}</span></p>"
    )
    note = "" if explanation.known else "<p class='soft'>No word of this text is known, so this is the prior alone.</p>"
    return f"{head}{note}<table style='width:100%'>{''.join(rows)}</table>"


_LONG = 2_500
"""Characters of a text that is given a height and scrolls: the plots below it would be screens away."""
_SCROLLS = ";max-height:min(60vh,480px);overflow-y:auto;padding:2px 6px 2px 3px"


def marked_text(words: Words, *, strike: bool = True) -> str:
    """The text as HTML; words are shaded in the colour of the class that they raise, leaders are underlined.

    Where words can be struck out, the first is a stop of the Tab key, and the arrows go on to the others.
    """
    why = words.why
    raising, lowering = raising_and_lowering(why)
    weights = why.word_weights()
    names = [span[2] for span in why.tokeniser.spans(why.text or "")] if why.tokeniser is not None else []
    strongest = max((abs(weight) for _, _, weight, _ in weights), default=0.0) or 1.0
    text, pieces, last, place = why.text or "", [], 0, 0
    for (start, end, weight, leads), name in zip(weights, names, strict=True):
        pieces.append(html.escape(text[last:start]))
        shown, last = html.escape(text[start:end]), end
        if name not in words.places or (weight == 0 and not leads):
            pieces.append(shown)
            continue
        shade = translucent(raising if weight > 0 else lowering, 0.10 + 0.5 * abs(weight) / strongest)
        style = f"background:{shade};color:inherit;padding:1px 2px{_UNDERLINED if leads else ''}"
        gone = name in words.struck
        classes = ("leader" if leads else "follower") + (" gone" if gone else "")
        known_by = f"data-word='{html.escape(name)}' data-tip='{html.escape(effect_in_words(words, name))}'"
        if strike:
            pressed, stop = str(gone).lower(), -1 if place else 0
            known_by += f" role='button' tabindex='{stop}' aria-pressed='{pressed}' data-place='{place}'"
            place += 1
        pieces.append(f"<mark class='{classes}' style='{style}' {known_by}>{shown}</mark>")
    pieces.append(html.escape(text[last:]))
    about = "The text; arrow keys go from word to word, Enter strikes one out" if strike else "The second text"
    style, tab = "line-height:1.85;white-space:pre-wrap;font-size:15px", ""
    if len(text) > _LONG:
        style += _SCROLLS
        tab = "" if place else " tabindex='0'"  # else the keyboard could not scroll a text without words to go to
    return f"<div class='marked' role='group' aria-label='{about}'{tab} style='{style}'>{''.join(pieces)}</div>"


def key_to_marks(explanation: Explanation) -> str:
    """Legend of the marked text, as HTML."""
    return (
        f"<p class='soft' style='font-size:13px'>{key_to_directions(explanation)} · "
        "<b style='text-decoration:underline'>leader</b> · every shaded word follows one</p>"
    )


def leader_list(explanation: Explanation) -> str:
    """Table of the leaders with their shares and heaviest followers, as HTML."""
    rows = []
    for leader in explanation.leaders[:_LEADERS_SHOWN]:
        named = ", ".join(html.escape(explanation.words[k]) for k in leader.followers[:_FOLLOWERS_SHOWN])
        more = len(leader.followers) - _FOLLOWERS_SHOWN
        tail = f" and {more} more" if more > 0 else ""
        rows.append(
            f"<tr><td><b>★ {html.escape(leader.word)}</b></td><td>{leader.share:.0%}</td>"
            f"<td>{leader.emerged_at}</td><td class='soft'>{named + tail if named else 'no word'}</td></tr>"
        )
    hidden = len(explanation.leaders) - _LEADERS_SHOWN
    rest = f"<p class='soft'>and {hidden} smaller leaders</p>" if hidden > 0 else ""
    head = "<tr><th>leader</th><th>gathers</th><th>since layer</th><th>followed by</th></tr>"
    return f"<table style='width:100%'><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>{rest}"


def sum_in_words(explanation: Explanation) -> str:
    """The contributions as a sum that equals the logit, with the probability, as HTML."""
    out = explanation.output
    shown = explanation.leaders[:4]
    rest = [float(leader.contribution[out]) for leader in explanation.leaders[4:]]
    terms = [f"{signed(leader.contribution[out])} <i>{html.escape(leader.word)}</i>" for leader in shown]
    if rest:
        terms.append(f"{signed(sum(rest))} <i>{len(rest)} more</i>")
    terms.append(f"{signed(explanation.bias[out])} <i>bias</i>")
    chance = float(explanation.probabilities[1 if len(explanation.classes) == 2 else int(explanation.logits.argmax())])
    label = explanation.classes[1] if len(explanation.classes) == 2 else explanation.prediction
    return (
        f"<p class='sum'>{' '.join(terms)} = <b>{signed(explanation.logits[out])}</b>, "
        f"so {html.escape(str(label))} has probability {percent(chance, 1)}</p>"
    )
