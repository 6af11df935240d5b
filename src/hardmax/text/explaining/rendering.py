"""Text with marked words, and tables of leaders, as HTML and as lines for a terminal."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..words.document_endings import AT_THE_END
from ..words.tokenisation import Tokeniser

_FOR, _AGAINST = (0, 114, 178), (213, 94, 0)
"""Blue and vermilion, which readers with any common colour blindness can distinguish."""


@dataclass(frozen=True)
class LeaderRow:
    """One line in the table of leaders."""

    word: str
    share: float
    contribution: float
    followers: str
    """Names of the heaviest followers."""


WordWeight = tuple[int, int, float, bool]
"""Start and end of a word in the text, its contribution, and whether it is (part of) a leader."""


def word_weights(
    text: str, tokeniser: Tokeniser, contributions: dict[str, float], leaders: set[str], endings: int
) -> list[WordWeight]:
    """Position of each known word in the text, its contribution, and whether it is (part of) a leader.

    The contribution of an n-gram is divided equally among its words and all its occurrences. ``endings`` is the number
    of words at the end of the text that also count as words of their own.
    """
    spans = tokeniser.spans(text)
    longest = max((word.removesuffix(AT_THE_END).count(" ") + 1 for word in contributions), default=0)
    end = len(spans) - endings
    places: dict[str, list[range]] = {}
    for begin in range(len(spans)):
        for length in range(1, min(longest, len(spans) - begin) + 1):
            gram = " ".join(span[2] for span in spans[begin : begin + length])
            for name in (gram, gram + AT_THE_END) if begin >= end else (gram,):
                if name in contributions:
                    places.setdefault(name, []).append(range(begin, begin + length))
    value, leads = np.zeros(len(spans)), np.zeros(len(spans), dtype=bool)
    for gram, found in places.items():
        for place in found:
            value[place.start : place.stop] += contributions[gram] / len(found) / len(place)
            leads[place.start : place.stop] |= gram in leaders
    return [
        (start, stop, float(weight), bool(led))
        for (start, stop, _), weight, led in zip(spans, value, leads, strict=True)
    ]


def marked_text(text: str, weights: Sequence[WordWeight], mark: Callable[[str, float, float, bool], str]) -> str:
    """The text as HTML, in which ``mark`` formats every word with a contribution and every leader.

    ``mark`` is called with the word, already escaped, its contribution, the absolute contribution relative to the
    largest one, and whether it leads.
    """
    strongest = max((abs(weight) for _, _, weight, _ in weights), default=0.0) or 1.0
    pieces, last = [], 0
    for start, end, weight, leads in weights:
        pieces.append(html.escape(text[last:start]))
        word, last = html.escape(text[start:end]), end
        pieces.append(word if weight == 0 and not leads else mark(word, weight, abs(weight) / strongest, leads))
    pieces.append(html.escape(text[last:]))
    return "".join(pieces)


def coloured(word: str, weight: float, strength: float, leads: bool) -> str:
    """An escaped word as HTML: blue for a positive contribution, vermilion for a negative one, leaders underlined."""
    red, green, blue = _FOR if weight > 0 else _AGAINST
    style = f"background:rgba({red},{green},{blue},{0.08 + 0.5 * strength:.2f});border-radius:3px"
    style += ";font-weight:bold;text-decoration:underline" if leads else ""
    return f'<span style="{style}" title="{weight:+.4f}">{word}</span>'


def html_page(sentence: str, marked: str | None, table: str | None) -> str:
    """HTML of an explanation: the sentence, the text with marked words, and the table of leaders."""
    parts = [f"<p><strong>{html.escape(sentence)}</strong></p>"]
    if marked is not None:
        parts.append(f'<p style="line-height:1.9;white-space:pre-wrap">{marked}</p>')
    if table is not None:
        parts.append(table)
    return '<div class="hardmax-explanation" style="font-family:sans-serif">' + "\n".join(parts) + "</div>"


def html_table(leaders: Sequence[LeaderRow], bias: float, logit: float, class_name: str) -> str:
    """Key to the colours and table of leaders as HTML; signs and colours refer to the class of this name."""
    key = (
        f'<p style="font-size:small">Blue words and positive numbers speak for {html.escape(class_name)}, orange words '
        "and negative numbers against it; underlined words lead.</p>"
    )
    rows = [
        (
            f"<strong>{html.escape(leader.word)}</strong>",
            f"{leader.share:.1%}",
            f"{leader.contribution:+.4f}",
            html.escape(leader.followers),
        )
        for leader in leaders
    ]
    rows.append(("bias", "", f"{bias:+.4f}", ""))
    rows.append(("logit", "", f"<strong>{logit:+.4f}</strong>", ""))
    head = _html_row("th", ("leader", "share of mass", "contribution", "heaviest followers"))
    body = "".join(_html_row("td", cells) for cells in rows)
    return f'{key}\n<table style="border-collapse:collapse"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    sides = ("left", "right", "right", "left")
    return (
        "<tr>"
        + "".join(
            f'<{tag} style="text-align:{side};padding:2px 12px 2px 0">{cell}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        + "</tr>"
    )


def plain_table(leaders: Sequence[LeaderRow], bias: float, logit: float) -> str:
    """Table of leaders as lines for a terminal."""
    width = max(6, *(len(leader.word) for leader in leaders))
    lines = [f"  {'leader':<{width}}  {'gives':>9}  {'share':>6}  heaviest followers"]
    for leader in leaders:
        tail = f"  <- {leader.followers}" if leader.followers else ""
        lines.append(f"  {leader.word:<{width}}  {leader.contribution:+9.4f}  {leader.share:6.1%}{tail}")
    lines.append(f"  {'bias':<{width}}  {bias:+9.4f}")
    lines.append(f"  {'logit':<{width}}  {logit:+9.4f}")
    return "\n".join(lines)
